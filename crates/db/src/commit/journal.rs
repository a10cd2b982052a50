//! Where commits get their numbers: the log, or a counter in a memory database.
//!
//! # Invariants
//!
//! 1. Each frame has the number after the last, without a gap: one thread at a time appends, under
//!    the commit lock. The pipeline tells the watermarks of each number, which refuse another one.
//! 2. A frame that is refused has no number.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_log::sabotage::Bug;
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
        if Bug::NumberSkipped.is_planted() {
            self.append_next(purpose, kind, payload)?;
        }
        self.append_next(purpose, kind, payload)
    }

    fn append_next(&self, purpose: Purpose, kind: u16, payload: &[u8]) -> Result<Ticket> {
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
