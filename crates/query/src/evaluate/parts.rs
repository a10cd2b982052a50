//! Some of the selected rows at a time, where memory does not hold what is made of all of them.

use esker_format::DataType;

use super::compute;
use crate::bound::Bound;
use crate::evaluate::{Lanes, Rows, Selection, Vector};
use crate::{ErrorKind, Result};

/// Computes an expression for half of the rows at a time, or for as few as memory allows.
pub(super) fn evaluate<'a>(
    bound: &'a Bound,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    let len = selection.len();
    let (mut start, mut step) = (0, len.div_ceil(2));
    let mut whole: Option<Vector<'a>> = None;
    while start < len {
        let end = len.min(start + step);
        let some: Vec<u32> = (start..end).map(|i| selection.row(i)).collect();
        match compute(bound, rows, Selection::Rows(&some)) {
            Err(e) if e.kind() == ErrorKind::OverBudget && step > 1 => step = step.div_ceil(2),
            computed => {
                let computed = computed?;
                whole = Some(match whole {
                    None => computed,
                    Some(whole) => append(whole, computed),
                });
                start = end;
            }
        }
    }
    Ok(whole.unwrap_or_else(|| Vector::nulls(bound.data_type(), 0)))
}

/// The rows of a vector, and then those of another one of the same type.
fn append<'a>(mut whole: Vector<'a>, mut more: Vector<'a>) -> Vector<'a> {
    let (before, added): (usize, usize) = (whole.len(), more.len());
    match (&mut whole.lanes, &mut more.lanes) {
        (Lanes::Ints(a), Lanes::Ints(b)) => a.to_mut().extend_from_slice(b),
        (Lanes::Wides(a), Lanes::Wides(b)) => a.to_mut().extend_from_slice(b),
        (Lanes::Uints(a), Lanes::Uints(b)) => a.to_mut().extend_from_slice(b),
        (Lanes::Floats(a), Lanes::Floats(b)) => a.to_mut().extend_from_slice(b),
        (Lanes::Bools(a), Lanes::Bools(b)) => a.append(b),
        (Lanes::Bytes(a), Lanes::Bytes(b)) => a.append(b),
        _ => debug_assert_eq!(whole.data_type, DataType::Text, "one expression, two types"),
    }
    if whole.nulls.is_some() || more.nulls.is_some() {
        let mut nulls = whole.nulls.take().unwrap_or_else(|| vec![false; before]);
        nulls.extend(more.nulls.take().unwrap_or_else(|| vec![false; added]));
        whole.nulls = Some(nulls);
    }
    match more.take_room() {
        Some(room) => whole.within(room),
        None => whole,
    }
}
