//! Crashes of the workloads on buckets.

use std::sync::Arc;

use esker::{Database, Moment as Now};
use esker_vfs::sim::{
    CrashChoice, CrashImage, FaultKind, FaultPlan, Generator, Options as SimOptions, Simulation,
};

use super::images::{choose, says_damaged};
use super::report::{DEPTH_MAX, Report};
use super::{CRASH_AGAIN, quietly};
use crate::buckets::{self, Life, Moments, model::State};
use crate::oracle;
use crate::workload::{self, Config, Failure};

/// What a client cannot see before the crash.
const LYING_SYNCS: [FaultKind; 2] = [FaultKind::LyingSync, FaultKind::LyingSyncDirectory];

/// What is known of the crash that an image comes from.
#[derive(Clone)]
pub(super) struct Crash<'a> {
    pub life: &'a Life,
    /// The I/Os that had been done.
    pub ios: u64,
    /// The latest that it can have been since.
    pub high: Now,
    /// What an open has found since, and the least commit that one has found: no later crash
    /// brings back more, whatever numbers maintenance has given again since.
    pub found: Option<(u64, Arc<State>)>,
    /// Whether the disk lied: then a prefix may be too short, and an error is an answer.
    pub lied: bool,
}

impl Crash<'_> {
    fn candidates(&self, commit: u64) -> Vec<Arc<State>> {
        match &self.found {
            Some((at, state)) if commit >= *at => vec![Arc::clone(state)],
            _ => self.life.history.candidates(commit),
        }
    }

    /// The least time that an open which recovers a commit must go on from.
    fn told_us(&self, commit: u64) -> i64 {
        let of_life = self.found.as_ref().map_or(commit, |(found, _)| commit.min(*found));
        self.life.history.told_us(of_life)
    }

    /// What is known once an open has found a state after a commit.
    fn opened(&self, commit: u64, found: Arc<State>, now: Now) -> Self {
        let least = self.found.as_ref().map_or(commit, |(least, _)| commit.min(*least));
        // What recovery has answered is durable; a crash within it may come before that.
        let high = buckets::latest(self.high, now);
        Self { found: Some((least, found)), high, ..self.clone() }
    }
}

/// Runs one workload of buckets and crashes it everywhere.
#[must_use]
pub fn bucket_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let config = buckets::config(seed);
        buckets::run_in_memory(seed, &config).map_err(|failure| {
            operations = failure.operations;
            format!("in memory: {}", failure.why)
        })?;
        let lives = buckets::run(seed, &config).map_err(|failure| {
            operations = failure.operations;
            format!("while it ran: {}", failure.why)
        })?;
        for (number, life) in lives.iter().enumerate() {
            crash_everywhere(&config, life, (seed, false), &mut report).map_err(|failure| {
                operations = failure.operations;
                format!("life {number}: {}", failure.why)
            })?;
        }
        Ok(())
    });
    if let Err(why) = outcome {
        report.fail(why, format!("--bucket-workload {seed}"), operations);
    }
    report
}

/// Runs one workload of buckets on a disk that lies, and crashes it everywhere.
#[must_use]
pub fn lying_bucket_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let config = buckets::config(seed);
        let plan = FaultPlan::swarm(seed, &LYING_SYNCS, 200_000);
        let life = buckets::run_lying(seed, &config, plan).map_err(|failure| {
            operations = failure.operations;
            format!("while it ran: {}", failure.why)
        })?;
        report.add_faults(&life.faults);
        crash_everywhere(&config, &life, (seed, true), &mut report).map_err(|failure| {
            operations = failure.operations;
            failure.why
        })
    });
    if let Err(why) = outcome {
        report.fail(why, format!("--lying-bucket-workload {seed}"), operations);
    }
    report
}

fn crash_everywhere(
    config: &Config,
    life: &Life,
    (seed, lied): (u64, bool),
    report: &mut Report,
) -> Result<(), Failure> {
    let Some(journal) = &life.journal else { return Ok(()) };
    let mut generator = Generator::new(seed, 93);
    let mut cursor = journal.cursor();
    loop {
        if cursor.changed() {
            let choice = choose(&mut generator);
            let image = cursor.crash_image(choice);
            let ios = cursor.position();
            let crash = Crash { life, ios, high: life.high(ios), found: None, lied };
            let next = generator.next_u64();
            check(config, &image, &crash, (next, 0), report).map_err(|why| {
                let why = format!("crash after {} ({choice:?}): {why}", cursor.describe());
                Failure { why, operations: life.operations_until(cursor.position()) }
            })?;
        }
        if !cursor.advance() {
            return Ok(());
        }
    }
}

