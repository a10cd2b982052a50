//! Which commits live snapshots read, so that merging keeps what they can see.
//!
//! A reader claims a slot, then loads `visible`, then stores the commit it reads. A merger loads
//! `visible`, then scans the slots, and may drop what no snapshot from the oldest on can see.
//!
//! ```text
//!  reader                                   merger
//!    slot: 0 ─► CLAIMED  (keep everything)    v₀ = visible
//!    fence                                    fence
//!    v = visible                              for each slot: 0 skip, CLAIMED keep everything,
//!    slot: CLAIMED ─► v                                      commit v
//!    … reads as of v …                        oldest = min(v₀, all v)
//!    slot: v ─► 0
//! ```
//!
//! Why no snapshot is missed: the two fences have an order. If the reader's is first, the merger
//! sees the claim or the commit that followed it. If the merger's is first, the reader loads a
//! `visible` at least as new as v₀, so v ≥ v₀ ≥ oldest. Either way oldest ≤ v.
//!
//! The same scan tells all commits that are held, not the oldest alone: a reader that it misses
//! reads at v₀ or above, and one that it meets while that registers makes it keep everything. So a
//! version that died up to v₀, and that no commit found by the scan sees, is invisible to all.
//! Commits that are found though their readers end meanwhile only keep more than is needed.
//!
//! A reader says what it is when it registers ([`ReaderKind`]): one that only reads needs the
//! versions that it sees and no others; one that may write needs, besides, what tells when a key
//! was changed last. The word of a slot holds both, so that no one finds one without the other.
//!
//! Slots lie in blocks of 512, the first word of each naming the next block; a block is added when
//! all are taken and stays. A slot word holds 0 (free), the commit plus one, its highest bit set
//! for a reader that only reads, or `CLAIMED`. As many words after them hold when readers began,
//! for those who list them: 0 where a reader did not say.
//!
//! # Invariants
//!
//! 1. A slot leaves 0 only by compare-and-exchange, and only its holder, a [`ReaderGuard`], stores
//!    to it after that: asserted by `enter`, which finds it claimed, and `release`, which finds it
//!    taken.
//! 2. A time is stored after the commit and taken back before the slot is released, so that a
//!    thread that finds the same commit before and after a time has read that reader's time, or
//!    none.
//! 3. A block's link is stored once, by the holder of the growth lock: `grow` refuses a second
//!    time.

#[cfg(all(test, loom))]
mod models;
mod read_commits;
#[cfg(test)]
mod tests;

use crate::arena::{Arena, Category};
use crate::error::ArenaError;
use crate::sync::Mutex;
use crate::words::{ArenaWords, WordHeap, Words};
use esker_vfs::sabotage::Bug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

pub use read_commits::ReadCommits;

/// Words in a block: the link and its slots.
const BLOCK_WORDS: u64 = if cfg!(shuttle) { 8 } else { 512 };
/// Looks at a slot that is just being claimed before a merger gives up: some hundred nanoseconds.
const PATIENCE: u32 = 64;
/// A slot whose reader has not stored its commit yet.
const CLAIMED: u64 = u64::MAX;
/// The bit of a slot whose reader only reads.
const READ_ONLY: u64 = 1 << 63;

/// What a reader is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// It reads, and no more.
    ReadOnly,
    /// It may write, and has to find then which keys have been changed since.
    ReadWrite,
}

/// The commit in a slot that holds one.
fn commit_of(stored: u64) -> u64 {
    (stored & !READ_ONLY) - 1
}

/// The live snapshots of a database.
///
/// ```
/// use esker_arena::{Arena, ArenaOptions, ReaderRegistry};
///
/// # fn main() -> Result<(), esker_arena::ArenaError> {
/// let registry = ReaderRegistry::new(&Arena::new(ArenaOptions::default())?)?;
/// let snapshot = registry.register(|| 7)?;
/// assert_eq!((snapshot.commit(), registry.oldest(12)), (7, 7));
/// drop(snapshot);
/// assert_eq!(registry.oldest(12), 12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReaderRegistry {
    slots: Arc<Slots<ArenaWords>>,
}

impl ReaderRegistry {
    /// A registry without readers. It takes 8 KiB.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit.
    pub fn new(arena: &Arc<Arena>) -> Result<Self, ArenaError> {
        let words = ArenaWords::new(arena, Category::Registry);
        Ok(Self { slots: Arc::new(Slots::new(words, BLOCK_WORDS, PATIENCE)?) })
    }

