//! Where commits get their numbers: the log, or a counter in a memory database.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_log::{Log, Purpose};
use esker_vfs::sync::AtomicU64;

use crate::Result;
use crate::commit::watermarks::Watermarks;

/// Numbers commits.
#[derive(Debug)]
pub(crate) enum Journal {
    /// Frames in files.
    Log(Box<Log>),
    /// A counter; every commit is as durable as it will ever be at once.
    Memory(Arc<Watermarks>, AtomicU64),
}

/// A numbered commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ticket {
    /// In the log's queue.
    Log(esker_log::Ticket),
    /// In memory.
    Memory(u64),
}

impl Ticket {
    /// The commit number.
    pub fn commit(self) -> u64 {
        match self {
            Self::Log(ticket) => ticket.commit,
            Self::Memory(commit) => commit,
        }
    }
}

impl Journal {
    /// Gives a frame the next number. Under the commit lock.
    pub fn append(&self, purpose: Purpose, kind: u16, payload: &[u8]) -> Result<Ticket> {
        match self {
            Self::Log(log) => Ok(Ticket::Log(log.append_for(purpose, kind, payload)?)),
            Self::Memory(marks, next) => {
                let commit = next.fetch_add(1, Ordering::Relaxed);
                marks.make_durable(commit, &[]);
                Ok(Ticket::Memory(commit))
            }
        }
    }

    /// The log, when there is one.
    pub fn log(&self) -> Option<&Log> {
        match self {
            Self::Log(log) => Some(log),
            Self::Memory(..) => None,
        }
    }
}
