//! A grouping step: a scan becomes groups, morsel by morsel, merged in order.

use std::ops::ControlFlow;

use crate::access_path::{Goal, ScanPlan};
use crate::bind::Stage;
use crate::budget::Charge;
use crate::exec::aggregate::group::{Groups, Merging, told_keys};
use crate::exec::aggregate::{index_aggregates, kept_sums, rollup_answer};
use crate::exec::input::Input;
use crate::exec::output::Materialised;
use crate::exec::scan::{Morsel, Scan, ScanCounts, WAVE_MAX, in_growing_waves};
use crate::exec::spill::Grouping;
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::{Error, ErrorKind, Options, Result, Source};
use esker_format::Room;

/// How many shares of the rows there are for each of several threads, which may take unlike long.
const SHARES: usize = 4;

/// Runs a grouping step over what the one before it made: in memory, or where the budget does not
/// allow that, in temporary files.
///
/// # Errors
/// `OverBudget` when there are no such files, and for one group that is too large.
pub(crate) fn run_any<'o>(
    input: Input<'_>,
    stage: &Stage,
    tables: &CodeTables,
    options: &'o Options,
) -> Result<(Input<'o>, ScanCounts)> {
    let source: &dyn Source = match &input {
        Input::Source(source) => *source,
        Input::Memory(groups, _) => groups,
        Input::Spilled(..) => return again(input, stage, options),
    };
    let kept = kept(stage, source);
    let stage = kept.as_ref().unwrap_or(stage);
    let predicate = Predicate::compile(stage.filter.as_ref());
    let goal = Goal { is_count: stage.counts_rows(), ..Goal::ALL };
    let plan = ScanPlan::new(&predicate, source, goal, options)?;
    let scan = Scan::new(source, &predicate, tables, &plan, options);
    let mut charge = options.memory().charge();
    let grouped = run(&scan, stage, options).and_then(|(groups, counts)| {
        charge.set(groups.byte_count())?;
        Ok((groups, counts))
    });
    match (grouped, &options.temporary) {
        (Err(e), Some(files))
            if e.kind() == ErrorKind::OverBudget
                && !stage.keys.is_empty()
                && !source.has_history() =>
        {
            drop(charge);
            let mut grouping = Grouping::new(stage, options, files)?;
            let counts = grouping.add(&scan, stage, 0)?;
            if counts.rows_passed == 0 {
                // What grouping sets have of no row lies in no file.
                let batches = Groups::new(stage).finish(options)?;
                let none = Materialised::new(&stage.types(), batches)?;
                return Ok((Input::Memory(none, options.memory().charge()), counts));
            }
            Ok((Input::Spilled(grouping.finish()?, files), counts))
        }
        (grouped, _) => {
            let (groups, counts) = grouped?;
            Ok((Input::Memory(groups, charge), counts))
        }
    }
}

/// A step with what it has to keep of the rows of a source; `None` where that is what it shows.
pub(crate) fn kept(stage: &Stage, source: &dyn Source) -> Option<Stage> {
    let of_keys = told_keys::stage(stage);
    kept_sums::stage(of_keys.as_ref().unwrap_or(stage), source).or(of_keys)
}

/// Groups what lies in temporary files.
fn again<'o>(
    input: Input<'_>,
    stage: &Stage,
    options: &'o Options,
) -> Result<(Input<'o>, ScanCounts)> {
    let (Input::Spilled(mut groups, _), Some(files)) = (input, &options.temporary) else {
        return Err(Error::new(ErrorKind::Io, "groups lie in temporary files that are gone"));
    };
    let predicate = Predicate::compile(stage.filter.as_ref());
    let mut grouping = Grouping::new(stage, options, files)?;
    let mut counts = ScanCounts::default();
    loop {
        let first = groups.taken;
        let Some(source) = groups.next_source()? else { break };
        let tables = CodeTables::default();
        let plan = ScanPlan::new(&predicate, &source, Goal::ALL, options)?;
        let scan = Scan::new(&source, &predicate, &tables, &plan, options);
        counts += grouping.add(&scan, stage, first)?;
    }
    Ok((Input::Spilled(grouping.finish()?, files), counts))
}

/// Runs a grouping step.
pub(crate) fn run<'a>(
    scan: &Scan<'a>,
    stage: &'a Stage,
    options: &Options,
) -> Result<(Materialised, ScanCounts)> {
    let mut merging = Merging::new(stage, options);
    let counts = add(&mut merging, stage, (scan, stage), options)?;
    let batches = merging.finish(options)?;
    Ok((Materialised::new(&stage.types(), batches)?, counts))
}

