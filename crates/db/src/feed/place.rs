//! The newest place of a feed, and why another one is not there.

use esker_format::TableId;

use super::cursor::ChangeCursor;
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// The place behind all that is committed, once the disk has it.
pub(super) fn newest_place(engine: &Engine, feed: TableId) -> Result<ChangeCursor> {
    let next = engine.lock().entry(feed)?.writer.next_row_id();
    engine.sync()?;
    Ok(ChangeCursor { feed, row_id: next.saturating_sub(1) })
}

/// A table has no feed.
pub(crate) fn no_changes(table: &str) -> Error {
    let message = "keeps no changes: ALTER TABLE … SET (changes = '1 day') begins that";
    Error::invalid(format!("table {table:?} {message}"))
}

/// An event is not the one that was expected.
pub(super) fn strange(table: &str, row_id: u64) -> Error {
    let message = "is not the next one of its commit";
    Error::corrupt(format!("feed of {table:?}: event {row_id} {message}"))
}

/// Changes behind a cursor are not there.
pub(super) fn gone(table: &str, cursor: ChangeCursor, to: ChangeCursor) -> Error {
    let message = format!(
        "changes of table {table:?} behind {cursor} are kept no longer: read its rows anew, and go \
         on behind {to}"
    );
    Error::new(ErrorKind::SnapshotGone, message)
}
