//! Keys sort as the values do, and equal values are equal keys, in composite keys too.

use esker_format::codec::Reader;
use esker_format::key::encode_key;
use esker_format::row::decode_value;
use esker_format::{DataType, ValueRef};
use std::cmp::Ordering;

/// The most fields of a composite key tried.
const FIELDS_MAX: usize = 3;

/// The target: field types, then two rows of key values.
pub fn run(data: &[u8]) {
    let mut input = Reader::new(data);
    let mut types = Vec::new();
    while types.len() < FIELDS_MAX {
        let Ok(data_type) = DataType::decode(&mut input) else { break };
        types.push(data_type);
    }
    let (Some(first), Some(second)) = (row(&mut input, &types), row(&mut input, &types)) else {
        return;
    };
    let by_value = first.iter().zip(&second).map(|(a, b)| a.compare(*b));
    let by_value = by_value.fold(Ordering::Equal, Ordering::then);
    let by_key = key(&types, &first).cmp(&key(&types, &second));
    assert_eq!(by_key, by_value, "{types:?}: {first:?} and {second:?}");
}

fn row<'a>(input: &mut Reader<'a>, types: &[DataType]) -> Option<Vec<ValueRef<'a>>> {
    types.iter().map(|data_type| decode_value(input, *data_type).ok()).collect()
}

fn key(types: &[DataType], values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (data_type, value) in types.iter().zip(values) {
        encode_key(&mut out, *data_type, *value);
    }
    out
}
