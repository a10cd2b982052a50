//! Where the values of a column lie, some of them in value files.

use std::sync::Arc;

use esker_format::ValueReference;
use esker_format::column::Heap;
use esker_format::segment::Extent;
use esker_format::value_file::{HeapWord, REFERENCE_BYTES};
use esker_vfs::{BlockCopies, Mapping};

use super::plain::byte;
use crate::value_file::ValueFile;

/// Where the values of a column lie. A value is verified before it is read.
pub(super) struct ScatteredHeap {
    pub mapping: Mapping,
    pub copies: Option<Arc<BlockCopies>>,
    pub heap: Extent,
    pub long: Extent,
    pub files: Arc<[Arc<ValueFile>]>,
}

impl ScatteredHeap {
    fn raw(&self, extent: Extent, start: u64, len: u64) -> Option<&[u8]> {
        let start = byte(extent.offset.checked_add(start)?);
        let range = start..start.checked_add(byte(len))?;
        match &self.copies {
            None => self.mapping.get(range),
            Some(copies) => copies.get(range),
        }
    }

    fn long(&self, index: u64) -> Option<&[u8]> {
        let size = REFERENCE_BYTES as u64;
        let bytes = self.raw(self.long, index.checked_mul(size)?, size)?;
        let words = bytemuck::try_from_bytes(bytes).ok()?;
        let reference = ValueReference::from_words(*words).ok()?;
        Some(find(&self.files, reference.file)?.bytes(&reference))
    }
}

impl Heap for ScatteredHeap {
    fn bytes(&self, word: u64) -> &[u8] {
        let bytes = match HeapWord::of(word) {
            HeapWord::Near { position, len } => self.raw(self.heap, position, len),
            HeapWord::Long { index } => self.long(index),
        };
        // default: what `Segment::scattered` refuses is empty, since a heap has no errors
        bytes.unwrap_or_default()
    }
}

pub(super) fn find(files: &[Arc<ValueFile>], id: u64) -> Option<&Arc<ValueFile>> {
    files.binary_search_by_key(&id, |file| file.id()).ok().and_then(|at| files.get(at))
}
