//! The changes of a table as rows of a statement: `FROM changes('t', '12.345')`.
//!
//! As a table about tables, they are read when the statement begins, within its memory: whole
//! commits in their order, as of the commit of the statement, as far as the disk has them.

use esker_format::{DataType, Field, FieldId, Room, Schema, Value, ValueRef};
use esker_query::{CollectedRows, RowCollector};
use esker_table::table::{ArrivedRow, TableSnapshot};

use super::assembly::{Assembly, CommitChanges, Taken};
use super::changes_table::ChangesTable;
use super::cursor::ChangeCursor;
use super::place::{gone, newest_place, strange};
use crate::engine::Engine;
use crate::{Error, Result};

/// Reads all changes of a table in its feed, for a statement as of a commit.
pub(crate) fn read(
    of: &ChangesTable,
    (engine, commit): (&Engine, u64),
    feed: &TableSnapshot,
    options: &esker_query::Options,
) -> Result<CollectedRows> {
    let place = place(of, engine, feed)?;
    let durable = engine.durable_through()?.filter(|durable| *durable < commit);
    let mut arrivals = feed.rows_after_id(place.row_id, durable);
    let mut assembly = Assembly::behind(place);
    let mut rows = RowCollector::new(schema(), options);
    while let Some(arrived) = arrivals.step()? {
        let event = values(feed.schema(), &arrived)?;
        match assembly.take((arrived.row_id, &event)) {
            Taken::Whole(commit) => push(&mut rows, &commit)?,
            Taken::Part => {}
            Taken::Strange => return Err(strange(&of.table, arrived.row_id)),
        }
        options.expect_time_left()?;
    }
    Ok(rows.finish()?)
}

/// Where it begins.
fn place(of: &ChangesTable, engine: &Engine, feed: &TableSnapshot) -> Result<ChangeCursor> {
    let core = feed.table();
    // What the snapshot lacks has been noted before it was taken.
    let ended = ChangeCursor { feed: core.id(), row_id: core.ended_row_id() };
    let Some(after) = of.after else { return Ok(ended) };
    let newest = newest_place(engine, core.id())?;
    if after.feed != core.id() || after < ended {
        return Err(gone(&of.table, after, newest));
    }
    if after > newest {
        let message = format!("no commit has the cursor {after}: expected at most {newest}");
        return Err(Error::invalid(message));
    }
    Ok(after)
}

fn values(schema: &Schema, arrived: &ArrivedRow<'_>) -> Result<Vec<Value>> {
    let value = |position| {
        let room = Room::default();
        let value = arrived.part.value(position, arrived.row, &room)?;
        Ok(ValueRef::to_owned(value))
    };
    (0..schema.fields().len()).map(value).collect()
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
