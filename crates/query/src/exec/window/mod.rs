//! Window functions, over rows or groups that are held in memory; what it does not hold is cut at
//! partitions ([`spill`]).
//!
//! ```text
//! rows ─ what is read later, and what the calls read ─► batches
//!   for each window: keys ─ sort ─► rows by partition and order ([`arrangement`])
//!     for each call: chunks of partitions, in parallel ─► a column in that order
//!       ─► a column of the batches, in the order of the rows
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`key_codes`], [`arrangement`] | rows by partition and order, and who are peers |
//! | [`frames`] | the rows that each row looks at |
//! | [`rank`], [`values`], [`aggregate`] | what is computed of them |
//! | [`tree`] | aggregates of any range of rows |
//!
//! Rows come out in the order in which they come.

mod aggregate;
mod arguments;
mod arrangement;
mod columns;
mod frames;
mod key_codes;
mod rank;
mod tree;
mod values;

use esker_format::{Batch, Column};
use esker_vfs::parallel_map;

use crate::bind::window::{Call, Computes, Key, WindowStage};
use crate::budget::Charge;
use crate::exec::input::Input;
use crate::exec::output::{Materialised, RowBatches};
use crate::exec::scan::ScanCounts;
use crate::exec::showing::show;
use crate::exec::spill;
use crate::filter::CodeTables;
use crate::{ErrorKind, Options, Result};
use arrangement::{Arrangement, Chunk};
pub(super) use columns::vector;
use frames::Frames;

/// What a call takes for each row of a chunk: frames, sums, places.
const CALL_BYTES: usize = 64;

/// Computes the window functions of a stage: in memory, or, where the budget does not allow that
/// and all of them have the same partitions, in temporary files.
///
/// # Errors
/// `OverBudget` with the number of bytes needed where neither holds the rows, `OutOfRange` when a
/// value does not fit its type; when the query is to end.
pub(super) fn run<'o>(
    input: Input<'_>,
    stage: &WindowStage,
    options: &'o Options,
) -> Result<(Input<'o>, ScanCounts)> {
    let source = match &input {
        Input::Source(source) => Some(*source),
        // Groups go with what they hold.
        Input::Memory(..) | Input::Spilled(..) => None,
    };
    let spilled = (source, stage.partition(), &options.temporary);
    match (in_memory(input, stage, options), spilled) {
        (Err(e), (Some(source), Some(partition), Some(files)))
            if e.kind() == ErrorKind::OverBudget =>
        {
            let (rows, counts) = spill::windows(source, stage, partition, options, files)?;
            Ok((Input::Spilled(rows, files), counts))
        }
        (done, _) => done,
    }
}

fn in_memory<'o>(
    input: Input<'_>,
    stage: &WindowStage,
    options: &'o Options,
) -> Result<(Input<'o>, ScanCounts)> {
    let mut rows = RowBatches::new(options);
    let tables = CodeTables::default();
    let counts = show(input, &stage.rows, &tables, options, &mut |batch| rows.push(batch))?;
    let (batches, charge) = rows.finish_charged()?;
    let (batches, charge) = with_calls(batches, charge, stage, options)?;
    Ok((Input::Memory(Materialised::new(&stage.types(), batches)?, charge), counts))
}

/// The rows of full batches with the values of the calls behind what is kept of them.
pub(super) fn with_calls<'o>(
    mut batches: Vec<Batch>,
    mut charge: Charge<'o>,
    stage: &WindowStage,
    options: &Options,
) -> Result<(Vec<Batch>, Charge<'o>)> {
    key_codes::expect_numbers(batches.iter().map(Batch::len).sum())?;
    let mut columns: Vec<Option<Vec<Column>>> = vec![None; stage.calls.len()];
    let mut bytes = charge.bytes();
    while let Some(next) = columns.iter().position(Option::is_none) {
        let Some(first) = stage.calls.get(next) else { break };
        // Calls without an order share the sort of one over the same partitions.
        let of_window = |call: &&Call<usize>| call.partition == first.partition;
        let mut orders = stage.calls.iter().filter(of_window).map(|call| call.order.as_slice());
        let order: &[Key<usize>] = match first.order.as_slice() {
            // default: no call has an order
            [] => orders.find(|order| !order.is_empty()).unwrap_or_default(),
            order => order,
        };
        let arrangement = Arrangement::of(&batches, &first.partition, order, options)?;
        for (call, column) in stage.calls.iter().zip(&mut columns) {
            let is_here =
                call.partition == first.partition && (call.order.is_empty() || call.order == order);
            if !is_here || column.is_some() {
                continue;
            }
            let values = values_of(call, &arrangement, &batches, options)?;
            bytes += values.iter().map(crate::result::column_bytes).sum::<usize>();
            charge.set(bytes)?;
            *column = Some(values);
        }
    }
    for batch in &mut batches {
        batch.columns.truncate(stage.kept);
    }
    for column in columns.into_iter().flatten() {
        batches.iter_mut().zip(column).for_each(|(batch, part)| batch.columns.push(part));
    }
    Ok((batches, charge))
}

/// The values of a call, in the order of the rows: a column for each batch.
fn values_of(
    call: &Call<usize>,
    arrangement: &Arrangement<'_>,
    batches: &[Batch],
    options: &Options,
) -> Result<Vec<Column>> {
    let is_ordered = !call.order.is_empty();
    let columns = arrangement.each_chunk(batches, is_ordered, options, |chunk| {
        let mut charge = options.memory().charge();
        charge.set(chunk.len().saturating_mul(CALL_BYTES))?;
        let column = computed(chunk, call)?;
        charge.set(crate::result::column_bytes(&column))?;
        Ok((column, charge))
    })?;
    let (columns, _charges): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let sources: Vec<&Column> = columns.iter().collect();
    let mut first = 0;
    let mut parts = Vec::with_capacity(batches.len());
    for batch in batches {
        parts.push(arrangement.places.get(first..first + batch.len()).unwrap_or_default());
        first += batch.len();
    }
    let parts = parallel_map(&*options.tasks, &parts, |places| {
        options.expect_time_left()?;
        columns::at(call.data_type, &sources, places, false)
    });
    parts.into_iter().collect()
}

/// The values of a call for the rows of a chunk.
fn computed(chunk: &Chunk<'_>, call: &Call<usize>) -> Result<Column> {
    match &call.function {
        Computes::Shifted(shift) => values::shifted(chunk, shift),
        Computes::Picked(pick) => values::picked(chunk, pick, &Frames::of(chunk, call)?),
        Computes::Aggregate(of, operand) => {
            let frames = Frames::of(chunk, call)?;
            aggregate::column(chunk, call, (of, *operand), &frames)
        }
        counted => rank::column(chunk, counted),
    }
}
