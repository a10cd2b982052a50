//! The last step: which rows are shown, in which order, and what of them.
//!
//! Without an order, rows are shown as they are met and a limit stops the scan. With one, a first
//! pass sorts keys and locations only; the output columns are read in a second pass, for the rows
//! that are shown and no others.

use std::cell::Cell;
use std::ops::ControlFlow;

use esker_format::{Batch, Column, Room};

use super::projected::{append, expression_room, types};
use super::{Output, Sink};
use crate::bind::Projection;
use crate::budget::Charge;
use crate::evaluate::{Mask, Picked, Rows};
use crate::exec::output::fetch;
use crate::exec::scan::{Morsel, Progress, Scan, ScanCounts, in_growing_waves, in_waves_of};
use crate::exec::sort::ordered_parts::OrderedParts;
use crate::exec::sort::row_keys::{add_keys, location_part};
use crate::exec::sort::{Location, Sorter};
use crate::exec::spill::sorted_locations;
use crate::{Budget, Error, ErrorKind, Result, TemporaryFiles, ZONE_ROWS};

/// Rows of an answer that may be found after a look at few.
const FEW_WANTED: usize = 256;

/// Runs the projection of a scan.
pub(crate) fn run<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    if projection.limit == Some(0) {
        return Ok(ScanCounts::default());
    }
    if projection.order.is_empty() {
        in_scan_order(scan, projection, sink)
    } else {
        in_key_order(scan, projection, sink)
    }
}

