//! Planted bugs: the campaigns must catch every one.
//!
//! The program calls itself once per bug, with the environment variable that plants it, since a
//! planted bug may hang or abort the process that has it.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::isolation::drive;
use crate::plans;

use super::watchdog::Watchdog;
use super::{
    Report, bucket_rot_workload, bucket_workload, crash_busy_workload, crash_workload, directed,
    lying_bucket_workload, lying_workload, rot_workload, sweep_workload,
};

/// Every planted bug: its name, and what it does.
pub const BUGS: &[(&str, &str)] = &[
    ("skip_log_fsync", "the log is not synced"),
    ("skip_log_dir_fsync", "the directory is not synced after a new log file"),
    ("ack_before_sync", "a commit is acknowledged before the sync"),
    ("torn_tail_accepted", "a frame with a wrong checksum is replayed"),
    ("midlog_rot_as_torn_tail", "a hole below proven commits is taken for a torn tail"),
    ("void_frame_resurrected", "frames of an ended epoch come back"),
    ("stale_epoch_accepted", "an epoch that was never finished counts"),
    ("reserve_used_by_inserts", "commits that only add data use the log's reserve"),
    ("reserve_not_refilled", "the log's reserve is not filled again"),
    ("append_after_short_write", "a batch is repeated behind its torn first attempt"),
    ("checksum_not_bound_to_position", "a block of a segment is valid anywhere"),
    ("recovery_trusts_page_cache", "recovery does not rewrite what may be in memory only"),
    ("durable_through_too_high", "frames claim commits durable that are not yet"),
    ("poison_ignored", "a failed sync is taken for a success"),
    ("skip_segment_fsync", "a segment is named before it is synced"),
    ("skip_segment_dir_fsync", "a segment is named before its name is durable"),
    ("skip_checkpoint_fsync", "a checkpoint is named before it is synced"),
    ("skip_checkpoint_dir_fsync", "a checkpoint is named before its name is durable"),
    ("checkpoint_ahead_of_log", "a checkpoint claims commits that it does not hold"),
    ("unnamed_checkpoint_trusted", "a checkpoint is relied on that no frame names"),
    ("log_removed_before_checkpoint", "old log files go before the checkpoint is named"),
    ("publish_before_durable", "a merge is swapped in, and its inputs go, before its frame"),
    ("lost_tombstone", "replay forgets deletes of sealed rows"),
    ("seal_forgets_late_deletes", "a sealed segment lacks deletes that a checkpoint took in"),
    ("sealed_rows_replayed", "replay brings sealed rows back beside their segment"),
    ("merge_forgets_deletes", "a merge forgets deletes that came meanwhile"),
    ("merge_drops_snapshot_rows", "a merge drops what a snapshot still sees"),
    ("versions_of_newer_snapshots_dropped", "a merge asks only what the oldest snapshot sees"),
    ("dropped_version_cuts_chain", "a version that is dropped does not lead to the one before"),
    ("newest_dead_version_dropped", "a merge drops what tells that a key was changed"),
    ("newest_dropped_cuts_chain", "a merge drops a newest version and forgets what it leads to"),
    ("index_entry_not_repointed", "a merge leaves index entries behind"),
    ("forwarding_dropped_too_early", "old locations stop resolving while they are in use"),
    ("replaced_not_relinked", "newer versions go on naming rows that a merge took elsewhere"),
    ("places_not_led_on", "who remembers where rows are is not told where a merge took them"),
    ("visible_before_load_commits", "rows of a load are seen before it commits"),
    ("load_without_conflict_check", "a load does not look for keys that are taken"),
    ("aborted_load_stays_indexed", "the index keeps the keys of a load that was given up"),
    ("drop_before_durable", "the files of a dropped table go before the drop is durable"),
    ("refusal_before_durable", "a refusal tells of commits that may yet be lost"),
    ("row_ids_reused", "a checkpoint forgets how many row ids have been given out"),
    ("reads_see_unacknowledged", "reads see commits that are not durable"),
    ("rows_replayed_by_newest_schema", "replay reads rows by a schema that is younger than they"),
    ("alter_keeps_group_open", "rows of two schemas go to one group"),
    ("old_schema_accepted", "rows that were prepared for an older schema are written"),
    ("snapshot_sees_new_schema", "a snapshot has the fields of now"),
    ("merge_forgets_dropped_fields", "a merge leaves out fields that a snapshot still has"),
    ("schemas_forgotten_too_early", "a merge forgets the schemas of older snapshots"),
    ("truncation_not_replayed", "replay does not empty a truncated table"),
    ("truncate_before_durable", "the files of a truncated table go before that is durable"),
    ("defaults_lost_in_checkpoint", "a checkpoint forgets the defaults of fields"),
    ("indexes_lost_in_checkpoint", "a checkpoint forgets indexes"),
    ("index_change_not_replayed", "replay ignores that an index was created or dropped"),
    ("check_added_untested", "a new check is not tested on the rows there are"),
    ("backup_before_durable", "a backup holds commits that are not durable"),
    ("backup_takes_unfinished_loads", "a backup has rows of a load that has not committed"),
    ("upsert_without_checks", "a row that replaces another is not tested by the checks"),
    ("removed_before_durable", "files go when an Async drop or truncation returns"),
    ("backup_copy_not_synced", "a backup is done before its files are durable"),
    ("value_file_unsynced", "a frame names a value before the value is synced"),
    ("value_file_name_unsynced", "a frame names a value before its file's name is durable"),
    ("value_file_removed_too_early", "a value file goes while something refers to it"),
    ("sequence_not_logged", "values of a sequence are given out that no frame speaks of"),
    ("run_named_before_synced", "a run of an index gets its name before it is durable"),
    ("run_ignores_descending", "a run sorts descending fields the wrong way"),
    ("run_not_sorted", "a run is in the order of its rows"),
    ("run_counts_dead_rows", "a count by a run takes rows that are gone"),
    ("run_trusts_cut_values", "a run takes the starts of long texts for the whole"),
    ("run_forgets_nulls", "a run takes NULLs for values"),
    ("key_lookup_stops_early", "of several keys that are looked up the first is found"),
    ("key_order_ignores_overlap", "zones are read for an order as if none overlapped"),
    ("trigram_misses_rows_after_merge", "a merged segment has the grams of an older one"),
    ("bitmap_not_rebuilt_after_merge", "a merged segment has the bitmaps of an older one"),
    ("bitmap_forgets_nulls", "a bitmap index leaves out the rows with NULL"),
    ("unique_not_checked_in_commit", "one commit may give a unique value to two rows"),
    ("unique_not_checked_in_loads", "a load may give a unique value that a row has"),
    ("unique_not_checked_in_spill", "a large commit may give a unique value that a row has"),
    ("unique_not_repointed", "a merge leaves the entries of unique values behind"),
    ("merge_ignores_key_order", "a merged segment is not in the order of the keys"),
    ("load_ignores_key_order", "a loaded segment is not in the order of the keys"),
    ("overlay_order_wrong", "a walk over several segments does not give the next key"),
    ("range_trusts_cut_keys", "a range takes the starts of long keys for the whole"),
    ("lines_read_from_their_first_row", "key and value are those of an earlier row"),
    ("time_not_logged", "an expired entry is back when the clock has gone back"),
    ("purge_ignores_snapshots", "a merge drops what had not expired for a snapshot"),
    ("purge_cuts_chains", "a merge drops what leads a snapshot to an older version"),
    ("ttl_by_wall", "times to live go by the wall clock"),
    ("offset_back_without_ending", "a date that is taken back brings back what had expired"),
    ("boot_id_ignored", "boot time is compared with that of another boot"),
    ("retention_by_unconfirmed_time", "rows are destroyed by a date that is not confirmed"),
    ("walk_skips_damage", "a walk over a bucket leaves out what it cannot read"),
    ("expired_key_not_replaced", "a new entry leaves the expired one of its key where it is"),
    ("expired_back_by_alteration", "what has expired is back when rows expire by another field"),
    ("count_takes_expired_rows", "a count takes rows that have expired"),
    ("batch_frame_has_one_table", "the log has the changes of one bucket of a batch"),
    ("large_commit_replays_one_table", "of a large commit of several tables one is replayed"),
    ("large_commit_replays_no_rows", "of a large commit only what became segments is replayed"),
    ("first_committer_loses", "a transaction overwrites what others have committed since"),
    ("serializable_reads_not_checked", "what a transaction has read may have changed"),
    ("savepoint_keeps_changes", "what was changed since a savepoint stays"),
    ("undone_rows_stay_in_queries", "a query shows what went with a savepoint"),
    (
        "spilled_rows_not_validated",
        "rows that a transaction wrote to files overwrite those of others",
    ),
    ("undone_rows_stay_in_files", "what went with a savepoint stays where it was written"),
    ("transaction_sees_replaced_rows", "a query shows rows that the transaction has replaced"),
    ("transaction_forgets_deletes", "a commit leaves the rows that the transaction removed"),
    ("definitions_outlive_conflict", "tables of a refused transaction stay in the catalogue"),
    ("rows_logged_by_old_schema", "rows of a table that is altered with them are logged wrongly"),
    ("drop_within_commit_not_replayed", "replay ignores that a transaction dropped a table"),
    ("rename_within_commit_not_replayed", "replay ignores that a transaction renamed a table"),
    ("definitions_outlive_savepoint", "tables that a transaction goes back on stay"),
    ("replay_finds_rows_by_row_order", "replay searches rows by number where they lie by key"),
    ("durability_of_a_write_ignored", "a write is not durable though it was asked to be"),
    ("operators_stop_early", "of several operators the last is left out"),
    ("operators_without_checks", "a row that operators make is not tested by the checks"),
    ("value_reference_not_repointed", "a value is moved, and its row still names the old place"),
];

