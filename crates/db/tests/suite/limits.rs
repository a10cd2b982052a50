//! The limits of docs/reference/limits.md: at each, and one past it. Keys, values and commits are
//! in `large.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use crate::fixture::Directory;
use esker::{
    Alteration, Check, DataType, Database, ErrorKind, Field, FieldId, Options, Schema, Value,
};
use esker_query::Query;

fn wide(fields: usize) -> Result<Schema, esker::Error> {
    let mut builder = Schema::builder().field("id", DataType::I64);
    for i in 1..fields {
        builder = builder.nullable(format!("field {i}"), DataType::I64);
    }
    Ok(builder.primary_key(["id"]).build()?)
}

fn refused<T>(result: Result<T, esker::Error>, why: &str) {
    let e = result.err().unwrap();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    assert!(e.to_string().contains(why), "{e}");
}

#[test]
fn a_table_has_up_to_4096_fields() {
    refused(wide(4_097), "a table has 1 to 4096 fields, found 4097");
    let dir = Directory::new("limits-fields");
    let db = Options::new().open(&dir.0).unwrap();
    let t = db.create_table("wide", wide(4_096).unwrap()).unwrap();
    let row = |id: i64| -> Vec<Value> {
        (0..4_096)
            .map(|i| if i == 0 || i % 7 == 0 { Value::Int(id + i) } else { Value::Null })
            .collect()
    };
    t.insert(&row(1)).unwrap();
    let mut load = t.load().unwrap();
    (10..20).for_each(|id| load.push_row(&row(id)).unwrap());
    load.finish().unwrap();
    let one_more = Field::new(FieldId(0), "one more".into(), DataType::I64, true);
    refused(db.alter_table("wide", &[Alteration::AddField(one_more)]), "found 4097");
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    let t = db.table("wide").unwrap();
    assert_eq!(t.get(&[Value::Int(1)]).unwrap().unwrap().values(), row(1));
    let rows = db.query(&Query::table("wide")).unwrap().to_rows();
    assert_eq!((rows.len(), rows[0].len()), (11, 4_096));
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn there_are_4096_tables_and_more() {
    let dir = Directory::new("limits-tables");
    let schema = || Schema::builder().field("n", DataType::I64).build().unwrap();
    let name = |i: usize| format!("table {i}");
    let db = Options::new()
        .durability(esker::Durability::Async { at_most: std::time::Duration::from_millis(50) })
        .open(&dir.0)
        .unwrap();
    for part in 0..42 {
        let transaction = db.begin().unwrap();
        for i in part * 100..(part + 1) * 100 {
            let table = transaction.create_table(&name(i), schema()).unwrap();
            table.insert(&[(i as i64).into()]).unwrap();
        }
        transaction.commit().unwrap();
    }
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!(db.tables().len(), 4_200);
    let row = db.table(&name(4_199)).unwrap().get(&[Value::Int(1)]).unwrap().unwrap();
    assert_eq!(row.values(), [Value::Int(4_199)]);
}

#[test]
fn names_have_up_to_128_bytes() {
    let db = Options::new().memory().unwrap();
    let schema = |name: &str| Schema::builder().field(name, DataType::I64).build();
    let (long, longer) = ("ß".repeat(64), "ß".repeat(64) + "x");
    db.create_table(&long, schema(&long).unwrap()).unwrap();
    refused(db.create_table(&longer, schema("n").unwrap()), "1 to 128 bytes, found 129");
    refused(schema(&longer).map_err(Into::into), "1 to 128 bytes, found 129");
    refused(db.create_table("", schema("n").unwrap()), "1 to 128 bytes, found 0");
    refused(db.rename_table(&long, "a\nb"), "control character");
}

#[test]
fn a_table_has_up_to_256_checks() {
    let db: Database = Options::new().memory().unwrap();
    let condition = esker_query::model::Expr::literal(true);
    let check = |i: usize| esker::check(format!("check {i}"), &condition).unwrap();
    let mut builder = Schema::builder().field("n", DataType::I64);
    for Check { name, condition } in (0..256).map(check) {
        builder = builder.check(name, condition);
    }
    let t = db.create_table("t", builder.build().unwrap()).unwrap();
    t.insert(&[Value::Int(1)]).unwrap();
    refused(db.alter_table("t", &[Alteration::AddCheck(check(256))]), "at most 256 checks");
}
