//! The least or greatest value of every group.

use std::cmp::Ordering;

use esker_format::key::one_spelling;
use esker_format::value::compare_floats;
use esker_format::{DataType, Value, ValueRef};

use crate::evaluate::{Lanes, Vector};

/// The best value of each group so far.
#[derive(Clone, Debug)]
pub(crate) struct Extremes {
    greatest: bool,
    values: Best,
}

#[derive(Clone, Debug)]
enum Best {
    Ints(Vec<Option<i64>>),
    Wides(Vec<Option<i128>>),
    Uints(Vec<Option<u64>>),
    Floats(Vec<Option<f64>>),
    Bools(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Extremes {
    pub(super) fn new(data_type: DataType, greatest: bool) -> Self {
        let values = match data_type {
            DataType::Bool => Best::Bools(Vec::new()),
            DataType::U64 => Best::Uints(Vec::new()),
            DataType::F32 | DataType::F64 => Best::Floats(Vec::new()),
            other if other.is_wide() => Best::Wides(Vec::new()),
            other if other.is_variable() => Best::Bytes(Vec::new()),
            _ => Best::Ints(Vec::new()),
        };
        Self { greatest, values }
    }

    pub(super) fn is_greatest(&self) -> bool {
        self.greatest
    }

    /// True when no value lies elsewhere.
    pub(super) fn is_flat(&self) -> bool {
        !matches!(self.values, Best::Bytes(_))
    }

    pub(super) fn resize(&mut self, groups: usize) {
        match &mut self.values {
            Best::Ints(v) => v.resize(groups, None),
            Best::Wides(v) => v.resize(groups, None),
            Best::Uints(v) => v.resize(groups, None),
            Best::Floats(v) => v.resize(groups, None),
            Best::Bools(v) => v.resize(groups, None),
            Best::Bytes(v) => v.resize(groups, None),
        }
    }

    fn wanted(&self) -> Ordering {
        if self.greatest { Ordering::Greater } else { Ordering::Less }
    }

    /// Offers the rows of a vector, each to its group.
    pub(super) fn update(&mut self, groups: &[u32], vector: &Vector<'_>) {
        fn all<T: Clone>(
            best: &mut [Option<T>],
            values: &[T],
            places: impl Iterator<Item = (usize, usize)>,
            wanted: Ordering,
            compare: impl Fn(&T, &T) -> Ordering + Copy,
        ) {
            places.for_each(|(i, group)| offer(best, group, values.get(i), wanted, compare));
        }
        let wanted = self.wanted();
        let rows = (0..vector.len()).filter(|i| !vector.is_null(*i));
        let places = rows.map(|i| (i, groups.get(i).copied().unwrap_or_default() as usize));
        match (&mut self.values, &vector.lanes) {
            (Best::Ints(best), Lanes::Ints(v)) => all(best, v, places, wanted, i64::cmp),
            (Best::Wides(best), Lanes::Wides(v)) => all(best, v, places, wanted, i128::cmp),
            (Best::Uints(best), Lanes::Uints(v)) => all(best, v, places, wanted, u64::cmp),
            (Best::Bools(best), Lanes::Bools(v)) => all(best, v, places, wanted, bool::cmp),
            (Best::Floats(best), Lanes::Floats(v)) => {
                all(best, v, places, wanted, |a, b| compare_floats(*a, *b));
            }
            (Best::Bytes(best), Lanes::Bytes(v)) => places.for_each(|(i, group)| {
                if let Some(value) = v.get(i) {
                    offer_bytes(best, group, value, wanted);
                }
            }),
            _ => {}
        }
    }

    /// Offers one value to group 0.
    pub(super) fn offer_first(&mut self, value: ValueRef<'_>) {
        let wanted = self.wanted();
        match (&mut self.values, value) {
            (Best::Ints(best), value) => {
                offer(best, 0, value.as_word().as_ref(), wanted, i64::cmp);
            }
            (Best::Wides(best), value) => {
                offer(best, 0, value.mantissa().as_ref(), wanted, i128::cmp);
            }
            (Best::Uints(best), ValueRef::Uint(v)) => offer(best, 0, Some(&v), wanted, u64::cmp),
            (Best::Bools(best), ValueRef::Bool(v)) => offer(best, 0, Some(&v), wanted, bool::cmp),
            (Best::Floats(best), ValueRef::Float(v)) => {
                offer(best, 0, Some(&v), wanted, |a, b| compare_floats(*a, *b));
            }
            (Best::Floats(best), ValueRef::Float32(v)) => {
                offer(best, 0, Some(&v.into()), wanted, |a, b| compare_floats(*a, *b));
            }
            (Best::Bytes(best), value) => {
                if let Some(bytes) = value.as_bytes() {
                    offer_bytes(best, 0, bytes, wanted);
                }
            }
            _ => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Self, pairs: &[(u32, u32)]) {
        fn all<T: Clone>(
            into: &mut [Option<T>],
            from: &[Option<T>],
            pairs: &[(u32, u32)],
            wanted: Ordering,
            compare: impl Fn(&T, &T) -> Ordering + Copy,
        ) {
            for (there, here) in pairs {
                let value = from.get(*there as usize).and_then(Option::as_ref);
                offer(into, *here as usize, value, wanted, compare);
            }
        }
        let wanted = self.wanted();
        match (&mut self.values, &other.values) {
            (Best::Ints(a), Best::Ints(b)) => all(a, b, pairs, wanted, i64::cmp),
            (Best::Wides(a), Best::Wides(b)) => all(a, b, pairs, wanted, i128::cmp),
            (Best::Uints(a), Best::Uints(b)) => all(a, b, pairs, wanted, u64::cmp),
            (Best::Bools(a), Best::Bools(b)) => all(a, b, pairs, wanted, bool::cmp),
            (Best::Bytes(a), Best::Bytes(b)) => all(a, b, pairs, wanted, Vec::cmp),
            (Best::Floats(a), Best::Floats(b)) => {
                all(a, b, pairs, wanted, |a, b| compare_floats(*a, *b));
            }
            _ => {}
        }
    }

    /// Whether the best values stay what they are without some of the rows, whose best ones are
    /// those of `gone`: of each pair, the first group there is the second here.
    pub(super) fn keep_without(&self, gone: &Self, pairs: &[(u32, u32)]) -> bool {
        fn all<T>(
            best: &[Option<T>],
            gone: &[Option<T>],
            pairs: &[(u32, u32)],
            is_same: impl Fn(&T, &T) -> bool,
        ) -> bool {
            pairs.iter().all(|(there, here)| {
                match (best.get(*here as usize), gone.get(*there as usize)) {
                    (_, Some(None)) => true,
                    (Some(Some(best)), Some(Some(gone))) => !is_same(best, gone),
                    _ => false,
                }
            })
        }
        match (&self.values, &gone.values) {
            (Best::Ints(a), Best::Ints(b)) => all(a, b, pairs, i64::eq),
            (Best::Wides(a), Best::Wides(b)) => all(a, b, pairs, i128::eq),
            (Best::Uints(a), Best::Uints(b)) => all(a, b, pairs, u64::eq),
            (Best::Bools(a), Best::Bools(b)) => all(a, b, pairs, bool::eq),
            (Best::Bytes(a), Best::Bytes(b)) => all(a, b, pairs, Vec::eq),
            (Best::Floats(a), Best::Floats(b)) => {
                all(a, b, pairs, |a, b| compare_floats(*a, *b).is_eq())
            }
            _ => false,
        }
    }

    /// The best value of a group; NULL when it has none.
    #[allow(clippy::cast_possible_truncation, reason = "the value is of this type")]
    pub(super) fn value(&self, group: usize, data_type: DataType) -> Value {
        let found = match &self.values {
            Best::Ints(v) => {
                let word = v.get(group).copied().flatten();
                word.map(|v| ValueRef::from_word(data_type, v).to_owned())
            }
            Best::Wides(v) => {
                let mantissa = v.get(group).copied().flatten();
                mantissa.map(|m| ValueRef::from_mantissa(data_type, m).to_owned())
            }
            Best::Uints(v) => v.get(group).copied().flatten().map(Value::Uint),
            // Of two zeros either may have been first: show one.
            Best::Floats(v) => v.get(group).copied().flatten().map(|v| match data_type {
                DataType::F32 => Value::Float32(one_spelling(v) as f32),
                _ => Value::Float(one_spelling(v)),
            }),
            Best::Bools(v) => v.get(group).copied().flatten().map(Value::Bool),
            Best::Bytes(v) => {
                let bytes = v.get(group).and_then(Option::as_ref);
                bytes.map(|v| ValueRef::from_bytes(data_type, v).to_owned())
            }
        };
        found.unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.values {
            Best::Ints(v) => v.capacity() * 16,
            Best::Wides(v) => v.capacity() * 32,
            Best::Uints(v) => v.capacity() * 16,
            Best::Floats(v) => v.capacity() * 16,
            Best::Bools(v) => v.capacity(),
            Best::Bytes(v) => {
                v.capacity() * 24 + v.iter().flatten().map(Vec::capacity).sum::<usize>()
            }
        }
    }
}

fn offer<T: Clone>(
    best: &mut [Option<T>],
    group: usize,
    value: Option<&T>,
    wanted: Ordering,
    compare: impl Fn(&T, &T) -> Ordering,
) {
    let (Some(best), Some(value)) = (best.get_mut(group), value) else { return };
    if best.as_ref().is_none_or(|best| compare(value, best) == wanted) {
        *best = Some(value.clone());
    }
}

fn offer_bytes(best: &mut [Option<Vec<u8>>], group: usize, value: &[u8], wanted: Ordering) {
    let Some(best) = best.get_mut(group) else { return };
    if best.as_ref().is_none_or(|best| value.cmp(best.as_slice()) == wanted) {
        let into = best.get_or_insert_with(Vec::new);
        into.clear();
        into.extend_from_slice(value);
    }
}
