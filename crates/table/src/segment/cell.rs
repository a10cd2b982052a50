//! The bytes of one value, found without making a column of it.
//!
//! Who looks a row up needs a key and a value of it, each in a place that follows from a few
//! numbers of the footer. What is between the loads decides whether the processor waits for them
//! one after the other: some ten instructions a value here, a hundred by way of a column.

use std::ops::Range;

use esker_format::part_lines::{LINE_BYTES, LINE_ROWS, Line, place_in};
use esker_format::segment::{Encoding, Extent};
use esker_format::value_file::HeapWord;
use esker_format::{Codes, Field};

use super::Segment;
use super::plain::byte;
use crate::{Error, Result};

/// A part of an extent, as bytes of the file.
#[inline]
fn within(extent: Extent, start: usize, end: usize) -> Range<usize> {
    let first = byte(extent.offset);
    first.saturating_add(start)..first.saturating_add(end)
}

impl Segment {
    /// True when the values of a field lie among those of another.
    #[must_use]
    pub fn shares_heap(&self, field: &Field) -> bool {
        self.layout(field).is_some_and(|layout| {
            matches!(
                layout.encoding,
                Encoding::Strided { .. } | Encoding::Interleaved { .. } | Encoding::Lined { .. }
            )
        })
    }

    /// How many bytes the values of a field are apart, where that is the same for all.
    fn stride(&self, field: &Field) -> Option<usize> {
        self.cells.stride(field.id)
    }

    /// The bytes of a value whose place follows from its row number, when they have been verified.
    #[inline]
    pub(crate) fn cell(&self, field: &Field, row: usize) -> Option<&[u8]> {
        let place = self.cells.place(field.id, field.data_type, row)?;
        self.verified(place)
    }

    /// The bytes of a value and where they lie in the file, once they have been verified. `None`
    /// where they do not lie there as they are read: constants, long values, values of fields that
    /// may be NULL somewhere or have another type.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub(crate) fn in_place_bytes(
        &self,
        field: &Field,
        row: usize,
    ) -> Result<Option<(Range<usize>, &[u8])>> {
        let Some(place) = self.value_location(field, row)? else { return Ok(None) };
        match self.raw(place.clone()) {
            Some(bytes) => Ok(Some((place, bytes))),
            None => Err(self.missing(&place)),
        }
    }

    /// Where the bytes of a value lie in the file, as [`Segment::in_place_bytes`] tells it.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub(crate) fn value_location(&self, field: &Field, row: usize) -> Result<Option<Range<usize>>> {
        let Some(place) = self.cells.place(field.id, field.data_type, row) else {
            return self.looked_up_place(field, row);
        };
        self.ensure_place(&place)?;
        Ok(Some(place))
    }

    #[inline]
    fn ensure_place(&self, place: &Range<usize>) -> Result<()> {
        match &self.blocks {
            Some(blocks) => blocks.ensure(place.start as u64, place.end as u64),
            None => Ok(()),
        }
    }

    /// The same for a value whose place does not follow from its row number alone, and which may
    /// therefore be none of the file.
    fn looked_up_place(&self, field: &Field, row: usize) -> Result<Option<Range<usize>>> {
        let Some((_, layout)) = self.indexed_layout(field) else { return Ok(None) };
        if layout.data_type != field.data_type || layout.validity.is_some() {
            return Ok(None);
        }
        let place = match &layout.encoding {
            Encoding::Variable { offsets, heap } => self.between(*offsets, *heap, row)?,
            Encoding::Interleaved { part, offsets, heap } => {
                self.between(*offsets, *heap, 2 * row + usize::from(*part))?
            }
            Encoding::Lined { part, lines, heap } => self.in_line(*lines, *heap, row, *part)?,
            Encoding::Dictionary { width, codes, offsets, heap } => {
                let code = match self.codes(*width, *codes, row..row + 1)? {
                    Codes::U8(codes) => codes.first().copied().map(u32::from),
                    Codes::U16(codes) => codes.first().copied().map(u32::from),
                    Codes::U32(codes) => codes.first().copied(),
                };
                let code = code.ok_or_else(|| self.no_row(row))?;
                self.between(*offsets, *heap, code as usize)?
            }
            Encoding::Scattered { words, heap, .. } => {
                let word = self.typed::<u64>(*words, row..row + 1)?.first();
                match HeapWord::of(*word.ok_or_else(|| self.no_row(row))?) {
                    HeapWord::Near { position, len } => {
                        within(*heap, byte(position), byte(position.saturating_add(len)))
                    }
                    HeapWord::Long { .. } => return Ok(None),
                }
            }
            // Those of one width are cells, if they can be.
            Encoding::Constant(_)
            | Encoding::Plain { .. }
            | Encoding::Narrowed { .. }
            | Encoding::FixedWidth { .. }
            | Encoding::Strided { .. } => return Ok(None),
            packed => match self.packed_place(packed, row)? {
                Some((heap, range)) => within(heap, range.start, range.end),
                None => return Ok(None),
            },
        };
        self.ensure_place(&place)?;
        match self.raw(place.clone()) {
            Some(_) => Ok(Some(place)),
            None => Err(self.missing(&place)),
        }
    }

    /// Loads the first bytes of the values of a few rows that have been verified, all at once, a
    /// hint; false where places do not follow from row numbers.
    pub(crate) fn prefetch_cells(&self, field: &Field, rows: Range<usize>) -> bool {
        let all = |last: usize| {
            let first = self.cells.place(field.id, field.data_type, rows.start)?;
            let last = self.cells.place(field.id, field.data_type, last)?;
            Some(first.start..last.end)
        };
        let Some(place) = rows.end.checked_sub(1).and_then(all) else { return false };
        if self.blocks.as_ref().is_some_and(|blocks| !blocks.are_all_verified()) {
            return true;
        }
        // default: a hint, and where there are no bytes there is nothing to load
        let bytes = self.raw(place).unwrap_or_default();
        // default: without a stride every line is loaded
        let step = self.stride(field).unwrap_or_default().max(LINE_BYTES);
        std::hint::black_box(bytes.iter().step_by(step).fold(0, |sum: u8, byte| sum ^ byte));
        true
    }

    #[cold]
    fn missing(&self, place: &Range<usize>) -> Error {
        Error::corrupt(format!("segment {}: no bytes {place:?}", self.id()))
    }

    #[cold]
    pub(super) fn no_row(&self, row: usize) -> Error {
        Error::corrupt(format!("segment {}: no row {row} of {}", self.id(), self.row_count()))
    }

    /// The place of a part of a row that a line tells.
    #[inline]
    fn in_line(&self, lines: Extent, heap: Extent, row: usize, part: u8) -> Result<Range<usize>> {
        let (at, part) = (row / LINE_ROWS, 2 * (row % LINE_ROWS) + usize::from(part));
        let line = self.typed::<Line>(lines, at..at + 1)?.first();
        match line.and_then(|line| place_in(line, part)) {
            Some((start, end)) => Ok(within(heap, start as usize, end as usize)),
            None => Err(Error::corrupt(format!("segment {}: no line {at}", self.id()))),
        }
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
