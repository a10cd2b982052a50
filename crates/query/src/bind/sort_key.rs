//! Keys of an order as bytes that sort as the values do.

use esker_format::key::encode_key;
use esker_format::{DataType, ValueRef};

use crate::bound::OrderKey;

/// Appends the key of a value.
pub(crate) fn encode_value(
    out: &mut Vec<u8>,
    order: &OrderKey,
    data_type: DataType,
    value: ValueRef<'_>,
) {
    if value.is_null() {
        out.push(if order.nulls_first { 0 } else { 2 });
        return;
    }
    out.push(1);
    let start = out.len();
    encode_key(out, data_type, value);
    if order.descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}
