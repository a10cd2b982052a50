use super::SparseWords;
use crate::{Arena, ArenaErrorKind, ArenaOptions, Category};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn arena() -> Arc<Arena> {
    Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: u64::MAX }).unwrap()
}

#[test]
fn chunks_exist_once_set() {
    let arena = arena();
    let words = SparseWords::new(&arena, Category::Visibility).unwrap();
    assert_eq!(words.memory_bytes(), 512);
    assert_eq!((words.get(0), words.get(u32::MAX)), (0, 0));
    words.set(5_000, 77).unwrap();
    assert_eq!(words.memory_bytes(), 512 + 512 + 8192);
    assert!(words.chunk(3).is_none() && words.chunk(usize::MAX).is_none());
    let chunk = words.chunk(4).unwrap();
    assert_eq!((chunk.len(), chunk[5_000 - 4_096].load(Ordering::Acquire)), (1024, 77));
    assert_eq!(arena.used_by(Category::Visibility), words.memory_bytes());
    drop(words);
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn refusals_say_what_was_expected() {
    let words = SparseWords::new(&arena(), Category::Visibility).unwrap();
    words.set((1 << 22) - 1, 1).unwrap();
    let error = words.set(1 << 22, 1).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "row 4194304 of a group; rows are below 4194304");
    let small = Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: 4096 }).unwrap();
    let words = SparseWords::new(&small, Category::Visibility).unwrap();
    assert_eq!(words.set(0, 1).unwrap_err().kind(), ArenaErrorKind::OutOfMemory);
    assert_eq!(words.get(0), 0);
}

#[test]
fn words_are_replaced_wherever_they_are() {
    let words = SparseWords::new(&arena(), Category::Visibility).unwrap();
    let rows = [0, 1, 1_023, 1_024, 70_000, (1 << 22) - 1];
    rows.iter().for_each(|row| words.set(*row, u64::from(*row) + 7).unwrap());
    let (mut met, bytes) = (Vec::new(), words.memory_bytes());
    words.replace_each(|word| {
        met.push(word);
        // To nothing, to another word, or not at all.
        [Some(0), Some(word * 2), None][usize::try_from(word % 3).unwrap()]
    });
    assert_eq!(met, rows.map(|row| u64::from(row) + 7));
    for row in rows {
        let word = u64::from(row) + 7;
        assert_eq!(
            words.get(row),
            [0, word * 2, word][usize::try_from(word % 3).unwrap()],
            "{row}"
        );
    }
    assert_eq!(words.memory_bytes(), bytes);
}

/// Blocks come back from the free list zeroed.
#[test]
fn reused_memory_reads_as_zero() {
    let arena = arena();
    let words = SparseWords::new(&arena, Category::Visibility).unwrap();
    (0..4_096).for_each(|row| words.set(row, u64::MAX).unwrap());
    drop(words);
    let words = SparseWords::new(&arena, Category::Visibility).unwrap();
    words.set(0, 1).unwrap();
    words.set(1_024, 1).unwrap();
    assert!((1..4_096).filter(|row| *row != 1_024).all(|row| words.get(row) == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn holds_what_a_map_holds(
        sets in prop::collection::vec((0u32..1 << 22, 1..u64::MAX), 0..200),
        others in prop::collection::vec(0u32..1 << 22, 100),
    ) {
        let words = SparseWords::new(&arena(), Category::Visibility).unwrap();
        let mut model = BTreeMap::new();
        for (row, value) in sets {
            words.set(row, value).unwrap();
            model.insert(row, value);
        }
        for row in model.keys().copied().chain(others) {
            prop_assert_eq!(words.get(row), model.get(&row).copied().unwrap_or(0));
        }
    }
}

/// A reader that sees row `n` set sees row `n - 1` set.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn sets_are_seen_in_order() {
    let words = SparseWords::new(&arena(), Category::Visibility).unwrap();
    const ROWS: u32 = 200_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut at = ROWS - 1;
            while words.get(ROWS - 1) == 0 {
                if words.get(at) != 0 && at > 0 {
                    assert_eq!(words.get(at - 1), u64::from(at));
                }
                at = if at == 0 { ROWS - 1 } else { at - 1 };
            }
        });
        for row in 0..ROWS {
            words.set(row, u64::from(row) + 1).unwrap();
        }
    });
}
