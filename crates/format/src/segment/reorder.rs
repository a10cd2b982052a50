//! The rows of a column in another order, ready to be written.

use super::encode::{Buffer, Encoded, EncodedColumn, Ranks, encode_column, validity_bits};
use super::zone::ZoneEntry;
use crate::column::Dictionary;
use crate::{
    Codes, Column, ColumnSlice, Data, DataType, Error, FieldId, Result, Validity, Values,
    VariableValues,
};

/// Rows of a column in another order. A dictionary stays as it is; other values are encoded anew.
#[derive(Debug)]
pub struct Reordered<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Dictionary {
        data_type: DataType,
        dictionary: Dictionary<'a>,
        codes: Ranks,
        nulls: Option<Vec<u8>>,
        rows: usize,
    },
    Column(Column),
}

impl<'a> Reordered<'a> {
    /// The rows of `slice` that `order` names, in that order: all of them, once each. Texts and
    /// byte strings longer than `bytes_max` are shortened.
    ///
    /// # Errors
    /// `InvalidInput` when `order` names a row past the last, or the texts are longer than 4 GiB in
    /// all.
    pub fn new(slice: &ColumnSlice<'a>, order: &[u32], bytes_max: usize) -> Result<Self> {
        if let Some(last) = order.iter().copied().max().filter(|row| *row as usize >= slice.len) {
            return Err(Error::invalid(format!("row {last} of {} in another order", slice.len)));
        }
        let nulls = match slice.validity {
            Validity::AllValid => None,
            _ => {
                let nulls = order.iter().map(|row| u8::from(slice.is_null(*row as usize)));
                Some(nulls.collect::<Vec<_>>()).filter(|nulls| nulls.contains(&1))
            }
        };
        if let Data::Dictionary { codes, dictionary } = slice.data
            && (0..dictionary.len()).all(|code| dictionary.get(code).len() <= bytes_max)
            && dictionary.len() > 1
        {
            let codes = match codes {
                Codes::U8(codes) => Ranks::U8(take(codes, order)),
                Codes::U16(codes) => Ranks::U16(take(codes, order)),
                Codes::U32(codes) => Ranks::U32(take(codes, order)),
            };
            let (data_type, rows) = (slice.data_type, order.len());
            return Ok(Self(Kind::Dictionary { data_type, dictionary, codes, nulls, rows }));
        }
        let mut column = Column::empty(slice.data_type);
        if take_values(&mut column.values, slice, order, bytes_max) {
            column.nulls = nulls;
        } else {
            for row in order {
                column.push(slice.value(*row as usize).shortened(bytes_max))?;
            }
        }
        Ok(Self(Kind::Column(column)))
    }

    /// The column in its encoding.
    #[must_use]
    pub fn encode(&self, field: FieldId) -> EncodedColumn<'_> {
        match &self.0 {
            Kind::Column(column) => encode_column(field, column),
            Kind::Dictionary { data_type, dictionary, codes, nulls, rows } => {
                let entry = |code| dictionary.get(code);
                let rows = (*rows, nulls.as_deref());
                let zones = ZoneEntry::of_ranks(*data_type, rows, codes, entry);
                let (width, codes) = codes.as_buffer();
                let offsets = Buffer::Borrowed(bytemuck::cast_slice(dictionary.offsets));
                let heap = Buffer::Borrowed(dictionary.heap);
                let values = Encoded::Dictionary { width, codes, offsets, heap };
                let validity = nulls.as_deref().map(|nulls| Buffer::U64(validity_bits(nulls)));
                EncodedColumn {
                    field,
                    data_type: *data_type,
                    values,
                    validity,
                    zones,
                    sketch: None,
                }
            }
        }
    }
}

fn take<T: Copy + Default>(values: &[T], order: &[u32]) -> Vec<T> {
    // default: `new` has seen that all rows are there.
    order.iter().map(|row| values.get(*row as usize).copied().unwrap_or_default()).collect()
}

/// Takes values that lie as their type stores them, or in the narrower form of that; false (and
/// nothing is taken) for others.
#[allow(clippy::cast_possible_truncation, reason = "narrowed values are of the type")]
#[allow(clippy::cast_sign_loss, reason = "two's complement is meant")]
fn take_values(to: &mut Values, slice: &ColumnSlice<'_>, order: &[u32], bytes_max: usize) -> bool {
    match (to, slice.data) {
        (Values::U8(to), Data::U8(from)) => *to = take(from, order),
        (Values::U16(to), Data::U16(from)) => *to = take(from, order),
        (Values::U32(to), Data::U32(from)) => *to = take(from, order),
        (Values::U64(to), Data::U64(from)) => *to = take(from, order),
        (Values::I8(to), Data::I8(from)) => *to = take(from, order),
        (Values::I16(to), Data::I16(from)) => *to = take(from, order),
        (Values::I32(to), Data::I32(from)) => *to = take(from, order),
        (Values::I64(to), Data::I64(from)) => *to = take(from, order),
        (Values::I128(to), Data::I128(from)) => *to = take(from, order),
        (Values::F32(to), Data::F32(from)) => *to = take(from, order),
        (Values::F64(to), Data::F64(from)) => *to = take(from, order),
        (Values::U16(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word as u16);
        }
        (Values::U32(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word as u32);
        }
        (Values::U64(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word);
        }
        (Values::I16(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word as i16);
        }
        (Values::I32(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word as i32);
        }
        (Values::I64(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, u64::cast_signed);
        }
        (Values::I128(to), Data::Narrowed { base, codes }) => {
            *to = take_narrowed(base, codes, order, |word| word.cast_signed().into());
        }
        (Values::Variable(to), data) if !matches!(data, Data::Constant(_)) => {
            return take_bytes(to, slice, order, bytes_max);
        }
        _ => return false,
    }
    true
}

fn take_narrowed<T>(base: u64, codes: Codes<'_>, order: &[u32], of: impl Fn(u64) -> T) -> Vec<T> {
    fn all<C: Copy + Into<u64>, T>(
        base: u64,
        codes: &[C],
        order: &[u32],
        of: impl Fn(u64) -> T,
    ) -> Vec<T> {
        // default: as in `take`.
        let code = |row: &u32| codes.get(*row as usize).map_or(0, |code| (*code).into());
        order.iter().map(|row| of(base.wrapping_add(code(row)))).collect()
    }
    match codes {
        Codes::U8(codes) => all(base, codes, order, of),
        Codes::U16(codes) => all(base, codes, order, of),
        Codes::U32(codes) => all(base, codes, order, of),
    }
}

/// False when a value is to be shortened, or their heap would pass 4 GiB.
fn take_bytes(
    to: &mut VariableValues,
    slice: &ColumnSlice<'_>,
    order: &[u32],
    bytes_max: usize,
) -> bool {
    let mut taken = VariableValues::default();
    taken.offsets.reserve(order.len());
    let shorter = |row: &u32| {
        let row = *row as usize;
        let bytes = slice.bytes(row);
        // What stands in place of a NULL is not looked at.
        let bytes = if bytes.len() > bytes_max && slice.is_null(row) { &[] } else { bytes };
        bytes.len() <= bytes_max && taken.push(bytes)
    };
    if !order.iter().all(shorter) {
        return false;
    }
    *to = taken;
    true
}
