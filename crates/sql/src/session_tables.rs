//! The tables that a session sees: those of all, and its own temporary ones.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker::{
    Alteration, BucketOptions, ChangeOptions, Changed, Database, Error, ErrorKind, FileRows, Files,
    KeptFor, NamespaceInfo, OtherTables, PageOptions, Result, Schema, Scope, ScopedBucket,
    ScopedTable, Semantics, Snapshot, TEMPORARY_SCHEMA, TableAs, Transaction, ViewInfo,
    ViewOptions,
};
use esker_query::model::Change;
use esker_query::{Page, Query};

use crate::comment::{CommentStatement, Commented};
use crate::placed::{Home, OwnNames, Placed, no_session};
use crate::run::{Outcome, Sql, run, run_in};
use crate::search_path::InPath;
use crate::sequence;
use crate::session::Session;
use crate::statement::Statement;
use crate::temporary::{OnCommit, Own};

impl Session {
    /// What names mean that are not the session's own: the transaction, or the database.
    pub(crate) fn main_scope(&self) -> &dyn Scope {
        match self.transaction() {
            Some(transaction) => transaction,
            None => self.database(),
        }
    }

    fn own_names(&self) -> Result<OwnNames> {
        self.own.as_ref().map_or_else(|| Ok(OwnNames::default()), Own::names)
    }

    fn own_scope(&self) -> Result<&dyn Scope> {
        self.own.as_ref().map(Own::scope).ok_or_else(|| {
            let message = "the session has no temporary tables: CREATE TEMP TABLE makes one";
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Whether names of a statement have to be looked up in what the session has for itself.
    pub(crate) fn is_placed(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Qualified(_) | Statement::Temporary { .. } => true,
            Statement::Transaction(_)
            | Statement::Setting(_)
            | Statement::Named(_)
            | Statement::Channel(_) => false,
            _ => self.own.is_some() || self.search_path().is_some(),
        }
    }

    /// A statement with the whole names of its tables, where the session has chosen where they are
    /// looked for.
    pub(crate) fn in_path<'s>(&self, statement: &'s Statement) -> Result<Cow<'s, Statement>> {
        let Some(path) = self.search_path() else { return Ok(Cow::Borrowed(statement)) };
        let mut whole = statement.clone();
        self.looking_in(path, |names| names.statement(&mut whole))?;
        Ok(Cow::Owned(whole))
    }

    /// Looks names up in the schemas of a path.
    fn looking_in(
        &self,
        path: &[String],
        look: impl FnOnce(InPath<'_>) -> Result<()>,
    ) -> Result<()> {
        let has_sequence = |home: Home, name: &str| match (home, self.temporary()) {
            (Home::Main, _) => sequence::is_there(self.database(), name),
            (Home::Own, Some(own)) => sequence::is_there(own, name),
            (Home::Own, None) => false,
        };
        let (scope, own) = (self.main_scope(), &self.own_names()?);
        look(InPath { path, scope, own, has_sequence: &has_sequence })
    }

    pub(crate) fn place(&self, statement: &Statement) -> Result<Placed> {
        let names = self.own_names()?;
        let statement = &*self.in_path(statement)?;
        if let Statement::DropIndex { table: None, name, .. }
        | Statement::Comment(CommentStatement { about: Commented::Index(None), name, .. }) =
            statement
            && let Some(own) = self.own_table_of(name)?
        {
            let mut of_own = statement.clone();
            if let Statement::DropIndex { table, .. }
            | Statement::Comment(CommentStatement { about: Commented::Index(table), .. }) =
                &mut of_own
            {
                *table = Some(own);
            }
            return names.place(&of_own);
        }
        match statement.said() {
            Statement::Temporary { statement, .. } => names.place_definition(Home::Own, statement),
            _ => names.place(statement),
        }
    }

    /// The temporary table that has an index, by the name that says that it is one.
    fn own_table_of(&self, index: &str) -> Result<Option<String>> {
        let Some(own) = &self.own else { return Ok(None) };
        for table in own.scope().names()? {
            if own.scope().table(&table)?.schema().index(index).is_ok() {
                return Ok(Some(format!("{TEMPORARY_SCHEMA}.{table}")));
            }
        }
        Ok(None)
    }

    /// A statement with the names by which [`Session::scope`] finds the tables that it reads.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub fn resolved<'s>(&self, statement: &'s Statement) -> Result<Cow<'s, Statement>> {
        if !self.is_placed(statement) {
            return Ok(Cow::Borrowed(statement));
        }
        let placed = self.place(statement)?;
        Ok(match placed.rest {
            // Of tables of both it is as it was.
            Some(_) => Cow::Borrowed(statement.said()),
            None => Cow::Owned(placed.statement),
        })
    }

