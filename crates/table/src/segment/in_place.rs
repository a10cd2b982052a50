//! Reading one value where a few steps lead to it: see [`forms`](super::forms).

use std::ops::Range;

use esker_format::part_lines::{LINE_BYTES, LINE_ROWS, Line, place_in};
use esker_format::{ColumnSlice, Field, Validity, ValueRef};

use super::Segment;
use super::forms::{Places, Steps};
use super::plain::plain;

/// Bytes of an offset.
const OFFSET_BYTES: usize = 4;

impl Segment {
    /// The value of a row, where a few steps lead to it.
    #[inline]
    pub(super) fn in_place_value(&self, field: &Field, row: usize) -> Option<ValueRef<'_>> {
        let form = self.forms.get(field)?;
        if let Some(validity) = form.validity {
            let bits = self.verified(validity + row / 8..validity + row / 8 + 1)?.first()?;
            if bits >> (row % 8) & 1 == 0 {
                return Some(ValueRef::Null);
            }
        }
        let place = match form.steps {
            Steps::Plain { values, width } => {
                let start = values + row * width;
                let data = plain(form.data_type, self.verified(start..start + width)?).ok()?;
                let validity = Validity::AllValid;
                let slice = ColumnSlice { data_type: form.data_type, len: 1, validity, data };
                return Some(slice.value(0));
            }
            Steps::Narrowed { base, codes } => {
                let word = base.wrapping_add(self.verified_code(codes, row)?.into());
                return Some(ValueRef::from_word(form.data_type, word.cast_signed()));
            }
            Steps::Bytes { start, width, stride } => {
                start + row * stride..start + row * stride + width
            }
            Steps::Offsets { offsets, each, part, heap } => {
                self.verified_pair(offsets, each * row + part, heap)?
            }
            Steps::Dictionary { codes, offsets, heap } => {
                let code = self.verified_code(codes, row)?;
                self.verified_pair(offsets, code as usize, heap)?
            }
        };
        Some(ValueRef::from_bytes(form.data_type, self.verified(place)?))
    }

    /// Bytes of the file, if their blocks have been verified.
    #[inline]
    pub(super) fn verified(&self, place: Range<usize>) -> Option<&[u8]> {
        match &self.blocks {
            Some(blocks)
                if !blocks.are_verified(place.start as u64, place.end.saturating_sub(1) as u64) =>
            {
                None
            }
            _ => self.raw(place),
        }
    }

    /// What an offset and the one after it enclose of a heap, if they have been verified.
    #[inline]
    pub(super) fn verified_pair(
        &self,
        offsets: usize,
        at: usize,
        heap: usize,
    ) -> Option<Range<usize>> {
        let start = offsets + at * OFFSET_BYTES;
        let (first, second) =
            self.verified(start..start + 2 * OFFSET_BYTES)?.split_first_chunk::<OFFSET_BYTES>()?;
        let second = second.first_chunk::<OFFSET_BYTES>()?;
        let (first, second) = (u32::from_le_bytes(*first), u32::from_le_bytes(*second));
        Some(heap + first as usize..heap + second as usize)
    }

    /// A part of a row, as its line tells it, if that has been verified.
    pub(super) fn verified_part(
        &self,
        lines: usize,
        (row, part): (usize, usize),
        heap: usize,
    ) -> Option<Range<usize>> {
        let start = lines + row / LINE_ROWS * LINE_BYTES;
        let line: &[Line] =
            bytemuck::try_cast_slice(self.verified(start..start + LINE_BYTES)?).ok()?;
        let (start, end) = place_in(line.first()?, 2 * (row % LINE_ROWS) + part)?;
        Some(heap + start as usize..heap + end as usize)
    }

    #[inline]
    fn verified_code(&self, codes: Places, row: usize) -> Option<u32> {
        let start = codes.start + row * codes.width;
        let bytes = self.verified(start..start + codes.width)?;
        Some(match *bytes {
            [code] => code.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => return None,
        })
    }
}
