//! The executor: morsels of rows in parallel, batches of at most 8,192 rows, encoded columns.
//!
//! ```text
//! source ─ scan ─ mask ─┬─ groups ─ rows in memory ─ scan ─ …
//!    zones filter       └─ projection: sorted keys, then columns of the rows shown
//! ```
//!
//! One stage of groups for GROUP BY, one for DISTINCT.

mod after;
mod aggregate;
mod budget;
mod description;
mod edges;
mod evaluate;
mod filter;
mod gather;
mod group;
mod mask;
mod materialised;
mod output;
mod profile;
mod project;
mod row_order;
mod row_set;
mod rows;
mod scan;
mod sorter;
mod stage;
mod vector;
mod walk;

use esker_vfs::Clock;

pub(crate) use after::After;
pub(crate) use description::describe;
pub(crate) use evaluate::{Unit, evaluate, fold};
pub(crate) use materialised::{Materialised, slice};
pub(crate) use profile::{Profile, Step, projection_name, stage_name};
pub(crate) use project::{Sink, collect};
pub(crate) use rows::Rows;
pub(crate) use vector::{Lanes, Selection};

use crate::Result;
use crate::bind::Program;
use crate::options::Options;
use crate::plan::{Goal, ScanPlan};
use crate::predicate::Predicate;
use crate::source::Source;
use budget::Budget;
use filter::CodeTables;
use scan::{Scan, ScanCounts};

/// Runs a program and hands its rows to `sink`.
pub(crate) fn run(
    program: &Program,
    source: &dyn Source,
    options: &Options,
    sink: Sink<'_>,
) -> Result<Profile> {
    let budget = Budget::new(options.memory_budget_bytes);
    let clock: &dyn Clock = &*options.clock;
    let mut profile = Profile::start(clock);
    let tables = CodeTables::default();
    let mut previous: Option<Materialised> = None;
    for stage in &program.stages {
        let predicate = Predicate::compile(stage.filter.as_ref());
        let source: &dyn Source = previous.as_ref().map_or(source, |m| m as &dyn Source);
        let started = clock.monotonic_ns();
        let goal = Goal { is_count: stage.counts_rows(), ..Goal::ALL };
        let plan = ScanPlan::new(&predicate, source, goal, options)?;
        let scan = Scan::new(source, &predicate, &tables, &plan, options);
        let (groups, counts) = stage::run(&scan, stage, options, &budget)?;
        let rows_out = groups.row_count() as u64;
        let elapsed_ns = clock.monotonic_ns() - started;
        profile.push(Step { counts, rows_out, elapsed_ns });
        // Tables are kept by address, and the source they are of is about to go.
        tables.clear();
        previous = Some(groups);
    }
    let projection = &program.projection;
    let predicate = Predicate::compile(projection.filter.as_ref());
    let source: &dyn Source = previous.as_ref().map_or(source, |m| m as &dyn Source);
    let started = clock.monotonic_ns();
    let goal = Goal { rows_wanted: projection.rows_read(), ..Goal::ALL };
    let plan = ScanPlan::new(&predicate, source, goal, options)?;
    let wanted = projection.after.as_ref().and_then(|after| after.condition(&projection.order));
    let wanted = wanted.as_ref().map(|condition| Predicate::compile(Some(condition)));
    let scan = Scan::new(source, &predicate, &tables, &plan, options).pruned_by(wanted.as_ref());
    let mut rows_out = 0u64;
    let counts: ScanCounts = project::run(&scan, projection, options, &budget, &mut |batch| {
        rows_out += batch.len() as u64;
        sink(batch)
    })?;
    let elapsed_ns = clock.monotonic_ns() - started;
    profile.push(Step { counts, rows_out, elapsed_ns });
    profile.finish(clock);
    Ok(profile)
}
