//! One scope for a database and for a transaction over it: what a name means, what is read, and
//! where changes go.
//!
//! ```text
//!             ┌─ Database ──── newest commit ───────────► each change is a commit of its own
//! name ─► Scope
//!             └─ Transaction ─ its snapshot, with its ──► its changes are one commit, later
//!                              changes and definitions
//! ```
//!
//! SQL, queries as JSON, buckets and the sessions of a server are written once, over a scope. So
//! a table that a transaction has created, altered, renamed or dropped is that for all of them.

mod bucket;
mod others;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Alteration;
use esker_query::json::JsonQuery;
use esker_query::model::Change;
use esker_query::{Page, Query, Semantics};

use crate::bucket::schema_of;
use crate::catalog::table_or_create::{expect_alike, open_or_create};
use crate::{
    BucketOptions, ChangeOptions, Changed, Database, FileRows, Files, KeptFor, NamespaceInfo,
    PageOptions, Result, Snapshot, TableAs, Transaction, ViewInfo, ViewOptions,
};
pub use bucket::{ScopedBucket, ScopedBucketReader};
pub use table::{ScopedReader, ScopedTable};

/// A database, or a transaction over one.
///
/// ```
/// use esker::{DataType, Options, Result, Schema, Scope};
///
/// fn add(scope: &dyn Scope) -> Result<()> {
///     let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
///     scope.create_table("numbers", schema)?;
///     scope.table("numbers")?.insert(&[7i64.into()]).map(drop)
/// }
///
/// let db = Options::new().memory()?;
/// let transaction = db.begin()?;
/// add(&transaction)?;
/// assert_eq!((transaction.tables()?.len(), db.tables().len()), (1, 0));
/// transaction.rollback();
/// add(&db)?;
/// assert_eq!(db.table("numbers")?.count()?, 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Scope {
    /// The names of tables and buckets, sorted.
    ///
    /// # Errors
    /// As for [`Transaction::tables`].
    fn names(&self) -> Result<Vec<String>>;

    /// The views, by name.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn views(&self) -> Result<Vec<ViewInfo>>;

    /// True when a view has a name.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn has_view(&self, name: &str) -> Result<bool>;

    /// True when a table, bucket or view has a name.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn has_name(&self, name: &str) -> Result<bool>;

    /// The namespaces, by name: the schemas of SQL that users have made.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn namespaces(&self) -> Result<Vec<NamespaceInfo>>;

    /// Creates a view.
    ///
    /// # Errors
    /// As for [`Database::create_view_with`].
    fn create_view_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()>;

    /// Removes a view.
    ///
    /// # Errors
    /// As for [`Database::drop_view`].
    fn drop_view(&self, name: &str) -> Result<()>;

    /// Creates a rollup.
    ///
    /// # Errors
    /// As for [`Database::create_rollup_with`].
    fn create_rollup_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()>;

    /// Removes a rollup.
    ///
    /// # Errors
    /// As for [`Database::drop_rollup`].
    fn drop_rollup(&self, name: &str) -> Result<()>;

    /// Sets for how long the history of a rollup is kept.
    ///
    /// # Errors
    /// As for [`Database::set_rollup_retention`].
    fn set_rollup_retention(&self, name: &str, kept: KeptFor) -> Result<()>;

    /// Gives a view or a rollup another name.
    ///
    /// # Errors
    /// As for [`Database::rename_view`].
    fn rename_view(&self, from: &str, to: &str) -> Result<()>;

    /// The views that read a table or view, by themselves or by others: none before those that
    /// read it, so that they can be dropped in this order.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn dependants_of(&self, name: &str) -> Result<Vec<String>>;

    /// Does several things in one commit, or none of them; again, where a database finds that
    /// other commits have come between.
    ///
    /// # Errors
    /// What it fails with.
    fn at_once(&self, act: &mut dyn FnMut(&Transaction) -> Result<()>) -> Result<()>;

    /// A table, for its rows.
    ///
    /// # Errors
    /// `NotFound` with names that are like it.
    fn table(&self, name: &str) -> Result<ScopedTable<'_>>;

    /// Some tables as they are now, for queries. Within a serializable transaction they count as
    /// read.
    ///
    /// # Errors
    /// `NotFound` within a transaction when there is no such table; `OverBudget` when there is no
    /// memory for another snapshot.
    fn snapshot_of(&self, tables: BTreeSet<String>) -> Result<Snapshot>;

    /// How statements reach files: see [`Options::files`](crate::Options::files).
    ///
    /// # Errors
    /// `InvalidInput` where they reach none.
    fn file_access(&self) -> Result<Arc<dyn Files>>;

    /// Adds the rows of a file to a table; returns how many.
    ///
    /// # Errors
    /// As for [`Database::copy_rows`].
    fn copy_rows(
        &self,
        table: &str,
        rows: Box<dyn FileRows>,
        options: &ChangeOptions,
    ) -> Result<u64>;

    /// What the database chooses where a statement does not: see [`crate::Options::semantics`].
    fn semantics(&self) -> Semantics;

    /// Answers one page of a query.
    ///
    /// # Errors
    /// As for [`Database::page`].
    fn page(&self, query: &Query, options: &PageOptions) -> Result<Page>;

    /// Runs a statement that changes rows: all of it or nothing.
    ///
    /// # Errors
    /// As for [`Database::change_with`].
    fn change_with(&self, change: &Change, options: &ChangeOptions) -> Result<Changed>;

    /// Creates a table.
    ///
    /// # Errors
    /// As for [`Database::create_table`].
    fn create_table(&self, name: &str, schema: Schema) -> Result<()>;

    /// A table, which is created when there is none.
    ///
    /// # Errors
    /// As for [`Database::table_or_create`].
    fn table_or_create(&self, name: &str, schema: Schema) -> Result<ScopedTable<'_>> {
        let open = || {
            let table = self.table(name)?;
            expect_alike(name, &table.schema(), &schema)?;
            Ok(table)
        };
        let create = || {
            self.create_table(name, schema.clone())?;
            self.table(name)
        };
        open_or_create(open, create)
    }

    /// Creates a table with the rows that a query answers; returns how many.
    ///
    /// # Errors
    /// As for [`Database::create_table_as`].
    fn create_table_as(
        &self,
        name: &str,
        query: &Query,
        table: &TableAs,
        options: &ChangeOptions,
    ) -> Result<u64>;

    /// Changes what a table is.
    ///
    /// # Errors
    /// As for [`Database::alter_table`].
    fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()>;

    /// Gives a table another name.
    ///
    /// # Errors
    /// As for [`Database::rename_table`].
    fn rename_table(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a table with its rows.
    ///
    /// # Errors
    /// As for [`Database::drop_table`].
    fn drop_table(&self, name: &str) -> Result<()>;

    /// Removes all rows of a table at once.
    ///
    /// # Errors
    /// As for [`Database::truncate_table`] and [`Transaction::truncate_table`].
    fn truncate_table(&self, name: &str) -> Result<()>;

    /// The tables that a query reads, as they are now.
    ///
    /// # Errors
    /// As for [`Scope::snapshot_of`].
    fn snapshot_for(&self, query: &Query) -> Result<Snapshot> {
        let mut tables = BTreeSet::new();
        query.collect_tables(&mut tables);
        self.snapshot_of(tables)
    }

    /// A query written as JSON, with the fields of its tables.
    ///
    /// # Errors
    /// As for [`Snapshot::bind_json`].
    fn bind_json(&self, query: &JsonQuery) -> Result<Query> {
        self.snapshot_of(query.tables().into_iter().collect())?.bind_json(query)
    }

    /// The names of buckets, sorted.
    ///
    /// # Errors
    /// As for [`Scope::names`].
    fn buckets(&self) -> Result<Vec<String>> {
        let mut buckets = self.names()?;
        // default: a table that was dropped meanwhile is no bucket.
        buckets.retain(|name| self.table(name).is_ok_and(|table| table.schema().is_bucket()));
        Ok(buckets)
    }

    /// A bucket that is there; none is made.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` when a table that is no bucket has the name.
    fn bucket(&self, name: &str) -> Result<ScopedBucket<'_>>;

    /// Makes a bucket.
    ///
    /// # Errors
    /// `AlreadyExists` when there is a bucket or a table of this name.
    fn create_bucket(&self, name: &str, options: &BucketOptions) -> Result<ScopedBucket<'_>> {
        self.create_table(name, schema_of(options)?)?;
        self.bucket(name)
    }

    /// A bucket, which is made with the usual options when there is none.
    ///
    /// # Errors
    /// As for [`Scope::create_bucket`], but `AlreadyExists`.
    fn bucket_or_new(&self, name: &str) -> Result<ScopedBucket<'_>> {
        let create = || self.create_bucket(name, &BucketOptions::default());
        open_or_create(|| self.bucket(name), create)
    }
}

