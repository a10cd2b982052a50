//! Creating and dropping indexes: what they refuse, what survives, and who goes on beside them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, ErrorKind, IndexUse, NewIndex, Options, Query, Schema, Value,
};
use esker_query::model::{Aggregate, Expr, Operator};

fn schema() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .nullable("city", DataType::Text)
        .nullable("doc", DataType::Json)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn row(id: i64) -> Vec<Value> {
    vec![Value::Int(id), format!("city {}", id % 7).into(), Value::Null]
}

fn index(name: &str, fields: &[&str]) -> NewIndex {
    NewIndex::new(name, fields.iter().copied())
}

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    db.create_table("t", schema()).unwrap();
    db
}

fn names(db: &Database) -> Vec<String> {
    let schema = db.table("t").unwrap().schema();
    schema.indexes().iter().map(|index| index.name.clone()).collect()
}

#[test]
fn what_cannot_be_an_index_is_refused_and_changes_nothing() {
    let db = database();
    db.create_index("t", index("by_city", &["city"])).unwrap();
    let before = db.table("t").unwrap().schema();
    let many: Vec<String> = (0..17).map(|i| format!("f{i}")).collect();
    let wide = many.iter().fold(Schema::builder(), |s, name| s.field(name, DataType::I64));
    db.create_table("wide", wide.build().unwrap()).unwrap();
    use ErrorKind as K;
    for (table, new, kind, message) in [
        ("s", index("x", &["id"]), K::NotFound, "no table \"s\""),
        ("t", index("by_city", &["id"]), K::AlreadyExists, "index \"by_city\" exists already"),
        ("t", index("x", &["cty"]), K::InvalidInput, "unknown field \"cty\"; did you mean"),
        ("t", index("x", &["doc"]), K::InvalidInput, "field \"doc\" of index \"x\" is json"),
        ("t", index("x", &[]), K::InvalidInput, "index \"x\": 1 to 16 fields, found 0"),
        ("t", index("", &["id"]), K::InvalidInput, "an index name has 1 to 128 bytes"),
        ("t", index("x", &["id", "ID"]), K::InvalidInput, "field \"id\" is named twice in index"),
        (
            "wide",
            NewIndex::new("x", many),
            K::InvalidInput,
            "index \"x\": 1 to 16 fields, found 17",
        ),
    ] {
        // One that could be made is not, beside one that cannot.
        let good = if table == "wide" { "f0" } else { "id" };
        let e = db.create_indexes(table, &[index("good", &[good]), new]).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().starts_with(message), "{e}");
    }
    let e = db.drop_index("t", "by_cty").unwrap_err();
    assert_eq!(e.kind(), K::NotFound);
    assert_eq!(e.to_string(), "unknown index \"by_cty\"; did you mean \"by_city\"?");
    assert_eq!(db.create_indexes("s", &[]).unwrap_err().kind(), K::NotFound);
    assert_eq!(db.table("t").unwrap().schema(), before);
    assert_eq!(db.table("wide").unwrap().schema().indexes(), []);
}

