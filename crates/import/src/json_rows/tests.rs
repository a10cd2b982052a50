//! What is read at once is what is read row by row, or it is refused at once and told row by row.

use esker_format::schema::DefaultValue;
use esker_format::schema::StreamOption;
use esker_format::{Column, DataType, Schema, Value};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::parse_new_json_row;

const TYPES: &str = "a bool, b i8, c i16, d i32, e i64, f u8, g u16, h u32, i u64, j f32, k f64, \
                     l text, m bytes, n date, o timestamp, p time, q uuid, r ipv4, s ipv6, \
                     t decimal(12,2), u decimal(38,10), v json, w i64[], x interval";

fn schemas() -> [Schema; 2] {
    let events = Schema::builder()
        .field("t", DataType::Timestamp)
        .default_value(DefaultValue::Now)
        .field("what", DataType::Text)
        .nullable("n", DataType::I64)
        .nullable("more", DataType::Json)
        .stream("t", [StreamOption::Rest(Some("more".into()))]);
    [crate::schema_text::parse(TYPES).unwrap(), events.build().unwrap()]
}

/// The values of a row that is read by itself; `None` for a field of which it says nothing.
fn by_itself(schema: &Schema, text: &str) -> Option<Vec<Option<Value>>> {
    let values = parse_new_json_row(text, schema).ok()?;
    let mut row = vec![None; schema.fields().len()];
    for (name, value) in values {
        let at = schema.resolve(&name).unwrap();
        // What does not fit is found where it is used, unless it is read by column.
        esker_format::batch::check_value(&schema.fields()[at], value.as_ref()).ok()?;
        row[at] = Some(value);
    }
    for (field, value) in schema.fields().iter().zip(&row) {
        if value.is_none() && field.default.is_none() && !field.nullable {
            return None;
        }
    }
    Some(row)
}

fn of_batch(schema: &Schema, batch: &Batch, row: usize) -> Vec<Option<Value>> {
    let value = |(field, column): (&esker_format::Field, &Column)| {
        let is_nothing = column.is_missing(row) || (column.is_null(row) && field.default.is_none());
        (!is_nothing).then(|| column.value(row).to_owned())
    };
    schema.fields().iter().zip(&batch.columns).map(value).collect()
}

/// NULL and nothing are one where there is no default.
fn plain(schema: &Schema, row: Vec<Option<Value>>) -> Vec<Option<Value>> {
    let value = |(field, value): (&esker_format::Field, Option<Value>)| {
        value.filter(|value| field.default.is_some() || !value.is_null())
    };
    schema.fields().iter().zip(row).map(value).collect()
}

fn value() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        "null",
        "true",
        "false",
        "0",
        "-1",
        "7",
        "300",
        "70000",
        "5000000000",
        "1.5",
        "-0.25",
        "1e3",
        "\"\"",
        "\"a\"",
        "\"7\"",
        "\"2026-01-02\"",
        "\"2026-01-02 03:04:05\"",
        "\"03:04\"",
        "\"10.0.0.1\"",
        "\"::1\"",
        "\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"",
        "\"\\u00e9\\n\"",
        "[1, 2]",
        "[]",
        "{\"a\": [1]}",
        "\"1 day\"",
        "\"ff\"",
        "18446744073709551615",
        "nul",
        "",
        "\"\\x\"",
        "{\"a\":1,\"a\":2}",
        "1.23",
        "123456789012.5",
        "\"é\"",
    ]);
    fixed.prop_map(str::to_owned)
}

fn row(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let member = (select(names), value());
    prop::collection::vec(member, 0..8).prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        format!("{{{}}}", members.join(", "))
    })
}

const TYPED: &[&str] = &[
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t", "u", "v", "w", "x", "y",
];
const OF_EVENTS: &[&str] = &["t", "what", "n", "more", "other", "wh\\u0061t"];

fn expect_equal(schema: &Schema, rows: &[String], is_list: bool) {
    let reader = JsonRows::new(schema);
    let body = if is_list { format!("[{}]", rows.join(",")) } else { rows[0].clone() };
    let rows = if is_list { rows } else { &rows[..1] };
    let (batch, back) = reader.read(body.clone().into_bytes(), 10);
    assert_eq!(back, body.as_bytes());
    let alone: Option<Vec<_>> = rows.iter().map(|text| by_itself(schema, text)).collect();
    match (batch, alone) {
        (Some(batch), Some(alone)) => {
            assert_eq!(batch.len(), rows.len());
            for (at, row) in alone.into_iter().enumerate() {
                assert_eq!(of_batch(schema, &batch, at), plain(schema, row), "{body}");
            }
        }
        (None, None) => {}
        (Some(_), None) => panic!("read at once, and not row by row: {body}"),
        (None, Some(_)) => panic!("read row by row, and not at once: {body}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rows_at_once_are_rows_one_by_one(
        typed in prop::collection::vec(row(TYPED), 1..4),
        events in prop::collection::vec(row(OF_EVENTS), 1..4),
        is_list: bool,
    ) {
        let [types, of_events] = schemas();
        expect_equal(&types, &typed, is_list);
        expect_equal(&of_events, &events, is_list);
    }
}

#[test]
fn what_is_no_row_or_list_is_left_to_the_other_reader() {
    let [types, _] = schemas();
    let reader = JsonRows::new(&types);
    let none = |text: &str| reader.read(text.as_bytes().to_vec(), 10).0.is_none();
    for text in ["", " ", "7", "{", "[", "[{}", "[{},]", "[{}] 7", "{} {}", "{}\n{}", "[7]", "[[]]"]
    {
        assert!(none(text), "{text:?}");
    }
    assert!(none("{\n\"b\": 7\n}"), "an object of several lines is read by itself");
    let count = |text: &str| reader.read(text.as_bytes().to_vec(), 10).0.map(|batch| batch.len());
    for (text, rows) in [("[]", 0), (" [ { } , {\n} ]\n", 2), (" {} ", 1), ("{\"b\":7}\n", 1)] {
        assert_eq!(count(text), Some(rows), "{text:?}");
    }
    assert!(reader.read(b"{\"l\": \"\xff\"}".to_vec(), 10).0.is_none());
    let two = b"[{}, {}]".to_vec();
    assert_eq!(reader.read(two.clone(), 2).0.map(|batch| batch.len()), Some(2));
    assert!(reader.read(two, 1).0.is_none(), "more than are wanted");
}
