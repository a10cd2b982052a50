//! One value of a column, read by a few numbers that are kept apart from the footer.
//!
//! Who looks a row up by its key makes each of its values, and most are short: what decides is how
//! many steps lead to a value. Here they are as few as can be for columns whose type is the
//! reader's, in blocks that have been verified. Whatever else there is (a block that no reader has
//! read yet, a widened type, a long value, bytes that are damaged) is answered by
//! [`Segment::column`], which can also fail.

use std::ops::Range;

use esker_format::part_lines::{LINE_BYTES, LINE_ROWS, Line, place_in};
use esker_format::segment::{ColumnLayout, Encoding};
use esker_format::{ColumnSlice, DataType, Field, FieldId, Validity, ValueRef};

use super::Segment;
use super::columns::plain;
use super::reader::byte;

/// Bytes of an offset.
const OFFSET_BYTES: usize = 4;

/// How the values of each field are found, by its number.
///
/// Numbers are small for most fields, but not for all: the hidden fields of index runs have the
/// greatest there are, and a table that has had thousands of fields may have few left. A table of
/// all numbers would take megabytes for each segment then.
pub(crate) struct FormMap {
    /// By number, for numbers below its length.
    low: Vec<Option<Form>>,
    /// The fields with greater numbers, in order.
    high: Vec<(FieldId, Form)>,
}

/// How those of a column are. Places are bytes of the file.
#[derive(Clone, Copy)]
struct Form {
    data_type: DataType,
    /// Where the bits begin that say which rows have a value; all have one where there are none.
    validity: Option<usize>,
    steps: Steps,
}

#[derive(Clone, Copy)]
enum Steps {
    /// Numbers of `width` bytes.
    Plain { values: usize, width: usize },
    /// Numbers above a base.
    Narrowed { base: u64, codes: Places },
    /// Bytes at a place that follows from the row number.
    Bytes { start: usize, width: usize, stride: usize },
    /// Bytes between offset `each * row + part` and the next.
    Offsets { offsets: usize, each: usize, part: usize, heap: usize },
    /// Bytes between the offset that a code names and the next.
    Dictionary { codes: Places, offsets: usize, heap: usize },
}

/// Unsigned numbers of one, two or four bytes.
#[derive(Clone, Copy)]
struct Places {
    start: usize,
    width: usize,
}

impl FormMap {
    /// Of the columns of a segment.
    pub(super) fn of(columns: &[ColumnLayout]) -> Self {
        let limit = 2 * columns.len() + 16;
        let mut map = Self { low: Vec::new(), high: Vec::new() };
        for column in columns {
            let Some(form) = Form::of(column) else { continue };
            let at = usize::from(column.field.0);
            if at >= limit {
                map.high.push((column.field, form));
                continue;
            }
            if map.low.len() <= at {
                map.low.resize(at + 1, None);
            }
            if let Some(slot) = map.low.get_mut(at) {
                *slot = Some(form);
            }
        }
        map.high.sort_unstable_by_key(|(field, _)| *field);
        map
    }

    #[inline]
    fn get(&self, field: &Field) -> Option<&Form> {
        let form = match self.low.get(usize::from(field.id.0)) {
            Some(form) => form.as_ref()?,
            None => self.get_high(field.id)?,
        };
        (form.data_type == field.data_type).then_some(form)
    }

    fn get_high(&self, field: FieldId) -> Option<&Form> {
        let at = self.high.binary_search_by_key(&field, |(field, _)| *field).ok()?;
        self.high.get(at).map(|(_, form)| form)
    }
}

impl Form {
    fn of(column: &ColumnLayout) -> Option<Self> {
        let places = |width: u8, start| Places { start, width: usize::from(width) };
        let steps = match &column.encoding {
            Encoding::Plain { values } => {
                Steps::Plain { values: byte(values.offset), width: column.data_type.width()? }
            }
            Encoding::Narrowed { base, width, codes } => {
                Steps::Narrowed { base: *base, codes: places(*width, byte(codes.offset)) }
            }
            Encoding::FixedWidth { width, heap } => {
                let width = *width as usize;
                Steps::Bytes { start: byte(heap.offset), width, stride: width }
            }
            Encoding::Strided { width, stride, at, heap } => Steps::Bytes {
                start: byte(heap.offset) + *at as usize,
                width: *width as usize,
                stride: *stride as usize,
            },
            Encoding::Variable { offsets, heap } => {
                let (offsets, heap) = (byte(offsets.offset), byte(heap.offset));
                Steps::Offsets { offsets, each: 1, part: 0, heap }
            }
            Encoding::Interleaved { part, offsets, heap } => {
                let (offsets, heap) = (byte(offsets.offset), byte(heap.offset));
                Steps::Offsets { offsets, each: 2, part: usize::from(*part), heap }
            }
            Encoding::Dictionary { width, codes, offsets, heap } => Steps::Dictionary {
                codes: places(*width, byte(codes.offset)),
                offsets: byte(offsets.offset),
                heap: byte(heap.offset),
            },
            Encoding::Constant(_) | Encoding::Lined { .. } | Encoding::Scattered { .. } => {
                return None;
            }
        };
        let validity = column.validity.map(|extent| byte(extent.offset));
        Some(Self { data_type: column.data_type, validity, steps })
    }
}

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

#[cfg(test)]
mod tests {
    use esker_format::segment::Extent;

    use super::*;

    fn column(field: u16) -> ColumnLayout {
        let encoding = Encoding::Plain { values: Extent { offset: field.into(), len: 8 } };
        let (field, data_type) = (FieldId(field), DataType::I64);
        ColumnLayout { field, data_type, encoding, validity: None, zones: Vec::new() }
    }

    fn field(number: u16, data_type: DataType) -> Field {
        Field::new(FieldId(number), "f".to_owned(), data_type, true)
    }

    #[test]
    fn a_field_with_a_great_number_takes_no_room_for_all_below_it() {
        let numbers = [u16::MAX, 3, u16::MAX - 1, 40_000, 1];
        let map = FormMap::of(&numbers.map(column));
        assert!(map.low.len() <= 26 && map.high.len() == 3, "{}", map.low.len());
        for number in numbers {
            let form = map.get(&field(number, DataType::I64)).expect("every field is found");
            let start = usize::from(number);
            assert!(matches!(form.steps, Steps::Plain { values, width: 8 } if values == start));
        }
        for (number, data_type) in [(2, DataType::I64), (39_999, DataType::I64), (3, DataType::F64)]
        {
            assert!(map.get(&field(number, data_type)).is_none());
        }
    }
}