fn in_scan_order<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let offset = usize::try_from(projection.offset).unwrap_or(usize::MAX);
    let mut left = projection.rows_wanted().saturating_sub(offset);
    let morsels = scan.morsels(|_| true);
    let (skipped, skip, mut counts) = skipped(scan, &morsels, offset)?;
    let morsels = morsels.get(skipped..).unwrap_or_default();
    let first = morsels.first().map(|first| (first.part, first.rows.start));
    let wanted = left;
    let wave_max = scan.options.tasks.parallelism().max(1) * 4;
    let job = |morsel: &Morsel| {
        // What is skipped lies in the first morsel.
        let skip = if first == Some((morsel.part, morsel.rows.start)) { skip } else { 0 };
        let room = Room::default();
        Ok(shown_of(scan, projection, (morsel, &room), (skip, wanted), scan.options.memory()))
    };
    // What few rows answer takes less time than another thread takes to start.
    let at_first = match wanted {
        ..=FEW_WANTED => 1,
        usize::MAX => wave_max,
        _ => scan.options.tasks.parallelism().max(1),
    };
    let left_out = Cell::new(ScanCounts::default());
    let may_have_rows = |morsel: &&Morsel| {
        // A statement that is to end does so when it works on one.
        if scan.options.expect_time_left().is_err() {
            return true;
        }
        let Some(met) = scan.left_out(morsel) else { return true };
        let mut counts = left_out.get();
        counts += met;
        left_out.set(counts);
        false
    };
    let wanted_ones = morsels.iter().filter(may_have_rows);
    in_waves_of(scan.options, wanted_ones, (at_first, wave_max), job, |shown| {
        counts += shown.counts;
        for batch in shown.output.into_batches() {
            let to = batch.len().min(left);
            left -= to;
            if to > 0 && sink(cut(batch, 0, to)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match shown.error {
            _ if left == 0 => Ok(ControlFlow::Break(())),
            Some(error) => Err(error),
            None => Ok(ControlFlow::Continue(())),
        }
    })?;
    counts += left_out.get();
    Ok(counts)
}

/// How many morsels lie wholly before an offset, how many rows of the one after do, and what was
/// met: rows are counted, and none is shown.
fn skipped(
    scan: &Scan<'_>,
    morsels: &[Morsel],
    offset: usize,
) -> Result<(usize, usize, ScanCounts)> {
    let (mut skipped, mut skip, mut counts) = (0, offset, ScanCounts::default());
    if offset == 0 {
        return Ok((skipped, skip, counts));
    }
    let wave_max = scan.options.tasks.parallelism().max(1) * 4;
    // A filter that fails does so, or not, where rows are shown.
    let job = |morsel: &Morsel| Ok(scan.count(morsel));
    in_growing_waves(scan.options, morsels, (1, wave_max), job, |counted| {
        let Ok(counted) = counted else { return Ok(ControlFlow::Break(())) };
        let passed = usize::try_from(counted.rows_passed).unwrap_or(usize::MAX);
        if passed > skip {
            return Ok(ControlFlow::Break(()));
        }
        skip -= passed;
        skipped += 1;
        counts += counted;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((skipped, skip, counts))
}

/// The output rows of a morsel up to the first that fails, and its failure.
pub(crate) struct ShownRows<'b> {
    pub(crate) output: Output,
    pub(crate) error: Option<Error>,
    pub(crate) counts: ScanCounts,
    /// How many rows are still to be skipped.
    pub(crate) skip: usize,
    _charge: Charge<'b>,
}

/// Shows at most `wanted` rows of a morsel, behind those that are skipped.
///
/// When a batch fails, it is gone through again row by row: a limit may be reached before the row
/// that fails, and then the query must answer, however rows fall into batches.
pub(crate) fn shown_of<'a: 'r, 'r, 'b>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    (morsel, room): (&Morsel, &'r Room),
    (mut skip, wanted): (usize, usize),
    budget: &'b Budget,
) -> ShownRows<'b> {
    let mut output = Output::new(types(projection));
    let mut charge = budget.charge();
    let mut progress = if wanted <= FEW_WANTED { Progress::growing() } else { Progress::default() };
    let mut visit = |rows: &Rows<'r>, mut mask: Mask| {
        let dropped = if skip > 0 { mask.drop_first(skip) } else { 0 };
        mask.truncate(wanted.saturating_sub(output.len()));
        if !mask.is_empty() {
            let picked = Picked::of(&mask);
            let selection = picked.selection();
            let mut made = expression_room(rows.meter().limits());
            append(&mut output, projection, rows, selection, &mut made)?;
        }
        // Only now: rows of a batch that fails are met again.
        skip -= dropped;
        charge.set(output.bytes())?;
        let is_enough = output.len() >= wanted;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let mut outcome = scan.run_from((morsel, room), ZONE_ROWS, &mut progress, &mut visit);
    let is_computed = outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::OutOfRange);
    if is_computed && wanted < usize::MAX {
        let again = Morsel { part: morsel.part, rows: progress.next..morsel.rows.end };
        outcome = scan.run_from((&again, room), 1, &mut progress, &mut visit);
    }
    ShownRows { output, error: outcome.err(), counts: progress.counts, skip, _charge: charge }
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
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let parts = OrderedParts::choose(scan, projection)?;
    match (parts.first_rows(), &scan.options.temporary) {
        (Err(e), Some(files)) if e.kind() == ErrorKind::OverBudget => {
            in_temporary_files(scan, projection, files, sink)
        }
        (done, _) => {
            let (locations, _held, counts) = done?;
            show_sorted(scan, projection, sink, &locations)?;
            Ok(counts)
        }
    }
}

/// Shows rows in their order.
fn show_sorted<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    sink: Sink<'_>,
    mut rest: &[Location],
) -> Result<()> {
    fetch::in_chunks(scan, projection, sink, &mut |most| {
        let (now, later) = rest.split_at_checked(most).unwrap_or((rest, &[]));
        rest = later;
        Ok(now.to_vec())
    })
}

/// Sorts more keys than the budget allows.
fn in_temporary_files<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    files: &TemporaryFiles,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let wanted = projection.rows_wanted();
    let found = |morsel: &Morsel| {
        let mut sorter = Sorter::new(wanted);
        let part = location_part(morsel)?;
        let room = Room::default();
        let counts = scan.run((morsel, &room), |rows, mask| {
            add_keys(&mut sorter, projection, rows, &mask.rows(), part)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((sorter, counts))
    };
    let morsels = scan.morsels(|_| true);
    let (mut sorted, counts) = sorted_locations(&morsels, scan.options, files, found)?;
    let (mut skip, mut left) = (projection.offset, wanted);
    fetch::in_chunks(scan, projection, sink, &mut |most| {
        let mut chunk = Vec::new();
        while chunk.len() < most
            && left > 0
            && let Some(location) = sorted.next()?
        {
            left -= 1;
            match skip {
                0 => chunk.push(location),
                _ => skip -= 1,
            }
        }
        Ok(chunk)
    })?;
    Ok(counts)
}
