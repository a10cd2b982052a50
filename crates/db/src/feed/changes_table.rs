//! The changes of a table as rows of a statement: `FROM changes('t', '12.345')`.
//!
//! As a table about tables, they are read when the statement begins, within its memory: whole
//! commits in their order, as of the commit of the statement, as far as the disk has them.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use esker_format::{DataType, Field, FieldId, Schema, ValueRef};
use esker_query::{CollectedRows, RowCollector};

use super::ChangeCursor;
use super::assembly::{Assembly, CommitChanges, Taken};
use super::reader::{gone, newest_place, no_changes, strange};
use super::shape::name_of;
use crate::files::quoted;
use crate::stream::EventExport;
use crate::{Error, Result, Snapshot, SnapshotTable};

/// Events that are read at once.
const READ_EVENTS: usize = 1_024;

/// The changes of a table behind a place, as a statement names them. As a text it is the name of a
/// table, which a query may read:
///
/// ```
/// use esker::ChangesTable;
///
/// let name = "changes('orders', '12.345')";
/// let changes = ChangesTable::named(name).unwrap();
/// assert_eq!((&*changes.table, changes.to_string()), ("orders", name.to_owned()));
/// assert_eq!(ChangesTable::new("orders", None).to_string(), "changes('orders')");
/// assert_eq!(ChangesTable::named("changes"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesTable {
    /// The table whose changes they are.
    pub table: String,
    /// Behind which commit; from the first one that is kept on without it.
    pub after: Option<ChangeCursor>,
}

impl ChangesTable {
    /// The changes of a table.
    #[must_use]
    pub fn new(table: impl Into<String>, after: Option<ChangeCursor>) -> Self {
        Self { table: table.into(), after }
    }

    /// The changes that a name of a table means; `None` for a name of another kind.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (table, rest) = quoted(name.strip_prefix("changes(")?)?;
        let after = match rest.strip_prefix(", ") {
            None => (rest == ")").then_some(None)?,
            Some(rest) => {
                let (cursor, rest) = quoted(rest)?;
                Some(cursor.parse().ok().filter(|_| rest == ")")?)
            }
        };
        Some(Self { table, after })
    }

    /// The table whose changes a name of a table means, where it is written without quotes in it.
    #[must_use]
    pub fn table_in(name: &str) -> Option<&str> {
        let table = Self::named(name)?.table;
        let written = name.split('\'').nth(1)?;
        (written == table).then_some(written)
    }

    /// Reads all changes, for a statement.
    pub(crate) fn read(
        &self,
        snapshot: &Snapshot,
        options: &esker_query::Options,
    ) -> Result<CollectedRows> {
        let Self { table, after } = self;
        let feed = self.feed(snapshot)?;
        let (mut events, place) = feed_events(table, feed, *after)?;
        let mut assembly = Assembly::behind(place);
        let mut rows = RowCollector::new(schema(), options);
        while let Some(read) = events.next_batch(READ_EVENTS)? {
            options.expect_time_left()?;
            for (id, row) in read {
                match assembly.take((id.row_id(), &row)) {
                    Taken::Whole(commit) => push(&mut rows, &commit)?,
                    Taken::Part => {}
                    Taken::Strange => return Err(strange(table, id.row_id())),
                }
            }
        }
        Ok(rows.finish()?)
    }

    /// The feed of the table, as a statement sees it.
    fn feed(&self, snapshot: &Snapshot) -> Result<SnapshotTable> {
        let core = snapshot.core(&self.table)?;
        let Some(feed) = snapshot.schema_of(core)?.feed() else {
            return Err(no_changes(&self.table));
        };
        let core = snapshot.core(&name_of(&self.table))?;
        if core.id() != feed {
            let message = format!("table {:?} has another feed", self.table);
            return Err(Error::corrupt(message));
        }
        snapshot.table_core(core)
    }
}

/// The events of a feed behind a place, and that place.
fn feed_events(
    table: &str,
    feed: SnapshotTable,
    after: Option<ChangeCursor>,
) -> Result<(EventExport, ChangeCursor)> {
    let core = Arc::clone(feed.rows_as_of().table());
    // What the snapshot lacks has been noted before it was taken.
    let ended = ChangeCursor { feed: core.id(), row_id: core.ended_row_id() };
    let place = match after {
        None => ended,
        Some(after) => {
            let newest = newest_place(feed.whole().engine(), core.id())?;
            if after.feed != core.id() || after < ended {
                return Err(gone(table, after, newest));
            }
            if after > newest {
                let message =
                    format!("no commit has the cursor {after}: expected at most {newest}");
                return Err(Error::invalid(message));
            }
            after
        }
    };
    Ok((EventExport::on_disk(feed, place.row_id)?, place))
}

fn schema() -> Schema {
    let columns = [
        ("commit", DataType::Text),
        ("at", DataType::Timestamp),
        ("op", DataType::Text),
        ("key", DataType::Json),
        ("new", DataType::Json),
        ("old", DataType::Json),
    ];
    let field = |(name, data_type): (&str, DataType)| {
        Field::new(FieldId(1), name.to_owned(), data_type, true)
    };
    Schema::of_fields(columns.into_iter().map(field).collect())
}

fn push(rows: &mut RowCollector<'_>, commit: &CommitChanges) -> Result<()> {
    let cursor = commit.cursor.to_string();
    for change in &commit.changes {
        rows.push(&[
            ValueRef::Text(&cursor),
            ValueRef::Timestamp(commit.at_us),
            ValueRef::Text(change.kind.as_str()),
            change.key.as_ref(),
            change.new.as_ref(),
            change.old.as_ref(),
        ])?;
    }
    Ok(())
}

impl Display for ChangesTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "changes('{}'", self.table.replace('\'', "''"))?;
        if let Some(after) = &self.after {
            write!(f, ", '{after}'")?;
        }
        f.write_str(")")
    }
}
