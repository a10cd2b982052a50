//! Every question of `flights_oracle/queries.sql`, asked by `esker sql` over the flights tables,
//! has the answer that SQLite gives (`flights_oracle/make_answers.py` wrote those down).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::cmp::Ordering;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

type Rows = Vec<Vec<Value>>;

/// Runs the program; what it wrote to standard output.
fn esker(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_esker")).args(arguments).output().unwrap();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {error}", output.status));
    }
    Ok(String::from_utf8(output.stdout).unwrap())
}

fn ask(database: &str, query: &str) -> Result<Rows, String> {
    let text = esker(&["sql", database, query, "--format", "json"])?;
    let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&text).unwrap();
    Ok(rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect())
}

/// Equal, floats within a relative 1e-9.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (a, b) => a == b,
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

/// Bags of rows are compared sorted; exact values first, so that the last digits of floats do not
/// decide the order.
fn sort(rows: &mut Rows) {
    let is_exact = |v: &Value| !v.is_f64();
    rows.sort_by(|a, b| {
        let by = |exact: bool| {
            let columns =
                a.iter().zip(b).filter(move |(x, y)| (is_exact(x) && is_exact(y)) == exact);
            columns.map(|(x, y)| compare(x, y)).find(|o| *o != Ordering::Equal)
        };
        by(true).or_else(|| by(false)).unwrap_or(Ordering::Equal)
    });
}

fn difference(query: &str, mut found: Rows, mut wanted: Rows) -> Option<String> {
    if !query.contains("ORDER BY") {
        sort(&mut found);
        sort(&mut wanted);
    }
    if found.len() != wanted.len() {
        return Some(format!("{} rows, SQLite has {}", found.len(), wanted.len()));
    }
    let rows = found.iter().zip(&wanted);
    let equal = |a: &Vec<Value>, b: &Vec<Value>| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
    };
    let row = rows.into_iter().position(|(a, b)| !equal(a, b))?;
    Some(format!("row {row} is {:?}, SQLite has {:?}", found[row], wanted[row]))
}

#[test]
fn answers_are_those_of_sqlite() {
    let dir = std::env::temp_dir().join(format!("esker-flights-oracle-{}", std::process::id()));
    let database = dir.to_str().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    for table in ["flights", "airlines", "airports", "planes", "weather"] {
        let file = examples.join(format!("{table}.csv.zst"));
        esker(&["load", database, table, file.to_str().unwrap(), "--null", "NA"]).unwrap();
    }
    let answers: Vec<Value> =
        serde_json::from_str(include_str!("flights_oracle/answers.json")).unwrap();
    assert!(answers.len() >= 40);
    let mut failures = Vec::new();
    for answer in &answers {
        let query = answer["query"].as_str().unwrap();
        let wanted = answer["rows"].as_array().unwrap().iter();
        let wanted: Rows = wanted.map(|row| row.as_array().unwrap().clone()).collect();
        let failure = match ask(database, query) {
            Ok(found) => difference(query, found, wanted),
            Err(error) => Some(error),
        };
        failures.extend(failure.map(|f| format!("{query}\n    {f}")));
    }
    esker(&["check", database]).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let (failed, asked) = (failures.len(), answers.len());
    assert!(failures.is_empty(), "{failed} of {asked} differ:\n{}", failures.join("\n"));
}

/// The answers written down belong to the questions written down.
#[test]
fn answers_are_up_to_date() {
    let lines = include_str!("flights_oracle/queries.sql").lines();
    let queries = lines.filter(|l| !l.is_empty() && !l.starts_with("--"));
    let queries: Vec<&str> = queries.map(|l| l.trim_end_matches(';')).collect();
    let answers: Vec<Value> =
        serde_json::from_str(include_str!("flights_oracle/answers.json")).unwrap();
    let answered: Vec<&str> = answers.iter().map(|a| a["query"].as_str().unwrap()).collect();
    assert_eq!(answered, queries, "run make_answers.py");
}
