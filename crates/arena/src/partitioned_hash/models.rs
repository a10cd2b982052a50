//! Loom models of the primary index: a reader beside each thing a writer does.
//!
//! Pages are one line here, so a rebuild is short and its memory is recycled at once.

use super::builder::Part;
use super::index::Index;
use super::pages::Shape;
use crate::words::loom_words::{LoomWords, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::ops::ControlFlow;

type Model = Arc<Index<LoomWords>>;

/// An index that holds `(tag, value)` for each given tag; values count from 1.
fn index(tags: &[u32]) -> Model {
    let shape =
        Shape { small_page_shift: 0, page_shift: 0, small_lines: 0, least_split: 8, most_split: 8 };
    let index = Index::new(LoomWords::new(240), shape).unwrap();
    for (value, tag) in (1..).zip(tags) {
        index.insert(*tag, value).unwrap();
    }
    Arc::new(index)
}

fn find(index: &Model, tag: u32, value: u64) -> bool {
    let matching = |found| {
        if found == value { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    index.candidates(tag, matching).is_break()
}

/// Runs `write` beside a reader of `(tag, value)`, which is in the index throughout. When the
/// writer is seen to be done, what it `added` is there too.
fn beside(index: &Model, steady: (u32, u64), added: (u32, u64), write: impl Fn(&Model)) {
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (index, done) = (Arc::clone(index), Arc::clone(&done));
        thread::spawn(move || {
            let finished = done.load(Ordering::Acquire);
            assert!(find(&index, steady.0, steady.1), "a look-up missed a steady entry");
            if finished {
                assert!(find(&index, added.0, added.1), "a look-up missed a finished insert");
            }
        })
    };
    write(index);
    done.store(true, Ordering::Release);
    reader.join().unwrap();
    assert!(find(index, added.0, added.1) && find(index, steady.0, steady.1));
}

#[test]
fn loom_insert_in_place_and_past_a_full_line() {
    // Two lines after growth; the first is full of low tags, so the insert overflows.
    let tags = [1, 2, 3, 4, u32::MAX, 5];
    explore(move || {
        let index = index(&tags);
        beside(&index, (4, 4), (7, 9), |index| index.insert(7, 9).unwrap());
    });
}

#[test]
fn loom_insert_that_grows_the_partition() {
    explore(|| {
        let index = index(&[1, 2, 3, 4, 5]);
        beside(&index, (5, 5), (7, 9), |index| index.insert(7, 9).unwrap());
    });
}

#[test]
fn loom_insert_that_splits_the_partition() {
    const HIGH: u32 = 1 << 31;
    explore(|| {
        let index = index(&[1, HIGH, 2, HIGH + 1, 3, HIGH + 2, 4, HIGH + 3, 5]);
        beside(&index, (HIGH + 3, 8), (HIGH + 9, 20), |index| {
            index.insert(HIGH + 9, 20).unwrap();
        });
        assert_eq!(index.directory().unwrap().bits(), 1);
    });
}

/// The second rebuild writes over the pages that the reader may still be in.
#[test]
fn loom_rebuilds_that_recycle_pages() {
    explore(|| {
        let index = index(&[3, 4]);
        assert!(index.remove(3, 1));
        beside(&index, (4, 2), (4, 2), |index| {
            for _ in 0..2 {
                let old = index.partition(4).unwrap();
                let part = Part { tag: 0, depth: 0, entries: 1 };
                index.rebuild(&mut index.write(), old, &[part]).unwrap();
            }
        });
    });
}

#[test]
fn loom_replace_shows_old_or_new() {
    explore(|| {
        let index = index(&[6, 6, 6]);
        let reader = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let mut seen = Vec::new();
                let _ = index.candidates(6, |value| {
                    seen.push(value);
                    ControlFlow::<()>::Continue(())
                });
                assert!(seen == [1, 2, 3] || seen == [1, 20, 3], "{seen:?}");
            })
        };
        assert!(index.replace(6, 2, 20));
        assert!(!index.replace(6, 2, 30));
        reader.join().unwrap();
        assert!(find(&index, 6, 20) && !find(&index, 6, 2));
    });
}

#[test]
fn loom_remove_leaves_the_others() {
    explore(|| {
        let index = index(&[1, 2, 3, 4, u32::MAX, 5, 6]);
        beside(&index, (6, 7), (8, 10), |index| {
            assert!(index.remove(1, 1));
            index.insert(8, 10).unwrap();
        });
        assert!(!find(&index, 1, 1));
    });
}
