//! Fields that are computed from rows of other tables, by every way that rows come in, and beside
//! changes of these rows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use esker::{
    BackupOptions, Batch, DataType, Database, ErrorKind, ExportQuery, Options, Schema, Value,
    generated,
};
use esker_query::model::{Expr, Lookup, Operator};

use crate::fixture::Directory;

/// `n * lookup(prices, model, t).price`
fn cost() -> Expr {
    let keys = vec![Expr::field("model"), Expr::field("t")];
    let (table, field) = ("prices".into(), "price".into());
    let price = Expr::Lookup(Box::new(Lookup { table, field, keys, data_type: None }));
    Expr::field("n").binary(Operator::Multiply, price)
}

fn fields() -> esker_format::schema::SchemaBuilder {
    Schema::builder()
        .field("t", DataType::Timestamp)
        .field("model", DataType::Text)
        .field("n", DataType::I64)
        .nullable("cost", DataType::I64)
        .generated(generated(&cost()).unwrap())
}

fn make(db: &Database) {
    let prices = Schema::builder()
        .field("model", DataType::Text)
        .field("since", DataType::Timestamp)
        .field("price", DataType::I64)
        .primary_key(["model", "since"]);
    db.create_table("prices", prices.build().unwrap()).unwrap();
    db.create_table("events", fields().stream("t", []).build().unwrap()).unwrap();
    let keyed = fields().field("id", DataType::I64).primary_key(["id"]);
    db.create_table("calls", keyed.build().unwrap()).unwrap();
}

fn set_price(db: &Database, since: i64, price: i64) {
    let row = ["a".into(), Value::Timestamp(since), price.into()];
    db.table("prices").unwrap().upsert(&row).unwrap();
}

fn event(t: i64, n: i64) -> Vec<Value> {
    vec![Value::Timestamp(t), "a".into(), n.into(), Value::Null]
}

fn call(id: i64, t: i64) -> Vec<Value> {
    [event(t, 1), vec![id.into()]].concat()
}

fn memory() -> Database {
    Options::new().background(false).memory().unwrap()
}

/// The models, the numbers and the costs of all events, as they arrived.
fn events(db: &Database) -> Vec<(String, i64, Value)> {
    let mut export = db.stream("events").unwrap().export(ExportQuery::default()).unwrap();
    let mut all = Vec::new();
    while let Some(events) = export.next_batch(1_000).unwrap() {
        for (_, row) in events {
            let [_, Value::Text(model), Value::Int(n), cost] = row.values() else { panic!() };
            all.push((model.clone(), *n, cost.clone()));
        }
    }
    all
}

fn costs(db: &Database, table: &str) -> Vec<Value> {
    let rows = db.table(table).unwrap().iter().unwrap();
    rows.map(|row| row.unwrap().get("cost").unwrap().clone()).collect()
}

fn ints(of: &[i64]) -> Vec<Value> {
    of.iter().map(|n| Value::Int(*n)).collect()
}

fn batch(db: &Database, rows: &[Vec<Value>]) -> Batch {
    let schema = db.table("events").unwrap().schema();
    let mut batch = Batch::empty(&schema);
    rows.iter().for_each(|row| batch.push_row(&schema, row).unwrap());
    batch
}

#[test]
fn events_are_computed_by_every_way_that_they_come_in() {
    let db = memory();
    make(&db);
    set_price(&db, 100, 5);
    set_price(&db, 200, 7);
    let (stream, table) = (db.stream("events").unwrap(), db.table("events").unwrap());
    stream.append(&event(100, 1)).unwrap();
    let many = stream.append_many(&[event(150, 2), event(50, 3), event(199, 4)]);
    assert!(many.iter().all(Result::is_ok));
    let schema = stream.schema();
    let columns = stream.append_columns(&schema, batch(&db, &[event(200, 1), event(900, 2)]));
    assert!(columns.events.iter().all(Result::is_ok));
    table.insert(&event(100, 10)).unwrap();
    table.insert_many(&[event(100, 11), event(200, 12)]).unwrap();
    let mut load = table.load().unwrap();
    load.push(batch(&db, &[event(100, 20)])).unwrap();
    load.push_row(&event(200, 21)).unwrap();
    load.finish().unwrap();
    let mut appender = table.appender();
    appender.append(&event(100, 30)).unwrap();
    appender.flush().unwrap();
    set_price(&db, 150, 1_000);
    appender.append(&event(160, 31)).unwrap();
    appender.finish().unwrap();
    let want = [
        Some(5),
        Some(10),
        None,
        Some(20),
        Some(7),
        Some(14),
        Some(50),
        Some(55),
        Some(84),
        Some(100),
        Some(147),
        Some(150),
        Some(31_000),
    ];
    let want: Vec<Value> = want.map(|cost| cost.map_or(Value::Null, Value::Int)).to_vec();
    let found: Vec<Value> = events(&db).into_iter().map(|(_, _, cost)| cost).collect();
    assert_eq!(found, want);
    db.checkpoint().unwrap();
    assert_eq!(costs(&db, "events"), want, "nothing is computed again");
}

