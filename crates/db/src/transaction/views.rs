//! Views within a transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::Schema;
use esker_format::comment::expect_short;
use esker_format::schema::Alteration;
use esker_format::view::{COLUMNS_MAX, VIEWS_MAX};
use esker_query::{NoRows, Query, ResultColumn, Rollup, Seen, Tables, View};
use esker_table::Table as TableCore;

use super::Transaction;
use super::definitions::Definitions;
use super::undo::Taken;
use crate::catalog::checked_rows;
use crate::catalog::computed_index;
use crate::catalog::defined_view::{DefinedView, ViewKind};
use crate::catalog::kept_rollup;
use crate::catalog::names::{Names, ReadNames};
use crate::catalog::usable_name::expect_usable;
use crate::catalog::view::{ViewInfo, ViewOptions};
use crate::catalog::view_needs::{Altered, OtherSchemas, TableSchemas, refuse_read};
use crate::commit::defined_views::{ChangedView, InputKind, KnownInput};
use crate::feed::changes_table::ChangesTable;
use crate::introspection::{is_made_table, is_system_table};
use crate::statement::options::QueryOptions;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

impl Transaction {
    /// Creates a view: see [`crate::Database::create_view`]. Others see it with the commit.
    ///
    /// # Errors
    /// As for [`crate::Database::create_view`]; `ReadOnly` in a transaction that only reads.
    pub fn create_view(&self, name: &str, query: &Query) -> Result<()> {
        self.create_view_with(name, query, &ViewOptions::default())
    }

    /// The same with names for its columns, settings, or in place of another view.
    ///
    /// # Errors
    /// As for [`crate::Database::create_view_with`].
    pub fn create_view_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()> {
        self.define_view(name, query, options, ViewKind::View)
    }

    /// Creates a rollup: see [`crate::Database::create_rollup`]. Others see it with the commit.
    ///
    /// # Errors
    /// As for [`crate::Database::create_rollup`]; `ReadOnly` in a transaction that only reads.
    pub fn create_rollup(&self, name: &str, query: &Query) -> Result<()> {
        self.create_rollup_with(name, query, &ViewOptions::default())
    }

    /// The same with names for its columns, settings, or in place of another rollup.
    ///
    /// # Errors
    /// As for [`crate::Database::create_rollup_with`].
    pub fn create_rollup_with(
        &self,
        name: &str,
        query: &Query,
        options: &ViewOptions,
    ) -> Result<()> {
        self.all_or_nothing(|within| {
            let old = within.rollup_of(name)?.filter(|_| options.or_replace);
            if let Some((old, _)) = &old
                && within.has_history(name)?
            {
                return within.keep_as_it_is((name, old), query, options);
            }
            within.define_view(name, query, options, ViewKind::Rollup)?;
            within.keep_rollup(name, old.as_ref().map(|(view, _)| &*view.view.query.table))?;
            match (options.history, within.rollup_of(name)?) {
                (Some(kept), Some((view, _))) => within.create_history(name, &view, kept),
                _ => Ok(()),
            }
        })
    }

    /// A rollup with a history stays as it is: it may be kept for another time.
    fn keep_as_it_is(
        &self,
        (name, old): (&str, &DefinedView),
        query: &Query,
        options: &ViewOptions,
    ) -> Result<()> {
        let names = old.view.column_names();
        let has_columns = options.columns.iter().zip(&names).all(|(wanted, found)| wanted == found);
        match options.history {
            Some(kept) if has_columns && old.view.query == *query => {
                self.set_rollup_retention(name, kept)
            }
            _ => Err(Error::invalid(format!(
                "materialized view {name:?} has a history, which another one would not have: DROP \
                 it before"
            ))),
        }
    }

