//! Applying what has its number: definitions first, then rows.

use std::sync::Arc;

use esker_format::codec::Writer;
use esker_format::edit::Edit;
use esker_log::sabotage::planted;

use crate::catalogue::Catalogue;
use crate::commit::options::CommitOptions;
use crate::commit::write_set::TableWrites;
use crate::engine::Engine;
use crate::{Error, Result};

impl Engine {
    /// Runs a commit with the new tables of some terms entered; when it comes to nothing they are
    /// taken out again.
    pub(crate) fn defining<R, E: From<Error>>(
        &self,
        catalogue: &mut Catalogue,
        commit_options: CommitOptions<'_>,
        commit: impl FnOnce(&mut Catalogue) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let Some(definitions) = commit_options.definitions else { return commit(catalogue) };
        definitions.enter(self, catalogue)?;
        let outcome = commit(catalogue);
        let stays = planted("definitions_outlive_conflict");
        if outcome.is_err() && !catalogue.broken && !stays {
            definitions.leave(catalogue);
        }
        outcome
    }

    /// Makes new definitions real, once the frame has its number.
    pub(crate) fn apply_definitions(
        &self,
        catalogue: &mut Catalogue,
        commit_options: CommitOptions<'_>,
        commit: u64,
    ) -> Result<()> {
        let Some(definitions) = commit_options.definitions else { return Ok(()) };
        definitions.apply(self, catalogue, commit)
    }

    /// What is left to do once new definitions are durable.
    pub(crate) fn settle_definitions(self: &Arc<Self>, commit_options: CommitOptions<'_>) {
        if let Some(definitions) = commit_options.definitions {
            definitions.settle(self);
        }
    }

    /// Appends the changes of rows as they are in the log; nothing in a memory database.
    pub(crate) fn encode_rows(
        &self,
        out: &mut Writer,
        writes: &[TableWrites<'_>],
        options: CommitOptions<'_>,
    ) -> Result<()> {
        let one_only = planted("batch_frame_has_one_table");
        // default: a planted bug
        let named = if one_only { writes.get(..1).unwrap_or_default() } else { writes };
        for TableWrites { current, staged, .. } in named.iter().filter(|_| self.is_durable()) {
            let schema = match planted("rows_logged_by_old_schema") {
                true => options.schema_before(current),
                false => &current.schema,
            };
            staged.encode(out, current.core.id(), schema)?;
        }
        Ok(())
    }

    /// Freezes open groups without room for the rows that are put; true when there were some.
    pub(crate) fn make_room_for(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
    ) -> Result<bool> {
        let mut has_frozen = false;
        for part in parts {
            let entry = catalogue.entry(part.current.core.id())?;
            has_frozen |= self.freeze_if_full(entry, part.staged.put_count());
        }
        Ok(has_frozen)
    }

    /// Applies changes of rows that have their number; true when maintenance has work.
    pub(crate) fn apply_rows(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
        commit: u64,
    ) -> Result<bool> {
        let mut is_full = false;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let entry = catalogue.entry(part.current.core.id())?;
            part.staged.apply(&mut entry.writer, commit, &mut || self.new_row_group())?;
            entry.changed_at = commit;
            is_full |= self.freeze_if_full(entry, 0);
        }
        Ok(is_full)
    }
}

/// One edit of all of these, and of changes of rows.
pub(crate) fn together(mut edits: Vec<Edit>, rows: Vec<u8>) -> Edit {
    match edits.pop() {
        Some(only) if edits.is_empty() && rows.is_empty() => only,
        last => {
            edits.extend(last);
            Edit::Atomic { edits, rows }
        }
    }
}