/// A child that prints nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(100);
/// A bug's process is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// What the child prints before the name of the check.
const CAUGHT: &str = "CAUGHT by ";

/// The phases that a planted bug goes through, until one finds it.
#[must_use]
pub fn run_planted(seed: u64) -> Option<String> {
    type Phase = (&'static str, u64, fn(u64) -> Report);
    let phases: [Phase; 12] = [
        ("directed scenarios", 1, directed),
        ("crash campaign of buckets", 12, bucket_workload),
        ("plans", 24, |seed| plans::report(seed, 1)),
        ("histories", 8, drive::report),
        ("crash campaign", 60, crash_workload),
        ("busy crash campaign", 80, crash_busy_workload),
        ("rot", 12, rot_workload),
        ("rot of buckets", 6, bucket_rot_workload),
        ("error sweep", 8, |seed| sweep_workload(seed, 7)),
        ("lying disk", 20, lying_workload),
        ("buckets on a lying disk", 12, lying_bucket_workload),
        ("longer crash campaign", 600, |seed| crash_workload(seed + 1_000)),
    ];
    let mut images = 0;
    for (name, workloads, phase) in phases {
        for number in 0..workloads {
            let report = phase(seed + number);
            images += report.images;
            // So that the parent can tell slow from hanging.
            println!("{images} images");
            if let Some(failed) = report.failures.first() {
                let why = failed.why.lines().next().unwrap_or_default();
                let why: String = why.chars().take(160).collect();
                return Some(format!("{CAUGHT}{name} after {images} images: {why}"));
            }
        }
    }
    None
}

/// Plants each bug in a process of its own; the number of those that were missed.
///
/// # Errors
/// When the program cannot call itself, or was built without bugs to plant.
pub fn run_all(only: Option<&str>, seed: u64) -> Result<usize, String> {
    if !cfg!(feature = "sabotage") {
        return Err("build with --features sabotage".to_owned());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let chosen = BUGS.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let (mut missed, mut count) = (0, 0);
    for (name, what) in chosen {
        count += 1;
        let mut command = Command::new(&program);
        command.arg("--planted").arg("--seed").arg(seed.to_string()).env("ESKER_SABOTAGE", name);
        let outcome = output_within(&mut command, PATIENCE)?;
        let caught = match &outcome {
            Some(text) => text.lines().find(|line| line.starts_with(CAUGHT)).map(str::to_owned),
            None => Some(format!("{CAUGHT}the watchdog: it hangs")),
        };
        match caught {
            Some(line) => println!("{name:<32} {line}"),
            None => {
                missed += 1;
                println!("{name:<32} MISSED: {what}");
            }
        }
    }
    println!("planted bugs {count}, caught {}, missed {missed}", count - missed);
    Ok(missed)
}

/// What a process printed; `None` when it printed nothing for too long and had to be killed.
#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn output_within(command: &mut Command, patience: Duration) -> Result<Option<String>, String> {
    let null = std::process::Stdio::null();
    let command = command.stdout(std::process::Stdio::piped()).stderr(null);
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let out = child.stdout.take().ok_or("no pipe")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    let mut text = String::new();
    let mut watchdog = Watchdog::new(child.id(), patience);
    let hangs = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(line) => {
                text.push_str(&format!("{line}\n"));
                watchdog.progress();
            }
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) if watchdog.hangs() => break true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    if hangs {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    reader.join().map_err(|_| "the reader panicked")?;
    if !hangs && status.code().is_none() {
        text.push_str(&format!("{CAUGHT}an abort: {status}\n"));
    }
    Ok((!hangs).then_some(text))
}
