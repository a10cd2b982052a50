//! Three-valued logic: NULL is "not known".

use crate::evaluate::{Lanes, Vector};

/// False where a member is false, else NULL where one is NULL, else true.
pub(super) fn all<'a>(members: &[Vector<'a>], len: usize) -> Vector<'a> {
    decide(members, len, false)
}

/// True where a member is true, else NULL where one is NULL, else false.
pub(super) fn any<'a>(members: &[Vector<'a>], len: usize) -> Vector<'a> {
    decide(members, len, true)
}

/// `decisive` where a member is `decisive`, else NULL where one is NULL, else the opposite.
fn decide<'a>(members: &[Vector<'a>], len: usize, decisive: bool) -> Vector<'a> {
    let mut values = vec![!decisive; len];
    let mut nulls = vec![false; len];
    for member in members {
        for (i, (value, null)) in values.iter_mut().zip(&mut nulls).enumerate() {
            if member.is_null(i) {
                *null = true;
            } else if truth(member, i) == decisive {
                *value = decisive;
            }
        }
    }
    nulls.iter_mut().zip(&values).for_each(|(null, value)| *null &= *value != decisive);
    let nulls = nulls.contains(&true).then_some(nulls);
    Vector::bools(values, nulls)
}

pub(super) fn not(operand: Vector<'_>) -> Vector<'_> {
    let values = (0..operand.len()).map(|i| !truth(&operand, i)).collect();
    Vector::bools(values, operand.nulls)
}

/// The bool of a row, whether or not it is NULL.
pub(super) fn truth(vector: &Vector<'_>, i: usize) -> bool {
    match &vector.lanes {
        Lanes::Bools(values) => values.get(i).copied().unwrap_or_default(),
        _ => false,
    }
}
