//! The real machine: system calls, system clocks, kernel entropy, threads and futexes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this module is the one place that touches files, clocks and threads"
)]

mod clock;
mod directory;
mod entropy;
mod file;
mod futex;
mod lock;
mod map;
mod own_thread;
mod parallel;
mod pool;
mod writeback;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use crate::Environment;

pub(crate) use map::FileMap;
pub(crate) use pool::ThreadPool;

/// The machine, with one thread pool shared by the whole process.
pub(crate) fn environment() -> Environment {
    static SHARED: OnceLock<Environment> = OnceLock::new();
    SHARED
        .get_or_init(|| Environment {
            files: Arc::new(directory::OsFiles),
            clock: Arc::new(clock::OsClock::new()),
            random: Arc::new(entropy::OsRandom::new()),
            tasks: Arc::new(ThreadPool::new(parallel::parallelism().max(2))),
        })
        .clone()
}
