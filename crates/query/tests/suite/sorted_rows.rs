//! More sorted rows than one thread fetches: the rows that sorting them in a loop gives, whatever
//! they are stored as.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use crate::memory_source::{Encoding, Layout, MemorySource, NullForm};
use esker_format::{Batch, DataType, Decimal, Schema, Value};
use esker_query::model::{Expr, OrderBy};
use esker_query::{Options, Query, execute};
use esker_vfs::Environment;

const PART_ROWS: i64 = 9_000;

fn row(i: i64) -> Vec<Value> {
    let or_null = |is_null: bool, value: Value| if is_null { Value::Null } else { value };
    vec![
        Value::Int(i),
        or_null(i % 7 == 0, Value::Int((i * 7_919) % 101 - 50)),
        or_null(i % 11 == 0, format!("text {}", i % 300).into()),
        or_null(i % 13 == 0, Value::Float(f64::from(i32::try_from(i).unwrap()) / 4.0)),
        Value::Bool(i % 3 == 0),
        Value::Decimal(Decimal::new(i128::from(i) << 70, 2).unwrap()),
    ]
}

fn schema() -> Schema {
    Schema::builder()
        .field("i", DataType::I64)
        .nullable("key", DataType::I16)
        .nullable("text", DataType::Text)
        .nullable("float", DataType::F64)
        .field("flag", DataType::Bool)
        .field("wide", DataType::Decimal { precision: 38, scale: 2 })
        .build()
        .unwrap()
}

#[test]
fn sorted_rows_are_those_of_a_loop() {
    let schema = schema();
    let mut source = MemorySource::new(schema.clone());
    let mut expected = Vec::new();
    let layouts = [
        (Encoding::Plain, NullForm::Bytes, 1_000),
        (Encoding::Compact, NullForm::Bits(3), 8_192),
        (Encoding::Scattered, NullForm::Bits(0), 3_000),
    ];
    for ((encoding, nulls, chunk_rows), part) in layouts.into_iter().zip(0i64..) {
        let mut batch = Batch::empty(&schema);
        let mut visible = Vec::new();
        for i in part * PART_ROWS..(part + 1) * PART_ROWS {
            batch.push_row(&schema, &row(i)).unwrap();
            visible.push(i % 5 != 0);
            if i % 5 != 0 {
                expected.push(row(i));
            }
        }
        let visible = Some(visible);
        let layout = Layout { encoding, nulls, chunk_rows, visible, ..Layout::default() };
        source = source.with_part(&batch, &layout);
    }
    // Sorting is stable: equal keys keep the order of the rows.
    expected.sort_by(|a, b| match (&a[1], &b[1]) {
        (Value::Null, Value::Null) => std::cmp::Ordering::Equal,
        (Value::Null, _) => std::cmp::Ordering::Greater,
        (_, Value::Null) => std::cmp::Ordering::Less,
        (a, b) => b.as_ref().compare(a.as_ref()),
    });
    let key = OrderBy { expr: Expr::field("key"), descending: true, nulls_first: Some(false) };
    let query = Query { order_by: vec![key], ..Query::default() };
    let options = Options::new(&Environment::os());
    let found = execute(&query, &source, &options).unwrap().to_rows();
    assert_eq!(found, expected);
    let some = Query { limit: Some(2_000.into()), offset: 5_000.into(), ..query };
    let found = execute(&some, &source, &options).unwrap().to_rows();
    assert_eq!(found, expected[5_000..7_000]);
}
