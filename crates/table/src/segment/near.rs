//! The bytes of one value, found without making a column of it.
//!
//! Who looks a row up needs a key and a value of it, each in a place that follows from a few
//! numbers of the footer. What is between the loads decides whether the processor waits for them
//! one after the other: some ten instructions a value here, a hundred by way of a column.

use std::ops::Range;

use esker_format::segment::{ColumnLayout, Encoding, Extent};
use esker_format::value_file::HeapWord;
use esker_format::{Codes, DataType, Field, FieldId};

use super::Segment;
use super::reader::byte;
use crate::{Error, Result};

/// The columns in which the place of a value follows from its row number alone.
pub(crate) struct CellMap(Vec<Cells>);

/// Such a column.
#[derive(Clone, Copy, Debug)]
struct Cells {
    data_type: DataType,
    /// Where the first value begins; 0 where places do not follow from row numbers.
    start: usize,
    width: usize,
}

impl CellMap {
    /// Of the columns of a segment.
    pub(super) fn of(columns: &[ColumnLayout]) -> Self {
        let mut cells = Vec::new();
        for column in columns {
            let Encoding::FixedWidth { width, heap } = &column.encoding else { continue };
            if column.validity.is_some() {
                continue;
            }
            let at = usize::from(column.field.0);
            if cells.len() <= at {
                cells.resize(at + 1, Cells { data_type: column.data_type, start: 0, width: 0 });
            }
            if let Some(slot) = cells.get_mut(at) {
                let (start, width) = (byte(heap.offset), *width as usize);
                *slot = Cells { data_type: column.data_type, start, width };
            }
        }
        Self(cells)
    }

    /// Where the value of a row lies in the file.
    #[inline]
    fn place(&self, field: FieldId, data_type: DataType, row: usize) -> Option<Range<usize>> {
        let cells = self.0.get(usize::from(field.0))?;
        if cells.start == 0 || cells.data_type != data_type {
            return None;
        }
        let start = cells.start + row * cells.width;
        Some(start..start + cells.width)
    }
}

/// A part of an extent, as bytes of the file.
#[inline]
fn within(extent: Extent, start: usize, end: usize) -> Range<usize> {
    let first = byte(extent.offset);
    first.saturating_add(start)..first.saturating_add(end)
}

impl Segment {
    /// The bytes of a value whose place follows from its row number, when they have been verified.
    #[inline]
    pub(crate) fn cell(&self, field: &Field, row: usize) -> Option<&[u8]> {
        let place = self.cells.place(field.id, field.data_type, row)?;
        match &self.blocks {
            Some(blocks)
                if !blocks.are_verified(place.start as u64, place.end.saturating_sub(1) as u64) =>
            {
                None
            }
            _ => self.raw(place),
        }
    }

    /// The bytes of a value and where they lie in the file, once they have been verified. `None`
    /// where they do not lie there as they are read: constants, long values, values of fields that
    /// may be NULL somewhere or have another type.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub(crate) fn near_bytes(
        &self,
        field: &Field,
        row: usize,
    ) -> Result<Option<(Range<usize>, &[u8])>> {
        if let Some(place) = self.cells.place(field.id, field.data_type, row) {
            return self.bytes_between(place).map(Some);
        }
        let Some(index) = self.column_map.get(field.id) else { return Ok(None) };
        self.near_bytes_of(index, field, row)
    }

    fn near_bytes_of(
        &self,
        index: usize,
        field: &Field,
        row: usize,
    ) -> Result<Option<(Range<usize>, &[u8])>> {
        let Some(layout) = self.footer.columns.get(index) else { return Ok(None) };
        if layout.data_type != field.data_type || layout.validity.is_some() {
            return Ok(None);
        }
        let place = match &layout.encoding {
            Encoding::FixedWidth { width, heap } => {
                let width = *width as usize;
                within(*heap, row * width, (row + 1) * width)
            }
            Encoding::Variable { offsets, heap } => self.between(*offsets, *heap, row)?,
            Encoding::Dictionary { width, codes, offsets, heap } => {
                let code = match self.codes(*width, *codes, row..row + 1)? {
                    Codes::U8(codes) => codes.first().copied().map(u32::from),
                    Codes::U16(codes) => codes.first().copied().map(u32::from),
                    Codes::U32(codes) => codes.first().copied(),
                };
                self.between(*offsets, *heap, code.unwrap_or(u32::MAX) as usize)?
            }
            Encoding::Scattered { words, heap, .. } => {
                let word = self.typed::<u64>(*words, row..row + 1)?.first().copied();
                match HeapWord::of(word.unwrap_or_default()) {
                    HeapWord::Near { position, len } => {
                        within(*heap, byte(position), byte(position.saturating_add(len)))
                    }
                    HeapWord::Long { .. } => return Ok(None),
                }
            }
            Encoding::Constant(_) | Encoding::Plain { .. } | Encoding::Narrowed { .. } => {
                return Ok(None);
            }
        };
        self.bytes_between(place).map(Some)
    }

    /// Bytes of the file, once they have been verified.
    #[inline]
    fn bytes_between(&self, place: Range<usize>) -> Result<(Range<usize>, &[u8])> {
        if let Some(blocks) = &self.blocks {
            blocks.ensure(place.start as u64, place.end as u64)?;
        }
        match self.raw(place.clone()) {
            Some(bytes) => Ok((place, bytes)),
            None => Err(self.missing(&place)),
        }
    }

    #[cold]
    fn missing(&self, place: &Range<usize>) -> Error {
        Error::corrupt(format!("segment {}: no bytes {place:?}", self.id()))
    }

    /// The place between two offsets that follow each other.
    #[inline]
    fn between(&self, offsets: Extent, heap: Extent, at: usize) -> Result<Range<usize>> {
        match self.typed::<u32>(offsets, at..at.saturating_add(2))? {
            [start, end] => Ok(within(heap, *start as usize, *end as usize)),
            _ => Err(Error::corrupt(format!("segment {}: no offset {at}", self.id()))),
        }
    }
}