    /// Registers a reader that may write, of the commit that `read_visible` gives; it is called
    /// once, after the slot is claimed, and loads the newest visible commit.
    ///
    /// # Errors
    /// `OutOfMemory` when all slots are taken and no more can be made, `InvalidInput` for a commit
    /// at the end of the numbers.
    pub fn register(&self, read_visible: impl FnOnce() -> u64) -> Result<ReaderGuard, ArenaError> {
        self.register_as(ReaderKind::ReadWrite, read_visible)
    }

    fn register_as(
        &self,
        kind: ReaderKind,
        read_visible: impl FnOnce() -> u64,
    ) -> Result<ReaderGuard, ArenaError> {
        let slot = self.slots.claim()?;
        // The guard releases the slot should `read_visible` panic.
        let slots = Arc::clone(&self.slots);
        let mut guard = ReaderGuard { slots, slot, commit: 0, is_listed: false };
        guard.commit = self.slots.enter((slot, kind), read_visible)?;
        Ok(guard)
    }

    /// The same for a reader of either kind that [`ReaderRegistry::list`] names, with when it
    /// began, in a unit of the caller's.
    ///
    /// # Errors
    /// As for [`ReaderRegistry::register`].
    pub fn register_listed(
        &self,
        kind: ReaderKind,
        read_visible: impl FnOnce() -> u64,
        began: u64,
    ) -> Result<ReaderGuard, ArenaError> {
        let mut guard = self.register_as(kind, read_visible)?;
        self.slots.words.view().store(self.slots.time(guard.slot), began.saturating_add(1));
        guard.is_listed = true;
        Ok(guard)
    }

    /// The commits and beginnings of the readers that were registered to be listed, in no order.
    #[must_use]
    pub fn list(&self) -> Vec<(u64, u64)> {
        self.slots.list().collect()
    }

    /// The oldest commit that a snapshot reads or may yet read, given the `visible` commit loaded
    /// before this call. Versions that no one from this commit on can see may go. 0 means that a
    /// reader is just registering: keep everything and come back. That does no harm, since less is
    /// dropped for one job of maintenance, and is rare: a claim lasts until `visible` is loaded,
    /// which the scan waits out for a moment. Any other guess at what is loaded would be unsafe.
    #[must_use]
    pub fn oldest(&self, visible_before_scan: u64) -> u64 {
        self.slots.oldest(visible_before_scan)
    }

    /// All commits that snapshots read, or may yet read, given the `visible` commit loaded before
    /// this call: what [`ReaderRegistry::oldest`] is the least of, and as careful. Versions that no
    /// such commit sees may go.
    #[must_use]
    pub fn read_commits(&self, visible_before_scan: u64) -> ReadCommits {
        self.slots.read_commits(visible_before_scan)
    }

    /// The commits of live snapshots, sorted, one for each snapshot.
    #[must_use]
    pub fn live(&self) -> Vec<u64> {
        let mut commits: Vec<u64> = self.slots.commits().collect();
        commits.sort_unstable();
        commits
    }
}

/// A registered snapshot. Dropping it ends the registration.
#[derive(Debug)]
pub struct ReaderGuard {
    slots: Arc<Slots<ArenaWords>>,
    slot: u64,
    commit: u64,
    is_listed: bool,
}

impl ReaderGuard {
    /// The commit that the snapshot reads.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.commit
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        if self.is_listed {
            self.slots.words.view().store(self.slots.time(self.slot), 0);
        }
        self.slots.release(self.slot);
        if Bug::ReaderSlotReleasedTwice.is_planted() {
            self.slots.release(self.slot);
        }
    }
}

/// The algorithm, over any words.
#[derive(Debug)]
struct Slots<W> {
    words: W,
    first_block: u64,
    block_words: u64,
    /// How often a merger looks again at a slot that is just being claimed.
    patience: u32,
    /// Where the last claim or release was, to begin the next search. Only a hint.
    hint: AtomicU64,
    growth: Mutex<()>,
}

impl<W: WordHeap> Slots<W> {
    fn new(words: W, block_words: u64, patience: u32) -> Result<Self, ArenaError> {
        let first_block = words.allocate(2 * block_words)?;
        let (hint, growth) = (AtomicU64::new(first_block + 1), Mutex::new(()));
        Ok(Self { words, first_block, block_words, patience, hint, growth })
    }

    /// Stores the commit that `read_visible` gives into a claimed slot.
    fn enter(
        &self,
        (slot, kind): (u64, ReaderKind),
        read_visible: impl FnOnce() -> u64,
    ) -> Result<u64, ArenaError> {
        self.words.view().fence();
        let commit = read_visible();
        if commit >= READ_ONLY - 2 {
            return Err(ArenaError::invalid_input(format!("commit {commit} to be registered")));
        }
        debug_assert!(
            self.words.view().peek(slot) == CLAIMED,
            "reader registry: slot {slot} was claimed and holds {:#x}",
            self.words.view().peek(slot)
        );
        let bit = if kind == ReaderKind::ReadOnly { READ_ONLY } else { 0 };
        self.words.view().store(slot, (commit + 1) | bit);
        Ok(commit)
    }

