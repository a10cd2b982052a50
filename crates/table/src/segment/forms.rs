//! One value of a column, read by a few numbers that are kept apart from the footer.
//!
//! Who looks a row up by its key makes each of its values, and most are short: what decides is how
//! many steps lead to a value. Here they are as few as can be for columns whose type is the
//! reader's, in blocks that have been verified. Whatever else there is (a block that no reader has
//! read yet, a widened type, a long value, bytes that are damaged) is answered by
//! [`Segment::column`], which can also fail.

use esker_format::segment::{ColumnLayout, Encoding};
use esker_format::{DataType, Field};

use super::by_field::ByField;
use super::plain::byte;

/// How the values of each field are found.
pub(crate) struct FormMap(ByField<Form>);

/// How those of a column are. Places are bytes of the file.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub data_type: DataType,
    /// Where the bits begin that say which rows have a value; all have one where there are none.
    pub validity: Option<usize>,
    pub steps: Steps,
}

#[derive(Clone, Copy)]
pub(super) enum Steps {
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
pub(super) struct Places {
    pub start: usize,
    pub width: usize,
}

impl FormMap {
    /// Of the columns of a segment.
    pub(super) fn of(columns: &[ColumnLayout]) -> Self {
        let forms = columns.iter().filter_map(|column| Some((column.field, Form::of(column)?)));
        Self(ByField::of(forms, columns.len()))
    }

    #[inline]
    pub fn get(&self, field: &Field) -> Option<&Form> {
        self.0.get(field.id).filter(|form| form.data_type == field.data_type)
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
            Encoding::Constant(_)
            | Encoding::Lined { .. }
            | Encoding::Scattered { .. }
            | Encoding::Packed { .. }
            | Encoding::PackedDeltas { .. }
            | Encoding::Compressed { .. }
            | Encoding::PackedDictionary { .. }
            | Encoding::PackedVariable { .. } => {
                return None;
            }
        };
        let validity = column.validity.map(|extent| byte(extent.offset));
        Some(Self { data_type: column.data_type, validity, steps })
    }
}
