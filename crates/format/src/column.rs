//! Borrowed columns in the encodings that random access survives, as kernels see them.

use crate::value_file::HeapWord;
use crate::{Column, DataType, PartLines, ValueRef, Values};

/// A run of consecutive rows of one column, borrowed from a segment, an open group or a batch.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSlice<'a> {
    /// What the column holds.
    pub data_type: DataType,
    /// The number of rows.
    pub len: usize,
    /// Which rows are NULL.
    pub validity: Validity<'a>,
    /// The values; rows that are NULL hold anything.
    pub data: Data<'a>,
}

/// Which rows of a [`ColumnSlice`] are NULL.
#[derive(Clone, Copy, Debug)]
pub enum Validity<'a> {
    /// None.
    AllValid,
    /// One byte per row, 1 where NULL.
    NullBytes(&'a [u8]),
    /// One bit per row, 1 where *valid* (the Arrow convention), the first row at bit `offset` of
    /// the first byte.
    ValidBits {
        /// The bits, least significant first.
        bits: &'a [u8],
        /// Where the first row's bit stands, 0 to 7.
        offset: usize,
    },
}

/// Small unsigned numbers, one per row.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each variant is named after its width")]
pub enum Codes<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
}

impl Codes<'_> {
    /// Code `i`; 0 past the end.
    #[must_use]
    pub fn get(&self, i: usize) -> u32 {
        let code = match self {
            Self::U8(v) => v.get(i).map(|code| u32::from(*code)),
            Self::U16(v) => v.get(i).map(|code| u32::from(*code)),
            Self::U32(v) => v.get(i).copied(),
        };
        code.unwrap_or_default() // default: a row past the end has no code, and is not requested.
    }
}

/// The distinct values of a column of text or bytes, sorted, so that codes compare as values do.
#[derive(Clone, Copy, Debug)]
pub struct Dictionary<'a> {
    /// `offsets[i]..offsets[i + 1]` of `heap` is the value of code `i`.
    pub offsets: &'a [u32],
    /// The bytes of all values.
    pub heap: &'a [u8],
}

impl<'a> Dictionary<'a> {
    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// True when there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a code; empty past the end.
    #[must_use]
    pub fn get(&self, code: usize) -> &'a [u8] {
        range(self.offsets, 0, self.heap, code)
    }
}

/// Byte strings that lie scattered, found by a reference.
pub trait Heap: Send + Sync {
    /// The bytes behind a reference; empty when it is not one of this heap's.
    fn bytes(&self, reference: u64) -> &[u8];

    /// Bytes around those behind a reference, in one piece, and the position of the first of them
    /// as a [`HeapWord`] tells it; `None` where nothing is known of neighbours.
    fn window(&self, _reference: u64) -> Option<(u64, &[u8])> {
        None
    }
}

/// Reads a column of texts or bytes. Of a scattered one it remembers where the last value lay:
/// reading them in the order of writing is quick.
pub struct BytesReader<'a> {
    column: ColumnSlice<'a>,
    /// The position of the first byte of the window; none has `u64::MAX`.
    start: u64,
    window: &'a [u8],
}

impl<'a> BytesReader<'a> {
    /// A reader of a column.
    #[must_use]
    pub fn new(column: &ColumnSlice<'a>) -> Self {
        Self { column: *column, start: u64::MAX, window: &[] }
    }

    /// The bytes of row `i`, as [`ColumnSlice::bytes`] has them.
    #[inline]
    pub fn bytes(&mut self, i: usize) -> &'a [u8] {
        let Data::Scattered { references, heap } = self.column.data else {
            return self.column.bytes(i);
        };
        let Some(word) = references.get(i) else { return &[] };
        match self.within(*word) {
            Some(bytes) => bytes,
            None => self.refill(*word, heap),
        }
    }

    #[inline]
    fn within(&self, word: u64) -> Option<&'a [u8]> {
        let HeapWord::Near { position, len } = HeapWord::of(word) else { return None };
        let from = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.window.get(from..from.checked_add(usize::try_from(len).ok()?)?)
    }

    #[cold]
    fn refill(&mut self, word: u64, heap: &'a dyn Heap) -> &'a [u8] {
        if let (HeapWord::Near { .. }, Some((start, window))) =
            (HeapWord::of(word), heap.window(word))
        {
            (self.start, self.window) = (start, window);
        }
        heap.bytes(word)
    }
}

