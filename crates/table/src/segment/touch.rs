//! Bringing a row near before it is read.
//!
//! The values of a row lie in as many places of the file as there are columns. Read one after the
//! other, each is a cache miss that waits for the one before: comparing the key comes first, and
//! copying depends on it. Loads whose addresses follow from the row number alone overlap, and so do
//! those of several rows, where each step is taken for all of them before the next.

use esker_format::part_lines::{LINE_BYTES, LINE_ROWS, Line, place_in};
use esker_format::segment::{Encoding, Extent};

use super::Segment;

/// Columns to touch; more misses than this at a time do not overlap.
pub(crate) const COLUMNS_MAX: usize = 8;
/// The reader of so few columns comes to the last while it waits for the first.
const COLUMNS_READ_AT_ONCE: usize = 3;

/// Lines of one value to touch.
const LINES_MAX: usize = 8;

impl Segment {
    /// Loads the bytes of a row's values, those of blocks that have been verified. A hint: it
    /// reads nothing that is not used afterwards, and cannot fail.
    #[inline]
    pub fn touch(&self, row: usize) {
        if self.footer.columns.len() <= COLUMNS_READ_AT_ONCE {
            return;
        }
        self.touch_columns(row);
    }

    /// Loads where the values of a row lie, and the values whose places follow from its number.
    pub(crate) fn touch_places(&self, row: usize) {
        self.touch_columns(row);
    }

    /// Loads the values of a row whose places [`Segment::touch_places`] has loaded.
    pub(crate) fn touch_values(&self, row: usize) {
        let mut sum = 0u8;
        for column in self.footer.columns.iter().take(COLUMNS_MAX) {
            let (heap, place) = match &column.encoding {
                Encoding::Variable { offsets, heap } => (*heap, self.loaded_offsets(*offsets, row)),
                Encoding::Interleaved { part, offsets, heap } => {
                    (*heap, self.loaded_offsets(*offsets, 2 * row + usize::from(*part)))
                }
                Encoding::Lined { part, lines, heap } => {
                    (*heap, self.loaded_line(*lines, row, usize::from(*part)))
                }
                _ => continue,
            };
            if let Some((start, end)) = place {
                sum = sum.wrapping_add(self.touch_bytes(heap, start, end.saturating_sub(start)));
            }
        }
        std::hint::black_box(sum);
    }

    /// An offset and the one after it, if they have been verified.
    fn loaded_offsets(&self, offsets: Extent, at: usize) -> Option<(usize, usize)> {
        let start = usize::try_from(offsets.offset).ok()?.checked_add(4 * at)?;
        let last = start.checked_add(7)?;
        if self.blocks.as_ref().is_some_and(|b| !b.are_verified(start as u64, last as u64)) {
            return None;
        }
        let (first, second) = self.raw(start..last + 1)?.split_first_chunk::<4>()?;
        let second = second.first_chunk::<4>()?;
        Some((u32::from_le_bytes(*first) as usize, u32::from_le_bytes(*second) as usize))
    }

    /// Where a part of a row begins and ends, if its line has been verified.
    fn loaded_line(&self, lines: Extent, row: usize, part: usize) -> Option<(usize, usize)> {
        let start = usize::try_from(lines.offset).ok()?;
        let start = start.checked_add(row / LINE_ROWS * LINE_BYTES)?;
        let last = start.checked_add(LINE_BYTES - 1)?;
        if self.blocks.as_ref().is_some_and(|b| !b.are_verified(start as u64, last as u64)) {
            return None;
        }
        let line: &[Line] = bytemuck::try_cast_slice(self.raw(start..last + 1)?).ok()?;
        let (start, end) = place_in(line.first()?, 2 * (row % LINE_ROWS) + part)?;
        Some((start as usize, end as usize))
    }

    fn touch_columns(&self, row: usize) {
        let mut sum = 0u8;
        for column in self.footer.columns.iter().take(COLUMNS_MAX) {
            let (extent, width) = match &column.encoding {
                Encoding::Constant(_) => continue,
                Encoding::Strided { width, stride, at, heap } => {
                    let start = *at as usize + row * *stride as usize;
                    sum = sum.wrapping_add(self.touch_bytes(*heap, start, *width as usize));
                    continue;
                }
                Encoding::Lined { lines, .. } => {
                    let start = row / LINE_ROWS * LINE_BYTES;
                    sum = sum.wrapping_add(self.touch_bytes(*lines, start, LINE_BYTES));
                    continue;
                }
                // Two offsets a row.
                Encoding::Interleaved { offsets, .. } => (*offsets, 8),
                Encoding::Plain { values } => (*values, column.data_type.width().unwrap_or(1)),
                Encoding::Narrowed { width, codes, .. }
                | Encoding::Dictionary { width, codes, .. } => (*codes, usize::from(*width)),
                Encoding::Variable { offsets, .. } => (*offsets, 4),
                Encoding::Scattered { words, .. } => (*words, 8),
                Encoding::FixedWidth { width, heap } => (*heap, *width as usize),
            };
            sum = sum.wrapping_add(self.touch_bytes(extent, row * width, width));
        }
        std::hint::black_box(sum);
    }

    #[inline]
    fn touch_bytes(&self, extent: Extent, start: usize, width: usize) -> u8 {
        let start = usize::try_from(extent.offset).unwrap_or(usize::MAX).saturating_add(start);
        let last = start.saturating_add(width.max(1) - 1);
        if self.blocks.as_ref().is_some_and(|b| !b.are_verified(start as u64, last as u64)) {
            return 0;
        }
        let bytes = self.raw(start..last.saturating_add(1)).unwrap_or_default();
        let mut sum = bytes.last().copied().unwrap_or_default();
        let mut at = 0;
        while let Some(byte) = bytes.get(at).filter(|_| at < LINES_MAX * LINE_BYTES) {
            sum = sum.wrapping_add(*byte);
            at += LINE_BYTES;
        }
        sum
    }
}
