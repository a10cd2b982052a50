//! Holds an open database against the state it must be in.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::{Database, Snapshot, SnapshotTable, Value};
use esker_query::Query;
use esker_query::model::Expr;

use crate::history::History;
use crate::model::{State, TableState};

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Every how many rows to look one up by its key, 0 for none.
    pub gets_every: u64,
    /// Whether to run [`Database::check`].
    pub check: bool,
    /// Whether to ask queries.
    pub queries: bool,
    /// Whether the list of tables must be right, too. What a commit that was never acknowledged
    /// does to it shows at once there; a snapshot has the names of its commit.
    pub names: bool,
}

impl Depth {
    /// Everything.
    pub const FULL: Self = Self { gets_every: 1, check: true, queries: true, names: true };
    /// Rows and counts.
    pub const ROWS: Self = Self { gets_every: 0, check: false, queries: false, names: true };
}

/// An error in words, its kind first.
#[must_use]
pub fn said(error: &esker::Error) -> String {
    format!("{:?}: {error}", error.kind())
}

/// The commit that an opened database was recovered to: one below the start of its epoch, or what
/// a read-only open shows.
///
/// # Errors
/// When no snapshot can be taken.
pub fn recovered_commit(db: &Database, read_only: bool) -> Result<u64, String> {
    let snapshot = db.snapshot().map_err(|e| format!("snapshot: {}", said(&e)))?;
    Ok(if read_only { snapshot.commit() } else { snapshot.commit().saturating_sub(1) })
}

/// Compares all that a database holds now with the state after `commit`, and returns that state.
///
/// # Errors
/// The first difference.
pub fn compare(
    db: &Database,
    history: &History,
    commit: u64,
    depth: Depth,
) -> Result<Arc<State>, String> {
    let mut outcome = Err(String::new());
    for state in history.candidates(commit) {
        outcome = compare_state(db, history, state, depth).map(|()| Arc::clone(state));
        if outcome.is_ok() {
            break;
        }
    }
    let state = outcome.map_err(|why| format!("after commit {commit}: {why}"))?;
    check(db, depth)?;
    Ok(state)
}

/// Compares all that a database holds now with a state. Row ids are those of the history.
///
/// # Errors
/// The first difference.
pub fn compare_with(
    db: &Database,
    history: &History,
    state: &State,
    depth: Depth,
) -> Result<(), String> {
    compare_state(db, history, state, depth)?;
    check(db, depth)
}

fn check(db: &Database, depth: Depth) -> Result<(), String> {
    if !depth.check {
        return Ok(());
    }
    let report = db.check().map_err(|e| format!("check: {}", said(&e)))?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => {
            let count = report.problems.len();
            let (place, message) = (&problem.place, &problem.message);
            Err(format!("check finds {count} problems, first {place}: {message}"))
        }
    }
}

fn compare_state(
    db: &Database,
    history: &History,
    state: &State,
    depth: Depth,
) -> Result<(), String> {
    let names: Vec<&String> = state.tables.keys().collect();
    let found = db.tables();
    if depth.names && !found.iter().eq(names.iter().copied()) {
        return Err(format!("tables {names:?} expected, {found:?} found"));
    }
    let snapshot = db.snapshot().map_err(|e| format!("snapshot: {}", said(&e)))?;
    for (name, expected) in &state.tables {
        let at = |why: String| format!("table {name}: {why}");
        let table = snapshot.table(name).map_err(|e| at(said(&e)))?;
        expected.schema.compare(table.schema()).map_err(at)?;
        compare_rows(&table, history, expected).map_err(at)?;
        compare_gets(&table, history, expected, depth.gets_every).map_err(at)?;
        if depth.queries {
            compare_queries(&snapshot, name, expected).map_err(at)?;
        }
    }
    Ok(())
}

