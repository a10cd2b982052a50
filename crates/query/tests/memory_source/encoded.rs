//! Owned columns in every encoding.

use std::ops::Range;

use esker_format::column::Heap;
use esker_format::part_lines::{LINE_ROWS, Line, lines_of};
use esker_format::{
    Codes, Column, ColumnSlice, Data, DataType, Dictionary, PartLines, Validity, Value, ValueRef,
    Values, VariableValues, with_values,
};

use esker_query::{ZONE_ROWS, Zone};

/// How columns are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As loaded.
    Plain,
    /// Constant, narrowed or dictionary, where that is possible.
    Compact,
    /// Text of one length without offsets, where that is possible.
    FixedWidth,
    /// Text between that of another column.
    Interleaved,
    /// The same, with places in lines.
    Lined,
    /// Text by reference.
    Scattered,
}

/// How NULLs are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullForm {
    /// One byte per row.
    Bytes,
    /// One bit per row, the first so many bits into the first byte.
    Bits(usize),
}

#[derive(Debug)]
pub(super) struct EncodedColumn {
    data_type: DataType,
    data: Encoded,
    nulls: Option<Nulls>,
    zones: Vec<OwnedZone>,
}

#[derive(Debug)]
enum Nulls {
    Bytes(Vec<u8>),
    Bits { bits: Vec<u8>, offset: usize },
}

#[derive(Debug)]
struct OwnedZone {
    least: Value,
    greatest: Option<Value>,
    null_count: usize,
}

#[derive(Debug)]
enum Encoded {
    Plain(Values),
    Constant(Value),
    Narrowed { base: u64, codes: Values },
    Dictionary { codes: Values, values: VariableValues },
    FixedWidth { width: usize, heap: Vec<u8> },
    Interleaved(VariableValues),
    Lined { lines: Vec<Line>, heap: Vec<u8> },
    Scattered { references: Vec<u64>, heap: Scattered },
}

/// What lies between the values of a column that shares its heap.
const GAP: &[u8] = b"gap";

#[derive(Debug)]
struct Scattered(Vec<Vec<u8>>);

impl Heap for Scattered {
    fn bytes(&self, reference: u64) -> &[u8] {
        let index = usize::try_from(reference / 3).unwrap_or(usize::MAX);
        self.0.get(index).map_or(&[], Vec::as_slice)
    }
}

impl EncodedColumn {
    pub(super) fn new(column: &Column, encoding: Encoding, nulls: NullForm) -> Self {
        let encoded = match (encoding, &column.values) {
            (Encoding::Compact, Values::Variable(_)) => constant(column).or(dictionary(column)),
            (Encoding::Compact, _) => constant(column).or_else(|| narrowed(column)),
            (Encoding::FixedWidth, Values::Variable(v)) => fixed_width(v),
            (Encoding::Interleaved, Values::Variable(v)) => Some(interleaved(v)),
            (Encoding::Lined, Values::Variable(v)) => lined(v),
            (Encoding::Scattered, Values::Variable(v)) => Some(scattered(v)),
            _ => None,
        };
        let data = encoded.unwrap_or_else(|| Encoded::Plain(spoiled(column)));
        let nulls = column.nulls.as_ref().map(|bytes| match nulls {
            NullForm::Bytes => Nulls::Bytes(bytes.clone()),
            NullForm::Bits(offset) => Nulls::Bits { bits: valid_bits(bytes, offset), offset },
        });
        Self { data_type: column.data_type, data, nulls, zones: zones(column) }
    }

