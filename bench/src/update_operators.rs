//! Update operators on documents of 1 KB, one thread: the time from the call to the commit's
//! acknowledgement, Async, for the slowest operator.

use std::time::{Duration, Instant};

use esker::{DataType, Durability, Modified, Options, Schema, Table, Update, Value};

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Outcome;

/// Documents that are changed in turn.
const DOCUMENTS: i64 = 1_000;
/// Changes of an operator.
const CHANGES: i64 = 20_000;
/// How much of the log may be unsynced.
const LATE: Duration = Duration::from_secs(1);

/// A document of about 1 KB: names, numbers, nested objects and arrays.
fn document(id: i64) -> Result<Value> {
    let items: Vec<String> = (0..8)
        .map(|i| format!(r#"{{"article": "article {id} {i}", "qty": {i}, "price": 12.{i}5}}"#))
        .collect();
    let text = format!(
        r#"{{"customer": {{"name": "customer {id}", "city": "Bonn", "visits": 3}},
            "tags": ["new", "paid", "{id}"], "items": [{}], "note": "{}", "total": 100}}"#,
        items.join(","),
        "x".repeat(400),
    );
    Ok(Value::json(&text)?)
}

/// The operators. Those that would change nothing the second time have an opposite, or grow what
/// one before them made smaller.
fn updates() -> Vec<(&'static str, [Update; 2])> {
    let twice = |update: Update| [update.clone(), update];
    vec![
        (
            "set",
            [
                Update::new().set("doc.customer.name", "Ada"),
                Update::new().set("doc.customer.name", "Kurt"),
            ],
        ),
        ("unset", [Update::new().unset("doc.total"), Update::new().set("doc.total", 100)]),
        ("increment", twice(Update::new().increment("doc.customer.visits", 1))),
        ("multiply", twice(Update::new().multiply("doc.items.3.qty", -1))),
        ("min", [Update::new().min("doc.total", 1), Update::new().set("doc.total", 100)]),
        ("max", [Update::new().max("doc.total", 999), Update::new().set("doc.total", 100)]),
        (
            "rename",
            [
                Update::new().rename("doc.customer.city", "doc.customer.town"),
                Update::new().rename("doc.customer.town", "doc.customer.city"),
            ],
        ),
        (
            "push, pull",
            [Update::new().push("doc.tags", "late"), Update::new().pull("doc.tags", "late")],
        ),
        (
            "add_to_set, pop",
            [Update::new().add_to_set("doc.tags", "once"), Update::new().pop("doc.tags")],
        ),
        ("current_time", twice(Update::new().current_time("doc.customer.seen"))),
    ]
}

/// Nanoseconds of a change by one operator; those that do not change anything are an error.
fn each_ns(table: &Table, [odd, even]: &[Update; 2]) -> Result<f64> {
    let start = Instant::now();
    for i in 0..CHANGES {
        let update = if (i / DOCUMENTS) % 2 == 0 { odd } else { even };
        if !matches!(table.apply(&[(i % DOCUMENTS).into()], update)?, Modified::Changed { .. }) {
            return Err(format!("{update:?} changed nothing").into());
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / CHANGES as f64)
}

/// The slowest operator, and what all took.
pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let dir = bench.place("documents")?;
    let database = Options::new().durability(Durability::Async { at_most: LATE }).open(&dir)?;
    let schema = Schema::builder().field("id", DataType::I64).field("doc", DataType::Json);
    let table = database.create_table("documents", schema.primary_key(["id"]).build()?)?;
    for id in 0..DOCUMENTS {
        table.insert(&[id.into(), document(id)?])?;
    }
    let mut all = Vec::new();
    for (name, update) in updates() {
        all.push((each_ns(&table, &update)?, name));
    }
    let note: Vec<String> = all.iter().map(|(ns, name)| format!("{name} {ns:.0}")).collect();
    let slowest = all.iter().map(|(ns, _)| *ns).fold(0.0, f64::max);
    drop(table);
    database.close()?;
    Ok(Outcome::default().and(slowest, None).note(format!("ns: {}", note.join("; "))))
}
