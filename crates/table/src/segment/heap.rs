//! Columns of texts and byte strings that lie in a heap, by themselves or beside another's.

use std::ops::Range;

use esker_format::part_lines::{LINE_ROWS, Line};
use esker_format::segment::Extent;
use esker_format::{Data, PartLines};
use esker_log::sabotage::Bug;

use super::Segment;
use crate::{Error, Result};

impl Segment {
    /// Values of any length, one after another.
    pub(super) fn variable(
        &self,
        offsets: Extent,
        heap: Extent,
        rows: Range<usize>,
    ) -> Result<Data<'_>> {
        let offsets: &[u32] = self.typed(offsets, rows.start..rows.end + 1)?;
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
            return Err(Error::corrupt(format!("segment {}: no offsets of {rows:?}", self.id)));
        };
        let heap = self.bytes(heap, *first as usize..*last as usize)?;
        Ok(Data::Variable { offsets, start: *first, heap })
    }

    /// Values of `width` bytes, each `at` bytes into a row of `stride` bytes.
    pub(super) fn fixed_width(
        &self,
        heap: Extent,
        (width, stride, at): (u32, u32, u32),
        rows: Range<usize>,
    ) -> Result<Data<'_>> {
        let (width, stride, at) = (width as usize, stride as usize, at as usize);
        let range = match rows.is_empty() {
            // Behind the last row there may be nothing.
            true => 0..0,
            false => rows.start * stride + at..(rows.end - 1) * stride + at + width,
        };
        Ok(Data::FixedWidth { width, stride, heap: self.bytes(heap, range)? })
    }

    /// Parts number `part` of rows of two.
    pub(super) fn interleaved(
        &self,
        part: u8,
        offsets: Extent,
        heap: Extent,
        rows: Range<usize>,
    ) -> Result<Data<'_>> {
        let first = 2 * rows.start + usize::from(part);
        let offsets: &[u32] = self.typed(offsets, first..first + 2 * rows.len())?;
        let (start, end) = (offsets.first(), offsets.last());
        // default: no rows have no offsets, and no bytes
        let (start, end) = (start.copied().unwrap_or(0), end.copied().unwrap_or(0));
        let heap = self.bytes(heap, start as usize..end as usize)?;
        Ok(Data::Interleaved { offsets, start, heap })
    }

    /// The same, with places in lines.
    pub(super) fn lined(
        &self,
        part: u8,
        lines: Extent,
        heap: Extent,
        rows: Range<usize>,
    ) -> Result<Data<'_>> {
        let lines: &[Line] =
            self.typed(lines, rows.start / LINE_ROWS..rows.end.div_ceil(LINE_ROWS))?;
        let first = match Bug::LinesReadFromTheirFirstRow.is_planted() {
            true => 0,
            false => rows.start % LINE_ROWS,
        };
        let lines = PartLines::new(lines, first, usize::from(part));
        let place = |row: usize| lines.place(row).ok_or_else(|| self.no_row(rows.start + row));
        let (start, end) = match rows.len().checked_sub(1) {
            None => (0, 0),
            Some(last) => (place(0)?.0, place(last)?.1),
        };
        let heap = self.bytes(heap, start as usize..end as usize)?;
        Ok(Data::Lined { lines, start, heap })
    }
}
