//! The reserve of the log, by which a full disk can be emptied: how large it is, and which commits
//! may use it. How it works is in the crate `esker_log`, module `reserve`.

use esker_format::Schema;
use esker_format::edit::Edit;
use esker_log::Purpose;

use crate::Result;
use crate::engine::Engine;

/// The reserve is this part of what the database takes on the disk.
const SHARE: u64 = 64;
/// The least size of a reserve, unless the limit is below.
const RESERVE_BYTES_MIN: u64 = 16 << 10;
/// The size of a reserve is a multiple of this.
const RESERVE_BYTES_STEP: u64 = 4 << 10;

/// The size of the reserve of a database that takes so much on the disk.
pub(crate) fn reserve_bytes(database_bytes: u64, most: u64) -> u64 {
    let share = (database_bytes / SHARE).next_multiple_of(RESERVE_BYTES_STEP);
    share.max(RESERVE_BYTES_MIN).min(most)
}

/// What an edit is for. Callers say it of changes of schemas, and of several edits together.
pub(crate) fn purpose_of(edit: &Edit) -> Purpose {
    match edit {
        Edit::DropTable { .. }
        | Edit::TruncateTable { .. }
        | Edit::DropSequence { .. }
        | Edit::DropView { .. }
        | Edit::DropNamespace { .. }
        | Edit::Seal { .. }
        | Edit::Merge { .. }
        | Edit::EndSegments { .. }
        | Edit::Checkpoint { .. } => Purpose::Frees,
        Edit::Load { segments, replaced, .. } if segments.is_empty() && !replaced.is_empty() => {
            Purpose::Frees
        }
        Edit::CreateTable { .. }
        | Edit::Load { .. }
        | Edit::AlterTable { .. }
        | Edit::SetSequence { .. }
        | Edit::SetView { .. }
        | Edit::SetNamespace { .. }
        | Edit::Clock(_)
        | Edit::Atomic { .. } => Purpose::Adds,
    }
}

/// What a change of a schema is for: one that only takes fields or indexes away frees space.
pub(crate) fn purpose_of_change(before: &Schema, after: &Schema) -> Purpose {
    let has_field = |id| before.fields().iter().any(|field| field.id == id);
    let has_index = |id| before.indexes().iter().any(|index| index.id == id);
    let only_known = after.fields().iter().all(|field| has_field(field.id))
        && after.indexes().iter().all(|index| has_index(index.id));
    let is_less = after.fields().len() < before.fields().len()
        || after.indexes().len() < before.indexes().len();
    if only_known && is_less { Purpose::Frees } else { Purpose::Adds }
}

/// What several things are for that are done at once.
pub(crate) fn purpose_of_all(all: impl IntoIterator<Item = Purpose>) -> Purpose {
    let adds = all.into_iter().any(|purpose| purpose == Purpose::Adds);
    if adds { Purpose::Adds } else { Purpose::Frees }
}

impl Engine {
    /// Gives the reserve its size and fills it, as far as the disk has space. False when it is not
    /// whole.
    pub(crate) fn fill_log_reserve(&self) -> Result<bool> {
        let Some(log) = self.journal.log() else { return Ok(true) };
        let bytes = self.segment_bytes() + log.bytes();
        Ok(log.fill_reserve(reserve_bytes(bytes, self.options.log_reserve_bytes))?)
    }
}
