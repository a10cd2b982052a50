//! Loads that a client has under way, over many of its operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker::{Batch, ErrorKind, Load, Schema, Table};

use super::client::{Client, KEYS};
use super::world::{Begun, Done, Holding};
use crate::history::{Action, Held, Origin};
use crate::model::{NewRow, State, TableKind, TableState};
use crate::schema::TableSchema;

/// A load that has begun.
pub(crate) struct Loading {
    id: u64,
    load: Load,
    /// What the engine says of the table's fields.
    fields: Arc<Schema>,
    table: String,
    kind: TableKind,
    origin: Origin,
    /// The fields that its rows have.
    schema: Arc<TableSchema>,
    rows: Vec<NewRow>,
    /// The newest commit when it began: what comes later may be refused because of it.
    from: u64,
    /// Another load went into the same table for some time.
    had_rival: bool,
}

impl Loading {
    fn new(
        id: u64,
        (load, fields): (Load, Arc<Schema>),
        table: String,
        (kind, origin, schema): (TableKind, Origin, Arc<TableSchema>),
        rows: Vec<NewRow>,
        from: u64,
    ) -> Self {
        Self { id, load, fields, table, kind, origin, schema, rows, from, had_rival: false }
    }
}

fn begin(table: &Table) -> esker::Result<(Load, Arc<Schema>)> {
    Ok((table.load()?, table.schema()))
}

/// A table as a load finds it.
fn origin_of(table: &TableState) -> (Origin, Arc<TableSchema>) {
    let version = table.schema.version;
    (Origin { incarnation: table.incarnation, version }, Arc::clone(&table.schema))
}

impl Client {
    /// Loads rows in one go.
    pub(super) fn load_whole(&mut self, state: &State, name: &str, rows: Vec<NewRow>) {
        let Some(table) = state.table(name) else { return };
        let Some(Begun { db, from, .. }) = self.world.begin(None, None) else { return };
        let Ok(load) = db.table(name).and_then(|table| begin(&table)) else { return };
        let (origin, schema) = origin_of(table);
        let begun = (table.kind, origin, schema);
        let mut loading = Loading::new(0, load, name.to_owned(), begun, rows, from);
        let rows = loading.rows.clone();
        match push_rows(&mut loading, &rows, false) {
            Ok(()) => self.finish(loading),
            Err(e) => self.read_failed(&e),
        }
    }

    pub(super) fn continue_load(&mut self, state: &State) {
        let begin =
            self.loads.is_empty() || (self.loads.len() < 2 && self.generator.chance(200_000));
        if begin {
            return self.begin_load(state);
        }
        let chosen = self.generator.index(self.loads.len());
        let loading = self.loads.remove(chosen);
        match self.generator.below(10) {
            0 => {
                self.world.note(|| format!("drop the load into {}", loading.table));
                self.drop_load(loading);
            }
            6.. if !loading.rows.is_empty() => self.finish(loading),
            _ => self.push(loading),
        }
    }

    fn begin_load(&mut self, state: &State) {
        let Some((table, kind)) = self.pick_table(state) else { return };
        let Some(Begun { db, from, .. }) = self.world.begin(None, None) else { return };
        let Some((origin, schema)) = state.table(&table).map(origin_of) else { return };
        if self.world.lock().altered.contains(&table) {
            return;
        }
        match db.table(&table).and_then(|table| begin(&table)) {
            Ok(load) => {
                self.loads_begun += 1;
                let id = self.number << 32 | self.loads_begun;
                let tables = BTreeSet::from([table.clone()]);
                let holding = Holding { tables, ..Holding::default() };
                self.world.lock().loads.insert(id, holding);
                self.world.note(|| format!("begin a load into {table}"));
                let rows = Vec::new();
                let begun = (kind, origin, schema);
                self.push(Loading::new(id, load, table, begun, rows, from));
            }
            Err(e) => self.read_failed(&e),
        }
    }

    fn rows_to_push(&mut self, loading: &Loading) -> Vec<NewRow> {
        let count = 1 + self.generator.below(14);
        let state = self.world.state();
        let table = state.table(&loading.table);
        let mut fresh: Vec<NewRow> = Vec::new();
        for _ in 0..count {
            let row = self.new_row(loading.kind, &loading.schema, KEYS * 2);
            let twice = loading.rows.iter().chain(&fresh).any(|r| r.ident == row.ident);
            let taken = table.is_some_and(|table| table.rows.contains_key(&row.ident));
            if !(twice || taken) || self.generator.chance(15_000) {
                fresh.push(row);
            }
        }
        fresh
    }

