//! Choosing an encoding for a column, and making its buffers.
//!
//! | values | encoding |
//! |---|---|
//! | all equal (or all NULL) | constant |
//! | integers, short decimals, dates, timestamps within 2⁸, 2¹⁶ or 2³² of each other | narrowed |
//! | text or bytes with few distinct values | dictionary |
//! | text or bytes of one length | fixed width |
//! | other text or bytes | variable |
//! | other numbers | plain |
//! | text, bytes or JSON some of which lies in value files | scattered |
//!
//! Fixed-width and variable columns may then be put into one heap, two and two ([`Interleaved`]),
//! and what is left may be packed: see [`packing`](super::packing).
//!
//! [`Interleaved`]: super::Interleaved

use std::ops::Range;

use super::packed::PackedNumbers;
use super::packing::EncodedPlaces;
use super::zone::{kept, least_and_greatest};
use super::{FieldSketch, ZoneEntry};
use crate::compression::CompressedBytes;
use crate::value_file::HeapWord;
use crate::{
    Column, DataType, Error, FieldId, KeyTable, Result, Value, ValueReference, Values,
    VariableValues,
};

/// The most distinct values of a dictionary.
const DICTIONARY_LEN_MAX: usize = 65_536;
/// How many rows are looked at before a dictionary is tried on all.
const SAMPLE_ROWS: usize = 4_096;

/// Bytes on their way into a segment file.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is named after what it holds")]
pub enum Buffer<'a> {
    Borrowed(&'a [u8]),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Buffer<'_> {
    /// The bytes, little-endian.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        const { assert!(cfg!(target_endian = "little"), "buffers are written as they lie") };
        match self {
            Self::Borrowed(v) => v,
            Self::U8(v) => v,
            Self::U16(v) => bytemuck::cast_slice(v),
            Self::U32(v) => bytemuck::cast_slice(v),
            Self::U64(v) => bytemuck::cast_slice(v),
        }
    }
}