#[test]
fn indexes_survive_reopening_from_log_and_checkpoint() {
    let dir = Directory::new("indexes_reopened");
    let open = || Options::new().background(false).open(&dir.0).unwrap();
    let db = open();
    db.create_table("t", schema()).unwrap();
    for id in 0..100 {
        db.table("t").unwrap().insert(&row(id)).unwrap();
    }
    db.create_indexes("t", &[index("a", &["city"]), index("b", &["id", "city"])]).unwrap();
    db.drop_index("t", "a").unwrap();
    db.create_index("t", index("c", &["city"])).unwrap();
    drop(db);
    let db = open();
    assert_eq!(names(&db), ["b", "c"]);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open();
    assert_eq!(names(&db), ["b", "c"]);
    let numbers: Vec<u32> =
        db.table("t").unwrap().schema().indexes().iter().map(|index| index.id.0).collect();
    assert_eq!(numbers, [2, 3], "numbers are not used again");
    assert_eq!(db.table("t").unwrap().count().unwrap(), 100);
    db.truncate_table("t").unwrap();
    assert_eq!(names(&db), ["b", "c"]);
    db.alter_table("t", &[Alteration::DropField("city".into())]).unwrap();
    assert_eq!(names(&db), Vec::<String>::new());
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_snapshot_keeps_its_indexes() {
    let db = database();
    let before = db.snapshot().unwrap();
    db.create_index("t", index("a", &["city"])).unwrap();
    let between = db.snapshot().unwrap();
    db.drop_index("t", "a").unwrap();
    let count = |s: &esker::Snapshot| s.table("t").unwrap().schema().indexes().len();
    assert_eq!((count(&before), count(&between)), (0, 1));
    assert_eq!(names(&db), Vec::<String>::new());
}

/// What was gathered before an index was created or dropped is written as it is: rows are the same.
#[test]
fn loads_and_appenders_under_way_go_on() {
    let dir = Directory::new("indexes_beside_loads");
    let options = Options::new().background(false).segment_limit(100);
    let db = options.open(&dir.0).unwrap();
    let t = db.create_table("t", schema()).unwrap();
    let (mut load, mut small) = (t.load().unwrap(), t.load().unwrap());
    let mut appender = t.appender();
    (0..250).for_each(|id| load.push_row(&row(id)).unwrap());
    small.push_row(&row(1_000)).unwrap();
    appender.append(&row(2_000)).unwrap();
    db.create_indexes("t", &[index("a", &["city"]), index("b", &["id"])]).unwrap();
    (250..500).for_each(|id| load.push_row(&row(id)).unwrap());
    appender.flush().unwrap();
    db.drop_index("t", "a").unwrap();
    appender.append(&row(2_001)).unwrap();
    appender.finish().unwrap();
    assert_eq!(load.finish().unwrap().segments, 5);
    small.finish().unwrap();
    assert_eq!((t.count().unwrap(), t.schema().indexes().len()), (503, 1));
    drop((t, db));
    let db = Options::new().background(false).open(&dir.0).unwrap();
    assert_eq!((db.table("t").unwrap().count().unwrap(), names(&db).len()), (503, 1));
    assert_eq!(db.check().unwrap().problems, []);
}

/// The open group stays open, in life and at recovery, where only indexes change.
#[test]
fn an_index_does_not_end_the_open_group() {
    let dir = Directory::new("indexes_open_group");
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let t = db.create_table("t", schema()).unwrap();
    for id in 0..10 {
        t.insert(&row(id)).unwrap();
        db.create_index("t", index(&format!("i{id}"), &["city"])).unwrap();
    }
    assert_eq!(db.info().tables[0].groups, 1);
    assert_eq!(db.info().tables[0].indexes.len(), 10);
    drop((t, db));
    let db = Options::new().background(false).open(&dir.0).unwrap();
    assert_eq!(db.info().tables[0].groups, 1);
    assert_eq!(db.table("t").unwrap().get(&[Value::Int(9)]).unwrap().unwrap().values(), row(9));
}

/// Four writers never fail, and lose nothing, while indexes come and go.
#[test]
fn create_and_drop_beside_writers() {
    const WRITERS: i64 = 4;
    const ROWS: i64 = 150;
    let db = Options::new().group_limit(64, 1 << 30).memory().unwrap();
    db.create_table("t", schema()).unwrap();
    let done = AtomicBool::new(false);
    let changes = std::thread::scope(|scope| {
        let write = |writer: i64| {
            let t = db.table("t").unwrap();
            let mut appender = t.appender();
            for i in 0..ROWS {
                let id = writer * 10_000 + i;
                t.insert(&row(id)).unwrap();
                assert!(t.update(&[id.into()], &[("city", "moved".into())]).unwrap());
                appender.append(&row(id + 5_000)).unwrap();
                if i % 10 == 9 {
                    appender.flush().unwrap();
                }
                if i % 3 == 0 {
                    assert!(t.delete(&[id.into()]).unwrap());
                }
            }
            appender.finish().unwrap();
        };
        let writers: Vec<_> = (0..WRITERS).map(|w| scope.spawn(move || write(w))).collect();
        let changer = scope.spawn(|| {
            let mut changes = 0;
            while changes < 10 || (!done.load(Ordering::Relaxed) && changes < 1_000) {
                db.create_index("t", index("a", &["city", "id"])).unwrap();
                assert!(db.create_index("t", index("a", &["id"])).is_err());
                db.drop_index("t", "a").unwrap();
                changes += 1;
            }
            changes
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        changer.join().unwrap()
    });
    assert!(changes >= 10);
    let kept = WRITERS * (2 * ROWS - ROWS / 3);
    assert_eq!(db.table("t").unwrap().count().unwrap(), kept.unsigned_abs());
    assert_eq!(db.check().unwrap().problems, []);
}

/// Two readers by turns, of which the one has a field less before the one that is indexed.
#[test]
fn runs_are_read_by_the_schema_of_each_reader() {
    let db = Options::new().index_use(IndexUse::Always).memory().unwrap();
    let schema = Schema::builder().field("a", DataType::I64).field("b", DataType::I64);
    let schema = schema.field("c", DataType::I64).index("by_b", ["b"]).index("by_c", ["c"]);
    let mut load = db.create_table("t", schema.build().unwrap()).unwrap().load().unwrap();
    for i in 0..1_000i64 {
        load.push_row(&[i.into(), (i % 10).into(), (i % 100).into()]).unwrap();
    }
    load.finish().unwrap();
    db.wait_idle().unwrap();
    let count = |field: &str| {
        let mut query = Query::table("t");
        query.select(Expr::aggregate(Aggregate::Count, Expr::field(field)));
        query.filter = Some(Expr::field(field).binary(Operator::Eq, Expr::literal(3i64)));
        query
    };
    let before = db.snapshot().unwrap();
    let found = |rows: i64| [[Value::Int(rows)]];
    assert_eq!(before.query(&count("b")).unwrap().to_rows(), found(100));
    db.alter_table("t", &[Alteration::DropField("a".into())]).unwrap();
    let between = db.snapshot().unwrap();
    for _ in 0..2 {
        assert_eq!(between.query(&count("b")).unwrap().to_rows(), found(100));
        assert_eq!(before.query(&count("a")).unwrap().to_rows(), found(1));
        assert_eq!(before.query(&count("c")).unwrap().to_rows(), found(10));
        assert_eq!(between.query(&count("c")).unwrap().to_rows(), found(10));
    }
    db.drop_index("t", "by_b").unwrap();
    db.create_index("t", index("by_b", &["c"])).unwrap();
    db.wait_idle().unwrap();
    for reader in [&before, &between, &db.snapshot().unwrap()] {
        assert_eq!(reader.query(&count("b")).unwrap().to_rows(), found(100));
        assert_eq!(reader.query(&count("c")).unwrap().to_rows(), found(10));
    }
}
