//! Decompressed blocks of heaps that were read lately, within a share of the memory.
//!
//! Blocks form a circle (CLOCK). A read marks its block. To make room, a hand goes round: it clears
//! a mark the first time it comes by, and evicts the block the next time. A block that was read
//! only once, as by a scan, has no mark.
//!
//! # Invariants
//! - Each block is in the circle once, and `places` says where: upheld by `Circle`, which alone
//!   changes both.
//! - The bytes counted in [`Category::Blocks`] are those of the blocks: `Circle::bytes`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use esker_arena::{Arena, Category, Reservation};
use esker_vfs::sync::{Mutex, MutexGuard};

/// The share of the memory limit that blocks may take.
const MEMORY_SHARE: u64 = 8;
/// The most bytes of blocks, however much memory there is.
const BYTES_MAX: u64 = 512 << 20;
/// No block is kept while more than this share of the memory limit is in use.
const USED_SHARE: (u64, u64) = (3, 4);

/// Which block: of which segment, of which of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockKey {
    pub segment: u64,
    pub column: usize,
    pub block: usize,
}

/// The blocks that are kept.
#[derive(Debug)]
pub(crate) struct HeapBlocks {
    circle: Mutex<Circle>,
    /// The most bytes of blocks, and of all memory while one is put in.
    most: (u64, u64),
}

#[derive(Debug)]
struct Circle {
    blocks: Vec<Kept>,
    places: BTreeMap<BlockKey, usize>,
    hand: usize,
    bytes: u64,
    counted: Reservation,
}

#[derive(Debug)]
struct Kept {
    key: BlockKey,
    bytes: Arc<[u8]>,
    is_marked: bool,
}

impl HeapBlocks {
    /// Without a block, within the limit of an arena.
    pub fn new(arena: &Arc<Arena>) -> Self {
        let limit = arena.limit_bytes();
        let most = (BYTES_MAX.min(limit / MEMORY_SHARE), limit / USED_SHARE.1 * USED_SHARE.0);
        let counted = Reservation::new(arena, Category::Blocks);
        let circle =
            Circle { blocks: Vec::new(), places: BTreeMap::new(), hand: 0, bytes: 0, counted };
        Self { circle: Mutex::new(circle), most }
    }

    fn circle(&self) -> MutexGuard<'_, Circle> {
        // default: what a panic left of the circle is looked at block by block
        self.circle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block that is kept.
    pub fn get(&self, key: BlockKey) -> Option<Arc<[u8]>> {
        let mut circle = self.circle();
        let place = *circle.places.get(&key)?;
        let kept = circle.blocks.get_mut(place)?;
        kept.is_marked = true;
        Some(Arc::clone(&kept.bytes))
    }

    /// Keeps a block, for which others may have to go.
    pub fn put(&self, key: BlockKey, bytes: &Arc<[u8]>) {
        let mut circle = self.circle();
        let len = bytes.len() as u64;
        if circle.places.contains_key(&key) || len > self.most.0 {
            return;
        }
        while !circle.count(len, self.most) {
            if !circle.drop_one() {
                return;
            }
        }
        let place = circle.blocks.len();
        circle.places.insert(key, place);
        circle.blocks.push(Kept { key, bytes: Arc::clone(bytes), is_marked: false });
    }

    /// Forgets all blocks: others need the memory.
    pub fn clear(&self) {
        let mut circle = self.circle();
        while circle.drop_one() {}
    }

    /// Forgets the blocks of a segment.
    pub fn forget(&self, segment: u64) {
        let mut circle = self.circle();
        let first = BlockKey { segment, column: 0, block: 0 };
        let end = BlockKey { segment: segment.saturating_add(1), column: 0, block: 0 };
        while let Some((_, place)) = circle.places.range(first..end).next() {
            let place = *place;
            circle.take(place);
        }
    }
}

impl Circle {
    /// Counts bytes of another block, if there is room for them.
    fn count(&mut self, len: u64, (blocks_max, used_max): (u64, u64)) -> bool {
        let granted = self.counted.grow(self.bytes + len, blocks_max, used_max);
        if granted {
            self.bytes += len;
        }
        granted
    }

    /// Drops the block that comes next; false when there is none.
    fn drop_one(&mut self) -> bool {
        loop {
            if self.hand >= self.blocks.len() {
                self.hand = 0;
            }
            match self.blocks.get_mut(self.hand) {
                None => return false,
                Some(kept) if kept.is_marked => {
                    kept.is_marked = false;
                    self.hand += 1;
                }
                Some(_) => {
                    // What comes in its place is looked at last.
                    self.take(self.hand);
                    self.hand += 1;
                    return true;
                }
            }
        }
    }

    /// Takes a block out of the circle; the last one gets its place.
    fn take(&mut self, place: usize) {
        if place >= self.blocks.len() {
            return;
        }
        let gone = self.blocks.swap_remove(place);
        self.places.remove(&gone.key);
        if let Some(moved) = self.blocks.get(place) {
            self.places.insert(moved.key, place);
        }
        self.bytes -= gone.bytes.len() as u64;
        self.counted.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use esker_arena::ArenaOptions;

    use super::*;

    fn key(segment: u64, block: usize) -> BlockKey {
        BlockKey { segment, column: 1, block }
    }

    #[test]
    fn the_circle_keeps_what_is_read_again_within_its_share() {
        let options = ArenaOptions { limit_bytes: 8 << 20, ..ArenaOptions::default() };
        let arena = Arena::new(options).unwrap();
        let cache = HeapBlocks::new(&arena);
        let bytes: Arc<[u8]> = vec![7; 64 << 10].into();
        for block in 0..16 {
            cache.put(key(1, block), &bytes);
        }
        assert_eq!(arena.used_by(Category::Blocks), 1 << 20);
        assert!(cache.get(key(1, 3)).is_some());
        for block in 16..28 {
            cache.put(key(1, block), &bytes);
            assert_eq!(arena.used_by(Category::Blocks), 1 << 20);
        }
        assert!(cache.get(key(1, 3)).is_some(), "it was read again");
        // Blocks that are read in turn stay, and those of a scan go.
        for turn in 0..40 {
            let key = key(3, turn % 5);
            if cache.get(key).is_none() {
                cache.put(key, &bytes);
            }
        }
        assert!((0..5).all(|block| cache.get(key(3, block)).is_some()));
        cache.forget(3);
        cache.put(key(1, 27), &bytes);
        assert!(cache.get(key(1, 0)).is_none());
        cache.put(key(2, 0), &bytes);
        cache.forget(1);
        assert_eq!(arena.used_by(Category::Blocks), 64 << 10);
        assert!(cache.get(key(2, 0)).is_some() && cache.get(key(1, 27)).is_none());
        drop(cache);
        assert_eq!(arena.used_by(Category::Blocks), 0);
    }

    #[test]
    fn nothing_is_kept_where_memory_is_short() {
        let options = ArenaOptions { limit_bytes: 1 << 20, ..ArenaOptions::default() };
        let arena = Arena::new(options).unwrap();
        let mut others = Reservation::new(&arena, Category::Load);
        assert!(others.grow(900 << 10, u64::MAX, u64::MAX));
        let cache = HeapBlocks::new(&arena);
        cache.put(key(1, 0), &vec![0; 64 << 10].into());
        assert!(cache.get(key(1, 0)).is_none());
        assert_eq!(arena.used_by(Category::Blocks), 0);
    }
}