/// A column in its encoding, its buffers not yet placed in a file.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "as in `Encoding`")]
pub enum Encoded<'a> {
    Constant(Value),
    Plain(Buffer<'a>),
    Narrowed { base: u64, width: u8, codes: Buffer<'a> },
    Dictionary { width: u8, codes: Buffer<'a>, offsets: Buffer<'a>, heap: Buffer<'a> },
    Variable { offsets: Buffer<'a>, heap: Buffer<'a> },
    FixedWidth { width: u32, heap: Buffer<'a> },
    Scattered { words: Buffer<'a>, heap: Buffer<'a>, long: Buffer<'a> },
    Packed { base: u64, span: u64, numbers: PackedNumbers },
    PackedDeltas { base: u64, span: u64, numbers: PackedNumbers },
    PackedDictionary { width: u8, codes: PackedNumbers, offsets: Buffer<'a>, heap: Buffer<'a> },
    PackedVariable { offsets: PackedNumbers, heap: Buffer<'a> },
    Compressed { places: EncodedPlaces<'a>, heap_len: u64, bytes: CompressedBytes },
}

/// A column ready to be written.
#[derive(Clone, Debug)]
pub struct EncodedColumn<'a> {
    /// The field it belongs to.
    pub field: FieldId,
    /// What it holds.
    pub data_type: DataType,
    /// The values.
    pub values: Encoded<'a>,
    /// The validity bits, when some row is NULL and the column is not constant.
    pub validity: Option<Buffer<'a>>,
    /// One entry per zone.
    pub zones: Vec<ZoneEntry>,
    /// About which values it has, where that is to be kept.
    pub sketch: Option<FieldSketch>,
}

/// Encodes a column.
#[must_use]
pub fn encode_column(field: FieldId, column: &Column) -> EncodedColumn<'_> {
    let data_type = column.data_type;
    let dictionary = match &column.values {
        Values::Variable(values) if !is_null_throughout(column) => Dictionary::new(values),
        _ => None,
    };
    // Bounds of numbers are found faster than those of texts.
    let zones = match &dictionary {
        Some(Dictionary { ranks, entries }) => {
            let rows = (column.len(), column.nulls.as_deref());
            ZoneEntry::of_ranks(data_type, rows, ranks, |rank| entries.get(rank))
        }
        None => ZoneEntry::of_column(column),
    };
    let null_count: u64 = zones.iter().map(|z| u64::from(z.null_count)).sum();
    let values = match (constant(column, &zones, null_count), dictionary) {
        (Some(value), _) => Encoded::Constant(value),
        (None, Some(dictionary)) => dictionary.into_encoded(),
        (None, None) => encode_values(column),
    };
    let constant = matches!(values, Encoded::Constant(_));
    let validity = match &column.nulls {
        Some(nulls) if null_count > 0 && !constant => Some(Buffer::U64(validity_bits(nulls))),
        _ => None,
    };
    EncodedColumn { field, data_type, values, validity, zones, sketch: None }
}

/// Encodes a column some of whose values lie in value files: by rising row, which and where. What
/// the column has for these rows is not looked at.
///
/// # Errors
/// `InvalidInput` for other values that are too long to lie in a segment beside such ones.
pub fn encode_long_column(
    field: FieldId,
    column: &Column,
    long: &[(usize, ValueReference)],
) -> Result<EncodedColumn<'static>> {
    let Values::Variable(values) = &column.values else {
        return Err(Error::invalid(format!("long values in a column of {}", column.data_type)));
    };
    let (mut heap, mut words) = (Vec::new(), Vec::with_capacity(column.len()));
    let mut rest = long.iter().zip(0u64..).peekable();
    for row in 0..column.len() {
        if let Some((_, index)) = rest.next_if(|((at, _), _)| *at == row) {
            words.push(HeapWord::Long { index }.word());
            continue;
        }
        let value = values.get(row);
        let near = HeapWord::near(heap.len(), value.len())
            .ok_or_else(|| Error::invalid(format!("a value of {} bytes", value.len())))?;
        words.push(near.word());
        heap.extend_from_slice(value);
    }
    let zones = ZoneEntry::of_long_column(column, long.iter().map(|(row, _)| *row));
    let validity = column.nulls.as_ref().filter(|nulls| nulls.contains(&1));
    let references = long.iter().flat_map(|(_, reference)| reference.words()).collect();
    Ok(EncodedColumn {
        field,
        data_type: column.data_type,
        values: Encoded::Scattered {
            words: Buffer::U64(words),
            heap: Buffer::U8(heap),
            long: Buffer::U64(references),
        },
        validity: validity.map(|nulls| Buffer::U64(validity_bits(nulls))),
        zones,
        sketch: None,
    })
}

fn is_null_throughout(column: &Column) -> bool {
    column.nulls.as_ref().is_some_and(|nulls| nulls.iter().all(|null| *null != 0))
}

fn constant(column: &Column, zones: &[ZoneEntry], null_count: u64) -> Option<Value> {
    if null_count == column.len() as u64 {
        return Some(Value::Null);
    }
    let first = zones.first()?;
    let same = null_count == 0
        && zones.iter().all(|z| z.greatest.as_ref() == Some(&z.least) && z.least == first.least);
    // Equal floats may differ in bits (-0.0), and those bits must survive.
    (same && !column.data_type.is_float()).then(|| first.least.clone())
}

pub(super) fn validity_bits(nulls: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        chunk.iter().enumerate().fold(0u64, |w, (i, null)| w | u64::from(*null == 0) << i)
    };
    nulls.chunks(64).map(word).collect()
}

fn encode_values(column: &Column) -> Encoded<'_> {
    match &column.values {
        Values::U8(v) => Encoded::Plain(Buffer::Borrowed(v)),
        Values::I8(v) => Encoded::Plain(Buffer::Borrowed(bytemuck::cast_slice(v))),
        Values::U16(v) => narrowed(v, |a, b| u64::from(b.wrapping_sub(a))),
        Values::U32(v) => narrowed(v, |a, b| u64::from(b.wrapping_sub(a))),
        Values::U64(v) => narrowed(v, |a, b| b.wrapping_sub(a)),
        Values::I16(v) => narrowed(v, |a, b| u64::from(b.wrapping_sub(a).cast_unsigned())),
        Values::I32(v) => narrowed(v, |a, b| u64::from(b.wrapping_sub(a).cast_unsigned())),
        Values::I64(v) => narrowed(v, |a, b| b.wrapping_sub(a).cast_unsigned()),
        Values::I128(v) => narrowed(v, wide_distance),
        Values::F32(v) => Encoded::Plain(Buffer::Borrowed(bytemuck::cast_slice(v))),
        Values::F64(v) => Encoded::Plain(Buffer::Borrowed(bytemuck::cast_slice(v))),
        Values::Variable(v) => variable(v),
    }
}

/// A number whose 64-bit two's complement form is the base of narrowed codes.
trait Base: bytemuck::Pod + Ord {
    fn base(self) -> u64;
}

macro_rules! base {
    ($($type:ty => $wide:ty),*) => {
        $(impl Base for $type {
            #[allow(clippy::cast_sign_loss, reason = "two's complement is meant")]
            fn base(self) -> u64 {
                <$wide>::from(self) as u64
            }
        })*
    };
}

impl Base for i128 {
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "numbers that do not fit are not narrowed"
    )]
    fn base(self) -> u64 {
        self as u64
    }
}

