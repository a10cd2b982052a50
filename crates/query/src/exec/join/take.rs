//! Columns of rows that lie anywhere.

use std::ops::ControlFlow;

use esker_format::{Batch, Column, DataType, Schema, Values};

use super::pairs::{Half, Pairs};
use super::{Input, JoinPlan, NONE};
use crate::budget::Charge;
use crate::evaluate::Selection;
use crate::exec::output::copy::collect_column;
use crate::exec::output::fetch::first_batch;
use crate::exec::output::{Materialised, Output, Shown};
use crate::exec::scan::{Morsel, in_waves};
use crate::exec::sort::Location;
use crate::{Error, Options, Result, Source, ZONE_ROWS};

/// Columns of numbered rows, in batches of [`ZONE_ROWS`] but for the last.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    types: Vec<DataType>,
    batches: Vec<Batch>,
}

/// The wanted columns of pairs, as rows in memory.
pub(super) fn rows<'b>(
    plan: &JoinPlan<'_>,
    pairs: Pairs<'b>,
    schema: Schema,
    options: &'b Options,
) -> Result<(Materialised, Charge<'b>)> {
    let len = pairs.len();
    let mut charge = options.memory().charge();
    if schema.fields().is_empty() {
        // Rows of nothing are still counted.
        charge.set(len)?;
        let batch = |start: usize| {
            let values = Values::U8(vec![0; ZONE_ROWS.min(len - start)]);
            Batch { columns: vec![Column { data_type: DataType::Bool, values, nulls: None }] }
        };
        let batches = (0..len).step_by(ZONE_ROWS).map(batch).collect();
        return Ok((Materialised::new(&[], batches)?, charge));
    }
    let left = half(&plan.left, &pairs.left, options)?;
    let right = half(&plan.right, &pairs.right, options)?;
    let batches: Vec<Batch> = left
        .0
        .into_iter()
        .zip(right.0)
        .map(|(mut left, right)| {
            left.columns.extend(right.columns);
            left
        })
        .collect();
    drop((left.1, right.1));
    charge.set(batches.iter().map(batch_bytes).sum())?;
    Ok((Materialised::of(schema, batches), charge))
}

/// The wanted columns of one side of pairs, one row a pair.
fn half<'b>(
    input: &Input<'_>,
    half: &Half,
    options: &'b Options,
) -> Result<(Vec<Batch>, Charge<'b>)> {
    let len = half.numbers.len();
    let mut charge = options.memory().charge();
    if input.columns.is_empty() {
        return Ok((vec![Batch::default(); len.div_ceil(ZONE_ROWS)], charge));
    }
    let fetched = Fetched::new(input.source, &half.locations, &input.columns, options)?;
    let fetched_bytes = fetched.bytes();
    charge.set(fetched_bytes)?;
    if half.is_whole() {
        return Ok((fetched.batches, charge));
    }
    let chunks: Vec<Morsel> = chunks(len);
    let mut batches = Vec::with_capacity(chunks.len());
    let mut bytes = fetched_bytes;
    let job =
        |chunk: &Morsel| fetched.take(half.numbers.get(chunk.rows.clone()).unwrap_or_default());
    let few = options.tasks.parallelism().max(1) * 8;
    in_waves(options, &chunks, few, job, |batch| {
        bytes += batch_bytes(&batch);
        charge.set(bytes)?;
        batches.push(batch);
        Ok(ControlFlow::Continue(()))
    })?;
    charge.set(bytes - fetched_bytes)?;
    Ok((batches, charge))
}

/// Rows `0..len`, [`ZONE_ROWS`] at a time.
fn chunks(len: usize) -> Vec<Morsel> {
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
        let offset = u32::try_from(rows.start).unwrap_or(u32::MAX);
        let picked: Vec<u32> = now.iter().map(|l| l.row.saturating_sub(offset)).collect();
        let shown = |position: &usize| part.column(*position, rows.clone()).map(Shown::Field);
        let shown = positions.iter().map(shown).collect::<Result<Vec<_>>>()?;
        output.append(&shown, Selection::Rows(&picked))?;
        rest = later;
    }
    Ok(())
}

/// About how many bytes of memory a batch takes.
fn batch_bytes(batch: &Batch) -> usize {
    let column = |column: &Column| {
        let values = match &column.values {
            Values::Variable(v) => v.heap.capacity() + v.offsets.capacity() * 4,
            values => values.len() * column.data_type.width().unwrap_or(8),
        };
        values + column.nulls.as_ref().map_or(0, Vec::capacity)
    };
    batch.columns.iter().map(column).sum()
}
