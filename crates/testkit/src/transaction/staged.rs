//! What a transaction of the model has come to, and what it makes of a state that others have
//! changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker::ErrorKind;

use crate::answer::Saw;
use crate::history::{Action, change_tables, write_rows};
use crate::model::{ModelRow, State, TableState};
use crate::schema::FieldChange;

/// What was read: a table, which its incarnation tells, and a key, or all of it.
type Read = (u64, Option<u64>);

/// What a transaction has come to.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    /// The state that it began with.
    base: Arc<State>,
    state: State,
    /// Keys that it has changed, by the incarnation of their table.
    touched: BTreeMap<u64, BTreeSet<u64>>,
    /// How tables were altered that had been there.
    alterations: BTreeMap<u64, Vec<FieldChange>>,
    /// Tables that took the place of others that had been there, whose rows are gone.
    truncated: BTreeMap<u64, u64>,
    /// What it has read, whatever was undone since.
    reads: BTreeSet<Read>,
    /// Tables that it has met, whatever was undone since; by their incarnations.
    met: BTreeSet<u64>,
    /// It has defined tables, whatever was undone since.
    defines: bool,
}

impl Staged {
    pub fn new(base: Arc<State>) -> Self {
        Self {
            state: (*base).clone(),
            base,
            touched: BTreeMap::new(),
            alterations: BTreeMap::new(),
            truncated: BTreeMap::new(),
            reads: BTreeSet::new(),
            met: BTreeSet::new(),
            defines: false,
        }
    }

    /// The tables as the transaction sees them.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes back a change that was refused, and not that its table was met.
    pub fn refuse(&mut self, before: &Self) {
        let met = std::mem::take(&mut self.met);
        *self = Self { met, ..before.clone() };
    }

    /// Takes back what was changed, and not that it was done.
    pub fn go_back_to(&mut self, saved: &Self) {
        self.state = saved.state.clone();
        self.touched = saved.touched.clone();
        self.alterations = saved.alterations.clone();
        self.truncated = saved.truncated.clone();
    }

    /// Does a change; how many rows it changes.
    ///
    /// # Errors
    /// What the engine has to refuse it for; nothing may be relied on then.
    pub fn change(&mut self, action: &Action) -> Result<u64, ErrorKind> {
        self.defines |= action.changes_rows_of().is_none();
        match action {
            Action::Alter { table, changes } => return self.alter(table, changes).map(|()| 0),
            Action::Truncate { table, incarnation } => {
                self.meet(table);
                let before = self.state.table(table).map(|table| table.incarnation);
                let was = before.map(|before| *self.truncated.get(&before).unwrap_or(&before));
                self.truncated.extend(was.map(|was| (*incarnation, was)));
                return change_tables(&mut self.state, action).map(|()| 0);
            }
            Action::Create { .. } | Action::Drop { .. } | Action::Rename { .. } => {
                if let Action::Drop { name } | Action::Rename { from: name, .. } = action {
                    self.meet(name);
                }
                return change_tables(&mut self.state, action).map(|()| 0);
            }
            _ => {}
        }
        let name = action.changes_rows_of().ok_or(ErrorKind::NotFound)?;
        self.meet(name);
        if let Action::Update { ident, .. } | Action::Delete { ident, .. } = action {
            self.note(name, Some(*ident));
        }
        let base = Arc::clone(&self.base);
        let table = self.state.table_mut(name).ok_or(ErrorKind::NotFound)?;
        let before = table.rows.clone();
        let count = write_rows(table, action)?;
        let old = by_incarnation(&base, table.incarnation).map(|(_, old)| old);
        let touched = self.touched.entry(table.incarnation).or_default();
        for (ident, row) in &mut table.rows {
            if before.get(ident) != Some(row) {
                touched.insert(*ident);
            }
            // A row that went and came back within the transaction is still the same.
            if let Some(old) = old.and_then(|old| old.rows.get(ident)) {
                row.born = old.born;
            }
        }
        touched.extend(before.keys().filter(|ident| !table.rows.contains_key(ident)));
        Ok(count)
    }