/// How far two numbers of 64 bits are apart; as far as can be where they have more.
fn wide_distance(a: i128, b: i128) -> u64 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => b.wrapping_sub(a).cast_unsigned(),
        _ => u64::MAX,
    }
}

base!(u16 => u64, u32 => u64, u64 => u64, i16 => i64, i32 => i64, i64 => i64);

#[allow(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn narrowed<T: Base>(values: &[T], distance: impl Fn(T, T) -> u64) -> Encoded<'_> {
    let plain = Encoded::Plain(Buffer::Borrowed(bytemuck::cast_slice(values)));
    let Some((least, greatest)) = least_and_greatest(values) else { return plain };
    let (base, span, wide) = (least.base(), distance(least, greatest), size_of::<T>());
    let code = |v: &T| distance(least, *v);
    if span <= u64::from(u8::MAX) && wide > 1 {
        let codes = Buffer::U8(values.iter().map(|v| code(v) as u8).collect());
        Encoded::Narrowed { base, width: 1, codes }
    } else if span <= u64::from(u16::MAX) && wide > 2 {
        let codes = Buffer::U16(values.iter().map(|v| code(v) as u16).collect());
        Encoded::Narrowed { base, width: 2, codes }
    } else if span <= u64::from(u32::MAX) && wide > 4 {
        let codes = Buffer::U32(values.iter().map(|v| code(v) as u32).collect());
        Encoded::Narrowed { base, width: 4, codes }
    } else {
        plain
    }
}

/// Text or bytes without a dictionary.
fn variable(values: &VariableValues) -> Encoded<'_> {
    let heap = Buffer::Borrowed(&values.heap);
    let width = values.get(0).len();
    let fixed = values.offsets.windows(2).all(|w| match w {
        [start, end] => (end - start) as usize == width,
        _ => false,
    });
    match u32::try_from(width) {
        Ok(width) if fixed && width > 0 => Encoded::FixedWidth { width, heap },
        _ => {
            let offsets = Buffer::Borrowed(bytemuck::cast_slice(&values.offsets));
            Encoded::Variable { offsets, heap }
        }
    }
}

/// Distinct values in order, and which of them each row has.
struct Dictionary {
    entries: VariableValues,
    ranks: Ranks,
}

/// The positions of the values of rows in a dictionary, as wide as it needs.
#[derive(Clone, Debug)]
pub(super) enum Ranks {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl Dictionary {
    /// A dictionary, when the values repeat often enough to make it smaller.
    fn new(values: &VariableValues) -> Option<Self> {
        let rows = values.len();
        let sample = rows.min(SAMPLE_ROWS);
        let mut distinct = KeyTable::default();
        for i in 0..sample {
            distinct.number(values.get(i));
        }
        if rows < 16 || distinct.len() > sample / 4 {
            return None;
        }
        let mut codes = Vec::with_capacity(rows);
        let (mut last, mut last_code): (&[u8], u32) = (&[], u32::MAX);
        for i in 0..rows {
            let value = values.get(i);
            // Values that repeat often come in runs.
            if last_code == u32::MAX || value != last {
                (last, last_code) = (value, distinct.number(value));
            }
            codes.push(last_code);
            if distinct.len() > DICTIONARY_LEN_MAX.min(rows / 2) {
                return None;
            }
        }
        let mut sorted: Vec<u32> = (0..u32::try_from(distinct.len()).ok()?).collect();
        sorted.sort_unstable_by_key(|code| distinct.key(*code as usize));
        let mut rank = vec![0u32; sorted.len()];
        let mut entries = VariableValues::default();
        for (new, old) in sorted.iter().enumerate() {
            *rank.get_mut(*old as usize)? = u32::try_from(new).ok()?;
            if !entries.push(distinct.key(*old as usize)) {
                return None;
            }
        }
        Some(Self { entries, ranks: Ranks::new(&codes, &rank)? })
    }