/// What a database and a transaction do by methods of the same names.
macro_rules! own_methods {
    () => {
        fn semantics(&self) -> Semantics {
            self.engine().options.semantics
        }

        fn file_access(&self) -> Result<Arc<dyn Files>> {
            self.engine().file_access()
        }

        fn copy_rows(
            &self,
            table: &str,
            rows: Box<dyn FileRows>,
            options: &ChangeOptions,
        ) -> Result<u64> {
            self.copy_rows(table, rows, options)
        }

        fn page(&self, query: &Query, options: &PageOptions) -> Result<Page> {
            self.page(query, options)
        }

        fn change_with(&self, change: &Change, options: &ChangeOptions) -> Result<Changed> {
            self.change_with(change, options)
        }

        fn create_view_with(&self, name: &str, query: &Query, options: &ViewOptions) -> Result<()> {
            self.create_view_with(name, query, options)
        }

        fn drop_view(&self, name: &str) -> Result<()> {
            self.drop_view(name)
        }

        fn create_rollup_with(
            &self,
            name: &str,
            query: &Query,
            options: &ViewOptions,
        ) -> Result<()> {
            self.create_rollup_with(name, query, options)
        }

        fn drop_rollup(&self, name: &str) -> Result<()> {
            self.drop_rollup(name)
        }

        fn set_rollup_retention(&self, name: &str, kept: KeptFor) -> Result<()> {
            self.set_rollup_retention(name, kept)
        }

        fn rename_view(&self, from: &str, to: &str) -> Result<()> {
            self.rename_view(from, to)
        }

        fn create_table(&self, name: &str, schema: Schema) -> Result<()> {
            self.create_table(name, schema).map(drop)
        }

        fn create_table_as(
            &self,
            name: &str,
            query: &Query,
            table: &TableAs,
            options: &ChangeOptions,
        ) -> Result<u64> {
            self.create_table_as(name, query, table, options)
        }

        fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
            self.alter_table(name, alterations)
        }

        fn rename_table(&self, from: &str, to: &str) -> Result<()> {
            self.rename_table(from, to)
        }

        fn drop_table(&self, name: &str) -> Result<()> {
            self.drop_table(name)
        }

        fn truncate_table(&self, name: &str) -> Result<()> {
            self.truncate_table(name)
        }
    };
}

