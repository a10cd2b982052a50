//! Columns in the order of the rows, and in that of a window.

use esker_format::{Batch, Column, DataType};

use crate::evaluate::gather::gather;
use crate::evaluate::{Selection, Vector};
use crate::exec::output::copy::{collect_column, unpacked};
use crate::exec::output::materialised::slice;
use crate::{Error, Result, ZONE_ROWS};

/// The values of a column of a batch.
///
/// # Errors
/// `InvalidQuery` where there is no such column.
pub(crate) fn vector(batch: &Batch, column: usize) -> Result<Vector<'_>> {
    let column = batch.columns.get(column).ok_or_else(|| missing(column))?;
    vector_of(column)
}

/// All values of a column.
pub(super) fn vector_of(column: &Column) -> Result<Vector<'_>> {
    let rows = slice(column, 0..column.len());
    let rows = rows.ok_or_else(|| Error::invalid("a column with fewer values than rows"))?;
    Ok(gather(&rows, Selection::All(column.len())))
}

fn missing(column: usize) -> Error {
    Error::invalid(format!("no column {column} of a window"))
}

/// The values of a column in the order of some rows, by their numbers.
///
/// # Errors
/// `OutOfRange` when texts would pass 4 GiB.
pub(super) fn in_order(batches: &[Batch], column: usize, rows: &[u32]) -> Result<Column> {
    let sources: Option<Vec<&Column>> = batches.iter().map(|b| b.columns.get(column)).collect();
    let sources = sources.ok_or_else(|| missing(column))?;
    let data_type = sources.first().map_or(DataType::Bool, |source| source.data_type);
    let place = |row: &u32| (*row as usize / ZONE_ROWS, *row as usize % ZONE_ROWS);
    collect_column(data_type, &sources, rows.iter().map(place), false)
}

/// The values at some places, each the number of a source and that of a row in it; NULL where a
/// place is in none.
///
/// # Errors
/// As [`in_order`].
pub(super) fn at(
    data_type: DataType,
    sources: &[&Column],
    places: &[(u32, u32)],
    has_missing: bool,
) -> Result<Column> {
    collect_column(data_type, sources, places.iter().map(unpacked), has_missing)
}
