//! One commit of changes to several tables (protocol rule 7): one frame has all of them, in the
//! order of the tables' numbers, so that recovery applies all or none. What is more than a frame
//! takes goes by way of segments, the largest tables first: see [`spill`].

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::ReaderGuard;
use esker_format::Schema;
use esker_format::codec::Writer;
use esker_format::edit::{Edit, ROWS_FRAME};
use esker_log::Purpose;
use esker_log::sabotage::planted;
use esker_table::TableWriter;

use crate::commit::definitions::NewDefinitions;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::purpose_of_all;
use crate::commit::pipeline::{Staged, entry, half_applied, refuse_other_schema};
use crate::commit::private_rows::PrivateRows;
use crate::commit::{overflow as spill, unique_check as unique};
use crate::engine::{Catalogue, Engine};
use crate::table::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The changes of one table within a commit.
pub(crate) struct TableWrites<'r> {
    pub current: TableVersion,
    pub staged: Staged<'r>,
    /// What a transaction has put into segments already.
    pub private: Option<PrivateRows>,
}

impl TableWrites<'_> {
    /// No changes yet.
    pub fn new(current: TableVersion) -> Self {
        Self { current, staged: Staged::default(), private: None }
    }

    fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.private.is_none()
    }
}

/// On which terms changes are committed.
#[derive(Clone, Copy)]
pub(crate) struct CommitOptions<'a> {
    /// Whether the commit is acknowledged only once it is on the disk; else as the database says.
    pub sync: Option<bool>,
    /// What is to hold in addition, under the commit lock; checked again where that was let go.
    pub validate: &'a dyn Fn(&mut Catalogue) -> Result<()>,
    /// What becomes of the tables themselves.
    pub definitions: Option<&'a NewDefinitions>,
}

impl<'a> CommitOptions<'a> {
    /// The schema that the table of some changes has until the commit.
    pub fn schema_before(self, current: &'a TableVersion) -> &'a Schema {
        let other = self.definitions.and_then(|new| new.schema_before(current.core.id()));
        other.unwrap_or(&current.schema)
    }
}

impl Default for CommitOptions<'_> {
    fn default() -> Self {
        Self { sync: None, validate: &|_| Ok(()), definitions: None }
    }
}

/// Why nothing was committed.
enum Stop {
    Failed(Error),
    /// Nothing was changed, or files have to be written before.
    Before,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Engine {
    /// One atomic commit: `stage` validates the changes of each table, which it knows by its
    /// place among the parts, under the commit lock. Returns the commit's number; 0 when nothing
    /// was changed.
    pub fn commit_writes<'r>(
        self: &Arc<Self>,
        mut parts: Vec<TableWrites<'r>>,
        commit_options: CommitOptions<'_>,
        mut stage: impl FnMut(usize, &mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<u64> {
        self.wait_for_memory()?;
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            let valid = (commit_options.validate)(&mut catalogue).map_err(Stop::Failed);
            if planted("validated_before_the_lock") {
                drop(catalogue);
                catalogue = self.lock_for_change()?;
            }
            let outcome = valid.and_then(|()| {
                self.defining(&mut catalogue, commit_options, |catalogue| {
                    self.stage_parts(catalogue, &mut parts, commit_options, &mut stage)?;
                    parts.retain(|part| !part.is_empty());
                    let is_unchanged = parts.is_empty() && commit_options.definitions.is_none();
                    match is_unchanged || self.need_files(&parts) {
                        true => Err(Stop::Before),
                        false => Ok(self.apply_parts(catalogue, &parts, commit_options)?),
                    }
                })
            });
            match outcome {
                Ok(ticket) => ticket,
                Err(Stop::Before) if !parts.is_empty() => {
                    // So that it is known which versions came since.
                    let guard = self.registry.register(|| self.watermarks.published())?;
                    for TableWrites { current, staged, .. } in &mut parts {
                        staged.remember_deleted(&current.core)?;
                    }
                    drop(catalogue);
                    return Ok(self.commit_with_files(parts, commit_options, &guard)?.commit());
                }
                Err(stop) => {
                    drop(catalogue);
                    self.acknowledge_published()?;
                    return if let Stop::Failed(e) = stop { Err(e) } else { Ok(0) };
                }
            }
        };
        self.acknowledge_as(ticket, commit_options.sync)?;
        self.settle_definitions(commit_options);
        Ok(ticket.commit())
    }

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
        ticket: Ticket,
    ) -> Result<()> {
        let Some(definitions) = commit_options.definitions else { return Ok(()) };
        definitions.apply(self, catalogue, ticket.commit()).inspect_err(|_| {
            catalogue.broken = true;
        })
    }

