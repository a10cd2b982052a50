//! Operations of a client on tables themselves, and statements.

use esker::ErrorKind;

use super::client::{Client, KEYS, TABLES};
use super::world::Done;
use crate::history::Action;
use crate::model::{State, TableKind};
use crate::schema::FieldChange;
use crate::statement::Statement;

const CHANGED: Done = Done::Changed { row_id: None, commit: None };

impl Client {
    pub(super) fn create_table(&mut self) {
        let name = self.generator.pick(TABLES);
        let kind = self.generator.pick(TableKind::ALL);
        self.create_named(name, kind);
    }

    pub(super) fn create_named(&mut self, name: &str, kind: TableKind) {
        let incarnation = self.world.serial();
        let action = Action::Create { name: name.to_owned(), kind, incarnation };
        self.change(action, |db| {
            db.create_table(name, kind.schema()?)?;
            Ok(CHANGED)
        });
    }

    pub(super) fn drop_table(&mut self) {
        let name = self.generator.pick(TABLES);
        // One that is being made is waited for.
        if !self.world.lock().remade.contains(name) {
            self.drop_named(name);
        }
    }

    pub(super) fn drop_named(&mut self, name: &str) {
        self.change(Action::Drop { name: name.to_owned() }, |db| {
            db.drop_table(name)?;
            Ok(CHANGED)
        });
    }

    pub(super) fn rename_table(&mut self, state: &State) {
        let Some((from, _)) = self.pick_table(state) else { return };
        let to = self.generator.pick(TABLES);
        self.rename_named(&from, to);
    }

    pub(super) fn rename_named(&mut self, from: &str, to: &str) {
        let action = Action::Rename { from: from.to_owned(), to: to.to_owned() };
        self.change(action, |db| {
            db.rename_table(from, to)?;
            Ok(CHANGED)
        });
    }

    pub(super) fn truncate_table(&mut self, state: &State) {
        if let Some((name, _)) = self.pick_table(state) {
            self.truncate_named(&name);
        }
    }

    pub(super) fn truncate_named(&mut self, name: &str) {
        let incarnation = self.world.serial();
        let action = Action::Truncate { table: name.to_owned(), incarnation };
        self.change(action, |db| {
            db.truncate_table(name)?;
            Ok(CHANGED)
        });
    }

    pub(super) fn alter_table(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let mut changes = FieldChange::draw(kind, &table.schema, &mut self.generator);
        if !self.waits_allowed {
            // An index is built before its creation returns.
            changes.retain(|change| !matches!(change, FieldChange::AddIndex(_)));
        }
        if changes.is_empty() {
            return;
        }
        let checks = changes.iter().any(|change| matches!(change, FieldChange::AddCheck(_)));
        // A check is tested on what is durable, and tested again when there is more.
        if !checks || self.settle() {
            self.alter_named(&name, changes);
        }
    }

    pub(super) fn alter_named(&mut self, name: &str, changes: Vec<FieldChange>) {
        let alterations = changes.iter().map(FieldChange::to_alteration);
        let alterations = match alterations.collect::<esker::Result<Vec<_>>>() {
            Ok(alterations) => alterations,
            Err(e) => return self.world.fail(format!("a change that cannot be said: {e}")),
        };
        let action = Action::Alter { table: name.to_owned(), changes };
        self.change(action, |db| {
            let commit = Some(db.alter_table_as_of(name, &alterations)?);
            Ok(Done::Changed { row_id: None, commit })
        });
    }

    /// Waits until what is committed is durable; false when others have committed meanwhile. A
    /// statement reads what is durable, and begins again when that is not the newest: then its
    /// commit is not simply the next one.
    fn settle(&self) -> bool {
        let Some(begun) = self.world.begin(None, None) else { return false };
        if let Err(e) = begun.db.sync() {
            let mut inner = self.world.lock();
            inner.over |= matches!(e.kind(), ErrorKind::Poisoned | ErrorKind::OutcomeUnknown);
            if !inner.history.is_faulty() {
                inner.problem.get_or_insert(format!("sync: {e}"));
            }
            return false;
        }
        let info = begun.db.info();
        info.visible_commit == info.published_commit
    }

    /// A statement.
    pub(super) fn state(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        // Others may begin to change the table's fields while this waits.
        if !self.settle() || self.world.lock().altered.contains(&name) {
            return;
        }
        let world = std::sync::Arc::clone(&self.world);
        let statement = Statement::draw(table, &mut self.generator, |generator| {
            let serial = world.serial();
            let is_generated = kind == TableKind::Generated;
            let ident = if is_generated { serial } else { generator.below(KEYS) };
            kind.row_of(&table.schema, ident, serial, generator)
        });
        let change = statement.to_change(&name, &table.schema);
        let drawn = std::sync::Arc::clone(&table.schema);
        let action = Action::Statement { table: name, statement, drawn };
        self.change(action, |db| Ok(Done::Rows(db.change(&change)?)));
    }
}
