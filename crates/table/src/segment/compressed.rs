//! Bytes of compressed heaps.

use std::ops::Range;
use std::sync::Arc;

use esker_format::Room;
use esker_format::compression::{HEAP_BLOCK_BYTES, block_range, decompress, directory_len};
use esker_format::segment::{CompressedExtent, Encoding, Packing};
use esker_log::sabotage::Bug;

use super::Segment;
use super::heap_blocks::BlockKey;
use super::plain::byte;
use crate::{Error, Result};

impl Segment {
    /// True when some column has to be unpacked.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.footer.packing != Packing::None
    }

    /// True when its heaps were compressed where that pays.
    #[must_use]
    pub fn is_packed_whole(&self) -> bool {
        self.footer.packing == Packing::Heaps
    }

    /// Bytes that its compressed heaps have once they are decompressed.
    #[must_use]
    pub fn compressed_heap_bytes(&self) -> u64 {
        let heaps = self.footer.columns.iter().map(|layout| match &layout.encoding {
            Encoding::Compressed { heap, .. } => heap.len,
            _ => 0,
        });
        heaps.fold(0, u64::saturating_add)
    }

    /// Bytes of a compressed heap: of a block where it is one, or put together.
    pub(super) fn compressed_bytes<'a>(
        &self,
        column: usize,
        heap: &CompressedExtent,
        range: Range<usize>,
        room: &'a Room,
    ) -> Result<&'a [u8]> {
        let len = byte(heap.len);
        if range.start > range.end || range.end > len {
            let id = self.id();
            let message = format!("segment {id}: bytes {range:?} of a compressed heap of {len}");
            return Err(Error::corrupt(message));
        }
        if range.is_empty() {
            return Ok(&[]);
        }
        let (first, last) = (range.start / HEAP_BLOCK_BYTES, (range.end - 1) / HEAP_BLOCK_BYTES);
        let within = |block: usize| {
            let all = block_range(block, len);
            let (start, end) = (range.start.max(all.start), range.end.min(all.end));
            start - all.start..end - all.start
        };
        let cut = |bytes: &'a [u8], block| {
            bytes.get(within(block)).ok_or_else(|| self.short_block(block))
        };
        if first == last {
            return cut(room.shared(self.heap_block(column, heap, first)?), first);
        }
        // A file may claim any length: it grows by what is there.
        let mut bytes = Vec::new();
        for block in first..=last {
            let whole = self.heap_block(column, heap, block)?;
            bytes.extend(whole.get(within(block)).ok_or_else(|| self.short_block(block))?);
        }
        Ok(room.bytes(bytes))
    }

    #[cold]
    fn short_block(&self, block: usize) -> Error {
        Error::corrupt(format!("segment {}: block {block} of a heap is short", self.id()))
    }

    /// A block of a compressed heap, out of the cache or decompressed.
    fn heap_block(
        &self,
        column: usize,
        heap: &CompressedExtent,
        block: usize,
    ) -> Result<Arc<[u8]>> {
        let segment = if Bug::PackedBlockOfOtherSegment.is_planted() { 0 } else { self.id() };
        let key = BlockKey { segment, column, block };
        let cache = self.files.as_ref().and_then(|files| files.heap_blocks());
        if let Some(bytes) = cache.and_then(|cache| cache.get(key)) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.decompressed(heap, block)?.into();
        if let Some(cache) = cache {
            cache.put(key, &bytes);
        }
        Ok(bytes)
    }

    fn decompressed(&self, heap: &CompressedExtent, block: usize) -> Result<Vec<u8>> {
        let at = |e: Error| {
            let field = heap.bytes.offset;
            e.at(format!("segment {}, heap at {field}, block {block}", self.id()))
        };
        let [start, end] = self.typed::<u32>(heap.directory, block..block + 2)? else {
            return Err(at(Error::corrupt("a directory without it")));
        };
        if start > end {
            return Err(at(Error::corrupt(format!("it lies from {start} to {end}"))));
        }
        let stored = self.bytes(heap.bytes, *start as usize..*end as usize).map_err(at)?;
        let len = block_range(block, byte(heap.len)).len();
        decompress(stored, len).map_err(|e| at(e.into()))
    }

    /// Decompresses every block of every heap.
    pub(super) fn verify_compressed(&self) -> Result<()> {
        for layout in &self.footer.columns {
            let Encoding::Compressed { heap, .. } = &layout.encoding else { continue };
            for block in 0..byte(directory_len(heap.len)) - 1 {
                self.decompressed(heap, block)?;
            }
        }
        Ok(())
    }
}
