//! Functions of one dictionary column: computed once a distinct value, then looked up by code.

use std::borrow::Cow;

use esker_format::{ColumnSlice, Data, Validity};

use super::compute;
use crate::Result;
use crate::bound::{Bound, Node};
use crate::evaluate::{Lanes, Rows, Selection, Vector};
use crate::meter::Reservation;

/// The expression for the selected rows, where it is a function of a dictionary column alone whose
/// distinct values are fewer than half the rows.
pub(super) fn evaluate_distinct<'a>(
    bound: &'a Bound,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Option<Vector<'a>>> {
    if matches!(bound.node, Node::Field(_) | Node::Literal(_)) || selection.len() < 16 {
        return Ok(None);
    }
    let Some(position) = bound.only_field() else { return Ok(None) };
    let column = rows.column(position)?;
    let Data::Dictionary { codes, dictionary } = column.data else { return Ok(None) };
    if dictionary.len() * 2 > selection.len() {
        return Ok(None);
    }
    let distinct = ColumnSlice {
        data_type: column.data_type,
        len: dictionary.len(),
        validity: Validity::AllValid,
        data: Data::Variable { offsets: dictionary.offsets, start: 0, heap: dictionary.heap },
    };
    let values = Rows::of_column(position, distinct, rows.meter().limits());
    let values = compute(bound, &values, Selection::All(dictionary.len()))?;
    let mut nulls = vec![false; selection.len()];
    let places: Vec<usize> = (0..selection.len())
        .zip(&mut nulls)
        .map(|(i, null)| {
            let row = selection.row(i) as usize;
            let code = codes.get(row) as usize;
            *null = column.is_null(row) || values.is_null(code);
            code
        })
        .collect();
    let nulls = nulls.contains(&true).then_some(nulls);
    let mut room = rows.meter().room("an expression");
    room.take(Lanes::size(values.data_type, places.len()))?;
    let lanes = take(&values.lanes, &places, &mut room)?;
    Ok(Some(Vector::new(values.data_type, lanes, nulls).within(room)))
}

/// The values at some places; nothing or zero past the end.
fn take<'a>(lanes: &Lanes<'a>, places: &[usize], room: &mut Reservation<'a>) -> Result<Lanes<'a>> {
    fn pick<T: Copy + Default>(values: &[T], places: &[usize]) -> Vec<T> {
        places.iter().map(|at| values.get(*at).copied().unwrap_or_default()).collect()
    }
    Ok(match lanes {
        Lanes::Ints(v) => Lanes::Ints(pick(v, places).into()),
        Lanes::Wides(v) => Lanes::Wides(pick(v, places).into()),
        Lanes::Uints(v) => Lanes::Uints(pick(v, places).into()),
        Lanes::Floats(v) => Lanes::Floats(pick(v, places).into()),
        Lanes::Bools(v) => Lanes::Bools(pick(v, places)),
        Lanes::Bytes(v) => {
            let one = |at: &usize| match v.get(*at) {
                Some(Cow::Owned(bytes)) => {
                    room.take(bytes.len())?;
                    Ok(Cow::Owned(bytes.clone()))
                }
                borrowed => Ok(borrowed.cloned().unwrap_or(Cow::Borrowed(&[]))),
            };
            Lanes::Bytes(places.iter().map(one).collect::<Result<_>>()?)
        }
    })
}
