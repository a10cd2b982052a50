//! The side of a join that is streamed past the index of the other.

use std::ops::ControlFlow;

use super::build::{Built, push_locations, vectors};
use super::chunk::PairFilter;
use super::matched::{Marks, Matched};
use super::{Input, NONE, Side};
use crate::access_path::{Goal, ScanPlan};
use crate::bound::Bound;
use crate::budget::Charge;
use crate::evaluate::{Mask, Picked, Rows, Selection};
use crate::exec::scan::{Morsel, Scan, in_waves};
use crate::exec::sort::Location;
use crate::filter::{CodeTables, FieldKeys};
use crate::model::JoinKind;
use crate::predicate::Predicate;
use crate::{Options, Result, ZONE_ROWS};
use esker_format::Room;

/// A probe of an index.
pub(super) struct Probe<'p> {
    pub(super) kind: JoinKind,
    /// The side that was built; the other is streamed.
    pub(super) side: Side,
    pub(super) input: &'p Input<'p>,
    /// What its rows have to pass.
    pub(super) filter: Option<&'p Bound>,
    /// The keys that its rows have to have.
    pub(super) among: &'p [FieldKeys],
    pub(super) floats: &'p [bool],
    pub(super) built: &'p Built<'p>,
    pub(super) pair: &'p Predicate,
}

/// The pairs of some rows.
#[derive(Debug)]
pub(super) struct FoundPairs {
    /// Where the rows begin in those of all.
    pub(super) start: u32,
    /// For each pair, the number of its row among these, and the row that was built, or `NONE`.
    /// Ascending by the first, then by the second.
    pub(super) pairs: Vec<(u32, u32)>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found<'b> {
    /// The rows of the streamed side that are part of the answer, ascending.
    pub(super) locations: Vec<Location>,
    /// The pairs of each morsel.
    pub(super) pairs: Vec<FoundPairs>,
    /// Which rows that were built have a match, where that is all that matters.
    pub(super) marks: Marks,
    pub(super) rows_probed: u64,
    /// Rows that the keys removed.
    pub(super) rows_removed: u64,
    pub(super) charge: Charge<'b>,
}

