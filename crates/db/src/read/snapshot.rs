//! Reading as of one commit, for as long as one likes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use esker_arena::{ReaderGuard, ReaderKind};
use esker_format::{Batch, Field, Moment, Room, Schema, TableId, Value, ValueRef};
use esker_query::json::JsonQuery;
use esker_query::{
    AnswerSink, Explanation, Query, QueryResult, Resolved, ResultColumn, Statistics, Tables,
};
use esker_table::table::{Overlay, SnapshotPart};
use esker_table::{Found, Table as TableCore, TableSnapshot};

use crate::catalog::names::{Names, ReadNames};
use crate::commit::fit::fit_key;
use crate::commit::times::FixedTime;
use crate::engine::no_table;
use crate::engine_handle::EngineHandle;
use crate::read::tables::{OpenTables, OtherTables};
use crate::transaction::Definitions;
use crate::{Error, QueryOptions, Result, Row};

/// The database as of one commit. While it lives, no merge drops what it sees.
#[derive(Clone)]
pub struct Snapshot {
    /// Of who reads, where that is not who took the snapshot: cursors of others may go on in it.
    reader: Option<EngineHandle>,
    inner: Arc<Registered>,
    /// What the transaction that reads has changed.
    overlays: Option<Arc<Overlays>>,
    /// What it has made of the tables themselves.
    definitions: Option<Arc<Definitions>>,
    /// Tables of another database that are read beside.
    others: Option<Arc<OtherTables>>,
}

/// What a transaction has changed, by table.
pub(crate) type Overlays = BTreeMap<TableId, Overlay>;

struct Registered {
    engine: EngineHandle,
    guard: Option<ReaderGuard>,
    commit: u64,
    time: FixedTime,
    /// The moment, where no row had an end when it was taken.
    late: OnceLock<Moment>,
    /// The tables when it was taken: those dropped since can be read, those made since cannot.
    names: Arc<Names>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.guard = None;
        self.engine.wake_for_reclaim();
    }
}

impl Snapshot {
    pub(crate) fn engine(&self) -> &EngineHandle {
        // default: the one who took the snapshot reads.
        self.reader.as_ref().unwrap_or(&self.inner.engine)
    }

    /// The same snapshot by another handle of its engine.
    pub(crate) fn with_engine(self, engine: &EngineHandle) -> Self {
        Self { reader: Some(engine.clone()), ..self }
    }

    pub(crate) fn take(engine: &EngineHandle) -> Result<Self> {
        Self::take_at(engine, ReaderKind::ReadOnly, || engine.visible())
    }

    /// As of what is published, which may not be durable: such a reader has to wait before it
    /// tells anybody. For a transaction that may write.
    pub(crate) fn take_published(engine: &EngineHandle) -> Result<Self> {
        Self::take_at(engine, ReaderKind::ReadWrite, || engine.watermarks.published())
    }

    fn take_at(engine: &EngineHandle, kind: ReaderKind, commit: impl Fn() -> u64) -> Result<Self> {
        // Before the commit: what is visible then has not expired any earlier.
        let mut time = engine.fix_time();
        let began = engine.environment.clock.monotonic_ns();
        let guard = engine.registry.register_listed(kind, commit, began)?;
        let commit = guard.commit();
        // The first row with an end may be among those that are visible.
        if !time.is_fixed() && engine.has_expiring() {
            time = engine.fix_time();
        }
        let names = Arc::clone(engine.names.load().at(commit));
        let (engine, late) = (engine.clone(), OnceLock::new());
        let inner = Registered { engine, guard: Some(guard), commit, time, late, names };
        let inner = Arc::new(inner);
        Ok(Self { reader: None, inner, overlays: None, definitions: None, others: None })
    }

    /// The same, with what a transaction has changed.
    pub(crate) fn with_overlays(
        &self,
        overlays: Overlays,
        definitions: Option<Arc<Definitions>>,
    ) -> Self {
        let overlays = Some(Arc::new(overlays)).filter(|overlays| !overlays.is_empty());
        let (reader, inner) = (self.reader.clone(), Arc::clone(&self.inner));
        Self { reader, inner, overlays, definitions, others: self.others.clone() }
    }

    /// The same, with tables of another database by names with their schema before.
    #[doc(hidden)]
    #[must_use]
    pub fn with_others(self, others: Option<&OtherTables>) -> Self {
        let others = others.cloned().map(Arc::new).or(self.others);
        Self { others, ..self }
    }

    /// Tables of another database that are read beside.
    pub(crate) fn others(&self) -> Option<&OtherTables> {
        self.others.as_deref()
    }

    /// The moment at which rows have expired.
    pub(crate) fn now(&self) -> Moment {
        self.inner.time.now()
    }

