//! Which columns are packed, and how.
//!
//! | buffer | packed where that saves a sixteenth |
//! |---|---|
//! | numbers but floats; codes of a dictionary; offsets of texts | to the bits of a block |
//! | timestamps | the same, or their deltas, where those take less again |
//!
//! | heap | compressed where that saves a fifth |
//! |---|---|
//! | texts, byte strings, JSON without a dictionary | in blocks, where that is asked for |

use super::packed::PackedNumbers;
use super::{Buffer, Encoded, EncodedColumn};
use crate::compression::CompressedBytes;
use crate::{Column, DataType, Error, Result, Schema, Values};

/// What a segment has packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Packing {
    /// Nothing.
    #[default]
    None,
    /// Numbers, codes and offsets.
    Numbers,
    /// These, and heaps are compressed.
    Heaps,
}

impl Packing {
    /// Of rows of a schema that were not in a segment before: the numbers of streams. Keyed tables
    /// are read row by row, for which packing is a step more; events are not.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        match schema.stream() {
            Some(_) => Self::Numbers,
            None => Self::None,
        }
    }
}

impl Packing {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Numbers => 1,
            Self::Heaps => 2,
        }
    }

    pub(super) fn of_code(code: u8) -> Result<Self> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Numbers),
            2 => Ok(Self::Heaps),
            other => Err(Error::corrupt(format!("0 to 2 for what is packed, found {other}"))),
        }
    }
}

/// Where the values of a heap begin and end.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "as in `Encoding`")]
pub enum EncodedPlaces<'a> {
    Width(u32),
    Offsets(Buffer<'a>),
    Packed(PackedNumbers),
}

impl EncodedColumn<'_> {
    /// Packs what takes less bytes then. `column` is what was encoded.
    pub fn pack(&mut self, column: &Column, packing: Packing) {
        if packing == Packing::None {
            return;
        }
        let values = std::mem::replace(&mut self.values, Encoded::Plain(Buffer::Borrowed(&[])));
        self.values = match values {
            Encoded::Narrowed { .. } | Encoded::Plain(_) => numbers(column, values),
            Encoded::Dictionary { width, codes, offsets, heap } => {
                let packed = PackedNumbers::new(&codes_of(&codes));
                match pays(packed.bytes(), codes.as_bytes().len()) {
                    true => Encoded::PackedDictionary { width, codes: packed, offsets, heap },
                    false => Encoded::Dictionary { width, codes, offsets, heap },
                }
            }
            Encoded::Variable { offsets, heap } => {
                let packed = PackedNumbers::new(&offsets_of(&offsets));
                let is_packed = pays(packed.bytes(), offsets.as_bytes().len());
                match (compressed(&heap, packing), is_packed) {
                    (Some(bytes), true) => {
                        of_compressed(EncodedPlaces::Packed(packed), &heap, bytes)
                    }
                    (Some(bytes), false) => {
                        of_compressed(EncodedPlaces::Offsets(offsets), &heap, bytes)
                    }
                    (None, true) => Encoded::PackedVariable { offsets: packed, heap },
                    (None, false) => Encoded::Variable { offsets, heap },
                }
            }
            Encoded::FixedWidth { width, heap } => match compressed(&heap, packing) {
                Some(bytes) => of_compressed(EncodedPlaces::Width(width), &heap, bytes),
                None => Encoded::FixedWidth { width, heap },
            },
            other => other,
        };
    }
}

fn of_compressed<'a>(
    places: EncodedPlaces<'a>,
    heap: &Buffer<'_>,
    bytes: CompressedBytes,
) -> Encoded<'a> {
    Encoded::Compressed { places, heap_len: heap.as_bytes().len() as u64, bytes }
}

/// True where packing saves a sixteenth.
fn pays(packed: usize, bytes: usize) -> bool {
    packed.saturating_mul(16) <= bytes.saturating_mul(15)
}

