//! Loom models of sparse words.

use super::Inner;
use crate::words::loom_words::{LoomWords, explore};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Plain memory that a set word vouches for.
struct Version(UnsafeCell<u64>);

#[allow(unsafe_code, reason = "loom's cells")]
// SAFETY: loom checks that accesses are ordered, which is what the model is about.
unsafe impl Sync for Version {}

/// A reader sees no chunk, a zeroed chunk or the word, and with the word all that came before it.
#[test]
#[allow(unsafe_code, reason = "loom's cells")]
fn loom_a_set_word_carries_what_came_before() {
    explore(|| {
        let words = Arc::new(Inner::new(LoomWords::new(8 + 64 + 64 + 1024)).unwrap());
        let version = Arc::new(Version(UnsafeCell::new(0)));
        let reader = {
            let (words, version) = (Arc::clone(&words), Arc::clone(&version));
            thread::spawn(move || {
                let (second, first) = (words.get(4), words.get(3));
                assert!(second == 0 || (second == 2 && first == 1));
                if first == 1 {
                    // SAFETY: loom checks the access.
                    assert_eq!(version.0.with(|cell| unsafe { *cell }), 9);
                } else {
                    assert_eq!(first, 0);
                }
            })
        };
        // SAFETY: loom checks the access.
        version.0.with_mut(|cell| unsafe { *cell = 9 });
        words.set(3, 1).unwrap();
        words.set(4, 2).unwrap();
        reader.join().unwrap();
        assert_eq!((words.get(3), words.get(4)), (1, 2));
    });
}

/// Words are replaced while somebody reads them and others are set: a reader sees the old word or
/// the new one, with the new one all that came before it, and none that was set is lost.
#[test]
#[allow(unsafe_code, reason = "loom's cells")]
fn loom_a_replaced_word_carries_what_came_before() {
    explore(|| {
        let words = Arc::new(Inner::new(LoomWords::new(8 + 64 + 64 + 1024)).unwrap());
        let version = Arc::new(Version(UnsafeCell::new(0)));
        words.set(3, 1).unwrap();
        let reader = {
            let (words, version) = (Arc::clone(&words), Arc::clone(&version));
            thread::spawn(move || match words.get(3) {
                1 => {}
                // SAFETY: loom checks the access.
                5 => assert_eq!(version.0.with(|cell| unsafe { *cell }), 9),
                other => panic!("{other}"),
            })
        };
        let writer = {
            let words = Arc::clone(&words);
            thread::spawn(move || words.set(4, 7).unwrap())
        };
        // SAFETY: loom checks the access.
        version.0.with_mut(|cell| unsafe { *cell = 9 });
        words.replace_each(|word| (word == 1).then_some(5));
        reader.join().unwrap();
        writer.join().unwrap();
        assert_eq!((words.get(3), words.get(4)), (5, 7));
    });
}
