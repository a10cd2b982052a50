//! Broken invariants: an assertion must catch every one, before a wrong answer shows it.
//!
//! Each list of invariants in the head of a module has a planted bug that breaks one of them. Short
//! workloads run until a failure says what the assertion of that invariant says.

use esker_vfs::sabotage::{Bug, Campaign};

use crate::plans;

use super::planted::{self, CAUGHT, OTHERWISE};
use super::{Report, bucket_workload, crash_busy_workload, crash_workload, directed};

/// What the assertion says that has to catch a bug.
const ASSERTIONS: &[(Bug, &str)] = &[
    (Bug::FrameNumberSkipped, "in the place of commit"),
    (Bug::FrameClaimsItself, "claims commits up to"),
    (Bug::SealAheadOfItsFrame, "its frame is that of"),
    (Bug::CheckpointHasTableTwice, "expected tables by rising number"),
    (Bug::ZoneBoundsSwapped, "zone 0 of field"),
    (Bug::SketchLeftEmpty, "the sketch of field"),
    (Bug::SpilledRowsUnsorted, "have falling row ids"),
    (Bug::RunOfAnotherTable, "rows of another segment"),
    (Bug::RunLastEntryOutOfOrder, "in the order of the run"),
    (Bug::GramsWithoutEnd, "the list of grams has no end"),
    (Bug::BitmapLacksLastRow, "the segment has"),
    (Bug::RollupLacksLastRow, "groups have"),
    (Bug::IndexEntryOfNoSegment, "an entry leads to row"),
    (Bug::ValueOffPlace, "no place for a value"),
    (Bug::ClockRunsBack, "it has run from"),
    (Bug::BackupLacksFile, "the checkpoint of the backup names it"),
    (Bug::AppendVecLengthFalls, "append-only vector: the length falls"),
    (Bug::ByteHeapEndFalls, "byte heap: the end falls"),
    (Bug::SparseChunkReplaced, "sparse words: word"),
    (Bug::RebuildLosesEntry, "index: a partition of"),
    (Bug::ReaderSlotReleasedTwice, "reader registry: slot"),
    (Bug::GroupTakesOlderCommit, "rows of commit"),
    (Bug::GroupNotRegistered, "which is not published"),
    (Bug::UniqueEntryNotEntered, "no entry of"),
    (Bug::ViewNamesRowGroupTwice, "view: row groups"),
    (Bug::DeleteBitNotSet, "the delete of row"),
    (Bug::RewriteForgetsRow, "a rewrite keeps"),
    (Bug::HorizonFalls, "a horizon falls"),
    (Bug::PinnedPlaceForgotten, "which is forgotten"),
    (Bug::LogDurableFalls, "log: durable falls"),
    (Bug::NumberSkipped, "journal: number"),
    (Bug::PublishedFalls, "watermarks: published falls"),
    (Bug::DurableFalls, "watermarks: durable falls"),
    (Bug::VisibleBeyondPublished, "watermarks: visible is"),
    (Bug::AcknowledgedUnsynced, "would be acknowledged, durable is"),
    (Bug::NamesOfOlderCommit, "names: those of commit"),
    (Bug::SequenceFalls, "given after"),
    (Bug::CheckpointCommitFalls, ", after one of "),
    (Bug::HeldSnapshotsPileUp, "held snapshots:"),
];

/// Short workloads, until the assertion that belongs to the bug that is planted is seen to fail.
#[must_use]
pub fn run_planted(seed: u64) -> Option<String> {
    type Phase = (&'static str, u64, fn(u64) -> Report);
    let phases: [Phase; 6] = [
        ("directed scenarios", 1, directed),
        ("plans", 60, |seed| plans::Cases { seed, count: 1, of_rollups: false }.report()),
        ("plans of rollups", 12, |seed| plans::Cases { seed, count: 1, of_rollups: true }.report()),
        ("crash campaign", 12, crash_workload),
        ("crash campaign of buckets", 8, bucket_workload),
        ("busy crash campaign", 8, crash_busy_workload),
    ];
    let (bug, assertion) = ASSERTIONS.iter().copied().find(|(bug, _)| bug.is_planted())?;
    let mut images = 0;
    let mut otherwise = None;
    for (name, workloads, phase) in phases {
        for number in 0..workloads {
            let report = phase(seed + number);
            images += report.images;
            // So that the parent can tell slow from hanging.
            println!("{images} images");
            let all = || report.failures.iter().flat_map(|failed| failed.why.lines());
            if let Some(line) = all().find(|line| line.contains(assertion)) {
                return Some(format!("{CAUGHT}{name} after {images} images: {}", short(line)));
            }
            otherwise = otherwise.or_else(|| all().next().map(short));
        }
    }
    let otherwise = otherwise.unwrap_or_else(|| format!("nothing of {:?}", bug.name()));
    Some(format!("{OTHERWISE}{otherwise}; expected {assertion:?}"))
}

fn short(line: &str) -> String {
    line.chars().take(200).collect()
}

/// Plants each bug in a process of its own; the number of those that no assertion caught.
///
/// # Errors
/// When the program cannot call itself, or was built without bugs to plant.
pub fn run_all(only: Option<&str>, seed: u64) -> Result<usize, String> {
    planted::run_all(Campaign::Invariants, "--broken", only, seed)
}

#[cfg(test)]
mod tests {
    use super::{ASSERTIONS, Bug, Campaign};

    /// A bug without a line here is never looked for.
    #[test]
    fn each_broken_invariant_has_one_assertion() {
        for bug in Bug::of(Campaign::Invariants) {
            let lines = ASSERTIONS.iter().filter(|(listed, _)| *listed == bug);
            assert_eq!(lines.count(), 1, "{}", bug.name());
        }
        let alien = ASSERTIONS.iter().find(|(bug, _)| bug.campaign() != Campaign::Invariants);
        assert!(alien.is_none(), "{alien:?}");
    }
}
