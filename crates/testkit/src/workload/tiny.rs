//! The operations of exhaustive runs.

use esker::{DataType, Value};

use super::client::{Client, TABLES, Way, changed, put, update};
use crate::history::Action;
use crate::model::{NewRow, State, TableKind};
use crate::schema::{FieldChange, ModelField};

/// An operation of an exhaustive run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiny {
    /// A new row.
    Insert,
    /// A row that may be there.
    Upsert,
    /// Two fields of a row.
    Update,
    /// A row goes.
    Delete,
    /// Five new rows: the group is full.
    InsertMany,
    /// A second table.
    Create,
    /// The second table goes.
    Drop,
    /// A load of two segments.
    Load,
    /// Rows with generated keys.
    Append,
    /// The fields of the first table.
    Alter,
    /// The first table gets the name of the second, or its own again.
    Rename,
    /// All rows of the first table go.
    Truncate,
    /// A checkpoint.
    Checkpoint,
    /// Sealing and merging until nothing is left to do.
    Seal,
    /// A backup.
    Backup,
    /// Closing and opening.
    Reopen,
}

impl Tiny {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Insert,
        Self::Upsert,
        Self::Update,
        Self::Delete,
        Self::InsertMany,
        Self::Create,
        Self::Drop,
        Self::Load,
        Self::Append,
        Self::Alter,
        Self::Rename,
        Self::Truncate,
        Self::Checkpoint,
        Self::Seal,
        Self::Backup,
        Self::Reopen,
    ];
}

/// The first table, whatever it is called now.
fn first_table(state: &State) -> &'static str {
    let [first, second, ..] = TABLES;
    let renamed = state.table(second).is_some_and(|table| table.kind == TableKind::Integer);
    if renamed { second } else { first }
}

/// What is done to the fields of a table that has been altered so often.
fn field_changes(version: u64) -> Vec<FieldChange> {
    let mark = ModelField::new("mark", DataType::I16, false);
    let widened = FieldChange::Widen("amount".to_owned(), DataType::I64);
    match version {
        0 => vec![FieldChange::Add(mark, Value::Int(7)), FieldChange::Drop("note".to_owned())],
        1 => vec![widened, FieldChange::Rename("mark".to_owned(), "note".to_owned())],
        _ => vec![FieldChange::Drop("note".to_owned()), FieldChange::Add(mark, Value::Int(8))],
    }
}

impl Client {
    /// Does one change of an exhaustive run.
    pub fn tiny(&mut self, operation: Tiny) {
        let [_, second, generated, _] = TABLES;
        let kind = TableKind::Integer;
        let state = self.world.state();
        let first = first_table(&state);
        let table = first.to_owned();
        match operation {
            Tiny::Insert => {
                let rows = self.fresh_rows(&state, first, 1);
                self.put_rows(Action::Insert { table, rows }, Way::One);
            }
            Tiny::Upsert => {
                let serial = self.world.serial();
                let rows = vec![self.row_at(&state, first, 2, serial)];
                self.put_rows(Action::Upsert { table, rows }, Way::One);
            }
            Tiny::Update => {
                let Some(schema) = state.table(first).map(|table| &table.schema) else { return };
                let changes = kind.changes(schema, self.world.serial(), &mut self.generator);
                let action = Action::Update { table, ident: 1, changes: changes.clone() };
                self.change(action, |db| update(db, first, &kind.key(1), &changes));
            }
            Tiny::Delete => {
                let action = Action::Delete { table, ident: 3 };
                self.change(action, |db| Ok(changed(db.table(first)?.delete(&kind.key(3))?)));
            }
            Tiny::InsertMany => {
                let rows = self.fresh_rows(&state, first, 5);
                self.put_rows(Action::Insert { table, rows }, Way::Many);
            }
            Tiny::Append => {
                let rows = self.fresh_rows(&state, generated, 3);
                self.put_rows(Action::Insert { table: generated.to_owned(), rows }, Way::Append);
            }
            Tiny::Create => self.create_named(second, TableKind::Text),
            Tiny::Drop => self.drop_named(second),
            Tiny::Load => {
                let rows = self.fresh_rows(&state, first, 5);
                self.load_whole(&state, first, rows);
            }
            Tiny::Alter => {
                let version = state.table(first).map_or(0, |table| table.schema.version);
                self.alter_named(first, field_changes(version));
            }
            Tiny::Rename => {
                let [own, other, ..] = TABLES;
                let to = if first == own { other } else { own };
                self.rename_named(first, to);
            }
            Tiny::Truncate => self.truncate_named(first),
            Tiny::Checkpoint | Tiny::Seal | Tiny::Backup | Tiny::Reopen => {}
        }
    }

    /// Makes the tables that exhaustive runs begin with.
    pub fn tiny_tables(&mut self) {
        let [first, _, generated, _] = TABLES;
        self.create_named(first, TableKind::Integer);
        self.create_named(generated, TableKind::Generated);
    }

    /// Fills the first of them.
    pub fn tiny_rows(&mut self) {
        let [first, ..] = TABLES;
        for ident in 1..4 {
            let serial = self.world.serial();
            let rows = vec![self.row_at(&self.world.state(), first, ident, serial)];
            self.put_rows(Action::Insert { table: first.to_owned(), rows }, Way::One);
        }
    }

    fn put_rows(&mut self, action: Action, way: Way) {
        let upsert = matches!(action, Action::Upsert { .. });
        let (Action::Insert { table, rows } | Action::Upsert { table, rows }) = &action else {
            return;
        };
        let values: Vec<_> = rows.iter().map(|row| row.values.clone()).collect();
        let name = table.clone();
        self.change(action, |db| put(&db.table(&name)?, &values, way, upsert));
    }

    /// A row with a key.
    fn row_at(&mut self, state: &State, name: &str, ident: u64, serial: u64) -> NewRow {
        let table = state.table(name);
        let kind = table.map_or(TableKind::Integer, |table| table.kind);
        match table {
            Some(table) => kind.row_of(&table.schema, ident, serial, &mut self.generator),
            None => kind.row(ident, serial, &mut self.generator),
        }
    }

    /// Rows with keys that are free.
    fn fresh_rows(&mut self, state: &State, name: &str, count: u64) -> Vec<NewRow> {
        let is_generated = state.table(name).is_some_and(|t| t.kind == TableKind::Generated);
        let mut row = |_| {
            let serial = self.world.serial();
            let ident = if is_generated { serial } else { 100 + serial };
            self.row_at(state, name, ident, serial)
        };
        (0..count).map(&mut row).collect()
    }
}
