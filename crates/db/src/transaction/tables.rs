//! Creating, altering, renaming and dropping tables within a transaction.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Alteration;
use esker_table::Table as TableCore;

use super::bound_tables::References;
use super::definitions::Definitions;
use super::rows::TransactionTable;
use super::undo::{Step, Taken};
use super::{State, Transaction};
use crate::catalog::checked_rows;
use crate::catalog::checks;
use crate::catalog::checks::Checks;
use crate::catalog::expiry::sets_expiry;
use crate::catalog::index_test;
use crate::catalog::looked_up;
use crate::catalog::new_fields::NewFields;
use crate::catalog::references::{Told, refuse_named};
use crate::catalog::usable_name::expect_usable;
use crate::catalog::view_needs::{Altered, refuse_read};
use crate::feed::shape::refuse_companion;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

impl Transaction {
    /// The names of the tables and buckets that the transaction sees, sorted.
    ///
    /// # Errors
    /// As for [`Transaction::table`], but `NotFound`.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.settle()?;
        let state = self.state();
        Ok(match &state.definitions {
            Some(definitions) => definitions.names.keys().cloned().collect(),
            None => self.snapshot.table_names(),
        })
    }

    /// Creates a table, with its rows and indexes part of the transaction: others see it with the
    /// commit, or never.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// let transaction = db.begin()?;
    /// transaction.create_table("numbers", schema)?.insert(&[7i64.into()])?;
    /// assert!(db.table("numbers").is_err());
    /// transaction.commit()?;
    /// assert_eq!(db.table("numbers")?.count()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`crate::Database::create_table`]; `ReadOnly` in a transaction that only reads. That
    /// another commit has created a table of this name is reported by [`Transaction::commit`].
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<TransactionTable<'_>> {
        expect_usable("table", name)?;
        self.settle()?;
        let mut find = |table: &str| Ok(self.current(&self.state(), table)?.schema);
        let schema = looked_up::settled(schema, &mut find)?;
        Checks::of(&schema)?;
        let schema = checks::with_exact_names(schema)?;
        looked_up::expect_fits(name, &schema, &mut find)?;
        self.define(&mut self.state(), |state, definitions| {
            refuse_name(definitions, name)?;
            let (schema, sequences) = self.engine.with_own_sequences(name, schema)?;
            self.engine.expect_sequences(&schema)?;
            let (schema, told) = self.complete(definitions, (name, schema), 0)?;
            let schema = self.with_new_feed(definitions, (name, schema))?;
            definitions.create(&self.engine.new_numbered_table(name, schema)?, sequences)?;
            self.tell(state, definitions, (told, false)).map(Taken::Several)
        })?;
        self.table(name)
    }

    /// Removes a table with all it holds.
    ///
    /// # Errors
    /// `NotFound` when the transaction sees none of this name, `ReadOnly`. That another commit has
    /// altered, renamed or dropped it is reported by [`Transaction::commit`].
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |state, definitions| {
            let current = self.current(state, name)?;
            refuse_read(&definitions.names, "table", name, true)?;
            let schema_of = |core: &Arc<TableCore>| self.schema_within(definitions, core);
            looked_up::refuse_gone(&definitions.names, name, &schema_of)?;
            refuse_named(name, &current.schema, &[])?;
            let references = current.schema.references();
            let mut taken = self.untell(state, definitions, (name, references))?;
            refuse_companion(name, &current.schema, "dropped")?;
            self.drop_feed(definitions, (name, &current.schema))?;
            definitions.drop_table(name, &current)?;
            let id = current.core.id();
            taken.push(Taken::Changes(id, state.changes.remove(&id).map(Box::new)));
            Ok(Taken::Several(taken))
        })
    }

    /// Removes all rows of a table at once, however many there are. Row ids begin again at 1. A
    /// [`TransactionTable`] that was taken before has to be taken again.
    ///
    /// # Errors
    /// As for [`Transaction::drop_table`]. That another commit has changed rows of the table is
    /// reported by [`Transaction::commit`].
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        refuse_named(name, self.table(name)?.schema(), &[])?;
        self.truncate_rows(name)
    }

    /// The same where other tables whose rows name its rows are truncated, too.
    pub(super) fn truncate_rows(&self, name: &str) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |state, definitions| {
            let current = self.current(state, name)?;
            refuse_companion(name, &current.schema, "truncated")?;
            let new = self.engine.new_numbered_table(name, (*current.schema).clone())?;
            definitions.truncate(name, &current, &new)?;
            let id = current.core.id();
            Ok(Taken::Changes(id, state.changes.remove(&id).map(Box::new)))
        })
    }

    /// Gives a table another name.
    ///
    /// # Errors
    /// As for [`Transaction::drop_table`]; `AlreadyExists` when another table has the new name,
    /// `InvalidInput` for a bad name.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        expect_usable("table", to)?;
        self.settle()?;
        self.define(&mut self.state(), |state, definitions| {
            let current = self.current(state, from)?;
            refuse_name(definitions, to)?;
            refuse_read(&definitions.names, "table", from, false)?;
            let schema_of = |core: &Arc<TableCore>| self.schema_within(definitions, core);
            looked_up::refuse_gone(&definitions.names, from, &schema_of)?;
            refuse_companion(from, &current.schema, "renamed")?;
            self.rename_feed(definitions, (from, &current.schema), to)?;
            definitions.rename(from, to, &current)?;
            let schema = Arc::clone(&current.schema);
            self.tell_name(state, definitions, (from, to), &schema).map(Taken::Several)
        })
    }

    /// Changes the fields, checks and indexes of a table: all the changes or none. Rows that the
    /// transaction has put get the new fields, too; a [`TransactionTable`] that was taken before
    /// has to be taken again. When values or a check are tested, no other commit may change rows of
    /// the table before this one.
    ///
    /// # Errors
    /// As for [`crate::Database::alter_table`]; `InvalidInput` for a unique index, or another field
    /// by which rows expire, of a table that was there before the transaction, and for a
    /// transaction that only reads `ReadOnly`.
    pub fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        match NewFields::of(alterations) {
            Some(new) => self.alter_and_fill(name, &new),
            None => self.alter_definition(name, alterations, false),
        }
    }

    /// Changes what a table is; where `is_of_rows`, its rows depend on which there are, so that no
    /// other commit may change them.
    pub(crate) fn alter_definition(
        &self,
        name: &str,
        alterations: &[Alteration],
        is_of_rows: bool,
    ) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |state, definitions| {
            let current = self.current(state, name)?;
            let alterations = self.settled_changes(state, &current, alterations)?;
            let (alterations, sequences) = self.engine.with_new_sequences(name, &alterations)?;
            let alterations = alterations.as_slice();
            let schema = self.altered_schema(state, (name, &current), alterations)?;
            self.engine.expect_sequences(&schema)?;
            let references = References::of(&current.schema, &schema);
            let (schema, told) = match references.new {
                0 => (schema, Told::new()),
                _ => {
                    let first = schema.references().len() - references.new;
                    let own = (name, (*schema).clone());
                    let (schema, told) = self.complete(definitions, own, first)?;
                    (Arc::new(schema.with_version_after(&current.schema)), told)
                }
            };
            let schema = references.without_own_referrers(name, schema)?;
            let schema = References::with_own_columns(name, schema)?;
            let (before, after) = (&current.schema, &schema);
            let altered = Altered { name, before, after, alterations };
            altered.refuse_needed(&definitions.names, &self.engine.query_options(), &|core| {
                self.schema_within(definitions, core)
            })?;
            let is_new = definitions.get(current.core.id()).is_some_and(|table| table.is_new());
            let adds_unique = |a: &Alteration| matches!(a, Alteration::AddIndex(new) if new.unique);
            if !is_new && alterations.iter().any(adds_unique) {
                return Err(Error::invalid(format!(
                    "a unique index of table {name:?}, which was there before the transaction, \
                     expected outside of one: COMMIT or ROLLBACK first"
                )));
            }
            if !is_new && sets_expiry(alterations) {
                return Err(Error::invalid(format!(
                    "another field by which rows expire of table {name:?}, which was there before \
                     the transaction, expected outside of one: COMMIT or ROLLBACK first"
                )));
            }
            let tests =
                |a: &Alteration| matches!(a, Alteration::AddCheck(_) | Alteration::SetNotNull(_));
            let is_tested =
                alterations.iter().any(tests) || index_test::is_tested(&schema, alterations)?;
            if is_tested {
                let rows = self.with_changes(state, [&current.core])?;
                let rows = rows.table_core(&current.core)?;
                checked_rows::test_not_null(&self.engine, &rows, &schema)?;
                checked_rows::test_rows(&self.engine, &rows, &schema, alterations)?;
                index_test::test_rows(&self.engine, &rows, &schema, alterations)?;
            }
            if references.new > 0 {
                let first = schema.references().len() - references.new;
                self.test_references(state, definitions, (&current, &schema), first)?;
            }
            let schema = self.alter_companions(definitions, name, (&current.schema, schema))?;
            let mut taken = vec![take(state, &current, &schema)?];
            let holds_rows = (is_tested || is_of_rows || references.new > 0) && !is_new;
            definitions.alter(name, &current, (&schema, holds_rows), sequences)?;
            taken.extend(self.tell(state, definitions, (told, true))?);
            taken.extend(self.untell(state, definitions, (name, &references.gone))?);
            taken.extend(self.tell_columns(state, definitions, (name, &schema))?);
            Ok(Taken::Several(taken))
        })
    }

    /// Changes what is defined: all of it or nothing.
    pub(super) fn define(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut State, &mut Definitions) -> Result<Taken>,
    ) -> Result<()> {
        self.expect_writes()?;
        let base = state.definitions.clone();
        let mut definitions = match &base {
            Some(base) => (**base).clone(),
            None => Definitions::new(self.snapshot.names().into_owned()),
        };
        let taken = change(state, &mut definitions)?;
        state.definitions = Some(Arc::new(definitions));
        state.push_undo(Step::Defined { base, taken });
        let outcome = self.reserve(state);
        if outcome.is_err() {
            state.undo_to(state.undo.len() - 1);
        }
        state.forget_undo();
        outcome
    }

    /// A table as it is now.
    pub(super) fn current(&self, state: &State, name: &str) -> Result<TableVersion> {
        let Some(definitions) = &state.definitions else {
            let core = Arc::clone(self.snapshot.core(name)?);
            return self.as_it_was(core);
        };
        let Some(core) = definitions.names.get(name) else {
            self.engine.acknowledge_published()?;
            return Err(crate::engine::no_table(name, &definitions.names));
        };
        self.version_of(state, Arc::clone(core))
    }

    /// A table with the schema that it has in the transaction.
    pub(super) fn version_of(&self, state: &State, core: Arc<TableCore>) -> Result<TableVersion> {
        let definitions = state.definitions.as_ref();
        match definitions.and_then(|definitions| definitions.get(core.id())) {
            Some(definition) => Ok(TableVersion::new(core, Arc::clone(&definition.schema))),
            None => self.as_it_was(core),
        }
    }

    /// A table as of the commit that is read at, which is registered, so that its schema is known.
    pub(super) fn as_it_was(&self, core: Arc<TableCore>) -> Result<TableVersion> {
        let (view, at) = (core.view(), self.read_at());
        let forgotten = || {
            let name = core.name();
            Error::corrupt(format!("table {name:?}: its schema at commit {at} is forgotten"))
        };
        let schema = Arc::clone(view.schema_at(at).ok_or_else(forgotten)?);
        Ok(TableVersion::new(core, schema))
    }

    /// Refuses a table that the transaction has made, or made another, and taken back.
    pub(super) fn expect_as_it_was(&self, current: &TableVersion) -> Result<()> {
        let TableVersion { core, schema, .. } = current;
        if self.snapshot.has(core) && self.as_it_was(Arc::clone(core))?.schema == *schema {
            return Ok(());
        }
        let name = core.name();
        let message = format!(
            "the transaction has taken back what it had made of table {name:?}: take it again by \
             its name"
        );
        Err(Error::invalid(message))
    }
}