    fn alter(&mut self, name: &str, changes: &[FieldChange]) -> Result<(), ErrorKind> {
        self.meet(name);
        let base = Arc::clone(&self.base);
        let table = self.state.table_mut(name).ok_or(ErrorKind::NotFound)?;
        alter_rows(table, changes)?;
        if by_incarnation(&base, table.incarnation).is_none() {
            return Ok(());
        }
        let adds_unique =
            |change: &FieldChange| matches!(change, FieldChange::AddIndex(new) if new.unique);
        if changes.iter().any(adds_unique) {
            return Err(ErrorKind::InvalidInput);
        }
        let alterations = self.alterations.entry(table.incarnation).or_default();
        alterations.extend(changes.iter().cloned());
        Ok(())
    }

    fn meet(&mut self, name: &str) {
        let incarnation = self.state.table(name).map(|table| table.incarnation);
        self.met.extend(incarnation);
    }

    /// Notes what a read has seen.
    pub fn note_read(&mut self, name: &str, saw: &Saw) {
        self.meet(name);
        match saw {
            Saw::Row(ident, _) => self.note(name, Some(*ident)),
            Saw::Rows(_) | Saw::Count(_) | Saw::Answer(_) => self.note(name, None),
            Saw::Schema(_) | Saw::Nothing => {}
        }
    }

    fn note(&mut self, name: &str, ident: Option<u64>) {
        let incarnation = self.state.table(name).map(|table| table.incarnation);
        let is_old = |incarnation: &u64| by_incarnation(&self.base, *incarnation).is_some();
        self.reads.extend(incarnation.filter(is_old).map(|incarnation| (incarnation, ident)));
    }

    /// Whether a change of several rows may be refused for the one or for the other.
    pub fn may_refuse(&self, action: &Action, kind: ErrorKind) -> bool {
        let (Action::Insert { table, rows } | Action::Upsert { table, rows }) = action else {
            return false;
        };
        let Some(table) = self.state.table(table) else { return false };
        let misfits = || rows.iter().any(|row| table.schema.fit(&row.values).is_err());
        let is_taken = |at: usize, ident: u64| {
            table.rows.contains_key(&ident) || rows.iter().take(at).any(|row| row.ident == ident)
        };
        let mut rows = rows.iter().enumerate();
        match kind {
            ErrorKind::InvalidInput => misfits(),
            ErrorKind::AlreadyExists => rows.any(|(at, row)| is_taken(at, row.ident)),
            _ => false,
        }
    }

    /// Whether the table of a change of rows is gone in one of some states.
    pub fn lacks(&self, action: &Action, states: &[&Arc<State>]) -> bool {
        let table = action.changes_rows_of().and_then(|name| self.state.table(name));
        let is_in = |state: &&Arc<State>| {
            table.is_none_or(|table| by_incarnation(state, table.incarnation).is_some())
        };
        !states.iter().all(is_in)
    }

    /// Whether everything is as it was.
    pub fn is_unchanged(&self) -> bool {
        self.state == *self.base
    }

    /// A serializable transaction may not commit when others have changed what it has read.
    ///
    /// # Errors
    /// What they have changed.
    pub fn expect_reads_unchanged(&self, now: &State) -> Result<(), String> {
        for (incarnation, ident) in &self.reads {
            let old = by_incarnation(&self.base, *incarnation).map(|(_, table)| table);
            let new = by_incarnation(now, *incarnation).map(|(_, table)| table);
            let row = |table: Option<&Arc<TableState>>, ident: &u64| -> Option<ModelRow> {
                table.and_then(|table| table.rows.get(ident)).cloned()
            };
            if new
                .is_some_and(|new| old.is_some_and(|old| old.schema.version != new.schema.version))
            {
                // Its rows have another shape now.
                continue;
            }
            let is_same = match ident {
                Some(ident) => new.is_some() && row(old, ident) == row(new, ident),
                None => new.map(|table| &table.rows) == old.map(|table| &table.rows),
            };
            if !is_same {
                return Err(format!("key {ident:?} of table {incarnation} is not as it was read"));
            }
        }
        Ok(())
    }

    /// Whether something that the transaction has met is not what it was in the first state: rows
    /// that were written again as they were are a conflict, too.
    pub fn is_disturbed_by(&self, now: &State) -> bool {
        let names = |state: &State| -> Vec<_> {
            let tables = state.tables.iter();
            tables.map(|(name, table)| (name.clone(), table.incarnation)).collect()
        };
        let table = |state, incarnation: &u64| {
            by_incarnation(state, *incarnation).map(|(_, table)| Arc::clone(table))
        };
        let is_other =
            |incarnation: &u64| match (table(now, incarnation), table(&self.base, incarnation)) {
                (Some(now), Some(base)) => !Arc::ptr_eq(&now, &base),
                (now, base) => now.is_some() || base.is_some(),
            };
        self.met.iter().any(is_other) || (self.defines && names(now) != names(&self.base))
    }

