//! The output columns of a projection, of some rows.

use esker_format::DataType;

use super::{Output, Shown};
use crate::Limits;
use crate::Result;
use crate::bind::Projection;
use crate::bound::{Bound, Node};
use crate::evaluate::{Rows, Selection, evaluate};
use crate::meter::{Meter, Reservation};

/// The types of the columns.
pub(crate) fn types(projection: &Projection) -> Vec<DataType> {
    projection.outputs.iter().map(Bound::data_type).collect()
}

/// The output columns for some rows of a batch: fields as they are stored.
fn show<'a>(
    projection: &'a Projection,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vec<Shown<'a>>> {
    let shown = |output: &'a Bound| match output.node {
        Node::Field(position) => rows.column(position).map(Shown::Field),
        _ => evaluate(output, rows, selection).map(Shown::Values),
    };
    projection.outputs.iter().map(shown).collect()
}

/// Appends the output columns for some rows of a batch. The room is what computed ones take of it.
pub(crate) fn append<'a>(
    output: &mut Output,
    projection: &'a Projection,
    rows: &Rows<'a>,
    selection: Selection<'_>,
    room: &mut Reservation<'_>,
) -> Result<()> {
    let shown = show(projection, rows, selection)?;
    for shown in &shown {
        room.take(match shown {
            Shown::Field(_) => 0,
            Shown::Values(vector) => vector.made_bytes(),
        })?;
    }
    output.append(&shown, selection)
}

/// Room for what expressions make.
pub(crate) fn expression_room(limits: &Limits) -> Reservation<'_> {
    Meter::new(limits).room("an expression")
}
