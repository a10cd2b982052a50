//! Keys of rows, in forms that both sides of a join share.

use std::borrow::Cow;

use esker_format::{DataType, ValueRef};

use crate::bound::Bound;
use crate::evaluate::{Lanes, Vector};

/// True when values of these types are equal exactly when their stored forms are.
pub(crate) fn is_exact(left: DataType, right: DataType) -> bool {
    form(left) == form(right)
}

/// For each key, whether it is compared by the nearest floats first.
pub(super) fn floats(left: &[Bound], right: &[Bound]) -> Vec<bool> {
    let both = left.iter().zip(right);
    both.map(|(left, right)| !is_exact(left.data_type(), right.data_type())).collect()
}

/// How values lie in lanes, and the scale of decimals.
fn form(data_type: DataType) -> (u8, u8) {
    let scale = match data_type {
        DataType::Decimal { scale, .. } => scale,
        _ => 0,
    };
    let lanes = match data_type {
        DataType::Bool => 0,
        DataType::U64 => 1,
        DataType::F32 | DataType::F64 => 2,
        wide if wide.is_wide() => 3,
        text if text.is_variable() => 4,
        _ => 5,
    };
    (lanes, scale)
}

/// Numbers as the nearest floats; equal numbers have equal ones.
pub(super) fn as_floats(vector: Vector<'_>) -> Vector<'_> {
    if matches!(vector.lanes, Lanes::Floats(_)) {
        return vector;
    }
    #[allow(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
    let float = |i| match vector.value(i) {
        ValueRef::Int(v) => v as f64,
        ValueRef::Uint(v) => v as f64,
        ValueRef::Decimal(v) => v.to_f64(),
        _ => 0.0,
    };
    let values: Vec<f64> = (0..vector.len()).map(float).collect();
    Vector::new(DataType::F64, Lanes::Floats(Cow::Owned(values)), vector.nulls)
}
