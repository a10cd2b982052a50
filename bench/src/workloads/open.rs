//! How long it takes to open the large table: after a clean close, after a kill amid inserts, and
//! after a kill right at the end of a load. Opening ends when a first row has been read.

use std::path::Path;

use crate::Result;
use crate::bench::{Bench, TABLE, check_big};
use crate::outcome::Outcome;
use crate::process::ChildProcess;

/// Opens in a fresh process; seconds.
fn open(dir: &Path) -> Result<f64> {
    let mut child = ChildProcess::start(&["open", &dir.to_string_lossy(), TABLE])?;
    let numbers = child.numbers()?;
    child.finish()?;
    numbers.first().copied().ok_or_else(|| "a child process said nothing".into())
}

pub(crate) fn clean(bench: &mut Bench) -> Result<Outcome> {
    let (dir, rows) = bench.closed_big()?;
    let seconds = open(&dir)?;
    let (database, table) = bench.big()?;
    check_big(&table, &bench.texts, rows)?;
    let segments = crate::bench::segments(&database, TABLE);
    Ok(Outcome::default().and(seconds, None).segments(segments))
}

pub(crate) fn killed(bench: &mut Bench) -> Result<Outcome> {
    let (dir, rows) = bench.closed_big()?;
    let more = bench.rows / 20;
    let place = dir.to_string_lossy();
    let mut child = ChildProcess::start(&["grow", &place, &rows.to_string(), &more.to_string()])?;
    child.numbers()?;
    child.kill()?;
    let amid = open(&dir)?;
    bench.big_has_grown(rows + more);
    let (database, table) = bench.big()?;
    check_big(&table, &bench.texts, rows + more)?;
    drop((database, table));
    let csv = bench.csv()?;
    let dir = bench.place("killed")?;
    let place = dir.to_string_lossy();
    let mut child = ChildProcess::start(&["load", &place, &csv.to_string_lossy()])?;
    child.numbers()?;
    child.kill()?;
    let after = open(&dir)?;
    let database = esker::Options::new().create(false).open(&dir)?;
    check_big(&database.table(TABLE)?, &bench.texts, bench.rows)?;
    database.wait_idle()?;
    let segments = crate::bench::segments(&database, TABLE);
    database.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(Outcome::default()
        .and(amid, None)
        .and(after, None)
        .segments(segments)
        .note(format!("{more} rows in the log when killed amid inserts")))
}
