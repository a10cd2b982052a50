//! The bits of integers together, and products.

use esker_format::{DataType, Value};

use crate::evaluate::{Lanes, Vector};
use crate::model::Aggregate;

/// The bits of each group so far.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    function: Aggregate,
    groups: Vec<Option<u64>>,
}

impl Bits {
    pub(super) fn new(function: Aggregate) -> Self {
        Self { function, groups: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.groups.resize(groups, None);
    }

    pub(super) fn update(&mut self, groups: &[u32], vector: &Vector<'_>) {
        for (i, group) in groups.iter().enumerate().filter(|(i, _)| !vector.is_null(*i)) {
            let value = match &vector.lanes {
                Lanes::Ints(v) => v.get(i).map(|v| v.cast_unsigned()),
                Lanes::Uints(v) => v.get(i).copied(),
                _ => None,
            };
            if let (Some(value), Some(into)) = (value, self.groups.get_mut(*group as usize)) {
                *into = Some(together(self.function, *into, value));
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self, pairs: &[(u32, u32)]) {
        let function = self.function;
        super::group_pairs::each(&mut self.groups, &other.groups, pairs, |into, value| {
            if let Some(value) = value {
                *into = Some(together(function, *into, *value));
            }
        });
    }

    pub(super) fn value(&self, group: usize, data_type: DataType) -> Value {
        match (self.groups.get(group).copied().flatten(), data_type) {
            (None, _) => Value::Null,
            (Some(bits), DataType::U64) => Value::Uint(bits),
            (Some(bits), _) => Value::Int(bits.cast_signed()),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<u64>>()
    }
}

fn together(function: Aggregate, before: Option<u64>, value: u64) -> u64 {
    match (before, function) {
        (None, _) => value,
        (Some(before), Aggregate::BitAnd) => before & value,
        (Some(before), Aggregate::BitOr) => before | value,
        (Some(before), _) => before ^ value,
    }
}
