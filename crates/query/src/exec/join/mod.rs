//! Joining two inputs.
//!
//! ```text
//! build side ─ scan ─ keys ──► index: key → first row, next row of the same key
//!                                │
//! probe side ─ scan ─ keys ──────┴─► candidate pairs ─ pair filter ─► pairs of row numbers
//!                                                                       │
//!                    columns of both, read only where rows have matched ┴─► rows in memory
//! ```
//!
//! * All threads make the index, each a share of its places, put pairs in order, and read columns
//!   ([`shares`]).
//! * The smaller side is built. Pairs come in the order of the left rows, then of the right ones,
//!   whichever side was built: so the answer, a sum of floats included, does not depend on that.
//! * Keys are compared as the project compares values. Where both sides have the same kind of
//!   number, or texts, the key alone decides. Else keys are the nearest floats, equal numbers have
//!   equal ones, and the exact comparison is one of the pair filter's conditions.
//! * NULL in a key matches nothing.
//! * A pair filter sees pairs that have equal keys, and those of its conditions that may fail see
//!   only pairs that pass the others.
//! * A semi or anti join makes no pairs: its answer is the left side with fewer visible rows.
//! * Where memory does not hold the side that is built, both sides are joined by files of equal
//!   keys ([`partitioned`]).
//! * Where no key tells which rows belong together, all pairs are a source that what comes next
//!   tests ([`Product`]), unless one side has so few rows that pairs are better gathered. Where a
//!   number of one side lies between two of the other, these pairs alone ([`band`]).
//! * Where few keys are built, the probe side is first read for these alone: by its index on the
//!   key, if it has one. Of more, the range leaves out rows by zone maps, and rows are first looked
//!   up in a set of the keys where that is thought to remove enough ([`narrow`]).

mod band;
mod build;
mod chunk;
mod fetched;
mod index;
mod input;
mod key;
mod matched;
mod narrow;
mod pairs;
mod partitioned;
mod plan;
mod probe;
mod product;
mod rank;
mod semi_join;
mod shares;
mod take;

pub(crate) use band::Band;
pub(crate) use input::{Input, NONE, Side};
pub(crate) use key::is_exact;
pub(crate) use plan::{JoinCounts, JoinPlan};
pub(crate) use product::{Product, Rights};
pub(crate) use rank::{PairOrder, Ranks};
pub(crate) use semi_join::SemiJoinSource;

use esker_format::{Schema, with_article};

use crate::budget::Charge;
use crate::exec::output::Materialised;
use crate::exec::sort::Location;
use crate::model::JoinKind;
use crate::predicate::Predicate;
use crate::{Error, ErrorKind, Options, Result};
use build::Built;
use narrow::Narrowed;
use pairs::Pairs;
use partitioned::Outcome;
use probe::Probe;

/// Rows that came out of a join.
#[allow(clippy::large_enum_variant, reason = "there is one of a join")]
pub(crate) enum Rows<'b> {
    /// Pairs, with the wanted columns of the left and then of the right, and the ranks of the rows
    /// that they are made of, where these are noted.
    Pairs(Materialised, Vec<Charge<'b>>, Option<Ranks>),
    /// Which rows of the left are left.
    SemiJoinSource(Vec<Location>),
}

/// Runs a join. The schema is that of the wanted columns.
///
/// # Errors
/// `OutOfRange` when a key or the pair filter cannot be computed, `OverBudget` with the number of
/// bytes needed, and what reading fails with.
pub(crate) fn run<'b>(
    plan: &JoinPlan<'_>,
    side: Side,
    schema: Schema,
    options: &'b Options,
) -> Result<(Rows<'b>, JoinCounts)> {
    if matches!(plan.kind, JoinKind::Right | JoinKind::Full) {
        let kind = with_article(plan.kind.name());
        return Err(Error::invalid(format!("{kind} join runs as other joins, not by itself")));
    }
    let floats = key::floats(&plan.left.keys, &plan.right.keys);
    let pair = Predicate::compile(plan.pair.as_ref());
    let (outcome, counts) =
        match (in_memory(plan, side, (&floats, &pair), options), &options.temporary) {
            (Err(e), Some(files)) if e.kind() == ErrorKind::OverBudget && !floats.is_empty() => {
                partitioned::run(plan, side, (&floats, &pair), (options, files))?
            }
            (done, _) => done?,
        };
    match outcome {
        Outcome::SemiJoinSource(rows) => Ok((Rows::SemiJoinSource(rows), counts)),
        Outcome::Pairs(mut pairs) => {
            let order = plan.order.as_ref();
            let ranked = order.map(|order| order.apply(&mut pairs, options)).transpose()?;
            let (rows, charge) = take::rows(plan, pairs, schema, options)?;
            let (ranks, ranks_charge) = ranked.unzip();
            let charges = ranks_charge.into_iter().chain([charge]).collect();
            Ok((Rows::Pairs(rows, charges, ranks), counts))
        }
    }
}

/// Joins with the rows of one side in memory.
fn in_memory<'b>(
    plan: &JoinPlan<'_>,
    side: Side,
    (floats, pair): (&[bool], &Predicate),
    options: &'b Options,
) -> Result<(Outcome<'b>, JoinCounts)> {
    let (build, probe) = plan.inputs(side);
    let built = Built::new(build, floats, options)?;
    let narrowed = Narrowed::new(plan, side, &built, floats, options)?;
    let filter = narrowed.filter.as_ref().or(probe.filter.as_ref());
    let probed = Probe {
        kind: plan.kind,
        side,
        input: probe,
        filter,
        among: &narrowed.among,
        floats,
        built: &built,
        pair,
    };
    let found = probed.run(options)?;
    let mut counts = JoinCounts {
        rows_built: built.locations.len() as u64,
        rows_probed: found.rows_probed,
        rows_out: 0,
        rows_removed: narrowed.rows_removed(probe, &found),
        narrowing: narrowed.shown(),
    };
    drop(narrowed);
    if !plan.kind.shows_right() {
        let kept = match side {
            Side::Right => found.locations,
            Side::Left => found.built_rows(&built.locations, plan.kind == JoinKind::Semi),
        };
        counts.rows_out = kept.len() as u64;
        return Ok((Outcome::SemiJoinSource(kept), counts));
    }
    let is_left = plan.kind == JoinKind::Left;
    let pairs = Pairs::new(found, built, side, is_left, options)?;
    counts.rows_out = pairs.len() as u64;
    Ok((Outcome::Pairs(pairs), counts))
}
