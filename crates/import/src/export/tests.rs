use std::io::Cursor;

use esker_format::{Decimal, Schema, Value};
use esker_vfs::Environment;
use proptest::prelude::*;

use super::*;
use crate::{Error, ImportOptions, ImportReader, schema_text};

const SCHEMA: &str = "a bool, b i8, c i16, d i32, e i64, f u8, g u16, h u32, i u64, j f32, k f64, \
                      l text, m bytes, n date, o timestamp, p time, q uuid, r ipv4, s ipv6, \
                      t decimal(12,2), u decimal(38,10)";

fn written(schema: &Schema, rows: &[Vec<Value>], format: Format, delimiter: u8) -> Vec<u8> {
    let mut batch = Batch::empty(schema);
    rows.iter().for_each(|row| batch.push_row(schema, row).unwrap());
    let names = schema.fields().iter().map(|field| field.name.as_str());
    let writer = RowWriter::new(format, delimiter, names);
    let mut out = writer.start();
    writer.write(&mut out, &batch);
    out.extend_from_slice(writer.end());
    out
}

fn read(schema: &Schema, text: Vec<u8>, format: Format, delimiter: u8) -> Vec<Vec<Value>> {
    let options =
        ImportOptions::default().format(format).delimiter(delimiter).schema(schema.clone());
    let environment = Environment::os();
    let text = Cursor::new(text);
    let reader = ImportReader::from_reader(&environment, "f", text, None, options).unwrap();
    let mut rows = Vec::new();
    let report = reader.read(|batch, _| {
        let row = |i| batch.columns.iter().map(|c| c.value(i).to_owned()).collect();
        rows.extend((0..batch.len()).map(row));
        Ok::<_, Error>(())
    });
    report.unwrap();
    rows
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text.as_bytes()).unwrap())
}

fn row() -> impl Strategy<Value = Vec<Value>> {
    let numbers = (
        any::<bool>(),
        any::<i8>(),
        any::<i16>(),
        any::<i32>(),
        any::<i64>(),
        any::<u8>(),
        any::<u16>(),
        any::<u32>(),
        any::<u64>(),
        any::<f32>(),
        any::<f64>(),
    );
    let text = prop_oneof![
        "[a-z]{0,6}",
        "[\"\\\\,;\t\r\n '\u{0}\u{7f}\u{e9}\u{1f600}]{0,6}",
        Just("null".to_owned()),
        Just("NULL".to_owned())
    ];
    let others = (
        text,
        prop::collection::vec(any::<u8>(), 0..5),
        -700_000i32..2_900_000,
        any::<i32>(),
        0i64..86_400_000_000,
        any::<[u8; 16]>(),
        any::<u32>(),
        any::<[u8; 16]>(),
        any::<u32>(),
    );
    (numbers, others).prop_map(|(n, o)| {
        let us = i64::from(o.3) * 1_000_000 + i64::from(o.6) % 1_000_000;
        let mut row = vec![
            Value::Bool(n.0),
            Value::Int(n.1.into()),
            Value::Int(n.2.into()),
            Value::Int(n.3.into()),
            Value::Int(n.4),
            Value::Uint(n.5.into()),
            Value::Uint(n.6.into()),
            Value::Uint(n.7.into()),
            Value::Uint(n.8),
            Value::Float32(n.9),
            Value::Float(n.10),
            Value::Text(o.0),
            Value::Bytes(o.1),
            Value::Date(o.2),
            Value::Timestamp(us),
            Value::Time(o.4),
            Value::Uuid(o.5),
            Value::Ipv4(o.6),
            Value::Ipv6(o.7),
            decimal(&format!("{}.{:02}", n.3, n.5 % 100)),
            decimal(&format!("{}{}.{:010}", n.4, n.6, n.5)),
        ];
        for (position, value) in row.iter_mut().enumerate() {
            if o.8 >> position & 1 == 1 && o.8 >> 30 & 1 == 1 {
                *value = Value::Null;
            }
        }
        row
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What is exported loads as what it was: all types, NULLs, quotes, line ends.
    #[test]
    fn what_is_exported_loads_again(rows in prop::collection::vec(row(), 1..8)) {
        let schema = schema_text::parse(SCHEMA).unwrap();
        for (format, delimiter) in [
            (Format::Csv, b','),
            (Format::Csv, b'\t'),
            (Format::Csv, b';'),
            (Format::Ndjson, b','),
            (Format::Json, b','),
        ] {
            let text = written(&schema, &rows, format, delimiter);
            let shown = String::from_utf8_lossy(&text).into_owned();
            let found = read(&schema, text, format, delimiter);
            prop_assert_eq!(found.len(), rows.len(), "{}", shown);
            for (found, row) in found.iter().zip(&rows) {
                for (found, value) in found.iter().zip(row) {
                    let nan = |v: &Value| matches!(v, Value::Float32(f) if f.is_nan())
                        || matches!(v, Value::Float(f) if f.is_nan());
                    prop_assert!(found == value || nan(found) && nan(value),
                        "{:?} is {:?} in {}", value, found, shown);
                }
            }
            if format != Format::Csv {
                for line in shown.lines().filter(|_| format == Format::Ndjson) {
                    prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok());
                }
            }
        }
    }
}

#[test]
fn one_column_of_nulls_keeps_its_rows() {
    let schema = schema_text::parse("a text").unwrap();
    let rows = vec![vec![Value::Null], vec!["".into()], vec![Value::Null], vec!["x".into()]];
    for format in [Format::Csv, Format::Ndjson, Format::Json] {
        assert_eq!(read(&schema, written(&schema, &rows, format, b','), format, b','), rows);
    }
}

#[test]
fn one_text_that_needs_quotes_does_not_hide_among_others() {
    let schema = schema_text::parse("a text, b text").unwrap();
    for odd in ["x,y", "\"", "\n", "\r", "\u{e9}", "\\", "\t", ""] {
        let row = |i: usize| vec![if i == 500 { odd.into() } else { "plain".into() }, "b".into()];
        let rows: Vec<Vec<Value>> = (0..1000).map(row).collect();
        for format in [Format::Csv, Format::Ndjson, Format::Json] {
            let text = written(&schema, &rows, format, b',');
            assert_eq!(read(&schema, text, format, b','), rows, "{odd:?} in {format:?}");
        }
    }
}
