//! Tables about tables: what there is, as rows that any query reads.
//!
//! ```text
//! name in FROM ─► no table of that name ─► system table ─► rows of the snapshot's names ─► source
//! ```
//!
//! A system table is a name, columns, and a function that makes its rows of what the snapshot of
//! the statement sees: within a transaction, of its own definitions. The rows are collected when
//! the statement begins, within its memory, and are a source as those of a table are. So joins,
//! filters, subqueries, EXPLAIN and queries as JSON know nothing of them.
//!
//! | module | what it has |
//! |---|---|
//! | [`information_schema`] | the tables of the standard |
//! | [`figures`] | `esker_*`: what else is known, with figures |
//! | [`facts`] | what both are made of |
//! | [`definition`] | a table as the statement that makes it |

pub mod definition;
mod facts;
mod figures;
mod information_schema;

use esker_format::{DataType, Field, FieldId, Schema};
use esker_query::{CollectedRows, RowCollector};

use crate::catalog::names::{INFORMATION_SCHEMA, MAIN_SCHEMA};
use crate::feed::changes_table::ChangesTable;
use crate::files::FileTable;
use crate::{Result, Snapshot};
use facts::Facts;
pub(crate) use facts::erasures;

/// Makes the rows of a system table.
type MakeRows = fn(&Facts<'_>, &mut RowCollector<'_>) -> Result<()>;

/// A table about tables.
pub(crate) struct SystemTable {
    /// Of the standard's: `information_schema.tables`.
    name: &'static str,
    columns: &'static [(&'static str, DataType)],
    rows: MakeRows,
}

/// All of them.
fn all() -> impl Iterator<Item = &'static SystemTable> {
    information_schema::TABLES.iter().chain(figures::TABLES)
}

/// True for the name of a table about tables, in any case: `information_schema.tables`. A table
/// that has such a name is read in its place.
#[must_use]
pub fn is_system_table(name: &str) -> bool {
    SystemTable::named(name).is_some()
}

/// True for the name of what is read as a table and is none: a table about tables, a file, or
/// changes of a table.
#[must_use]
pub fn is_made_table(name: &str) -> bool {
    is_system_table(name) || FileTable::named(name).is_some() || ChangesTable::named(name).is_some()
}

/// The names of the tables about tables.
#[must_use]
pub fn system_tables() -> Vec<&'static str> {
    all().map(|table| table.name).collect()
}

impl SystemTable {
    pub fn named(name: &str) -> Option<&'static Self> {
        // Most names are no such thing.
        let begins = |with: &str| {
            name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        let may_be = begins(INFORMATION_SCHEMA) || begins(figures::PREFIX);
        all().find(|table| may_be && table.name.eq_ignore_ascii_case(name))
    }

    /// The schema that it is in, and its name there.
    fn place(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or((MAIN_SCHEMA, self.name)) // default: one of Esker's own
    }

    fn schema(&self) -> Schema {
        let field = |(name, data_type): &(&str, DataType)| {
            Field::new(FieldId(1), (*name).to_owned(), *data_type, true)
        };
        Schema::of_fields(self.columns.iter().map(field).collect())
    }

    /// Its rows, as a statement sees them.
    ///
    /// # Errors
    /// `OverBudget`; when the statement is to end.
    pub fn read(
        &self,
        snapshot: &Snapshot,
        options: &esker_query::Options,
    ) -> Result<CollectedRows> {
        let mut rows = RowCollector::new(self.schema(), options);
        (self.rows)(&Facts::new(snapshot, options), &mut rows)?;
        Ok(rows.finish()?)
    }
}
