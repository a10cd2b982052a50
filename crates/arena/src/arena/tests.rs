use super::{Arena, ArenaOptions, Category, Kind};
use crate::ArenaErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn arena(limit_bytes: u64) -> Arc<Arena> {
    Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes }).unwrap()
}

#[test]
fn classes_are_powers_of_two_and_half_as_much_again() {
    let arena = arena(u64::MAX);
    let mut previous_end = 0;
    for (asked, given) in
        [(1, 64), (64, 64), (65, 128), (100, 128), (129, 192), (193, 256), (257, 384), (513, 768)]
    {
        let block = arena.allocate(asked, Kind::Data, Category::Other).unwrap();
        assert_eq!((block.bytes, block.offset % 64), (given, 0), "{asked} bytes");
        assert!(block.offset >= previous_end);
        previous_end = block.offset + block.bytes;
    }
}

#[test]
fn memory_is_counted_by_category_and_limited() {
    let arena = arena(1 << 20);
    let block = arena.allocate(1000, Kind::Words, Category::Index).unwrap();
    assert_eq!(arena.used_by(Category::Index), 1024);
    assert_eq!(Category::ALL.map(|category| arena.used_by(category)).iter().sum::<u64>(), 1024);
    let error = arena.allocate(1 << 20, Kind::Data, Category::Group).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::OutOfMemory);
    assert_eq!(
        error.to_string(),
        "out of arena memory: 1048576 bytes wanted, 1024 bytes used, limit 1048576 bytes"
    );
    assert!(arena.allocate(u64::MAX, Kind::Data, Category::Group).is_err());
    #[allow(unsafe_code, reason = "the test owns the block")]
    // SAFETY: the block has no reader.
    unsafe {
        arena.free(block);
    }
    assert_eq!(arena.used_bytes(), 0);
    assert!(arena.allocate(1 << 20, Kind::Data, Category::Group).is_ok());
}

#[test]
fn the_reservation_is_a_limit_too() {
    let arena = arena(u64::MAX);
    assert_eq!(arena.limit_bytes(), arena.reserved_bytes());
    let error = arena.allocate(1 << 30, Kind::Data, Category::Group).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::OutOfMemory);
    // A full small part overflows into the large one.
    let mut blocks = 0u64;
    while arena.allocate(192 << 10, Kind::Words, Category::Other).is_ok() {
        blocks += 1;
    }
    assert!(blocks * (192 << 10) > 3 * (1 << 30) / 8 - (1 << 20), "{blocks} blocks");
}

#[test]
fn words_are_zero_when_reused_and_views_are_bounded() {
    let arena = arena(u64::MAX);
    let block = arena.allocate(4096, Kind::Words, Category::Other).unwrap();
    let first = usize::try_from(block.offset / 8).unwrap();
    arena.words()[first..first + 512].iter().for_each(|word| word.store(7, Ordering::Relaxed));
    #[allow(unsafe_code, reason = "the test owns the block")]
    // SAFETY: the block has no reader.
    unsafe {
        arena.free(block);
    }
    let again = arena.allocate(4096, Kind::Words, Category::Other).unwrap();
    assert_eq!(again.offset, block.offset);
    let words = &arena.words()[first..first + 512];
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    // Plain data is never to be had where words are, nor beyond the end.
    assert!(arena.data(block.offset, 64).is_none());
    assert!(arena.data(arena.reserved_bytes(), 1).is_none());
    assert!(arena.data(arena.reserved_bytes() - 64, 65).is_none());
    assert!(arena.data(u64::MAX, 1).is_none());
}
