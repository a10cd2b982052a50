//! How the rows that pass a filter are found: part by part, by testing all rows or by sorted runs.
//!
//! ```text
//! filter ─ find ─ candidates + residual ─ cost ─ Scan | Nothing | Lookup
//!           │                              │
//!        the runs of the part       entries to read against rows to test
//! ```
//!
//! * Every decision is about one part, and a part without runs is scanned: which parts have runs
//!   changes how long a query takes, never its answer.
//! * Candidates are a superset of the rows that pass. What they were not exactly found by is the
//!   *residual* filter, and is tested row by row, with what is visible.
//! * A test that may fail is never answered by a run, and sees only rows that pass all others of
//!   the same AND, as in a scan: so whether a query fails does not depend on the plan.
//! * A run of some rows only is asked where the filter implies its condition, which [`implied`]
//!   decides; elsewhere it is as if it were not there.
//! * A negated condition is what lies outside its range among the values; NULL passes neither. No
//!   complement of candidates is ever taken.

mod bitmaps;
mod candidates;
pub(crate) mod cardinality;
mod cost;
mod grams;
mod implied;
mod indexable;
mod keys;
mod lookup;
mod ranges;
#[cfg(test)]
mod tests;

use super::Result;
use crate::options::{IndexUse, Options};
use crate::predicate::Predicate;
use crate::source::{Fragment, Source};
pub(crate) use candidates::Candidates;
use candidates::Found;
pub(crate) use implied::implies;
pub(crate) use indexable::DocumentPath;
pub(crate) use lookup::Lookup;

/// What is wanted of the rows that pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Nothing but their number.
    pub(crate) is_count: bool,
    /// After how many of them, in the order of the rows, the rest does not matter.
    pub(crate) rows_wanted: usize,
}

/// How a filter is answered in each part of a source.
pub(crate) struct ScanPlan<'a> {
    parts: Vec<PartPlan<'a>>,
    /// The plan of a part that is not known.
    other: PartPlan<'a>,
}

/// How a filter is answered in one part.
pub(crate) struct PartPlan<'a> {
    pub(crate) access: Access<'a>,
    /// What rows that are accessed still have to pass, when it is not the whole filter.
    residual: Option<Predicate>,
}

/// Which rows of a part are looked at.
pub(crate) enum Access<'a> {
    /// All of them.
    Scan,
    /// None: no row can pass.
    Nothing,
    /// Candidates.
    Lookup(Candidates<'a>),
}

impl Goal {
    /// All rows that pass.
    pub(crate) const ALL: Self = Self { is_count: false, rows_wanted: usize::MAX };
}

impl<'a> ScanPlan<'a> {
    /// Chooses.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn new(
        predicate: &Predicate,
        source: &'a dyn Source,
        goal: Goal,
        options: &Options,
    ) -> Result<Self> {
        if let Some(plan) = keys::plan(predicate, source, goal, options)? {
            return Ok(plan);
        }
        let parts = (0..source.part_count()).map(|i| source.part(i));
        let mut found = Vec::with_capacity(source.part_count());
        for part in parts.clone() {
            found.push(find(predicate, part, options)?);
        }
        let expected = parts.clone().zip(&found).map(|(part, found)| match found {
            Some(found) => found.candidates.estimate(part.row_count()),
            None => part.row_count() as f64,
        });
        let share = share_read(goal, expected.sum());
        let plan = |(part, found)| chosen(predicate, part, found, (goal, share), options);
        Ok(Self::of(parts.zip(found).map(plan).collect()))
    }

    fn of(parts: Vec<PartPlan<'a>>) -> Self {
        Self { parts, other: PartPlan { access: Access::Scan, residual: None } }
    }

    /// How one part is answered.
    pub(crate) fn part(&self, index: usize) -> &PartPlan<'a> {
        // default: parts that were not planned are answered alike
        self.parts.get(index).unwrap_or(&self.other)
    }
}

/// The share of the rows that a scan looks at, where so many are expected to pass: with a limit it
/// ends early, the earlier the more pass.
fn share_read(goal: Goal, expected: f64) -> f64 {
    (goal.rows_wanted as f64 / expected.max(1.0)).min(1.0)
}

/// What the runs of a part say of a filter, where it has any that may be used.
fn find<'a>(
    predicate: &Predicate,
    part: &'a dyn Fragment,
    options: &Options,
) -> Result<Option<Found<'a>>> {
    if part.run_count() == 0 || options.indexes == IndexUse::Never {
        return Ok(None);
    }
    candidates::find(predicate, part, options.limits())
}

/// The cheapest way to answer a filter in a part.
fn chosen<'a>(
    predicate: &Predicate,
    part: &'a dyn Fragment,
    found: Option<Found<'a>>,
    (goal, share): (Goal, f64),
    options: &Options,
) -> PartPlan<'a> {
    let scan = PartPlan { access: Access::Scan, residual: None };
    if *predicate == Predicate::Constant(false) || part.row_count() == 0 {
        return PartPlan { access: Access::Nothing, residual: None };
    }
    let Some(Found { candidates, residual }) = found else { return scan };
    if candidates.count_max() == 0 {
        return PartPlan { access: Access::Nothing, residual: None };
    }
    let is_answer = residual == Predicate::Constant(true) && candidates.is_counted(part);
    let is_cheaper = || {
        let rows_here = part.row_count();
        let estimate = candidates.estimate(rows_here);
        let entries = candidates.entry_count();
        cost::lookup_ns(entries, estimate, rows_here, residual.weight())
            < cost::scan_ns(rows_here, predicate.weight()) * share
    };
    if options.indexes == IndexUse::Always || (goal.is_count && is_answer) || is_cheaper() {
        let residual = Some(residual);
        return PartPlan { access: Access::Lookup(candidates), residual };
    }
    scan
}

impl PartPlan<'_> {
    /// What rows that are accessed have to pass.
    pub(crate) fn residual<'p>(&'p self, whole: &'p Predicate) -> &'p Predicate {
        // default: without a part of its own all of it is left
        self.residual.as_ref().unwrap_or(whole)
    }

    /// How many rows pass, when that is known without reading a row.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn count(&self, whole: &Predicate, part: &dyn Fragment) -> Result<Option<usize>> {
        match &self.access {
            Access::Nothing => Ok(Some(0)),
            Access::Scan if *whole == Predicate::Constant(true) => Ok(part.visible_count()),
            Access::Lookup(candidates) if *self.residual(whole) == Predicate::Constant(true) => {
                candidates.count_visible(part)
            }
            _ => Ok(None),
        }
    }
}
