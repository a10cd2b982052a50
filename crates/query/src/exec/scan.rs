//! Reading a source: morsels in parallel, zones pruned, batches filtered.
//!
//! A morsel is at most [`MORSEL_ROWS`] consecutive rows of one part; more only of what is made as
//! it is read, and has very many. Morsels run in waves on the thread pool, and their outcomes are
//! taken in the order of the rows, whatever thread was first: so answers do not depend on the
//! number of threads. Waves start small, so that a query that needs few rows stops early, and
//! double.

pub(crate) mod row_set;

use std::ops::{AddAssign, ControlFlow, Range};

use esker_format::Room;
use esker_vfs::parallel_map;

use crate::access_path::{Access, ScanPlan};
use crate::evaluate::{Mask, Rows};
use crate::filter::{CodeTables, FieldKeys, count, keep};
use crate::predicate::{Predicate, Verdict};
use crate::{Options, Result, Source, ZONE_ROWS};
use row_set::{RowSet, RowSets};

/// The most rows of a morsel.
pub(crate) const MORSEL_ROWS: usize = 8 * ZONE_ROWS;

/// About the most morsels of a source: of one with more rows, which is made as it is read, they are
/// larger.
const MORSELS_MAX: usize = 1 << 20;

/// The most morsels of a wave whose outcomes are small.
pub(crate) const WAVE_MAX: usize = 256;

/// Rows of the first batch where few may be enough.
const FEW_ROWS: usize = 256;

/// Keys are looked up for so many rows of a morsel at least, and for more of them while they remove
/// one of so many.
const LOOKED_UP_MIN: usize = 1_024;
const REMOVED_SHARE: usize = 4;

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
    /// Rows in zones that were not pruned, and candidates that runs named.
    pub(crate) rows_scanned: u64,
    /// Rows that are visible and pass.
    pub(crate) rows_passed: u64,
    /// Rows that keys known at run time have removed: see [`Scan::among`].
    pub(crate) rows_removed: u64,
}

impl AddAssign for ScanCounts {
    fn add_assign(&mut self, other: Self) {
        self.zones += other.zones;
        self.zones_pruned += other.zones_pruned;
        self.rows_scanned += other.rows_scanned;
        self.rows_passed += other.rows_passed;
        self.rows_removed += other.rows_removed;
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
    /// The most rows of the next batch, which is twice as many for the one after; `None` for no
    /// such limit.
    growing: Option<usize>,
    /// Rows that keys were looked up for, and those of them that they removed.
    looked_up: usize,
    removed: usize,
}

impl Progress {
    /// Batches that start small and grow: for a reader that hopes to need few rows.
    pub(crate) fn growing() -> Self {
        Self { growing: Some(FEW_ROWS), ..Self::default() }
    }
}

/// A source with a filter.
pub(crate) struct Scan<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) predicate: &'a Predicate,
    pub(crate) tables: &'a CodeTables,
    pub(crate) plan: &'a ScanPlan<'a>,
    pub(crate) options: &'a Options,
    /// What holds, beside the filter, of all rows that are wanted: it leaves out zones only.
    pruning: Option<&'a Predicate>,
    /// The keys that fields of all rows have that are wanted.
    among: &'a [FieldKeys],
    row_sets: RowSets,
}

