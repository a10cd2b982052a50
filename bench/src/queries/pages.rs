//! A page of a hundred rows by a cursor that lies deep in the answer.

use esker::{PageOptions, Value};

use super::users::Which;
use crate::Result;
use crate::bench::{Bench, segments};
use crate::outcome::Goal::AtMost;
use crate::outcome::Unit::Microseconds;
use crate::outcome::{Measure, Outcome};
use crate::rows::{Row, ask, row};
use crate::timing;

const REPEATS: usize = 10;
const PAGE_ROWS: u64 = 100;
/// One row in so many of the table comes before the page: two thirds of the rows that pass.
const DEPTH: u64 = 10;
const SQL: &str = "SELECT username, age FROM users WHERE active = false ORDER BY age";

/// The row of the table.
pub(super) const DEEP: Row = row("page-deep", &[ask("", AtMost(100.0), Microseconds, "")], measure);

fn measure(bench: &mut Bench) -> Result<Outcome> {
    let mut users = bench.users.take().unwrap_or_default();
    let database = users.table(bench, Which::Indexed);
    bench.users = Some(users);
    let database = database?;
    let skipped = bench.rows / DEPTH;
    let before = esker_sql::parse(&format!("{SQL} LIMIT {skipped}"))?;
    let cursor = database.page(&before, &PageOptions::default())?.next;
    let query = esker_sql::parse(&format!("{SQL} LIMIT {PAGE_ROWS}"))?;
    let options = PageOptions { cursor, ..PageOptions::default() };
    let ages = |rows: Vec<Vec<Value>>| -> Vec<Value> {
        rows.into_iter().filter_map(|mut row| row.pop()).collect()
    };
    let found = ages(database.page(&query, &options)?.result.to_rows());
    let wanted = esker_sql::parse(&format!("{SQL} LIMIT {PAGE_ROWS} OFFSET {skipped}"))?;
    if found != ages(database.query(&wanted)?.to_rows()) {
        return Err(format!("a page has other rows than the answer: {found:?}").into());
    }
    let timing = timing::repeat(REPEATS, || database.page(&query, &options))?;
    let note = format!("least {:.0} µs, behind {skipped} rows", timing.least);
    let goal = AtMost(super::between(bench.rows, [100.0, 200.0]));
    let mut outcome = Outcome::default();
    outcome.measures.push(Measure { value: timing.median, limit: None, goal: Some(goal) });
    Ok(outcome.segments(segments(&database, "users")).note(note))
}
