//! Columns that are packed, as a footer says it: see [`packed`](super::packed) and
//! [`compression`](crate::compression).

use super::encoding::{Encoding, Extent};
use super::footer::SEGMENT_ROWS_MAX;
use super::packed::{DELTA_ENTRY_BYTES, LINE_WORDS, PACKED_ENTRY_BYTES, PACKED_ROWS};
use crate::codec::{Reader, Writer};
use crate::compression::directory_len;
use crate::{DataType, Error, Result};

/// Packed numbers: see [`packed`](super::packed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PackedExtent {
    /// An entry for each block.
    pub directory: Extent,
    /// The bits.
    pub words: Extent,
}

/// A compressed heap: see [`compression`](crate::compression).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CompressedExtent {
    /// Bytes of the heap.
    pub len: u64,
    /// Where each block begins.
    pub directory: Extent,
    /// The blocks.
    pub bytes: Extent,
}

/// What tells where the values of a compressed heap lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `Encoding`")]
pub enum HeapPlaces {
    /// All have one length.
    Width(u32),
    /// Offsets of 32 bits, one more than rows.
    Offsets(Extent),
    /// The same, packed.
    Packed(PackedExtent),
}

impl Encoding {
    /// True for what has to be unpacked before it is read.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        matches!(
            self,
            Self::Packed { .. }
                | Self::PackedDeltas { .. }
                | Self::Compressed { .. }
                | Self::PackedDictionary { .. }
                | Self::PackedVariable { .. }
        )
    }

    pub(super) fn encode_packed(&self, out: &mut Writer) {
        match self {
            Self::Packed { base, span, numbers } => {
                out.u8(11);
                encode_packed(out, *base, *span, numbers);
            }
            Self::PackedDeltas { base, span, numbers } => {
                out.u8(12);
                encode_packed(out, *base, *span, numbers);
            }
            Self::Compressed { places, heap } => {
                out.u8(13);
                places.encode(out);
                heap.encode(out);
            }
            Self::PackedDictionary { width, codes, offsets, heap } => {
                out.u8(14);
                out.u8(*width);
                codes.encode(out);
                offsets.encode(out);
                heap.encode(out);
            }
            Self::PackedVariable { offsets, heap } => {
                out.u8(15);
                offsets.encode(out);
                heap.encode(out);
            }
            _ => {}
        }
    }

    pub(super) fn decode_packed(code: u8, input: &mut Reader<'_>) -> Result<Self> {
        Ok(match code {
            11 => Self::Packed {
                base: input.u64()?,
                span: input.u64()?,
                numbers: PackedExtent::decode(input)?,
            },
            12 => Self::PackedDeltas {
                base: input.u64()?,
                span: input.u64()?,
                numbers: PackedExtent::decode(input)?,
            },
            13 => Self::Compressed {
                places: HeapPlaces::decode(input)?,
                heap: CompressedExtent::decode(input)?,
            },
            14 => Self::PackedDictionary {
                width: input.u8()?,
                codes: PackedExtent::decode(input)?,
                offsets: Extent::decode(input)?,
                heap: Extent::decode(input)?,
            },
            15 => Self::PackedVariable {
                offsets: PackedExtent::decode(input)?,
                heap: Extent::decode(input)?,
            },
            other => return Err(Error::corrupt(format!("unknown encoding {other}"))),
        })
    }

    pub(super) fn check_packed(&self, data_type: DataType, rows: u64, data_end: u64) -> Result<()> {
        let variable = data_type.width().is_none();
        match self {
            Self::Packed { span, numbers, .. } => {
                check_numbers(data_type, *span)?;
                numbers.check(rows, PACKED_ENTRY_BYTES, data_end)
            }
            Self::PackedDeltas { span, numbers, .. } => {
                check_numbers(data_type, *span)?;
                numbers.check(rows, DELTA_ENTRY_BYTES, data_end)
            }
            Self::PackedDictionary { width, codes, offsets, heap } => {
                if !variable
                    || !matches!(width, 1 | 2 | 4)
                    || !offsets.len.is_multiple_of(4)
                    || offsets.len == 0
                {
                    return Err(Error::corrupt(format!("dictionary {data_type} of {width} bytes")));
                }
                codes.check(rows, PACKED_ENTRY_BYTES, data_end)?;
                offsets.check("offsets", offsets.len, data_end)?;
                heap.check("heap", heap.len, data_end)
            }
            Self::PackedVariable { offsets, heap } if variable => {
                offsets.check(rows + 1, PACKED_ENTRY_BYTES, data_end)?;
                heap.check("heap", heap.len, data_end)
            }
            Self::Compressed { places, heap } if variable => {
                places.check(rows, heap.len, data_end)?;
                heap.check(data_end)
            }
            _ => Err(Error::corrupt(format!("packed encoding of {data_type}"))),
        }
    }
}

