//! What a campaign has done so far.

use std::collections::BTreeMap;
use std::fmt;

use esker_vfs::sim::FaultKind;

/// The deepest crash inside a recovery that was itself begun after a crash.
pub const DEPTH_MAX: usize = 3;

/// A failure, and how to see it again.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What is wrong.
    pub why: String,
    /// The arguments of `cargo xtask crash` that repeat it.
    pub arguments: String,
    /// The last operations before it.
    pub operations: Vec<String>,
}

/// What a campaign has done so far.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Workloads run.
    pub workloads: u64,
    /// Crash images recovered and checked.
    pub images: u64,
    /// Of those, crashes inside a recovery, by depth.
    pub in_recovery: [u64; DEPTH_MAX],
    /// Images that were refused with an error, where that is right.
    pub refused: u64,
    /// Faults that fired.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Failures.
    pub failures: Vec<Failed>,
}

impl Report {
    /// Adds what another thread has done.
    pub fn add(&mut self, other: Self) {
        self.workloads += other.workloads;
        self.images += other.images;
        self.refused += other.refused;
        for (mine, theirs) in self.in_recovery.iter_mut().zip(other.in_recovery) {
            *mine += theirs;
        }
        self.add_faults(&other.faults);
        self.failures.extend(other.failures);
    }

    /// Adds a failure.
    pub fn fail(&mut self, why: String, arguments: String, operations: Vec<String>) {
        self.failures.push(Failed { why, arguments, operations });
    }

    /// Adds faults that fired.
    pub fn add_faults(&mut self, faults: &BTreeMap<FaultKind, u64>) {
        for (kind, count) in faults {
            *self.faults.entry(*kind).or_default() += count;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workloads               {}", self.workloads)?;
        writeln!(f, "crash images checked    {}", self.images)?;
        let inside: u64 = self.in_recovery.iter().sum();
        let share = inside * 1_000 / self.images.max(1);
        write!(f, "crashes in recovery     {inside} ({}.{} %): ", share / 10, share % 10)?;
        for (depth, count) in self.in_recovery.iter().enumerate() {
            write!(f, "depth {} {count}  ", depth + 1)?;
        }
        writeln!(f)?;
        if self.refused > 0 {
            writeln!(f, "refused with an error   {}", self.refused)?;
        }
        writeln!(f, "faults that fired")?;
        for (kind, count) in &self.faults {
            writeln!(f, "  {:<22}{count}", format!("{kind:?}"))?;
        }
        for failed in &self.failures {
            writeln!(f, "FAILED: {}", failed.why)?;
            writeln!(f, "  repeat: cargo xtask crash {}", failed.arguments)?;
            for operation in &failed.operations {
                writeln!(f, "    {operation}")?;
            }
        }
        write!(f, "failures                {}", self.failures.len())
    }
}
