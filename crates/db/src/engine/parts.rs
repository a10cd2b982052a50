//! One commit of changes to several tables (protocol rule 7): one frame has all of them, in the
//! order of the tables' numbers, so that recovery applies all or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::ReaderGuard;
use esker_format::codec::Writer;
use esker_format::edit::ROWS_FRAME;
use esker_log::sabotage::planted;
use esker_table::TableWriter;

use super::commit::{Staged, entry, half_applied, refuse_other_schema};
use super::{Catalogue, Engine, Ticket, spill, unique};
use crate::table::Current;
use crate::{Error, ErrorKind, Result};

/// The changes of one table within a commit.
pub(crate) struct Part<'r> {
    pub current: Current,
    pub staged: Staged<'r>,
}

impl Part<'_> {
    /// No changes yet.
    pub fn new(current: Current) -> Self {
        Self { current, staged: Staged::default() }
    }
}

/// On which terms changes are committed.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Whether the commit is acknowledged only once it is on the disk; else as the database says.
    pub sync: Option<bool>,
    /// What is to hold in addition, under the commit lock; asked again where that was let go.
    pub validate: &'a dyn Fn(&mut Catalogue) -> Result<()>,
}

impl Default for Terms<'_> {
    fn default() -> Self {
        Self { sync: None, validate: &|_| Ok(()) }
    }
}

impl Engine {
    /// One atomic commit: `stage` validates the changes of each table, which it is told by its
    /// place among the parts, under the commit lock. Returns the commit's number; 0 when nothing
    /// was changed.
    pub fn commit_parts<'r>(
        self: &Arc<Self>,
        mut parts: Vec<Part<'r>>,
        terms: Terms<'_>,
        mut stage: impl FnMut(usize, &mut TableWriter, &mut Part<'r>) -> Result<()>,
    ) -> Result<u64> {
        self.wait_for_memory()?;
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            let outcome = (terms.validate)(&mut catalogue)
                .and_then(|()| self.stage_parts(&mut catalogue, &mut parts, &mut stage));
            parts.retain(|part| !part.staged.is_empty());
            if outcome.is_err() || parts.is_empty() {
                drop(catalogue);
                self.acknowledge_published()?;
                return outcome.map(|()| 0);
            }
            if parts.iter().any(|part| self.needs_files(part)) {
                // So that it can be told which versions came since.
                let guard = self.registry.register(|| self.watermarks.published())?;
                drop(catalogue);
                return self.commit_with_files(parts, terms, &guard);
            }
            match parts.as_slice() {
                [only] => self.apply(&mut catalogue, only.current.core.id(), &only.staged)?,
                several => self.apply_parts(&mut catalogue, several)?,
            }
        };
        self.acknowledge_as(ticket, terms.sync)?;
        Ok(ticket.commit())
    }

    /// True when changes cannot be numbered before files are written.
    fn needs_files(&self, part: &Part) -> bool {
        self.is_large_part(part) || self.has_long(&part.current.schema, &part.staged)
    }

    fn is_large_part(&self, part: &Part) -> bool {
        spill::is_large(&part.staged, self.options.commit_bytes_max)
    }

    /// Writes what does not go into the log into files, then commits, if all is as it was staged.
    fn commit_with_files(
        self: &Arc<Self>,
        mut parts: Vec<Part>,
        terms: Terms<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<u64> {
        if parts.len() == 1 {
            let Some(part) = parts.pop() else { return Ok(0) };
            let ticket = self.commit_large(&part.current, part.staged, terms, staged_at)?;
            return Ok(ticket.commit());
        }
        if parts.iter().any(|part| self.is_large_part(part)) {
            let message = "a commit of several tables with more rows than a frame of the log \
                           takes; change one table at a time";
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        if self.is_durable() {
            for part in &mut parts {
                self.store_long(&part.current.schema, &mut part.staged.puts)?;
            }
        }
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            (terms.validate)(&mut catalogue)?;
            for part in &mut parts {
                let (current, staged) = (&part.current, &mut part.staged);
                refuse_other_schema(&mut catalogue, current.core.id(), &current.schema)?;
                let writer = &entry(&mut catalogue, current.core.id())?.writer;
                spill::expect_unchanged(writer, current, staged, staged_at.commit())?;
            }
            self.apply_parts(&mut catalogue, &parts)?
        };
        self.acknowledge_as(ticket, terms.sync)?;
        Ok(ticket.commit())
    }

    fn stage_parts<'r>(
        &self,
        catalogue: &mut Catalogue,
        parts: &mut [Part<'r>],
        stage: &mut impl FnMut(usize, &mut TableWriter, &mut Part<'r>) -> Result<()>,
    ) -> Result<()> {
        let mut tables = BTreeSet::new();
        for (at, part) in parts.iter_mut().enumerate() {
            let id = part.current.core.id();
            if !tables.insert(id) {
                let message = "a table was cleared meanwhile; try again";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            refuse_other_schema(catalogue, id, &part.current.schema)?;
            self.tell_time(catalogue, &part.current)?;
            stage(at, &mut entry(catalogue, id)?.writer, part)?;
            unique::expect_unique(&entry(catalogue, id)?.writer, &mut part.staged)?;
            self.note_ends(&part.current.schema, &part.staged)?;
        }
        Ok(())
    }

    fn apply_parts(&self, catalogue: &mut Catalogue, parts: &[Part]) -> Result<Ticket> {
        let mut frame = Writer::new();
        if self.is_durable() {
            let mut one = Writer::new();
            let one_only = planted("batch_frame_has_one_table");
            for part in parts.iter().take(if one_only { 1 } else { parts.len() }) {
                let schema = entry(catalogue, part.current.core.id())?.writer.table().schema();
                part.staged.encode(&mut one, part.current.core.id(), &schema);
                frame.raw(one.as_bytes());
            }
        }
        self.refuse_large_frame(frame.len())?;
        let mut wakes = false;
        for part in parts {
            let entry = entry(catalogue, part.current.core.id())?;
            wakes |= self.freeze_if_full(entry, part.staged.puts.len());
        }
        let ticket = self.journal.append(ROWS_FRAME, frame.as_bytes())?;
        for part in parts {
            let entry = entry(catalogue, part.current.core.id())?;
            let new_unit = &mut || self.new_unit();
            let applied = part.staged.apply(&mut entry.writer, ticket.commit(), new_unit);
            entry.changed_at = ticket.commit();
            if let Err(e) = applied {
                catalogue.broken = true;
                return Err(half_applied(e));
            }
            wakes |= self.freeze_if_full(entry, 0);
        }
        self.watermarks.publish(ticket.commit());
        for part in parts {
            wakes |= self.note_killed(catalogue, &part.staged);
        }
        if wakes || self.log_is_long(ticket.commit()) {
            self.wake_maintenance();
        }
        Ok(ticket)
    }
}
