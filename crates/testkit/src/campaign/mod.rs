//! Campaigns: what the `crash` program runs.

mod bucket_damage;
mod bucket_scenarios;
mod buckets;
pub mod command;
mod computed_indexes;
mod damage;
mod directed;
mod erasures;
mod exhaustive;
mod feeds;
mod full_disk;
mod generated_fields;
mod held_snapshots;
mod images;
pub mod invariants;
mod key_updates;
mod namespaces;
mod planted;
mod reference_changes;
mod report;
mod rollup_history;
pub mod sabotage;
mod stream_dedupe;
mod stream_packing;
mod stream_requests;
mod stream_retention;
mod streams;
mod sweep;
mod table_changes;
mod temporary_tables;
mod transaction_tables;
mod unique_values;
mod view_changes;
mod watchdog;

use std::panic::{AssertUnwindSafe, catch_unwind};

use esker_vfs::sim::Generator;

use crate::workload::{self, Config, Plan};
pub use bucket_damage::bucket_rot_workload;
pub use buckets::{bucket_workload, lying_bucket_workload};
pub use damage::{lying_workload, rot_workload};
pub use directed::directed;
pub use exhaustive::{WORKLOADS, exhaust};
pub use images::{Checker, Expected, choose, crash_everywhere};
pub use report::{DEPTH_MAX, Failed, Report};
pub use sweep::{same_twice, sweep_workload};

/// How often a recovery is itself crashed, in a million.
const CRASH_AGAIN: u32 = 80_000;

/// What a workload of the campaign is like, drawn from its seed.
#[must_use]
pub fn plan_of(seed: u64) -> Plan {
    let mut generator = Generator::new(seed, 60);
    let faulty = generator.chance(250_000);
    Plan {
        operations: 20 + generator.below(60),
        lives: 1 + generator.below(3),
        faults_per_million: if faulty { generator.pick([3_000, 20_000]) } else { 0 },
        close: generator.chance(300_000),
        ..Plan::default()
    }
}

/// Runs one workload of the campaign and crashes it everywhere.
#[must_use]
pub fn crash_workload(seed: u64) -> Report {
    crash_with(seed, Config::draw(seed), &plan_of(seed))
}

/// Runs a workload in which clients, seals, merges and checkpoints meet as often as can be.
#[must_use]
pub fn crash_busy_workload(seed: u64) -> Report {
    let config = Config {
        group_rows: 8,
        small_group_bytes: 0,
        log_limit: 2_500,
        sync: true,
        background: true,
        clients: 3,
        pause_probability: 500_000,
        ..Config::draw(seed)
    };
    let plan = Plan { operations: 60, lives: 1, ..Plan::default() };
    crash_with(seed, config, &plan)
}

fn crash_with(seed: u64, config: Config, plan: &Plan) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let lives = workload::run(seed, &config, plan).map_err(|failure| {
            operations = failure.operations;
            format!("while it ran: {}", failure.why)
        })?;
        let checker = Checker { config, crash_again: CRASH_AGAIN, lied: false };
        for (number, life) in lives.iter().enumerate() {
            report.add_faults(&life.faults);
            crash_everywhere(&checker, life, seed, 1, &mut report).map_err(|failure| {
                operations = failure.operations;
                format!("life {number}: {}", failure.why)
            })?;
        }
        Ok(())
    });
    if let Err(why) = outcome {
        report.fail(why, format!("--workload {seed}"), operations);
    }
    report
}

/// Runs something that may panic; a panic is a failure with its message.
///
/// # Errors
/// What it returns, or the message of the panic.
pub fn quietly<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}
