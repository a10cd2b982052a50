//! Bulk loads and appenders keep to the memory limit: they wait, write smaller segments, or refuse.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use crate::fixture::{Directory, people, person};
use esker::{Batch, DataType, Database, ErrorKind, Options, Schema, Value};

fn texts(nullable: &str) -> Schema {
    let builder = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
    builder.nullable(nullable, DataType::I64).primary_key(["id"]).build().unwrap()
}

fn row(id: u64, text_bytes: usize) -> Vec<Value> {
    let mut text = id.to_string();
    text.insert_str(0, &"0".repeat(text_bytes - text.len()));
    let last = if id.is_multiple_of(3) { Value::Null } else { Value::Int(-1) };
    vec![Value::Uint(id), text.into(), last]
}

fn batch(schema: &Schema, ids: std::ops::Range<u64>, text_bytes: usize) -> Batch {
    let mut batch = Batch::empty(schema);
    ids.for_each(|id| batch.push_row(schema, &row(id, text_bytes)).unwrap());
    batch
}

fn assert_within(db: &Database, limit: u64) {
    let memory = db.info().memory;
    assert!(memory.total <= limit, "{memory:?}");
    let parts = memory.groups + memory.indexes + memory.visibility + memory.loads;
    assert!(parts <= memory.total, "{memory:?}");
}

