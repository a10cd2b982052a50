//! A query for lengths leaves out the zones in which an earlier one found none.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use esker::{Database, Options, Value};
use esker_sql::Sql;

const ZONES: i64 = 6;
const ZONE_ROWS: i64 = 8_192;

/// Texts whose length grows with the row: `é` repeated, one more each zone; a null each tenth row.
fn database() -> Database {
    let db = Options::new().segment_limit(6 * 8_192).memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, name text NULL, raw bytes)", ()).unwrap();
    let table = db.table("t").unwrap();
    let rows: Vec<Vec<Value>> = (0..ZONES * ZONE_ROWS)
        .map(|id| {
            let letters = usize::try_from(3 + id / ZONE_ROWS).unwrap();
            let name = format!("{}{id:05}", "é".repeat(letters));
            let name = if id % 10 == 0 { Value::Null } else { name.as_str().into() };
            let raw: Vec<u8> = id.to_le_bytes().into_iter().cycle().take(letters).collect();
            vec![id.into(), name, raw.into()]
        })
        .collect();
    let mut load = table.load().unwrap();
    rows.iter().for_each(|row| load.push_row(row).unwrap());
    load.finish().unwrap();
    db.wait_idle().unwrap();
    db
}

fn pruned(db: &Database, query: &str) -> (u64, u64, u64) {
    let explained = db.explain(&esker_sql::parse(query).unwrap()).unwrap();
    let met = explained.met.unwrap();
    (met.zones, met.zones_pruned, met.rows_passed)
}

#[test]
fn zones_without_the_length_are_left_out_once_it_is_known() {
    let db = database();
    let zones = ZONES.unsigned_abs();
    for (condition, rows) in [
        ("length(name) = 9", 7_373),
        ("length(name) > 11", 14_745),
        ("length(name) <> 9", 44_236 - 7_373),
        ("octet_length(name) = 5", 0),
        ("length(raw) BETWEEN 4 AND 5", 16_384),
        ("octet_length(raw) = 3", 8_192),
    ] {
        let query = format!("SELECT id FROM t WHERE {condition}");
        let first = pruned(&db, &query);
        let second = pruned(&db, &query);
        assert_eq!((first.0, first.2), (zones, rows), "{condition}");
        assert_eq!((second.0, second.2), (zones, rows), "{condition}");
        let least = if condition.contains("<>") { 1 } else { 3 };
        assert!(second.1 >= least, "{condition}: {second:?}");
    }
}

#[test]
fn lengths_learned_in_growing_batches_are_of_whole_zones() {
    let db = database();
    let query = "SELECT id FROM t WHERE length(name) = 99 LIMIT 3";
    assert_eq!(pruned(&db, query), (6, 0, 0));
    assert_eq!(pruned(&db, query), (6, 6, 0));
}

#[test]
fn rows_that_came_later_are_found() {
    let db = database();
    let query = "SELECT id FROM t WHERE length(name) = 77";
    assert_eq!(pruned(&db, query).2, 0);
    let long = "x".repeat(77);
    db.sql(&format!("INSERT INTO t VALUES (-1, '{long}', x'00')"), ()).unwrap();
    db.sql(&format!("UPDATE t SET name = '{long}' WHERE id = 17"), ()).unwrap();
    assert_eq!(pruned(&db, query).2, 2);
    db.checkpoint().unwrap();
    assert_eq!(pruned(&db, query).2, 2);
}
