//! Reading a source: morsels in parallel, zones pruned, batches filtered.
//!
//! A morsel is at most [`MORSEL_ROWS`] consecutive rows of one part. Morsels run in waves on the
//! thread pool, and their outcomes are taken in the order of the rows, whatever thread was first:
//! so answers do not depend on the number of threads. Waves start small, so that a query that
//! needs few rows stops early, and double.

use std::ops::{AddAssign, ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use super::filter::{CodeTables, count, keep};
use super::mask::Mask;
use super::rows::Rows;
use crate::options::Options;
use crate::predicate::{Predicate, Verdict};
use crate::source::{Part, Source};
use crate::{Result, ZONE_ROWS};

/// The most rows of a morsel.
pub(crate) const MORSEL_ROWS: usize = 8 * ZONE_ROWS;

/// The most morsels of a wave whose outcomes are small.
pub(crate) const WAVE_MAX: usize = 256;

/// Consecutive rows of one part, worked on by one thread.
#[derive(Clone, Debug)]
pub(crate) struct Morsel {
    pub(crate) part: usize,
    pub(crate) rows: Range<usize>,
}

/// What a scan met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanCounts {
    pub(crate) zones: u64,
    pub(crate) zones_pruned: u64,
    /// Rows in zones that were not pruned.
    pub(crate) rows_scanned: u64,
    /// Rows that are visible and pass.
    pub(crate) rows_passed: u64,
}

impl AddAssign for ScanCounts {
    fn add_assign(&mut self, other: Self) {
        self.zones += other.zones;
        self.zones_pruned += other.zones_pruned;
        self.rows_scanned += other.rows_scanned;
        self.rows_passed += other.rows_passed;
    }
}

/// How far a scan of a morsel came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) counts: ScanCounts,
    /// Whether batches that can be counted without a mask need not be visited.
    counts_only: bool,
    /// The first row of the batch at hand.
    pub(crate) next: usize,
}

/// A source with a filter.
pub(crate) struct Scan<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) predicate: &'a Predicate,
    pub(crate) tables: &'a CodeTables,
}

impl<'a> Scan<'a> {
    /// The morsels of the parts that `wanted` says.
    pub(crate) fn morsels(&self, wanted: impl Fn(&dyn Part) -> bool) -> Vec<Morsel> {
        let mut morsels = Vec::new();
        for part in 0..self.source.part_count() {
            let found = self.source.part(part);
            let row_count = if wanted(found) { found.row_count() } else { 0 };
            for start in (0..row_count).step_by(MORSEL_ROWS) {
                let rows = start..row_count.min(start + MORSEL_ROWS);
                morsels.push(Morsel { part, rows });
            }
        }
        morsels
    }

    /// Visits every batch of a morsel that has rows left after the filter.
    pub(crate) fn run(
        &self,
        morsel: &Morsel,
        visit: impl FnMut(&Rows<'a>, Mask) -> Result<ControlFlow<()>>,
    ) -> Result<ScanCounts> {
        let mut progress = Progress::default();
        self.run_from(morsel, ZONE_ROWS, &mut progress, visit)?;
        Ok(progress.counts)
    }

    /// Only counts the rows that a visit would see.
    pub(crate) fn count(&self, morsel: &Morsel) -> Result<ScanCounts> {
        let mut progress = Progress { counts_only: true, ..Progress::default() };
        let go_on = |_: &Rows<'a>, _: Mask| Ok(ControlFlow::Continue(()));
        self.run_from(morsel, ZONE_ROWS, &mut progress, go_on)?;
        Ok(progress.counts)
    }

    /// As [`Scan::run`], in batches of at most `rows_max` rows. After an error, `progress` says
    /// how far it came.
    pub(crate) fn run_from(
        &self,
        morsel: &Morsel,
        rows_max: usize,
        progress: &mut Progress,
        mut visit: impl FnMut(&Rows<'a>, Mask) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let part = self.source.part(morsel.part);
        let mut start = morsel.rows.start;
        while start < morsel.rows.end {
            let counts = &mut progress.counts;
            let zone = start / ZONE_ROWS;
            let zone_end = ((zone + 1) * ZONE_ROWS).min(morsel.rows.end);
            let verdict = self.predicate.verdict(part, zone);
            counts.zones += 1;
            if verdict == Verdict::Never {
                counts.zones_pruned += 1;
                start = zone_end;
                continue;
            }
            while start < zone_end {
                progress.next = start;
                let rows_max = rows_max.min(zone_end - start);
                let end = part.batch_end(start, rows_max).clamp(start + 1, zone_end);
                let rows = Rows::new(part, start..end);
                let visible = part.visible(start..end);
                if progress.counts_only
                    && visible.is_none()
                    && verdict == Verdict::Sometimes
                    && let Some(passed) = count(self.predicate, &rows)?
                {
                    counts.rows_scanned += rows.len() as u64;
                    counts.rows_passed += passed as u64;
                    start = end;
                    continue;
                }
                let mut mask = match visible {
                    None => Mask::all(rows.len()),
                    Some(bits) => Mask::from_words(&bits, rows.len()),
                };
                if verdict == Verdict::Sometimes {
                    keep(self.predicate, &rows, &mut mask, self.tables)?;
                }
                counts.rows_scanned += rows.len() as u64;
                let passed = mask.count() as u64;
                counts.rows_passed += passed;
                if passed > 0 && visit(&rows, mask)?.is_break() {
                    return Ok(());
                }
                start = end;
            }
        }
        Ok(())
    }
}

/// Runs `job` for every morsel, in parallel, and hands the outcomes to `take` in order, until it
/// breaks or one fails. The first failure, in order, is the one reported.
pub(crate) fn in_waves<T: Send>(
    options: &Options,
    morsels: &[Morsel],
    wave_max: usize,
    job: impl Fn(&Morsel) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut wave_len = options.tasks.parallelism().max(1);
    let mut rest = morsels;
    while !rest.is_empty() {
        let (wave, later) = rest.split_at_checked(wave_len).unwrap_or((rest, &[]));
        rest = later;
        wave_len = (wave_len * 2).min(wave_max);
        options.refuse_cancelled()?;
        if let [only] = wave {
            if take(job(only)?)?.is_break() {
                return Ok(());
            }
            continue;
        }
        let outcomes: Vec<Mutex<Option<Result<T>>>> =
            wave.iter().map(|_| Mutex::new(None)).collect();
        options.tasks.parallel(wave.len(), &|i| {
            if let (Some(morsel), Some(outcome)) = (wave.get(i), outcomes.get(i)) {
                let done = options.refuse_cancelled().and_then(|()| job(morsel));
                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            }
        });
        for outcome in outcomes {
            let done = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(done) = done
                && take(done?)?.is_break()
            {
                return Ok(());
            }
        }
    }
    Ok(())
}
