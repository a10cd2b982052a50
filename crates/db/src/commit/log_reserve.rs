//! The reserve of the log, by which a full disk can be emptied: how large it is, and which commits
//! may use it. How it works is in the crate `esker_log`, module `reserve`.

use std::sync::atomic::Ordering;

use esker_format::Schema;
use esker_format::edit::Edit;
use esker_log::Purpose;

use crate::Result;
use crate::commit::journal::Ticket;
use crate::commit::pipeline::Staged;
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
fn purpose_of(edit: &Edit) -> Purpose {
    match edit {
        Edit::DropTable { .. }
        | Edit::TruncateTable { .. }
        | Edit::DropSequence { .. }
        | Edit::Seal { .. }
        | Edit::Merge { .. }
        | Edit::Checkpoint { .. } => Purpose::Frees,
        Edit::Load { segments, replaced, .. } if segments.is_empty() && !replaced.is_empty() => {
            Purpose::Frees
        }
        Edit::CreateTable { .. }
        | Edit::Load { .. }
        | Edit::AlterTable { .. }
        | Edit::SetSequence { .. }
        | Edit::Clock(_)
        | Edit::Together { .. } => Purpose::Adds,
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

impl Staged<'_> {
    /// What the changes are for: deletes alone free space.
    pub(crate) fn purpose(&self) -> Purpose {
        if self.put_count() == 0 { Purpose::Frees } else { Purpose::Adds }
    }
}

impl Engine {
    /// Appends a catalogue edit. Under the commit lock; the caller applies and publishes it.
    pub fn append_edit(&self, edit: &Edit) -> Result<Ticket> {
        self.append_edit_for(purpose_of(edit), edit)
    }

    /// Appends a catalogue edit whose purpose the caller knows. Under the commit lock.
    pub fn append_edit_for(&self, purpose: Purpose, edit: &Edit) -> Result<Ticket> {
        self.append(purpose, edit.frame_kind(), &edit.encode())
    }

    /// Appends a frame. Under the commit lock.
    pub(crate) fn append(&self, purpose: Purpose, kind: u16, payload: &[u8]) -> Result<Ticket> {
        if purpose == Purpose::Frees && self.time_is_owed.swap(false, Ordering::Relaxed) {
            let time = Edit::Clock(self.last_clock().record());
            let logged = self.journal.append(purpose, time.frame_kind(), &time.encode());
            let ticket =
                logged.inspect_err(|_| self.time_is_owed.store(true, Ordering::Relaxed))?;
            self.watermarks.publish(ticket.commit());
        }
        self.journal.append(purpose, kind, payload)
    }

    /// Gives the reserve its size and fills it, as far as the disk has space. False when it is not
    /// whole.
    pub(crate) fn fill_log_reserve(&self) -> Result<bool> {
        let Some(log) = self.journal.log() else { return Ok(true) };
        let bytes = self.segment_bytes() + log.bytes();
        Ok(log.fill_reserve(reserve_bytes(bytes, self.options.log_reserve_bytes))?)
    }
}
