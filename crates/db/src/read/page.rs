//! Answers page by page.

use std::sync::Arc;

use esker_format::Value;
use esker_query::json::JsonQuery;
use esker_query::{Cursor, Page, Paging, Query, Semantics};

use crate::read::source::SnapshotSource;
use crate::{Database, Error, Limits, QueryOptions, Result, Snapshot};

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
    /// As for [`QueryOptions::semantics`]. A cursor is of pages with the same.
    pub semantics: Semantics,
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
        held.expire_now();
        let cursor = options.cursor.as_deref().map(Cursor::parse).transpose()?;
        let snapshot = match cursor.as_ref().and_then(Cursor::snapshot) {
            Some(id) => {
                let snapshot = held.find(id)?.with_engine(self.engine());
                return snapshot.page_from(query, options, cursor, Some(id));
            }
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
        let (cursor, total, snapshot) = (json.cursor()?, json.is_total()?, json.is_snapshot()?);
        let semantics = json.semantics()?;
        Ok(Self { cursor, total, snapshot, limits, semantics, ..Self::default() })
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
        let (limits, semantics) = (options.limits.clone(), options.semantics);
        let given = QueryOptions { parameters, limits, semantics };
        let engine = self.engine();
        let query_options = engine.statement_options(&given);
        let table = self.table(&query.table)?;
        let rows = table.rows_as_of();
        let table = engine.database ^ u128::from(rows.table().id().0);
        let paging = Paging { cursor, total: options.total, table, snapshot };
        let source = SnapshotSource::new(rows);
        Ok(esker_query::page(query, &source, &query_options, &paging)?)
    }
}