    /// The table of a rollup keeps partial aggregates of it from now on, where they answer it, and
    /// the table of the one with its name before keeps no others.
    fn keep_rollup(&self, name: &str, old: Option<&str>) -> Result<()> {
        let Some((view, _)) = self.rollup_of(name)? else { return Ok(()) };
        let added = {
            let (names, state) = (self.names()?, self.state());
            let schema_of = |core: &Arc<TableCore>| match &state.definitions {
                Some(definitions) => self.schema_within(definitions, core),
                None => Ok(self.as_it_was(Arc::clone(core))?.schema),
            };
            let query = &view.view.query;
            let tables = TableSchemas::of_query(&names, query, &schema_of, view.others.clone())?;
            kept_rollup::addition(name, &view.view, &tables)?
        };
        let dropped = Alteration::DropRollup(name.to_owned());
        let Some((table, added)) = added else {
            let drop = |table: &str| self.alter_definition(table, &[dropped], false);
            return old.map_or(Ok(()), drop); // default: nothing was kept
        };
        if let Some(old) = old.filter(|old| *old != table) {
            self.alter_definition(old, std::slice::from_ref(&dropped), false)?;
        }
        let schema = self.current(&self.state(), &table)?.schema;
        let alterations = [dropped, added];
        let altered = checked_rows::alter(&self.engine, &table, &schema, &alterations)?;
        match (schema.rollup(name), altered.rollup(name)) {
            (Some(before), Some(after)) if before.keeps_same(after) => Ok(()),
            _ => self.alter_definition(&table, &alterations, false),
        }
    }

    /// The table of a rollup keeps nothing of it any more.
    fn forget_rollup(&self, name: &str) -> Result<()> {
        match self.rollup_of(name)? {
            Some((view, true)) => {
                let dropped = Alteration::DropRollup(name.to_owned());
                self.alter_definition(&view.view.query.table, &[dropped], false)
            }
            _ => Ok(()),
        }
    }

    /// The rollup of a name, and whether its table keeps anything of it.
    pub(super) fn rollup_of(&self, name: &str) -> Result<Option<(Arc<DefinedView>, bool)>> {
        let names = self.names()?;
        let Some(view) = names.views.get(name).filter(|view| view.stored.is_rollup) else {
            return Ok(None);
        };
        let table = &view.view.query.table;
        let is_kept = match names.get(table) {
            None => false,
            Some(_) => self.current(&self.state(), table)?.schema.rollup(name).is_some(),
        };
        Ok(Some((Arc::clone(view), is_kept)))
    }