fn encode_packed(out: &mut Writer, base: u64, span: u64, numbers: &PackedExtent) {
    out.u64(base);
    out.u64(span);
    numbers.encode(out);
}

/// Checks that numbers of a type can be packed, with a greatest distance from their base.
fn check_numbers(data_type: DataType, span: u64) -> Result<()> {
    let span_max = match data_type.width() {
        Some(8) => u64::MAX,
        Some(width @ (1 | 2)) => (1 << (8 * width)) - 1,
        Some(_) => u32::MAX.into(),
        None => 0,
    };
    if data_type.width().is_none() || data_type.is_float() || span > span_max {
        return Err(Error::corrupt(format!("packed {data_type} up to {span} apart")));
    }
    Ok(())
}

impl PackedExtent {
    fn encode(&self, out: &mut Writer) {
        self.directory.encode(out);
        self.words.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { directory: Extent::decode(input)?, words: Extent::decode(input)? })
    }

    fn check(&self, count: u64, entry_bytes: u64, data_end: u64) -> Result<()> {
        let blocks = count.div_ceil(PACKED_ROWS as u64);
        self.directory.check("directory", blocks * entry_bytes, data_end)?;
        if !self.words.len.is_multiple_of(8 * LINE_WORDS as u64) {
            return Err(Error::corrupt(format!("packed words of {} bytes", self.words.len)));
        }
        self.words.check("packed words", self.words.len, data_end)
    }
}

impl CompressedExtent {
    fn encode(&self, out: &mut Writer) {
        out.u64(self.len);
        self.directory.encode(out);
        self.bytes.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let len = input.u64()?;
        Ok(Self { len, directory: Extent::decode(input)?, bytes: Extent::decode(input)? })
    }

    fn check(&self, data_end: u64) -> Result<()> {
        // Places in a heap have 32 bits, or follow from the number of a row.
        if self.len > (SEGMENT_ROWS_MAX as u64) << 32 {
            return Err(Error::corrupt(format!("a compressed heap of {} bytes", self.len)));
        }
        self.directory.check("blocks", 4 * directory_len(self.len), data_end)?;
        self.bytes.check("compressed heap", self.bytes.len, data_end)
    }
}

impl HeapPlaces {
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Width(width) => {
                out.u8(0);
                out.u32(*width);
            }
            Self::Offsets(offsets) => {
                out.u8(1);
                offsets.encode(out);
            }
            Self::Packed(offsets) => {
                out.u8(2);
                offsets.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(match input.u8()? {
            0 => Self::Width(input.u32()?),
            1 => Self::Offsets(Extent::decode(input)?),
            2 => Self::Packed(PackedExtent::decode(input)?),
            other => return Err(Error::corrupt(format!("0 to 2 for places, found {other}"))),
        })
    }

    fn check(&self, rows: u64, heap_len: u64, data_end: u64) -> Result<()> {
        match self {
            Self::Width(width) if rows * u64::from(*width) == heap_len => Ok(()),
            Self::Width(width) => {
                let message = format!("{rows} rows of {width} bytes in a heap of {heap_len}");
                Err(Error::corrupt(message))
            }
            Self::Offsets(offsets) => offsets.check("offsets", (rows + 1) * 4, data_end),
            Self::Packed(offsets) => offsets.check(rows + 1, PACKED_ENTRY_BYTES, data_end),
        }
    }
}
