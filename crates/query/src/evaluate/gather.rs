//! From encoded columns to vectors: the selected rows, decoded.
#![allow(clippy::cast_possible_truncation, reason = "decoding widens; nothing is cut")]

use std::borrow::Cow;

use esker_format::{BytesReader, Codes, ColumnSlice, Data, DataType, Validity, ValueRef};

use crate::evaluate::{Lanes, Selection, Vector};

/// Decodes the selected rows of a column.
pub(crate) fn gather<'a>(column: &ColumnSlice<'a>, selection: Selection<'_>) -> Vector<'a> {
    let nulls = match (column.data, column.validity) {
        (Data::Constant(ValueRef::Null), _) => {
            return Vector::nulls(column.data_type, selection.len());
        }
        (_, Validity::AllValid) => None,
        _ => nulls(column, selection),
    };
    let mut lanes = lanes(column, selection);
    if let Some(nulls) = &nulls {
        clear(&mut lanes, nulls);
    }
    Vector::new(column.data_type, lanes, nulls)
}

fn nulls(column: &ColumnSlice<'_>, selection: Selection<'_>) -> Option<Vec<bool>> {
    let nulls: Vec<bool> =
        (0..selection.len()).map(|i| column.is_null(selection.row(i) as usize)).collect();
    nulls.contains(&true).then_some(nulls)
}

/// Puts zeros where rows are NULL, so that computing with them cannot fail.
fn clear(lanes: &mut Lanes<'_>, nulls: &[bool]) {
    fn zero<T: Copy + Default>(values: &mut Cow<'_, [T]>, nulls: &[bool]) {
        let values = values.to_mut().iter_mut().zip(nulls);
        values.filter(|(_, null)| **null).for_each(|(v, _)| *v = T::default());
    }
    match lanes {
        Lanes::Ints(v) => zero(v, nulls),
        Lanes::Wides(v) => zero(v, nulls),
        Lanes::Uints(v) => zero(v, nulls),
        Lanes::Floats(v) => zero(v, nulls),
        Lanes::Bools(_) | Lanes::Bytes(_) => {}
    }
}

/// The selected values, each converted.
fn pick<T: Copy, U>(values: &[T], selection: Selection<'_>, make: impl Fn(T) -> U) -> Vec<U>
where
    U: Default,
{
    match selection {
        Selection::All(len) => values.iter().take(len).map(|v| make(*v)).collect(),
        Selection::Rows(rows) => {
            let value = |row: &u32| values.get(*row as usize).map_or_else(U::default, |v| make(*v));
            rows.iter().map(value).collect()
        }
    }
}

/// The selected values as they are: borrowed when that is all of them.
fn same<'a, T: Copy + Default>(values: &'a [T], selection: Selection<'_>) -> Cow<'a, [T]> {
    match selection {
        Selection::All(len) if len == values.len() => Cow::Borrowed(values),
        _ => Cow::Owned(pick(values, selection, |v| v)),
    }
}

fn codes<U: Default>(codes: Codes<'_>, s: Selection<'_>, make: impl Fn(u32) -> U) -> Vec<U> {
    match codes {
        Codes::U8(v) => pick(v, s, |c| make(c.into())),
        Codes::U16(v) => pick(v, s, |c| make(c.into())),
        Codes::U32(v) => pick(v, s, make),
    }
}

fn lanes<'a>(column: &ColumnSlice<'a>, s: Selection<'_>) -> Lanes<'a> {
    let ints = |v: Vec<i64>| Lanes::Ints(Cow::Owned(v));
    let uints = |v: Vec<u64>| Lanes::Uints(Cow::Owned(v));
    // A field that was widened is read from what is narrower, or by an older reader from what is
    // wider: the lanes are those of the reader's type.
    let is_u64 = column.data_type == DataType::U64;
    match column.data {
        Data::U8(v) if is_u64 => uints(pick(v, s, u64::from)),
        Data::U16(v) if is_u64 => uints(pick(v, s, u64::from)),
        Data::U32(v) if is_u64 => uints(pick(v, s, u64::from)),
        Data::U64(v) if !is_u64 => ints(pick(v, s, u64::cast_signed)),
        Data::U8(v) if column.data_type == DataType::Bool => Lanes::Bools(pick(v, s, |v| v != 0)),
        Data::U8(v) => ints(pick(v, s, i64::from)),
        Data::U16(v) => ints(pick(v, s, i64::from)),
        Data::U32(v) => ints(pick(v, s, i64::from)),
        Data::I8(v) => ints(pick(v, s, i64::from)),
        Data::I16(v) => ints(pick(v, s, i64::from)),
        Data::I32(v) => ints(pick(v, s, i64::from)),
        Data::I64(v) => Lanes::Ints(same(v, s)),
        Data::I128(v) => Lanes::Wides(same(v, s)),
        Data::U64(v) => Lanes::Uints(same(v, s)),
        Data::F32(v) => Lanes::Floats(Cow::Owned(pick(v, s, f64::from))),
        Data::F64(v) => Lanes::Floats(same(v, s)),
        Data::Narrowed { base, codes: narrow } if is_u64 => {
            uints(codes(narrow, s, |c| base.wrapping_add(c.into())))
        }
        Data::Narrowed { base, codes: narrow } if column.data_type == DataType::Bool => {
            Lanes::Bools(codes(narrow, s, |c| base.wrapping_add(c.into()) != 0))
        }
        Data::Narrowed { base, codes: narrow } if column.data_type.is_wide() => {
            let wide = |c: u32| base.wrapping_add(c.into()).cast_signed().into();
            Lanes::Wides(Cow::Owned(codes(narrow, s, wide)))
        }
        Data::Narrowed { base, codes: narrow } => {
            ints(codes(narrow, s, |c| base.wrapping_add(c.into()).cast_signed()))
        }
        Data::Constant(value) => constant(column.data_type, value, s.len()),
        Data::Dictionary { .. }
        | Data::Variable { .. }
        | Data::FixedWidth { .. }
        | Data::Interleaved { .. }
        | Data::Lined { .. }
        | Data::Scattered { .. } => {
            let mut reader = BytesReader::new(column);
            let bytes = |i| Cow::Borrowed(reader.bytes(s.row(i) as usize));
            Lanes::Bytes((0..s.len()).map(bytes).collect())
        }
    }
}

fn constant<'a>(data_type: DataType, value: ValueRef<'a>, len: usize) -> Lanes<'a> {
    match value {
        ValueRef::Null => Vector::nulls(data_type, len).lanes,
        other => Lanes::repeat(other, data_type, len),
    }
}
