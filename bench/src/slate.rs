//! `esker-bench slate`: a hundred thousand records of eight fields, one of them indexed, asked the
//! questions of a published table of another database, each in a twentieth of its time. Of the
//! fifteen one is asked twice there, and once here.
//!
//! A question's time has all of it: the snapshot, the plan, the whole answer, and letting go of it.

use esker::{DataType, Database, Options, Schema, Value};

use crate::Result;
use crate::bench::{Bench, segments};
use crate::data::mix;
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::Microseconds;
use crate::rows::{Row, ask, row};
use crate::timing;

const REPEATS: usize = 10;
const GETS: u64 = 1_000;

/// A question: a twentieth of the published milliseconds is asked for.
macro_rules! question {
    ($name:literal, $published:literal, $sql:literal, $is_meant:expr, $page:expr, $order:expr) => {
        row($name, &[ask("", AtMost($published * 1_000.0 / 20.0), Microseconds, "")], |bench| {
            measure(bench, $sql, $is_meant, $page, $order)
        })
    };
}

/// All rows that are meant, and a page of them.
const ALL: (usize, usize) = (0, usize::MAX);

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    question!("all", 111.0, "SELECT * FROM bench", |_| true, ALL, false),
    question!("active", 90.0, "SELECT * FROM bench WHERE status = 'active'", is_active, ALL, false),
    question!(
        "product",
        104.0,
        "SELECT * FROM bench WHERE product_recommendation1 = 'ProductA'",
        |i| product(i, 2) == 0,
        ALL,
        false
    ),
    question!(
        "and",
        91.0,
        "SELECT * FROM bench WHERE status = 'active' AND product_recommendation1 = 'ProductA' \
         AND product_recommendation2 = 'ProductX'",
        |i| is_active(i) && product(i, 2) == 0 && product(i, 3) == 0,
        ALL,
        false
    ),
    question!(
        "sort-page",
        137.0,
        "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC \
         LIMIT 50 OFFSET 100",
        is_active,
        (100, 50),
        true
    ),
    question!(
        "sort",
        140.0,
        "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC",
        is_active,
        ALL,
        true
    ),
    question!(
        "take",
        91.0,
        "SELECT * FROM bench WHERE status = 'active' LIMIT 200",
        is_active,
        (0, 200),
        false
    ),
    question!(
        "sort-take",
        140.0,
        "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC LIMIT 200",
        is_active,
        (0, 200),
        true
    ),
    question!(
        "null",
        103.0,
        "SELECT * FROM bench WHERE last_contacted_at IS NULL",
        |i| contacted(i).is_none(),
        ALL,
        false
    ),
    question!(
        "null-notes",
        105.0,
        "SELECT * FROM bench WHERE notes IS NULL",
        |i| !has_notes(i),
        ALL,
        false
    ),
    question!(
        "not-null",
        112.0,
        "SELECT * FROM bench WHERE last_contacted_at IS NOT NULL",
        |i| contacted(i).is_some(),
        ALL,
        false
    ),
    question!(
        "active-null",
        93.0,
        "SELECT * FROM bench WHERE status = 'active' AND notes IS NULL",
        |i| is_active(i) && !has_notes(i),
        ALL,
        false
    ),
    row(
        "get-1000",
        &[ask("", AtMost(3.3 * 1_000.0 / 20.0), Microseconds, "(3 dependent loads each)")],
        gets,
    ),
    question!("two-fields", 123.0, "SELECT name, status FROM bench", |_| true, ALL, false),
];

/// A random number of record `i`, another one for each field.
fn random(i: u64, field: u64) -> u64 {
    mix(mix(i) ^ field)
}

fn is_active(i: u64) -> bool {
    random(i, 1).is_multiple_of(2)
}

fn product(i: u64, field: u64) -> u64 {
    random(i, field) % 3
}

fn contacts(i: u64) -> u64 {
    random(i, 5) % 100
}

fn contacted(i: u64) -> Option<u64> {
    let random = random(i, 6);
    (random % 10 < 7).then_some(1_700_000_000 + (random >> 8) % 40_000_000)
}

fn has_notes(i: u64) -> bool {
    random(i, 7).is_multiple_of(2)
}