/// Compares every row, its row id, and the count.
///
/// # Errors
/// The first difference.
pub fn compare_rows(
    table: &SnapshotTable,
    history: &History,
    expected: &TableState,
) -> Result<(), String> {
    let mut seen = 0;
    let mut wrong: Option<String> = None;
    let outcome = table.for_each(|row_id, values| {
        seen += 1;
        let model = expected.kind.ident(values).and_then(|ident| expected.rows.get(&ident));
        let same = model.is_some_and(|model| {
            model.values.len() == values.len()
                && model.values.iter().zip(values).all(|(a, b)| a.as_ref() == *b)
        });
        if !same {
            wrong.get_or_insert_with(|| format!("row {row_id} {values:?}, expected {model:?}"));
        }
        let known = model.and_then(|model| history.row_id(model.born));
        if known.is_some_and(|known| known != row_id) {
            wrong.get_or_insert_with(|| format!("row id {row_id}, expected {known:?}: {values:?}"));
        }
        Ok(())
    });
    outcome.map_err(|e| format!("scan: {}", said(&e)))?;
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let want = expected.rows.len();
    let counted = table.count().map_err(|e| format!("count: {}", said(&e)))?;
    if seen != want || counted != want as u64 {
        return Err(format!("{want} rows expected, {seen} read, {counted} counted"));
    }
    Ok(())
}

/// Looks rows up by their keys, and keys that no row has.
fn compare_gets(
    table: &SnapshotTable,
    history: &History,
    expected: &TableState,
    every: u64,
) -> Result<(), String> {
    if every == 0 {
        return Ok(());
    }
    let wanted = |ident: &u64| ident.is_multiple_of(every);
    for (ident, row) in expected.rows.iter().filter(|(ident, _)| wanted(ident)) {
        let mut key = expected.kind.key(*ident);
        if key.is_empty() {
            let Some(row_id) = history.row_id(row.born) else { continue };
            key = vec![Value::Uint(row_id)];
        }
        let found = table.get(&key).map_err(|e| format!("get {key:?}: {}", said(&e)))?;
        if found.as_ref().map(|found| found.values()) != Some(row.values.as_slice()) {
            return Err(format!("get {key:?}: found {found:?}, expected {row:?}"));
        }
    }
    let mut absent = (0..64).filter(wanted).filter(|ident| !expected.rows.contains_key(ident));
    absent.try_for_each(|ident| {
        let mut key = expected.kind.key(ident);
        if key.is_empty() {
            key = vec![Value::Uint(u64::MAX - ident)];
        }
        match table.get(&key).map_err(|e| format!("get {key:?}: {}", said(&e)))? {
            None => Ok(()),
            Some(found) => Err(format!("get {key:?}: found {found:?}, expected none")),
        }
    })
}

/// Asks for a count and for the rows, through the planner.
fn compare_queries(snapshot: &Snapshot, name: &str, expected: &TableState) -> Result<(), String> {
    let mut count = Query::table(name);
    count.select(Expr::count());
    let answer = snapshot.query(&count).map_err(|e| format!("{count}: {}", said(&e)))?;
    let counted = answer.to_rows().into_iter().flatten().next();
    let want = expected.rows.len() as u64;
    let counted_rows = match counted {
        Some(Value::Int(n)) => u64::try_from(n).ok(),
        Some(Value::Uint(n)) => Some(n),
        _ => None,
    };
    if counted_rows != Some(want) {
        return Err(format!("{count}: {counted:?}, expected {want}"));
    }
    let all = Query::table(name);
    let answer = snapshot.query(&all).map_err(|e| format!("{all}: {}", said(&e)))?;
    let mut found = BTreeMap::new();
    for row in answer.rows() {
        if let Some(ident) = expected.kind.ident(&row) {
            found.insert(
                ident,
                row.into_iter().map(esker::ValueRef::to_owned).collect::<Vec<Value>>(),
            );
        }
    }
    let same = found.len() == expected.rows.len()
        && found.iter().zip(&expected.rows).all(|(a, b)| a.0 == b.0 && a.1 == &b.1.values);
    if same { Ok(()) } else { Err(format!("{all}: {} rows that differ", found.len())) }
}
