//! Heaps of texts and byte strings, compressed in blocks.
//!
//! ```text
//! directory, u32 each, one more than blocks:  where a block begins among the bytes
//! block:  65,536 bytes of the heap (the last may have fewer) by zstd; as they are where the block
//!         is as long as they
//! ```
//!
//! How long a block is when it is read is known before memory is taken for it. The library that
//! does the work is named nowhere else below `import`.

use std::ops::Range;

use crate::{Error, Result};

/// Bytes of a heap that are compressed together.
pub const HEAP_BLOCK_BYTES: usize = 64 << 10;
/// How hard the compressor tries.
const LEVEL: i32 = 3;

/// A heap, compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressedBytes {
    /// Where each block begins, and where the last one ends.
    pub directory: Vec<u32>,
    /// The blocks.
    pub bytes: Vec<u8>,
}

impl CompressedBytes {
    /// Compresses a heap; `None` where that fails, or has more bytes than a directory can tell.
    #[must_use]
    pub fn new(heap: &[u8]) -> Option<Self> {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL).ok()?;
        let mut compressed = Self { directory: vec![0], bytes: Vec::new() };
        for block in heap.chunks(HEAP_BLOCK_BYTES) {
            let packed = compressor.compress(block).ok()?;
            compressed.bytes.extend(if packed.len() < block.len() { &packed } else { block });
            compressed.directory.push(u32::try_from(compressed.bytes.len()).ok()?);
        }
        Some(compressed)
    }
}

/// How many entries the directory of a heap of `len` bytes has.
#[must_use]
pub fn directory_len(len: u64) -> u64 {
    len.div_ceil(HEAP_BLOCK_BYTES as u64) + 1
}

/// Which bytes of a heap of `len` bytes a block has.
#[must_use]
pub fn block_range(block: usize, len: usize) -> Range<usize> {
    let start = block.saturating_mul(HEAP_BLOCK_BYTES).min(len);
    start..start.saturating_add(HEAP_BLOCK_BYTES).min(len)
}

/// Decompresses a block that has `len` bytes.
///
/// # Errors
/// `Corrupt` when it has another length, or is damaged.
pub fn decompress(block: &[u8], len: usize) -> Result<Vec<u8>> {
    if len > HEAP_BLOCK_BYTES {
        return Err(Error::corrupt(format!("a block of {len} bytes")));
    }
    if block.len() == len {
        return Ok(block.to_vec());
    }
    let bytes = zstd::bulk::decompress(block, len)
        .map_err(|e| Error::corrupt(format!("a compressed block of {} bytes: {e}", block.len())))?;
    match bytes.len() == len {
        true => Ok(bytes),
        false => {
            let found = bytes.len();
            Err(Error::corrupt(format!("a compressed block of {found} bytes, expected {len}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back(heap: &[u8]) {
        let compressed = CompressedBytes::new(heap).unwrap();
        assert_eq!(compressed.directory.len() as u64, directory_len(heap.len() as u64));
        let mut all = Vec::new();
        for (block, ends) in compressed.directory.windows(2).enumerate() {
            let bytes = &compressed.bytes[ends[0] as usize..ends[1] as usize];
            all.extend(decompress(bytes, block_range(block, heap.len()).len()).unwrap());
        }
        assert_eq!(all, heap);
    }

    #[test]
    fn heaps_come_back() {
        for len in [0, 1, 65_535, 65_536, 65_537, 200_000] {
            comes_back(&vec![b'a'; len]);
            let mixed = |n: u64| crate::hash::of_word(n).to_le_bytes();
            let random: Vec<u8> = (0..len as u64).flat_map(mixed).take(len).collect();
            comes_back(&random);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let compressed = CompressedBytes::new(&b"hello, hello! ".repeat(300)).unwrap();
        let bytes = compressed.bytes;
        assert!(decompress(&bytes, 4_199).is_err());
        assert!(decompress(&bytes, 4_201).is_err());
        assert!(decompress(&bytes, HEAP_BLOCK_BYTES + 1).is_err());
        assert!(decompress(&bytes[..bytes.len() - 1], 4_200).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // It may be another text; it is never more than what was asked for.
            if let Ok(text) = decompress(&damaged, 4_200) {
                assert_eq!(text.len(), 4_200);
            }
        }
    }
}
