use super::{ByteHeap, ByteReader, ByteWriter};
use crate::{Arena, ArenaErrorKind, ArenaOptions, Category};
use proptest::prelude::*;
use std::sync::Arc;

fn heap() -> (ByteWriter, ByteReader, Arc<Arena>) {
    let options = ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: u64::MAX };
    let arena = Arena::new(options).unwrap();
    let (writer, reader) = ByteHeap::new(&arena, Category::Group).unwrap();
    (writer, reader, arena)
}

#[test]
fn long_strings_lie_in_one_piece() {
    let (mut writer, reader, arena) = heap();
    let sizes = [0, 1, 255, 256, 257, 5_000, 4 << 20, (4 << 20) + 1, 8 << 20, 3, 4 << 20, 100, 0];
    let mut kept = Vec::new();
    for round in 0..6u8 {
        for (index, size) in sizes.into_iter().enumerate() {
            let value = vec![round * 16 + u8::try_from(index).unwrap(); size];
            kept.push((writer.push(&value).unwrap(), value));
        }
    }
    for (reference, value) in &kept {
        assert_eq!(reader.get(*reference).unwrap(), value);
    }
    let error = writer.push(&vec![0; (8 << 20) + 1]).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::InvalidInput);
    assert!(error.to_string().contains("8388609 bytes; the most is 8388608"), "{error}");
    drop((writer, reader));
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn slot_tables_grow() {
    let (mut writer, reader, _arena) = heap();
    let value = vec![9u8; 1 << 20];
    let references: Vec<u64> = (0..300).map(|_| writer.push(&value).unwrap()).collect();
    assert!(references.iter().all(|reference| reader.bytes(*reference) == value));
}

#[test]
fn a_window_has_what_its_chunk_has() {
    let (mut writer, reader, _arena) = heap();
    assert_eq!(reader.window(0), None);
    let mut kept = Vec::new();
    for round in 0..3_000usize {
        let value = vec![u8::try_from(round % 251).unwrap(); round * 7 % 9_000];
        kept.push((writer.push(&value).unwrap(), value));
        if round % 50 > 0 {
            continue;
        }
        for (reference, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
            let (start, window) = reader.window(*reference).unwrap();
            let from = usize::try_from((reference >> 24) - start).unwrap();
            assert_eq!(&window[from..from + value.len()], value);
            assert!(start + window.len() as u64 <= reader.end());
        }
    }
    assert_eq!(reader.window(reader.end() << 24), None);
    // Of a string above a slot, the part in its first one.
    let long = writer.push(&vec![7; (4 << 20) + 5]).unwrap();
    let (start, window) = reader.window(long).unwrap();
    assert_eq!((start, window), (long >> 24, &vec![7; 4 << 20][..]));
}

#[test]
fn unknown_references_read_nothing() {
    let (mut writer, reader, _arena) = heap();
    assert_eq!(reader.get(5), None);
    let reference = writer.push(b"settled").unwrap();
    assert_eq!(reader.bytes(reference), b"settled");
    assert_eq!(reader.get(reference + 1), None);
    assert_eq!(reader.bytes(u64::MAX), b"");
    // Skipped chunks have no memory, and no string crosses a chunk.
    let long = writer.push(&[1; 100_000]).unwrap();
    assert_eq!(reader.get(300 << 24 | 4), None);
    assert_eq!(reader.get(250 << 24 | 20), None);
    assert_eq!(reader.bytes(long).len(), 100_000);
}

#[test]
fn a_refused_string_changes_nothing() {
    let arena = Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: 2048 }).unwrap();
    let (mut writer, reader) = ByteHeap::new(&arena, Category::Group).unwrap();
    let first = writer.push(b"first").unwrap();
    let end = writer.end();
    let error = writer.push(&[0; 5_000]).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::OutOfMemory);
    assert_eq!((writer.end(), reader.end()), (end, end));
    let second = writer.push(b"second").unwrap();
    assert_eq!((reader.bytes(first), reader.bytes(second)), (&b"first"[..], &b"second"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn holds_what_was_pushed(values in prop::collection::vec(
        prop_oneof![prop::collection::vec(any::<u8>(), 0..40),
                    prop::collection::vec(any::<u8>(), 200..3_000)], 0..200)) {
        let (mut writer, reader, _arena) = heap();
        let references: Vec<u64> =
            values.iter().map(|value| writer.push(value).unwrap()).collect();
        for (value, reference) in values.iter().zip(references) {
            prop_assert_eq!(reader.get(reference), Some(value.as_slice()));
        }
    }

    #[test]
    fn any_reference_is_safe(
        references in prop::collection::vec(any::<u64>(), 100),
        shift in 0..40,
    ) {
        let (mut writer, reader, _arena) = heap();
        for size in [10, 300, 70_000, 5 << 20, 8 << 20] {
            writer.push(&vec![1; size]).unwrap();
        }
        for reference in references {
            let bytes = reader.bytes(reference >> shift);
            prop_assert!(bytes.iter().step_by(4_001).all(|byte| *byte <= 1));
        }
    }
}

/// Readers run beside the writer and follow every reference they are told of.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn readers_follow_references_at_once() {
    let (mut writer, reader, arena) = heap();
    let (mut references, published) =
        crate::AppendVec::<u64>::new(&arena, Category::Group).unwrap();
    const COUNT: usize = 60_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut at = 0;
            while at < COUNT {
                for reference in published.slice(at, COUNT) {
                    let expected = u8::try_from(at % 251).unwrap();
                    let bytes = reader.get(*reference).unwrap();
                    assert_eq!(bytes.len(), at % 300);
                    assert!(bytes.iter().all(|byte| *byte == expected));
                    at += 1;
                }
            }
        });
        for index in 0..COUNT {
            let value = vec![u8::try_from(index % 251).unwrap(); index % 300];
            references.push(writer.push(&value).unwrap()).unwrap();
        }
    });
}
