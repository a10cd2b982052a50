#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a panic is the report"
)]

mod basics;
mod clients;
mod crashes;
mod damage;
mod faults;
mod full_disk;
mod history;
pub(crate) mod interleavings;
mod passes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::frame::{EpochStart, kind};
use esker_vfs::{Environment, OpenMode};

use crate::{Log, Options, Scan, scan};

pub(crate) const DATABASE: u128 = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;

/// A directory of its own, removed at the end.
pub(crate) struct Directory {
    pub environment: Environment,
    pub path: PathBuf,
}

impl Directory {
    pub fn new() -> Self {
        let environment = Environment::os();
        let name = format!("esker-log-{:016x}", environment.random.next_u64());
        let path = std::env::temp_dir().join(name);
        environment.files.create_dir_all(&path).unwrap();
        Self { environment, path }
    }

    pub fn create(&self) -> Log {
        Log::create(&self.environment, &self.path, DATABASE, Options::default()).unwrap()
    }

    pub fn scan(&self, checkpoint_commit: u64) -> crate::Result<Scan> {
        scan(&self.environment, &self.path, DATABASE, checkpoint_commit)
    }

    pub fn reopen(&self, checkpoint_commit: u64) -> Log {
        self.scan(checkpoint_commit).unwrap().start(Options::default()).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        self.environment.files.list(&self.path).unwrap()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        crate::log_file::read(self.environment.files.as_ref(), &self.path.join(name)).unwrap()
    }

    /// Replaces a file.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path.join(name);
        let files = &self.environment.files;
        if files.exists(&path).unwrap() {
            files.remove(&path).unwrap();
        }
        files.open(&path, OpenMode::CreateNew).unwrap().write_all_at(bytes, 0).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = self.environment.files.remove_dir_all(Path::new(&self.path));
    }
}

/// Appends `count` frames of rows, each durable before the next, whose payload is their number.
pub(crate) fn append_each(log: &Log, count: u64) {
    for _ in 0..count {
        let payload = log.next_commit().to_le_bytes();
        let ticket = log.append(kind::ROWS, &payload).unwrap();
        assert_eq!(ticket.commit.to_le_bytes(), payload);
        log.wait_durable(ticket).unwrap();
        assert!(log.durable() >= ticket.commit);
    }
}

/// The commit numbers of the surviving frames, dense; checks what `append_each` wrote.
pub(crate) fn commits(scan: &Scan) -> Vec<u64> {
    let frames: Vec<_> = scan.frames().map(Result::unwrap).collect();
    for frame in frames.iter().filter(|f| f.kind == kind::ROWS) {
        assert_eq!(frame.payload, frame.commit.to_le_bytes());
    }
    let commits: Vec<_> = frames.iter().map(|f| f.commit).collect();
    assert!(commits.windows(2).all(|w| w[0] + 1 == w[1]), "{commits:?}");
    assert_eq!(commits.last().copied().unwrap_or(scan.checkpoint_commit), scan.last_commit());
    commits
}