impl Probe<'_> {
    /// Streams the probe side.
    ///
    /// # Errors
    /// As [`super::run`].
    pub(super) fn run<'b>(&self, options: &'b Options) -> Result<Found<'b>> {
        let marks_built = self.side == Side::Left && !self.kind.shows_right();
        let marks = if marks_built { self.built.locations.len() } else { 0 };
        let empty = |charge| Found {
            locations: Vec::new(),
            pairs: Vec::new(),
            marks: Marks::new(marks),
            rows_probed: 0,
            rows_removed: 0,
            charge,
        };
        let (mut all, mut pair_count) = (empty(options.memory().charge()), 0);
        let wants_unmatched =
            self.side == Side::Right && matches!(self.kind, JoinKind::Left | JoinKind::Anti);
        if self.built.locations.is_empty() && !wants_unmatched {
            return Ok(all);
        }
        let predicate = Predicate::compile(self.filter);
        let plan = ScanPlan::new(&predicate, self.input.source, Goal::ALL, options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(self.input.source, &predicate, &tables, &plan, options);
        let scan = scan.among(self.among);
        let pair = PairFilter::new(self.pair, self.input, self.built, self.side == Side::Left);
        let job = |morsel: &Morsel| {
            let mut found = empty(options.memory().charge());
            let room = Room::default();
            let counts = scan.run((morsel, &room), |rows, mask| {
                self.batch(morsel.part, rows, &mask, &pair, options, &mut found)?;
                Ok(ControlFlow::Continue(()))
            })?;
            (found.rows_probed, found.rows_removed) = (counts.rows_passed, counts.rows_removed);
            Ok(found)
        };
        let few = options.tasks.parallelism().max(1) * 4;
        in_waves(options, &scan.morsels(|_| true), few, job, |found: Found<'_>| {
            let start = u32::try_from(all.locations.len()).unwrap_or(NONE);
            for FoundPairs { pairs, .. } in found.pairs {
                pair_count += pairs.len();
                all.pairs.push(FoundPairs { start, pairs });
            }
            all.locations.extend(found.locations);
            all.marks.merge(&found.marks);
            all.rows_probed += found.rows_probed;
            all.rows_removed += found.rows_removed;
            drop(found.charge);
            super::input::refuse_many(all.locations.len().max(pair_count))?;
            let bytes = all.bytes();
            all.charge.set(bytes)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Finds the matches of a batch.
    fn batch<'a>(
        &'a self,
        part: usize,
        rows: &Rows<'a>,
        mask: &Mask,
        pair: &PairFilter<'_>,
        options: &Options,
        found: &mut Found<'_>,
    ) -> Result<()> {
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let keys = vectors(&self.input.keys, self.floats, rows, selection)?;
        let first = self.built.index.first(&keys, selection.len());
        let mut matched = Matched::new(self.kind, self.side, selection.len());
        let mut candidates: Vec<(u32, u32)> = Vec::new();
        // One match is enough where only whether there is one matters. What may fail does so
        // whichever side was built: all pairs are tested.
        let is_first_enough = !self.pair.may_fail() && !self.kind.shows_right();
        let is_untested = *self.pair == Predicate::Constant(true);
        let mut steps = 0usize;
        for (i, first) in (0u32..).zip(&first) {
            let mut row = *first;
            while row != NONE && !(is_first_enough && matched.has_row(i)) {
                if !(is_first_enough && matched.has_built(row, &found.marks)) {
                    candidates.push((i, row));
                    if is_first_enough && is_untested && self.side == Side::Right {
                        break;
                    }
                }
                row = self.built.index.next(row);
                steps += 1;
                if steps.is_multiple_of(ZONE_ROWS) {
                    options.expect_time_left()?;
                }
                if candidates.len() == ZONE_ROWS {
                    pair.keep(rows, selection, &mut candidates)?;
                    matched.add(&mut candidates, &mut found.marks);
                    found.charge.set(found.bytes() + matched.bytes())?;
                }
            }
        }
        if !candidates.is_empty() {
            pair.keep(rows, selection, &mut candidates)?;
            matched.add(&mut candidates, &mut found.marks);
        }
        self.note(part, rows, selection, &matched, found);
        let bytes = found.bytes();
        found.charge.set(bytes)
    }

    /// Notes what is part of the answer, given the pairs of a batch that match.
    fn note(
        &self,
        part: usize,
        rows: &Rows<'_>,
        selection: Selection<'_>,
        matched: &Matched,
        found: &mut Found<'_>,
    ) {
        let is_kept = |has_match: bool| match (self.side, self.kind) {
            (Side::Left, _) | (_, JoinKind::Inner | JoinKind::Semi) => has_match,
            // The last two never come here: see `super::run`.
            (Side::Right, JoinKind::Left | JoinKind::Right | JoinKind::Full) => true,
            (Side::Right, JoinKind::Anti) => !has_match,
        };
        let mut kept: Vec<u32> = Vec::new();
        let start = u32::try_from(found.locations.len()).unwrap_or(NONE);
        if found.pairs.is_empty() {
            found.pairs.push(FoundPairs { start: 0, pairs: Vec::new() });
        }
        let count = u32::try_from(selection.len()).unwrap_or(NONE);
        matched.for_each(count, |i, has_match, own| {
            if is_kept(has_match) {
                let number = start.saturating_add(u32::try_from(kept.len()).unwrap_or(NONE));
                kept.push(selection.row(i as usize));
                let pairs = found.pairs.last_mut().into_iter();
                pairs.for_each(|of| of.pairs.extend(own.iter().map(|(_, row)| (number, *row))));
            }
        });
        push_locations(&mut found.locations, part, rows, Selection::Rows(&kept));
    }
}

impl Found<'_> {
    fn bytes(&self) -> usize {
        let locations = self.locations.capacity() * size_of::<Location>();
        let pairs: usize = self.pairs.iter().map(|found| found.pairs.capacity()).sum();
        locations + pairs * 8 + self.marks.bytes()
    }

    /// The rows that were built and have a match, or those that have none.
    pub(super) fn built_rows(&self, locations: &[Location], has_match: bool) -> Vec<Location> {
        let marked = (0u32..).zip(locations);
        let wanted = marked.filter(|(row, _)| self.marks.has(*row) == has_match);
        wanted.map(|(_, location)| *location).collect()
    }
}
