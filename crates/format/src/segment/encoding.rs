//! How the values of a column are stored: what a footer says of it.

use super::packed_extent::{CompressedExtent, HeapPlaces, PackedExtent};
use crate::codec::{Reader, Writer};
use crate::part_lines::{LINE_BYTES, LINE_ROWS};
use crate::row::{decode_value, encode_value};
use crate::value_file::REFERENCE_BYTES;
use crate::{DataType, Error, Result, Value};

/// A run of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extent {
    /// Bytes from the start of the file; a multiple of 64.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// How the values of a column are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields repeat the variant's description")]
pub enum Encoding {
    /// Every row has this value, which may be NULL.
    Constant(Value),
    /// Little-endian values, end to end.
    Plain { values: Extent },
    /// Base plus code, codes of 1, 2 or 4 bytes.
    Narrowed { base: u64, width: u8, codes: Extent },
    /// A sorted dictionary, and codes of 1, 2 or 4 bytes.
    Dictionary { width: u8, codes: Extent, offsets: Extent, heap: Extent },
    /// Offsets of 32 bits, one more than rows, into a heap.
    Variable { offsets: Extent, heap: Extent },
    /// Values of one length, end to end.
    FixedWidth { width: u32, heap: Extent },
    /// A [`crate::value_file::HeapWord`] a row, the heap, and the references of long values, each
    /// of [`crate::value_file::REFERENCE_BYTES`].
    Scattered { words: Extent, heap: Extent, long: Extent },
    /// Values of one length, each `at` bytes into a row of `stride` bytes: beside the value of
    /// another column in the same heap.
    Strided { width: u32, stride: u32, at: u32, heap: Extent },
    /// Parts number `part` of rows of two parts in one heap: offsets of 32 bits, one more than
    /// parts.
    Interleaved { part: u8, offsets: Extent, heap: Extent },
    /// The same with places in [lines](crate::part_lines), of [`LINE_ROWS`] rows each.
    Lined { part: u8, lines: Extent, heap: Extent },
    /// Base plus packed code, none of which is above `span`.
    Packed { base: u64, span: u64, numbers: PackedExtent },
    /// The same of packed deltas.
    PackedDeltas { base: u64, span: u64, numbers: PackedExtent },
    /// Places in a compressed heap.
    Compressed { places: HeapPlaces, heap: CompressedExtent },
    /// A sorted dictionary, and packed codes, which are read as 1, 2 or 4 bytes.
    PackedDictionary { width: u8, codes: PackedExtent, offsets: Extent, heap: Extent },
    /// Packed offsets, one more than rows, into a heap.
    PackedVariable { offsets: PackedExtent, heap: Extent },
}

impl Extent {
    pub(super) fn encode(self, out: &mut Writer) {
        out.u64(self.offset);
        out.u64(self.len);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { offset: input.u64()?, len: input.u64()? })
    }

    pub(super) fn check(self, name: &str, len: u64, data_end: u64) -> Result<()> {
        let end = self.offset.checked_add(self.len);
        if self.len != len
            || !self.offset.is_multiple_of(64)
            || end.is_none_or(|end| end > data_end)
        {
            let Self { offset, len: got } = self;
            return Err(Error::corrupt(format!(
                "{name} is {got} bytes at {offset}, expected {len} bytes before {data_end}"
            )));
        }
        Ok(())
    }
}

