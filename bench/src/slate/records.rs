//! The records: eight fields, drawn at random from their number, so that every answer can be told
//! without the database.

use esker::{DataType, Database, Options, Schema, Value};

use crate::Result;
use crate::bench::Bench;
use crate::data::mix;

/// The table of the records.
pub(super) const TABLE: &str = "bench";

/// A random number of record `i`, another one for each field.
fn random(i: u64, field: u64) -> u64 {
    mix(mix(i) ^ field)
}

pub(super) fn is_active(i: u64) -> bool {
    random(i, 1).is_multiple_of(2)
}

/// Which of three products field `field` of record `i` names.
pub(super) fn product(i: u64, field: u64) -> u64 {
    random(i, field) % 3
}

fn contacts(i: u64) -> u64 {
    random(i, 5) % 100
}

pub(super) fn contacted(i: u64) -> Option<u64> {
    let random = random(i, 6);
    (random % 10 < 7).then_some(1_700_000_000 + (random >> 8) % 40_000_000)
}

pub(super) fn has_notes(i: u64) -> bool {
    random(i, 7).is_multiple_of(2)
}

pub(super) fn record(i: u64) -> Vec<Value> {
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

pub(super) fn id(i: u64) -> Value {
    format!("user0-{i}").into()
}

pub(super) fn schema() -> Result<Schema> {
    Ok(Schema::builder()
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
        .build()?)
}

/// A new database of `rows` records.
pub(super) fn create(bench: &Bench, place: &str, rows: u64) -> Result<Database> {
    let database = Options::new().open(bench.place(place)?)?;
    let table = database.create_table(TABLE, schema()?)?;
    let mut load = table.load()?;
    (0..rows).try_for_each(|i| load.push_row(&record(i)))?;
    load.finish()?;
    database.wait_idle()?;
    Ok(database)
}

/// The records of one size, made when first asked for; nobody changes them.
pub(super) fn database(bench: &mut Bench, size: &'static str, rows: u64) -> Result<Database> {
    if let Some(database) = bench.kept.get(size) {
        return Ok(database.clone());
    }
    let database = create(bench, size, rows)?;
    bench.kept.insert(size, database.clone());
    Ok(database)
}
