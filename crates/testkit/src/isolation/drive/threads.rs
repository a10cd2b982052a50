//! Real threads, in memory or on a directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use esker::{Database, Durability, Options};
use esker_vfs::sim::Generator;

use super::client::{Client, Shared};
use super::{Drive, Driven, Place, said, store};
use crate::isolation::History;

/// How many transactions a thread has open.
const LANES: usize = 3;

impl Shared {
    /// At the beginning.
    pub fn new(drive: &Drive) -> Self {
        Self {
            workload: drive.workload,
            level: drive.level,
            transactions: drive.transactions,
            clock: AtomicU64::new(1),
            begun: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
            failures: Mutex::new(Vec::new()),
        }
    }

    /// What was made, with the failures.
    pub fn driven(self, history: History) -> Driven {
        let failures = self.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        Driven { history, failures, ..Driven::default() }
    }
}

/// Makes a history.
pub(super) fn run(drive: &Drive) -> Result<Driven, String> {
    let directory = Directory::new(drive.seed);
    let db = open(drive.place, directory.path())
        .and_then(|db| store::create(&db).map(|()| db))
        .map_err(|e| said("open", &e))?;
    let shared = Shared::new(drive);
    let client = |thread: u64| Client {
        shared: &shared,
        db: &db,
        has_crashed: &|| false,
        generator: Generator::new(drive.seed, 300 + thread),
        made: Vec::new(),
    };
    let mut first = client(0);
    let intents = drive.workload.first();
    while !intents.is_empty() && !first.made.iter().any(|made| made.commit.is_some()) {
        first.run(intents.clone());
    }
    let history = Mutex::new(History { transactions: first.made });
    let gather = |thread| {
        let mut client = client(thread);
        client.work(LANES);
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        history.transactions.append(&mut client.made);
    };
    in_threads(drive.threads, &gather);
    let problems = db.check().map_err(|e| said("check", &e))?.problems;
    if let Some(problem) = problems.first() {
        shared.fail(format!("check finds {problem:?}\n"));
    }
    drop(db);
    let history = history.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(shared.driven(history))
}

#[allow(clippy::disallowed_methods, reason = "the histories are those of real threads")]
fn in_threads(count: u64, job: &(dyn Fn(u64) + Sync)) {
    std::thread::scope(|scope| {
        for thread in 1..=count.max(1) {
            scope.spawn(move || job(thread));
        }
    });
}

fn open(place: Place, path: &Path) -> esker::Result<Database> {
    match place {
        Place::Memory => Options::new().memory(),
        Place::Merging => Options::new()
            .durability(Durability::Async { at_most: Duration::from_millis(20) })
            .group_limit(64, 1 << 20)
            .small_group_limit(0)
            .segment_limit(32)
            .log_limit(200_000)
            .merge_share(100)
            .transaction_limit(1_000)
            .open(path),
        Place::Directory | Place::Crashing => Options::new().open(path),
    }
}

/// A directory that is removed when the value is dropped.
struct Directory(PathBuf);

#[allow(clippy::disallowed_methods, reason = "a directory of the real machine is removed whole")]
impl Directory {
    fn new(seed: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("esker-history-{}-{seed}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

#[allow(clippy::disallowed_methods, reason = "a directory of the real machine is removed whole")]
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
