use super::{AppendVec, chunk_end};
use crate::{Arena, ArenaErrorKind, ArenaOptions, Category};
use proptest::prelude::*;
use std::sync::Arc;

fn arena() -> Arc<Arena> {
    Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: u64::MAX }).unwrap()
}

#[test]
fn a_refused_append_changes_nothing() {
    let arena = Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: 4096 }).unwrap();
    let (mut writer, reader) = AppendVec::<u64>::new(&arena, Category::Group).unwrap();
    writer.append(&[1; 96]).unwrap();
    let error = writer.append(&[2; 1000]).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::OutOfMemory);
    assert!(error.to_string().contains("limit 4096 bytes"), "{error}");
    assert_eq!((writer.len(), reader.len()), (96, 96));
    writer.push(3).unwrap();
    assert_eq!(reader.get(96), Some(3));
    assert_eq!(reader.get(97), None);
    assert_eq!(writer.reserve(usize::MAX).unwrap_err().kind(), ArenaErrorKind::InvalidInput);
}

#[test]
fn blocks_go_back_when_the_last_handle_goes() {
    let arena = arena();
    let (mut writer, reader) = AppendVec::<[u8; 16]>::new(&arena, Category::Load).unwrap();
    writer.append(&vec![[7; 16]; 10_000]).unwrap();
    assert!(arena.used_by(Category::Load) >= 160_000);
    drop(writer);
    assert_eq!(reader.get(9_999), Some([7; 16]));
    drop(reader);
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn boundaries_do_not_depend_on_width() {
    let arena = arena();
    let (mut wide, wide_reader) = AppendVec::<u128>::new(&arena, Category::Group).unwrap();
    let (mut narrow, narrow_reader) = AppendVec::<u8>::new(&arena, Category::Group).unwrap();
    wide.append(&[1; 5_000]).unwrap();
    narrow.append(&[1; 5_000]).unwrap();
    let mut at = 0;
    while at < 5_000 {
        let piece = wide_reader.slice(at, 5_000).len();
        assert_eq!(narrow_reader.slice(at, 5_000).len(), piece);
        at += piece;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn holds_what_a_vector_holds(
        appends in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..300), 0..20),
        ranges in prop::collection::vec((0usize..4_000, 0usize..4_000), 0..20),
    ) {
        let (mut writer, reader) = AppendVec::<u32>::new(&arena(), Category::Group).unwrap();
        let mut model = Vec::new();
        for values in &appends {
            writer.append(values).unwrap();
            model.extend_from_slice(values);
            prop_assert_eq!(reader.len(), model.len());
        }
        for (start, end) in ranges {
            let stop = end.min(model.len()).min(chunk_end(start));
            let expected = if start < stop { &model[start..stop] } else { &[] };
            prop_assert_eq!(reader.slice(start, end), expected);
            prop_assert_eq!(reader.get(start), model.get(start).copied());
        }
    }
}

/// Readers run beside the writer and check every element they can see.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn readers_see_only_finished_elements() {
    let (mut writer, reader) = AppendVec::<[u64; 2]>::new(&arena(), Category::Group).unwrap();
    const COUNT: usize = 300_000;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let reader = reader.clone();
            scope.spawn(move || {
                let mut at = 0;
                while at < COUNT {
                    for (index, pair) in reader.slice(at, COUNT).iter().enumerate() {
                        let row = (at + index) as u64;
                        assert_eq!(*pair, [row, !row]);
                    }
                    at += reader.slice(at, COUNT).len().min(1_000);
                }
            });
        }
        let mut next = 0u64;
        while next < COUNT as u64 {
            let count = (next % 97 + 1).min(COUNT as u64 - next);
            writer
                .extend_with(usize::try_from(count).unwrap(), |piece| {
                    for pair in piece {
                        *pair = [next, !next];
                        next += 1;
                    }
                })
                .unwrap();
        }
    });
}