    fn claim(&self) -> Result<u64, ArenaError> {
        let hint = self.hint.load(Ordering::Relaxed);
        if self.try_claim(hint) {
            return Ok(hint);
        }
        loop {
            if let Some(slot) = self.slot_words().find(|slot| self.try_claim(*slot)) {
                self.hint.store(self.neighbour(slot), Ordering::Relaxed);
                return Ok(slot);
            }
            self.grow()?;
        }
    }

    fn try_claim(&self, slot: u64) -> bool {
        self.words.view().load(slot) == 0
            && self.words.view().compare_exchange(slot, 0, CLAIMED).is_ok()
    }

    /// The next slot, or the same at a block's end. Blocks are aligned to a line, so the first word
    /// of one, a link, is never named.
    fn neighbour(&self, slot: u64) -> u64 {
        if (slot + 1).is_multiple_of(8) { slot } else { slot + 1 }
    }

    fn release(&self, slot: u64) {
        debug_assert!(
            self.words.view().peek(slot) != 0 || std::thread::panicking(),
            "reader registry: slot {slot} is released and free already"
        );
        self.words.view().store(slot, 0);
        self.hint.store(slot, Ordering::Relaxed);
    }

    fn oldest(&self, visible_before_scan: u64) -> u64 {
        self.words.view().fence();
        let oldest = self.slot_words().map(|slot| match self.settled(slot) {
            0 => visible_before_scan,
            CLAIMED => 0,
            stored => commit_of(stored),
        });
        oldest.fold(visible_before_scan, u64::min)
    }

    fn read_commits(&self, visible_before_scan: u64) -> ReadCommits {
        self.words.view().fence();
        let (mut held, mut writers) = (Vec::new(), u64::MAX);
        for slot in self.slot_words() {
            match self.settled(slot) {
                0 => {}
                // It may read whatever was visible when it claimed the slot, or later.
                CLAIMED => return ReadCommits::new(Vec::new(), 0),
                stored => {
                    held.push(commit_of(stored));
                    if stored & READ_ONLY == 0 {
                        writers = writers.min(commit_of(stored));
                    }
                }
            }
        }
        ReadCommits::new(held, visible_before_scan).with_writers_from(writers)
    }

    /// The slot's word, after a little patience with a reader that is just registering.
    fn settled(&self, slot: u64) -> u64 {
        let mut stored = self.words.view().load(slot);
        for _ in 0..self.patience {
            if stored != CLAIMED {
                break;
            }
            std::hint::spin_loop();
            stored = self.words.view().load(slot);
        }
        stored
    }

    /// Where a slot's time stands.
    fn time(&self, slot: u64) -> u64 {
        slot + self.block_words
    }

    fn list(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let load = |word| self.words.view().load(word);
        self.slot_words().filter_map(move |slot| {
            let (stored, began) = (load(slot), load(self.time(slot)));
            let is_one = stored != 0 && stored != CLAIMED && load(slot) == stored;
            (is_one && began != 0).then(|| (commit_of(stored), began - 1))
        })
    }

    fn commits(&self) -> impl Iterator<Item = u64> + '_ {
        let stored = self.slot_words().map(|slot| self.words.view().load(slot));
        stored.filter(|stored| *stored != 0 && *stored != CLAIMED).map(commit_of)
    }

    /// The slots of every block.
    fn slot_words(&self) -> impl Iterator<Item = u64> + '_ {
        let next = |block: &u64| Some(self.words.view().load(*block)).filter(|next| *next != 0);
        std::iter::successors(Some(self.first_block), next)
            .flat_map(|block| block + 1..block + self.block_words)
    }

    #[cold]
    fn grow(&self) -> Result<(), ArenaError> {
        let _growing = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = self.first_block;
        loop {
            match self.words.view().load(last) {
                0 => break,
                next => last = next,
            }
        }
        // Somebody else may have grown or released meanwhile; a block more does no harm, but many
        // threads that find the registry full at once should not each add one.
        if self.slot_words().any(|slot| self.words.view().load(slot) == 0) {
            return Ok(());
        }
        let block = self.words.allocate(2 * self.block_words)?;
        match self.words.view().compare_exchange(last, 0, block) {
            Ok(_) => Ok(()),
            Err(next) => Err(ArenaError::corrupt(format!(
                "reader registry: block {last} is followed by {next} and then {block}"
            ))),
        }
    }
}