/// The compressed form of a heap, where it saves a fifth.
fn compressed(heap: &Buffer<'_>, packing: Packing) -> Option<CompressedBytes> {
    if packing < Packing::Heaps {
        return None;
    }
    let bytes = heap.as_bytes();
    let compressed = CompressedBytes::new(bytes)?;
    let len = compressed.bytes.len() + size_of_val(compressed.directory.as_slice());
    (len.saturating_mul(5) <= bytes.len().saturating_mul(4)).then_some(compressed)
}

fn codes_of(codes: &Buffer<'_>) -> Vec<u64> {
    match codes {
        Buffer::U8(v) => v.iter().map(|code| u64::from(*code)).collect(),
        Buffer::U16(v) => v.iter().map(|code| u64::from(*code)).collect(),
        Buffer::U32(v) => v.iter().map(|code| u64::from(*code)).collect(),
        Buffer::U64(v) => v.clone(),
        Buffer::Borrowed(v) => v.iter().map(|code| u64::from(*code)).collect(),
    }
}

fn offsets_of(offsets: &Buffer<'_>) -> Vec<u64> {
    let offset = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    offsets.as_bytes().as_chunks().0.iter().map(offset).collect()
}

/// Numbers, packed where that pays.
fn numbers<'a>(column: &Column, plain: Encoded<'a>) -> Encoded<'a> {
    let bytes = match &plain {
        Encoded::Narrowed { codes, .. } | Encoded::Plain(codes) => codes.as_bytes().len(),
        _ => return plain,
    };
    let Some((base, codes)) = codes_from_base(column) else { return plain };
    // default: a column has rows
    let span = codes.iter().max().copied().unwrap_or_default();
    if column.data_type.is_wide() && span > u64::from(u32::MAX) {
        return plain;
    }
    let packed = PackedNumbers::new(&codes);
    if column.data_type == DataType::Timestamp {
        let deltas = PackedNumbers::of_deltas(&codes);
        if pays(deltas.bytes(), packed.bytes()) && pays(deltas.bytes(), bytes) {
            return Encoded::PackedDeltas { base, span, numbers: deltas };
        }
    }
    match pays(packed.bytes(), bytes) {
        true => Encoded::Packed { base, span, numbers: packed },
        false => plain,
    }
}

/// The least number of a column that is not NULL, in two's complement of 64 bits, and how far each
/// is above it; NULL is as far as the number before it. `None` of floats and of numbers that need
/// more bits.
fn codes_from_base(column: &Column) -> Option<(u64, Vec<u64>)> {
    let nulls = column.nulls.as_deref();
    match &column.values {
        Values::U8(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::U16(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::U32(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::I8(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::I16(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::I32(v) => codes_above(v, nulls, |n| Some(i64::from(n))),
        Values::I64(v) => codes_above(v, nulls, Some),
        Values::I128(v) => codes_above(v, nulls, |n| i64::try_from(n).ok()),
        Values::U64(v) => {
            // The order of unsigned numbers is that of signed ones behind a flipped sign.
            let flipped = |n: u64| Some((n ^ (1 << 63)).cast_signed());
            let (base, codes) = codes_above(v, nulls, flipped)?;
            Some((base ^ (1 << 63), codes))
        }
        Values::F32(_) | Values::F64(_) | Values::Variable(_) => None,
    }
}

fn codes_above<T: Copy>(
    values: &[T],
    nulls: Option<&[u8]>,
    word: impl Fn(T) -> Option<i64>,
) -> Option<(u64, Vec<u64>)> {
    let is_null = |row: usize| nulls.and_then(|nulls| nulls.get(row)).is_some_and(|n| *n != 0);
    let mut least: Option<i64> = None;
    for (row, value) in values.iter().enumerate() {
        if !is_null(row) {
            let word = word(*value)?;
            least = least.into_iter().chain([word]).min();
        }
    }
    let (least, mut codes, mut last) = (least?, Vec::with_capacity(values.len()), 0);
    for (row, value) in values.iter().enumerate() {
        if !is_null(row) {
            last = word(*value)?.wrapping_sub(least).cast_unsigned();
        }
        codes.push(last);
    }
    Some((least.cast_unsigned(), codes))
}