    /// What it makes of a state that others have changed.
    ///
    /// # Errors
    /// `Conflict` or `AlreadyExists`, where it has to be refused.
    pub fn upon(&self, now: &State) -> Result<State, ErrorKind> {
        let mut after = now.clone();
        let mut placed = Vec::new();
        for (name, old) in &self.base.tables {
            let new = by_incarnation(&self.state, old.incarnation);
            let alterations = self.alterations.get(&old.incarnation);
            let is_renamed = new.is_none_or(|(new, _)| new != name);
            let touched = self.touched.get(&old.incarnation).filter(|keys| !keys.is_empty());
            if !is_renamed && alterations.is_none() && touched.is_none() {
                continue;
            }
            let there = by_incarnation(now, old.incarnation).ok_or(ErrorKind::Conflict)?;
            let is_defined = is_renamed || alterations.is_some();
            if is_defined && (there.0 != name || there.1.schema != old.schema)
                || there.1.schema.version != old.schema.version
            {
                return Err(ErrorKind::Conflict);
            }
            let is_truncated = |(new, was): (&u64, &u64)| {
                *was == old.incarnation && by_incarnation(&self.state, *new).is_some()
            };
            if there.1.rows != old.rows && self.truncated.iter().any(is_truncated) {
                return Err(ErrorKind::Conflict);
            }
            after.tables.remove(there.0);
            let Some((new_name, new)) = new else { continue };
            let alterations = alterations.map_or(&[][..], Vec::as_slice);
            let table = put_upon((old, new), there.1, alterations, touched)?;
            let name = if is_renamed { new_name } else { there.0 };
            placed.push((name.clone(), Arc::new(table)));
        }
        for (name, table) in &self.state.tables {
            if by_incarnation(&self.base, table.incarnation).is_none() {
                if !table.has_unique_values() {
                    return Err(ErrorKind::AlreadyExists);
                }
                placed.push((name.clone(), Arc::clone(table)));
            }
        }
        for (name, table) in placed {
            if after.tables.insert(name, table).is_some() {
                return Err(ErrorKind::Conflict);
            }
        }
        Ok(after)
    }
}

/// Puts the rows of a transaction upon a table.
fn put_upon(
    (old, new): (&TableState, &TableState),
    there: &TableState,
    alterations: &[FieldChange],
    touched: Option<&BTreeSet<u64>>,
) -> Result<TableState, ErrorKind> {
    let mut table = there.clone();
    let touched = || touched.into_iter().flatten();
    for ident in touched() {
        if there.rows.get(ident) != old.rows.get(ident) {
            return Err(ErrorKind::Conflict);
        }
        table.rows.remove(ident);
    }
    let is_test = |change: &FieldChange| matches!(change, FieldChange::AddCheck(_));
    if there.rows != old.rows && alterations.iter().any(is_test) {
        return Err(ErrorKind::Conflict);
    }
    // The rows that the transaction has changed are as it left them.
    alter_rows(&mut table, alterations).map_err(|_| ErrorKind::Conflict)?;
    for ident in touched() {
        if let Some(row) = new.rows.get(ident) {
            table.rows.insert(*ident, row.clone());
        }
    }
    if table.has_unique_values() { Ok(table) } else { Err(ErrorKind::AlreadyExists) }
}

fn alter_rows(table: &mut TableState, changes: &[FieldChange]) -> Result<(), ErrorKind> {
    let (kind, mut schema) = (table.kind, (*table.schema).clone());
    let mut rows = table.rows.clone();
    let mut values: Vec<_> = rows.values_mut().map(|row| &mut row.values).collect();
    // One statement after the other has its own version: what is the same is that it has changed.
    schema.alter_rows(kind, changes, &mut values)?;
    (table.schema, table.rows) = (Arc::new(schema), rows);
    Ok(())
}

fn by_incarnation(state: &State, incarnation: u64) -> Option<(&String, &Arc<TableState>)> {
    state.tables.iter().find(|(_, table)| table.incarnation == incarnation)
}
