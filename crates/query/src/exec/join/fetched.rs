//! Columns of rows that lie anywhere.

use std::ops::ControlFlow;

use esker_format::{Batch, Column, DataType, Room, Values};

use super::NONE;
use crate::evaluate::Selection;
use crate::exec::output::copy::collect_column;
use crate::exec::output::fetch::{first_batch, span_of};
use crate::exec::output::{Output, Shown};
use crate::exec::scan::{Morsel, in_waves};
use crate::exec::sort::Location;
use crate::{Error, Options, Result, Source, ZONE_ROWS};

/// Columns of numbered rows, in batches of [`ZONE_ROWS`] but for the last.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    types: Vec<DataType>,
    batches: Vec<Batch>,
}

/// Rows `0..len`, [`ZONE_ROWS`] at a time.
pub(super) fn chunks(len: usize) -> Vec<Morsel> {
    let chunk = |start| Morsel { part: 0, rows: start..len.min(start + ZONE_ROWS) };
    (0..len).step_by(ZONE_ROWS).map(chunk).collect()
}

impl Fetched {
    /// Reads columns of the rows at some locations, which ascend.
    pub(super) fn new(
        source: &dyn Source,
        locations: &[Location],
        positions: &[usize],
        options: &Options,
    ) -> Result<Self> {
        let fields = source.schema().fields();
        let types: Vec<DataType> =
            positions.iter().filter_map(|p| fields.get(*p)).map(|f| f.data_type).collect();
        if types.len() != positions.len() {
            return Err(Error::invalid("a join asks for a field that is not there"));
        }
        if positions.is_empty() {
            return Ok(Self::default());
        }
        let mut charge = options.memory().charge();
        let mut batches = Vec::with_capacity(locations.len().div_ceil(ZONE_ROWS));
        let mut bytes = 0;
        let job = |chunk: &Morsel| {
            let wanted = locations.get(chunk.rows.clone()).unwrap_or_default();
            let mut output = Output::new(types.clone());
            read(source, wanted, positions, &mut output)?;
            Ok(output)
        };
        let few = options.tasks.parallelism().max(1) * 8;
        in_waves(options, &chunks(locations.len()), few, job, |output| {
            bytes += output.bytes();
            charge.set(bytes)?;
            batches.extend(output.into_batches());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self { types, batches })
    }

    pub(super) fn into_batches(self) -> Vec<Batch> {
        self.batches
    }

    pub(super) fn bytes(&self) -> usize {
        self.batches.iter().map(batch_bytes).sum()
    }

    /// The columns of some rows by their numbers; NULLs for `NONE`.
    pub(super) fn take(&self, numbers: &[u32]) -> Result<Batch> {
        let columns = self.types.iter().enumerate();
        let columns =
            columns.map(|(position, data_type)| self.column(position, *data_type, numbers));
        Ok(Batch { columns: columns.collect::<Result<_>>()? })
    }

    fn column(&self, position: usize, data_type: DataType, numbers: &[u32]) -> Result<Column> {
        let columns: Vec<&Column> =
            self.batches.iter().filter_map(|batch| batch.columns.get(position)).collect();
        let place = |number: &u32| (*number as usize / ZONE_ROWS, *number as usize % ZONE_ROWS);
        let places = numbers.iter().map(place);
        collect_column(data_type, &columns, places, numbers.contains(&NONE))
    }
}

/// Appends the columns of the rows at some locations, which ascend.
fn read(
    source: &dyn Source,
    wanted: &[Location],
    positions: &[usize],
    output: &mut Output,
) -> Result<()> {
    let mut rest = wanted;
    while let Some((part, rows, count)) = first_batch(source, rest.iter()) {
        let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        let rows = span_of(now.iter().map(|l| l.row)).unwrap_or(rows);
        let offset = u32::try_from(rows.start).unwrap_or(u32::MAX);
        let picked: Vec<u32> = now.iter().map(|l| l.row.saturating_sub(offset)).collect();
        let room = Room::default();
        let shown = |at: &usize| part.column(*at, rows.clone(), &room).map(Shown::Field);
        let shown = positions.iter().map(shown).collect::<Result<Vec<_>>>()?;
        output.append(&shown, Selection::Rows(&picked))?;
        rest = later;
    }
    Ok(())
}

/// About how many bytes of memory a batch takes.
pub(super) fn batch_bytes(batch: &Batch) -> usize {
    let column = |column: &Column| {
        let values = match &column.values {
            Values::Variable(v) => v.heap.capacity() + v.offsets.capacity() * 4,
            values => values.len() * column.data_type.width().unwrap_or(8),
        };
        values + column.nulls.as_ref().map_or(0, Vec::capacity)
    };
    batch.columns.iter().map(column).sum()
}
