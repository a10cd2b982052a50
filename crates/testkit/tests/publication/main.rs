//! Models of the whole engine under shuttle: seals, merges and loads are published while threads
//! look up, change, delete and insert the same keys, and old snapshots are read again; and
//! transactions commit beside that, and beside each other.
//!
//! The code is the engine's own. Each operation on what threads share (`esker_vfs::sync`, the words
//! of the arena) is a point at which the scheduler may let another thread run. The disk is the
//! simulated one, or there is none (`Options::memory`).
//!
//! ```text
//! cargo xtask model                               every model and every planted bug
//! ESKER_MODEL_SCHEDULES=10000 cargo xtask model   so many schedules for each model
//! ESKER_MODEL_SEED=7 cargo xtask model merge      from another seed
//! ```
//!
//! What is checked is in `world.rs`, `transactions.rs` and `streams.rs`. That the checks have teeth
//! is in `planted.rs`: bugs that a model must find, each in a process of its own.
#![cfg(shuttle)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

#[cfg(feature = "sabotage")]
mod planted;
mod streams;
mod tasks;
mod transactions;
mod world;

use std::sync::Arc;

use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

use world::{CHANGED_KEYS, Reader, World};

/// Schedules tried from one seed.
const SCHEDULES_A_SEED: usize = 50;

/// What a model is made of.
#[derive(Clone, Copy)]
struct Shape {
    /// Without a disk.
    memory: bool,
    writers: usize,
    changes: usize,
    getters: usize,
    gets: usize,
    /// They look up changed keys only.
    gets_of_changed: bool,
    /// Threads that hold snapshots, and how many each takes, one after the other.
    keepers: usize,
    snapshots: usize,
    /// Writers take a snapshot after their changes, so that what a merge retires stays for a while.
    leaves_snapshot: bool,
    /// Writers take a snapshot before their last change, and read it after.
    snapshot_within: bool,
    /// How often everything that is due is sealed and merged.
    rounds: usize,
    /// A bulk load beside all that.
    loads: bool,
    /// How often the whole database is checked meanwhile.
    checks: usize,
}

const USUAL: Shape = Shape {
    memory: false,
    writers: 1,
    changes: 6,
    getters: 1,
    gets: 8,
    gets_of_changed: false,
    keepers: 1,
    snapshots: 2,
    leaves_snapshot: false,
    snapshot_within: false,
    rounds: 3,
    loads: false,
    checks: 0,
};

/// One schedule: everybody at once, then what is left.
fn run(shape: Shape) {
    let world = Arc::new(World::new(shape.memory, shape.writers));
    let mut threads = Vec::new();
    let mut start = |job: Box<dyn FnOnce(&World) + Send>| {
        let world = Arc::clone(&world);
        threads.push(thread::spawn(move || job(&world)));
    };
    start(Box::new(move |world| {
        for _ in 0..shape.rounds {
            world.db.wait_idle().unwrap();
        }
    }));
    for writer in 0..shape.writers {
        start(Box::new(move |world| {
            let last = usize::from(shape.snapshot_within);
            for _ in last..shape.changes {
                world.change(writer);
            }
            if shape.snapshot_within {
                Reader::new(world).keep_a_snapshot(3, || world.change(writer));
            }
            if shape.leaves_snapshot {
                world.leave_snapshot();
            }
        }));
    }
    for _ in 0..shape.getters {
        start(Box::new(move |world| {
            let mut reader = Reader::new(world);
            for _ in 0..shape.gets {
                let keys = if shape.gets_of_changed { CHANGED_KEYS } else { world.keys() };
                let key = shuttle::rand::thread_rng().gen_range(0..keys);
                reader.get(key);
            }
        }));
    }
    for _ in 0..shape.keepers {
        start(Box::new(move |world| {
            let mut reader = Reader::new(world);
            for _ in 0..shape.snapshots {
                reader.keep_a_snapshot(3, || {});
            }
        }));
    }
    if shape.loads {
        start(Box::new(|world| world.load()));
    }
    if shape.checks > 0 {
        start(Box::new(move |world| (0..shape.checks).for_each(|_| world.check())));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    world.finish();
}

fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Runs a model under schedules drawn at random and under those with few preemptions.
fn explore(model: impl Fn() + Copy + Send + Sync + 'static) {
    let schedules = number("ESKER_MODEL_SCHEDULES", 2_000);
    let first = number("ESKER_MODEL_SEED", 1) as u64;
    let mut done = 0;
    for (chunk, seed) in (first..).enumerate() {
        if done >= schedules {
            break;
        }
        let count = SCHEDULES_A_SEED.min(schedules - done);
        // What a failure is repeated by.
        let replay = count + done;
        eprintln!("ESKER_MODEL_SEED={seed}: schedules {done} to {replay}");
        match chunk % 4 {
            0 => check(RandomScheduler::new_from_seed(seed, count), model),
            few => check(PctScheduler::new_from_seed(seed, few + 1, count), model),
        }
        done += count;
    }
}

fn check(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(3_000_000);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(model);
}

fn explore_shape(shape: Shape) {
    explore(move || run(shape));
}

#[test]
fn merge_get_update_delete_reinsert_and_old_snapshots() {
    explore_shape(USUAL);
}

#[test]
fn merge_in_memory_get_update_delete_reinsert_and_old_snapshots() {
    explore_shape(Shape { memory: true, ..USUAL });
}

/// Commits are numbered, applied and made visible in one order, whoever flushes the log.
#[test]
fn commits_of_two_writers_beside_gets() {
    explore_shape(Shape { writers: 2, changes: 4, snapshots: 1, rounds: 1, ..USUAL });
}

/// A merge overtakes look-ups that have registered nothing.
#[test]
fn merge_overtakes_gets() {
    // As small as it can be: what makes the difference is one step of a look-up.
    let small = Shape { memory: true, changes: 1, getters: 2, gets: 1, keepers: 0, ..USUAL };
    explore_shape(Shape { gets_of_changed: true, leaves_snapshot: true, rounds: 1, ..small });
}

/// A snapshot taken in the middle of a merge outlives it.
#[test]
fn merge_outlived_by_a_snapshot() {
    // One snapshot is newer than the number of the merge, and older than a change before its swap.
    let within = Shape { changes: 2, snapshot_within: true, ..USUAL };
    explore_shape(Shape { memory: true, getters: 0, snapshots: 1, rounds: 1, ..within });
}

/// A check takes nothing for damage that is on its way.
#[test]
fn check_beside_merges() {
    explore_shape(Shape { checks: 2, getters: 0, rounds: 2, ..USUAL });
}

#[test]
fn check_in_memory_beside_merges_and_a_load() {
    explore_shape(Shape { memory: true, loads: true, checks: 2, getters: 0, rounds: 2, ..USUAL });
}

#[test]
fn merge_beside_a_load() {
    explore_shape(Shape { loads: true, changes: 3, gets: 4, snapshots: 3, ..USUAL });
}