impl Scope for Database {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.tables())
    }

    fn views(&self) -> Result<Vec<ViewInfo>> {
        Ok(self.views())
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>> {
        Ok(self.namespaces())
    }

    fn has_view(&self, name: &str) -> Result<bool> {
        Ok(self.engine().names.load().newest().views.contains_key(name))
    }

    fn has_name(&self, name: &str) -> Result<bool> {
        Ok(self.engine().names_now().taken(name).is_some())
    }

    fn dependants_of(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.engine().names_now().dependants_of(name))
    }

    fn at_once(&self, act: &mut dyn FnMut(&Transaction) -> Result<()>) -> Result<()> {
        Transaction::run(self.engine(), |within| act(within))
    }

    fn table(&self, name: &str) -> Result<ScopedTable<'_>> {
        Ok(ScopedTable::Database(self.table(name)?))
    }

    fn snapshot_of(&self, _tables: BTreeSet<String>) -> Result<Snapshot> {
        self.snapshot()
    }

    fn snapshot_for(&self, _query: &Query) -> Result<Snapshot> {
        self.snapshot()
    }

    own_methods!();

    fn bucket(&self, name: &str) -> Result<ScopedBucket<'_>> {
        Ok(ScopedBucket::Database(self.existing_bucket(name)?))
    }
}

impl Scope for Transaction {
    fn names(&self) -> Result<Vec<String>> {
        self.tables()
    }

    fn views(&self) -> Result<Vec<ViewInfo>> {
        self.views()
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>> {
        self.namespaces()
    }

    fn has_view(&self, name: &str) -> Result<bool> {
        self.has_view(name)
    }

    fn has_name(&self, name: &str) -> Result<bool> {
        Ok(self.names()?.taken(name).is_some())
    }

    fn dependants_of(&self, name: &str) -> Result<Vec<String>> {
        self.dependants_of(name)
    }

    fn at_once(&self, act: &mut dyn FnMut(&Transaction) -> Result<()>) -> Result<()> {
        self.all_or_nothing(|within| act(within))
    }

    fn table(&self, name: &str) -> Result<ScopedTable<'_>> {
        Ok(ScopedTable::Transaction(self.table(name)?))
    }

    fn snapshot_of(&self, tables: BTreeSet<String>) -> Result<Snapshot> {
        self.snapshot_of(tables)
    }

    own_methods!();

    fn bucket(&self, name: &str) -> Result<ScopedBucket<'_>> {
        Ok(ScopedBucket::Transaction(self.bucket(name)?))
    }
}
