//! How a query would read its table, shown without running it.

use super::estimates::{Estimates, whole};
use super::{ExplainedPart, Reading};
use crate::access_path::{Access, Candidates, Goal, ScanPlan};
use crate::bind::{FirstStep, Program, Stage};
use crate::exec::aggregate::{index_aggregates, rollup_answer, stage};
use crate::exec::scan::Scan;
use crate::exec::sort::index_order_scan::IndexOrderScan;
use crate::exec::sort::zone_order;
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::{Options, Result, Source};

/// What is told of a query without running it.
pub(crate) struct Description {
    pub(crate) parts: Vec<ExplainedPart>,
    /// The step that reads the table with what it keeps, where that is less than it shows.
    pub(crate) kept: Option<Stage>,
    pub(crate) estimates: Estimates,
}

/// How each part of a source is read, what is kept of its rows, and about how many rows there are
/// where. `given` says it of a source that was not made ready.
///
/// # Errors
/// When a run cannot be read.
pub(crate) fn describe(
    program: &Program,
    source: &dyn Source,
    options: &Options,
    given: Option<u64>,
) -> Result<Description> {
    let first = program.first_step();
    let predicate = Predicate::compile(first.filter());
    let goal = match first {
        FirstStep::Groups(stage) => Goal { is_count: stage.counts_rows(), ..Goal::ALL },
        FirstStep::Rows(rows) => Goal { rows_wanted: rows.rows_read(), ..Goal::ALL },
    };
    let plan = ScanPlan::new(&predicate, source, goal, options)?;
    let tables = CodeTables::default();
    let scan = Scan::new(source, &predicate, &tables, &plan, options);
    let kept = match first {
        FirstStep::Groups(stage) => stage::kept(stage, source),
        FirstStep::Rows(_) => None,
    };
    let part = |index| {
        let part = source.part(index);
        let rows = part.row_count();
        let access = &plan.part(index).access;
        let (mut reading, mut indexes, mut estimate) = match access {
            Access::Nothing => (Reading::Nothing, Vec::new(), 0.0),
            Access::Scan => (Reading::Scan, Vec::new(), rows as f64),
            Access::Lookup(Candidates::Keys(rows)) => (Reading::Key, Vec::new(), rows.len() as f64),
            Access::Lookup(candidates) => {
                (Reading::Index, names(candidates), candidates.estimate(rows))
            }
        };
        let is_read = !matches!(reading, Reading::Nothing | Reading::Key);
        if let FirstStep::Groups(stage) = first {
            let kept = kept.as_ref().unwrap_or(stage);
            if let Some(known) = known_groups(&scan, (stage, kept), index, options)? {
                let is_same = known.reading == Reading::Counted && !is_read;
                reading = if is_same { reading } else { known.reading };
                (indexes, estimate) = match known.rollup {
                    Some((name, groups)) => (vec![name], groups as f64),
                    None => (indexes, estimate),
                };
            }
        } else if let FirstStep::Rows(rows) = first
            && !rows.order.is_empty()
        {
            if let Some(walk) = IndexOrderScan::choose(&scan, rows, index)? {
                (reading, indexes) = (Reading::Ordered, vec![walk.run.name().to_owned()]);
            } else if zone_order::is_for(&scan, rows, index) {
                reading = Reading::Zones;
            }
        }
        Ok(ExplainedPart { reading, indexes, rows, rows_estimated: whole(estimate) })
    };
    let parts = (0..source.part_count()).map(part).collect::<Result<_>>()?;
    let estimates = Estimates::of(program, (&predicate, source), given)?;
    Ok(Description { parts, kept, estimates })
}

/// How the groups of a part are known without its rows.
struct KnownGroups {
    reading: Reading,
    /// The rollup that tells them, and how many it keeps.
    rollup: Option<(String, usize)>,
}

fn known_groups(
    scan: &Scan<'_>,
    (stage, kept): (&Stage, &Stage),
    index: usize,
    options: &Options,
) -> Result<Option<KnownGroups>> {
    let is_count = stage.counts_rows();
    let part = scan.source.part(index);
    let is_counted = is_count && scan.plan.part(index).count(scan.predicate, part)?.is_some();
    if is_counted {
        return Ok(Some(KnownGroups { reading: Reading::Counted, rollup: None }));
    }
    if let Some(rollup) = rollup_answer::chosen(scan, kept, index, options)? {
        return Ok(Some(KnownGroups { reading: Reading::Rollup, rollup: Some(rollup) }));
    }
    let is_known = !is_count && index_aggregates::known(scan, stage, index, options)?.is_some();
    Ok(is_known.then_some(KnownGroups { reading: Reading::Edges, rollup: None }))
}

/// The runs that are read, each once.
fn names(candidates: &Candidates<'_>) -> Vec<String> {
    let mut names = Vec::new();
    candidates.names(&mut |name| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    });
    names
}
