//! Rows as what serde writes and reads.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::every_type::{Everything, everything};
use esker::{DataType, Database, DefaultValue, Labels, Options, Query, Schema, Table, Value};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

fn memory() -> Database {
    Options::new().memory().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_goes_through_json_unchanged(row in everything()) {
        let db = memory();
        let from = db.create_table_of::<Everything>("from").unwrap();
        from.insert(&row).unwrap();
        let objects: Vec<serde_json::Value> = db.query_objects(&Query::table("from")).unwrap();
        let text = serde_json::to_string(&objects[0]).unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let to = db.create_table_of::<Everything>("to").unwrap();
        to.table().insert_object(&read).unwrap();
        prop_assert_eq!(to.get(row.id).unwrap(), Some(row.clone()));
        prop_assert_eq!(to.table().get_object::<serde_json::Value>(row.id).unwrap(), Some(read));
    }

    #[test]
    fn what_serde_knows_comes_back_as_it_was(row in mixed()) {
        let db = memory();
        let table = mixed_table(&db);
        table.insert_object(&row).unwrap();
        prop_assert_eq!(table.get_object::<Mixed>(row.key.as_str()).unwrap(), Some(row));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Size {
    Small,
    VeryLarge,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Circle { radius: f64 },
    Square(u32),
    Point,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Id(u64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mixed {
    key: String,
    id: Id,
    letter: char,
    single: f32,
    double: f64,
    bytes: Vec<u8>,
    uuid: [u8; 16],
    v4: Ipv4Addr,
    v6: Option<Ipv6Addr>,
    size: Size,
    text_size: Option<Size>,
    shape: Shape,
    shapes: BTreeMap<String, Shape>,
}

prop_compose! {
    fn mixed()(
        key in ".*", id in any::<u64>(), letter in any::<char>(), bytes in any::<Vec<u8>>(),
        single in prop_oneof![Just(f32::INFINITY), -1e30f32..1e30],
        double in prop_oneof![Just(f64::MIN_POSITIVE), Just(f64::NEG_INFINITY), -1e300..1e300],
        uuid in any::<[u8; 16]>(), v4 in any::<Ipv4Addr>(), v6 in any::<Option<Ipv6Addr>>(),
        side in any::<u32>(), radius in -1e300..1e300
    ) -> Mixed {
        let shapes = [("a", Shape::Circle { radius }), ("b", Shape::Point)];
        let shapes = shapes.map(|(name, shape)| (name.to_owned(), shape)).into();
        let (size, text_size, shape) = (Size::VeryLarge, Some(Size::Small), Shape::Square(side));
        let id = Id(id);
        Mixed {
            key, id, letter, single, double, bytes, uuid, v4, v6, size, text_size, shape, shapes,
        }
    }
}

fn mixed_table(db: &Database) -> Table {
    let schema = Schema::builder()
        .field("key", DataType::Text)
        .field("id", DataType::U64)
        .field("letter", DataType::Text)
        .field("single", DataType::F32)
        .field("double", DataType::F64)
        .field("bytes", DataType::Bytes)
        .field("uuid", DataType::Uuid)
        .field("v4", DataType::Ipv4)
        .nullable("v6", DataType::Ipv6)
        .field("size", DataType::Enum)
        .labels(Labels::new(["small", "very_large"]).unwrap())
        .nullable("text_size", DataType::Text)
        .field("shape", DataType::Json)
        .field("shapes", DataType::Json);
    db.create_table("mixed", schema.primary_key(["key"]).build().unwrap()).unwrap()
}

/// A table of one field beside its key.
fn one(db: &Database, data_type: DataType) -> Table {
    let schema = Schema::builder().field("id", DataType::I64).nullable("v", data_type);
    db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap()
}

#[test]
fn what_does_not_fit_is_refused_with_its_field() {
    for (data_type, value, expected) in [
        (DataType::U8, json!(300), "field \"v\": expected u8, found unsigned integer 300"),
        (DataType::I64, json!(1.5), "field \"v\": expected i64, found floating-point number 1.5"),
        (DataType::I64, json!(true), "field \"v\": expected i64, found bool true"),
        (
            DataType::Bool,
            json!("true"),
            "field \"v\": expected bool (true or false), found \"true\"",
        ),
        (DataType::Text, json!(1), "field \"v\": expected text, found unsigned integer 1"),
        (DataType::Text, json!({}), "field \"v\": expected text in UTF-8, found an object"),
        (DataType::Text, json!([1]), "field \"v\": expected text in UTF-8, found a list"),
        (
            DataType::Bytes,
            json!([1, 256]),
            "field \"v\": expected a list of bytes (0 to 255), found 256 in it",
        ),
        (
            DataType::Date,
            json!("2013-02-30"),
            "field \"v\": expected date (like 2013-01-31), found \"2013-02-30\"",
        ),
        (
            DataType::Decimal { precision: 30, scale: 20 },
            json!(0.123_456_789_012_345_68),
            "field \"v\": expected decimal(30,20) (at most 10 digits before the point and 20 \
             behind it), found the float 0.12345678901234568, of more than 15 digits: \
             write it as text",
        ),
        (
            DataType::Decimal { precision: 4, scale: 2 },
            json!(1.005),
            "field \"v\": expected decimal(4,2) (at most 2 digits before the point and 2 behind \
             it), found \"1.005\"",
        ),
    ] {
        let db = memory();
        let table = one(&db, data_type);
        let error = table.insert_object(&json!({ "id": 1, "v": value })).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{expected}\n{error}");
        assert_eq!(table.count().unwrap(), 0);
    }
}

#[test]
fn numbers_are_taken_when_they_are_known_exactly() {
    for (data_type, value, stored) in [
        (DataType::Decimal { precision: 10, scale: 2 }, json!(12.5), "12.50"),
        (DataType::Decimal { precision: 10, scale: 2 }, json!(-0.01), "-0.01"),
        (DataType::Decimal { precision: 20, scale: 0 }, json!(1e19), "10000000000000000000"),
        (DataType::Decimal { precision: 38, scale: 0 }, json!(u64::MAX), "18446744073709551615"),
        (DataType::I64, json!("-9223372036854775808"), "-9223372036854775808"),
        (DataType::F64, json!(3), "3.0"),
        (DataType::F64, json!("NaN"), "NaN"),
        (DataType::Bytes, json!("00ff"), "00ff"),
        (DataType::Timestamp, json!("2013-01-31T05:17:00Z"), "2013-01-31 05:17:00"),
        (DataType::Json, json!(null), "null"),
    ] {
        let db = memory();
        let table = one(&db, data_type);
        table.insert_object(&json!({ "id": 1, "v": value })).unwrap();
        let row = table.get(&[1i64.into()]).unwrap().unwrap();
        assert_eq!(row.get("v").unwrap().to_string(), stored);
    }
}

#[test]
fn what_is_no_row_is_refused() {
    let db = memory();
    let table = one(&db, DataType::I64);
    for object in [json!(1), json!(null), json!([1, 2]), json!("x")] {
        let error = table.insert_object(&object).unwrap_err();
        assert_eq!(error.to_string(), "a row is an object: names of fields with their values");
    }
    let error = table.insert_object(&json!({ "id": 1, "w": 2 })).unwrap_err();
    assert!(error.to_string().starts_with("unknown field \"w\""), "{error}");
    let error = table.insert_object(&json!({ "v": 2 })).unwrap_err();
    assert!(error.to_string().contains("\"id\""), "{error}");
    let objects = [json!({ "id": 1 }), json!({ "id": 2, "v": "x" })];
    let error = table.insert_objects(&objects).unwrap_err();
    assert!(error.to_string().starts_with("row 2: field \"v\": expected i64"), "{error}");
    assert_eq!(table.count().unwrap(), 0);
    table.insert_objects(&objects[..1]).unwrap();
    assert_eq!(table.get_object(1).unwrap(), Some(json!({ "id": 1, "v": null })));
    table.upsert_object(&BTreeMap::from([("id", 1), ("v", 7)])).unwrap();
    let error = table.get_object::<BTreeMap<String, u8>>(1).map(|row| row.unwrap()["v"]);
    assert_eq!(error.unwrap(), 7);
    table.upsert_object(&json!({ "id": 1, "v": 300 })).unwrap();
    let error = table.get_object::<BTreeMap<String, u8>>(1).unwrap_err();
    assert!(error.to_string().starts_with("field \"v\": invalid value"), "{error}");
}

#[test]
fn a_field_that_is_not_named_gets_its_default() {
    let db = memory();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("stars", DataType::U8)
        .default_value(DefaultValue::Literal(Value::Uint(3)));
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    table.insert_object(&json!({ "id": 1 })).unwrap();
    assert_eq!(table.get_object(1).unwrap(), Some(json!({ "id": 1, "stars": 3 })));
    assert!(table.insert_object(&json!({ "id": 2, "stars": null })).is_err());
}

#[test]
fn an_address_of_either_kind_is_read_from_its_field() {
    let db = memory();
    let table = one(&db, DataType::Ipv6);
    table.insert_object(&json!({ "id": 1, "v": "2001:db8::1" })).unwrap();
    #[derive(Deserialize)]
    struct Host {
        v: IpAddr,
    }
    let host: Host = table.get_object(1).unwrap().unwrap();
    assert_eq!(host.v, "2001:db8::1".parse::<IpAddr>().unwrap());
}
