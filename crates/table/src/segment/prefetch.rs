//! Bringing a row near before it is read.
//!
//! The values of a row lie in as many places of the file as there are columns. Read one after the
//! other, each is a cache miss that waits for the one before: comparing the key comes first, and
//! copying depends on it. Loads whose addresses follow from the row number alone overlap, and so do
//! those of several rows, where each step is taken for all of them before the next.

use std::ops::Range;

use esker_format::part_lines::{LINE_BYTES, LINE_ROWS};
use esker_format::segment::{Encoding, Extent};

use super::Segment;
use super::plain::byte;

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
        self.prefetch_columns(row);
    }

    /// Loads where the values of a row lie, and the values whose places follow from its number.
    pub(crate) fn prefetch_locations(&self, row: usize) {
        self.prefetch_columns(row);
    }

    /// Loads the values of a row whose places [`Segment::prefetch_locations`] has loaded.
    pub(crate) fn prefetch_values(&self, row: usize) {
        let mut sum = 0u8;
        for column in self.footer.columns.iter().take(COLUMNS_MAX) {
            let of = |extent: &Extent| byte(extent.offset);
            let place = match &column.encoding {
                Encoding::Variable { offsets, heap } => {
                    self.verified_pair(of(offsets), row, of(heap))
                }
                Encoding::Interleaved { part, offsets, heap } => {
                    self.verified_pair(of(offsets), 2 * row + usize::from(*part), of(heap))
                }
                Encoding::Lined { part, lines, heap } => {
                    self.verified_part(of(lines), (row, usize::from(*part)), of(heap))
                }
                _ => continue,
            };
            if let Some(place) = place {
                sum = sum.wrapping_add(self.prefetch_bytes(place));
            }
        }
        std::hint::black_box(sum);
    }

    fn prefetch_columns(&self, row: usize) {
        let mut sum = 0u8;
        for column in self.footer.columns.iter().take(COLUMNS_MAX) {
            let (extent, width) = match &column.encoding {
                Encoding::Constant(_)
                | Encoding::Packed { .. }
                | Encoding::PackedDeltas { .. }
                | Encoding::Compressed { .. }
                | Encoding::PackedDictionary { .. }
                | Encoding::PackedVariable { .. } => continue,
                Encoding::Strided { width, stride, at, heap } => {
                    let start = *at as usize + row * *stride as usize;
                    let start = byte(heap.offset).saturating_add(start);
                    let end = start.saturating_add(*width as usize);
                    sum = sum.wrapping_add(self.prefetch_bytes(start..end));
                    continue;
                }
                Encoding::Lined { lines, .. } => {
                    let start = byte(lines.offset).saturating_add(row / LINE_ROWS * LINE_BYTES);
                    sum = sum.wrapping_add(self.prefetch_bytes(start..start + LINE_BYTES));
                    continue;
                }
                // Two offsets a row.
                Encoding::Interleaved { offsets, .. } => (*offsets, 8),
                // default: a hint, and plain numbers have a width
                Encoding::Plain { values } => (*values, column.data_type.width().unwrap_or(1)),
                Encoding::Narrowed { width, codes, .. }
                | Encoding::Dictionary { width, codes, .. } => (*codes, usize::from(*width)),
                Encoding::Variable { offsets, .. } => (*offsets, 4),
                Encoding::Scattered { words, .. } => (*words, 8),
                Encoding::FixedWidth { width, heap } => (*heap, *width as usize),
            };
            let start = byte(extent.offset).saturating_add(row * width);
            sum = sum.wrapping_add(self.prefetch_bytes(start..start.saturating_add(width)));
        }
        std::hint::black_box(sum);
    }

    #[inline]
    fn prefetch_bytes(&self, place: Range<usize>) -> u8 {
        // default: bytes that have not been verified are not loaded
        let bytes = self.verified(place).unwrap_or_default();
        // default: no bytes add nothing
        let mut sum = bytes.last().copied().unwrap_or_default();
        let mut at = 0;
        while let Some(byte) = bytes.get(at).filter(|_| at < LINES_MAX * LINE_BYTES) {
            sum = sum.wrapping_add(*byte);
            at += LINE_BYTES;
        }
        sum
    }
}