    pub(super) fn slice(&self, rows: Range<usize>) -> Option<ColumnSlice<'_>> {
        let data = match &self.data {
            Encoded::Plain(values) => plain(values, rows.clone())?,
            Encoded::Constant(value) => Data::Constant(value.as_ref()),
            Encoded::Narrowed { base, codes } => {
                Data::Narrowed { base: *base, codes: slice_codes(codes, rows.clone())? }
            }
            Encoded::Dictionary { codes, values } => Data::Dictionary {
                codes: slice_codes(codes, rows.clone())?,
                dictionary: Dictionary { offsets: &values.offsets, heap: &values.heap },
            },
            Encoded::FixedWidth { width, heap } => Data::FixedWidth {
                width: *width,
                stride: *width + GAP.len(),
                heap: heap.get(rows.start * (width + GAP.len())..)?,
            },
            Encoded::Interleaved(VariableValues { offsets, heap }) => {
                let offsets = offsets.get(2 * rows.start..2 * rows.end)?;
                let start = offsets.first().copied().unwrap_or_default();
                let heap = heap.get(usize::try_from(start).ok()?..)?;
                Data::Interleaved { offsets, start, heap }
            }
            Encoded::Lined { lines, heap } => {
                let lines = lines.get(rows.start / LINE_ROWS..)?;
                let lines = PartLines::new(lines, rows.start % LINE_ROWS, 0);
                let start = lines.place(0).map_or(0, |(start, _)| start);
                let heap = heap.get(usize::try_from(start).ok()?..)?;
                Data::Lined { lines, start, heap }
            }
            Encoded::Scattered { references, heap } => {
                Data::Scattered { references: references.get(rows.clone())?, heap }
            }
        };
        let validity = match &self.nulls {
            None => Validity::AllValid,
            Some(Nulls::Bytes(bytes)) => Validity::NullBytes(bytes.get(rows.clone())?),
            Some(Nulls::Bits { bits, offset }) => {
                let first = offset + rows.start;
                Validity::ValidBits { bits: bits.get(first / 8..)?, offset: first % 8 }
            }
        };
        Some(ColumnSlice { data_type: self.data_type, len: rows.len(), validity, data })
    }

    pub(super) fn zone(&self, zone: usize) -> Option<Zone<'_>> {
        self.zones.get(zone).map(|zone| Zone {
            least: zone.least.as_ref(),
            greatest: zone.greatest.as_ref().map(Value::as_ref),
            null_count: zone.null_count,
        })
    }
}

fn plain(values: &Values, rows: Range<usize>) -> Option<Data<'_>> {
    Some(match values {
        Values::U8(v) => Data::U8(v.get(rows)?),
        Values::U16(v) => Data::U16(v.get(rows)?),
        Values::U32(v) => Data::U32(v.get(rows)?),
        Values::U64(v) => Data::U64(v.get(rows)?),
        Values::I8(v) => Data::I8(v.get(rows)?),
        Values::I16(v) => Data::I16(v.get(rows)?),
        Values::I32(v) => Data::I32(v.get(rows)?),
        Values::I64(v) => Data::I64(v.get(rows)?),
        Values::I128(v) => Data::I128(v.get(rows)?),
        Values::F32(v) => Data::F32(v.get(rows)?),
        Values::F64(v) => Data::F64(v.get(rows)?),
        Values::Variable(v) => Data::Variable {
            offsets: v.offsets.get(rows.start..=rows.end)?,
            start: 0,
            heap: &v.heap,
        },
    })
}

fn slice_codes(codes: &Values, rows: Range<usize>) -> Option<Codes<'_>> {
    match codes {
        Values::U8(v) => Some(Codes::U8(v.get(rows)?)),
        Values::U16(v) => Some(Codes::U16(v.get(rows)?)),
        Values::U32(v) => Some(Codes::U32(v.get(rows)?)),
        _ => None,
    }
}

/// The values with rubbish where rows are NULL, as the format allows.
fn spoiled(column: &Column) -> Values {
    let mut values = column.values.clone();
    macro_rules! spoil {
        ($($variant:ident => $rubbish:expr),*) => {
            match &mut values {
                $(Values::$variant(v) => {
                    for (i, value) in v.iter_mut().enumerate() {
                        if column.is_null(i) {
                            *value = $rubbish;
                        }
                    }
                })*
                _ => {}
            }
        };
    }
    spoil!(I64 => i64::MAX, I128 => i128::MAX, U64 => u64::MAX, I32 => i32::MAX);
    spoil!(F64 => f64::NAN, I8 => i8::MIN);
    values
}

fn constant(column: &Column) -> Option<Encoded> {
    let first = column.value(0);
    let same = (0..column.len()).all(|i| identical(column.value(i), first));
    (same && !column.is_empty()).then(|| Encoded::Constant(first.to_owned()))
}

