//! What a table of 100 rows costs, alone and as one of 4,096.

use std::path::PathBuf;

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Outcome;
use crate::process::{ChildProcess, Files};

struct Costs {
    open_seconds: f64,
    own_bytes: f64,
    all_bytes: f64,
    files: Files,
}

fn costs(bench: &Bench, tables: u64) -> Result<Costs> {
    let dir: PathBuf = bench.place("small-tables")?;
    let (place, tables) = (dir.to_string_lossy(), tables.to_string());
    let mut child = ChildProcess::start(&["make-tables", &place, &tables])?;
    child.numbers()?;
    child.finish()?;
    let files = Files::of(&dir, |_| true)?;
    let mut child = ChildProcess::start(&["open-tables", &place, &tables])?;
    let numbers = child.numbers()?;
    child.finish()?;
    let [open_seconds, own_bytes, all_bytes] = numbers.as_slice() else {
        return Err("a child process said nothing".into());
    };
    Ok(Costs { open_seconds: *open_seconds, own_bytes: *own_bytes, all_bytes: *all_bytes, files })
}

fn resident_note(costs: &Costs) -> String {
    let mib = |bytes: f64| bytes / 1024.0 / 1024.0;
    format!(
        "RAM is memory in no file; {:.2} MiB resident with pages of the program and its files; \
         {:.1} KiB of disk",
        mib(costs.all_bytes),
        costs.files.bytes as f64 / 1024.0
    )
}

pub(crate) fn one(bench: &mut Bench) -> Result<Outcome> {
    let costs = costs(bench, 1)?;
    Ok(Outcome::default()
        .and(costs.files.bytes as f64, None)
        .and(costs.own_bytes, None)
        .and(costs.files.count as f64, None)
        .segments(0)
        .note(resident_note(&costs)))
}

pub(crate) fn many(bench: &mut Bench) -> Result<Outcome> {
    let costs = costs(bench, 4_096)?;
    Ok(Outcome::default()
        .and(costs.open_seconds, None)
        .and(costs.own_bytes, None)
        .and(costs.files.count as f64, None)
        .segments(0)
        .note(resident_note(&costs)))
}
