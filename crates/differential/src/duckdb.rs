//! The other side of `--duckdb`: DuckDB, in a process of Python for each thread.
//!
//! Statements that change rows are Esker's alone, compared between its databases; DuckDB is given
//! the rows that they leave, and then the same questions.

use std::cell::RefCell;

use esker::{Error, ErrorKind, NullsOrder, Value};
use serde_json::json;

use crate::difference::Design;
use crate::esker_side::{Eskers, Outcome};
use crate::peer::{Peer, Rows};
use crate::session::{Counts, Finding, Session, alike, in_order, is_shown_as_itself, same, shown};
use crate::statement::{Statement, whole};
use crate::table::Table;
use crate::value::{LABELS, from_duckdb, in_duckdb};

/// DuckDB's name in requests.
const DUCKDB: &str = "duckdb";

/// How long a statement may take there.
const SECONDS: f64 = 60.0;

/// By how much floats may differ, as a share, that both compute from many numbers or by a function.
const NEAR: f64 = 1e-12;

thread_local! {
    /// The process of this thread; starting one takes longer than a session.
    static PEER: RefCell<Option<Peer>> = const { RefCell::new(None) };
}

/// Runs something with the process of this thread.
fn with_peer<T>(run: impl FnOnce(&mut Peer) -> Result<T, String>) -> Result<T, String> {
    PEER.with_borrow_mut(|peer| match peer {
        Some(peer) => run(peer),
        None => run(peer.insert(Peer::start()?)),
    })
}

fn execute(sql: &str) -> Result<Rows, String> {
    with_peer(|peer| Ok(peer.run(DUCKDB, sql, SECONDS)?.1))
}

/// Opens an empty database with the settings that Esker has.
fn open(tables: &[Table], nulls_order: NullsOrder) -> Result<(), String> {
    let nulls_order = match nulls_order {
        NullsOrder::Smallest => "nulls_first_on_asc_last_on_desc",
        NullsOrder::Greatest => "nulls_last_on_asc_first_on_desc",
        NullsOrder::First => "nulls_first",
        NullsOrder::Last => "nulls_last",
    };
    let settings = json!({
        "threads": 1,
        "default_null_order": nulls_order,
        "ieee_floating_point_ops": false,
    });
    with_peer(|peer| peer.open(DUCKDB, None, &settings))?;
    let labels = LABELS.map(|label| format!("'{label}'")).join(", ");
    execute(&format!("CREATE TYPE label AS ENUM ({labels})"))?;
    tables.iter().try_for_each(|table| execute(&table.create_in_duckdb()).map(drop))
}

/// Gives DuckDB the rows of a table.
fn copy(eskers: &Eskers, table: &Table) -> Result<(), String> {
    let outcome = eskers.run(&whole(table)).into_iter().next();
    let rows = outcome.ok_or("no database")?.1.map_err(|e| e.to_string())?.rows;
    execute(&format!("DELETE FROM {}", table.name))?;
    if rows.is_empty() {
        return Ok(());
    }
    let row = |row: &Vec<Value>| {
        let values: Vec<_> = row.iter().map(in_duckdb).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    execute(&format!("INSERT INTO {} VALUES {}", table.name, rows.join(", "))).map(drop)
}

/// Runs a session; the first difference ends it.
pub(crate) fn run(session: &Session, counts: &mut Counts) -> Result<(), Finding> {
    let at = std::cell::Cell::new(0);
    let failed = |what: String| Finding { at: at.get(), what };
    let broken = |e: Error| failed(format!("not started: {e}"));
    open(&session.tables, session.nulls_order).map_err(failed)?;
    let eskers = Eskers::new(session.nulls_order).map_err(broken)?;
    session.tables.iter().try_for_each(|table| eskers.create(table)).map_err(broken)?;
    let mut is_stale = true;
    for (place, statement) in session.statements.iter().enumerate() {
        at.set(place);
        if statement.is_change {
            is_stale = true;
            alike(&eskers.run(statement), statement.rows).map_err(failed)?;
            continue;
        }
        if is_stale {
            is_stale = false;
            eskers.settle().map_err(broken)?;
            session.tables.iter().try_for_each(|table| copy(&eskers, table)).map_err(failed)?;
        }
        compare(statement, &eskers, counts).map_err(|what| {
            let Statement { esker, parameters, duckdb, .. } = statement;
            let values: Vec<_> = parameters.iter().map(Value::to_string).collect();
            let values = values.join(", ");
            failed(format!("{what}\n  Esker:  {esker}  [{values}]\n  DuckDB: {duckdb}"))
        })?;
    }
    Ok(())
}

/// Compares a question; says how the two differ.
fn compare(statement: &Statement, eskers: &Eskers, counts: &mut Counts) -> Result<(), String> {
    let outcomes = eskers.run(statement);
    alike(&outcomes, statement.rows)?;
    if !is_shown_as_itself(&statement.esker) {
        return Err("shown as text, it is another query".into());
    }
    let Some((_, ours)) = outcomes.into_iter().next() else { return Ok(()) };
    let theirs = execute(&statement.duckdb);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            eskers.times_add_up(statement)?;
            answered(statement, &ours, &theirs, counts)
        }
        (_, Err(e)) if !is_computed(&e) => {
            let kind = e.split(':').next().unwrap_or_default().to_owned();
            *counts.unknown.entry(kind).or_default() += 1;
            Ok(())
        }
        (Err(_), Err(_)) => {
            counts.refused += 1;
            Ok(())
        }
        (Err(e), Ok(_)) if e.kind() == ErrorKind::InvalidInput => {
            counts.note(Design::Operand);
            Ok(())
        }
        (Err(e), Ok(_)) => Err(format!("only Esker refuses it: {e}")),
        (Ok(_), Err(_)) => {
            counts.note(Design::Operand);
            Ok(())
        }
    }
}

/// Whether an error of DuckDB's is of a value, and not of a statement that it cannot say.
fn is_computed(error: &str) -> bool {
    ["Out of Range Error", "Conversion Error", "Invalid Input Error"]
        .iter()
        .any(|kind| error.starts_with(kind))
}

/// Compares the rows of an answer.
fn answered(
    statement: &Statement,
    ours: &Outcome,
    theirs: &Rows,
    counts: &mut Counts,
) -> Result<(), String> {
    let row = |row: &Vec<serde_json::Value>| {
        row.iter().zip(&ours.types).map(|(value, t)| from_duckdb(value, *t)).collect()
    };
    let rows = theirs.iter().map(row).collect();
    let theirs = Outcome { changed: ours.changed, types: ours.types.clone(), rows };
    if same(ours, &theirs, statement.rows) {
        counts.rows += ours.rows.len() as u64;
        return Ok(());
    }
    let is_rounded = ["avg(", "power(", " / "].iter().any(|part| statement.esker.contains(part));
    let (a, b) = (in_order(ours, statement.rows), in_order(&theirs, statement.rows));
    if is_rounded && nearly_same(&a, &b) {
        counts.note(Design::Average);
        return Ok(());
    }
    Err(format!("Esker:  {}\nDuckDB: {}", shown(ours), shown(&theirs)))
}

/// True when rows are equal but for the last digits of floats.
fn nearly_same(a: &[Vec<Value>], b: &[Vec<Value>]) -> bool {
    let near = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b || (a - b).abs() <= a.abs() * NEAR,
        _ => a == b,
    };
    let row = |(a, b): (&Vec<Value>, &Vec<Value>)| a.len() == b.len() && a.iter().zip(b).all(near);
    a.len() == b.len() && a.iter().zip(b).all(row)
}