    fn into_encoded(self) -> Encoded<'static> {
        let (width, codes) = match self.ranks {
            Ranks::U8(ranks) => (1, Buffer::U8(ranks)),
            Ranks::U16(ranks) => (2, Buffer::U16(ranks)),
            Ranks::U32(ranks) => (4, Buffer::U32(ranks)),
        };
        let (offsets, heap) = (Buffer::U32(self.entries.offsets), Buffer::U8(self.entries.heap));
        Encoded::Dictionary { width, codes, offsets, heap }
    }
}

impl Ranks {
    #[allow(clippy::cast_possible_truncation, reason = "the dictionary's length bounds the ranks")]
    fn new(codes: &[u32], rank: &[u32]) -> Option<Self> {
        let ranked = codes.iter().map(|code| rank.get(*code as usize).copied());
        Some(if rank.len() <= 1 << 8 {
            Self::U8(ranked.map(|r| r.map(|r| r as u8)).collect::<Option<_>>()?)
        } else if rank.len() <= 1 << 16 {
            Self::U16(ranked.map(|r| r.map(|r| r as u16)).collect::<Option<_>>()?)
        } else {
            Self::U32(ranked.collect::<Option<_>>()?)
        })
    }

    /// Bytes of one, and all of them.
    pub(super) fn as_buffer(&self) -> (u8, Buffer<'_>) {
        match self {
            Self::U8(ranks) => (1, Buffer::Borrowed(ranks)),
            Self::U16(ranks) => (2, Buffer::Borrowed(bytemuck::cast_slice(ranks))),
            Self::U32(ranks) => (4, Buffer::Borrowed(bytemuck::cast_slice(ranks))),
        }
    }

    /// The least and the greatest of some rows, those apart that `nulls` marks.
    pub(super) fn bounds(&self, rows: Range<usize>, nulls: Option<&[u8]>) -> Option<(u32, u32)> {
        match self {
            Self::U8(ranks) => rank_bounds(ranks, rows, nulls),
            Self::U16(ranks) => rank_bounds(ranks, rows, nulls),
            Self::U32(ranks) => rank_bounds(ranks, rows, nulls),
        }
    }
}

fn rank_bounds<T: Copy + Ord + Into<u32>>(
    ranks: &[T],
    rows: Range<usize>,
    nulls: Option<&[u8]>,
) -> Option<(u32, u32)> {
    let nulls = nulls.and_then(|nulls| nulls.get(rows.clone()));
    let (least, greatest) = least_and_greatest(&kept(ranks.get(rows)?, nulls))?;
    Some((least.into(), greatest.into()))
}

/// Encodes rising row ids: `None` when they are dense, else the buffer and its width in bytes.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the span is checked first")]
pub fn encode_row_ids(ids: &[u64]) -> Option<(u8, Buffer<'_>)> {
    let (first, last) = (*ids.iter().min()?, *ids.iter().max()?);
    let span = last - first;
    // Several versions of one row may stand side by side, so the span alone proves nothing.
    if span + 1 == ids.len() as u64 && ids.windows(2).all(|w| matches!(w, [a, b] if a + 1 == *b)) {
        return None;
    }
    Some(if span <= u64::from(u32::MAX) {
        (4, Buffer::U32(ids.iter().map(|id| (id - first) as u32).collect()))
    } else {
        (8, Buffer::Borrowed(bytemuck::cast_slice(ids)))
    })
}
