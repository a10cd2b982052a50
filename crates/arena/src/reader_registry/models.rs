//! Loom models of the registry.

use super::{ReaderKind, Slots};
use crate::words::loom_words::{LoomWords, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

fn slots() -> Arc<Slots<LoomWords>> {
    Arc::new(Slots::new(LoomWords::new(48), 8, 1).unwrap())
}

/// A merger that read `visible` first never goes past a snapshot that is not over.
#[test]
fn loom_no_registered_reader_is_missed() {
    explore(|| {
        let slots = slots();
        let visible = Arc::new(AtomicU64::new(1));
        let reader = {
            let (slots, visible) = (Arc::clone(&slots), Arc::clone(&visible));
            thread::spawn(move || {
                let slot = slots.claim().unwrap();
                slots
                    .enter((slot, ReaderKind::ReadWrite), || visible.load(Ordering::Acquire))
                    .unwrap()
            })
        };
        let merger = {
            let (slots, visible) = (Arc::clone(&slots), Arc::clone(&visible));
            thread::spawn(move || slots.oldest(visible.load(Ordering::Acquire)))
        };
        visible.store(2, Ordering::Release);
        let (commit, oldest) = (reader.join().unwrap(), merger.join().unwrap());
        assert!(oldest <= commit, "merged up to {oldest}, read at {commit}");
        assert_eq!(slots.oldest(5), commit);
    });
}

/// A merger that drops what nobody sees, beside a snapshot that is held and one that comes: what
/// the one that comes reads stays, though an older one is held.
#[test]
fn loom_no_version_between_readers_is_lost() {
    explore(|| {
        let slots = slots();
        let visible = Arc::new(AtomicU64::new(4));
        let held = slots.claim().unwrap();
        slots.enter((held, ReaderKind::ReadWrite), || 2).unwrap();
        let reader = {
            let (slots, visible) = (Arc::clone(&slots), Arc::clone(&visible));
            thread::spawn(move || {
                let slot = slots.claim().unwrap();
                slots
                    .enter((slot, ReaderKind::ReadWrite), || visible.load(Ordering::Acquire))
                    .unwrap()
            })
        };
        let merger = {
            let (slots, visible) = (Arc::clone(&slots), Arc::clone(&visible));
            thread::spawn(move || slots.read_commits(visible.load(Ordering::Acquire)))
        };
        visible.store(5, Ordering::Release);
        let (commit, readers) = (reader.join().unwrap(), merger.join().unwrap());
        // Each commit replaces what the one before it has created.
        assert!(readers.may_see(commit, commit + 1), "{readers:?}, read at {commit}");
        assert!(readers.may_see(2, 3), "{readers:?} forgets who was there before");
        assert!(readers.oldest() <= 2);
        assert_eq!(slots.read_commits(9).held(), [2, commit]);
    });
}

/// Two readers never share a slot, and a slot given back serves the next.
#[test]
fn loom_slots_are_exclusive() {
    explore(|| {
        let slots = slots();
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || {
                let slot = slots.claim().unwrap();
                slots.enter((slot, ReaderKind::ReadWrite), || 4).unwrap();
                slots.release(slot);
                let slot = slots.claim().unwrap();
                slots.enter((slot, ReaderKind::ReadWrite), || 5).unwrap();
            })
        };
        let slot = slots.claim().unwrap();
        slots.enter((slot, ReaderKind::ReadWrite), || 7).unwrap();
        assert!(slots.commits().any(|commit| commit == 7));
        other.join().unwrap();
        assert_eq!(slots.oldest(9), 5);
        assert_eq!(slots.commits().count(), 2);
    });
}
