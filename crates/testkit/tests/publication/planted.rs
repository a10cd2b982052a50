//! Bugs that the models must find, each planted in a process of its own.

use std::process::{Command, Stdio};

use esker_vfs::sabotage::Bug;

/// The model that has to fail for each bug.
const BUGS: &[(Bug, &str)] = &[
    (Bug::MergeForgetsDeletes, MERGE),
    (Bug::MergeDropsSnapshotRows, MERGE),
    (Bug::IndexEntryNotRepointed, MERGE),
    (Bug::ForwardingDroppedTooEarly, MERGE),
    (Bug::ForwardingNotRegistered, MERGE),
    (Bug::RepointBeforeSwap, MERGE),
    (Bug::PublishWithoutLock, MERGE),
    (Bug::ReplacedNotRelinked, MERGE),
    (Bug::DropHorizonNotRaised, "merge_overtakes_gets"),
    (Bug::PublishedBeforeApplied, MEMORY),
    (Bug::VisibleBeforeLoadCommits, "merge_beside_a_load"),
    (Bug::FirstCommitterLoses, "transactions::transactions_that_count_with_one_row"),
    (Bug::PartsPublishedBeforeApplied, "transactions::transactions_of_two_tables_in_memory"),
    (Bug::SerializableReadsNotChecked, SKEW),
    (Bug::ValidatedBeforeTheLock, SKEW),
    (Bug::LeaderLeavesRequest, "streams::events_of_three_threads_in_memory"),
    (Bug::OutcomesOfOtherRequests, "streams::events_of_three_threads_in_memory"),
    (Bug::TailLosesWake, "streams::a_tail_in_memory_is_woken_by_every_event"),
];

const MERGE: &str = "merge_get_update_delete_reinsert_and_old_snapshots";
const MEMORY: &str = "merge_in_memory_get_update_delete_reinsert_and_old_snapshots";
const SKEW: &str = "transactions::serializable_transactions_that_change_what_the_other_has_read";

/// Schedules within which a bug must be found.
const SCHEDULES: &str = "100000";

#[test]
fn planted_bugs_are_found() {
    let only = std::env::var("ESKER_MODEL_BUG").ok();
    let mut missed = Vec::new();
    let chosen = |bug: Bug| only.as_ref().is_none_or(|only| only == bug.name());
    for (bug, model) in BUGS.iter().filter(|(bug, _)| chosen(*bug)) {
        let bug = bug.name();
        let start = std::time::Instant::now();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", model])
            .env("ESKER_SABOTAGE", bug)
            .env("ESKER_MODEL_SCHEDULES", SCHEDULES)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let after = text.matches("ESKER_MODEL_SEED").count() * super::SCHEDULES_A_SEED;
        let why = text.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        let why: String = why.unwrap_or("it passed").chars().take(120).collect();
        let seconds = start.elapsed().as_secs_f32();
        eprintln!("{bug:<32} {after:>6} schedules {seconds:>6.1} s  {why}");
        if output.status.success() {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "no model finds {missed:?}");
}