/// What is known of the rows that are visited.
#[derive(Clone, Copy)]
struct Visit<'s> {
    rows_max: usize,
    verdict: Verdict,
    /// The candidates; `None` where all rows are looked at.
    candidates: Option<&'s RowSet>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        source: &'a dyn Source,
        predicate: &'a Predicate,
        tables: &'a CodeTables,
        plan: &'a ScanPlan<'a>,
        options: &'a Options,
    ) -> Self {
        let row_sets = RowSets::new(source.part_count());
        Self { source, predicate, tables, plan, options, pruning: None, among: &[], row_sets }
    }

    /// The same, which leaves out zones that have no row of which a condition holds.
    pub(crate) fn pruned_by(mut self, condition: Option<&'a Predicate>) -> Self {
        self.pruning = condition;
        self
    }

    /// The same, which leaves out rows whose fields have none of some keys; not all of these, where
    /// that does not pay.
    pub(crate) fn among(mut self, keys: &'a [FieldKeys]) -> Self {
        self.among = keys;
        self
    }

    /// The morsels of the parts that `wanted` says and that may have rows. A part with few
    /// candidates is one morsel.
    pub(crate) fn morsels(&self, wanted: impl Fn(usize) -> bool) -> Vec<Morsel> {
        self.morsels_of(wanted, false)
    }

    /// As [`Scan::morsels`], but where morsels begin does not depend on how rows are found.
    pub(crate) fn fixed_morsels(&self, wanted: impl Fn(usize) -> bool) -> Vec<Morsel> {
        self.morsels_of(wanted, true)
    }

    fn morsels_of(&self, wanted: impl Fn(usize) -> bool, fixed: bool) -> Vec<Morsel> {
        let mut morsels = Vec::new();
        let parts = 0..self.source.part_count();
        let rows = parts
            .fold(0usize, |rows, part| rows.saturating_add(self.source.part(part).row_count()));
        let least = (rows / MORSELS_MAX).div_ceil(ZONE_ROWS) * ZONE_ROWS;
        for part in (0..self.source.part_count()).filter(|part| wanted(*part)) {
            let found = self.source.part(part);
            let row_count = found.row_count();
            let most = found.rows_at_once().clamp(1, MORSEL_ROWS);
            let step = match &self.plan.part(part).access {
                Access::Nothing => continue,
                Access::Lookup(candidates)
                    if !fixed && candidates.count_max() <= ZONE_ROWS.min(most) =>
                {
                    row_count
                }
                _ if most == MORSEL_ROWS => most.max(least),
                _ => most,
            };
            for start in (0..row_count).step_by(step.max(1)) {
                let rows = start..row_count.min(start + step);
                morsels.push(Morsel { part, rows });
            }
        }
        morsels
    }

    /// What a scan of a morsel would meet, where zone maps leave out all of it.
    pub(crate) fn left_out(&self, morsel: &Morsel) -> Option<ScanCounts> {
        let plan = self.plan.part(morsel.part);
        if !matches!(plan.access, Access::Scan) {
            return None;
        }
        let (part, predicate) = (self.source.part(morsel.part), plan.residual(self.predicate));
        let mut zones = morsel.rows.start / ZONE_ROWS..morsel.rows.end.div_ceil(ZONE_ROWS);
        let count = zones.len() as u64;
        let is_left_out = zones.all(|zone| {
            let is_pruned = |by: &Predicate| by.verdict(part, zone) == Verdict::Never;
            is_pruned(predicate) || self.pruning.is_some_and(is_pruned)
        });
        let counts = ScanCounts { zones: count, zones_pruned: count, ..ScanCounts::default() };
        is_left_out.then_some(counts)
    }

    /// Visits every batch of a morsel that has rows left after the filter.
    pub(crate) fn run<'r>(
        &self,
        (morsel, room): (&Morsel, &'r Room),
        visit: impl FnMut(&Rows<'r>, Mask) -> Result<ControlFlow<()>>,
    ) -> Result<ScanCounts>
    where
        'a: 'r,
    {
        let mut progress = Progress::default();
        self.run_from((morsel, room), ZONE_ROWS, &mut progress, visit)?;
        Ok(progress.counts)
    }

    /// Only counts the rows that a visit would see.
    pub(crate) fn count(&self, morsel: &Morsel) -> Result<ScanCounts> {
        let mut progress = Progress { counts_only: true, ..Progress::default() };
        let go_on = |_: &Rows<'_>, _: Mask| Ok(ControlFlow::Continue(()));
        let room = Room::default();
        self.run_from((morsel, &room), ZONE_ROWS, &mut progress, go_on)?;
        Ok(progress.counts)
    }

    /// As [`Scan::run`], in batches of at most `rows_max` rows. After an error, `progress` says
    /// how far it came.
    pub(crate) fn run_from<'r>(
        &self,
        (morsel, room): (&Morsel, &'r Room),
        rows_max: usize,
        progress: &mut Progress,
        mut visit: impl FnMut(&Rows<'r>, Mask) -> Result<ControlFlow<()>>,
    ) -> Result<()>
    where
        'a: 'r,
    {
        let part = self.source.part(morsel.part);
        let plan: &'a _ = self.plan.part(morsel.part);
        let predicate = plan.residual(self.predicate);
        let candidates = match &plan.access {
            Access::Nothing => return Ok(()),
            Access::Scan => None,
            Access::Lookup(found) => {
                Some(self.row_sets.get(morsel.part, found, part.row_count())?)
            }
        };
        let candidates = candidates.as_deref();
        let mut start = morsel.rows.start;
        while start < morsel.rows.end {
            let counts = &mut progress.counts;
            if let Some(set) = candidates {
                let zones_end = morsel.rows.end.div_ceil(ZONE_ROWS);
                let first = set.span(start..morsel.rows.end).map(|span| span.start);
                // default: no row is left in the zones
                let skipped = first.map_or(zones_end, |row| row / ZONE_ROWS) - start / ZONE_ROWS;
                counts.zones += skipped as u64;
                counts.zones_pruned += skipped as u64;
                let Some(first) = first else { break };
                start = start.max(first / 64 * 64);
            }
            let shown = part.first_shown(start..morsel.rows.end);
            if shown > start {
                // The zone in which it goes on is counted there.
                let zones_end = if shown < morsel.rows.end { shown } else { shown + ZONE_ROWS - 1 };
                let hidden = zones_end / ZONE_ROWS - start / ZONE_ROWS;
                counts.zones += hidden as u64;
                counts.zones_pruned += hidden as u64;
                start = shown;
                continue;
            }
            let zone = start / ZONE_ROWS;
            let zone_end = ((zone + 1) * ZONE_ROWS).min(morsel.rows.end);
            counts.zones += 1;
            let is_pruned = |by: &Predicate| by.verdict(part, zone) == Verdict::Never;
            let has_rows = !self.pruning.is_some_and(is_pruned);
            let verdict = if has_rows { predicate.verdict(part, zone) } else { Verdict::Never };
            if verdict == Verdict::Never {
                counts.zones_pruned += 1;
                start = zone_end;
                continue;
            }
            let how = Visit { rows_max, verdict, candidates };
            let span = candidates.and_then(|set| set.span(start..zone_end));
            // default: no row is left in the zones
            let rows = start..span.map_or(zone_end, |span| span.end);
            let flow = self.run_zone((morsel.part, room), rows, how, progress, &mut visit)?;
            if flow.is_break() {
                return Ok(());
            }
            start = zone_end;
        }
        Ok(())
    }

    /// Visits the batches of some rows of one zone.
    fn run_zone<'r>(
        &self,
        (part_index, room): (usize, &'r Room),
        zone: Range<usize>,
        how: Visit<'_>,
        progress: &mut Progress,
        visit: &mut impl FnMut(&Rows<'r>, Mask) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>>
    where
        'a: 'r,
    {
        let part = self.source.part(part_index);
        let predicate = self.plan.part(part_index).residual(self.predicate);
        let Visit { rows_max, verdict, candidates } = how;
        let mut start = zone.start;
        while start < zone.end {
            self.options.expect_time_left()?;
            progress.next = start;
            let rows_max =
                // default: batches that do not grow have the rows of a zone
                rows_max.min(zone.end - start).min(progress.growing.unwrap_or(ZONE_ROWS));
            progress.growing = progress.growing.map(|rows| (2 * rows).min(ZONE_ROWS));
            let counts = &mut progress.counts;
            let end = part.batch_end(start, rows_max).clamp(start + 1, zone.end);
            let batch = start..end;
            start = end;
            let rows = Rows::new(part, batch.clone(), self.options.limits(), room);
            let visible = part.visible(batch.clone());
            if progress.counts_only
                && visible.is_none()
                && candidates.is_none()
                && verdict == Verdict::Sometimes
                && self.among.is_empty()
                && let Some(passed) = count(predicate, &rows, self.tables)?
            {
                counts.rows_scanned += rows.len() as u64;
                counts.rows_passed += passed as u64;
                continue;
            }
            let mut mask = match visible {
                None => Mask::all(rows.len()),
                Some(bits) => Mask::from_words(&bits, rows.len()),
            };
            counts.rows_scanned += match candidates {
                None => rows.len() as u64,
                Some(set) => {
                    let candidates = set.mask(batch);
                    mask.and(&candidates);
                    candidates.count() as u64
                }
            };
            self.keep_among(&rows, &mut mask, progress)?;
            if verdict == Verdict::Sometimes {
                keep(predicate, &rows, &mut mask, self.tables)?;
            }
            let passed = mask.count() as u64;
            let counts = &mut progress.counts;
            counts.rows_passed += passed;
            if passed > 0 && visit(&rows, mask)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<'a> Scan<'a> {
    /// Removes the rows whose fields have none of the keys, while that removes enough of a morsel.
    fn keep_among(&self, rows: &Rows<'_>, mask: &mut Mask, progress: &mut Progress) -> Result<()> {
        let pays = progress.looked_up < LOOKED_UP_MIN
            || progress.removed >= progress.looked_up / REMOVED_SHARE;
        if self.among.is_empty() || !pays || mask.is_empty() {
            return Ok(());
        }
        let before = mask.count();
        for field in self.among {
            field.keys.keep(&rows.column(field.position)?, mask);
        }
        let removed = before - mask.count();
        progress.looked_up += before;
        progress.removed += removed;
        progress.counts.rows_removed += removed as u64;
        Ok(())
    }
}

/// Runs `job` for every morsel, in parallel, and hands the outcomes to `take` in order, until it
/// breaks or one fails. The first failure, in order, is the one reported. Between outcomes it is
/// seen whether the query is to end.
pub(crate) fn in_waves<T: Send>(
    options: &Options,
    morsels: &[Morsel],
    wave_max: usize,
    job: impl Fn(&Morsel) -> Result<T> + Sync,
    take: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    in_growing_waves(options, morsels, (options.tasks.parallelism().max(1), wave_max), job, take)
}

/// As [`in_waves`], with so many morsels in the first wave.
pub(crate) fn in_growing_waves<T: Send>(
    options: &Options,
    morsels: &[Morsel],
    waves: (usize, usize),
    job: impl Fn(&Morsel) -> Result<T> + Sync,
    take: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    in_waves_of(options, morsels.iter(), waves, job, take)
}

/// As [`in_growing_waves`], of morsels that are chosen when their wave begins.
pub(crate) fn in_waves_of<'m, T: Send>(
    options: &Options,
    mut morsels: impl Iterator<Item = &'m Morsel>,
    (first, wave_max): (usize, usize),
    job: impl Fn(&Morsel) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut wave_len = first.max(1);
    loop {
        let wave: Vec<&Morsel> = morsels.by_ref().take(wave_len).collect();
        if wave.is_empty() {
            return Ok(());
        }
        wave_len = (wave_len * 2).min(wave_max);
        options.expect_time_left()?;
        if let [only] = *wave {
            if take(job(only)?)?.is_break() {
                return Ok(());
            }
            continue;
        }
        let outcomes = parallel_map(&*options.tasks, &wave, |morsel| {
            options.expect_time_left().and_then(|()| job(morsel))
        });
        for done in outcomes {
            options.expect_time_left()?;
            if take(done?)?.is_break() {
                return Ok(());
            }
        }
    }
}
