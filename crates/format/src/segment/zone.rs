//! Zone maps: bounds on the values of a column within each run of [`ZONE_ROWS`] rows.

use std::borrow::Cow;
use std::ops::Range;

use super::encode::Ranks;
use crate::codec::{Reader, Writer};
use crate::row::{decode_value, encode_value};
use crate::{Column, DataType, ListBuilder, Result, Value, ValueRef, VariableValues, json};

/// Rows per zone.
pub const ZONE_ROWS: usize = 8_192;

/// The longest text kept as a bound, in bytes.
const BOUND_BYTES_MAX: usize = 32;

/// Bounds on the values of one column in one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneEntry {
    /// No value is less; NULL when every row of the zone is NULL.
    pub least: Value,
    /// No value is greater; `None` when the greatest text is too long to keep.
    pub greatest: Option<Value>,
    /// How many rows are NULL.
    pub null_count: u32,
}

impl ZoneEntry {
    /// The zones of a whole column.
    #[must_use]
    pub fn of_column(column: &Column) -> Vec<Self> {
        Self::of_zones(column.len(), column.nulls.as_deref(), |rows| {
            // default: texts, and floats with a NaN among them, are compared as values.
            fixed_bounds(column, rows.clone()).unwrap_or_else(|| value_bounds(column, rows))
        })
    }

    /// The zones of a column some of whose values, by rising row, lie in value files: their bounds
    /// are not known.
    #[must_use]
    pub fn of_long_column(column: &Column, long: impl Iterator<Item = usize>) -> Vec<Self> {
        let mut zones = Self::of_column(column);
        for row in long {
            if let Some(zone) = zones.get_mut(row / ZONE_ROWS) {
                zone.least = least_of_type(column.data_type);
                zone.greatest = None;
            }
        }
        zones
    }

    /// The same of a column of text or bytes whose values are ranks in a dictionary.
    pub(super) fn of_ranks<'a>(
        data_type: DataType,
        (len, nulls): (usize, Option<&[u8]>),
        ranks: &Ranks,
        entry: impl Fn(usize) -> &'a [u8],
    ) -> Vec<Self> {
        let entry = |rank: u32| ValueRef::from_bytes(data_type, entry(rank as usize));
        Self::of_zones(len, nulls, |rows| match ranks.bounds(rows, nulls) {
            Some((least, greatest)) => (entry(least), entry(greatest)),
            None => (ValueRef::Null, ValueRef::Null),
        })
    }

    fn of_zones<'a>(
        len: usize,
        nulls: Option<&[u8]>,
        bounds: impl Fn(Range<usize>) -> (ValueRef<'a>, ValueRef<'a>),
    ) -> Vec<Self> {
        let zone = |start| {
            let rows = start..len.min(start + ZONE_ROWS);
            let nulls = nulls.and_then(|nulls| nulls.get(rows.clone()));
            // default: without marks no row is NULL.
            let null_count = nulls.map_or(0, |nulls| nulls.iter().map(|b| u32::from(*b)).sum());
            if !rows.is_empty() && u32::try_from(rows.len()) == Ok(null_count) {
                return Self { least: Value::Null, greatest: Some(Value::Null), null_count };
            }
            let (least, greatest) = bounds(rows);
            Self::between(least, greatest, null_count)
        };
        (0..len).step_by(ZONE_ROWS).map(zone).collect()
    }

    fn between(least: ValueRef<'_>, greatest: ValueRef<'_>, null_count: u32) -> Self {
        // A prefix is never greater.
        let least = least.shortened(BOUND_BYTES_MAX).to_owned();
        let long = greatest.as_bytes().is_some_and(|b| b.len() > BOUND_BYTES_MAX);
        let greatest = (!long).then(|| greatest.to_owned());
        Self { least, greatest, null_count }
    }

    /// True when no bound is beyond the other.
    pub(super) fn is_in_order(&self) -> bool {
        let (least, greatest) = (self.least.as_ref(), self.greatest.as_ref());
        greatest.is_none_or(|greatest| least.compare(greatest.as_ref()).is_le())
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Writer, data_type: DataType) {
        let all_null = self.least.is_null();
        out.u8(u8::from(all_null) | u8::from(self.greatest.is_some()) << 1);
        out.u32(self.null_count);
        if !all_null {
            encode_value(out, data_type, self.least.as_ref());
            if let Some(greatest) = &self.greatest {
                encode_value(out, data_type, greatest.as_ref());
            }
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a zone of this type.
    pub fn decode(input: &mut Reader<'_>, data_type: DataType) -> Result<Self> {
        let flags = input.u8()?;
        let null_count = input.u32()?;
        if flags & 1 == 1 {
            return Ok(Self { least: Value::Null, greatest: Some(Value::Null), null_count });
        }
        let least = decode_value(input, data_type)?.to_owned();
        let greatest =
            if flags & 2 == 2 { Some(decode_value(input, data_type)?.to_owned()) } else { None };
        Ok(Self { least, greatest, null_count })
    }
}

/// The least value of a type whose values may be long.
fn least_of_type(data_type: DataType) -> Value {
    match data_type {
        DataType::Text => Value::Text(String::new()),
        DataType::Json => Value::Json(json::LEAST.to_vec()),
        DataType::List(element) => ListBuilder::new(element).finish(),
        _ => Value::Bytes(Vec::new()),
    }
}

fn value_bounds(column: &Column, rows: Range<usize>) -> (ValueRef<'_>, ValueRef<'_>) {
    if let crate::Values::Variable(values) = &column.values {
        return variable_bounds(column, values, rows);
    }
    let mut values = rows.map(|i| column.value(i)).filter(|v| !v.is_null());
    let Some(first) = values.next() else { return (ValueRef::Null, ValueRef::Null) };
    values.fold((first, first), |(least, greatest), v| (least.min(v), greatest.max(v)))
}

/// Bounds of a run of texts or bytes: bytes are compared, and only the two bounds become values.
fn variable_bounds<'a>(
    column: &'a Column,
    values: &'a VariableValues,
    rows: Range<usize>,
) -> (ValueRef<'a>, ValueRef<'a>) {
    let mut rows = rows.filter(|i| !column.is_null(*i));
    let Some(first) = rows.next() else { return (ValueRef::Null, ValueRef::Null) };
    let (mut least, mut greatest) = (first, first);
    let (mut least_bytes, mut greatest_bytes) = (values.get(first), values.get(first));
    for row in rows {
        let bytes = values.get(row);
        if bytes < least_bytes {
            (least, least_bytes) = (row, bytes);
        } else if bytes > greatest_bytes {
            (greatest, greatest_bytes) = (row, bytes);
        }
    }
    (column.value(least), column.value(greatest))
}