    /// The same, also where no row had an end when the snapshot was taken.
    pub(crate) fn moment(&self) -> Moment {
        match self.now() {
            Moment::FIRST => *self.inner.late.get_or_init(|| self.engine().now()),
            fixed => fixed,
        }
    }

    /// The commit it reads at.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.inner.commit
    }

    /// A table as of this commit.
    ///
    /// # Errors
    /// `NotFound` when there was no such table then.
    pub fn table(&self, name: &str) -> Result<SnapshotTable> {
        self.table_core(self.core(name)?)
    }

    /// The names of the tables and buckets that there were as of this commit.
    pub(crate) fn table_names(&self) -> Vec<String> {
        self.names().keys().cloned().collect()
    }

    /// The tables that there were as of this commit, or are for the transaction that reads.
    pub(crate) fn names(&self) -> Cow<'_, Names> {
        if let Some(definitions) = &self.definitions {
            return Cow::Borrowed(&definitions.names);
        }
        let names = self.inner.names.iter();
        let there = names.filter(|(_, table)| table.created_at() <= self.commit());
        let there = there.map(|(name, core)| (name.clone(), Arc::clone(core)));
        let Names { views, namespaces, .. } = &*self.inner.names;
        let names = there.collect::<Names>().with_others(views.clone(), namespaces.clone());
        Cow::Owned(names)
    }

    /// True when a view had a name as of this commit.
    pub(crate) fn has_view(&self, name: &str) -> bool {
        match &self.definitions {
            Some(definitions) => definitions.names.views.contains_key(name),
            None => self.inner.names.views.contains_key(name),
        }
    }

    /// What is read where some names are: of views the tables that they read.
    pub(crate) fn names_read(&self, names: BTreeSet<String>) -> ReadNames {
        match &self.definitions {
            Some(definitions) => definitions.names.read_by(names),
            None => self.inner.names.read_by(names),
        }
    }

    /// True when a table or bucket has a name as of this commit, or for the transaction that reads.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        match &self.definitions {
            Some(definitions) => definitions.names.contains_key(name),
            None => {
                let found = self.inner.names.get(name);
                found.is_some_and(|table| table.created_at() <= self.commit())
            }
        }
    }

    /// What a table is as of this commit, or for the transaction that reads.
    pub(crate) fn schema_of(&self, core: &Arc<TableCore>) -> Result<Arc<Schema>> {
        if let Some(definition) = self.definitions.as_ref().and_then(|new| new.get(core.id())) {
            return Ok(Arc::clone(&definition.schema));
        }
        let (view, name) = (core.view(), core.name());
        let schema = view.schema_at(self.commit()).map(Arc::clone);
        schema.ok_or_else(|| {
            let at = self.commit();
            Error::corrupt(format!("table {name:?}: its schema at commit {at} is forgotten"))
        })
    }

    /// True for a table that was there as of this commit, whatever its name is now.
    pub(crate) fn has(&self, core: &Arc<TableCore>) -> bool {
        let names = &self.inner.names;
        let is_it = |there: &Arc<TableCore>| Arc::ptr_eq(there, core);
        let is_there = names.get(core.name().as_str()).is_some_and(is_it);
        (is_there || names.values().any(is_it)) && core.created_at() <= self.commit()
    }

    /// The table that had a name as of this commit.
    pub(crate) fn core(&self, name: &str) -> Result<&Arc<TableCore>> {
        let is_there = |table: &&Arc<TableCore>| table.created_at() <= self.commit();
        let (names, found) = match &self.definitions {
            Some(definitions) => (&definitions.names, definitions.names.get(name)),
            None => {
                let names = &self.inner.names;
                (names, names.get(name).filter(is_there))
            }
        };
        match found {
            Some(core) => Ok(core),
            None => {
                self.engine().acknowledge_published()?;
                Err(no_table(name, names))
            }
        }
    }

    pub(crate) fn table_core(&self, core: &Arc<TableCore>) -> Result<SnapshotTable> {
        let overlay = self.overlays.as_ref().and_then(|overlays| overlays.get(&core.id()));
        let rows = match overlay {
            Some(overlay) => core.snapshot_with(self.commit(), self.now(), overlay)?,
            None => core.snapshot(self.commit(), self.now())?,
        };
        let definition = self.definitions.as_ref().and_then(|new| new.get(core.id()));
        let rows = match definition {
            Some(definition) => rows.with_schema(&definition.schema),
            None => rows,
        };
        Ok(SnapshotTable { snapshot: self.clone(), rows })
    }

    /// Answers a query as of this commit.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn query(&self, query: &Query) -> Result<QueryResult> {
        self.query_with(query, &QueryOptions::default())
    }

    /// Answers a query with parameters, or within limits of its own, as of this commit.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn query_with(&self, query: &Query, options: &QueryOptions) -> Result<QueryResult> {
        let options = self.engine().statement_options(options);
        self.query_by(query, options)
    }

    /// Answers a query of a statement that has begun.
    pub(crate) fn query_by(
        &self,
        query: &Query,
        options: esker_query::Options,
    ) -> Result<QueryResult> {
        self.read_by(query, options, |tables, options| {
            Resolved::run(query, tables, &options)?.execute()
        })
    }

    /// A query written as JSON, on the tables as of this commit.
    ///
    /// # Errors
    /// `NotFound` when a table is not there, `InvalidInput` with the place in the JSON.
    pub fn bind_json(&self, query: &JsonQuery) -> Result<Query> {
        let options = self.engine().query_options();
        let tables = OpenTables::of(self, query.tables(), &options)?;
        Ok(query.bind_on(&tables.sources(), &options)?)
    }

    /// The columns that the answer to a query has.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn columns(&self, query: &Query) -> Result<Vec<ResultColumn>> {
        self.columns_with(query, &QueryOptions::default())
    }

    /// As [`Snapshot::columns`], with parameters.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn columns_with(&self, query: &Query, options: &QueryOptions) -> Result<Vec<ResultColumn>> {
        let options = self.engine().statement_options(options);
        self.read_by(query, options, |tables, options| {
            Resolved::look(query, tables, &options)?.columns()
        })
    }

    /// The columns as fields of a table that takes the rows.
    pub(crate) fn fields_with(&self, query: &Query, options: &QueryOptions) -> Result<Vec<Field>> {
        let options = self.engine().statement_options(options);
        self.read_by(query, options, |tables, options| {
            Resolved::look(query, tables, &options)?.fields()
        })
    }

    /// Answers a query some thousand rows at a time, until `sink` breaks. Rows without an order
    /// are handed over as they are found, so that an answer of any size takes little memory.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn stream(
        &self,
        query: &Query,
        sink: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        self.stream_with(query, &QueryOptions::default(), sink)
    }

    /// As [`Snapshot::stream`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn stream_with(
        &self,
        query: &Query,
        options: &QueryOptions,
        mut sink: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        self.stream_into(query, options, &mut |batch: Batch| Ok(sink(batch)))
    }

    /// As [`Snapshot::stream_with`], columns first: a sink knows what the rows are before the first
    /// of them comes.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`], and what the sink fails with.
    pub fn stream_into(
        &self,
        query: &Query,
        options: &QueryOptions,
        sink: &mut dyn AnswerSink,
    ) -> Result<Statistics> {
        self.stream_by(query, self.engine().statement_options(options), sink)
    }

    /// Streams the answer of a statement that has begun.
    pub(crate) fn stream_by(
        &self,
        query: &Query,
        options: esker_query::Options,
        sink: &mut dyn AnswerSink,
    ) -> Result<Statistics> {
        self.read_by(query, options, |tables, options| {
            Resolved::run(query, tables, &options)?.stream(sink)
        })
    }

    /// How a query is answered, and what came of running it.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn explain(&self, query: &Query) -> Result<Explanation> {
        self.explain_with(query, &QueryOptions::default())
    }

    /// As [`Snapshot::explain`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn explain_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        let options = self.engine().statement_options(options);
        self.read_by(query, options, |tables, options| {
            Resolved::analyze(query, tables, &options)?.explain()
        })
    }

    /// Reads all tables that a query is about. Without any it may take values of sequences.
    fn read_by<R>(
        &self,
        query: &Query,
        mut options: esker_query::Options,
        read: impl FnOnce(&dyn Tables, esker_query::Options) -> esker_query::Result<R>,
    ) -> Result<R> {
        let reads_rows = query.set.is_some() || !query.values.is_empty() || !query.with.is_empty();
        let reads_tables =
            !query.table.is_empty() || query.derived.is_some() || !query.joins.is_empty();
        if !reads_tables && !reads_rows {
            options.inputs.sequences = Some(self.sequences());
        }
        let tables = OpenTables::new(self, query, &options)?;
        let sources = tables.sources();
        Ok(read(&sources, options)?)
    }

    /// The sequences that statements here take values of.
    fn sequences(&self) -> Arc<dyn esker_query::Sequences> {
        let others = self.others().map(|others| others.snapshot().engine());
        self.engine().as_sequences(others)
    }

    /// How a query would be answered. It is not run.
    ///
    /// # Errors
    /// As for [`crate::Database::query`].
    pub fn plan(&self, query: &Query) -> Result<Explanation> {
        self.plan_with(query, &QueryOptions::default())
    }

    /// As [`Snapshot::plan`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`crate::Database::query_with`].
    pub fn plan_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        let options = self.engine().statement_options(options);
        self.read_by(query, options, |tables, options| {
            Resolved::look(query, tables, &options)?.plan()
        })
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit()).finish()
    }
}

