//! The requests to a session, and its answers. Every protocol translates to and from
//! these two, and nothing else.

use std::time::Duration;

use esker::{Batch, Isolation, Load, QueryResult, Row, Schema, Value};
use esker_sql::Statement;

use super::{AdminTask, SqlText};
use crate::{Error, Result};

/// A key of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// The values of the key fields.
    Values(Vec<Value>),
    /// The same as people write them, each read by the type of its field; of a generated key, the
    /// row number.
    Texts(Vec<String>),
}

/// Rows to store.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// A value for every field of the table, in their order.
    Values(Vec<Vec<Value>>),
    /// JSON objects, one text each. Fields without a value get their defaults.
    Objects(Vec<String>),
    /// Values by the names of fields. Fields without a value get their defaults.
    Named(Vec<Vec<(String, Value)>>),
}

impl Rows {
    /// The rows of batches, of which some may say nothing about a field: it gets its default.
    pub(crate) fn of_batches(batches: &[Batch], schema: &Schema) -> Self {
        let places = || batches.iter().flat_map(|batch| (0..batch.len()).map(move |i| (batch, i)));
        if places().all(|(batch, i)| batch.columns.iter().all(|column| !column.is_missing(i))) {
            let value = |(batch, i): (&Batch, usize)| {
                batch.columns.iter().map(|column| column.value(i).to_owned()).collect()
            };
            return Self::Values(places().map(value).collect());
        }
        let named = |(batch, i): (&Batch, usize)| {
            let columns = schema.fields().iter().zip(&batch.columns);
            let given = columns.filter(|(_, column)| !column.is_missing(i));
            given.map(|(field, column)| (field.name.clone(), column.value(i).to_owned())).collect()
        };
        Self::Named(places().map(named).collect())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Values(rows) => rows.len(),
            Self::Objects(rows) => rows.len(),
            Self::Named(rows) => rows.len(),
        }
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What fields get.
#[derive(Clone, Debug, PartialEq)]
pub enum Fields {
    /// Values by name.
    Values(Vec<(String, Value)>),
    /// A JSON object.
    Object(String),
}

/// What happens to a row whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Conflict {
    /// Nothing is stored; the error names the key.
    #[default]
    Fail,
    /// The new row takes its place.
    Replace,
}

/// What becomes of the rows of a load whose key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Error,
    Skip,
    Replace,
}

impl Duplicates {
    pub fn of(text: &str) -> Result<Self> {
        match text {
            "error" => Ok(Self::Error),
            "skip" => Ok(Self::Skip),
            "replace" => Ok(Self::Replace),
            _ => Err(Error::invalid(format!("expected error, skip or replace, found {text:?}"))),
        }
    }

    /// Tells a load of it.
    pub fn tell(self, load: &mut Load) -> Result<()> {
        match self {
            Self::Error => Ok(()),
            Self::Skip => Ok(load.skip_existing()?),
            Self::Replace => Ok(load.replace_existing()?),
        }
    }
}

/// When an entry of a bucket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Expiry {
    /// As the bucket says.
    #[default]
    Default,
    /// Never.
    Never,
    /// This long from now.
    After(Duration),
}

