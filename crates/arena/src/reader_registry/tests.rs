use super::{ReaderKind, ReaderRegistry};
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
        let readers = registry.read_commits(9);
        assert!(readers.oldest() == 0 && readers.may_see(1, 2));
        3
    });
    assert_eq!(guard.unwrap().commit(), 3);
    assert_eq!(registry.register(|| u64::MAX).unwrap_err().kind(), ArenaErrorKind::InvalidInput);
    assert_eq!(registry.oldest(9), 9);
}

#[test]
fn what_lies_between_snapshots_is_seen_by_nobody() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let seen = |created, deleted| registry.read_commits(20).may_see(created, deleted);
    assert!(!seen(0, 20) && seen(0, 21) && seen(0, 0) && seen(30, 31));
    let seven = registry.register(|| 7).unwrap();
    let again = registry.register(|| 7).unwrap();
    let three = registry.register(|| 3).unwrap();
    let newest = registry.register(|| 25).unwrap();
    assert_eq!(registry.read_commits(20).held(), [3, 7, 25]);
    assert_eq!((registry.read_commits(20).oldest(), registry.read_commits(2).oldest()), (3, 2));
    // For every version, the answer is what looking at each commit gives.
    for created in 0..30 {
        for deleted in created + 1..30 {
            let by_one = |commit: &u64| created <= *commit && *commit < deleted;
            let expected = deleted > 20 || [3, 7, 25].iter().any(by_one);
            assert_eq!(seen(created, deleted), expected, "{created} to {deleted}");
        }
    }
    drop((seven, three));
    assert!(seen(0, 8) && !seen(0, 4), "one of two at a commit holds it");
    drop((again, newest));
    assert_eq!(registry.read_commits(20).held(), []);
}

/// A reader that only reads holds what it sees; one that may write holds, besides, what tells of
/// the changes since.
#[test]
fn readers_that_may_write_are_told_apart() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    assert_eq!(registry.read_commits(20).oldest_writer(), 20);
    let reader = registry.register_listed(ReaderKind::ReadOnly, || 3, 0).unwrap();
    assert_eq!((reader.commit(), registry.oldest(20), registry.live()), (3, 3, vec![3]));
    let readers = registry.read_commits(20);
    assert_eq!((readers.oldest(), readers.held(), readers.oldest_writer()), (3, &[3][..], 20));
    let writers = [5, 9].map(|at| registry.register_listed(ReaderKind::ReadWrite, || at, 0));
    assert_eq!(registry.read_commits(20).oldest_writer(), 5);
    assert_eq!(registry.read_commits(4).oldest_writer(), 4);
    assert_eq!(registry.read_commits(20).later().oldest_writer(), 5);
    drop(writers);
    assert_eq!(registry.read_commits(20).oldest_writer(), 20);
}

#[test]
fn readers_that_want_it_are_listed_with_their_beginning() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let unlisted = registry.register(|| 3).unwrap();
    let first = registry.register_listed(ReaderKind::ReadOnly, || 5, 100).unwrap();
    let second = registry.register_listed(ReaderKind::ReadWrite, || 5, 0).unwrap();
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

/// Readers come and go, some of them old ones, while a merger finds out who reads what: a version
/// that it would drop is seen by no reader, registered before, meanwhile or after.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn no_reader_loses_a_version_between_others() {
    let registry = ReaderRegistry::new(&Arena::new(options(u64::MAX)).unwrap()).unwrap();
    let visible = AtomicU64::new(1);
    const COMMITS: u64 = 4_096;
    // Each commit replaces the version of the one before; those that were dropped are marked.
    let dropped: Vec<_> = (0..=COMMITS).map(|_| AtomicU64::new(0)).collect();
    let is_there = |at: u64| dropped[usize::try_from(at).unwrap()].load(Ordering::SeqCst) == 0;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let registry = registry.clone();
            let (visible, is_there) = (&visible, &is_there);
            scope.spawn(move || {
                let mut old = std::collections::VecDeque::new();
                while visible.load(Ordering::Acquire) < COMMITS {
                    let guard = registry.register(|| visible.load(Ordering::Acquire)).unwrap();
                    assert!(is_there(guard.commit()), "{}", guard.commit());
                    old.push_back(guard);
                    for guard in &old {
                        assert!(is_there(guard.commit()), "{}", guard.commit());
                    }
                    if old.len() > 3 + thread {
                        old.pop_front();
                    }
                }
            });
        }
        scope.spawn(|| {
            while visible.load(Ordering::Acquire) < COMMITS {
                let readers = registry.read_commits(visible.load(Ordering::Acquire));
                let newest = readers.since().min(COMMITS);
                for at in
                    (newest.saturating_sub(64)..newest).filter(|at| !readers.may_see(*at, at + 1))
                {
                    dropped[usize::try_from(at).unwrap()].store(1, Ordering::SeqCst);
                }
            }
        });
        for _ in 1..COMMITS {
            visible.fetch_add(1, Ordering::AcqRel);
            std::thread::yield_now();
        }
    });
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