/// The values of a [`ColumnSlice`]. Slices are exactly `len` long (offsets one longer).
///
/// Plain variants by storage: see [`Values::empty`].
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the plain variants are named after what they store")]
pub enum Data<'a> {
    /// Every row has this value (which may be NULL).
    Constant(ValueRef<'a>),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    I128(&'a [i128]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// Integers, short decimals, dates or timestamps: row `i` is `base + codes[i]` in two's
    /// complement, 64 bits.
    Narrowed {
        base: u64,
        codes: Codes<'a>,
    },
    /// Text or bytes: row `i` is `dictionary[codes[i]]`.
    Dictionary {
        codes: Codes<'a>,
        dictionary: Dictionary<'a>,
    },
    /// Text or bytes: row `i` is `heap[offsets[i] - start..offsets[i + 1] - start]`.
    Variable {
        offsets: &'a [u32],
        start: u32,
        heap: &'a [u8],
    },
    /// Text or bytes of one length: row `i` is `heap[i * stride..i * stride + width]`.
    FixedWidth {
        width: usize,
        stride: usize,
        heap: &'a [u8],
    },
    /// Text or bytes between those of another column: row `i` is
    /// `heap[offsets[2 * i] - start..offsets[2 * i + 1] - start]`.
    Interleaved {
        offsets: &'a [u32],
        start: u32,
        heap: &'a [u8],
    },
    /// The same, where `lines` tell where row `i` begins and ends, `start` after where `heap` does.
    Lined {
        lines: PartLines<'a>,
        start: u32,
        heap: &'a [u8],
    },
    /// Text or bytes: row `i` is `heap.bytes(references[i])`.
    Scattered {
        references: &'a [u64],
        heap: &'a dyn Heap,
    },
}

impl std::fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Constant(v) => return write!(f, "Constant({v})"),
            Self::U8(_) => "U8",
            Self::U16(_) => "U16",
            Self::U32(_) => "U32",
            Self::U64(_) => "U64",
            Self::I8(_) => "I8",
            Self::I16(_) => "I16",
            Self::I32(_) => "I32",
            Self::I64(_) => "I64",
            Self::I128(_) => "I128",
            Self::F32(_) => "F32",
            Self::F64(_) => "F64",
            Self::Narrowed { .. } => "Narrowed",
            Self::Dictionary { .. } => "Dictionary",
            Self::Variable { .. } => "Variable",
            Self::FixedWidth { .. } => "FixedWidth",
            Self::Interleaved { .. } => "Interleaved",
            Self::Lined { .. } => "Lined",
            Self::Scattered { .. } => "Scattered",
        };
        f.write_str(name)
    }
}

fn range<'a>(offsets: &[u32], first: u32, heap: &'a [u8], i: usize) -> &'a [u8] {
    let at = |i: usize| Some(offsets.get(i)?.wrapping_sub(first) as usize);
    match (at(i), at(i + 1)) {
        // default: a checksum would have to miss offsets outside of the heap first.
        (Some(start), Some(end)) => heap.get(start..end).unwrap_or_default(),
        _ => &[],
    }
}

impl<'a> ColumnSlice<'a> {
    /// The rows from `start` up to `end` of a slice of plain or variable data, as
    /// [`Column`] gives it; other data is returned as it is.
    #[must_use]
    pub fn rows(&self, start: usize, end: usize) -> Self {
        fn cut<T>(values: &[T], start: usize, end: usize) -> &[T] {
            values.get(start..end).unwrap_or_default() // default: the rows are there, see below.
        }
        debug_assert!(start <= end && end <= self.len, "rows {start}..{end} of {}", self.len);
        debug_assert!(self.can_be_cut() || (start, end) == (0, self.len), "{:?} is cut", self.data);
        let data = match self.data {
            Data::U8(v) => Data::U8(cut(v, start, end)),
            Data::U16(v) => Data::U16(cut(v, start, end)),
            Data::U32(v) => Data::U32(cut(v, start, end)),
            Data::U64(v) => Data::U64(cut(v, start, end)),
            Data::I8(v) => Data::I8(cut(v, start, end)),
            Data::I16(v) => Data::I16(cut(v, start, end)),
            Data::I32(v) => Data::I32(cut(v, start, end)),
            Data::I64(v) => Data::I64(cut(v, start, end)),
            Data::I128(v) => Data::I128(cut(v, start, end)),
            Data::F32(v) => Data::F32(cut(v, start, end)),
            Data::F64(v) => Data::F64(cut(v, start, end)),
            Data::Variable { offsets, start: first, heap } => {
                Data::Variable { offsets: cut(offsets, start, end + 1), start: first, heap }
            }
            other => other,
        };
        let validity = match self.validity {
            Validity::NullBytes(bytes) => Validity::NullBytes(cut(bytes, start, end)),
            other => other,
        };
        Self { data_type: self.data_type, len: end - start, validity, data }
    }

    /// True where [`rows`](Self::rows) has the rows that it says: of plain or variable data, and
    /// of one value for all.
    #[must_use]
    pub fn can_be_cut(&self) -> bool {
        let is_encoded = matches!(
            self.data,
            Data::Narrowed { .. }
                | Data::Dictionary { .. }
                | Data::FixedWidth { .. }
                | Data::Interleaved { .. }
                | Data::Lined { .. }
                | Data::Scattered { .. }
        );
        !is_encoded && !matches!(self.validity, Validity::ValidBits { .. })
    }

