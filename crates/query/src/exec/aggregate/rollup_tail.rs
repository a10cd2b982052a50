//! Groupings of a part that grows, by what a rollup has of blocks of its rows.
//!
//! ```text
//! rows of an open group   0 ───── block ───── 8192 ── block ── 16384 ─ rows ─ 17100
//!                         └ groups, without those of rows that are not seen ┘└ scanned ┘
//! ```
//!
//! Answers are the same as those of a scan, by the rules of [`super::rollup_answer`]. A block of
//! which too many rows are not seen is scanned.

use std::ops::Range;

use esker_format::{ColumnSlice, Room};

use super::partials::PartialGroups;
use super::rollup_answer::{Hidden, RollupAnswer, RowsAtEnds, batches_of, gone};
use crate::Result;
use crate::access_path::Access;
use crate::bind::Stage;
use crate::budget::Charge;
use crate::evaluate::{Mask, Rows};
use crate::exec::aggregate::group::Groups;
use crate::exec::scan::Scan;
use crate::filter::keep;
use crate::options::{IndexUse, Options};
use crate::predicate::Verdict;
use crate::source::slices_at_hand::SlicesAtHand;
use crate::source::{Fragment, RollupBlock};
use crate::{ErrorKind, ZONE_ROWS};

/// Of so few zones that may have rows, the rows are read.
const FEW_ZONES: usize = 3;
/// A lookup that finds fewer rows than one of so many is quicker.
const LOOKUP_SHARE: f64 = 64.0;
/// Where more of the rows of a block than one of so many are not visible, it is scanned.
const HIDDEN_SHARE: usize = 8;

/// The groups of a part by its blocks; `None` where it is to be scanned.
///
/// # Errors
/// When what is kept, or a row, cannot be read; when the query is to end.
pub(super) fn known<'s>(
    scan: &Scan<'s>,
    stage: &'s Stage,
    part_index: usize,
    charge: &mut Charge<'_>,
    options: &Options,
) -> Result<Option<Groups<'s>>> {
    let part = scan.source.part(part_index);
    if !options.uses_rollups() || !is_worth_it(scan, part_index, options) {
        return Ok(None);
    }
    for rollup in part.rollup_blocks() {
        let Some(answer) = RollupAnswer::of(stage, rollup.shape(), options.limits())? else {
            continue;
        };
        let found = rollup.blocks().and_then(|blocks| {
            Tail { scan, stage, part, answer: &answer, options }.groups(&blocks, charge)
        });
        return match found {
            // It may be one of a row that the reader does not see, or for want of memory.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::OutOfRange | ErrorKind::InvalidQuery | ErrorKind::OverBudget
                ) =>
            {
                charge.set(0)?;
                Ok(None)
            }
            found => found,
        };
    }
    Ok(None)
}

/// The rollup whose blocks answer a step for a part, by its name, and how many groups are kept and
/// rows are read.
///
/// # Errors
/// As for [`known`].
pub(super) fn chosen(
    scan: &Scan<'_>,
    stage: &Stage,
    part_index: usize,
    options: &Options,
) -> Result<Option<(String, usize)>> {
    let part = scan.source.part(part_index);
    if !options.uses_rollups() || !is_worth_it(scan, part_index, options) {
        return Ok(None);
    }
    for rollup in part.rollup_blocks() {
        if RollupAnswer::of(stage, rollup.shape(), options.limits())?.is_none() {
            continue;
        }
        let (mut groups, mut rows) = (0, part.row_count());
        for block in rollup.blocks()? {
            if let Some(columns) = &*block.groups {
                groups += columns.first().map_or(0, esker_format::Column::len);
                rows -= block.rows.len();
            }
        }
        let is_known = rows < part.row_count();
        return Ok(is_known.then(|| (rollup.name().to_owned(), groups + rows)));
    }
    Ok(None)
}

/// Whether many rows of a part would be read.
fn is_worth_it(scan: &Scan<'_>, part_index: usize, options: &Options) -> bool {
    let part = scan.source.part(part_index);
    let zones = part.row_count() / ZONE_ROWS;
    let may_pass = |zone: &usize| scan.predicate.verdict(part, *zone) != Verdict::Never;
    match &scan.plan.part(part_index).access {
        Access::Nothing => return false,
        Access::Lookup(candidates) if options.indexes != IndexUse::Always => {
            if candidates.estimate(part.row_count()) < part.row_count() as f64 / LOOKUP_SHARE {
                return false;
            }
        }
        Access::Lookup(_) | Access::Scan => {}
    }
    zones > 0 && (0..zones).filter(may_pass).take(FEW_ZONES + 1).count() > FEW_ZONES.min(zones - 1)
}