/// Bounds of a run of numbers, at memory speed; `None` when some is none, or all are NULL.
fn fixed_bounds(column: &Column, rows: Range<usize>) -> Option<(ValueRef<'_>, ValueRef<'_>)> {
    use crate::Values as V;
    let nulls = column.nulls.as_ref().and_then(|nulls| nulls.get(rows.clone()));
    if let V::I128(v) = &column.values {
        let (least, greatest) = least_and_greatest(&kept(v.get(rows)?, nulls))?;
        let value = |mantissa| ValueRef::from_mantissa(column.data_type, mantissa);
        return Some((value(least), value(greatest)));
    }
    let bounds = match &column.values {
        V::I8(v) => signed(&kept(v.get(rows)?, nulls)),
        V::I16(v) => signed(&kept(v.get(rows)?, nulls)),
        V::I32(v) => signed(&kept(v.get(rows)?, nulls)),
        V::I64(v) => signed(&kept(v.get(rows)?, nulls)),
        V::U8(v) => unsigned(&kept(v.get(rows)?, nulls)),
        V::U16(v) => unsigned(&kept(v.get(rows)?, nulls)),
        V::U32(v) => unsigned(&kept(v.get(rows)?, nulls)),
        V::U64(v) => unsigned(&kept(v.get(rows)?, nulls)),
        V::F32(v) => {
            let (least, greatest) = float_bounds(&kept(v.get(rows)?, nulls))?;
            return Some((ValueRef::Float32(least), ValueRef::Float32(greatest)));
        }
        V::F64(v) => {
            let (least, greatest) = float_bounds(&kept(v.get(rows)?, nulls))?;
            return Some((ValueRef::Float(least), ValueRef::Float(greatest)));
        }
        V::I128(_) | V::Variable(_) => None,
    }?;
    let value = |bound| ValueRef::from_word(column.data_type, bound);
    Some((value(bounds.0), value(bounds.1)))
}

/// The values that are not NULL.
pub(super) fn kept<'a, T: Copy>(values: &'a [T], nulls: Option<&[u8]>) -> Cow<'a, [T]> {
    match nulls {
        Some(nulls) if nulls.iter().any(|null| *null != 0) => {
            let pairs = values.iter().zip(nulls).filter(|(_, null)| **null == 0);
            pairs.map(|(value, _)| *value).collect()
        }
        _ => Cow::Borrowed(values),
    }
}

fn signed<T: Copy + Ord + Into<i64>>(values: &[T]) -> Option<(i64, i64)> {
    let (least, greatest) = least_and_greatest(values)?;
    Some((least.into(), greatest.into()))
}

fn unsigned<T: Copy + Ord + Into<u64>>(values: &[T]) -> Option<(i64, i64)> {
    let (least, greatest) = least_and_greatest(values)?;
    Some((least.into().cast_signed(), greatest.into().cast_signed()))
}

/// `None` when some value is no number: it is greater than all that are, and equal to itself.
fn float_bounds<T: Copy + PartialOrd>(values: &[T]) -> Option<(T, T)> {
    let is_number = |all: bool, v: &T| all & v.partial_cmp(v).is_some();
    if values.iter().fold(true, is_number) { least_and_greatest(values) } else { None }
}

/// The least and the greatest of some values.
pub(super) fn least_and_greatest<T: Copy + PartialOrd>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(least, greatest), v| {
        (if *v < least { *v } else { least }, if *v > greatest { *v } else { greatest })
    }))
}
