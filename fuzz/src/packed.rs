//! Packed numbers and compressed heaps come back, and of damaged ones no reader panics or takes
//! more than it was told.

use esker_format::compression::{
    CompressedBytes, HEAP_BLOCK_BYTES, block_range, decompress, directory_len,
};
use esker_format::segment::packed::{DeltaReader, First, PackedNumbers, PackedReader, lines_of};

/// The most numbers of an input.
const NUMBERS_MAX: usize = 4_000;

/// The target: numbers to pack, and what may be a directory and words, or a compressed block.
pub fn run(data: &[u8]) {
    let words: Vec<u64> =
        data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).take(NUMBERS_MAX).collect();
    let shift = data.first().copied().unwrap_or_default() % 64;
    round_trip(&words.iter().map(|word| word >> shift).collect::<Vec<_>>());
    damaged(&words);
    heap(data);
}

fn round_trip(numbers: &[u64]) {
    let count = numbers.len();
    let packed = PackedNumbers::new(numbers);
    let reader = PackedReader::new(
        packed.directory.as_chunks().0,
        packed.words.as_chunks().0,
        First::default(),
    );
    assert_eq!(reader.unpack::<u64>(0..count, 0).expect("numbers"), numbers);
    let deltas = PackedNumbers::of_deltas(numbers);
    let directory = deltas.directory.as_chunks().0;
    let delta_reader = DeltaReader::new(directory, deltas.words.as_chunks().0, First::default());
    assert_eq!(delta_reader.unpack(0..count, 0).expect("deltas"), numbers);
    if let Some(last) = numbers.last() {
        assert_eq!(reader.get(count - 1), Ok(*last));
        assert_eq!(delta_reader.get(count - 1), Ok(*last));
    }
}

/// The first few words as a directory of the others.
fn damaged(words: &[u64]) {
    let (directory, rest) = words.split_at(words.len().min(12));
    let rest = rest.as_chunks().0;
    let rows = 0..2_500;
    for first in [First::default(), First { block: 1, line: 3 }] {
        let reader = PackedReader::new(directory.as_chunks().0, rest, first);
        let _ = reader.bounds(&rows);
        let _ = reader.get(1_500);
        let _ = reader.unpack::<u8>(rows.clone(), 7);
        let _ = reader.unpack::<u32>(1_020..1_030, 0);
        let reader = DeltaReader::new(directory.as_chunks().0, rest, first);
        let _ = reader.unpack(rows.clone(), 5);
        let _ = reader.get(1_100);
    }
    if let [from, to, ..] = directory {
        let _ = lines_of(*from, *to, &rows);
    }
}

fn heap(data: &[u8]) {
    if let Some(compressed) = CompressedBytes::new(data) {
        assert_eq!(compressed.directory.len() as u64, directory_len(data.len() as u64));
        let mut all = Vec::new();
        for (block, ends) in compressed.directory.windows(2).enumerate() {
            let [start, end] = ends else { continue };
            let bytes = compressed.bytes.get(*start as usize..*end as usize).expect("a block");
            let len = block_range(block, data.len()).len();
            all.extend(decompress(bytes, len).expect("a block"));
        }
        assert_eq!(all, data);
    }
    for len in [0, 1, data.len(), 4_096, HEAP_BLOCK_BYTES] {
        if let Ok(bytes) = decompress(data, len.min(HEAP_BLOCK_BYTES)) {
            assert_eq!(bytes.len(), len.min(HEAP_BLOCK_BYTES));
        }
    }
    assert!(decompress(data, HEAP_BLOCK_BYTES + 1).is_err());
}