    /// True when row `i` is NULL.
    #[must_use]
    pub fn is_null(&self, i: usize) -> bool {
        let marked = match self.validity {
            Validity::AllValid => false,
            Validity::NullBytes(bytes) => bytes.get(i).is_some_and(|b| *b != 0),
            Validity::ValidBits { bits, offset } => {
                let at = i + offset;
                bits.get(at / 8).is_some_and(|b| b >> (at % 8) & 1 == 0)
            }
        };
        marked || matches!(self.data, Data::Constant(ValueRef::Null))
    }

    /// The bytes of row `i` of a text or bytes column, whether or not it is NULL.
    #[must_use]
    pub fn bytes(&self, i: usize) -> &'a [u8] {
        match self.data {
            Data::Constant(v) => v.as_bytes().unwrap_or_default(), // default: NULL has no bytes.
            Data::Dictionary { codes, dictionary } => dictionary.get(codes.get(i) as usize),
            Data::Variable { offsets, start, heap } => range(offsets, start, heap, i),
            Data::FixedWidth { width, stride, heap } => {
                // default: past the end there is no value.
                heap.get(i * stride..i * stride + width).unwrap_or_default()
            }
            Data::Interleaved { offsets, start, heap } => range(offsets, start, heap, 2 * i),
            Data::Lined { lines, start, heap } => {
                // default: past the end there is no value.
                let (first, end) = lines.place(i).unwrap_or((start, start));
                let at = |place: u32| place.wrapping_sub(start) as usize;
                // default: as in `range`.
                heap.get(at(first)..at(end)).unwrap_or_default()
            }
            Data::Scattered { references, heap } => {
                // default: past the end there is no value.
                references.get(i).map_or(&[], |r| heap.bytes(*r))
            }
            _ => &[],
        }
    }

    /// The value of row `i`; NULL past the end.
    ///
    /// Text that is not UTF-8 (which a checksum would have to miss first) reads as empty.
    #[must_use]
    pub fn value(&self, i: usize) -> ValueRef<'a> {
        if i >= self.len || self.is_null(i) {
            return ValueRef::Null;
        }
        match self.data {
            Data::Constant(v) => v,
            Data::U8(v) => at(v, i, |x| self.word(x.into())),
            Data::U16(v) => at(v, i, |x| self.word(x.into())),
            Data::U32(v) => at(v, i, |x| self.word(x.into())),
            Data::U64(v) => at(v, i, |x| self.word(x.cast_signed())),
            Data::I8(v) => at(v, i, |x| self.word(x.into())),
            Data::I16(v) => at(v, i, |x| self.word(x.into())),
            Data::I32(v) => at(v, i, |x| self.word(x.into())),
            Data::I64(v) => at(v, i, |x| self.word(x)),
            // A column that was widened.
            Data::F32(v) if self.data_type == DataType::F64 => {
                at(v, i, |x| ValueRef::Float(x.into()))
            }
            Data::I128(v) => at(v, i, |x| ValueRef::from_mantissa(self.data_type, x)),
            Data::F32(v) => at(v, i, ValueRef::Float32),
            // The same, read by a snapshot from before it was widened: its rows are older too.
            Data::F64(v) if self.data_type == DataType::F32 => at(v, i, narrowed),
            Data::F64(v) => at(v, i, ValueRef::Float),
            Data::Narrowed { base, codes } => {
                self.word(base.wrapping_add(codes.get(i).into()).cast_signed())
            }
            _ => ValueRef::from_bytes(self.data_type, self.bytes(i)),
        }
    }

    fn word(&self, word: i64) -> ValueRef<'a> {
        ValueRef::from_word(self.data_type, word)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a float32 that was widened: exact")]
fn narrowed<'a>(x: f64) -> ValueRef<'a> {
    ValueRef::Float32(x as f32)
}

fn at<'a, T: Copy>(values: &[T], i: usize, make: impl FnOnce(T) -> ValueRef<'a>) -> ValueRef<'a> {
    values.get(i).map_or(ValueRef::Null, |v| make(*v)) // default: it is NULL past the end.
}

impl<'a> From<&'a Column> for ColumnSlice<'a> {
    fn from(column: &'a Column) -> Self {
        let data = match &column.values {
            Values::U8(v) => Data::U8(v),
            Values::U16(v) => Data::U16(v),
            Values::U32(v) => Data::U32(v),
            Values::U64(v) => Data::U64(v),
            Values::I8(v) => Data::I8(v),
            Values::I16(v) => Data::I16(v),
            Values::I32(v) => Data::I32(v),
            Values::I64(v) => Data::I64(v),
            Values::I128(v) => Data::I128(v),
            Values::F32(v) => Data::F32(v),
            Values::F64(v) => Data::F64(v),
            Values::Variable(v) => Data::Variable { offsets: &v.offsets, start: 0, heap: &v.heap },
        };
        let validity = match &column.nulls {
            None => Validity::AllValid,
            Some(nulls) => Validity::NullBytes(nulls),
        };
        Self { data_type: column.data_type, len: column.len(), validity, data }
    }
}
