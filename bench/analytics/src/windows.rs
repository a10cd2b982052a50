//! Window functions over many rows in many partitions: ten of each, unless there are fewer rows.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Result;
use crate::draws::Draws;
use crate::workload::Kind::{Big, Int};
use crate::workload::{Engine, Question, Table, Workload};

const TABLES: &[Table] =
    &[Table { name: "moves", columns: &[("id", Big), ("k", Int), ("v", Int)], key: &[] }];

/// What is computed of each row: a name, and a call with its window.
const CALLS: [(&str, &str); 9] = [
    ("row_number", "row_number() OVER (PARTITION BY k ORDER BY id)"),
    ("rank", "rank() OVER (PARTITION BY k ORDER BY v)"),
    ("lag", "v - lag(v) OVER (PARTITION BY k ORDER BY id)"),
    ("running-sum", "sum(v) OVER (PARTITION BY k ORDER BY id)"),
    ("whole-sum", "sum(v) OVER (PARTITION BY k)"),
    (
        "moving-mean",
        "max(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
    ),
    ("first", "first_value(v) OVER (PARTITION BY k ORDER BY v DESC, id)"),
    ("ntile", "ntile(4) OVER (PARTITION BY k ORDER BY id)"),
    ("one-partition", "row_number() OVER (ORDER BY v, id)"),
];

/// So many rows.
pub fn workload(rows: u64) -> Workload {
    let question = |(name, call): &(&str, &str)| {
        let inner = format!("SELECT id, {call} AS w FROM moves");
        let text = format!("SELECT count(*), sum(w), sum(w * (id % 7)) FROM ({inner}) AS s");
        Question::new(*name, text)
    };
    Workload {
        title: format!("windows, {rows} rows, {} partitions", rows / 10),
        tables: TABLES,
        questions: CALLS.iter().map(question).collect(),
        planned: Vec::new(),
        write: Box::new(move |directory: &Path| write(&TABLES[0], directory, rows)),
        beside: Engine::DuckDb,
        mean_most: None,
        ratio_most: Some(1.5),
    }
}

fn write(table: &Table, directory: &Path, rows: u64) -> Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(table.file(directory))?);
    writeln!(out, "id,k,v")?;
    for id in 0..rows {
        let mut draws = Draws::of(id);
        writeln!(out, "{id},{},{}", draws.below(rows / 10 + 1), draws.below(1_000_000))?;
    }
    out.flush()?;
    Ok(())
}
