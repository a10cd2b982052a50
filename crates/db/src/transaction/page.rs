//! Answers page by page within a transaction.

use esker_query::{Cursor, Page, Query};

use super::Transaction;
use crate::{Error, PageOptions, Result};

impl Transaction {
    /// Answers one page of a query about a table as the transaction sees it, with cursors that
    /// lead to the next and the previous one, for this transaction alone. Between two pages the
    /// transaction may change rows: one whose values in the order did not change is on exactly
    /// one page. What others commit does not show. `snapshot` in the options says nothing here.
    ///
    /// ```
    /// use esker::{DataType, Options, PageOptions, Query, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).build()?;
    /// db.create_table("t", schema)?;
    /// let transaction = db.begin()?;
    /// transaction.table("t")?.insert_many(&[vec![1i64.into()], vec![2i64.into()]])?;
    /// let query = Query { limit: Some(1.into()), ..Query::table("t") };
    /// let first = transaction.page(&query, &PageOptions::default())?;
    /// let next = PageOptions { cursor: first.next, ..PageOptions::default() };
    /// assert_eq!(transaction.page(&query, &next)?.result.to_rows(), [[2i64.into()]]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a cursor of another transaction, or of none; else as for
    /// [`crate::Database::page`].
    pub fn page(&self, query: &Query, options: &PageOptions) -> Result<Page> {
        let cursor = options.cursor.as_deref().map(Cursor::parse).transpose()?;
        let pages = Some(self.pages());
        if cursor.as_ref().is_some_and(|cursor| cursor.snapshot() != pages) {
            let message = "cursor: of a page outside of this transaction: begin again without it";
            return Err(Error::invalid(message));
        }
        self.snapshot_for(query)?.page_from(query, options, cursor, pages)
    }

    /// What the cursors of its pages name.
    fn pages(&self) -> u128 {
        *self.pages.get_or_init(|| {
            let random = || u128::from(self.engine.environment.random.next_u64());
            random() << 64 | random()
        })
    }
}
