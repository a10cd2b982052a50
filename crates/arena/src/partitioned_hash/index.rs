//! The parts of an index, over any words.

use crate::error::ArenaError;
use crate::partitioned_hash::directory::Directory;
use crate::partitioned_hash::line::LINE_WORDS;
use crate::partitioned_hash::pages::{Pages, Shape};
use crate::partitioned_hash::partition::Partition;
use crate::sync::{Mutex, MutexGuard};
use crate::words::{WordHeap, Words};
use std::sync::PoisonError;

/// A multimap of tags to values. `W` is the arena's memory, or loom's.
#[derive(Debug)]
pub(crate) struct Index<W> {
    heap: W,
    /// The root word; the number of entries is a line further, away from what readers read.
    root: u64,
    pub(super) pages: Mutex<Pages>,
}

/// The writer's free lists, locked.
pub(super) type Writing<'a> = MutexGuard<'a, Pages>;

impl<W: WordHeap> Index<W> {
    pub(crate) fn new(heap: W, shape: Shape) -> Result<Self, ArenaError> {
        let root = heap.allocate(2 * LINE_WORDS)?;
        Ok(Self { heap, root, pages: Mutex::new(Pages::new(shape)) })
    }

    #[inline]
    pub(crate) fn words(&self) -> W::View<'_> {
        self.heap.view()
    }

    #[inline]
    pub(crate) fn heap(&self) -> &W {
        &self.heap
    }

    /// Becomes the one writer. A writer that panicked left every published word as a reader may see
    /// it, so the lock is taken over.
    pub(super) fn write(&self) -> Writing<'_> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.words().load(self.root + LINE_WORDS)
    }

    pub(super) fn set_len(&self, len: u64) {
        self.words().store(self.root + LINE_WORDS, len);
    }

    /// The directory; `None` while nothing was ever added.
    #[inline]
    pub(super) fn directory(&self) -> Option<Directory> {
        self.directory_in(self.words())
    }

    #[inline]
    pub(super) fn directory_in(&self, words: W::View<'_>) -> Option<Directory> {
        let root = words.load(self.root);
        (root != 0).then_some(Directory { root })
    }

    pub(super) fn set_directory(&self, directory: Directory) {
        self.words().store(self.root, directory.root);
    }

    /// The partition that holds `tag`. Writer only.
    pub(super) fn partition(&self, tag: u32) -> Option<Partition> {
        let slot = self.words().load(self.directory()?.slot(tag));
        Some(Partition::read(self.words(), Directory::header(slot)))
    }
}
