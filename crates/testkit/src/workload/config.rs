//! How the database under test is opened: limits so small that everything happens all the time.

use std::time::Duration;

use esker::{Durability, Options};
use esker_vfs::Environment;
use esker_vfs::sim::Generator;

use super::numbers::told;

/// The directory of the database in every simulated machine.
pub const DIRECTORY: &str = "db";

/// How the database under test is opened.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rows of a group.
    pub group_rows: usize,
    /// Bytes of a group.
    pub group_bytes: u64,
    /// Groups below this live in the checkpoint.
    pub small_group_bytes: u64,
    /// Rows of a segment that a load writes.
    pub segment_rows: usize,
    /// Bytes of log before a checkpoint.
    pub log_limit: u64,
    /// Whether commits are durable when they return.
    pub sync: bool,
    /// Whether background work runs by itself.
    pub background: bool,
    /// The share of merging.
    pub merge_share: u32,
    /// How many clients work beside the driver.
    pub clients: u64,
    /// How often a pause lets others run, in a million.
    pub pause_probability: u32,
    /// Bytes of values of a commit that goes through the log.
    pub commit_bytes: usize,
    /// Longer values go to value files.
    pub long_bytes: usize,
    /// Bytes of a value file.
    pub value_file_bytes: u64,
    /// Rows that a merge by keys takes at once.
    pub merge_rows: u64,
    /// Rows of a segment that a merge writes.
    pub merged_rows: usize,
    /// Bytes of changes that a transaction keeps in memory.
    pub transaction_bytes: usize,
}

impl Config {
    /// Draws a configuration.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut generator = Generator::new(seed, 30);
        let g = &mut generator;
        Self {
            group_rows: g.pick([2, 5, 8, 16, 40]),
            group_bytes: g.pick([600, 4_000, 1 << 20]),
            small_group_bytes: g.pick([0, 300, 2_000, 1 << 20]),
            segment_rows: g.pick([3, 6, 12, 40]),
            log_limit: g.pick([1_500, 6_000, 20_000, 1 << 20]),
            sync: g.chance(800_000),
            background: g.chance(900_000),
            merge_share: g.pick([100, 100, 50]),
            clients: g.below(4),
            pause_probability: g.pick([50_000, 300_000, 700_000]),
            commit_bytes: g.pick([60, 200, 1 << 20, 1 << 20]),
            long_bytes: g.pick([16, 40, 64 << 10]),
            value_file_bytes: g.pick([1_024, 4_096, 64 << 10]),
            merge_rows: g.pick([1, 20, 1 << 20]),
            merged_rows: g.pick([4, 1 << 20]),
            transaction_bytes: g.pick([1, 600, 2_000, 1 << 20]),
        }
    }

    /// The configuration of exhaustive runs: one client, no background work by itself.
    #[must_use]
    pub fn exhaustive() -> Self {
        Self {
            group_rows: 4,
            group_bytes: 1 << 20,
            small_group_bytes: 0,
            segment_rows: 3,
            log_limit: 1 << 20,
            sync: true,
            background: false,
            merge_share: 100,
            clients: 0,
            pause_probability: 0,
            commit_bytes: 1 << 20,
            long_bytes: 16,
            value_file_bytes: 4_096,
            merge_rows: 1 << 20,
            merged_rows: 1 << 20,
            transaction_bytes: 1 << 20,
        }
    }

    /// The options for a machine.
    #[must_use]
    pub fn options(&self, environment: Environment) -> Options {
        let durability = match self.sync {
            true => Durability::Sync,
            false => Durability::Async { at_most: Duration::from_millis(20) },
        };
        Options::new()
            .environment(environment)
            .durability(durability)
            .group_limit(self.group_rows, self.group_bytes)
            .small_group_limit(self.small_group_bytes)
            .segment_limit(self.segment_rows)
            .commit_limit(self.commit_bytes)
            .on_commits(told)
            .value_file_limits(self.long_bytes, self.value_file_bytes)
            .merge_limit(self.merge_rows, self.merged_rows)
            .transaction_limit(self.transaction_bytes)
            .log_limit(self.log_limit)
            .merge_share(self.merge_share)
            .memory_limit(64 << 20)
            .background(self.background)
    }
}
