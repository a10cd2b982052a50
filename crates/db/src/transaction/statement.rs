//! Questions and statements within a transaction, which see its changes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use esker_format::Batch;
use esker_query::model::Change;
use esker_query::{Explanation, Query, QueryResult, Statistics};
use esker_table::Table as TableCore;

use super::{State, Transaction};
use crate::introspection::is_made_table;
use crate::read::snapshot::Overlays;
use crate::read::tables::{OtherTables, is_elsewhere};
use crate::statement::{ChangeOptions, Changed};
use crate::{QueryOptions, Result, Snapshot};

impl Transaction {
    /// Answers a query about the tables as the transaction sees them.
    ///
    /// ```
    /// use esker::{DataType, Options, Query, Schema, Value};
    /// use esker_query::model::Expr;
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// db.create_table("t", schema)?;
    /// let transaction = db.begin()?;
    /// transaction.table("t")?.insert(&[1i64.into()])?;
    /// let mut query = Query::table("t");
    /// query.select(Expr::count());
    /// assert_eq!(transaction.query(&query)?.to_rows(), [[Value::Uint(1)]]);
    /// assert_eq!(db.query(&query)?.to_rows(), [[Value::Uint(0)]]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn query(&self, query: &Query) -> Result<QueryResult> {
        self.query_with(query, &QueryOptions::default())
    }

    /// Answers a query with parameters, or within limits of its own.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn query_with(&self, query: &Query, options: &QueryOptions) -> Result<QueryResult> {
        self.snapshot_for(query)?.query_with(query, options)
    }

    /// Answers a query some thousand rows at a time, until `sink` breaks, as the transaction is
    /// now: later changes do not show.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn stream_with(
        &self,
        query: &Query,
        options: &QueryOptions,
        sink: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        self.snapshot_for(query)?.stream_with(query, options, sink)
    }

    /// How a query is answered, and what came of running it.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn explain_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.snapshot_for(query)?.explain_with(query, options)
    }

    /// How a query would be answered. It is not run.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn plan(&self, query: &Query) -> Result<Explanation> {
        self.plan_with(query, &QueryOptions::default())
    }

    /// As [`Transaction::plan`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn plan_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.snapshot_for(query)?.plan_with(query, options)
    }

    /// Runs a statement that changes rows, all of it or nothing; returns how many rows it added,
    /// changed or removed.
    ///
    /// # Errors
    /// As for [`crate::Database::change`], but that what others commit meanwhile is reported by
    /// [`Transaction::commit`].
    pub fn change(&self, change: &Change) -> Result<u64> {
        self.change_with(change, &ChangeOptions::default()).map(|changed| changed.rows)
    }

    /// Runs a statement that changes rows, with parameters or only to see what it would do, and
    /// answers what it is to return of the rows.
    ///
    /// # Errors
    /// As for [`Transaction::change`].
    pub fn change_with(&self, change: &Change, options: &ChangeOptions) -> Result<Changed> {
        self.settle()?;
        crate::statement::change_within(self, change, options)
    }

    /// The database as the transaction sees it, for a query. Its tables count as read.
    pub(crate) fn snapshot_for(&self, query: &Query) -> Result<Snapshot> {
        self.snapshot_beside(query, None)
    }

    /// The same, with tables of another database.
    pub(crate) fn snapshot_beside(
        &self,
        query: &Query,
        others: Option<&OtherTables>,
    ) -> Result<Snapshot> {
        let mut names = BTreeSet::new();
        query.collect_tables(&mut names);
        names.extend(others.into_iter().flat_map(OtherTables::back).cloned());
        Ok(self.snapshot_of(names)?.with_others(others))
    }

    /// The same for tables by their names.
    pub(crate) fn snapshot_of(&self, names: BTreeSet<String>) -> Result<Snapshot> {
        self.settle()?;
        let mut state = self.state();
        let is_there = |name: &str| match &state.definitions {
            Some(definitions) => definitions.names.contains_key(name),
            None => self.snapshot.has_name(name),
        };
        let names = self.names_of(&state, names);
        // What is read of the catalogue, and files, are no tables.
        let is_made = |name: &str| (is_made_table(name) || is_elsewhere(name)) && !is_there(name);
        let names = names.iter().filter(|name| !name.is_empty() && !is_made(name));
        let tables = names.map(|name| self.current(&state, name)).collect::<Result<Vec<_>>>()?;
        self.with_changes(&mut state, tables.iter().map(|current| &current.core))
    }

    /// The tables that are read where some names are: those of views in their place.
    fn names_of(&self, state: &State, names: BTreeSet<String>) -> BTreeSet<String> {
        match &state.definitions {
            Some(definitions) => definitions.names.read_by(names).tables,
            None => self.snapshot.names_read(names).tables,
        }
    }

    /// The snapshot with what the transaction has changed of some tables, which count as read.
    pub(crate) fn with_changes<'c>(
        &self,
        state: &mut State,
        cores: impl IntoIterator<Item = &'c Arc<TableCore>>,
    ) -> Result<Snapshot> {
        let mut overlays = Overlays::new();
        for core in cores {
            let definition = state.definitions.as_ref().and_then(|new| new.get(core.id()));
            let is_new = definition.is_some_and(|table| table.is_new());
            if self.remembers_reads() && !is_new {
                state.reads.note_table(core);
            }
            let Some(delta) = state.changes.get_mut(&core.id()) else { continue };
            if !delta.is_untouched() {
                let base = self.base_of(state.definitions.as_deref());
                let now = self.moment_of(&delta.current.schema);
                overlays.insert(core.id(), delta.overlay(base, now)?);
            }
        }
        Ok(self.snapshot.with_overlays(overlays, state.definitions.clone()))
    }
}
