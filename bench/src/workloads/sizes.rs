//! What the large table takes: memory of its primary index, disk.

use crate::Result;
use crate::bench::{Bench, TABLE, segments};
use crate::data::ROW_BYTES;
use crate::outcome::Outcome;
use crate::process::{ChildProcess, Files};

/// Bytes of a location.
const LOCATION: f64 = 8.0;

pub(crate) fn ram(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows as f64;
    let (database, _) = bench.big()?;
    database.wait_idle()?;
    let info = database.info();
    let index = info.tables.iter().find(|t| t.name == TABLE).map_or(0, |t| t.index_bytes);
    let segments = segments(&database, TABLE);
    drop(database);
    let (dir, _) = bench.closed_big()?;
    let mut child = ChildProcess::start(&["open", &dir.to_string_lossy(), TABLE])?;
    let numbers = child.numbers()?;
    child.finish()?;
    let own = numbers.get(1).copied().unwrap_or(0.0);
    let note = format!(
        "by the engine's own count; a fresh process that opened it has {:.1} B a row more memory \
         of its own",
        own / rows
    );
    Ok(Outcome::of(index as f64 / rows, LOCATION).segments(segments).note(note))
}

pub(crate) fn disk(bench: &mut Bench) -> Result<Outcome> {
    let (database, _) = bench.big()?;
    database.wait_idle()?;
    let segments = segments(&database, TABLE);
    drop(database);
    let (dir, rows) = bench.closed_big()?;
    let index = Files::of(&dir, |name| name.starts_with("index-"))?;
    let rest = Files::of(&dir, |name| !name.starts_with("index-"))?;
    let rows = rows as f64;
    let to_ten_million = 10e6 / rows;
    let note = format!("{} files and {} of the index", rest.count, index.count);
    Ok(Outcome::of(rest.bytes as f64 * to_ten_million, ROW_BYTES as f64 * 10e6)
        .and(index.bytes as f64 / rows, None)
        .segments(segments)
        .note(note))
}
