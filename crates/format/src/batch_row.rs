//! The stored form of a row of a batch, as [`crate::row`] has it: values lie in their columns as
//! the log has them, so that none is looked at.

use crate::codec::Writer;
use crate::{Batch, Column, DataType, Values};

impl Batch {
    /// Appends a row, none of whose values lie in value files: the bytes that
    /// [`encode_row`](crate::row::encode_row) would append.
    pub fn encode_row(&self, out: &mut Writer, row: usize) {
        for eight in self.columns.chunks(8) {
            let bits = eight.iter().rev();
            out.u8(bits.fold(0, |bits, column| bits << 1 | u8::from(column.is_null(row))));
        }
        for column in self.columns.iter().filter(|column| !column.is_null(row)) {
            encode_value(out, column, row);
        }
    }
}

fn encode_value(out: &mut Writer, column: &Column, row: usize) {
    match &column.values {
        Values::U8(v) => fixed(out, v, row, u8::to_le_bytes),
        Values::U16(v) => fixed(out, v, row, u16::to_le_bytes),
        Values::U32(v) => fixed(out, v, row, u32::to_le_bytes),
        Values::U64(v) => fixed(out, v, row, u64::to_le_bytes),
        Values::I8(v) => fixed(out, v, row, i8::to_le_bytes),
        Values::I16(v) => fixed(out, v, row, i16::to_le_bytes),
        Values::I32(v) => fixed(out, v, row, i32::to_le_bytes),
        Values::I64(v) => fixed(out, v, row, i64::to_le_bytes),
        Values::I128(v) => fixed(out, v, row, i128::to_le_bytes),
        Values::F32(v) => fixed(out, v, row, f32::to_le_bytes),
        Values::F64(v) => fixed(out, v, row, f64::to_le_bytes),
        Values::Variable(v) => match column.data_type {
            DataType::Uuid | DataType::Ipv6 | DataType::Interval => out.raw(v.get(row)),
            _ => out.bytes(v.get(row)),
        },
    }
}

/// A value of a fixed length; a row past the end has none, which no reader takes for a row.
#[inline]
fn fixed<const N: usize, T: Copy>(
    out: &mut Writer,
    values: &[T],
    row: usize,
    bytes: impl Fn(T) -> [u8; N],
) {
    debug_assert!(row < values.len(), "row {row} of {}", values.len());
    values.get(row).into_iter().for_each(|value| out.raw(&bytes(*value)));
}