    fn define_view(
        &self,
        name: &str,
        query: &Query,
        options: &ViewOptions,
        kind: ViewKind,
    ) -> Result<()> {
        expect_usable("view", name)?;
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = Arc::clone(&definitions.names);
            let old = names.views.get(name).filter(|_| options.or_replace);
            if let Some(message) = names.taken(name).filter(|_| old.is_none()) {
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            if old.is_some() {
                expect_view(&names, name, kind)?;
            }
            if names.views.len() >= VIEWS_MAX && old.is_none() {
                return Err(Error::invalid(format!("at most {VIEWS_MAX} views")));
            }
            refuse_circle(&names, name, query)?;
            refuse_made_tables(&names, name, query)?;
            let schema_of = |core: &Arc<TableCore>| self.schema_within(definitions, core);
            let others = other_schemas(query, options)?;
            let tables = TableSchemas::of_query(&names, query, &schema_of, others.clone())?;
            let given = QueryOptions { semantics: options.semantics, ..QueryOptions::default() };
            let given = self.engine.statement_options(&given);
            let at = |e: esker_query::Error| Error::from(e).at(format_args!("{kind} {name:?}"));
            let view = View::new(query.clone(), &options.columns, &tables, &given).map_err(at)?;
            if kind == ViewKind::Rollup {
                Rollup::of(&view.query, &tables).map_err(at)?;
            }
            if view.columns.len() > COLUMNS_MAX {
                return Err(Error::invalid(format!(
                    "view {name:?}: at most {COLUMNS_MAX} columns"
                )));
            }
            refuse_fewer_columns(&names, name, &view.columns)?;
            // default: it is shown as the query model writes it
            let text = options.text.clone().unwrap_or_else(|| query.to_string());
            let mut view = DefinedView { others, ..DefinedView::new(view, text)? };
            view.stored.is_rollup = kind == ViewKind::Rollup;
            let view = match old.and_then(|old| old.stored.comment.clone()) {
                None => Arc::new(view),
                comment => Arc::new(view.with_comment(comment)),
            };
            let mut changed = (*names).clone();
            changed.views.insert(name.to_owned(), view);
            self.refuse_unread(&changed, name, definitions)?;
            definitions.names = Arc::new(changed);
            Ok(Taken::Nothing)
        })
    }

    /// Removes a view.
    ///
    /// # Errors
    /// As for [`crate::Database::drop_view`].
    pub fn drop_view(&self, name: &str) -> Result<()> {
        self.drop_kind(name, Some(ViewKind::View))
    }

    /// Removes a rollup.
    ///
    /// # Errors
    /// As for [`crate::Database::drop_rollup`].
    pub fn drop_rollup(&self, name: &str) -> Result<()> {
        self.drop_kind(name, Some(ViewKind::Rollup))
    }

    /// Removes the views and rollups that read a table or view, by themselves or by others.
    ///
    /// # Errors
    /// As for [`Transaction::drop_view`].
    pub fn drop_dependants(&self, name: &str) -> Result<()> {
        self.dependants_of(name)?.iter().try_for_each(|reader| self.drop_kind(reader, None))
    }

    fn drop_kind(&self, name: &str, kind: Option<ViewKind>) -> Result<()> {
        self.all_or_nothing(|within| {
            within.forget_rollup(name)?;
            within.forget_view(name, kind)?;
            within.drop_history(name)
        })
    }

    fn forget_view(&self, name: &str, kind: Option<ViewKind>) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = &definitions.names;
            let kind = match kind {
                Some(kind) => expect_view(names, name, kind)?.kind(),
                None => expect_any_view(names, name, ViewKind::View)?.kind(),
            };
            refuse_read(names, &kind.to_string(), name, true)?;
            Arc::make_mut(&mut definitions.names).views.remove(name);
            Ok(Taken::Nothing)
        })
    }

    /// Gives a view another name.
    ///
    /// # Errors
    /// As for [`crate::Database::rename_view`].
    pub fn rename_view(&self, from: &str, to: &str) -> Result<()> {
        expect_usable("view", to)?;
        self.all_or_nothing(|within| {
            let kept = within.rollup_of(from)?;
            within.rename_definition(from, to)?;
            within.rename_history(from, to)?;
            let Some((view, true)) = kept else { return Ok(()) };
            let renamed = Alteration::RenameRollup { from: from.to_owned(), to: to.to_owned() };
            within.alter_definition(&view.view.query.table, &[renamed], false)
        })
    }

    fn rename_definition(&self, from: &str, to: &str) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let view = Arc::clone(expect_any_view(&definitions.names, from, ViewKind::View)?);
            refuse_read(&definitions.names, &view.kind().to_string(), from, false)?;
            if let Some(message) = definitions.names.taken(to) {
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            let names = Arc::make_mut(&mut definitions.names);
            names.views.remove(from);
            names.views.insert(to.to_owned(), view);
            Ok(Taken::Nothing)
        })
    }

    /// Says what a view is about; nothing any more without a comment.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` when a table has the name and for a comment
    /// that is too long.
    pub fn comment_on_view(&self, name: &str, comment: Option<&str>) -> Result<()> {
        expect_short("a view", comment)?;
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let view = expect_any_view(&definitions.names, name, ViewKind::View)?;
            let view = Arc::new(view.with_comment(comment.map(str::to_owned)));
            Arc::make_mut(&mut definitions.names).views.insert(name.to_owned(), view);
            Ok(Taken::Nothing)
        })
    }

    /// The views that the transaction sees, by name.
    ///
    /// # Errors
    /// As for [`Transaction::tables`].
    pub fn views(&self) -> Result<Vec<ViewInfo>> {
        let names = self.names()?;
        Ok(names.views.iter().map(|(name, view)| ViewInfo::of(&names, name, view)).collect())
    }

    /// True when a view has a name.
    pub(crate) fn has_view(&self, name: &str) -> Result<bool> {
        self.settle()?;
        let state = self.state();
        Ok(match &state.definitions {
            Some(definitions) => definitions.names.views.contains_key(name),
            None => self.snapshot.has_view(name),
        })
    }

    /// Changes a table as [`Transaction::alter_table`] does, and drops the views that need what
    /// changes, and those that read them: all of it or nothing.
    ///
    /// # Errors
    /// As for [`Transaction::alter_table`].
    pub fn alter_table_cascading(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        self.all_or_nothing(|within| {
            let schema = Arc::clone(within.table(name)?.schema());
            let alterations = &computed_index::cascading(&schema, alterations);
            while let Some(view) = within.view_needing(name, alterations)? {
                within.drop_dependants(&view)?;
                within.drop_kind(&view, None)?;
            }
            within.alter_table(name, alterations)
        })
    }

    /// A view that needs what some changes of a table take away.
    fn view_needing(&self, name: &str, alterations: &[Alteration]) -> Result<Option<String>> {
        let names = self.names()?;
        let state = self.state();
        let TableVersion { schema: before, .. } = self.current(&state, name)?;
        let after = checked_rows::alter(&self.engine, name, &before, alterations)?;
        let (before, after) = (&before, &after);
        let altered = Altered { name, before, after, alterations };
        let schema_of = |core: &Arc<TableCore>| match &state.definitions {
            Some(definitions) => self.schema_within(definitions, core),
            None => Ok(self.as_it_was(Arc::clone(core))?.schema),
        };
        let needed = altered.needed(&names, &self.engine.query_options(), &schema_of)?;
        Ok(needed.map(|needed| needed.view))
    }

    /// The views that read a table or view, by themselves or by others: none before those that
    /// read it.
    pub(crate) fn dependants_of(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.names()?.dependants_of(name))
    }

    /// Puts a view in place as another database has it.
    pub(crate) fn copy_view(&self, name: &str, view: &Arc<DefinedView>) -> Result<()> {
        self.settle()?;
        self.define(&mut self.state(), |_, definitions| {
            let names = Arc::make_mut(&mut definitions.names);
            names.views.insert(name.to_owned(), Arc::clone(view));
            Ok(Taken::Nothing)
        })
    }

    /// The tables and views as the transaction sees them.
    pub(crate) fn names(&self) -> Result<Arc<Names>> {
        self.settle()?;
        let state = self.state();
        Ok(match &state.definitions {
            Some(definitions) => Arc::clone(&definitions.names),
            None => Arc::new(self.snapshot.names().into_owned()),
        })
    }

    /// What a table is, where some definitions have been made.
    pub(super) fn schema_within(
        &self,
        definitions: &Definitions,
        core: &Arc<TableCore>,
    ) -> Result<Arc<Schema>> {
        match definitions.get(core.id()) {
            Some(definition) => Ok(Arc::clone(&definition.schema)),
            None => Ok(self.as_it_was(Arc::clone(core))?.schema),
        }
    }

    /// Refuses names by which a view that reads another one could not be read.
    fn refuse_unread(&self, names: &Names, name: &str, definitions: &Definitions) -> Result<()> {
        let schema_of = |core: &Arc<TableCore>| self.schema_within(definitions, core);
        let options = self.engine.query_options();
        for reader in names.dependants_of(name) {
            let tables = TableSchemas::new(names, BTreeSet::from([reader.clone()]), &schema_of)?;
            let fits = tables.view(&reader).is_some_and(|view| view.fits(&tables, &options));
            if !fits {
                let message = format!("view {name:?}: view {reader:?} could not be read any more");
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }
}

impl Definitions {
    /// The views that are not as they were, and what they read that is.
    pub(super) fn changed_views(&self, read_at: u64) -> Result<Vec<ChangedView>> {
        let (base, names) = (&self.base.views, &self.names.views);
        let all: BTreeSet<&String> = base.keys().chain(names.keys()).collect();
        let mut changed = Vec::new();
        for name in all {
            let (before, after) = (base.get(name).cloned(), names.get(name).cloned());
            if before.as_ref().map(Arc::as_ptr) == after.as_ref().map(Arc::as_ptr) {
                continue;
            }
            let inputs = match &after {
                Some(view) => self.known_inputs(view, base, read_at)?,
                None => Vec::new(),
            };
            changed.push(ChangedView { name: name.clone(), before, after, inputs });
        }
        Ok(changed)
    }

    fn known_inputs(
        &self,
        view: &DefinedView,
        base: &BTreeMap<String, Arc<DefinedView>>,
        read_at: u64,
    ) -> Result<Vec<KnownInput>> {
        let mut inputs = Vec::new();
        for input in &view.stored.inputs {
            let name = input.name.clone();
            let is = match (self.names.get(&name), base.get(&name)) {
                // What the transaction has made of it is compared by itself.
                (Some(core), _) if self.get(core.id()).is_some() => continue,
                (Some(core), _) => {
                    let view = core.view();
                    let forgotten = || Error::corrupt(format!("table {name:?}: no schema"));
                    let schema = view.schema_at(read_at).ok_or_else(forgotten)?;
                    InputKind::Table(core.id(), Arc::clone(schema))
                }
                (None, Some(known)) => InputKind::View(Arc::clone(known)),
                (None, None) => continue,
            };
            inputs.push(KnownInput { name, is });
        }
        Ok(inputs)
    }
}

fn expect_view<'n>(names: &'n Names, name: &str, kind: ViewKind) -> Result<&'n Arc<DefinedView>> {
    let view = expect_any_view(names, name, kind)?;
    match view.kind() {
        found if found == kind => Ok(view),
        found => Err(Error::invalid(format!("{name:?} is a {found}: expected a {kind}"))),
    }
}