/// Loads took what they wanted: 192 MiB for each core and one more.
#[test]
fn a_load_larger_than_the_memory_limit_keeps_to_it() {
    let limit = 32 << 20;
    let dir = Directory::new("load-memory");
    let db = Options::new().memory_limit(limit).open(&dir.0).unwrap();
    let schema = texts("number");
    let t = db.create_table("texts", schema.clone()).unwrap();
    let mut load = t.load().unwrap();
    let mut most = 0;
    for i in 0..40 {
        load.push(batch(&schema, i * 2_000..(i + 1) * 2_000, 1_000)).unwrap();
        assert_within(&db, limit);
        most = most.max(db.info().memory.loads);
    }
    for id in 80_000..82_000 {
        load.push_row(&row(id, 1_000)).unwrap();
        assert_within(&db, limit);
    }
    assert!(most > 1 << 20, "loads are counted: {most}");
    let report = load.finish().unwrap();
    assert_eq!(report.rows, 82_000);
    assert!((4..200).contains(&report.segments), "{report:?}");
    assert_eq!(db.info().memory.loads, 0);
    assert_eq!(t.count().unwrap(), 82_000);
    for id in [0, 1, 1_999, 2_000, 79_999, 81_999] {
        assert_eq!(t.get(&[Value::Uint(id)]).unwrap().unwrap().values(), row(id, 1_000));
    }
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_load_that_cannot_fit_is_refused_with_the_number_that_is_enough() {
    let dir = Directory::new("load-refused");
    let db = Options::new().memory_limit(8 << 20).open(&dir.0).unwrap();
    let t = db.create_table("texts", texts("number")).unwrap();
    let files = dir.files();
    let mut load = t.load().unwrap();
    let e = load.push_row(&row(7, 4 << 20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    let message = e.to_string();
    assert!(message.contains("bytes of memory for its next rows"), "{message}");
    drop(load);
    assert_eq!((t.count().unwrap(), dir.files()), (0, files));
    assert_eq!(db.info().memory.loads, 0);
    drop((t, db));
    let enough = message.split("a limit of ").nth(1).unwrap().split(' ').next().unwrap();
    let db = Options::new().memory_limit(enough.parse().unwrap()).open(&dir.0).unwrap();
    let t = db.table("texts").unwrap();
    let mut load = t.load().unwrap();
    load.push_row(&row(7, 4 << 20)).unwrap();
    load.finish().unwrap();
    assert_eq!(t.get(&[Value::Uint(7)]).unwrap().unwrap().values(), row(7, 4 << 20));
}

#[test]
fn a_load_has_groups_sealed_when_they_have_the_memory() {
    let limit = 24 << 20;
    let dir = Directory::new("load-seals");
    let db = Options::new().memory_limit(limit).open(&dir.0).unwrap();
    let t = db.create_table("people", people()).unwrap();
    let long = Value::Text("x".repeat(1_000));
    let person = |i: u64| vec![format!("{i}").into(), Value::Uint(1), long.clone()];
    // As much as writers may have: more than loads leave them.
    for i in 0..12 {
        let rows: Vec<Vec<Value>> = (i * 1_000..(i + 1) * 1_000).map(person).collect();
        t.insert_many(&rows).unwrap();
    }
    let schema = texts("number");
    let loaded = db.create_table("texts", schema.clone()).unwrap();
    let mut load = loaded.load().unwrap();
    for i in 0..10 {
        load.push(batch(&schema, i * 1_000..(i + 1) * 1_000, 1_000)).unwrap();
        assert_within(&db, limit);
        // Writers are not held back by a load.
        t.insert(&person(100_000 + i)).unwrap();
    }
    load.finish().unwrap();
    assert_eq!((t.count().unwrap(), loaded.count().unwrap()), (12_010, 10_000));
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn an_index_that_outgrows_the_limit_ends_the_load_and_leaves_nothing() {
    let limit = 12 << 20;
    let dir = Directory::new("load-index");
    let db = Options::new().memory_limit(limit).open(&dir.0).unwrap();
    let schema = Schema::builder().field("id", DataType::U64).primary_key(["id"]).build().unwrap();
    let t = db.create_table("numbers", schema.clone()).unwrap();
    let files = dir.files();
    let mut load = t.load().unwrap();
    let mut loading = || {
        for i in 0..200u64 {
            let mut batch = Batch::empty(&schema);
            for id in i * 10_000..(i + 1) * 10_000 {
                batch.push_row(&schema, &[Value::Uint(id)]).unwrap();
            }
            load.push(batch)?;
            assert_within(&db, limit);
        }
        load.wait()
    };
    let e = loading().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    drop(load);
    assert_eq!((t.count().unwrap(), dir.files()), (0, files));
    assert_eq!((db.info().memory.loads, db.info().tables[0].index_entries), (0, 0));
    t.insert(&[Value::Uint(1)]).unwrap();
}

#[test]
fn memory_taken_beside_a_load_counts_with_it() {
    let db = Options::new().memory_limit(16 << 20).memory().unwrap();
    let t = db.create_table("people", people()).unwrap();
    let mut load = t.load().unwrap();
    load.reserve_input(1 << 20).unwrap();
    assert_eq!(db.info().memory.loads, 1 << 20);
    let e = load.reserve_input(16 << 20).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    load.push_row(&person("Ada", 36)).unwrap();
    load.finish().unwrap();
    assert_eq!((db.info().memory.loads, t.count().unwrap()), (0, 1));
}

#[test]
fn what_appenders_gather_is_counted_and_too_many_are_refused() {
    let limit = 16 << 20;
    let db = Options::new().memory_limit(limit).memory().unwrap();
    let t = db.create_table("texts", texts("number")).unwrap();
    let mut appenders = Vec::new();
    let refused = (0..200).find_map(|i| {
        let mut appender = t.appender();
        let result = appender.append(&row(i, 100_000));
        appenders.push(appender);
        result.err()
    });
    let e = refused.unwrap();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    assert_within(&db, limit);
    assert!(db.info().memory.loads > 1 << 20);
    drop(appenders);
    assert_eq!(db.info().memory.loads, 0);
    let mut appender = t.appender();
    appender.append(&row(7, 100_000)).unwrap();
    appender.finish().unwrap();
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn a_reservation_of_nonsense_is_refused() {
    let db = Options::new().memory_limit(64 << 20).memory().unwrap();
    let t = db.create_table("texts", texts("number")).unwrap();
    let mut load = t.load().unwrap();
    load.reserve_input(1 << 20).unwrap();
    for bytes in [u64::MAX, u64::MAX - 1, u64::MAX / 2, u64::MAX / 8, 1 << 40] {
        for load in [&mut load, &mut t.load().unwrap()] {
            let e = load.reserve_input(bytes).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
        }
    }
    assert_eq!(db.info().memory.loads, 1 << 20);
}

/// Segments are sized by the limit, not by what is free of it.
#[test]
fn a_batch_is_not_refused_where_its_rows_fit() {
    let schema = texts("number");
    for by_row in [true, false] {
        let dir = Directory::new("load-batch");
        let db = Options::new().memory_limit(64 << 20).open(&dir.0).unwrap();
        let t = db.create_table("texts", schema.clone()).unwrap();
        let mut load = t.load().unwrap();
        load.reserve_input(26 << 20).unwrap();
        if by_row {
            (0..8_000).for_each(|id| load.push_row(&row(id, 1_000)).unwrap());
        } else {
            load.push(batch(&schema, 0..8_000, 1_000)).unwrap();
        }
        assert_within(&db, 64 << 20);
        load.finish().unwrap();
        assert_eq!((t.count().unwrap(), db.info().memory.loads), (8_000, 0));
    }
}

#[test]
fn an_appender_that_has_flushed_holds_nothing() {
    let db = Options::new().memory_limit(64 << 20).memory().unwrap();
    let generated = Schema::builder().field("text", DataType::Text).build().unwrap();
    let keyed = db.create_table("keyed", texts("number")).unwrap();
    let generated = db.create_table("generated", generated).unwrap();
    let (mut keyed, mut generated) = (keyed.appender(), generated.appender());
    for round in 0..2 {
        for id in round * 4_000..(round + 1) * 4_000 {
            keyed.append(&row(id, 1_000)).unwrap();
            generated.append(&["x".repeat(1_000).into()]).unwrap();
        }
        assert!(db.info().memory.loads > 0);
        keyed.flush().unwrap();
        generated.flush().unwrap();
        assert_eq!(db.info().memory.loads, 0);
    }
}