/// Gives the changes of a table's rows another schema; returns what they were.
pub(super) fn take(
    state: &mut State,
    current: &TableVersion,
    schema: &Arc<Schema>,
) -> Result<Taken> {
    let id = current.core.id();
    // Those that come later are of the schema that goes with this definition.
    let Some(changes) = state.changes.get_mut(&id) else { return Ok(Taken::Changes(id, None)) };
    if current.schema.has_same_rows_as(schema) {
        let base = std::mem::replace(&mut changes.current.schema, Arc::clone(schema));
        return Ok(Taken::Schema(id, base));
    }
    let converted = changes.converted(schema)?;
    let base = std::mem::replace(changes, converted);
    Ok(Taken::Changes(id, Some(Box::new(base))))
}

pub(super) fn refuse_name(definitions: &Definitions, name: &str) -> Result<()> {
    match definitions.names.taken(name) {
        Some(message) => Err(Error::new(ErrorKind::AlreadyExists, message)),
        None => Ok(()),
    }
}

impl State {
    /// Puts back what a definition has taken.
    pub(super) fn give_back(&mut self, taken: Taken) {
        match taken {
            Taken::Nothing => {}
            Taken::Several(several) => several.into_iter().rev().for_each(|t| self.give_back(t)),
            Taken::Changes(id, Some(changes)) => drop(self.changes.insert(id, *changes)),
            Taken::Changes(id, None) => drop(self.changes.remove(&id)),
            Taken::Schema(id, schema) => {
                if let Some(changes) = self.changes.get_mut(&id) {
                    changes.current.schema = schema;
                }
            }
        }
    }
}
