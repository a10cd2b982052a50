//! Planted bugs: the campaigns must catch every one.

use esker_vfs::sabotage::Campaign;

use crate::isolation::drive;
use crate::plans;
use crate::streams::stream_workload;

use super::planted::{self, CAUGHT};
use super::rollup_history::rollup_workload;
use super::{
    Report, bucket_rot_workload, bucket_workload, crash_busy_workload, crash_workload, directed,
    lying_bucket_workload, lying_workload, rot_workload, sweep_workload,
};

/// The phases that a planted bug goes through, until one finds it.
#[must_use]
pub fn run_planted(seed: u64) -> Option<String> {
    type Phase = (&'static str, u64, fn(u64) -> Report);
    let phases: [Phase; 15] = [
        ("directed scenarios", 1, directed),
        ("crash campaign of buckets", 12, bucket_workload),
        ("crash campaign of streams", 8, stream_workload),
        ("crash campaign of rollups", 4, rollup_workload),
        ("plans", 24, |seed| plans::Cases { seed, count: 1, of_rollups: false }.report()),
        ("plans of rollups", 24, |seed| plans::Cases { seed, count: 1, of_rollups: true }.report()),
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
    planted::run_all(Campaign::Crash, "--planted", only, seed)
}
