//! Two columns of text or bytes in one heap, row by row, so that a reader of the one of a row has
//! the other near.
//!
//! ```text
//!   of one length each      key 0 value 0 │ key 1 value 1 │ key 2 value 2 │ …
//!                           ├── stride ───┤
//!   of any length           key 0 │ value 0 │ key 1 │ value 1 │ …
//!                           where each ends: in lines of fifteen rows
//!   and very long           o 0   │ o 1     │ o 2   │ o 3     │ …          offsets
//! ```
//!
//! Columns with a dictionary, with NULLs, with long values, or with one value throughout lie by
//! themselves: there is less to read then, or something else to look at first.

use super::encode::{Buffer, Encoded, EncodedColumn};
use super::encoding::{Encoding, Extent};
use crate::part_lines::lines_of;

/// Two columns whose rows are to lie in one heap.
#[derive(Debug)]
pub struct Interleaved<'a> {
    parts: [Part<'a>; 2],
    rows: usize,
}

/// What tells where the parts of rows lie, where that does not follow from the numbers of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places<T> {
    /// [Lines](crate::part_lines).
    Lines(T),
    /// Where each part begins and the last ends: offsets of 32 bits.
    Offsets(T),
}

/// One of the columns.
#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Fixed { width: u32, heap: &'a [u8] },
    Variable { offsets: &'a [u32], heap: &'a [u8] },
}

impl<'a> Part<'a> {
    fn of(column: &'a EncodedColumn<'_>) -> Option<Self> {
        if column.validity.is_some() {
            return None;
        }
        match &column.values {
            Encoded::FixedWidth { width, heap } => {
                Some(Self::Fixed { width: *width, heap: heap.as_bytes() })
            }
            Encoded::Variable { offsets, heap } => Some(Self::Variable {
                offsets: bytemuck::try_cast_slice(offsets.as_bytes()).ok()?,
                heap: heap.as_bytes(),
            }),
            _ => None,
        }
    }

    fn heap(&self) -> &'a [u8] {
        match self {
            Self::Fixed { heap, .. } | Self::Variable { heap, .. } => heap,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Fixed { width, heap } => heap.len() / (*width).max(1) as usize,
            Self::Variable { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &'a [u8] {
        let (place, heap) = match self {
            Self::Fixed { width, heap } => {
                let width = *width as usize;
                (row * width..(row + 1) * width, heap)
            }
            Self::Variable { offsets, heap } => match offsets.get(row..row + 2) {
                Some([start, end]) => (*start as usize..*end as usize, heap),
                _ => (0..0, heap),
            },
        };
        debug_assert!(heap.get(place.clone()).is_some(), "row {row} at {place:?}");
        heap.get(place).unwrap_or_default() // default: what was just encoded has all its bytes.
    }
}

impl<'a> Interleaved<'a> {
    /// Two columns, if they can lie so: together they have less than 4 GiB.
    #[must_use]
    pub fn new(first: &'a EncodedColumn<'_>, second: &'a EncodedColumn<'_>) -> Option<Self> {
        let parts = [Part::of(first)?, Part::of(second)?];
        let [rows, others] = parts.map(|part| part.rows());
        let bytes: usize = parts.iter().map(|part| part.heap().len()).sum();
        (rows == others && u32::try_from(bytes).is_ok()).then_some(Self { parts, rows })
    }

    /// Appends rows from `row` on, at least one, until `out` has `bytes` or there are no more.
    /// Returns the row after them.
    #[must_use]
    pub fn append(&self, mut row: usize, bytes: usize, out: &mut Vec<u8>) -> usize {
        while row < self.rows {
            self.parts.iter().for_each(|part| out.extend_from_slice(part.get(row)));
            row += 1;
            if out.len() >= bytes {
                break;
            }
        }
        row
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where the parts of all rows lie; `None` where that follows from their numbers.
    #[must_use]
    pub fn places(&self) -> Option<Places<Buffer<'static>>> {
        if let [Part::Fixed { .. }, Part::Fixed { .. }] = self.parts {
            return None;
        }
        let lengths = || (0..self.rows).flat_map(|row| self.parts.map(|part| part.get(row).len()));
        if let Some(lines) = lines_of(lengths()) {
            return Some(Places::Lines(Buffer::U16(lines)));
        }
        let mut offsets = Vec::with_capacity(2 * self.rows + 1);
        let mut end = 0;
        offsets.push(0);
        offsets.extend(lengths().map(|len| {
            // default: `new` took no more than 4 GiB in all.
            end += u32::try_from(len).unwrap_or_default();
            end
        }));
        Some(Places::Offsets(Buffer::U32(offsets)))
    }

    /// How the two columns are stored, once it is known where heap and places lie.
    #[must_use]
    pub fn encodings(&self, heap: Extent, places: Option<Places<Extent>>) -> [Encoding; 2] {
        let width = |part: Part<'_>| match part {
            Part::Fixed { width, .. } => width,
            Part::Variable { .. } => 0,
        };
        match places {
            Some(Places::Lines(lines)) => [0, 1].map(|part| Encoding::Lined { part, lines, heap }),
            Some(Places::Offsets(offsets)) => {
                [0, 1].map(|part| Encoding::Interleaved { part, offsets, heap })
            }
            None => {
                let [first, second] = self.parts.map(width);
                let stride = first + second;
                [
                    Encoding::Strided { width: first, stride, at: 0, heap },
                    Encoding::Strided { width: second, stride, at: first, heap },
                ]
            }
        }
    }
}
