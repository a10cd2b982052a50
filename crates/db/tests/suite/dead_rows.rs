//! A queue: many dead rows lie before the first that lives, and no query looks at each of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use crate::fixture::Directory;
use esker::{ChangeOptions, DataType, Database, Options, Query, Schema, Value};
use esker_query::model::{Aggregate, Change, Delete, Expr, Operator, OrderBy, SelectItem};

const ROWS: i64 = 40_000;

/// What may be looked at: less than a block of rows, and a few.
const FEW: u64 = 2_000;

fn schema(indexes: &[&[&str]]) -> Schema {
    let mut schema = Schema::builder()
        .field("id", DataType::I64)
        .field("st", DataType::Text)
        .field("n", DataType::I64)
        .primary_key(["id"]);
    for (number, fields) in indexes.iter().enumerate() {
        schema = schema.index(format!("i{number}"), fields.iter().copied());
    }
    schema.build().unwrap()
}

fn row(id: i64) -> Vec<Value> {
    vec![Value::Int(id), "new".into(), Value::Int(ROWS - id)]
}

fn is_new() -> Expr {
    Expr::field("st").binary(Operator::Eq, Expr::literal("new"))
}

fn first(by: &str) -> Query {
    let mut query = Query::table("q");
    query.select(Expr::field("id"));
    query.filter = Some(is_new());
    query.order_by = vec![OrderBy { expr: Expr::field(by), descending: false, nulls_first: None }];
    query.limit = Some(1.into());
    query
}

fn remove_below(db: &Database, id: i64) {
    let filter = Some(Expr::field("id").binary(Operator::Lt, Expr::literal(id)));
    let delete = Delete { table: "q".into(), filter, ..Delete::default() };
    db.change(&Change::Delete(delete)).unwrap();
}

fn pop() -> Delete {
    let returning = Some(vec![SelectItem { expr: Expr::field("id"), alias: None }]);
    Delete {
        table: "q".into(),
        filter: Some(is_new()),
        limit: Some(1.into()),
        returning,
        ..Delete::default()
    }
}

/// The answer to a query, and how many rows were looked at for it.
fn asked(db: &Database, query: &Query) -> (Vec<Vec<Value>>, u64) {
    let found = db.query(query).unwrap();
    let scanned = found.statistics.rows_scanned;
    (found.to_rows(), scanned)
}

#[test]
fn a_queue_passes_over_dead_rows_by_the_run() {
    let indexes: [&[&[&str]]; 4] = [&[], &[&["st"]], &[&["st", "id"]], &[&["n"], &["id"]]];
    for (number, indexes) in indexes.into_iter().enumerate() {
        for is_sealed in [true, false] {
            let dir = Directory::new(&format!("queue-{number}-{is_sealed}"));
            let db = Options::new().background(false).open(&dir.0).unwrap();
            let t = db.create_table("q", schema(indexes)).unwrap();
            let rows: Vec<_> = (0..ROWS).map(row).collect();
            if is_sealed {
                let mut load = t.load().unwrap();
                rows.iter().for_each(|row| load.push_row(row).unwrap());
                load.finish().unwrap();
            } else {
                t.insert_many(&rows).unwrap();
            }
            let before = db.snapshot().unwrap();
            remove_below(&db, ROWS - 3);
            let context = format!("{indexes:?}, sealed: {is_sealed}");
            for id in ROWS - 3..ROWS {
                let found = asked(&db, &first("id"));
                assert_eq!(found.0, [[Value::Int(id)]], "{context}");
                assert!(found.1 < FEW, "{context}: {} rows", found.1);
                let last = asked(&db, &first("n"));
                assert_eq!(last.0, [[Value::Int(ROWS - 1)]], "{context}");
                assert!(last.1 < FEW, "{context}: {} rows by n", last.1);
                let mut least = Query::table("q");
                least.select(Expr::aggregate(Aggregate::Min, Expr::field("id")));
                let least = asked(&db, &least);
                assert_eq!(least.0, [[Value::Int(id)]], "{context}");
                assert!(least.1 < FEW, "{context}: {} rows for min", least.1);
                let mut groups = Query::table("q");
                groups.select(Expr::field("st"));
                groups.select(Expr::count());
                groups.group_by.push(Expr::field("st"));
                let groups = asked(&db, &groups);
                assert_eq!(groups.0, [["new".into(), Value::Int(ROWS - id)]], "{context}");
                assert!(groups.1 < FEW, "{context}: {} rows for groups", groups.1);
                let pop = Change::Delete(pop());
                let popped = db.change_with(&pop, &ChangeOptions::default()).unwrap();
                let popped = popped.returning.unwrap().to_rows();
                assert_eq!(popped, [[Value::Int(id)]], "{context}");
            }
            assert!(asked(&db, &first("id")).0.is_empty(), "{context}");
            // Who began before sees all of them.
            let old = before.query(&first("id")).unwrap().to_rows();
            assert_eq!(old, [[Value::Int(0)]], "{context}");
            assert_eq!(before.table("q").unwrap().rows().unwrap().len(), rows.len());
        }
    }
}

/// An older reader sees some rows of a block that has died for others since.
#[test]
fn dead_blocks_are_those_of_the_reader() {
    let dir = Directory::new("queue-readers");
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let t = db.create_table("q", schema(&[&["st", "id"]])).unwrap();
    t.insert_many(&(0..ROWS).map(row).collect::<Vec<_>>()).unwrap();
    let mut readers = Vec::new();
    for below in [1_000, 1_024, 5_000, 30_000, ROWS] {
        readers.push((below, db.snapshot().unwrap()));
        remove_below(&db, below);
    }
    let mut seen = 0;
    for (below, reader) in &readers {
        let found = reader.query(&first("id")).unwrap().to_rows();
        assert_eq!(found, [[Value::Int(seen)]], "before the rows below {below} went");
        let mut count = Query::table("q");
        count.select(Expr::count());
        count.filter = Some(is_new());
        let count = reader.query(&count).unwrap().to_rows();
        assert_eq!(count, [[Value::Int(ROWS - seen)]]);
        seen = *below;
    }
    assert_eq!(asked(&db, &first("id")).0.len(), 0);
}

/// Rows in memory have bounds by zone: the first by key is not looked for among all.
#[test]
fn the_first_rows_by_key_of_an_open_group_are_few() {
    let dir = Directory::new("first-by-key");
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let t = db.create_table("q", schema(&[])).unwrap();
    let rows = 100_000;
    let shuffled = (0..rows).map(|i| row(i * 7_919 % rows));
    t.insert_many(&shuffled.collect::<Vec<_>>()).unwrap();
    let mut query = Query::table("q");
    query.select(Expr::field("id"));
    query.limit = Some(1.into());
    for (descending, id) in [(false, 0), (true, rows - 1)] {
        query.order_by = vec![OrderBy { expr: Expr::field("id"), descending, nulls_first: None }];
        let (found, scanned) = asked(&db, &query);
        assert_eq!(found, [[Value::Int(id)]]);
        // The zone that still grows, and a wave of two others.
        assert!(scanned <= 3 * 8_192, "{scanned} rows");
    }
}
