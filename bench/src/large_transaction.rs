//! `esker-bench txn --only large`: one transaction that changes ten times as many rows as there
//! are, ten million by default, within a memory limit of its own.

use std::time::Instant;

use esker::{DataType, Durability, Options, TransactionOptions, Value};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::outcome::Outcome;
use crate::process::Resident;

const TABLE: &str = "large";
/// What the changes of the transaction may take.
const LIMIT_BYTES: u64 = 512 << 20;
/// Rows of one call.
const CALL_ROWS: i64 = 10_000;

/// Inserts, changes a tenth of the rows, removes another, asks, and commits.
pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.cast_signed() * 10;
    let dir = bench.place("large")?;
    let database = Options::new().durability(Durability::Sync).open(&dir)?;
    let fields = [("id", DataType::I64), ("cents", DataType::I64), ("note", DataType::Text)];
    database.create_table(TABLE, schema(&fields, &["id"])?)?;
    let before = Resident::now()?;
    let start = Instant::now();
    let transaction = database.begin_with(TransactionOptions::new().memory_limit(LIMIT_BYTES))?;
    let within = transaction.table(TABLE)?;
    let mut most = 0;
    for first in (0..rows).step_by(usize::try_from(CALL_ROWS)?) {
        let row = |id: i64| -> Vec<Value> {
            vec![id.into(), 100i64.into(), format!("note of row {id}").into()]
        };
        within.insert_many(&(first..(first + CALL_ROWS).min(rows)).map(row).collect::<Vec<_>>())?;
        most = most.max(Resident::now()?.since(before).own);
    }
    let tenth = rows / 10;
    for id in 0..tenth {
        within.update(&[id.into()], &[("cents", 200i64.into())])?;
    }
    let bound: Vec<Value> = vec![(rows - tenth).into()];
    within.delete_range(bound..)?;
    most = most.max(Resident::now()?.since(before).own);
    let changed = start.elapsed().as_secs_f64();
    let query = esker_sql::parse(&format!("SELECT count(*), sum(cents) FROM {TABLE}"))?;
    let wanted = format!("{} {}", rows - tenth, (rows - tenth) * 100 + tenth * 100);
    let told = |rows: &[Vec<Value>]| match rows {
        [row] => row.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    };
    let found = told(&transaction.query(&query)?.to_rows());
    let committing = Instant::now();
    transaction.commit()?;
    let committed = committing.elapsed().as_secs_f64();
    let after = told(&database.query(&query)?.to_rows());
    if found != wanted || after != wanted {
        return Err(format!("{found:?} and then {after:?}, expected {wanted:?}").into());
    }
    let rate = rows as f64 / (changed + committed);
    let note = format!("{changed:.1} s of changes, {committed:.1} s to commit");
    let outcome = Outcome::default().and(rate, None).and(most as f64, Some(LIMIT_BYTES as f64));
    Ok(outcome.note(note).segments(segments(&database, TABLE)))
}