    /// A query with such names.
    pub(crate) fn resolved_query<'q>(&self, query: &'q Query) -> Result<Cow<'q, Query>> {
        if self.own.is_none() && self.search_path().is_none() {
            return Ok(Cow::Borrowed(query));
        }
        let (mut query, own) = (query.clone(), &self.own_names()?);
        if let Some(path) = self.search_path() {
            self.looking_in(path, |names| names.query(&mut query))?;
        }
        own.place_query(Home::Main, &mut query, &mut BTreeSet::new());
        Ok(Cow::Owned(query))
    }

    /// Whether a statement changes or makes what is the session's own alone.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub fn is_of_temporary(&self, statement: &Statement) -> Result<bool> {
        if matches!(statement.said(), Statement::Temporary { .. }) {
            return Ok(true);
        }
        if !self.is_placed(statement) {
            return Ok(false);
        }
        let placed = self.place(statement)?;
        Ok(placed.home == Home::Own && placed.rest.is_none())
    }

    /// Its temporary tables and views as a database, once it has had some.
    #[must_use]
    pub fn temporary(&self) -> Option<&Database> {
        self.own.as_ref().map(Own::database)
    }

    /// True when it has had temporary tables or views.
    #[must_use]
    pub fn has_temporary(&self) -> bool {
        self.own.is_some()
    }

    /// What the session has for itself, which is made where there is nothing.
    fn own_or_new(&mut self) -> Result<&mut Own> {
        if self.own.is_none() {
            let mut own = Own::new(self.database())?;
            if let Some(open) = &mut self.open {
                own.begin()?;
                open.savepoints.iter_mut().for_each(|saved| saved.own = own.mark());
            }
            self.own = Some(own);
        }
        self.own.as_mut().ok_or_else(no_session)
    }

    /// Runs a statement whose names are looked up in what the session has for itself.
    pub(crate) fn run_placed(
        &mut self,
        statement: &Statement,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        let in_path = self.in_path(statement)?.into_owned();
        if let Statement::Temporary { statement, on_commit } = in_path.said() {
            return self.make_temporary(statement, *on_commit, options);
        }
        let placed = self.place(statement)?;
        match placed.rest {
            Some(_) => self.run_both(placed, options),
            None => self.run_at_home(&placed, options),
        }
    }

    fn run_at_home(&mut self, placed: &Placed, options: &ChangeOptions) -> Result<Outcome> {
        let statement = &placed.statement;
        match (placed.home, statement) {
            (Home::Own, _) => self.run_own(placed, options),
            (Home::Main, Statement::Named(_) | Statement::Cursor(_) | Statement::Setting(_)) => {
                self.run_unplaced(statement, options)
            }
            (
                Home::Main,
                Statement::Query(_)
                | Statement::Summarize(_)
                | Statement::Explain(_)
                | Statement::Copy(_),
            ) => run_in(self.scope(), statement, options),
            (Home::Main, _) => {
                let options = self.with_others(Home::Main, &placed.reads, options)?;
                self.run_main(statement, &options)
            }
        }
    }

    /// Runs a statement on the tables of all.
    fn run_main(&self, statement: &Statement, options: &ChangeOptions) -> Result<Outcome> {
        match self.transaction() {
            Some(transaction) => transaction.run_statement(statement, options),
            None => run(self.database(), statement, options),
        }
    }

    /// Runs a statement on the session's own tables.
    fn run_own(&mut self, placed: &Placed, options: &ChangeOptions) -> Result<Outcome> {
        let statement = &placed.statement;
        self.own_scope()?;
        let options = self.with_others(Home::Own, &placed.reads, options)?;
        let Some(own) = &mut self.own else { return Err(no_session()) };
        own.expect_lasting_targets(statement)?;
        let outcome = match own.transaction() {
            Some(transaction) => transaction.run_statement(statement, &options)?,
            None => run(own.database(), statement, &options)?,
        };
        if let Statement::RenameTable { name, to, .. } = statement
            && !options.dry_run
        {
            own.note_name(name, to);
        }
        own.end_statement()?;
        Ok(outcome)
    }

    fn make_temporary(
        &mut self,
        statement: &Statement,
        on_commit: OnCommit,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        self.own_or_new()?;
        let placed = self.own_names()?.place_definition(Home::Own, statement)?;
        let name = match &placed.statement {
            Statement::CreateTable { name, .. }
            | Statement::CreateTableAs { name, .. }
            | Statement::CreateView { name, .. } => name,
            _ => return Err(no_session()),
        };
        let options = self.with_others(Home::Own, &placed.reads, options)?;
        let Some(own) = &mut self.own else { return Err(no_session()) };
        own.expect_lasting_targets(&placed.statement)?;
        let was_there = own.scope().has_name(name)?;
        let outcome = run_in(own.scope(), &placed.statement, &options)?;
        let replaces = matches!(
            placed.statement,
            Statement::CreateTable { or_replace: true, .. }
                | Statement::CreateTableAs { or_replace: true, .. }
        );
        if !options.dry_run && (!was_there || replaces) {
            own.note(name, on_commit);
        }
        own.end_statement()?;
        Ok(outcome)
    }

    /// Runs a statement about tables of both: on all of them, or on none.
    fn run_both(&mut self, placed: Placed, options: &ChangeOptions) -> Result<Outcome> {
        let Placed { home, statement, reads, rest: Some(rest) } = placed else {
            return self.run_at_home(&placed, options);
        };
        let Some(own) = &mut self.own else { return Err(no_session()) };
        // What is the session's own is changed first, and taken back where the other part fails.
        let begins = own.transaction().is_none();
        if begins {
            own.begin()?;
        }
        let mark = own.mark();
        let first = Placed { home, statement, reads, rest: None };
        let both = self.run_own(&first, options);
        let both = both.and_then(|own| Ok(together(own, self.run_main(&rest, options)?)));
        let Some(own) = &mut self.own else { return Err(no_session()) };
        match (&both, begins) {
            (Ok(_), true) => own.commit()?,
            (Ok(_), false) => own.forget(&mark)?,
            (Err(_), true) => own.roll_back(&mark),
            (Err(_), false) => {
                own.go_back(&mark)?;
                own.forget(&mark)?;
            }
        }
        both
    }

    /// Options with what a statement reads of tables that are not where it runs.
    fn with_others(
        &self,
        home: Home,
        reads: &BTreeSet<String>,
        options: &ChangeOptions,
    ) -> Result<ChangeOptions> {
        let Some(own) = &self.own else { return Ok(options.clone()) };
        let (main, own) = (self.main_scope(), own.scope());
        let others = match home {
            Home::Main => OtherTables::new(main, own, true, reads)?,
            Home::Own => OtherTables::new(own, main, false, reads)?,
        };
        Ok(ChangeOptions { others: Some(others), ..options.clone() })
    }

    /// Where a name leads, and what it is called there.
    fn lookup<'n>(&self, name: &'n str) -> Result<(&dyn Scope, &'n str)> {
        let Some(own) = &self.own else { return Ok((self.main_scope(), name)) };
        let (home, bare) = OwnNames::default().find(name);
        let is_own = match home {
            Home::Own => true,
            // `main.t` says where it is.
            Home::Main => bare == name && own.scope().has_name(name)?,
        };
        Ok((if is_own { own.scope() } else { self.main_scope() }, bare))
    }
}