fn expect_any_view<'n>(
    names: &'n Names,
    name: &str,
    kind: ViewKind,
) -> Result<&'n Arc<DefinedView>> {
    names.views.get(name).ok_or_else(|| {
        if names.contains_key(name) {
            return Error::invalid(format!("{name:?} is a table: expected a {kind}"));
        }
        let known = names.views.keys().map(String::as_str);
        let known = esker_format::suggest::near_or_all(name, "views", known);
        Error::new(ErrorKind::NotFound, format!("no {kind} {name:?}{known}"))
    })
}

/// What a temporary view reads of the tables of all.
fn other_schemas(query: &Query, options: &ViewOptions) -> Result<Option<OtherSchemas>> {
    let Some(others) = &options.others else { return Ok(None) };
    let mut names = BTreeSet::new();
    query.collect_tables(&mut names);
    let theirs = names.iter().filter_map(|name| others.own_name(name)).map(str::to_owned);
    let snapshot = others.snapshot();
    let ReadNames { tables, views } = snapshot.names_read(theirs.collect());
    let look = |name: String| {
        let schema = snapshot.schema_of(snapshot.core(&name)?)?;
        Ok((others.name_here(&name), NoRows::new((*schema).clone())))
    };
    let tables = tables.into_iter().map(look).collect::<Result<_>>()?;
    let view = |(name, view): (String, Arc<DefinedView>)| {
        (others.name_here(&name), others.view_here(&view))
    };
    Ok(Some(Arc::new(TableSchemas::known(tables, views.into_iter().map(view).collect()))))
}