fn record(i: u64) -> Vec<Value> {
    let named = |names: [&'static str; 3], field| -> Value {
        let at = usize::try_from(product(i, field)).unwrap_or_default();
        names.get(at).copied().unwrap_or_default().into()
    };
    let seconds = |s: u64| Value::Timestamp(s.cast_signed() * 1_000_000);
    vec![
        id(i),
        format!("Company-0-{i}").into(),
        if is_active(i) { "active" } else { "rejected" }.into(),
        Value::Int(contacts(i).cast_signed()),
        named(["ProductA", "ProductB", "ProductC"], 2),
        named(["ProductX", "ProductY", "ProductZ"], 3),
        named(["Widget1", "Widget2", "Widget3"], 4),
        contacted(i).map_or(Value::Null, seconds),
        if has_notes(i) { format!("Note for 0-{i}").into() } else { Value::Null },
    ]
}

fn id(i: u64) -> Value {
    format!("user0-{i}").into()
}

/// The records, made when first asked for.
fn database(bench: &mut Bench) -> Result<Database> {
    if let Some(database) = bench.kept.get("slate") {
        return Ok(database.clone());
    }
    let database = Options::new().open(bench.place("slate")?)?;
    let schema = Schema::builder()
        .field("id", DataType::Text)
        .field("name", DataType::Text)
        .field("status", DataType::Text)
        .field("contacts_count", DataType::I64)
        .field("product_recommendation1", DataType::Text)
        .field("product_recommendation2", DataType::Text)
        .field("product_recommendation3", DataType::Text)
        .nullable("last_contacted_at", DataType::Timestamp)
        .nullable("notes", DataType::Text)
        .primary_key(["id"])
        .index("by_status", ["status"])
        .build()?;
    let table = database.create_table("bench", schema)?;
    let mut load = table.load()?;
    (0..bench.rows).try_for_each(|i| load.push_row(&record(i)))?;
    load.finish()?;
    database.wait_idle()?;
    bench.kept.insert("slate", database.clone());
    Ok(database)
}

fn measure(
    bench: &mut Bench,
    sql: &str,
    is_meant: fn(u64) -> bool,
    (skip, take): (usize, usize),
    is_sorted: bool,
) -> Result<Outcome> {
    let database = database(bench)?;
    let query = esker_sql::parse(sql)?;
    let found = database.query(&query)?;
    let meant = (0..bench.rows).filter(|i| is_meant(*i)).count();
    let wanted = meant.saturating_sub(skip).min(take);
    let rows = found.to_rows();
    let counts: Vec<_> = rows.iter().filter_map(|row| row.get(3).cloned()).collect();
    let is_ordered =
        !is_sorted || counts.is_sorted_by(|a, b| a.as_ref().compare(b.as_ref()).is_ge());
    if rows.len() != wanted || !is_ordered {
        return Err(format!("wrong answer to {sql}: {} rows, not {wanted}", rows.len()).into());
    }
    let timing = timing::repeat(REPEATS, || database.query(&query))?;
    Ok(Outcome::default()
        .and(timing.median, None)
        .segments(segments(&database, "bench"))
        .note(format!("least {:.0} µs, {wanted} rows", timing.least)))
}

/// A thousand records by their keys, within one snapshot.
fn gets(bench: &mut Bench) -> Result<Outcome> {
    let database = database(bench)?;
    let step = (bench.rows / GETS).max(1);
    let keys: Vec<[Value; 1]> = (0..GETS).map(|n| [id(n * step % bench.rows)]).collect();
    for (n, key) in (0..GETS).zip(&keys) {
        let found = database.table("bench")?.get(key)?;
        if found.as_ref().map(|row| row.values()) != Some(&record(n * step % bench.rows)) {
            return Err(format!("record {n} is another").into());
        }
    }
    let timing = timing::repeat(REPEATS, || {
        let snapshot = database.snapshot()?;
        let table = snapshot.table("bench")?;
        keys.iter().try_for_each(|key| table.get(key).map(drop))
    })?;
    let limit = bench.machine.load_ns * 3.0 * GETS as f64 / 1e3;
    Ok(Outcome::of(timing.median, limit).note(format!("least {:.0} µs", timing.least)))
}