/// Adds the rows of a scan, by a grouping step of their own, to the groups of another one: with
/// keys and aggregates of the same types.
pub(crate) fn add<'a, 't, 'b>(
    merging: &mut Merging<'t, 'b>,
    to: &'t Stage,
    (scan, stage): (&Scan<'a>, &'a Stage),
    options: &'b Options,
) -> Result<ScanCounts> {
    let (mut counts, counts_rows) = (ScanCounts::default(), stage.counts_rows());
    // Parts that need no scan.
    let mut known: Vec<Option<(Groups<'_>, Charge<'b>)>> =
        Vec::with_capacity(scan.source.part_count());
    for index in 0..scan.source.part_count() {
        options.expect_time_left()?;
        known.push(known_groups(scan, stage, index, &mut counts, options)?);
    }
    let is_unknown = |part| known.get(part).is_none_or(Option::is_none);
    // The same rows give the same bits, whatever the plan.
    let mut morsels = match stage.rounds() {
        true => scan.fixed_morsels(is_unknown),
        false => scan.morsels(is_unknown),
    };
    let all_unknown = known.iter().all(Option::is_none);
    if !stage.rounds() && all_unknown && Groups::new(stage).may_be_of_many_rows() {
        morsels = joined(morsels, options.tasks.parallelism());
    }
    // Groups are met in the order of the rows.
    let mut known = known.into_iter().enumerate().peekable();
    // Groups of a morsel may be as large as the morsel: hold few of them at once.
    let few = options.tasks.parallelism().max(1) * 4;
    let wave_max = if stage.keys.is_empty() { WAVE_MAX } else { few };
    let job = |morsel: &Morsel| {
        let (mut groups, mut charge) = (Groups::new(stage), options.memory().charge());
        if counts_rows {
            let counts = scan.count(morsel)?;
            groups.add_rows(counts.rows_passed);
            return Ok((morsel.part, groups, counts, charge));
        }
        let room = Room::default();
        let counts = scan.run((morsel, &room), |rows, mask| {
            groups.update(rows, &mask)?;
            charge.set(groups.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((morsel.part, groups, counts, charge))
    };
    // All of them are wanted: waves need not begin small.
    in_growing_waves(options, &morsels, (wave_max, wave_max), job, |outcome| {
        let (part, other, more, charge) = outcome;
        while let Some((_, earlier)) = known.next_if(|(index, _)| *index < part) {
            if let Some(earlier) = earlier {
                let (earlier, charge) = earlier;
                merging.add(earlier.of(to), charge, options)?;
            }
        }
        counts += more;
        merging.add(other.of(to), charge, options)?;
        Ok(ControlFlow::Continue(()))
    })?;
    for (later, charge) in known.filter_map(|(_, later)| later) {
        merging.add(later.of(to), charge, options)?;
    }
    Ok(counts)
}

/// The groups of a part that are known without a scan of its rows, and what they take.
fn known_groups<'a, 'b>(
    scan: &Scan<'a>,
    stage: &'a Stage,
    part: usize,
    counts: &mut ScanCounts,
    options: &'b Options,
) -> Result<Option<(Groups<'a>, Charge<'b>)>> {
    let mut charge = options.memory().charge();
    if stage.counts_rows() {
        let counted = scan.plan.part(part).count(scan.predicate, scan.source.part(part))?;
        if let Some(passed) = counted {
            counts.rows_passed += passed as u64;
            let mut groups = Groups::new(stage);
            groups.add_rows(passed as u64);
            return Ok(Some((groups, charge)));
        }
    }
    let known = match rollup_answer::known(scan, stage, part, &mut charge, options)? {
        None if !stage.counts_rows() => index_aggregates::known(scan, stage, part, options)?,
        known => known,
    };
    Ok(known.map(|groups| (groups, charge)))
}

/// Morsels that follow each other as one, as far as there is enough to do for so many threads: the
/// fewer there are, the fewer groups are met again in another.
fn joined(morsels: Vec<Morsel>, threads: usize) -> Vec<Morsel> {
    let shares = if threads > 1 { threads * SHARES } else { 1 };
    let all: usize = morsels.iter().map(|morsel| morsel.rows.len()).sum();
    let most = all.div_ceil(shares);
    let mut joined: Vec<Morsel> = Vec::new();
    for next in morsels {
        match joined.last_mut() {
            Some(last)
                if last.part == next.part
                    && last.rows.end == next.rows.start
                    && next.rows.end - last.rows.start <= most =>
            {
                last.rows.end = next.rows.end;
            }
            _ => joined.push(next),
        }
    }
    joined
}
