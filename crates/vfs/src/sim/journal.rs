//! A recorded run, replayed one input or output at a time.

use std::sync::Arc;

use super::disk::Disk;
use super::effect::Effect;
use super::image::{CrashChoice, CrashImage};
use super::pending::Pending;

/// One effect, and how many I/Os there had been when it happened, its own included.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) io: u64,
    pub(crate) effect: Effect,
}

/// A note that the driver of a simulation left between two I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How many I/Os there had been.
    pub io: u64,
    /// What the driver wanted to remember, a commit number perhaps.
    pub value: u64,
}

/// All that happened to the disk of a simulation made with
/// [`Options::record`](super::Options::record).
#[derive(Clone, Debug)]
pub struct Journal {
    pub(crate) base: Disk,
    pub(crate) entries: Arc<[Entry]>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) ios: u64,
}

impl Journal {
    /// How many I/Os were recorded. Crashes are possible after 0, 1, …, `io_count()` of them.
    #[must_use]
    pub fn io_count(&self) -> u64 {
        self.ios
    }

    /// All marks, in order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The marks left before a crash after `io` I/Os: those whose count is at most `io`.
    #[must_use]
    pub fn marks_until(&self, io: u64) -> &[Mark] {
        let count = self.marks.partition_point(|mark| mark.io <= io);
        self.marks.get(..count).unwrap_or_default()
    }

    /// A cursor at the start: no I/O has happened.
    #[must_use]
    pub fn cursor(&self) -> JournalCursor {
        let mut cursor = JournalCursor {
            disk: self.base.clone(),
            entries: Arc::clone(&self.entries),
            next: 0,
            io: 0,
            ios: self.ios,
            changed: true,
        };
        cursor.replay();
        cursor
    }
}

/// A position in a [`Journal`], with the disk as it was there.
#[derive(Clone, Debug)]
pub struct JournalCursor {
    disk: Disk,
    entries: Arc<[Entry]>,
    next: usize,
    io: u64,
    ios: u64,
    changed: bool,
}

impl JournalCursor {
    /// Replays one more I/O; false at the end.
    pub fn advance(&mut self) -> bool {
        if self.io >= self.ios {
            return false;
        }
        self.io += 1;
        self.replay();
        true
    }

    fn replay(&mut self) {
        let start = self.next;
        while let Some(entry) = self.entries.get(self.next)
            && entry.io <= self.io
        {
            self.disk.apply(&entry.effect);
            self.next += 1;
        }
        self.changed = self.next > start || self.io == 0;
    }

    /// How many I/Os have been replayed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.io
    }

    /// False when the last I/O failed or did nothing, so that a crash after it leaves what a
    /// crash before it could.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// How many changes a crash here may keep or lose.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.disk.pending().len()
    }

    /// Those changes in words, in the order of the bits of [`CrashChoice::Subset`].
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        self.disk.describe_pending()
    }

    /// What the last I/O did, in words, for reports.
    #[must_use]
    pub fn describe(&self) -> String {
        let here = |entry: &&Entry| entry.io == self.io;
        let effects = self.entries.get(..self.next).unwrap_or_default().iter().rev();
        let mut words: Vec<_> =
            effects.take_while(here).map(|entry| entry.effect.describe()).collect();
        words.reverse();
        format!("I/O {}: {}", self.io, words.join("; "))
    }

    /// A crash here.
    #[must_use]
    pub fn crash_image(&self, choice: CrashChoice) -> CrashImage {
        CrashImage::of(&self.disk, choice)
    }
}

impl Effect {
    /// The effect without the bytes.
    fn describe(&self) -> String {
        use super::disk::Change;
        match self {
            Self::Modify { node, change: Change::Write { offset, bytes }, .. } => {
                format!("write file {node} {} bytes at {offset}", bytes.len())
            }
            other => format!("{other:?}"),
        }
    }
}
