//! From a key to the rows that have it.
//!
//! ```text
//! key ─ hash ─► entries ─► locations ─► versions, wherever merges took them ─► has it the key?
//! ```
//!
//! All look-ups go this way, and differ in what they make of a version:
//!
//! * **As of a commit** ([`Table::find`](crate::Table::find)), without a lock: from the newest
//!   version back to the one that is visible. A merge may overtake it, so that an entry leads
//!   nowhere; then it begins again by a newer view.
//! * **Under the commit lock** ([`versions`]): the newest version that a change replaces, the row
//!   that has a unique value, the row that a load meets. No merge comes between, so that an entry
//!   that leads nowhere is damage.
//!
//! What no index knows is looked up by those who have it, the changes of one commit or of one
//! transaction.

use std::ops::{ControlFlow, Range};

use esker_arena::PartitionedHash;
use esker_format::{Room, Schema, ValueRef};

use crate::location::Location;
use crate::view::{Resolved, RowGroup};
use crate::{Error, Result};

/// What a visitor says of a version: go on, or what it has found.
pub type Visited<B, E> = std::result::Result<ControlFlow<B>, E>;

/// Shows the versions that the entries of a hash lead to, with their entries, until `visit` breaks.
/// Under the commit lock, or where no merge is.
///
/// # Errors
/// What `visit` says, or `Corrupt` when an entry leads nowhere.
pub fn versions<'v, B, E: From<Error>>(
    entries: &PartitionedHash,
    hash: u64,
    resolve: impl Fn(Location) -> Resolved<'v>,
    mut visit: impl FnMut((&'v RowGroup, usize), Location) -> Visited<B, E>,
) -> std::result::Result<Option<B>, E> {
    let outcome = entries.candidates(hash, |word| {
        let Some(entry) = Location::from_word(word) else { return ControlFlow::Continue(()) };
        let visited = match resolve(entry) {
            Resolved::Row(row_group, row) => visit((row_group, row), entry),
            Resolved::Gone => Ok(ControlFlow::Continue(())),
            Resolved::Unknown => {
                Err(Error::corrupt(format!("index entry {entry:?} leads nowhere")).into())
            }
        };
        match visited {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(ControlFlow::Break(found)) => ControlFlow::Break(Ok(found)),
            Err(e) => ControlFlow::Break(Err(e)),
        }
    });
    match outcome {
        ControlFlow::Continue(()) => Ok(None),
        ControlFlow::Break(found) => found.map(Some),
    }
}

/// The row id in a key of a table whose keys are generated.
pub(crate) fn generated_key(schema: &Schema, key: &[ValueRef<'_>]) -> Option<u64> {
    match key {
        _ if !schema.key_positions().is_empty() => None,
        [ValueRef::Uint(id)] => Some(*id),
        [ValueRef::Int(id)] => u64::try_from(*id).ok(),
        _ => None,
    }
}

impl RowGroup {
    /// The key of a row: its row id where keys are generated.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn key<'a>(
        &'a self,
        row: usize,
        schema: &'a Schema,
        room: &'a Room,
    ) -> Result<Vec<ValueRef<'a>>> {
        match schema.key_positions() {
            [] => Ok(vec![ValueRef::Uint(self.row_id(row)?)]),
            _ => schema.key_fields().map(|field| self.value(field, row, room)).collect(),
        }
    }

    /// True when a row has a key, be that a row id.
    #[inline]
    pub fn has_key(&self, row: usize, schema: &Schema, key: &[ValueRef<'_>]) -> Result<bool> {
        match generated_key(schema, key) {
            Some(row_id) => Ok(self.row_id(row)? == row_id),
            None => self.key_equals(row, schema, key),
        }
    }

    /// The rows with a row id; of a group the one that was inserted with it.
    pub(crate) fn rows_with_id(&self, row_id: u64) -> Result<Range<usize>> {
        match self {
            // default: none was inserted there with this id
            Self::Group(group) => Ok(group.fresh_row(row_id).map_or(0..0, |row| row..row + 1)),
            Self::Segment(segment) => segment.rows_with_id(row_id),
        }
    }
}
