//! Random workloads on buckets, and on a table whose rows expire, on simulated machines whose
//! clocks are stepped.
//!
//! One client does one operation after the other, while background work seals, merges and makes
//! checkpoints whenever the scheduler lets it. The model knows when each entry ends; before an
//! operation the clock is moved out of the way of ends that are near, so that it is known which
//! entries each operation meets.
//!
//! ```text
//!   operation     p …………… until        p: newest commit before, until: when it returned
//!   image at c    c <= p: the state before; c >= until: the one after; between: either
//! ```
//!
//! Entries expire by elapsed time, rows by the date (`clocks.rs`). After a crash a machine may
//! begin with the clock of its first day, whatever the day of the crash was. An opened database
//! goes on from the time that its log has been told, at most a second before the last commit: what
//! had ended by then stays away. What ended later may be back, unless a merge has dropped it.

mod clocks;
mod driver;
mod lease;
mod leases;
pub mod model;
mod observe;
mod operation;
mod other;
mod transaction;

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::Moment as Now;
use esker_vfs::sim::{
    CrashChoice, CrashImage, FaultKind, FaultPlan, Generator, Journal, Options, Simulation,
};

use crate::workload::{Config, Failure};
pub use clocks::wake;
use driver::Driver;
use model::History;
pub use observe::{Found, Moments, clear_of_ends, compare, latest, move_clock_to, time_of};

/// One life of a database.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// What the disk did.
    pub journal: Option<Journal>,
    /// The newest commit that had been promised before.
    pub promised_before: u64,
    /// I/Os of opening the database.
    pub open_ios: u64,
    /// What the buckets hold after each commit.
    pub history: Arc<History>,
    /// The latest that it has been by both clocks, after how many I/Os.
    pub times: Vec<(u64, Now)>,
    /// The faults of the disk that were used, by kind.
    pub faults: BTreeMap<FaultKind, u64>,
    /// What was done, after how many I/Os, in words.
    pub operations: Vec<(u64, String)>,
}

/// How many operations a report names.
const REPORTED_OPERATIONS: usize = 24;

impl Life {
    /// What had been promised after so many I/Os.
    #[must_use]
    pub fn promised(&self, ios: u64) -> u64 {
        let marks = self.journal.as_ref().map_or(&[][..], |journal| journal.marks_until(ios));
        let newest = marks.iter().map(|mark| mark.value).fold(self.promised_before, u64::max);
        // Commit 1 is the creation itself: it may be done over as long as nothing follows it.
        if newest > 1 { newest } else { 0 }
    }

    /// The latest that it can have been after so many I/Os.
    #[must_use]
    pub fn high(&self, ios: u64) -> Now {
        let after = self.times.iter().find(|(io, _)| *io > ios).or(self.times.last());
        after.map_or(Now::LAST, |(_, now)| *now)
    }

    /// The last operations that ended before so many I/Os, and the one that was under way.
    #[must_use]
    pub fn operations_until(&self, ios: u64) -> Vec<String> {
        let count = self.operations.partition_point(|(io, _)| *io <= ios) + 1;
        let until = self.operations.get(..count).unwrap_or(&self.operations);
        let first = until.len().saturating_sub(REPORTED_OPERATIONS);
        let words = until.iter().skip(first);
        words.map(|(io, what)| format!("by {io} I/Os: {what}")).collect()
    }
}

/// The configuration of a workload: values are long, and commits large, more seldom than in others.
#[must_use]
pub fn config(seed: u64) -> Config {
    let drawn = Config::draw(seed);
    let mut generator = Generator::new(seed, 90);
    let plain = generator.chance(500_000);
    let (commit_bytes, long_bytes) = match plain {
        true => (1 << 20, 64 << 10),
        false => (drawn.commit_bytes, drawn.long_bytes),
    };
    Config { clients: 0, commit_bytes, long_bytes, ..drawn }
}

/// One life of a database without files, longer than others.
///
/// # Errors
/// The first answer that cannot be right.
pub fn run_in_memory(seed: u64, config: &Config) -> Result<(), Failure> {
    let options = Options { pause_probability: config.pause_probability, ..Options::default() };
    let mut driver = Driver::new(Simulation::new(seed, options), seed, config, None);
    driver.in_memory = true;
    let outcome = driver.live(250);
    let (life, _) = driver.end(CrashChoice::KeepAll);
    outcome.map_err(|why| Failure { why, operations: life.operations_until(u64::MAX) })
}

/// The lives of a workload.
///
/// # Errors
/// The first answer that cannot be right.
pub fn run(seed: u64, config: &Config) -> Result<Vec<Life>, Failure> {
    let mut generator = Generator::new(seed, 91);
    let (mut lives, mut image): (Vec<Life>, _) = (Vec::new(), CrashImage::empty());
    for number in 0..1 + generator.below(3) {
        let options = Options {
            record: true,
            pause_probability: config.pause_probability,
            ..Options::default()
        };
        let own_seed = seed.wrapping_mul(31).wrapping_add(number);
        let machine = Simulation::from_image(&image, own_seed, options);
        let mut driver = Driver::new(machine, own_seed, config, lives.last());
        let outcome = driver.live(20 + generator.below(50));
        let left = CrashChoice::Random(generator.next_u64());
        let (life, crashed) = driver.end(left);
        if let Err(why) = outcome {
            return Err(Failure { why, operations: life.operations_until(u64::MAX) });
        }
        image = crashed;
        lives.push(life);
    }
    Ok(lives)
}

/// One life on a disk of whose faults no operation learns.
///
/// # Errors
/// The first answer that cannot be right.
pub fn run_lying(seed: u64, config: &Config, faults: FaultPlan) -> Result<Life, Failure> {
    let pause_probability = config.pause_probability;
    let options = Options { record: true, pause_probability, faults, ..Options::default() };
    let machine = Simulation::from_image(&CrashImage::empty(), seed, options);
    let mut driver = Driver::new(machine, seed, config, None);
    let outcome = driver.live(40);
    let (life, _) = driver.end(CrashChoice::KeepAll);
    match outcome {
        Ok(()) => Ok(life),
        Err(why) => Err(Failure { why, operations: life.operations_until(u64::MAX) }),
    }
}

/// One life up to a clean close, and what is on the disk then.
///
/// # Errors
/// The first answer that cannot be right.
pub fn run_to_close(seed: u64, config: &Config) -> Result<(Life, CrashImage), Failure> {
    let mut generator = Generator::new(seed, 97);
    let options = Options { pause_probability: config.pause_probability, ..Options::default() };
    let mut driver = Driver::new(Simulation::new(seed, options), seed, config, None);
    let outcome = driver.live(20 + generator.below(50)).and_then(|()| driver.close().map(drop));
    let (life, image) = driver.end(CrashChoice::KeepAll);
    match outcome {
        Ok(()) => Ok((life, image)),
        Err(why) => Err(Failure { why, operations: life.operations_until(u64::MAX) }),
    }
}
