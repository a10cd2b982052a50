//! Arithmetic of decimals whose mantissas are words: no row needs a check.
//!
//! One pass over each side finds how many bits its mantissas have. If no sum or product of so
//! many bits can have more digits than the type of the result, nothing overflows, and the second
//! pass only computes. All else, NULLs with a large number below them too, is left to the
//! arithmetic that checks each row.

use std::borrow::Cow;

use esker_format::DataType;
use esker_format::decimal::limit;

use crate::evaluate::{Lanes, Vector};
use crate::model::Operator;

/// One side: its values, and what they are multiplied by to have the scale of the result.
pub(super) struct Side<'v, 'a> {
    pub(super) vector: &'v Vector<'a>,
    pub(super) unit: i128,
}

/// The values of a sum, difference or product; none where a row might need a check.
pub(super) fn compute<'r>(
    operator: Operator,
    (data_type, digits): (DataType, u8),
    left: &Side<'_, '_>,
    right: &Side<'_, '_>,
) -> Option<Lanes<'r>> {
    let (a, b) = (words(left.vector)?, words(right.vector)?);
    let (most_a, most_b) = (most(&a, left.unit)?, most(&b, right.unit)?);
    let most = match operator {
        Operator::Add | Operator::Subtract => most_a.checked_add(most_b)?,
        Operator::Multiply => most_a.checked_mul(most_b)?,
        _ => return None,
    };
    if most >= limit(digits) {
        return None;
    }
    let pairs = a.iter().copied().zip(b.iter().copied());
    if i64::try_from(most).is_err() {
        // Only products of units of 1 leave out the units.
        let is_product = operator == Operator::Multiply && data_type.is_wide();
        let product = |(a, b)| i128::from(a) * i128::from(b);
        return is_product.then(|| Lanes::Wides(pairs.map(product).collect()));
    }
    let (unit_a, unit_b) = (i64::try_from(left.unit).ok()?, i64::try_from(right.unit).ok()?);
    // What lies below NULLs is within the bounds, too: nothing wraps.
    Some(match operator {
        Operator::Add => lanes(data_type, pairs.map(|(a, b)| a * unit_a + b * unit_b)),
        Operator::Subtract => lanes(data_type, pairs.map(|(a, b)| a * unit_a - b * unit_b)),
        _ => lanes(data_type, pairs.map(|(a, b)| a * b)),
    })
}

fn lanes<'r>(data_type: DataType, values: impl Iterator<Item = i64>) -> Lanes<'r> {
    match data_type.is_wide() {
        true => Lanes::Wides(values.map(i128::from).collect()),
        false => Lanes::Ints(values.collect()),
    }
}

/// Mantissas as words, where all of them are.
#[allow(clippy::cast_possible_truncation, reason = "a value that is cut is found and refused")]
fn words<'v>(vector: &'v Vector<'_>) -> Option<Cow<'v, [i64]>> {
    match &vector.lanes {
        Lanes::Ints(values) => Some(Cow::Borrowed(values)),
        Lanes::Wides(values) => {
            let words: Vec<i64> = values.iter().map(|v| *v as i64).collect();
            let pairs = words.iter().zip(values.iter());
            let is_cut = pairs.fold(false, |is_cut, (word, v)| is_cut | (i128::from(*word) != *v));
            (!is_cut).then_some(Cow::Owned(words))
        }
        _ => None,
    }
}

/// What no value is above in size, times the unit.
fn most(words: &[i64], unit: i128) -> Option<i128> {
    // Of a negative number, the bits of its complement: one less than its size.
    let bits = words.iter().fold(0, |bits, v| bits | (v ^ (v >> 63)));
    (1i128 << (64 - bits.leading_zeros())).checked_mul(unit)
}