    /// What is left to do once new definitions are durable.
    fn settle_definitions(self: &Arc<Self>, commit_options: CommitOptions<'_>) {
        if let Some(definitions) = commit_options.definitions {
            definitions.settle(self);
        }
    }

    /// True when changes cannot be numbered before files are written.
    fn need_files(&self, parts: &[TableWrites<'_>]) -> bool {
        let bytes = || parts.iter().map(|part| spill::byte_count(&part.staged)).sum::<usize>();
        parts.iter().any(|part| {
            self.is_large_part(part) || self.has_long(&part.current.schema, &part.staged)
        }) || (parts.len() > 1 && bytes() > self.options.commit_bytes_max)
    }

    fn is_large_part(&self, part: &TableWrites<'_>) -> bool {
        part.private.is_some() || spill::is_large(&part.staged, self.options.commit_bytes_max)
    }

    /// Takes out the parts that do not go into a frame: those that are too large, and of the others
    /// the largest, until the rest does.
    fn take_large<'r>(&self, parts: &mut Vec<TableWrites<'r>>) -> Vec<TableWrites<'r>> {
        let mut sized: Vec<_> = std::mem::take(parts)
            .into_iter()
            .map(|part| (self.is_large_part(&part), spill::byte_count(&part.staged), part))
            .collect();
        sized.sort_by_key(|(is_large, bytes, _)| (*is_large, *bytes));
        let (mut large, mut together) = (Vec::new(), 0);
        for (is_large, bytes, part) in sized {
            together += bytes;
            if is_large || together > self.options.commit_bytes_max {
                large.push(part);
            } else {
                parts.push(part);
            }
        }
        let by_table = |part: &TableWrites<'_>| part.current.core.id();
        parts.sort_by_key(by_table);
        large.sort_by_key(by_table);
        large
    }

    /// Writes what does not go into the log into files, then commits, if all is as it was staged.
    /// `staged_at` has been held since.
    pub(crate) fn commit_with_files(
        self: &Arc<Self>,
        parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        self.write_and_commit(parts, commit_options, staged_at).or_else(|e| {
            // What a refusal rests on may have been committed meanwhile.
            if e.kind() != ErrorKind::OutcomeUnknown && e.kind() != ErrorKind::Poisoned {
                self.acknowledge_published()?;
            }
            Err(e)
        })
    }

    fn write_and_commit(
        self: &Arc<Self>,
        mut parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        if self.is_durable() {
            for part in &mut parts {
                self.store_long(&part.current.schema, &mut part.staged.puts)?;
            }
        }
        let large = self.take_large(&mut parts);
        if !large.is_empty() {
            let ticket = self.spill(large, parts, commit_options, staged_at)?;
            self.settle_definitions(commit_options);
            return Ok(ticket);
        }
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            (commit_options.validate)(&mut catalogue)?;
            self.defining(&mut catalogue, commit_options, |catalogue| {
                expect_as_staged(catalogue, &mut parts, commit_options, staged_at)?;
                self.apply_parts(catalogue, &parts, commit_options)
            })?
        };
        self.acknowledge_as(ticket, commit_options.sync)?;
        self.settle_definitions(commit_options);
        Ok(ticket)
    }

    fn stage_parts<'r>(
        &self,
        catalogue: &mut Catalogue,
        parts: &mut [TableWrites<'r>],
        commit_options: CommitOptions<'_>,
        stage: &mut impl FnMut(usize, &mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<()> {
        let mut tables = BTreeSet::new();
        for (at, part) in parts.iter_mut().enumerate() {
            let id = part.current.core.id();
            if !tables.insert(id) {
                let message = "a table was cleared meanwhile; try again";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            refuse_other_schema(catalogue, id, commit_options.schema_before(&part.current))?;
            self.on_time(catalogue, &part.current)?;
            stage(at, &mut entry(catalogue, id)?.writer, part)?;
            self.end_expired_holders(catalogue, &part.current, &part.staged)?;
            let writer = &entry(catalogue, id)?.writer;
            if part.private.is_none() {
                unique::expect_unique(writer, &part.current.schema, &mut part.staged)?;
            }
            self.note_ends(&part.current.schema, &part.staged)?;
        }
        Ok(())
    }

    fn apply_parts(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
        commit_options: CommitOptions<'_>,
    ) -> Result<Ticket> {
        if let ([only], None) = (parts, commit_options.definitions) {
            return self.apply(catalogue, only.current.core.id(), &only.staged);
        }
        let one_only = planted("batch_frame_has_one_table");
        let named = if one_only { parts.get(..1).unwrap_or_default() } else { parts };
        let rows = self.encode_parts(named, commit_options);
        let (kind, frame) = match commit_options.definitions {
            None => (ROWS_FRAME, rows.into_bytes()),
            Some(new) => {
                let edit = Edit::Together { edits: new.edits(), rows: rows.into_bytes() };
                (edit.frame_kind(), edit.encode())
            }
        };
        self.refuse_large_frame(frame.len())?;
        let has_frozen = self.make_room_for(catalogue, parts)?;
        let ticket = self.append(purpose_of_parts(parts, commit_options), kind, &frame)?;
        self.on_commit(ticket);
        if planted("parts_published_before_applied") {
            self.watermarks.publish(ticket.commit());
        }
        self.apply_definitions(catalogue, commit_options, ticket)?;
        let is_full = self.apply_rows(catalogue, parts, ticket)?;
        self.watermarks.publish(ticket.commit());
        let mut wakes = has_frozen || is_full || commit_options.definitions.is_some();
        for part in parts {
            wakes |= self.note_deleted(catalogue, &part.staged);
        }
        if wakes || self.log_is_long(ticket.commit()) {
            self.wake_maintenance();
        }
        Ok(ticket)
    }

    /// The changes of rows as they are in the log; none in a memory database.
    pub(crate) fn encode_parts(
        &self,
        parts: &[TableWrites<'_>],
        commit_options: CommitOptions<'_>,
    ) -> Writer {
        let (mut rows, mut one) = (Writer::new(), Writer::new());
        for TableWrites { current, staged, .. } in parts.iter().filter(|_| self.is_durable()) {
            let schema = match planted("rows_logged_by_old_schema") {
                true => commit_options.schema_before(current),
                false => &current.schema,
            };
            staged.encode(&mut one, current.core.id(), schema);
            rows.raw(one.as_bytes());
        }
        rows
    }

    /// Freezes open groups without room for the rows that are put; true when there were some.
    pub(crate) fn make_room_for(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
    ) -> Result<bool> {
        let mut has_frozen = false;
        for part in parts {
            let entry = entry(catalogue, part.current.core.id())?;
            has_frozen |= self.freeze_if_full(entry, part.staged.puts.len());
        }
        Ok(has_frozen)
    }

    /// Applies changes of rows that have their number; true when maintenance has work.
    pub(crate) fn apply_rows(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
        ticket: Ticket,
    ) -> Result<bool> {
        let mut is_full = false;
        for part in parts {
            let entry = entry(catalogue, part.current.core.id())?;
            let new_row_group = &mut || self.new_row_group();
            let applied = part.staged.apply(&mut entry.writer, ticket.commit(), new_row_group);
            entry.changed_at = ticket.commit();
            if let Err(e) = applied {
                catalogue.broken = true;
                return Err(half_applied(e));
            }
            is_full |= self.freeze_if_full(entry, 0);
        }
        Ok(is_full)
    }
}

/// What the changes of some tables are for.
pub(crate) fn purpose_of_parts(
    parts: &[TableWrites<'_>],
    commit_options: CommitOptions<'_>,
) -> Purpose {
    let definitions = commit_options.definitions.map(NewDefinitions::purpose);
    let rows = parts.iter().map(|part| match part.private {
        Some(_) => Purpose::Adds,
        None => part.staged.purpose(),
    });
    purpose_of_all(rows.chain(definitions))
}

/// Refuses what was staged when somebody was quicker.
pub(crate) fn expect_as_staged(
    catalogue: &mut Catalogue,
    parts: &mut [TableWrites<'_>],
    commit_options: CommitOptions<'_>,
    staged_at: &ReaderGuard,
) -> Result<()> {
    for TableWrites { current, staged, .. } in parts {
        refuse_other_schema(catalogue, current.core.id(), commit_options.schema_before(current))?;
        let writer = &mut entry(catalogue, current.core.id())?.writer;
        // The writer of a table that comes with this commit has not given them out itself.
        staged.puts.iter().for_each(|put| writer.note_row_id(put.prepared.row_id));
        spill::expect_unchanged(writer, current, staged, staged_at.commit())?;
    }
    Ok(())
}
