//! Rows that are passed over: those that have died before the first of a queue, those before an
//! offset, and those before the first by key.

use esker::{ChangeOptions, DataType, Database, Options, Schema, Value};

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::Microseconds;
use crate::rows::{Row, ask, row};
use crate::timing;

const REPEATS: usize = 10;

/// The rows of a queue that were done before.
const DONE: i64 = 400_000;

/// The rows of a table that is in the order of no key, and how many lie before a page.
const ROWS: i64 = 1_000_000;
const SKIPPED: i64 = 50_000;

/// The next of a queue, behind dead rows.
pub(super) const QUEUE: Row = row(
    "queue",
    &[
        ask("rows in memory", AtMost(1_000.0), Microseconds, ""),
        ask("in segments", AtMost(1_000.0), Microseconds, ""),
        ask("by (st)", AtMost(1_000.0), Microseconds, ""),
        ask("by (st, id)", AtMost(1_000.0), Microseconds, ""),
    ],
    queue,
);

/// Ten rows behind an offset, and the first row by key.
pub(super) const OFFSET: Row = row(
    "offset",
    &[
        ask("50,000 by an index", AtMost(5_000.0), Microseconds, ""),
        ask("the first by the key", AtMost(1_000.0), Microseconds, ""),
    ],
    offset,
);

fn queue(bench: &mut Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let kinds: [(bool, &[&str]); 4] =
        [(false, &[]), (true, &[]), (true, &["st"]), (true, &["st", "id"])];
    for (is_loaded, index) in kinds {
        let dir = bench.place("queue")?;
        let database = Options::new().background(false).open(&dir)?;
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("st", DataType::Text)
            .primary_key(["id"]);
        let schema =
            if index.is_empty() { schema } else { schema.index("i", index.iter().copied()) };
        let rows = (0..=DONE).map(|id| vec![Value::Int(id), "new".into()]);
        fill(&database, "q", schema.build()?, is_loaded, rows)?;
        let done = esker_sql::parse_statement(&format!("DELETE FROM q WHERE id < {DONE}"))?;
        esker_sql::run(&database, &done, &ChangeOptions::default())?;
        let next = esker_sql::parse("SELECT id FROM q WHERE st = 'new' ORDER BY id LIMIT 1")?;
        expect(&database, &next, DONE)?;
        let timing = timing::repeat(REPEATS, || database.query(&next))?;
        outcome = outcome.and(timing.median, None);
        database.close()?;
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(outcome.note(format!("behind {DONE} dead rows")))
}

fn offset(bench: &mut Bench) -> Result<Outcome> {
    let dir = bench.place("offset")?;
    let database = Options::new().open(&dir)?;
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("k", DataType::I64)
        .primary_key(["id"])
        .index("k", ["k"])
        .build()?;
    let rows =
        (0..ROWS).map(|i| vec![Value::Int(i * 7_919 % ROWS), Value::Int(i * 104_729 % ROWS)]);
    fill(&database, "t", schema, true, rows)?;
    let mut outcome = Outcome::default();
    let page = format!("SELECT k FROM t ORDER BY k LIMIT 10 OFFSET {SKIPPED}");
    for (sql, first) in [(&*page, SKIPPED), ("SELECT id FROM t ORDER BY id LIMIT 1", 0)] {
        let query = esker_sql::parse(sql)?;
        expect(&database, &query, first)?;
        outcome = outcome.and(timing::repeat(REPEATS, || database.query(&query))?.median, None);
    }
    database.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(outcome)
}

/// A table with rows that are loaded, or written as a statement writes them.
fn fill(
    database: &Database,
    name: &str,
    schema: Schema,
    is_loaded: bool,
    rows: impl Iterator<Item = Vec<Value>>,
) -> Result<()> {
    let table = database.create_table(name, schema)?;
    if is_loaded {
        let mut load = table.load()?;
        for row in rows {
            load.push_row(&row)?;
        }
        load.finish()?;
        return Ok(());
    }
    let rows: Vec<_> = rows.collect();
    for rows in rows.chunks(10_000) {
        table.insert_many(rows)?;
    }
    Ok(())
}

/// An error unless the first value of the answer is this one.
fn expect(database: &Database, query: &esker::Query, first: i64) -> Result<()> {
    let found = database.query(query)?.to_rows();
    match found.first().and_then(|row| row.first()) {
        Some(Value::Int(value)) if *value == first => Ok(()),
        other => Err(format!("{query}: {other:?} comes first, not {first}").into()),
    }
}