    fn push(&mut self, mut loading: Loading) {
        let fresh = self.rows_to_push(&loading);
        if fresh.is_empty() {
            return self.loads.push(loading);
        }
        loading.rows.extend(fresh.iter().cloned());
        self.meet_rivals(&mut loading);
        self.hold(&loading, 0);
        let mut result = push_rows(&mut loading, &fresh, self.generator.chance(500_000));
        let wait = self.generator.chance(500_000);
        if wait && result.is_ok() {
            result = loading.load.wait();
        }
        self.world.note(|| format!("push {} rows: {result:?}", fresh.len()));
        match result {
            Ok(()) => {
                if wait {
                    let indexed = loading.rows.len() / self.segment_rows * self.segment_rows;
                    self.hold(&loading, indexed);
                }
                self.loads.push(loading);
            }
            Err(e) => {
                let rows = loading.rows.clone();
                let action = Action::Insert { table: loading.table.clone(), rows };
                let begun = self.begin_for(&action, &loading);
                let origin = loading.origin;
                self.drop_load(loading);
                if let Some(begun) = begun {
                    self.world.end(&begun, action, Err(e), Some(origin));
                }
            }
        }
    }

    /// Two loads into one table may refuse each other.
    fn meet_rivals(&mut self, loading: &mut Loading) {
        let incarnation = loading.origin.incarnation;
        let is_rival = |other: &&mut Loading| other.origin.incarnation == incarnation;
        for other in self.loads.iter_mut().filter(is_rival) {
            other.had_rival = true;
            loading.had_rival = true;
        }
    }

    /// Begins an operation whose answer may rest on all that happened since the load began.
    fn begin_for(&self, action: &Action, loading: &Loading) -> Option<Begun> {
        let mut begun = self.world.begin(Some(action), Some(loading.id))?;
        begun.from = loading.from;
        begun.held = if loading.had_rival { Held::Perhaps } else { Held::No };
        Some(begun)
    }

    /// Notes which keys a load holds: the first `indexed` surely, the others perhaps.
    fn hold(&self, loading: &Loading, indexed: usize) {
        if loading.kind == TableKind::Generated {
            return;
        }
        let mut inner = self.world.lock();
        let Some(holding) = inner.loads.get_mut(&loading.id) else { return };
        let indexed = if holding.unsure { 0 } else { indexed };
        let (held, rest) = loading.rows.split_at(indexed.min(loading.rows.len()));
        holding.surely.extend(held.iter().map(|row| row.ident));
        holding.perhaps.extend(rest.iter().map(|row| row.ident));
    }

    fn finish(&mut self, mut loading: Loading) {
        self.meet_rivals(&mut loading);
        let rows = loading.rows.clone();
        let action = Action::Insert { table: loading.table.clone(), rows };
        let Some(mut begun) = self.begin_for(&action, &loading) else { return };
        // A small load is an ordinary commit: it gets the number after the newest.
        let newest = begun.db.info().published_commit;
        let Loading { id, load, origin, .. } = loading;
        if let Some(holding) = self.world.lock().loads.get_mut(&id) {
            let surely = std::mem::take(&mut holding.surely);
            holding.perhaps.extend(surely);
        }
        let result = load.finish().map(|report| {
            let commit = if report.commit > 0 { report.commit } else { newest + 1 };
            Done::Changed { row_id: None, commit: Some(commit) }
        });
        self.world.lock().loads.remove(&id);
        if matches!(&result, Err(e) if e.kind() == ErrorKind::OutcomeUnknown) {
            begun.from = newest;
        }
        self.world.end(&begun, action, result, Some(origin));
    }

    pub(super) fn drop_load(&mut self, loading: Loading) {
        let Loading { id, load, .. } = loading;
        drop(load);
        self.world.lock().loads.remove(&id);
    }
}

fn push_rows(loading: &mut Loading, rows: &[NewRow], by_batch: bool) -> esker::Result<()> {
    if !by_batch {
        return rows.iter().try_for_each(|row| loading.load.push_row(&row.values));
    }
    let mut batch = Batch::empty(&loading.fields);
    for row in rows {
        batch.push_row(&loading.fields, &row.values)?;
    }
    loading.load.push(batch)
}
