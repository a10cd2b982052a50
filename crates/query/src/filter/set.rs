//! Membership in a set of numbers: a few are compared with, keys close together are looked up in
//! a table of bools, others are searched for.
#![allow(clippy::cast_possible_truncation, reason = "the span is checked first")]

use esker_format::Data;

use super::range::Whole;
use crate::evaluate::Mask;
use crate::predicate::{Key, float_key};

/// The widest table of bools.
const SPAN_MAX: Key = 4_096;

/// Removes the rows whose key is not in `keys` (sorted), or with `negated` those whose is.
pub(super) fn keep(data: Data<'_>, keys: &[Key], negated: bool, mask: &mut Mask) {
    match data {
        Data::I128(v) => whole(v, keys, negated, mask),
        Data::F32(v) => floats(v, keys, negated, mask),
        Data::F64(v) => floats(v, keys, negated, mask),
        data => with_numbers!(data, v => whole(v, keys, negated, mask), _ => mask.clear()),
    }
}

fn whole<T: Whole>(values: &[T], keys: &[Key], negated: bool, mask: &mut Mask) {
    let possible = |key: &&Key| (T::LEAST..=T::GREATEST).contains(*key);
    let wanted: Vec<T> = keys.iter().filter(possible).map(|key| T::from_key(*key)).collect();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        if !negated {
            mask.clear();
        }
        return;
    };
    if let [a, b] = wanted.as_slice() {
        return mask.retain(values, |v| ((v == *a) | (v == *b)) != negated);
    }
    if let [a, b, c] = wanted.as_slice() {
        return mask.retain(values, |v| ((v == *a) | (v == *b) | (v == *c)) != negated);
    }
    let span = last.key().saturating_sub(first.key());
    if span < SPAN_MAX {
        let base = first.key();
        let mut table = vec![negated; span as usize + 1];
        for key in &wanted {
            if let Some(entry) = table.get_mut((key.key() - base) as usize) {
                *entry = !negated;
            }
        }
        let table = table.as_slice();
        let look_up = |v: T| {
            let at = usize::try_from(v.key().saturating_sub(base)).unwrap_or(usize::MAX);
            table.get(at).copied().unwrap_or(negated)
        };
        return mask.retain(values, look_up);
    }
    mask.retain(values, |v| wanted.binary_search(&v).is_ok() != negated);
}

fn floats<T: Copy + Into<f64>>(values: &[T], keys: &[Key], negated: bool, mask: &mut Mask) {
    mask.retain(values, |v| keys.binary_search(&float_key(v.into())).is_ok() != negated);
}
