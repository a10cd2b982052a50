//! The last step: which rows are shown, in which order, and what of them.
//!
//! Without an order, rows are shown as they are met and a limit stops the scan. With one, a first
//! pass sorts keys and locations only; the output columns are read in a second pass, for the rows
//! that are shown and no others.

use std::ops::ControlFlow;

use esker_format::{Batch, Column, DataType, ValueRef};

use super::budget::{Budget, Charge};
use super::evaluate::evaluate;
use super::mask::Mask;
use super::output::Output;
use super::row_order;
use super::rows::Rows;
use super::scan::{
    MORSEL_ROWS, Morsel, Progress, Scan, ScanCounts, WAVE_MAX, in_growing_waves, in_waves,
};
use super::sorter::{Location, Sorter, encode};
use super::vector::{Picked, Selection, Vector};
use super::walk::Walk;
use crate::bind::{Bound, Projection};
use crate::options::Options;
use crate::{Error, ErrorKind, Result, ZONE_ROWS};

/// Rows of an answer that may be found after a look at few.
const FEW_WANTED: usize = 256;

/// Takes batches of output rows, and says whether more are wanted.
pub(crate) type Sink<'k> = &'k mut dyn FnMut(Batch) -> Result<ControlFlow<()>>;

/// Runs the projection of a scan.
pub(crate) fn run<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    options: &Options,
    budget: &Budget,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    if projection.limit == Some(0) {
        return Ok(ScanCounts::default());
    }
    if projection.order.is_empty() {
        in_scan_order(scan, projection, options, budget, sink)
    } else {
        in_key_order(scan, projection, options, budget, sink)
    }
}

fn types(projection: &Projection) -> Vec<DataType> {
    projection.outputs.iter().map(Bound::data_type).collect()
}

/// The output columns for some rows of a batch.
fn show<'a>(
    projection: &'a Projection,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vec<Vector<'a>>> {
    projection.outputs.iter().map(|output| evaluate(output, rows, selection)).collect()
}

fn in_scan_order<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    options: &Options,
    budget: &Budget,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let wanted = projection.rows_wanted();
    let mut skip = usize::try_from(projection.offset).unwrap_or(usize::MAX);
    let mut left = wanted.saturating_sub(skip);
    let mut counts = ScanCounts::default();
    let morsels = scan.morsels(|_| true);
    let wave_max = options.tasks.parallelism().max(1) * 4;
    let job = |morsel: &Morsel| Ok(shown_of(scan, projection, morsel, wanted, budget));
    // What few rows answer takes less time than another thread takes to start.
    let first = if wanted <= FEW_WANTED { 1 } else { options.tasks.parallelism().max(1) };
    in_growing_waves(options, &morsels, (first, wave_max), job, |shown| {
        counts += shown.counts;
        for batch in shown.output.into_batches() {
            let (from, len) = (skip.min(batch.len()), batch.len());
            let to = len.min(from.saturating_add(left));
            skip -= from;
            left -= to - from;
            if from < to && sink(cut(batch, from, to)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match shown.error {
            _ if left == 0 => Ok(ControlFlow::Break(())),
            Some(error) => Err(error),
            None => Ok(ControlFlow::Continue(())),
        }
    })?;
    Ok(counts)
}

/// The output rows of a morsel up to the first that fails, and its failure.
struct Shown<'b> {
    output: Output,
    error: Option<Error>,
    counts: ScanCounts,
    _charge: Charge<'b>,
}

/// Shows at most `wanted` rows of a morsel.
///
/// When a batch fails, it is gone through again row by row: a limit may be reached before the row
/// that fails, and then the query must answer, however rows fall into batches.
fn shown_of<'a, 'b>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    morsel: &Morsel,
    wanted: usize,
    budget: &'b Budget,
) -> Shown<'b> {
    let mut output = Output::new(types(projection));
    let mut charge = budget.charge();
    let mut progress = if wanted <= FEW_WANTED { Progress::growing() } else { Progress::default() };
    let mut visit = |rows: &Rows<'a>, mut mask: Mask| {
        mask.truncate(wanted.saturating_sub(output.len()));
        let picked = Picked::of(&mask);
        let selection = picked.selection();
        output.append(&show(projection, rows, selection)?, selection.len())?;
        charge.set(output.bytes())?;
        let is_enough = output.len() >= wanted;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let mut outcome = scan.run_from(morsel, ZONE_ROWS, &mut progress, &mut visit);
    let is_computed = outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::OutOfRange);
    if is_computed && wanted < usize::MAX {
        let again = Morsel { part: morsel.part, rows: progress.next..morsel.rows.end };
        outcome = scan.run_from(&again, 1, &mut progress, &mut visit);
    }
    Shown { output, error: outcome.err(), counts: progress.counts, _charge: charge }
}

