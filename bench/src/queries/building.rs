//! Loading beside indexes, and adding them to rows that are there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use esker::{Database, Options};
use esker_format::schema::Alteration;

use super::users::{INDEXED, Which, indexes};
use crate::Result;
use crate::bench::{Bench, segments};
use crate::loading;
use crate::machine::disk_rate;
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Outcome;
use crate::outcome::Unit::{Bytes, RowsPerSecond, Seconds};
use crate::rows::{Row, ask, row};

pub(super) const LOAD: Row = row(
    "load-indexed",
    &[ask("NDJSON, 12 indexes, durable", AtLeast(0.6e6), RowsPerSecond, "(disk, bare)")],
    load,
);

pub(super) const ADD: Row = row(
    "add-indexes",
    &[
        ask("12, afterwards", AtMost(0.6), Seconds, "(disk, bare)"),
        ask("disk, an entry of an integer", AtMost(10.0), Bytes, "(a row number)"),
    ],
    add,
);

fn load(bench: &mut Bench) -> Result<Outcome> {
    let schema = loading::USERS.schema()?;
    let add: Vec<_> = indexes().into_iter().map(Alteration::AddIndex).collect();
    let schema = schema.alter(&add)?;
    let loaded = loading::load_as(bench, &loading::USERS, &schema, loading::Form::Ndjson)?;
    loaded.database.close()?;
    let goal = AtLeast(super::between(bench.rows, [0.6e6, 0.5e6]));
    Ok(Outcome::default()
        .and_with_goal(loaded.rate, loaded.bare, goal)
        .segments(loaded.segments)
        .note(format!("{:.2} s, {:.2} s on the CPU", loaded.seconds, loaded.cpu_seconds)))
}

fn add(bench: &mut Bench) -> Result<Outcome> {
    let mut users = bench.users.take().unwrap_or_default();
    let made = users.table(bench, Which::Plain);
    bench.users = Some(users);
    let plain = made?;
    let dir = bench.place("users-added")?;
    plain.backup(&dir, &esker::BackupOptions::default(), &mut |_, _| ())?;
    let database = Options::new().create(false).open(&dir)?;
    let before = bytes(&dir)?;
    let start = Instant::now();
    database.create_indexes("users", &indexes())?;
    let elapsed = start.elapsed().as_secs_f64();
    check(&database)?;
    let after = bytes(&dir)?;
    let of_integer = integer_entry_bytes(&dir, bench.rows)?;
    let segments = segments(&database, "users");
    database.close()?;
    std::fs::remove_dir_all(&dir)?;
    let bare = disk_rate(&bench.place("bare")?, after - before)?;
    let entries = bench.rows as f64 * INDEXED.len() as f64;
    let per_entry = (after - before) as f64 / entries;
    let goal = AtMost(super::between(bench.rows, [0.6, 18.0]));
    Ok(Outcome::default()
        .and_with_goal(elapsed, (after - before) as f64 / bare, goal)
        .and(of_integer, Some(4.0))
        .segments(segments)
        .note(format!("{per_entry:.1} B on disk an entry, texts included")))
}

/// Every index is built, and found by a look-up.
fn check(database: &Database) -> Result<()> {
    let info = database.info();
    let table = info.tables.first().ok_or("no table")?;
    let built = table.indexes.iter().filter(|index| index.built == index.of);
    if built.count() != INDEXED.len() {
        return Err(format!("not every index is built: {:?}", table.indexes).into());
    }
    Ok(())
}

fn bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => self::bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

/// The runs of `user_id`, the fourth index.
fn integer_entry_bytes(dir: &Path, rows: u64) -> Result<f64> {
    let mut runs = BTreeMap::<String, u64>::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((_, index)) = name.strip_prefix("run-").and_then(|rest| rest.split_once('-')) {
            *runs.entry(index.to_owned()).or_default() += entry.metadata()?.len();
        }
    }
    let bytes = runs.into_values().nth(3).ok_or("no runs")?;
    Ok(bytes as f64 / rows as f64)
}