impl Encoding {
    pub(super) fn encode(&self, out: &mut Writer, data_type: DataType) {
        match self {
            Self::Constant(Value::Null) => out.u8(0),
            Self::Constant(value) => {
                out.u8(1);
                encode_value(out, data_type, value.as_ref());
            }
            Self::Plain { values } => {
                out.u8(2);
                values.encode(out);
            }
            Self::Narrowed { base, width, codes } => {
                out.u8(3);
                out.u64(*base);
                out.u8(*width);
                codes.encode(out);
            }
            Self::Dictionary { width, codes, offsets, heap } => {
                out.u8(4);
                out.u8(*width);
                codes.encode(out);
                offsets.encode(out);
                heap.encode(out);
            }
            Self::Variable { offsets, heap } => {
                out.u8(5);
                offsets.encode(out);
                heap.encode(out);
            }
            Self::FixedWidth { width, heap } => {
                out.u8(6);
                out.u32(*width);
                heap.encode(out);
            }
            Self::Scattered { words, heap, long } => {
                out.u8(7);
                words.encode(out);
                heap.encode(out);
                long.encode(out);
            }
            Self::Strided { width, stride, at, heap } => {
                out.u8(8);
                out.u32(*width);
                out.u32(*stride);
                out.u32(*at);
                heap.encode(out);
            }
            Self::Interleaved { part, offsets, heap } => {
                out.u8(9);
                out.u8(*part);
                offsets.encode(out);
                heap.encode(out);
            }
            Self::Lined { part, lines, heap } => {
                out.u8(10);
                out.u8(*part);
                lines.encode(out);
                heap.encode(out);
            }
            Self::Packed { .. }
            | Self::PackedDeltas { .. }
            | Self::Compressed { .. }
            | Self::PackedDictionary { .. }
            | Self::PackedVariable { .. } => self.encode_packed(out),
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>, data_type: DataType) -> Result<Self> {
        Ok(match input.u8()? {
            0 => Self::Constant(Value::Null),
            1 => Self::Constant(decode_value(input, data_type)?.to_owned()),
            2 => Self::Plain { values: Extent::decode(input)? },
            3 => Self::Narrowed {
                base: input.u64()?,
                width: input.u8()?,
                codes: Extent::decode(input)?,
            },
            4 => Self::Dictionary {
                width: input.u8()?,
                codes: Extent::decode(input)?,
                offsets: Extent::decode(input)?,
                heap: Extent::decode(input)?,
            },
            5 => Self::Variable { offsets: Extent::decode(input)?, heap: Extent::decode(input)? },
            6 => Self::FixedWidth { width: input.u32()?, heap: Extent::decode(input)? },
            7 => Self::Scattered {
                words: Extent::decode(input)?,
                heap: Extent::decode(input)?,
                long: Extent::decode(input)?,
            },
            8 => Self::Strided {
                width: input.u32()?,
                stride: input.u32()?,
                at: input.u32()?,
                heap: Extent::decode(input)?,
            },
            9 => Self::Interleaved {
                part: input.u8()?,
                offsets: Extent::decode(input)?,
                heap: Extent::decode(input)?,
            },
            10 => Self::Lined {
                part: input.u8()?,
                lines: Extent::decode(input)?,
                heap: Extent::decode(input)?,
            },
            code @ 11..=15 => Self::decode_packed(code, input)?,
            other => return Err(Error::corrupt(format!("unknown encoding {other}"))),
        })
    }

    /// Checks that every buffer has the length that the row count demands and lies in the data.
    pub(super) fn check(&self, data_type: DataType, rows: u64, data_end: u64) -> Result<()> {
        let variable = data_type.width().is_none();
        let width_is_right = |width: u8| matches!(width, 1 | 2 | 4);
        if self.is_packed() {
            return self.check_packed(data_type, rows, data_end);
        }
        match self {
            Self::Constant(_) => Ok(()),
            Self::Plain { values } => match data_type.width() {
                Some(width) => values.check("values", rows * width as u64, data_end),
                None => Err(Error::corrupt(format!("plain encoding of {data_type}"))),
            },
            Self::Narrowed { width, codes, .. } => {
                let narrows = !variable && !data_type.is_float();
                if !narrows || !width_is_right(*width) {
                    return Err(Error::corrupt(format!("narrowed {data_type} of {width} bytes")));
                }
                codes.check("codes", rows * u64::from(*width), data_end)
            }
            Self::Dictionary { width, codes, offsets, heap } => {
                if !variable
                    || !width_is_right(*width)
                    || !offsets.len.is_multiple_of(4)
                    || offsets.len == 0
                {
                    return Err(Error::corrupt(format!("dictionary {data_type} of {width} bytes")));
                }
                codes.check("codes", rows * u64::from(*width), data_end)?;
                offsets.check("offsets", offsets.len, data_end)?;
                heap.check("heap", heap.len, data_end)
            }
            Self::Variable { offsets, heap } if variable => {
                offsets.check("offsets", (rows + 1) * 4, data_end)?;
                heap.check("heap", heap.len, data_end)
            }
            Self::FixedWidth { width, heap } if variable => {
                heap.check("heap", rows * u64::from(*width), data_end)
            }
            Self::Scattered { words, heap, long } if data_type.may_be_long() => {
                if !long.len.is_multiple_of(REFERENCE_BYTES as u64) {
                    return Err(Error::corrupt(format!("references of {} bytes", long.len)));
                }
                words.check("words", rows * 8, data_end)?;
                heap.check("heap", heap.len, data_end)?;
                long.check("references", long.len, data_end)
            }
            Self::Strided { width, stride, at, heap } if variable => {
                if at.checked_add(*width).is_none_or(|end| end > *stride) {
                    let message = format!("{width} bytes at {at} of rows of {stride}");
                    return Err(Error::corrupt(message));
                }
                heap.check("rows", rows * u64::from(*stride), data_end)
            }
            Self::Interleaved { part, offsets, heap } if variable => {
                check_parts(*part, (*offsets, (2 * rows + 1) * 4), *heap, data_end)
            }
            Self::Lined { part, lines, heap } if variable => {
                let len = rows.div_ceil(LINE_ROWS as u64) * LINE_BYTES as u64;
                check_parts(*part, (*lines, len), *heap, data_end)
            }
            // The others are checked above.
            _ => Err(Error::corrupt(format!("variable encoding of {data_type}"))),
        }
    }
}

/// Checks what tells where parts of rows of two lie, and how many bytes that has.
fn check_parts(part: u8, places: (Extent, u64), heap: Extent, data_end: u64) -> Result<()> {
    if part > 1 {
        return Err(Error::corrupt(format!("part {part} of rows of two")));
    }
    places.0.check("places", places.1, data_end)?;
    heap.check("heap", heap.len, data_end)
}