/// Rows `from..to` of a batch.
fn cut(batch: Batch, from: usize, to: usize) -> Result<Batch> {
    if from == 0 && to == batch.len() {
        return Ok(batch);
    }
    let mut columns = Vec::with_capacity(batch.columns.len());
    for column in &batch.columns {
        let mut short = Column::empty(column.data_type);
        for row in from..to {
            short.push(column.value(row))?;
        }
        columns.push(short);
    }
    Ok(Batch { columns })
}

fn in_key_order<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    options: &Options,
    budget: &Budget,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let wanted = projection.rows_wanted();
    let mut sorter = Sorter::new(wanted);
    let mut held = budget.charge();
    let mut counts = ScanCounts::default();
    let part_count = scan.source.part_count();
    let walks = (0..part_count).map(|part| Walk::choose(scan, projection, part, options));
    let walks = walks.collect::<Result<Vec<_>>>()?;
    let walk_of = |part: usize| walks.get(part).and_then(Option::as_ref);
    let in_row_order = |part| row_order::is_order_of(scan, projection, part);
    let job = |morsel: &Morsel| {
        let (mut sorter, mut charge) = (Sorter::new(wanted), budget.charge());
        let part = location_part(morsel)?;
        let walked = match walk_of(morsel.part) {
            Some(walk) => walk.rows(scan, projection)?,
            None if in_row_order(morsel.part) => row_order::rows(scan, projection, morsel.part)?,
            None => None,
        };
        if let Some(walked) = walked {
            charge.set(walked.sorter.bytes())?;
            return Ok((walked.sorter, walked.counts, charge));
        }
        let counts = scan.run(morsel, |rows, mask| {
            add_keys(&mut sorter, projection, rows, &mask.rows(), part)?;
            charge.set(sorter.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        sorter.prune();
        Ok((sorter, counts, charge))
    };
    let wave_max = if wanted <= ZONE_ROWS { WAVE_MAX } else { options.tasks.parallelism() * 4 };
    let mut morsels = Vec::new();
    for part in 0..part_count {
        match walk_of(part) {
            None if !in_row_order(part) => morsels.extend(scan.morsels(|of| of == part)),
            _ => morsels.push(Morsel { part, rows: 0..scan.source.part(part).row_count() }),
        }
    }
    in_waves(options, &morsels, wave_max, job, |(other, more, _charge)| {
        counts += more;
        sorter.merge(&other);
        held.set(sorter.bytes())?;
        Ok(ControlFlow::Continue(()))
    })?;
    let skipped = usize::try_from(projection.offset).unwrap_or(usize::MAX);
    let locations = sorter.finish(skipped, options)?;
    drop(held);
    fetch(scan, projection, options, budget, &locations, sink)?;
    Ok(counts)
}

fn location_part(morsel: &Morsel) -> Result<u32> {
    // Locations are two words of 32 bits: a part holds at most 4 Mi rows by design.
    let fits = u32::try_from(morsel.rows.end).is_ok();
    u32::try_from(morsel.part).ok().filter(|_| fits).ok_or_else(|| {
        Error::new(ErrorKind::OverBudget, "a part with more than 2^32 rows cannot be ordered")
    })
}

#[allow(clippy::cast_possible_truncation, reason = "location_part has checked the row numbers")]
/// Adds rows to a sorter, but for those that the order has left behind; returns how many.
pub(super) fn add_keys<'a>(
    sorter: &mut Sorter,
    projection: &'a Projection,
    rows: &Rows<'a>,
    picked: &[u32],
    part: u32,
) -> Result<usize> {
    let selection = Selection::Rows(picked);
    let vectors = projection.order.iter().map(|key| evaluate(&key.bound, rows, selection));
    let vectors = vectors.collect::<Result<Vec<_>>>()?;
    let mut bytes = Vec::new();
    let mut added = 0;
    for (i, row) in picked.iter().enumerate() {
        bytes.clear();
        for (key, vector) in projection.order.iter().zip(&vectors) {
            encode(&mut bytes, key, vector, i);
        }
        if projection.after.as_ref().is_none_or(|after| after.is_before(&bytes)) {
            sorter.push(&bytes, Location { part, row: rows.start() as u32 + row });
            added += 1;
        }
    }
    Ok(added)
}

/// Reads the output columns of rows that lie anywhere, and gives them in the order asked for.
fn fetch<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    options: &Options,
    budget: &Budget,
    locations: &[Location],
    sink: Sink<'_>,
) -> Result<()> {
    // By location, so that each batch is read once; `places` leads back to the order.
    let mut by_location: Vec<(Location, u32)> = locations.iter().copied().zip(0u32..).collect();
    by_location.sort_unstable();
    let runs = runs(&by_location);
    let mut charge = budget.charge();
    charge.set(by_location.len() * 24)?;
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = by_location.len() * 24;
    let mut at: Vec<(u32, u32)> = vec![(0, 0); locations.len()];
    let mut next = 0u32;
    let morsels: Vec<_> = runs.iter().map(|run| Morsel { part: 0, rows: run.clone() }).collect();
    let job = |run: &Morsel| {
        let wanted = by_location.get(run.rows.clone()).unwrap_or_default();
        let mut output = Output::new(types(projection));
        read(scan, projection, wanted, &mut output)?;
        Ok((output, run.rows.clone()))
    };
    in_waves(options, &morsels, WAVE_MAX, job, |(output, run)| {
        bytes += output.bytes();
        charge.set(bytes)?;
        let (first, mut batch_start) = (next, 0u32);
        for batch in output.into_batches() {
            next += 1;
            batch_start += u32::try_from(batch.len()).unwrap_or(0);
            batches.push(batch);
        }
        debug_assert_eq!(batch_start as usize, run.len());
        let zone_rows = u32::try_from(ZONE_ROWS).unwrap_or(u32::MAX);
        let wanted = by_location.get(run).unwrap_or_default();
        for ((_, place), i) in wanted.iter().zip(0u32..) {
            if let Some(at) = at.get_mut(*place as usize) {
                *at = (first + i / zone_rows, i % zone_rows);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let types = types(projection);
    for places in at.chunks(ZONE_ROWS) {
        options.expect_time_left()?;
        if sink(collect(&types, &batches, places)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Ranges of `by_location` whose rows lie in one part and one span of [`MORSEL_ROWS`] rows.
fn runs(by_location: &[(Location, u32)]) -> Vec<std::ops::Range<usize>> {
    let mut runs = Vec::new();
    let span = |l: &(Location, u32)| (l.0.part, l.0.row as usize / MORSEL_ROWS);
    let mut start = 0;
    for run in by_location.chunk_by(|a, b| span(a) == span(b)) {
        runs.push(start..start + run.len());
        start += run.len();
    }
    runs
}

fn read<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    wanted: &[(Location, u32)],
    output: &mut Output,
) -> Result<()> {
    let mut rest = wanted;
    while let Some((first, _)) = rest.first() {
        let part = scan.source.part(first.part as usize);
        let row = first.row as usize;
        // Batches start where the first scan had them start.
        let mut start = row / ZONE_ROWS * ZONE_ROWS;
        let zone_end = (start + ZONE_ROWS).min(part.row_count());
        let mut end = part.batch_end(start, zone_end - start).clamp(start + 1, zone_end);
        while end <= row {
            start = end;
            end = part.batch_end(start, zone_end - start).clamp(start + 1, zone_end);
        }
        let here = rest.partition_point(|(l, _)| l.part == first.part && (l.row as usize) < end);
        let (now, later) = rest.split_at_checked(here.max(1)).unwrap_or((rest, &[]));
        let offset = u32::try_from(start).unwrap_or(u32::MAX);
        let picked: Vec<u32> = now.iter().map(|(l, _)| l.row - offset).collect();
        let rows = Rows::new(part, start..end);
        output.append(&show(projection, &rows, Selection::Rows(&picked))?, picked.len())?;
        rest = later;
    }
    Ok(())
}

/// The rows at some places, in this order.
pub(crate) fn collect(
    types: &[DataType],
    batches: &[Batch],
    places: &[(u32, u32)],
) -> Result<Batch> {
    let mut columns = Vec::with_capacity(types.len());
    for (i, data_type) in types.iter().copied().enumerate() {
        let mut column = Column::empty(data_type);
        for (batch, row) in places {
            let from = batches.get(*batch as usize).and_then(|b| b.columns.get(i));
            column.push(from.map_or(ValueRef::Null, |c| c.value(*row as usize)))?;
        }
        columns.push(column);
    }
    Ok(Batch { columns })
}
