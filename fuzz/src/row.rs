//! A row that decodes has the types of its schema, fits into a batch, and encodes again to the same
//! row.

use crate::schema;
use esker_format::batch::check_value;
use esker_format::codec::{Reader, Writer};
use esker_format::row::{decode_row, encode_row};
use esker_format::{Batch, Value, ValueRef};

/// The target: a schema, then a row.
pub fn run(data: &[u8]) {
    let Some((schema, mut input)) = schema::read(data) else { return };
    let mut values = Vec::new();
    if decode_row(&mut input, &schema, &mut values).is_err() {
        return;
    }
    assert_eq!(values.len(), schema.fields().len());
    for (field, value) in schema.fields().iter().zip(&values) {
        assert!(check_value(field, *value).is_ok(), "{field:?} holds {value:?}");
    }
    let mut out = Writer::new();
    encode_row(&mut out, &schema, |at| values[at]);
    let mut again = Vec::new();
    let mut input = Reader::new(out.as_bytes());
    assert!(decode_row(&mut input, &schema, &mut again).is_ok());
    assert!(input.finish().is_ok());
    assert_eq!(again, values);

    let mut batch = Batch::empty(&schema);
    let owned: Vec<Value> = values.iter().copied().map(ValueRef::to_owned).collect();
    assert!(batch.push_row(&schema, &owned).is_ok());
    for (column, value) in batch.columns.iter().zip(&values) {
        assert_eq!(column.value(0), *value, "a column changes its value");
    }
}
