//! The stream that a feed is: its name and its fields.
//!
//! | field | what it has |
//! |---|---|
//! | `at` | when the commit was made |
//! | `op` | `insert`, `update`, `delete`, `expire` or `truncate` |
//! | `nth` | which one of the changes of its commit it is, from 1 on |
//! | `more` | how many of them follow: 0 says that the commit is whole |
//! | `key` | the key, an object; NULL for `truncate` |
//! | `new` | the row as it is then, an object; NULL where it is gone |
//! | `old` | the row as it was, where the table keeps that |

use std::fmt;
use std::str::FromStr;

use esker_format::schema::{Alteration, Changes, StreamOption};
use esker_format::{DataType, Schema};

use crate::{Error, Result};

/// What is behind the name of a table in that of its feed.
const SUFFIX: &str = "$changes";

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Insert,
    /// It is another.
    Update,
    /// It is gone.
    Delete,
    /// It is gone because its time was over.
    Expire,
    /// All rows that there were are gone.
    Truncate,
}

impl ChangeKind {
    const ALL: [Self; 5] = [Self::Insert, Self::Update, Self::Delete, Self::Expire, Self::Truncate];

    /// As a feed has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Expire => "expire",
            Self::Truncate => "truncate",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ChangeKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| Error::invalid(format!("expected a kind of change, found {text:?}")))
    }
}

/// The name of the feed of a table. That a table of this name is a feed says its schema.
pub(crate) fn name_of(table: &str) -> String {
    format!("{table}{SUFFIX}")
}

/// The stream of a feed whose changes are kept for so long.
pub(crate) fn schema_of(keep_us: u64) -> Result<Schema> {
    let fields = Schema::builder()
        .field("at", DataType::Timestamp)
        .field("op", DataType::Text)
        .field("nth", DataType::U64)
        .field("more", DataType::U64)
        .nullable("key", DataType::Json)
        .nullable("new", DataType::Json)
        .nullable("old", DataType::Json);
    let stream = fields.stream("at", [StreamOption::Retention(Some(keep_us))]);
    Ok(stream.changes(Changes::Feed).build()?)
}

/// The same stream whose changes are kept for another time.
pub(crate) fn kept_for(schema: &Schema, keep_us: u64) -> Result<Schema> {
    Ok(schema.alter(&[Alteration::SetStream(StreamOption::Retention(Some(keep_us)))])?)
}

/// Refuses what would make another of a feed, or of the history of a rollup.
///
/// # Errors
/// `InvalidInput` for one of them.
pub(crate) fn refuse_companion(name: &str, schema: &Schema, what: &str) -> Result<()> {
    let (is, decides) = match (schema.is_feed(), schema.is_history()) {
        (true, _) => (
            "the feed of a table",
            "ALTER TABLE … SET (changes = …) and RESET (changes) of that table decide about it",
        ),
        (_, true) => (
            "the history of a materialized view",
            "it goes with the view, and DELETE takes rows away",
        ),
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("table {name:?} is {is} and cannot be {what}: {decides}")))
}

/// Refuses a way of changing rows by which no feed hears of them.
///
/// # Errors
/// `InvalidInput` for a table that keeps its changes, and for a feed.
pub(crate) fn refuse_unheard(name: &str, schema: &Schema, way: &str) -> Result<()> {
    refuse_companion(name, schema, "written")?;
    if schema.kept_changes().is_none() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{way} into table {name:?}, which keeps its changes: expected inserts, or ALTER TABLE … \
         RESET (changes) before"
    )))
}
