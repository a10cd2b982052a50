//! Rows on their way out.

pub(crate) mod copy;
pub(crate) mod fetch;
pub(crate) mod materialised;
pub(crate) mod project;
pub(crate) mod projected;
mod row_batches;

pub(crate) use materialised::Materialised;
pub(crate) use row_batches::{RowBatches, even};

use std::ops::{ControlFlow, Range};

use esker_format::{Batch, Column, ColumnSlice, DataType, ValueRef, Values};

use crate::evaluate::gather::gather;
use crate::evaluate::{Lanes, Selection, Vector};
use crate::{Error, Result, ZONE_ROWS};

/// Takes batches of output rows, and says whether more are wanted.
pub(crate) type Sink<'k> = &'k mut dyn FnMut(Batch) -> Result<ControlFlow<()>>;

/// What is shown of some rows.
#[derive(Debug)]
pub(crate) enum Shown<'a> {
    /// A field, of all rows of the batch.
    Field(ColumnSlice<'a>),
    /// Values, of the selected rows.
    Values(Vector<'a>),
}

/// Columns that vectors are appended to.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    types: Vec<DataType>,
    full: Vec<Batch>,
    open: Batch,
    rows: usize,
    bytes: usize,
}

impl Output {
    pub(crate) fn new(types: Vec<DataType>) -> Self {
        let open = empty(&types);
        Self { types, full: Vec::new(), open, rows: 0, bytes: 0 }
    }

    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// About how many bytes of memory the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the selected rows. Batches are cut as [`Output::append`] does.
    pub(crate) fn append(&mut self, shown: &[Shown<'_>], selection: Selection<'_>) -> Result<()> {
        let (mut start, rows) = (0, selection.len());
        while start < rows {
            let room = ZONE_ROWS - self.rows % ZONE_ROWS;
            let end = rows.min(start + room);
            for (column, shown) in self.open.columns.iter_mut().zip(shown) {
                self.bytes += append_shown(column, shown, selection, start..end)?;
            }
            self.rows += end - start;
            if self.rows.is_multiple_of(ZONE_ROWS) {
                self.full.push(std::mem::replace(&mut self.open, empty(&self.types)));
            }
            start = end;
        }
        Ok(())
    }

    /// Appends a row, value by value.
    pub(crate) fn push_row<'v>(
        &mut self,
        values: impl Iterator<Item = Result<ValueRef<'v>>>,
    ) -> Result<()> {
        for (column, value) in self.open.columns.iter_mut().zip(values) {
            let value = value?;
            self.bytes += match value.as_bytes() {
                Some(bytes) => bytes.len() + 4,
                None => column.data_type.width().unwrap_or(8),
            };
            column.push(value)?;
        }
        self.rows += 1;
        if self.rows.is_multiple_of(ZONE_ROWS) {
            self.full.push(std::mem::replace(&mut self.open, empty(&self.types)));
        }
        Ok(())
    }

    /// The rows as batches of [`ZONE_ROWS`] rows, but for the last; none is empty.
    pub(crate) fn into_batches(mut self) -> Vec<Batch> {
        if !self.rows.is_multiple_of(ZONE_ROWS) {
            self.full.push(self.open);
        }
        self.full
    }
}

fn empty(types: &[DataType]) -> Batch {
    Batch { columns: types.iter().map(|t| Column::empty(*t)).collect() }
}

/// Appends those of the selected rows that lie at `range` in the selection, and returns about how
/// many bytes they take.
fn append_shown(
    column: &mut Column,
    shown: &Shown<'_>,
    selection: Selection<'_>,
    range: Range<usize>,
) -> Result<usize> {
    let field = match shown {
        Shown::Values(vector) => return append(column, vector, range.start, range.end),
        Shown::Field(field) => field,
    };
    // The rest of a batch that did not fit.
    let rest: Vec<u32>;
    let now = match selection {
        Selection::Rows(rows) => Selection::Rows(rows.get(range.clone()).unwrap_or_default()),
        Selection::All(_) if range.start > 0 => {
            rest = range.clone().map(|row| selection.row(row)).collect();
            Selection::Rows(&rest)
        }
        Selection::All(_) => Selection::All(range.end),
    };
    let heap = |column: &Column| match &column.values {
        Values::Variable(v) => v.heap.len() + 4 * v.len(),
        values => values.len() * column.data_type.width().unwrap_or(8),
    };
    let before = heap(column);
    if copy::append(column, field, now)? {
        return Ok(heap(column) - before);
    }
    append(column, &gather(field, now), 0, range.len())
}

/// Appends rows `start..end` of a vector and returns about how many bytes they take.
#[allow(clippy::cast_possible_truncation, reason = "lanes hold what the column's type can")]
fn append(column: &mut Column, vector: &Vector<'_>, start: usize, end: usize) -> Result<usize> {
    let nulls = vector.nulls.as_ref().and_then(|nulls| nulls.get(start..end));
    let (before, range) = (column.len(), (start, end));
    match (&mut column.values, &vector.lanes) {
        (Values::I64(to), Lanes::Ints(v)) => to.extend_from_slice(part(v, start, end)),
        (Values::I128(to), Lanes::Wides(v)) => to.extend_from_slice(part(v, start, end)),
        (Values::I32(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as i32),
        (Values::I16(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as i16),
        (Values::I8(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as i8),
        (Values::U32(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as u32),
        (Values::U16(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as u16),
        (Values::U8(to), Lanes::Ints(v)) => extend(to, v, range, |v| v as u8),
        (Values::U8(to), Lanes::Bools(v)) => extend(to, v, range, u8::from),
        (Values::U64(to), Lanes::Uints(v)) => to.extend_from_slice(part(v, start, end)),
        (Values::F64(to), Lanes::Floats(v)) => to.extend_from_slice(part(v, start, end)),
        (Values::F32(to), Lanes::Floats(v)) => extend(to, v, range, |v| v as f32),
        (Values::Variable(to), Lanes::Bytes(v)) => {
            let heap = to.heap.len();
            for bytes in part(v, start, end) {
                if !to.push(bytes) {
                    return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
                }
            }
            let (added, rows) = (to.heap.len() - heap, end - start);
            mark(column, nulls, before, rows);
            return Ok(added + rows * 4);
        }
        _ => {
            let (want, found) = (column.data_type, vector.data_type);
            return Err(Error::invalid(format!("expected {want}, found {found}")));
        }
    }
    mark(column, nulls, before, end - start);
    Ok((end - start) * column.data_type.width().unwrap_or(8))
}

fn extend<T: Copy, U>(to: &mut Vec<U>, v: &[T], range: (usize, usize), make: impl Fn(T) -> U) {
    to.extend(part(v, range.0, range.1).iter().map(|v| make(*v)));
}

fn part<T>(values: &[T], start: usize, end: usize) -> &[T] {
    values.get(start..end).unwrap_or_default()
}

/// Notes which of the `rows` rows after the first `before` are NULL.
fn mark(column: &mut Column, nulls: Option<&[bool]>, before: usize, rows: usize) {
    if nulls.is_some_and(|nulls| nulls.contains(&true)) {
        column.nulls.get_or_insert_with(|| vec![0; before]);
    }
    if let Some(marks) = &mut column.nulls {
        match nulls {
            Some(nulls) => marks.extend(nulls.iter().map(|null| u8::from(*null))),
            None => marks.resize(before + rows, 0),
        }
    }
}
