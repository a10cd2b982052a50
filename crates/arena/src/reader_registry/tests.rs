use super::ReaderRegistry;
use crate::{Arena, ArenaErrorKind, ArenaOptions, Category};
use std::sync::atomic::{AtomicU64, Ordering};

fn options(limit_bytes: u64) -> ArenaOptions {
    ArenaOptions { reserve_bytes: 1 << 30, limit_bytes }
}

#[test]
fn the_oldest_snapshot_holds_merging_back() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    assert_eq!(registry.oldest(9), 9);
    let nothing = registry.register(|| 0).unwrap();
    let five = registry.register(|| 5).unwrap();
    let seven = registry.register(|| 7).unwrap();
    assert_eq!(registry.live(), [0, 5, 7]);
    assert_eq!(registry.oldest(9), 0);
    drop(nothing);
    assert_eq!((registry.oldest(9), registry.oldest(4)), (5, 4));
    drop(five);
    assert_eq!(registry.oldest(9), 7);
    drop(seven);
    assert_eq!((registry.oldest(9), registry.live().len()), (9, 0));
}

#[test]
fn while_a_reader_registers_everything_is_kept() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let guard = registry.register(|| {
        assert_eq!((registry.oldest(9), registry.live().len()), (0, 0));
        3
    });
    assert_eq!(guard.unwrap().commit(), 3);
    assert_eq!(registry.register(|| u64::MAX).unwrap_err().kind(), ArenaErrorKind::InvalidInput);
    assert_eq!(registry.oldest(9), 9);
}

#[test]
fn readers_that_want_it_are_listed_with_their_beginning() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let unlisted = registry.register(|| 3).unwrap();
    let first = registry.register_listed(|| 5, 100).unwrap();
    let second = registry.register_listed(|| 5, 0).unwrap();
    let mut listed = registry.list();
    listed.sort_unstable();
    assert_eq!(listed, [(5, 0), (5, 100)]);
    drop(first);
    assert_eq!(registry.list(), [(5, 0)]);
    // Whoever takes a slot over is listed only if it wants to be.
    let third = registry.register(|| 9).unwrap();
    assert_eq!(registry.list(), [(5, 0)]);
    drop((unlisted, second, third));
    assert_eq!(registry.list(), []);
}

#[test]
fn the_registry_grows_by_blocks() {
    let arena = Arena::new(options(3 * 8192)).unwrap();
    let registry = ReaderRegistry::new(&arena).unwrap();
    let guards: Vec<_> = (1..=1533).map(|n| registry.register(|| n).unwrap()).collect();
    assert_eq!(arena.used_by(Category::Registry), 3 * 8192);
    assert_eq!(registry.register(|| 1).unwrap_err().kind(), ArenaErrorKind::OutOfMemory);
    assert_eq!(registry.live(), (1..=1533).collect::<Vec<_>>());
    drop(guards);
    assert_eq!((registry.live().len(), registry.oldest(5)), (0, 5));
    let guards: Vec<_> = (1..=1533).map(|n| registry.register(|| n).unwrap()).collect();
    assert_eq!(registry.oldest(5_000), 1);
    drop((guards, registry));
    assert_eq!(arena.used_bytes(), 0);
}

/// Readers come and go while a merger computes how far it may go; no reader is left behind it.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn no_reader_is_overtaken() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let (visible, merged) = (AtomicU64::new(1), AtomicU64::new(0));
    const COMMITS: u64 = 200_000;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let registry = registry.clone();
            let (visible, merged) = (&visible, &merged);
            scope.spawn(move || {
                while visible.load(Ordering::Acquire) < COMMITS {
                    let guard = registry.register(|| visible.load(Ordering::Acquire)).unwrap();
                    for _ in 0..3 {
                        assert!(merged.load(Ordering::SeqCst) <= guard.commit());
                    }
                }
            });
        }
        scope.spawn(|| {
            while visible.load(Ordering::Acquire) < COMMITS {
                let oldest = registry.oldest(visible.load(Ordering::Acquire));
                merged.fetch_max(oldest, Ordering::SeqCst);
            }
        });
        (0..COMMITS).for_each(|_| {
            visible.fetch_add(1, Ordering::AcqRel);
        });
    });
}