#[test]
fn rows_by_key_keep_what_was_looked_up_until_what_it_reads_changes() {
    let db = memory();
    make(&db);
    set_price(&db, 100, 5);
    let calls = db.table("calls").unwrap();
    for id in 0..4 {
        calls.insert(&call(id, 100)).unwrap();
    }
    set_price(&db, 100, 6);
    assert!(calls.update(&[2i64.into()], &[("n", 10i64.into())]).unwrap());
    calls.upsert(&call(1, 100)).unwrap();
    assert!(calls.update(&[3i64.into()], &[("id", 7i64.into())]).unwrap());
    let cost = |id: i64| calls.get(&[id.into()]).unwrap().unwrap().get("cost").cloned();
    assert_eq!([0, 1, 2, 7].map(cost), [5, 6, 60, 5].map(|n| Some(Value::Int(n))));
    // A row that is given whole must leave it out.
    let mut given = call(9, 100);
    given[3] = Value::Int(5);
    let e = calls.insert(&given).unwrap_err();
    assert_eq!(
        e.to_string(),
        "field \"cost\" is generated: expected nothing, or what comes of the row, 6, found 5"
    );
}

#[test]
fn a_transaction_looks_up_what_it_has_made_and_conflicts_with_others() {
    let db = memory();
    make(&db);
    set_price(&db, 100, 5);
    let transaction = db.begin().unwrap();
    let row = ["a".into(), Value::Timestamp(100), 50i64.into()];
    transaction.table("events").unwrap().insert(&event(100, 1)).unwrap();
    transaction.table("prices").unwrap().upsert(&row).unwrap();
    transaction.table("events").unwrap().insert(&event(100, 2)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(costs(&db, "events"), ints(&[5, 100]));

    let transaction = db.begin().unwrap();
    transaction.table("events").unwrap().insert(&event(100, 3)).unwrap();
    set_price(&db, 300, 1);
    let e = transaction.commit().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    assert_eq!(costs(&db, "events"), ints(&[5, 100]));
    // What looks nothing up is not in the way.
    let transaction = db.begin().unwrap();
    transaction.table("prices").unwrap().delete(&row[..2]).unwrap();
    db.table("events").unwrap().insert(&event(100, 1)).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_load_that_prices_overtake_commits_nothing() {
    let db = memory();
    make(&db);
    set_price(&db, 100, 5);
    let calls = db.table("calls").unwrap();
    let mut load = calls.load().unwrap();
    for id in 0..100_000 {
        load.push_row(&call(id, 100)).unwrap();
    }
    load.wait().unwrap();
    set_price(&db, 100, 6);
    let e = load.finish().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    assert!(e.to_string().contains("table \"prices\""), "{e}");
    assert_eq!(calls.count().unwrap(), 0);
    let mut load = calls.load().unwrap();
    load.push_row(&call(1, 100)).unwrap();
    set_price(&db, 100, 7);
    load.finish().unwrap();
    assert_eq!(costs(&db, "calls"), ints(&[7]), "a small one is a commit like others");
}

/// Each change of the price is one commit with a mark among the events: every event has the price
/// of the last mark before it.
#[test]
fn what_is_looked_up_is_as_of_the_commit_beside_changes() {
    let db = Options::new().memory().unwrap();
    make(&db);
    set_price(&db, 0, 0);
    let is_over = AtomicBool::new(false);
    let change = |price: i64| {
        let row = ["a".into(), Value::Timestamp(0), price.into()];
        let mark = [Value::Timestamp(5), "mark".into(), price.into(), Value::Null];
        loop {
            let within = db.begin().unwrap();
            within.table("prices").unwrap().upsert(&row).unwrap();
            within.table("events").unwrap().insert(&mark).unwrap();
            match within.commit() {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => break assert!(done.is_ok()),
            }
        }
    };
    let write = |way: usize| {
        let (stream, table) = (db.stream("events").unwrap(), db.table("events").unwrap());
        let mut appender = table.appender();
        while !is_over.load(Ordering::Relaxed) {
            let two = [event(9, 1), event(8, 1)];
            match way {
                0 => assert!(stream.append(&two[0]).is_ok()),
                1 => assert!(stream.append_many(&two).iter().all(Result::is_ok)),
                2 => {
                    let added = stream.append_columns(&stream.schema(), batch(&db, &two));
                    assert!(added.events.iter().all(Result::is_ok));
                }
                3 => table.insert_many(&two).unwrap(),
                4 => {
                    appender.append(&two[0]).unwrap();
                    appender.flush().unwrap();
                }
                _ => {
                    let within = db.begin().unwrap();
                    within.table("events").unwrap().insert_many(&two).unwrap();
                    let e = within.commit().err();
                    assert!(e.is_none_or(|e| e.kind() == ErrorKind::Conflict));
                }
            }
        }
    };
    thread::scope(|scope| {
        (0..6).for_each(|way| drop(scope.spawn(move || write(way))));
        (1..=150).for_each(change);
        is_over.store(true, Ordering::Relaxed);
    });
    let (mut price, mut marks) = (0, 0);
    for (model, n, cost) in events(&db) {
        if model == "mark" {
            (price, marks) = (n, marks + 1);
            assert_eq!(cost, Value::Null);
        } else {
            assert_eq!(cost, Value::Int(n * price), "after mark {marks}");
        }
    }
    assert_eq!(marks, 150);
}

#[test]
fn it_is_kept_by_reopening_checkpoints_backups_and_saving() {
    let [dir, copy, saved] = ["lookups"; 3].map(Directory::new);
    let open = |path: &std::path::Path| Options::new().open(path).unwrap();
    let db = open(&dir.0);
    make(&db);
    set_price(&db, 100, 5);
    db.table("events").unwrap().insert(&event(100, 1)).unwrap();
    db.table("calls").unwrap().insert(&call(1, 100)).unwrap();
    set_price(&db, 100, 6);
    db.checkpoint().unwrap();
    db.table("events").unwrap().insert(&event(100, 1)).unwrap();
    db.backup(&copy.0, &BackupOptions::default(), &mut |_, _| ()).unwrap();
    db.close().unwrap();
    let db = memory();
    make(&db);
    set_price(&db, 100, 5);
    db.table("events").unwrap().insert(&event(100, 1)).unwrap();
    db.table("calls").unwrap().insert(&call(1, 100)).unwrap();
    set_price(&db, 100, 6);
    db.table("events").unwrap().insert(&event(100, 1)).unwrap();
    db.save(&saved.0).unwrap();
    for path in [&dir.0, &copy.0, &saved.0] {
        let db = open(path);
        assert_eq!(costs(&db, "events"), ints(&[5, 6]), "{path:?}");
        assert_eq!(costs(&db, "calls"), ints(&[5]), "{path:?}");
        set_price(&db, 100, 8);
        db.table("events").unwrap().insert(&event(100, 1)).unwrap();
        assert_eq!(costs(&db, "events"), ints(&[5, 6, 8]), "{path:?}");
        let e = db.drop_table("prices").unwrap_err();
        assert!(e.to_string().contains("field \"cost\" of table"), "{e}");
        db.close().unwrap();
    }
}

/// More rows with the same begin of a key than are kept are found, too.
#[test]
fn rows_are_found_among_many() {
    let db = memory();
    make(&db);
    let mut load = db.table("prices").unwrap().load().unwrap();
    for since in 0..5_000i64 {
        load.push_row(&["a".into(), Value::Timestamp(since * 10), since.into()]).unwrap();
    }
    load.finish().unwrap();
    let stream = db.stream("events").unwrap();
    for t in [0i64, 9, 10, 25_007, 49_990, 90_000] {
        stream.append(&event(t, 1)).unwrap();
    }
    stream.append(&event(-1, 1)).unwrap();
    let mut want = ints(&[0, 0, 1, 2_500, 4_999, 4_999]);
    want.push(Value::Null);
    assert_eq!(costs(&db, "events"), want);
}
