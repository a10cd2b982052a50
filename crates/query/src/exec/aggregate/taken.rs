//! The first or the last value of every group, in some order; of equal rows, that which comes
//! first, or last.

use esker_format::{DataType, Value};

use crate::evaluate::{Lanes, Vector, keys_of, value_of};

/// The value of each group so far, with its keys.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    is_last: bool,
    values: Vec<Option<Vec<u8>>>,
}

impl Taken {
    pub(super) fn new(is_last: bool) -> Self {
        Self { is_last, values: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.values.resize(groups, None);
    }

    /// Offers rows in their order, each to its group.
    pub(super) fn update(&mut self, groups: &[u32], vector: &Vector<'_>) {
        let Lanes::Bytes(ranked) = &vector.lanes else { return };
        let rows = groups.iter().zip(ranked).enumerate().filter(|(i, _)| !vector.is_null(*i));
        rows.for_each(|(_, (group, ranked))| self.offer(*group, ranked));
    }

    /// Offers what later rows came to.
    pub(super) fn merge(&mut self, later: &Self, pairs: &[(u32, u32)]) {
        for (there, here) in pairs {
            let ranked = later.values.get(*there as usize).and_then(Option::as_ref);
            ranked.iter().for_each(|ranked| self.offer(*here, ranked));
        }
    }

    fn offer(&mut self, group: u32, ranked: &[u8]) {
        let Some(taken) = self.values.get_mut(group as usize) else { return };
        let is_before = taken.as_ref().is_some_and(|taken| match self.is_last {
            true => keys_of(ranked) < keys_of(taken),
            false => keys_of(ranked) >= keys_of(taken),
        });
        if !is_before {
            let into = taken.get_or_insert_with(Vec::new);
            into.clear();
            into.extend_from_slice(ranked);
        }
    }

    /// The value of a group; NULL when it has no row.
    pub(super) fn value(&self, group: usize, data_type: DataType) -> Value {
        let ranked = self.values.get(group).and_then(Option::as_ref);
        ranked.map_or(Value::Null, |ranked| value_of(ranked, data_type).to_owned())
    }

    pub(super) fn bytes(&self) -> usize {
        let values = self.values.iter().flatten().map(Vec::capacity).sum::<usize>();
        self.values.capacity() * size_of::<Option<Vec<u8>>>() + values
    }
}
