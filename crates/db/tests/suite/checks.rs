//! Check constraints and defaults, by every way that rows come in.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, DefaultValue, ErrorKind, Options, Schema, Table, Value, check,
};
use esker_query::model::{Change, Expr, Insert, InsertRows, Operator, Update};

fn positive() -> Expr {
    Expr::field("n").binary(Operator::Gt, Expr::literal(0i64))
}

fn schema() -> Schema {
    let check = check("positive", &positive()).unwrap();
    Schema::builder()
        .field("id", DataType::I64)
        .nullable("n", DataType::I32)
        .primary_key(["id"])
        .check(check.name, check.condition)
        .build()
        .unwrap()
}

fn row(id: i64, n: i64) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(n)]
}

fn refused(result: Result<impl Sized, esker::Error>) {
    let e = result.err().unwrap();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    assert!(e.to_string().contains("check \"positive\": n > 0 is false"), "{e}");
}

fn update(n: i64) -> Change {
    let set = vec![("n".to_owned(), Expr::literal(n))];
    Change::Update(Update { table: "t".into(), set, ..Update::default() })
}

fn breaks_nowhere(db: &Database, t: &Table) {
    refused(t.insert(&row(2, 0)));
    refused(t.upsert(&row(1, 0)));
    refused(t.insert_many(&[row(2, 1), row(3, -1)]));
    refused(t.update(&[Value::Int(1)], &[("n", Value::Int(0))]));
    refused(db.change(&update(-5)));
    let mut appender = t.appender();
    appender.append(&row(5, 0)).unwrap();
    refused(appender.finish());
    let mut load = t.load().unwrap();
    for id in 10..100_000 {
        load.push_row(&row(id, 1)).unwrap();
    }
    load.push_row(&row(100_000, 0)).unwrap();
    refused(load.finish());
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn no_way_in_leads_past_a_check() {
    let dir = Directory::new("checks");
    let db = Options::new().open(&dir.0).unwrap();
    let t = db.create_table("t", schema()).unwrap();
    t.insert(&row(1, 1)).unwrap();
    breaks_nowhere(&db, &t);
    drop((t, db));
    let db = Options::new().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    breaks_nowhere(&db, &t);
    // NULL is not false.
    t.insert(&[Value::Int(2), Value::Null]).unwrap();
    db.alter_table("t", &[Alteration::DropCheck("positive".into())]).unwrap();
    t.insert(&row(3, -1)).unwrap();
}

#[test]
fn a_check_is_added_only_when_every_row_meets_it() {
    let db = Options::new().memory().unwrap();
    let fields = Schema::builder().field("id", DataType::I64).nullable("n", DataType::I32);
    let t = db.create_table("t", fields.primary_key(["id"]).build().unwrap()).unwrap();
    t.insert_many(&[row(1, 1), row(2, 0)]).unwrap();
    let add = [Alteration::AddCheck(check("positive", &positive()).unwrap())];
    let e = db.alter_table("t", &add).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    assert!(e.to_string().contains("check \"positive\": n > 0 is false for a row"), "{e}");
    t.delete(&[Value::Int(2)]).unwrap();
    db.alter_table("t", &add).unwrap();
    refused(t.insert(&row(3, 0)));
    let unknown = Expr::field("m").binary(Operator::Gt, Expr::literal(0i64));
    let unknown = Alteration::AddCheck(check("unknown", &unknown).unwrap());
    let e = db.alter_table("t", &[unknown]).unwrap_err().to_string();
    assert!(e.contains("unknown field"), "{e}");
}

#[test]
fn checks_follow_the_names_of_their_fields() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema()).unwrap();
    let rename = Alteration::RenameField { from: "n".into(), to: "m".into() };
    db.alter_table("t", &[rename]).unwrap();
    let e = t.insert(&row(1, 0)).unwrap_err().to_string();
    assert!(e.contains("check \"positive\": m > 0 is false"), "{e}");
    let e = db.alter_table("t", &[Alteration::DropField("m".into())]).unwrap_err().to_string();
    assert!(e.contains("check \"positive\" reads field \"m\": drop it before"), "{e}");
    let both = [Alteration::DropCheck("positive".into()), Alteration::DropField("m".into())];
    db.alter_table("t", &both).unwrap();
    assert_eq!(db.table("t").unwrap().schema().fields().len(), 1);
}

#[test]
fn what_is_left_out_has_its_default() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder()
        .field("id", DataType::Uuid)
        .default_value(DefaultValue::Uuid)
        .field("stars", DataType::U8)
        .default_value(DefaultValue::Literal(Value::Int(3)))
        .nullable("at", DataType::Timestamp)
        .default_value(DefaultValue::Now)
        .nullable("day", DataType::Date)
        .default_value(DefaultValue::Now)
        .nullable("note", DataType::Text)
        .primary_key(["id"])
        .build()
        .unwrap();
    let t = db.create_table("t", schema).unwrap();
    for _ in 0..5_000 {
        t.insert_fields(&[]).unwrap();
    }
    let fields = vec!["note".to_owned(), "at".to_owned()];
    let values = vec![Expr::literal("x"), Expr::literal(Value::Null)];
    let rows = InsertRows::Values(vec![values]);
    let insert = Insert { fields, rows, ..Insert::values("t", Vec::new()) };
    db.change(&Change::Insert(insert)).unwrap();
    let rows = db.snapshot().unwrap().table("t").unwrap().rows().unwrap();
    assert!(rows.windows(2).all(|pair| pair[0].1[0] < pair[1].1[0]), "uuids rise");
    let Value::Uuid(id) = &rows[0].1[0] else { panic!("a uuid") };
    assert_eq!((id[6] >> 4, id[8] >> 6), (7, 0b10), "version 7, variant of the RFC");
    for (_, row) in &rows[..5_000] {
        assert_eq!(row[1], Value::Uint(3));
        assert!(matches!(row[2], Value::Timestamp(us) if us > 1_700_000_000_000_000));
        assert!(matches!(row[3], Value::Date(day) if day > 19_000));
        assert_eq!(row[4], Value::Null);
    }
    let last = &rows[5_000].1;
    assert_eq!((&last[2], &last[4]), (&Value::Null, &Value::from("x")), "NULL is a value");
    let e = t.insert_fields(&[("note", "a".into()), ("note", "b".into())]).unwrap_err();
    assert!(e.to_string().contains("named twice"), "{e}");
}

/// Rows of generated keys are committed by columns, without a row for each.
#[test]
fn an_appender_of_generated_keys_tests_its_rows() {
    let check = check("positive", &positive()).unwrap();
    let schema = Schema::builder().nullable("n", DataType::I32).check(check.name, check.condition);
    let db = Options::new().memory().unwrap();
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    let mut appender = table.appender();
    for n in [Value::Int(1), Value::Null, Value::Int(0)] {
        appender.append(&[n]).unwrap();
    }
    refused(appender.finish());
    assert_eq!(table.count().unwrap(), 0);
}