/// Which entries of a bucket, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EntryRange {
    /// The first key; `None` for the first there is.
    pub from: Option<Vec<u8>>,
    /// The key before which it ends; `None` for none.
    pub to: Option<Vec<u8>>,
    /// What all keys begin with.
    pub prefix: Option<Vec<u8>>,
    /// The most entries that are answered.
    pub limit: Option<usize>,
    /// Whether the last come first.
    pub reverse: bool,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// Nothing: whether anybody is there.
    Ping,
    /// The names of all tables that are no buckets.
    Tables,
    /// The schema of a table, as text.
    Schema {
        /// The table.
        table: String,
    },
    /// Rows by their keys. Answered by [`Answer::Rows`].
    Get {
        /// The table.
        table: String,
        /// The keys.
        keys: Vec<Key>,
    },
    /// Whether there are rows. Answered by [`Answer::Flags`].
    Exists {
        /// The table.
        table: String,
        /// The keys.
        keys: Vec<Key>,
    },
    /// Stores rows, all or none. Answered by [`Answer::Stored`].
    Insert {
        /// The table.
        table: String,
        /// The rows.
        rows: Rows,
        /// What happens to rows that are there.
        conflict: Conflict,
    },
    /// Changes fields of a row. Answered by [`Answer::Changed`].
    Update {
        /// The table.
        table: String,
        /// Which row.
        key: Key,
        /// What its fields get.
        fields: Fields,
    },
    /// Changes fields of rows, all in one commit. Answered by [`Answer::Changed`] with how many
    /// of the updates found a row.
    UpdateMany {
        /// The table.
        table: String,
        /// Which rows, and the new values of each; those that are not there are left out.
        updates: Vec<(Key, Fields)>,
    },
    /// Removes rows, all in one commit. Answered by [`Answer::Changed`].
    Delete {
        /// The table.
        table: String,
        /// Which rows; those that are not there count as nothing.
        keys: Vec<Key>,
    },
    /// One SQL statement, `BEGIN` and `COMMIT` among them.
    Sql {
        /// The statement.
        text: SqlText,
        /// The values of its parameters, by position.
        parameters: Vec<Value>,
    },
    /// A query written as JSON. Answered by [`Answer::Page`] where it asks for a page.
    Query {
        /// The JSON.
        json: String,
    },
    /// How a query written as JSON is answered, as text, and what came of running it.
    Explain {
        /// The JSON.
        json: String,
    },
    /// Begins a transaction, which the session has until it commits or rolls back.
    Begin {
        /// What it is kept from seeing of others.
        isolation: Isolation,
        /// Whether it only reads.
        read_only: bool,
    },
    /// Commits it.
    Commit,
    /// Forgets it.
    Rollback,
    /// The names of all buckets.
    Buckets,
    /// Values of a bucket by their keys. Answered by [`Answer::Values`].
    BucketGet {
        /// The bucket.
        bucket: String,
        /// The keys.
        keys: Vec<Vec<u8>>,
    },
    /// Puts entries, all or none; makes the bucket where there is none. Answered by
    /// [`Answer::Stored`].
    BucketPut {
        /// The bucket.
        bucket: String,
        /// Keys and values.
        entries: Vec<(Vec<u8>, Vec<u8>)>,
        /// When they end.
        expiry: Expiry,
    },
    /// Removes entries, all in one commit. Answered by [`Answer::Changed`].
    BucketRemove {
        /// The bucket.
        bucket: String,
        /// The keys.
        keys: Vec<Vec<u8>>,
    },
    /// Adds to an entry that is a number written as text. Answered by [`Answer::Number`].
    BucketIncrement {
        /// The bucket.
        bucket: String,
        /// The key.
        key: Vec<u8>,
        /// How much.
        by: i64,
    },
    /// Entries in the order of their keys. Answered by [`Answer::Entries`].
    BucketRange {
        /// The bucket.
        bucket: String,
        /// Which.
        range: EntryRange,
    },
    /// A task of an administrator. Answered by [`Answer::Report`].
    Admin(AdminTask),
}

impl Request {
    /// True for what changes nothing, and begins and ends no transaction.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Ping
            | Self::Tables
            | Self::Schema { .. }
            | Self::Get { .. }
            | Self::Exists { .. }
            | Self::Query { .. }
            | Self::Explain { .. }
            | Self::Buckets
            | Self::BucketGet { .. }
            | Self::BucketRange { .. } => true,
            Self::Sql { text, .. } => text.statement().is_ok_and(Statement::only_reads),
            Self::Admin(task) => task.only_reads(),
            _ => false,
        }
    }

    /// True for what changes which transaction a session has, or what it chooses, and for what
    /// needs what it keeps.
    #[must_use]
    pub fn is_about_transactions(&self) -> bool {
        match self {
            Self::Begin { .. } | Self::Commit | Self::Rollback => true,
            Self::Sql { text: sql, .. } => {
                let words = [
                    "begin",
                    "start",
                    "commit",
                    "end",
                    "rollback",
                    "savepoint",
                    "release",
                    "set",
                    "reset",
                    "prepare",
                    "execute",
                    "deallocate",
                ];
                let text = sql.trim_start();
                let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
                let first = text.get(..end).unwrap_or_default();
                // What it makes may be the session's own.
                let is_temporary = first.eq_ignore_ascii_case("create")
                    && matches!(
                        sql.statement().map(Statement::said),
                        Ok(Statement::Temporary { .. })
                    );
                is_temporary || words.iter().any(|word| word.eq_ignore_ascii_case(first))
            }
            _ => false,
        }
    }
}

/// What a client gets.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// It is done; there is nothing more to say.
    Done,
    /// It is done, in words.
    Text(String),
    /// Names, sorted.
    Names(Vec<String>),
    /// A row for each key, where there is one.
    Rows(Vec<Option<Row>>),
    /// Whether there is one, for each key.
    Flags(Vec<bool>),
    /// Rows or entries were stored.
    Stored {
        /// How many.
        rows: u64,
        /// The row id, of one row that was given by values.
        row_id: Option<u64>,
    },
    /// How many rows or entries were changed or removed.
    Changed(u64),
    /// Rows of a query, or what a change is to return.
    Result {
        /// The rows.
        result: QueryResult,
        /// How many rows the statement changed; 0 for a query.
        changed: u64,
    },
    /// A page of a query.
    Page(esker::Page),
    /// A value for each key of a bucket, where there is one.
    Values(Vec<Option<Vec<u8>>>),
    /// Entries of a bucket.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// A number.
    Number(i64),
    /// What came of looking after the database.
    Report(serde_json::Value),
}
