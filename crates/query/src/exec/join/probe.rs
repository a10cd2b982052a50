//! The side of a join that is streamed past the index of the other.

use std::ops::ControlFlow;

use super::build::{Built, push_locations, vectors};
use super::chunk::PairFilter;
use super::{Input, NONE, Side};
use crate::bind::Bound;
use crate::exec::budget::{Budget, Charge};
use crate::exec::filter::CodeTables;
use crate::exec::mask::Mask;
use crate::exec::rows::Rows;
use crate::exec::scan::{Morsel, Scan, in_waves};
use crate::exec::sorter::Location;
use crate::exec::vector::{Picked, Selection};
use crate::model::JoinKind;
use crate::options::Options;
use crate::plan::{Goal, ScanPlan};
use crate::predicate::Predicate;
use crate::{Result, ZONE_ROWS};

/// A probe of an index.
pub(super) struct Probe<'p> {
    pub(super) kind: JoinKind,
    /// The side that was built; the other is streamed.
    pub(super) side: Side,
    pub(super) input: &'p Input<'p>,
    /// What its rows have to pass.
    pub(super) filter: Option<&'p Bound>,
    pub(super) floats: &'p [bool],
    pub(super) built: &'p Built<'p>,
    pub(super) pair: &'p Predicate,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found<'b> {
    /// The rows of the streamed side that are part of the answer, ascending.
    pub(super) locations: Vec<Location>,
    /// For each pair, the number of its row in `locations`, and the row that was built, or `NONE`.
    /// Ascending by the first, then by the second.
    pub(super) pairs: Vec<(u32, u32)>,
    pub(super) rows_probed: u64,
    pub(super) charge: Charge<'b>,
}

impl Probe<'_> {
    /// Streams the probe side.
    ///
    /// # Errors
    /// As [`super::run`].
    pub(super) fn run<'b>(&self, options: &Options, budget: &'b Budget) -> Result<Found<'b>> {
        let empty =
            |charge| Found { locations: Vec::new(), pairs: Vec::new(), rows_probed: 0, charge };
        let mut all = empty(budget.charge());
        let wants_unmatched =
            self.side == Side::Right && matches!(self.kind, JoinKind::Left | JoinKind::Anti);
        if self.built.locations.is_empty() && !wants_unmatched {
            return Ok(all);
        }
        let predicate = Predicate::compile(self.filter);
        let plan = ScanPlan::new(&predicate, self.input.source, Goal::ALL, options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(self.input.source, &predicate, &tables, &plan, options);
        let pair = PairFilter::new(self.pair, self.input, self.built, self.side == Side::Left);
        let job = |morsel: &Morsel| {
            let mut found = empty(budget.charge());
            let counts = scan.run(morsel, |rows, mask| {
                self.batch(morsel.part, rows, &mask, &pair, options, &mut found)?;
                Ok(ControlFlow::Continue(()))
            })?;
            found.rows_probed = counts.rows_passed;
            Ok(found)
        };
        let few = options.tasks.parallelism().max(1) * 4;
        in_waves(options, &scan.morsels(|_| true), few, job, |found: Found<'_>| {
            let start = u32::try_from(all.locations.len()).unwrap_or(NONE);
            all.pairs.extend(found.pairs.iter().map(|(row, built)| (row + start, *built)));
            all.locations.extend(found.locations);
            all.rows_probed += found.rows_probed;
            drop(found.charge);
            super::pairs::refuse_many(all.locations.len().max(all.pairs.len()))?;
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
        let mut matched = Vec::new();
        let mut candidates: Vec<(u32, u32)> = Vec::new();
        // One match is enough where nothing is tested and only whether there is one matters.
        let is_first_enough = *self.pair == Predicate::Constant(true)
            && !self.kind.shows_right()
            && self.side == Side::Right;
        for (i, first) in (0u32..).zip(&first) {
            let mut row = *first;
            while row != NONE {
                candidates.push((i, row));
                if is_first_enough {
                    break;
                }
                row = self.built.index.next(row);
                if candidates.len() == ZONE_ROWS {
                    options.expect_time_left()?;
                    pair.keep(rows, selection, &mut candidates)?;
                    matched.append(&mut candidates);
                    found.charge.set(found.bytes() + matched.capacity() * 8)?;
                }
            }
        }
        if !candidates.is_empty() {
            pair.keep(rows, selection, &mut candidates)?;
            matched.append(&mut candidates);
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
        matched: &[(u32, u32)],
        found: &mut Found<'_>,
    ) {
        let shows_pairs = self.kind.shows_right() || self.side == Side::Left;
        let is_kept = |has_match: bool| match (self.side, self.kind) {
            (Side::Left, _) | (_, JoinKind::Inner | JoinKind::Semi) => has_match,
            (Side::Right, JoinKind::Left) => true,
            (Side::Right, JoinKind::Anti) => !has_match,
        };
        let mut rest = matched;
        let mut kept: Vec<u32> = Vec::new();
        let start = u32::try_from(found.locations.len()).unwrap_or(NONE);
        for i in 0..u32::try_from(selection.len()).unwrap_or(NONE) {
            let count = rest.iter().take_while(|(row, _)| *row == i).count();
            let (own, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = later;
            if !is_kept(count > 0) {
                continue;
            }
            let number = start.saturating_add(u32::try_from(kept.len()).unwrap_or(NONE));
            kept.push(selection.row(i as usize));
            if shows_pairs && own.is_empty() {
                found.pairs.push((number, NONE));
            } else if shows_pairs {
                found.pairs.extend(own.iter().map(|(_, built)| (number, *built)));
            }
        }
        push_locations(&mut found.locations, part, rows, Selection::Rows(&kept));
    }
}

impl Found<'_> {
    fn bytes(&self) -> usize {
        self.locations.capacity() * size_of::<Location>() + self.pairs.capacity() * 8
    }

    /// The rows that were built and have a match, or those that have none.
    pub(super) fn built_rows(&self, locations: &[Location], has_match: bool) -> Vec<Location> {
        let mut is_matched = vec![false; locations.len()];
        for (_, row) in &self.pairs {
            is_matched.get_mut(*row as usize).into_iter().for_each(|mark| *mark = true);
        }
        let marked = locations.iter().zip(is_matched);
        marked.filter(|(_, mark)| *mark == has_match).map(|(location, _)| *location).collect()
    }
}
