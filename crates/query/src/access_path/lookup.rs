//! What one sorted run answers of a conjunction: its leading fields narrow the entries, one after
//! another.
//!
//! ```text
//! run (city, age)          entries
//! city IN ('Bonn','Kiel')  [ Bonn ....... ]      [ Kiel ....... ]     level 0: points
//! AND age > 60                     [ > 60 ]              [ > 60 ]     level 1: a range, the last
//! ```
//!
//! A run of some rows only is asked where the filter lets no others pass; all its entries are an
//! answer, too. What the condition of the index implies need not be tested again.
//!
//! A level can follow only where each range of the one before holds equal values, and nothing else.

use std::ops::Range;

use esker_vfs::sabotage::Bug;

use super::implied::implies;
use super::ranges::{is_point, ranges_of};
use crate::Result;
use crate::access_path::indexable::{Member, members_of};
use crate::predicate::Predicate;
use crate::source::{Entries, KeyRange, SortedRun};

/// The most ranges of entries: past it, narrowing further would cost more than it saves.
const RANGES_MAX: usize = 4_096;

/// Ranges of so many entries are asked whether those at their ends are visible.
const MANY_ENTRIES: usize = 16;

/// Entries of a run: ranges that do not overlap, ascending.
#[derive(Clone)]
pub(crate) struct Lookup<'a> {
    pub(crate) run: &'a dyn SortedRun,
    pub(crate) ranges: Vec<Range<usize>>,
}

/// A lookup, and which of the tests it has answered.
pub(crate) struct Answered<'a> {
    pub(crate) lookup: Lookup<'a>,
    /// The tests that every entry meets.
    pub(crate) exactly: Vec<usize>,
    /// In how many leading fields all entries are equal.
    pub(crate) equal_fields: usize,
}

impl<'a> Lookup<'a> {
    /// How many entries.
    pub(crate) fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// How many of the rows are visible.
    pub(crate) fn count_visible(&self) -> Result<usize> {
        let counts = self.ranges.iter().map(|range| self.run.count_visible(range.clone()));
        counts.sum()
    }

    /// Adds the entries of other ranges of the run.
    pub(super) fn absorb(&mut self, other: Vec<Range<usize>>) {
        self.ranges.extend(other);
        self.ranges = disjoint(std::mem::take(&mut self.ranges));
    }

    /// What a run answers of a filter; `None` when that is nothing.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub(crate) fn answer(
        run: &'a dyn SortedRun,
        predicate: &Predicate,
    ) -> Result<Option<Answered<'a>>> {
        match predicate {
            Predicate::All(members) => Self::find(run, members, &members_of(members)),
            other => {
                let members = std::slice::from_ref(other);
                Self::find(run, members, &members_of(members))
            }
        }
    }

    /// What a run answers of tests that all have to be met; `None` when that is nothing.
    pub(super) fn find(
        run: &'a dyn SortedRun,
        all: &[Predicate],
        members: &[Member<'_>],
    ) -> Result<Option<Answered<'a>>> {
        let mut ranges: Vec<_> = std::iter::once(0..run.len()).collect();
        let (mut exactly, mut equal_fields) = (Vec::new(), 0);
        let filter = run.filter().map(|filter| Predicate::compile(Some(&filter.bound)));
        if let Some(filter) = &filter {
            if !is_within(all, filter) {
                return Ok(None);
            }
            exactly.extend(
                (0..all.len())
                    .filter(|at| all.get(*at).is_some_and(|member| implies(filter, member))),
            );
        }
        for level in 0..run.fields().len() {
            let found = members.iter().find_map(|member| {
                let of_field = member.tested.is(run, level).then_some(member)?;
                Some((&member.places, ranges_of(&of_field.condition, of_field.data_type)?))
            });
            let Some((places, wanted)) = found else {
                if level == 0 && filter.is_none() {
                    return Ok(None);
                }
                break;
            };
            if ranges.len().saturating_mul(wanted.len()) > RANGES_MAX && level > 0 {
                break;
            }
            let (next, is_exact) = narrowed(run, level, &ranges, &wanted)?;
            ranges = next;
            if is_exact {
                exactly.extend_from_slice(places);
            }
            if !is_exact || !wanted.iter().all(is_point) {
                break;
            }
            equal_fields += usize::from(wanted.len() == 1 && equal_fields == level);
        }
        for range in ranges.iter_mut().filter(|range| range.len() >= MANY_ENTRIES) {
            *range = run.shown(range.clone())?;
        }
        exactly.sort_unstable();
        exactly.dedup();
        let lookup = Lookup { run, ranges: disjoint(ranges) };
        Ok(Some(Answered { lookup, exactly, equal_fields }))
    }
}

/// True when what all has to be met lets no row pass that a condition leaves out.
fn is_within(all: &[Predicate], condition: &Predicate) -> bool {
    if Bug::PartialIndexUsedOutsidePredicate.is_planted() {
        return true;
    }
    match all {
        [only] => implies(only, condition),
        all => implies(&Predicate::All(all.to_vec()), condition),
    }
}

/// The entries within ranges that lie in wanted ranges of a field, and whether those alone.
fn narrowed(
    run: &dyn SortedRun,
    field: usize,
    within: &[Range<usize>],
    wanted: &[KeyRange<'_>],
) -> Result<(Vec<Range<usize>>, bool)> {
    let (mut ranges, mut is_exact) = (Vec::new(), true);
    for within in within {
        for range in wanted {
            let Entries { range, exact } = run.find(within.clone(), field, range)?;
            is_exact &= exact;
            if !range.is_empty() {
                ranges.push(range);
            }
        }
    }
    Ok((ranges, is_exact))
}

/// Ranges in order, those that touch or overlap as one.
fn disjoint(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}
