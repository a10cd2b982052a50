//! Histories of the database itself.
//!
//! Each thread keeps several transactions open and goes on with one of them at random, so that they
//! interleave however few processors there are. A history is one [`Workload`] at one [`Place`]:
//!
//! ```text
//! workload ─► intents of a transaction ─► client: begin, read, write, commit ─► history
//!                                             │                                   │
//!            store: rows, texts, buckets ◄────┘        judged, replayed ◄─────────┘
//! ```

mod client;
mod crash;
mod store;
mod threads;
mod workload;

pub use workload::Workload;

use esker_vfs::sim::Generator;

use super::{History, Level, Verdict};
use crate::campaign::{Report, quietly};

/// Where the database lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory.
    Memory,
    /// In a directory, each commit synced.
    Directory,
    /// In a directory, with groups so small that it seals and merges all the time.
    Merging,
    /// In a simulated machine whose power fails every now and then.
    Crashing,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Directory, Self::Merging, Self::Crashing];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Directory => "directory",
            Self::Merging => "merging",
            Self::Crashing => "crashing",
        }
    }

    /// Of a hundred transactions, how many are at such a place.
    #[must_use]
    pub fn share(self) -> u64 {
        match self {
            Self::Memory => 55,
            Self::Directory => 10,
            Self::Merging => 20,
            Self::Crashing => 15,
        }
    }
}

/// One history to be made.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// What the transactions do.
    pub workload: Workload,
    /// Where the database lies.
    pub place: Place,
    /// What the transactions are promised: `Snapshot` or `Serializable`.
    pub level: Level,
    /// How many transactions begin.
    pub transactions: u64,
    /// How many threads there are; a simulated machine has one.
    pub threads: u64,
    /// The seed of all that is random but the threads.
    pub seed: u64,
}

/// What was made.
#[derive(Debug, Default)]
pub struct Driven {
    /// The history.
    pub history: History,
    /// What no checker is needed for: errors that should not be, sums that are wrong.
    pub failures: Vec<String>,
    /// How often the power failed.
    pub crashes: u64,
    /// Of the commits that were under way then, how many survived, and how many did not.
    pub in_doubt: [u64; 2],
}

/// What a history came to.
#[derive(Debug, Default)]
pub struct Judged {
    /// How many transactions committed, aborted, and ended unknown.
    pub outcomes: [u64; 3],
    /// How often the power failed.
    pub crashes: u64,
    /// Of the commits that were under way then, how many survived, and how many did not.
    pub in_doubt: [u64; 2],
    /// What was found.
    pub verdict: Verdict,
    /// What must not be, with the transactions; empty when all is well.
    pub failures: String,
}

impl Drive {
    /// Makes the history.
    ///
    /// # Errors
    /// When the database cannot be opened or filled.
    pub fn run(&self) -> Result<Driven, String> {
        match self.place {
            Place::Crashing => crash::run(self),
            _ => threads::run(self),
        }
    }

    /// Makes the history and judges it. Serializable transactions, and those that read for update
    /// all that they read, are held to the order of real time, too.
    #[must_use]
    pub fn judge(&self) -> Judged {
        let Driven { history, failures, crashes, in_doubt } = match self.run() {
            Ok(driven) => driven,
            Err(why) => Driven { failures: vec![why], ..Driven::default() },
        };
        let mut outcomes = [0; 3];
        for made in &history.transactions {
            if let Some(count) = outcomes.get_mut(made.outcome as usize) {
                *count += 1;
            }
        }
        let level = match (self.level, self.workload) {
            (Level::Snapshot, workload) if workload != Workload::ForUpdate => Level::Snapshot,
            _ => Level::StrictSerializable,
        };
        let mut verdict = history.judge();
        let replayed = history.replay();
        let mut text = failures.join("\n");
        text.push_str(&history.failures(&verdict, level));
        text.push_str(&history.failures(&replayed, level));
        verdict.absorb(&replayed);
        Judged { outcomes, crashes, in_doubt, verdict, failures: text }
    }
}

/// Each workload once, at a place and of a level that the seed draws, for the campaign that plants
/// bugs.
#[must_use]
pub fn report(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut generator = Generator::new(seed, 330);
    let level = generator.pick([Level::Snapshot, Level::Serializable]);
    let place = generator.pick([Place::Memory, Place::Crashing]);
    for workload in Workload::ALL {
        let drive = Drive { workload, place, level, transactions: 800, threads: 2, seed };
        let outcome = quietly(|| match drive.judge().failures {
            failures if failures.is_empty() => Ok(()),
            failures => Err(failures),
        });
        if let Err(why) = outcome {
            report.fail(why, format!("--seed {seed} (of history)"), Vec::new());
            break;
        }
    }
    report
}

/// An error as a failure.
pub(super) fn said(what: &str, error: &esker::Error) -> String {
    format!("{what}: {} ({:?})\n", error, error.kind())
}

#[cfg(test)]
mod tests;
