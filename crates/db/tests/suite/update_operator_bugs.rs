//! What update operators once did wrong.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use esker::{DataType, Database, ErrorKind, Options, Schema, Table, Update, Value};

fn table() -> (Database, Table) {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("whole", DataType::decimal(38, 0).unwrap())
        .nullable("single", DataType::F32)
        .nullable("doc", DataType::Json)
        .primary_key(["id"]);
    let t = db.create_table("t", schema.build().unwrap()).unwrap();
    t.insert(&[1.into(), Value::Null, Value::Null, Value::json("{}").unwrap()]).unwrap();
    (db, t)
}

fn after(t: &Table, update: &Update, field: &str) -> String {
    t.apply(&[1.into()], update).unwrap();
    t.get(&[1.into()]).unwrap().unwrap().get(field).unwrap().to_string()
}

#[test]
fn a_path_of_more_levels_than_a_document_has_is_refused() {
    let (_db, t) = table();
    let path = format!("doc{}", ".a".repeat(200_000));
    for update in [Update::new().set(&path, 1), Update::new().unset(&path)] {
        let e = t.apply(&[1.into()], &update).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn digits_that_do_not_fit_are_rounded_once() {
    let (_db, t) = table();
    let most = "12345678901234567890123456789012345678";
    let document = Value::json(&format!(r#"{{"n":{most}}}"#)).unwrap();
    after(&t, &Update::new().set("doc", document), "doc");
    let small: esker::Decimal = "0.449".parse().unwrap();
    let sum = after(&t, &Update::new().increment("doc.n", Value::Decimal(small)), "doc");
    assert_eq!(sum, format!(r#"{{"n":{most}}}"#));
}

#[test]
fn products_have_every_digit_that_fits() {
    let product = esker_format::json::multiply_numbers(
        "9999999999",
        "0.1234567890123456789012345678901234567",
    );
    assert_eq!(product.unwrap(), "1234567889.9999999999999999999999999991");
}

#[test]
fn a_decimal_that_the_field_does_not_hold_is_refused() {
    let (_db, t) = table();
    let most: esker::Decimal = "12345678901234567890123456789012345678".parse().unwrap();
    after(&t, &Update::new().set("whole", Value::Decimal(most)), "whole");
    let small: esker::Decimal = "0.25".parse().unwrap();
    let sum = t.apply(&[1.into()], &Update::new().increment("whole", Value::Decimal(small)));
    assert_eq!(sum.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_float_of_32_bits_that_overflows_is_refused() {
    let (_db, t) = table();
    after(&t, &Update::new().set("single", 3e38), "single");
    assert!(t.apply(&[1.into()], &Update::new().increment("single", 3e38)).is_err());
}