/// A part that is grouped.
struct Tail<'a, 's> {
    scan: &'a Scan<'s>,
    stage: &'s Stage,
    part: &'a dyn Fragment,
    answer: &'a RollupAnswer,
    options: &'a Options,
}

impl<'s> Tail<'_, 's> {
    fn groups(
        &self,
        blocks: &[RollupBlock],
        charge: &mut Charge<'_>,
    ) -> Result<Option<Groups<'s>>> {
        let Self { scan, stage, part, answer, options } = self;
        let ends = RowsAtEnds::of(answer, stage);
        let mut kept = PartialGroups::new(Groups::new(stage));
        let (mut hidden, mut scanned, mut next) = (Vec::new(), Vec::new(), 0);
        for block in blocks {
            options.expect_time_left()?;
            let found = match &*block.groups {
                Some(columns) => Some((columns, self.hidden(&block.rows)?)),
                None => None,
            };
            let Some((columns, Some(not_seen))) = found else { continue };
            if next < block.rows.start {
                scanned.push(next..block.rows.start);
            }
            next = block.rows.end;
            hidden.extend(not_seen);
            let columns: Vec<ColumnSlice<'_>> = columns.iter().map(ColumnSlice::from).collect();
            let rows = columns.first().map_or(0, |column| column.len);
            let entries = SlicesAtHand { columns: &columns, rows };
            answer.add_groups(&mut kept, (&entries, block.rows.start), charge, options)?;
        }
        if next == 0 {
            return Ok(None);
        }
        let behind = next..part.row_count();
        let takes_away = !hidden.is_empty();
        if takes_away && !kept.can_lose_rows() {
            return Ok(None);
        }
        let groups = match takes_away {
            false => Some(kept.finish()),
            true => kept.without(gone(scan, (stage, ends.as_ref()), (*part, &hidden), options)?)?,
        };
        let Some(mut groups) = groups else { return Ok(None) };
        if let Some(ends) = &ends {
            let within = |range: &Range<usize>| !scanned.iter().any(|s| s.contains(&range.start));
            let is_kept = |range: &Range<usize>| range.start < next && within(range);
            ends.add(&mut groups, *part, &is_kept, options)?;
        }
        for rows in scanned.into_iter().chain([behind]) {
            self.scan(&mut groups, rows)?;
        }
        charge.set(groups.bytes())?;
        Ok(Some(groups))
    }

    /// The rows of a block that are not seen, batch by batch; `None` where there are many.
    fn hidden(&self, rows: &Range<usize>) -> Result<Option<Hidden>> {
        let part = self.part;
        if part.visible_count() == Some(part.row_count()) {
            return Ok(Some(Vec::new()));
        }
        let (mut hidden, mut count) = (Vec::new(), 0);
        for range in batches_of(part, rows.clone()) {
            let Some(words) = part.visible(range.clone()) else { continue };
            let mut mask = Mask::all(range.len());
            mask.and_not(&Mask::from_words(&words, range.len()));
            count += mask.count();
            if count > rows.len() / HIDDEN_SHARE {
                return Ok(None);
            }
            let zone = range.start / ZONE_ROWS;
            if !mask.is_empty() && self.scan.predicate.verdict(part, zone) != Verdict::Never {
                hidden.push((range, mask));
            }
        }
        Ok(Some(hidden))
    }

    /// Adds the rows that are in no block.
    fn scan(&self, groups: &mut Groups<'s>, rows: Range<usize>) -> Result<()> {
        let Self { scan, part, options, .. } = self;
        for range in batches_of(*part, rows) {
            options.expect_time_left()?;
            if scan.predicate.verdict(*part, range.start / ZONE_ROWS) == Verdict::Never {
                continue;
            }
            let mut mask = match part.visible(range.clone()) {
                Some(words) => Mask::from_words(&words, range.len()),
                None => Mask::all(range.len()),
            };
            let room = Room::default();
            let rows = Rows::new(*part, range, options.limits(), &room);
            keep(scan.predicate, &rows, &mut mask, scan.tables)?;
            if !mask.is_empty() {
                groups.update(&rows, &mask)?;
            }
        }
        Ok(())
    }
}