fn identical(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits(),
        (ValueRef::Float32(a), ValueRef::Float32(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn narrowed(column: &Column) -> Option<Encoded> {
    let number = |i| match column.value(i) {
        ValueRef::Bool(_) => None,
        ValueRef::Uint(v) => Some(i128::from(v)),
        other => other.as_word().map(i128::from),
    };
    let is_long = |i| column.data_type.is_wide() && column.value(i).as_word().is_none();
    if (0..column.len()).any(|i| !column.is_null(i) && is_long(i)) {
        return None;
    }
    let numbers: Vec<_> = (0..column.len()).map(number).collect();
    let (least, greatest) = (numbers.iter().flatten().min()?, numbers.iter().flatten().max()?);
    let base = match i64::try_from(*least) {
        Ok(base) => base.cast_unsigned(),
        Err(_) => u64::try_from(*least).ok()?,
    };
    let codes = numbers.iter().map(|n| u32::try_from(n.unwrap_or(*greatest) - least).ok());
    let codes: Option<Vec<u32>> = codes.collect();
    Some(Encoded::Narrowed { base, codes: shortest(&codes?) })
}

fn dictionary(column: &Column) -> Option<Encoded> {
    let Values::Variable(texts) = &column.values else { return None };
    let mut distinct: Vec<&[u8]> = (0..texts.len()).map(|i| texts.get(i)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut values = VariableValues::default();
    distinct.iter().for_each(|text| {
        values.push(text);
    });
    let code = |i| {
        let at = distinct.binary_search(&texts.get(i)).unwrap_or(0);
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    let codes: Vec<u32> = (0..texts.len()).map(code).collect();
    Some(Encoded::Dictionary { codes: shortest(&codes), values })
}

/// Codes in the fewest bytes.
fn shortest(codes: &[u32]) -> Values {
    let eight: Result<Vec<u8>, _> = codes.iter().map(|c| u8::try_from(*c)).collect();
    let sixteen: Result<Vec<u16>, _> = codes.iter().map(|c| u16::try_from(*c)).collect();
    match (eight, sixteen) {
        (Ok(codes), _) => Values::U8(codes),
        (_, Ok(codes)) => Values::U16(codes),
        _ => Values::U32(codes.to_vec()),
    }
}

fn fixed_width(texts: &VariableValues) -> Option<Encoded> {
    let width = texts.get(0).len();
    let same = (0..texts.len()).all(|i| texts.get(i).len() == width);
    let heap = || (0..texts.len()).flat_map(|i| [texts.get(i), GAP].concat()).collect();
    (same && width > 0).then(|| Encoded::FixedWidth { width, heap: heap() })
}

fn interleaved(texts: &VariableValues) -> Encoded {
    let mut parts = VariableValues::default();
    for i in 0..texts.len() {
        parts.push(texts.get(i));
        parts.push(GAP.get(i % 2..).unwrap_or_default());
    }
    Encoded::Interleaved(parts)
}

fn lined(texts: &VariableValues) -> Option<Encoded> {
    let gap = |row: usize| GAP.get(row % 2..).unwrap_or_default();
    let parts = || (0..texts.len()).flat_map(|row| [texts.get(row), gap(row)]);
    let lines = lines_of(parts().map(<[u8]>::len))?;
    let (lines, _) = lines.as_chunks();
    Some(Encoded::Lined { lines: lines.to_vec(), heap: parts().flatten().copied().collect() })
}

fn scattered(texts: &VariableValues) -> Encoded {
    let references = (0..texts.len() as u64).map(|i| i * 3).collect();
    let heap = Scattered((0..texts.len()).map(|i| texts.get(i).to_vec()).collect());
    Encoded::Scattered { references, heap }
}

fn valid_bits(null_bytes: &[u8], offset: usize) -> Vec<u8> {
    let mut bits = vec![0u8; (null_bytes.len() + offset).div_ceil(8)];
    for (i, null) in null_bytes.iter().enumerate() {
        if let Some(byte) = bits.get_mut((i + offset) / 8)
            && *null == 0
        {
            *byte |= 1 << ((i + offset) % 8);
        }
    }
    bits
}

fn zones(column: &Column) -> Vec<OwnedZone> {
    let len = with_values!(&column.values, v => v.len(), v => v.len());
    let mut zones = Vec::new();
    for start in (0..len).step_by(ZONE_ROWS) {
        let rows = start..len.min(start + ZONE_ROWS);
        let null_count = rows.clone().filter(|i| column.is_null(*i)).count();
        let values = || rows.clone().map(|i| column.value(i)).filter(|v| !v.is_null());
        let greatest = values().max().map(ValueRef::to_owned);
        let is_long = |v: &Value| v.as_ref().as_bytes().is_some_and(|b| b.len() > 6);
        zones.push(OwnedZone {
            least: values().min().unwrap_or_default().to_owned(),
            greatest: greatest.filter(|v| !is_long(v)),
            null_count,
        });
    }
    zones
}
