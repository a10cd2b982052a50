//! Many rows changed by their keys, in one commit.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{
    DataType, Database, ErrorKind, NewIndex, Options, RowUpdate, Schema, Table, Value, check,
};
use esker_query::model::{Expr, Operator};

const LONG: usize = 100_000;

fn options() -> Options {
    Options::new().segment_limit(400).group_limit(100, 1 << 20)
}

fn schema() -> Schema {
    let small = Expr::field("n").binary(Operator::Lt, Expr::literal(9i64));
    let small = check("small", &small).unwrap();
    Schema::builder()
        .field("id", DataType::I64)
        .nullable("name", DataType::Text)
        .field("n", DataType::I64)
        .nullable("body", DataType::Text)
        .primary_key(["id"])
        .add_index(NewIndex::new("names", ["name"]).unique())
        .add_index(NewIndex::new("by_n", ["n"]))
        .check(small.name, small.condition)
        .build()
        .unwrap()
}

fn with_table() -> (Database, Table) {
    let database = options().memory().unwrap();
    let table = database.create_table("t", schema()).unwrap();
    (database, table)
}

fn set(id: i64, field: &str, value: impl Into<Value>) -> RowUpdate<&str> {
    (vec![id.into()], vec![(field, value.into())])
}

fn row(id: i64) -> Vec<Value> {
    vec![id.into(), format!("row {id}").into(), (-id).into(), Value::Null]
}

fn values(table: &Table, id: i64) -> Vec<Value> {
    table.get(&[id.into()]).unwrap().unwrap().into_values()
}

#[test]
fn each_row_gets_its_own_values_sealed_or_not() {
    let directory = Directory::new("update-many");
    let database = options().open(&directory.0).unwrap();
    let table = database.create_table("t", schema()).unwrap();
    table.insert_many(&(0..1_000).map(row).collect::<Vec<_>>()).unwrap();
    database.compact(true, &mut |_, _| {}).unwrap();
    table.insert_many(&(1_000..1_050).map(row).collect::<Vec<_>>()).unwrap();
    let before = table.snapshot().unwrap();
    let updates: Vec<_> = (0..2_000i64).step_by(3).map(|id| set(id, "n", -id - 10_000)).collect();
    assert_eq!(table.update_many(&updates).unwrap(), 350);
    let is_as_expected = |table: &Table| {
        for id in 0..1_050i64 {
            let n = if id % 3 == 0 { -id - 10_000 } else { -id };
            assert_eq!(values(table, id)[2], n.into());
            assert_eq!(values(table, id)[1], format!("row {id}").into());
        }
        assert_eq!(table.count().unwrap(), 1_050);
    };
    is_as_expected(&table);
    let old = before.get(&[3i64.into()]).unwrap().unwrap();
    assert_eq!(old.values()[2], Value::Int(-3), "a snapshot stays as it is");
    drop((before, old, table));
    database.close().unwrap();
    let database = options().open(&directory.0).unwrap();
    is_as_expected(&database.table("t").unwrap());
    assert_eq!(database.check().unwrap().problems, []);
    assert_eq!(database.recount(true).unwrap(), []);
}

#[test]
fn the_later_of_two_finds_what_the_earlier_made() {
    let (_database, table) = with_table();
    table.insert(&row(1)).unwrap();
    let updates =
        [set(1, "name", "x"), set(1, "n", 5i64), set(1, "name", "z"), set(2, "name", "none")];
    assert_eq!(table.update_many(&updates).unwrap(), 3);
    assert_eq!(values(&table, 1), [1i64.into(), "z".into(), 5i64.into(), Value::Null]);
    assert_eq!(table.count().unwrap(), 1);
}

#[test]
fn all_are_changed_or_none() {
    let (_database, table) = with_table();
    let names = |table: &Table| [1, 2, 3].map(|id| values(table, id)[1].to_string());
    for (id, name) in [(1i64, "a"), (2, "b"), (3, "c")] {
        table.insert(&[id.into(), name.into(), 0i64.into(), Value::Null]).unwrap();
    }
    let refused = |updates: &[RowUpdate<&str>]| {
        let error = table.update_many(updates).unwrap_err();
        assert_eq!(names(&table), ["a", "b", "c"], "{error}");
        (error.kind(), error.to_string())
    };
    let (kind, _) = refused(&[set(3, "name", "x"), set(1, "name", "b")]);
    assert_eq!(kind, ErrorKind::AlreadyExists);
    let (kind, _) = refused(&[set(1, "name", "x"), set(2, "name", "x")]);
    assert_eq!(kind, ErrorKind::AlreadyExists);
    let (kind, message) = refused(&[set(1, "name", "x"), set(2, "n", 9i64)]);
    assert_eq!(kind, ErrorKind::ConstraintViolated, "{message}");
    let (_, message) = refused(&[set(1, "name", "x"), set(2, "nmae", "y")]);
    assert!(message.starts_with("update 1: "), "{message}");
    let (_, message) = refused(&[set(1, "name", "x"), set(2, "id", 3i64)]);
    assert_eq!(message, "update 1: key id = 3 exists already");
    let (_, message) = refused(&[(vec!["x".into()], Vec::new())]);
    assert!(message.starts_with("update 0: "), "{message}");
    assert_eq!(table.update_many::<&str>(&[]).unwrap(), 0);
    // Values that go round.
    let round = [set(1, "name", "b"), set(2, "name", "c"), set(3, "name", "a")];
    assert_eq!(table.update_many(&round).unwrap(), 3);
    assert_eq!(names(&table), ["b", "c", "a"]);
}

#[test]
fn long_values_are_changed_like_others() {
    let (_database, table) = with_table();
    let long = |letter: &str| Value::from(letter.repeat(LONG));
    table.insert(&[1i64.into(), "a".into(), 0i64.into(), long("a")]).unwrap();
    table.insert(&[2i64.into(), "b".into(), 0i64.into(), "short".into()]).unwrap();
    assert_eq!(table.update_many(&[set(1, "n", 5i64), set(2, "body", long("b"))]).unwrap(), 2);
    assert_eq!(values(&table, 1), [1i64.into(), "a".into(), 5i64.into(), long("a")]);
    assert_eq!(values(&table, 2), [2i64.into(), "b".into(), 0i64.into(), long("b")]);
}
