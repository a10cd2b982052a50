//! Scenarios of snapshots that are held while rows change again and again: versions that nobody
//! sees are dropped between those that somebody does.

use esker::{DataType, Database, ErrorKind, Options, PageOptions, Query, Schema, Table, Value};

use super::directed::{Outcome, Scenario, machine, open, said};

pub(super) const SCENARIOS: [Scenario; 4] = [
    ("snapshots of a row that changes again and again", row_that_changes),
    ("a snapshot of a row that comes and goes", row_that_comes_and_goes),
    ("a transaction that is older than a row which came and went", row_that_came_and_went),
    ("more cursors than snapshots that are held", more_cursors_than_are_held),
];

fn row(id: u64, value: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Uint(value)]
}

fn key(id: u64) -> [Value; 1] {
    [Value::Uint(id)]
}

/// A table whose rows are sealed some at a time.
fn filled() -> Result<(Database, Table), String> {
    let options = Options::new().background(false).group_limit(7, 1 << 20).small_group_limit(0);
    let db = open(options, &machine())?;
    let fields = Schema::builder().field("id", DataType::U64).field("value", DataType::U64);
    let schema = fields.primary_key(["id"]).build().map_err(|e| e.to_string())?;
    let table = db.create_table("rows", schema).map_err(said)?;
    (0..4).try_for_each(|id| table.upsert(&row(id, 0)).map(drop)).map_err(said)?;
    Ok((db, table))
}

fn row_that_changes() -> Outcome {
    let (db, table) = filled()?;
    let mut held = Vec::new();
    for value in 1..60 {
        table.upsert(&row(0, value)).map_err(said)?;
        if [5, 6, 20, 33].contains(&value) {
            held.push((db.snapshot().map_err(said)?, value));
        }
        if value % 9 == 0 {
            db.wait_idle().map_err(said)?;
        }
        for (snapshot, value) in &held {
            let found = snapshot.table("rows").and_then(|t| t.get(&key(0))).map_err(said)?;
            let found = found.map(|row| row.values().to_vec());
            if found != Some(row(0, *value)) {
                return Err(format!("a snapshot of value {value} finds {found:?}"));
            }
        }
    }
    Ok(())
}

fn row_that_comes_and_goes() -> Outcome {
    let (db, table) = filled()?;
    let mut held = vec![(db.snapshot().map_err(said)?, Some(row(0, 0)))];
    for value in 1..30 {
        if !table.delete(&key(0)).map_err(said)? {
            return Err("the row was not there".to_owned());
        }
        if value % 10 == 3 {
            held.push((db.snapshot().map_err(said)?, None));
        }
        table.insert(&row(0, value)).map_err(said)?;
        if value % 4 == 0 {
            db.wait_idle().map_err(said)?;
        }
        for (snapshot, expected) in &held {
            let rows = snapshot.table("rows").map_err(said)?;
            let found = rows.get(&key(0)).map_err(said)?.map(|row| row.values().to_vec());
            let count = rows.count().map_err(said)?;
            if found != *expected || count != 3 + u64::from(expected.is_some()) {
                return Err(format!("a snapshot of {expected:?} finds {found:?} of {count} rows"));
            }
        }
    }
    Ok(())
}

fn row_that_came_and_went() -> Outcome {
    let (db, table) = filled()?;
    let transaction = db.begin().map_err(said)?;
    table.insert(&row(9, 1)).map_err(said)?;
    table.delete(&key(9)).map_err(said)?;
    (1..20).try_for_each(|value| table.upsert(&row(0, value)).map(drop)).map_err(said)?;
    db.wait_idle().map_err(said)?;
    transaction.table("rows").and_then(|t| t.insert(&row(9, 2))).map_err(said)?;
    match transaction.commit() {
        Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
        Err(e) => Err(said(e)),
        Ok(_) => Err("a key that others have changed since was taken".to_owned()),
    }
}

/// The pages of a snapshot: 256 of them are held.
fn more_cursors_than_are_held() -> Outcome {
    let (db, _) = filled()?;
    let query = Query { limit: Some(2.into()), ..Query::table("rows") };
    let page = |cursor| {
        let options = PageOptions { cursor, snapshot: true, ..PageOptions::default() };
        db.page(&query, &options)
    };
    let firsts: Result<Vec<_>, _> = (0..300).map(|_| page(None)).collect();
    let (mut gone, mut answered) = (0, 0);
    for first in firsts.map_err(said)? {
        match page(first.next) {
            Ok(_) => answered += 1,
            Err(e) if e.kind() == ErrorKind::SnapshotGone => gone += 1,
            Err(e) => return Err(said(e)),
        }
    }
    match (gone, answered) {
        (44, 256) => Ok(()),
        other => Err(format!("snapshots that are gone, and held: {other:?}")),
    }
}
