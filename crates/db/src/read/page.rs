//! Answers page by page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use esker_format::Value;
use esker_query::json::JsonQuery;
use esker_query::{Cursor, Page, Paging, Query};
use esker_vfs::Environment;

use crate::engine::Engine;
use crate::statement::RowIdSource;
use crate::{Database, Error, ErrorKind, Limits, QueryOptions, Result, Snapshot};

/// The most snapshots that are held for cursors; past it the one that was used least lately goes.
const HELD_MAX: usize = 256;

/// Which page of an answer, and what the query is run with.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// What [`Page::next`] or [`Page::previous`] of another page gave; the first page without it.
    pub cursor: Option<String>,
    /// Whether all rows are counted, too.
    pub total: bool,
    /// Whether all pages are of one snapshot, which the database holds until no page of it was
    /// used during [`Options::cursor_hold`](crate::Options::cursor_hold).
    pub snapshot: bool,
    /// The values of the query's parameters, by position.
    pub parameters: Arc<[Value]>,
    /// How long it may take and how much memory it may have.
    pub limits: Limits,
}

/// Snapshots that cursors go on in.
#[derive(Debug)]
pub(crate) struct HeldSnapshots {
    environment: Environment,
    hold: Duration,
    held: Mutex<BTreeMap<u128, Held>>,
}

#[derive(Debug)]
struct Held {
    snapshot: Snapshot,
    used_ns: u64,
}

impl HeldSnapshots {
    pub(crate) fn new(environment: &Environment, hold: Duration) -> Self {
        Self { environment: environment.clone(), hold, held: Mutex::default() }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u128, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets those go that were not used lately.
    pub(crate) fn expire(&self) {
        let now_ns = self.environment.clock.monotonic_ns();
        let hold_ns = u64::try_from(self.hold.as_nanos()).unwrap_or(u64::MAX);
        let is_old = |held: &Held| now_ns.saturating_sub(held.used_ns) > hold_ns;
        // Dropped without the lock.
        let gone: Vec<Held> = {
            let mut held = self.locked();
            let old: Vec<u128> =
                held.iter().filter(|(_, held)| is_old(held)).map(|(id, _)| *id).collect();
            old.iter().filter_map(|id| held.remove(id)).collect()
        };
        drop(gone);
    }

    /// Lets all of them go.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.locked());
        drop(all);
    }

    fn hold(&self, snapshot: &Snapshot) -> u128 {
        let random = || u128::from(self.environment.random.next_u64());
        let id = random() << 64 | random();
        let used_ns = self.environment.clock.monotonic_ns();
        let gone = {
            let mut held = self.locked();
            held.insert(id, Held { snapshot: snapshot.clone(), used_ns });
            let oldest = held.iter().min_by_key(|(_, held)| held.used_ns).map(|(id, _)| *id);
            if held.len() > HELD_MAX { oldest.and_then(|id| held.remove(&id)) } else { None }
        };
        drop(gone);
        id
    }

    fn find(&self, id: u128) -> Result<Snapshot> {
        let mut held = self.locked();
        let held = held.get_mut(&id).ok_or_else(|| {
            let message = "cursor: the snapshot of its pages is held no longer: begin again \
                           without it, or without \"snapshot\"";
            Error::new(ErrorKind::SnapshotGone, message)
        })?;
        held.used_ns = self.environment.clock.monotonic_ns();
        Ok(held.snapshot.clone())
    }
}

impl Engine {
    /// Lets snapshots of cursors go that were not used lately.
    pub(crate) fn expire_held_snapshots(&self) {
        if let Some(held) = self.held_snapshots.get().and_then(Weak::upgrade) {
            held.expire();
        }
    }
}

