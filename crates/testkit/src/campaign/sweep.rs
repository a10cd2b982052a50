//! Error sweeps: each call of the file system fails, once and for ever, in each way there is.

use esker_vfs::sim::{CrashChoice, Failure as CallFailure, Generator, Repeat, Simulation};

use super::{Checker, Expected, Failed, Report, quietly};
use crate::workload::{self, Config, Plan};

fn plan_of(seed: u64) -> Plan {
    let mut generator = Generator::new(seed, 61);
    Plan { operations: 12 + generator.below(14), lives: 1, close: true, ..Plan::default() }
}

fn config_of(seed: u64) -> Config {
    // The number of a commit of unknown outcome must be told from others.
    Config { clients: 0, sync: true, ..Config::draw(seed) }
}

/// How many calls a workload makes when nothing fails.
fn calls(seed: u64) -> Result<u64, String> {
    let plan = Plan { record: false, ..plan_of(seed) };
    let lives = workload::run(seed, &config_of(seed), &plan).map_err(|failure| failure.why)?;
    Ok(lives.iter().map(|life| life.calls).sum())
}

/// Sweeps one workload; every `stride`-th call fails, beginning with the `stride`-th part of the
/// seed.
#[must_use]
pub fn sweep_workload(seed: u64, stride: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let count = match quietly(|| calls(seed)) {
        Ok(count) => count,
        Err(why) => {
            report.fail(why, format!("--sweep-workload {seed}"), Vec::new());
            return report;
        }
    };
    for failure in CallFailure::ALL {
        for repeat in [Repeat::Once, Repeat::ForEver] {
            let mut number = seed % stride.max(1);
            while number <= count && report.failures.len() < 3 {
                fail_call(seed, number, failure, repeat, &mut report);
                number += stride.max(1);
            }
        }
    }
    report
}

fn fail_call(seed: u64, number: u64, failure: CallFailure, repeat: Repeat, report: &mut Report) {
    let config = config_of(seed);
    // Interruptions and short calls are nobody's business above the file system.
    let invisible = matches!(failure, CallFailure::Interrupted | CallFailure::Short);
    let plan = Plan {
        failing_call: Some((number, failure, repeat)),
        expect_faults: !invisible,
        ..plan_of(seed)
    };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let lives = workload::run(seed, &config, &plan).map_err(|failure| {
            operations = failure.operations;
            failure.why
        })?;
        let checker = Checker { config: config.clone(), crash_again: 0, lied: false };
        for life in &lives {
            report.add_faults(&life.faults);
            operations = life.operations_until(u64::MAX);
            let expected = Expected { history: &life.history, ..Expected::after(life, u64::MAX) };
            checker.check(&life.end, expected, seed, 0, report)?;
            if let Some(journal) = &life.journal {
                let mut cursor = journal.cursor();
                while cursor.advance() {}
                for choice in [CrashChoice::KeepNone, CrashChoice::Random(seed ^ number)] {
                    let image = cursor.crash_image(choice);
                    checker.check(&image, expected, seed, 0, report)?;
                }
            }
        }
        Ok(())
    });
    if let Err(why) = outcome {
        let why = format!("call {number} fails with {failure:?} {repeat:?}: {why}");
        report.fail(why, format!("--sweep-workload {seed}"), operations);
    }
}

/// Runs many short workloads twice each: everything that happens must be the same.
#[must_use]
pub fn same_twice(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let outcome = quietly(|| {
        let plan = Plan { operations: 25, record: false, ..super::plan_of(seed) };
        let config = Config::draw(seed);
        let once = || -> Result<Vec<(u64, u64)>, String> {
            let lives = workload::run(seed, &config, &plan).map_err(|failure| failure.why)?;
            let look = |life: &workload::Life| -> Result<(u64, u64), String> {
                let machine = Simulation::from_image(&life.end, seed, Default::default());
                let db = workload::open(&config, &machine, false).map_err(|e| e.to_string())?;
                db.check().map_err(|e| e.to_string())?;
                Ok((life.trace, machine.trace_hash()))
            };
            lives.iter().map(look).collect()
        };
        let (first, second) = (once()?, once()?);
        if first == second { Ok(()) } else { Err(format!("{first:x?} and then {second:x?}")) }
    });
    if let Err(why) = outcome {
        report.failures.push(Failed {
            why: format!("seed {seed} twice: {why}"),
            arguments: format!("--determinism 1 --seed {seed}"),
            operations: Vec::new(),
        });
    }
    report
}