/// A table as of one commit.
pub struct SnapshotTable {
    snapshot: Snapshot,
    rows: TableSnapshot,
}

impl SnapshotTable {
    /// The moment as of which it reads.
    pub(crate) fn moment(&self) -> Moment {
        self.snapshot.moment()
    }

    /// The fields and the key.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        self.rows.schema()
    }

    /// The commit it reads at.
    pub(crate) fn commit(&self) -> u64 {
        self.snapshot.commit()
    }

    /// True when a table is the one here, with rows as they are here.
    pub(crate) fn is_of(&self, core: &TableCore) -> bool {
        let seen = self.rows.table();
        seen.id() == core.id() && self.rows.schema().has_same_rows_as(&core.schema())
    }

    /// The same, with tables of another database beside it.
    pub(crate) fn with_others(self, others: Option<&OtherTables>) -> Self {
        Self { snapshot: self.snapshot.with_others(others), ..self }
    }

    /// All tables as of the same commit.
    pub(crate) fn whole(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn rows_as_of(&self) -> &TableSnapshot {
        &self.rows
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// None today.
    pub fn count(&self) -> Result<u64> {
        Ok(self.rows.count())
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As for [`crate::Table::get`].
    pub fn get(&self, key: &[Value]) -> Result<Option<Row>> {
        let schema = self.rows.schema();
        let key = fit_key(schema, key)?;
        let values = self.find(&key, |found| found.values())?;
        Ok(values.map(|values| Row::new(Arc::clone(schema), values)))
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`crate::Table::get`].
    pub fn exists(&self, key: &[Value]) -> Result<bool> {
        let key = fit_key(self.schema(), key)?;
        Ok(self.find(&key, |_| Ok(()))?.is_some())
    }

    /// What is taken of the row with a key, whose values have the types of their fields.
    pub(crate) fn find<R>(
        &self,
        key: &[ValueRef<'_>],
        mut take: impl FnMut(Found<'_>) -> esker_table::Result<R>,
    ) -> Result<Option<R>> {
        if !self.rows.may_have_expired() {
            return Ok(self.rows.find(key, take)?);
        }
        let now = self.snapshot.now();
        let found = self.rows.find(key, |found| match found.has_expired(now)? {
            true => Ok(None),
            false => take(found).map(Some),
        })?;
        Ok(found.flatten())
    }

    /// Brings near what look-ups of keys of bytes will read: a hint.
    pub(crate) fn prefetch_keys(&self, keys: &[&[u8]]) {
        self.rows.prefetch_keys(keys);
    }

    /// Every row, with its row id, handed to `visit` in storage order.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; whatever `visit` returns.
    pub fn for_each(
        &self,
        mut visit: impl FnMut(u64, &[ValueRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        for part in self.rows.parts() {
            let mut start = 0;
            while start < part.row_count() {
                let end = part.batch_end(start, part.row_count());
                self.visit_rows(part, start..end, &mut visit)?;
                start = end;
            }
        }
        Ok(())
    }

    /// The rows of one batch of a part that are visible, with their row ids.
    pub(crate) fn visit_rows(
        &self,
        part: &SnapshotPart,
        rows: Range<usize>,
        visit: &mut dyn FnMut(u64, &[ValueRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        let fields = self.schema().fields().len();
        let visible = part.visible(rows.clone());
        let room = Room::default();
        let columns = (0..fields).map(|p| part.column(p, rows.clone(), &room));
        let columns = columns.collect::<esker_table::Result<Vec<_>>>()?;
        let mut row = Vec::with_capacity(fields);
        for (i, number) in rows.enumerate() {
            let bit = |words: &Vec<u64>| words.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1);
            if visible.as_ref().is_none_or(bit) {
                row.clear();
                row.extend(columns.iter().map(|c| c.value(i)));
                visit(part.row_group().row_id(number)?, &row)?;
            }
        }
        Ok(())
    }

    /// Every row, copied, by rising row id. For small tables and tests.
    ///
    /// # Errors
    /// As for [`SnapshotTable::for_each`].
    pub fn rows(&self) -> Result<Vec<(u64, Vec<Value>)>> {
        let mut rows = Vec::new();
        self.for_each(|row_id, values| {
            rows.push((row_id, values.iter().map(|v| ValueRef::to_owned(*v)).collect()));
            Ok(())
        })?;
        rows.sort_by_key(|row: &(u64, Vec<Value>)| row.0);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests;