/// What a statement came to that is about tables of the session and of all.
fn together(own: Outcome, main: Outcome) -> Outcome {
    match (own, main) {
        (Outcome::Done(own), Outcome::Done(main)) => Outcome::Done(format!("{own}; {main}")),
        (_, main) => main,
    }
}

impl Scope for Session {
    fn names(&self) -> Result<Vec<String>> {
        let mut names = self.main_scope().names()?;
        if let Some(own) = &self.own {
            names.extend(own.scope().names()?);
            names.sort();
            names.dedup();
        }
        Ok(names)
    }

    fn views(&self) -> Result<Vec<ViewInfo>> {
        let mut views = self.main_scope().views()?;
        if let Some(own) = &self.own {
            let hidden = self.own_names()?;
            views.retain(|view| hidden.find(&view.name).0 == Home::Main);
            views.extend(own.scope().views()?);
            views.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Ok(views)
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>> {
        self.main_scope().namespaces()
    }

    fn has_view(&self, name: &str) -> Result<bool> {
        let (scope, name) = self.lookup(name)?;
        scope.has_view(name)
    }

    fn has_name(&self, name: &str) -> Result<bool> {
        let (scope, name) = self.lookup(name)?;
        scope.has_name(name)
    }

    fn create_view_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()> {
        self.main_scope().create_view_with(name, query, options)
    }

    fn drop_view(&self, name: &str) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.drop_view(name)
    }

    fn create_rollup_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()> {
        self.main_scope().create_rollup_with(name, query, options)
    }

    fn drop_rollup(&self, name: &str) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.drop_rollup(name)
    }