/// Refuses a view that would read itself.
fn refuse_circle(names: &Names, name: &str, query: &Query) -> Result<()> {
    let mut wanted = BTreeSet::new();
    query.collect_tables(&mut wanted);
    let is_within = names.views.contains_key(name) && {
        let read = names.read_by(wanted);
        read.views.contains_key(name)
    };
    match is_within {
        true => Err(Error::invalid(format!("view {name:?} would read itself"))),
        false => Ok(()),
    }
}

/// Refuses columns of which those are not the same that other views read.
fn refuse_fewer_columns(names: &Names, name: &str, columns: &[ResultColumn]) -> Result<()> {
    let Some(old) = names.views.get(name) else { return Ok(()) };
    for (reader, defined) in names.readers_of(name) {
        let Some(Seen::Columns(count)) = defined.view.sees(name) else { continue };
        let places = old.view.columns.iter().take(count).enumerate();
        for (place, before) in places {
            if columns.get(place) != Some(before) {
                let (column, data_type) = (&before.name, before.data_type);
                return Err(Error::invalid(format!(
                    "view {name:?}: view {reader:?} reads it: expected column {} to stay \
                     {column:?} of type {data_type}",
                    place + 1
                )));
            }
        }
    }
    Ok(())
}

/// Refuses a view of tables about tables: what depends on what would have no end; and of files,
/// which the database does not keep.
fn refuse_made_tables(names: &Names, view: &str, query: &Query) -> Result<()> {
    let mut read = BTreeSet::new();
    query.collect_tables(&mut read);
    let is_made = |name: &&String| is_made_table(name) && !names.contains_key(*name);
    match read.iter().find(is_made) {
        None => Ok(()),
        Some(changes) if ChangesTable::named(changes).is_some() => Err(Error::invalid(format!(
            "view {view:?}: {changes} has other rows with each commit, which no view reads"
        ))),
        Some(file) if !is_system_table(file) => Err(Error::invalid(format!(
            "view {view:?}: {file} is a file, which no view reads: load it into a table"
        ))),
        Some(table) => Err(Error::invalid(format!(
            "view {view:?}: {table} is a table about tables, which no view reads"
        ))),
    }
}