impl Database {
    /// Answers one page of a query, with cursors that lead to the next and the previous one.
    ///
    /// The query's limit says how many rows a page has. Rows may be in any order; of rows that are
    /// equal in it the one with the lower row id comes first. A row whose values in the order did
    /// not change between two pages is on exactly one of them, whatever else was written. Cursors
    /// are texts that hold after the database was opened again.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// use esker::{DataType, Options, PageOptions, Query, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).build()?;
    /// let table = db.create_table("t", schema)?;
    /// table.insert_many(&[vec![1i64.into()], vec![2i64.into()], vec![3i64.into()]])?;
    /// let query = Query { limit: Some(2.into()), ..Query::table("t") };
    /// let first = db.page(&query, &PageOptions { total: true, ..PageOptions::default() })?;
    /// assert_eq!((first.result.row_count(), first.total), (2, Some(3)));
    /// let next = PageOptions { cursor: first.next, ..PageOptions::default() };
    /// let second = db.page(&query, &next)?;
    /// assert_eq!((second.result.row_count(), second.next), (1, None));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a query without a limit or with an offset, and a cursor that is damaged,
    /// of another query, or from before the fields of the table changed; `SnapshotGone` when the
    /// snapshot that it names is held no longer; else as [`Database::query`].
    pub fn page(&self, query: &Query, options: &PageOptions) -> Result<Page> {
        let held = self.held_snapshots();
        held.expire();
        let cursor = options.cursor.as_deref().map(Cursor::parse).transpose()?;
        let snapshot = match cursor.as_ref().and_then(Cursor::snapshot) {
            Some(id) => return held.find(id)?.page_from(query, options, cursor, Some(id)),
            None => self.snapshot()?,
        };
        if !options.snapshot {
            return snapshot.page_from(query, options, cursor, None);
        }
        if cursor.is_some() {
            return Err(Error::invalid(
                "\"snapshot\": the cursor is of a page without one: begin again without it",
            ));
        }
        let id = held.hold(&snapshot);
        snapshot.page_from(query, options, cursor, Some(id))
    }

    /// Answers one page of a query written as JSON, with its `cursor`, `total` and `snapshot`.
    ///
    /// # Errors
    /// As for [`Database::page`]; messages name the place in the JSON.
    pub fn page_json(&self, text: &str) -> Result<Page> {
        let json = JsonQuery::parse(text)?;
        let query = self.snapshot()?.bind_json(&json)?;
        self.page(&query, &PageOptions::of_json(&json)?)
    }
}

impl PageOptions {
    /// What a query as JSON says of its page.
    ///
    /// # Errors
    /// `InvalidInput` with the place of what does not fit.
    pub fn of_json(json: &JsonQuery) -> Result<Self> {
        let limits = Limits {
            timeout: json.timeout()?,
            memory_bytes: json.memory_limit_bytes()?,
            ..Limits::default()
        };
        let (cursor, total) = (json.cursor()?, json.is_total()?);
        Ok(Self { cursor, total, snapshot: json.is_snapshot()?, limits, ..Self::default() })
    }
}

impl Snapshot {
    /// Answers one page of a query as of this commit: exactly the rows of one answer, as long as
    /// the caller keeps the snapshot.
    ///
    /// # Errors
    /// As for [`Database::page`].
    pub fn page(&self, query: &Query, options: &PageOptions) -> Result<Page> {
        let cursor = options.cursor.as_deref().map(Cursor::parse).transpose()?;
        self.page_from(query, options, cursor, None)
    }

    pub(crate) fn page_from(
        &self,
        query: &Query,
        options: &PageOptions,
        cursor: Option<Cursor>,
        snapshot: Option<u128>,
    ) -> Result<Page> {
        if !query.is_plain() {
            return Err(Error::invalid(
                "pages are of one table, without joins and subqueries: use LIMIT and OFFSET",
            ));
        }
        let parameters = Arc::clone(&options.parameters);
        let given = QueryOptions { parameters, limits: options.limits.clone() };
        let engine = self.engine();
        let query_options = engine.statement_options(&given);
        let table = self.table(&query.table)?;
        let rows = table.rows_as_of();
        let table = engine.database ^ u128::from(rows.table().id().0);
        let paging = Paging { cursor, total: options.total, table, snapshot };
        let source = RowIdSource::beside_fields(rows);
        Ok(esker_query::page(query, &source, &query_options, &paging)?)
    }
}