    fn set_rollup_retention(&self, name: &str, kept: KeptFor) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.set_rollup_retention(name, kept)
    }

    fn rename_view(&self, from: &str, to: &str) -> Result<()> {
        let (scope, from) = self.lookup(from)?;
        scope.rename_view(from, to)
    }

    fn dependants_of(&self, name: &str) -> Result<Vec<String>> {
        let (scope, name) = self.lookup(name)?;
        scope.dependants_of(name)
    }

    fn at_once(&self, act: &mut dyn FnMut(&Transaction) -> Result<()>) -> Result<()> {
        self.main_scope().at_once(act)
    }

    fn table(&self, name: &str) -> Result<ScopedTable<'_>> {
        let (scope, name) = self.lookup(name)?;
        scope.table(name)
    }

    fn snapshot_of(&self, tables: BTreeSet<String>) -> Result<Snapshot> {
        let Some(own) = &self.own else { return self.main_scope().snapshot_of(tables) };
        let others = OtherTables::new(self.main_scope(), own.scope(), true, &tables)?;
        let all = others.with_back(tables);
        Ok(self.main_scope().snapshot_of(all)?.with_others(Some(&others)))
    }

    fn file_access(&self) -> Result<Arc<dyn Files>> {
        self.main_scope().file_access()
    }

    fn copy_rows(
        &self,
        table: &str,
        rows: Box<dyn FileRows>,
        options: &ChangeOptions,
    ) -> Result<u64> {
        let (scope, table) = self.lookup(table)?;
        scope.copy_rows(table, rows, options)
    }

    fn semantics(&self) -> Semantics {
        self.main_scope().semantics()
    }

    fn page(&self, query: &Query, options: &PageOptions) -> Result<Page> {
        self.main_scope().page(query, options)
    }

    fn change_with(&self, change: &Change, options: &ChangeOptions) -> Result<Changed> {
        let Some(own) = &self.own else { return self.main_scope().change_with(change, options) };
        let placed = self.own_names()?.place(&Statement::Change(change.clone()))?;
        let options = self.with_others(placed.home, &placed.reads, options)?;
        let Statement::Change(change) = &placed.statement else { return Err(no_session()) };
        match placed.home {
            Home::Main => self.main_scope().change_with(change, &options),
            Home::Own => own.scope().change_with(change, &options),
        }
    }

    fn create_table(&self, name: &str, schema: Schema) -> Result<()> {
        self.main_scope().create_table(name, schema)
    }

    fn create_table_as(
        &self,
        name: &str,
        query: &Query,
        table: &TableAs,
        options: &ChangeOptions,
    ) -> Result<u64> {
        self.main_scope().create_table_as(name, query, table, options)
    }

    fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.alter_table(name, alterations)
    }

    fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        let (scope, from) = self.lookup(from)?;
        scope.rename_table(from, to)
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.drop_table(name)
    }

    fn truncate_table(&self, name: &str) -> Result<()> {
        let (scope, name) = self.lookup(name)?;
        scope.truncate_table(name)
    }

    fn bucket(&self, name: &str) -> Result<ScopedBucket<'_>> {
        self.main_scope().bucket(name)
    }

    fn create_bucket(&self, name: &str, options: &BucketOptions) -> Result<ScopedBucket<'_>> {
        self.main_scope().create_bucket(name, options)
    }
}