/// Opens an image, compares what is there, and crashes that again now and then.
fn check(
    config: &Config,
    image: &CrashImage,
    crash: &Crash<'_>,
    (seed, depth): (u64, usize),
    report: &mut Report,
) -> Result<(), String> {
    report.images += 1;
    let mut generator = Generator::new(seed, 94);
    let options = SimOptions { record: true, pause_probability: 100_000, ..SimOptions::default() };
    let machine = Simulation::from_image(image, seed, options);
    buckets::wake(&machine, crash.high, &mut generator);
    let db = match workload::open(config, &machine, false) {
        Ok(db) => db,
        Err(_) if crash.lied => {
            report.refused += 1;
            return Ok(());
        }
        Err(e) => return Err(format!("open: {}", oracle::said(&e))),
    };
    let open_ios = machine.io_count();
    let commit = oracle::recovered_commit(&db, false)?;
    let promised = crash.life.promised(crash.ios);
    if commit < promised && !crash.lied {
        return Err(format!("recovered to commit {commit}, promised {promised}"));
    }
    let outcome = compare((&db, &machine), crash, commit, &mut generator)
        .map_err(|why| format!("after commit {commit}: {why}"))
        .and_then(|found| sound(&db).map(|()| found));
    let (found, now) = match outcome {
        Ok(found) => found,
        Err(why) if crash.lied && says_damaged(&why) => {
            report.refused += 1;
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    let left = machine.crash_image(CrashChoice::Random(generator.next_u64()));
    let journal = machine.journal();
    machine.crash_after_io(Some(0));
    drop(db);
    machine.kill_tasks();
    if crash.lied || depth >= DEPTH_MAX || !generator.chance(CRASH_AGAIN) {
        return Ok(());
    }
    let again = crash.opened(commit, found, now);
    let next = (generator.next_u64(), depth + 1);
    check(config, &left, &again, next, report).map_err(|why| format!("opened again: {why}"))?;
    let Some(journal) = journal else { return Ok(()) };
    let position = generator.below(open_ios + 1);
    let mut cursor = journal.cursor();
    while cursor.position() < position && cursor.advance() {}
    if let Some(count) = report.in_recovery.get_mut(depth) {
        *count += 1;
    }
    let image = cursor.crash_image(choose(&mut generator));
    check(config, &image, &again, next, report)
        .map_err(|why| format!("crash again after {}: {why}", cursor.describe()))
}

/// Nothing is wrong with the files.
fn sound(db: &Database) -> Result<(), String> {
    let report = db.check().map_err(|e| format!("check: {}", oracle::said(&e)))?;
    report.problems.first().map_or(Ok(()), |problem| Err(format!("check finds {problem:?}")))
}

/// The state that the database holds, and what time it is there.
pub(super) fn compare(
    (db, machine): (&Database, &Simulation),
    crash: &Crash<'_>,
    commit: u64,
    generator: &mut Generator,
) -> Result<(Arc<State>, Now), String> {
    let now = match buckets::time_of(db)? {
        Some(now) => now,
        None if crash.candidates(commit).iter().any(|state| !state.is_ready) => {
            return Ok((Arc::default(), Now::FIRST));
        }
        None => return Err("the clock is gone".to_owned()),
    };
    let told_us = crash.told_us(commit);
    if now.elapsed_us < told_us {
        return Err(format!("{now:?}, and the log was told {told_us}"));
    }
    let mut outcome = Err("no state may hold".to_owned());
    // Of two that look the same, since what was put has expired, the later one says more.
    for state in crash.candidates(commit).into_iter().rev() {
        let now = buckets::clear_of_ends(db, machine, &state)?;
        let moments = Moments::until(now, crash.high);
        outcome = buckets::compare(db, &state, moments, generator).map(|_| (state, now));
        // Another state would differ before the damage is met.
        let is_damaged = |why: &String| crash.lied && says_damaged(why);
        if outcome.as_ref().map_or_else(is_damaged, |_| true) {
            break;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::model::History;

    #[test]
    fn buckets_on_a_disk_that_lies_are_refused_or_a_prefix() {
        let report = lying_bucket_workload(5);
        assert!(report.failures.is_empty() && report.images > 20, "{report}");
    }

    #[test]
    fn a_workload_of_buckets_ends_well() {
        let report = bucket_workload(8);
        assert!(report.failures.is_empty() && report.images > 50, "{report}");
    }

    /// Maintenance of the first open gives numbers again that changes had which are lost.
    #[test]
    fn a_second_open_does_not_bring_back_the_time_that_the_first_had_lost() {
        let mut history = History::opened(&Arc::default(), 3, 10, Arc::default());
        let state = |is_ready| Arc::new(State { is_ready, ..State::default() });
        history.push((3, 5), 20, state(false));
        history.push((5, 8), 70, state(true));
        let life = Life { history: Arc::new(history), ..Life::default() };
        let crash = Crash { life: &life, ios: 0, high: Now::FIRST, found: None, lied: false };
        let at = |us| Now { elapsed_us: us, date_us: us };
        let once = crash.opened(5, state(false), at(21));
        let twice = once.opened(9, state(false), at(22));
        assert_eq!((once.told_us(9), twice.told_us(9)), (20, 20));
        assert_eq!((crash.told_us(9), crash.opened(9, state(true), at(71)).told_us(4)), (70, 10));
        assert_eq!(twice.candidates(8), [state(false)]);
        assert_eq!(twice.high, at(22));
    }
}
