//! Rows in many small requests beside the same rows in ten large ones: no structure is made again
//! for a request.

use std::time::Duration;

use crate::user_rows as users;
use esker::{Durability, Options};

use super::users::indexes;
use crate::Result;
use crate::bench::Bench;
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::Times;
use crate::process::CpuTime;
use crate::rows::{Row, ask, row};

/// The rows of a small request.
const SMALL_ROWS: u64 = 200;
/// How many large ones there are.
const LARGE: u64 = 10;
/// More rows than this are not written.
const ROWS_MAX: u64 = 10_000_000;
const LATE: Duration = Duration::from_secs(1);

/// The row of the table.
pub(super) const REQUESTS: Row = row(
    "requests",
    &[ask("of 200 rows, 12 indexes, Async: time on the CPU", AtMost(1.5), Times, "(10 requests)")],
    measure,
);

fn measure(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS_MAX);
    let large = cpu_seconds(bench, rows, rows.div_ceil(LARGE))?;
    let small = cpu_seconds(bench, rows, SMALL_ROWS)?;
    let note = format!("{rows} rows: {small:.2} s on the CPU, in {LARGE} requests {large:.2} s");
    Ok(Outcome::default().and(small / large, Some(1.0)).note(note))
}

/// How long processors work for rows in requests of some size, maintenance and the indexes of what
/// it seals included; making the values is not.
fn cpu_seconds(bench: &Bench, rows: u64, of_request: u64) -> Result<f64> {
    let dir = bench.place("users-requests")?;
    let durability = Durability::Async { at_most: LATE };
    let database = Options::new().durability(durability).open(&dir)?;
    let table = database.create_table("users", users::schema()?)?;
    database.create_indexes("users", &indexes())?;
    let cpu = CpuTime::of_process()?;
    let (mut first, mut made) = (0, 0.0);
    while first < rows {
        let end = rows.min(first + of_request);
        let making = CpuTime::of_thread()?;
        let mut request = Vec::new();
        for i in first..end {
            request.push(users::row(i64::try_from(i)?));
        }
        made += making.seconds()?;
        table.insert_many(&request)?;
        first = end;
    }
    database.wait_idle()?;
    let seconds = cpu.seconds()? - made;
    let count = database.query(&esker_sql::parse("SELECT count(*) FROM users")?)?.to_rows();
    if count.first().and_then(|row| row.first()).map(ToString::to_string) != Some(rows.to_string())
    {
        return Err(format!("{count:?} rows, not {rows}").into());
    }
    database.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(seconds)
}
