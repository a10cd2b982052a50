//! One commit of changes to several tables (protocol rule 7): one frame has all of them, in the
//! order of the tables' numbers, so that recovery applies all or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::codec::Writer;
use esker_format::edit::ROWS_FRAME;
use esker_log::sabotage::planted;
use esker_table::TableWriter;

use super::commit::{Staged, entry, half_applied, refuse_other_schema};
use super::{Catalogue, Engine, Ticket, spill, unique};
use crate::table::Current;
use crate::{Error, ErrorKind, Result};

/// The changes of one table within a commit.
pub(crate) struct Part {
    pub current: Current,
    pub staged: Staged,
}

impl Part {
    /// No changes yet.
    pub fn new(current: Current) -> Self {
        Self { current, staged: Staged::default() }
    }
}

impl Engine {
    /// One atomic commit: `stage` validates the changes of each table, which it is told by its
    /// place among the parts, under the commit lock.
    pub fn commit_parts(
        self: &Arc<Self>,
        mut parts: Vec<Part>,
        sync: Option<bool>,
        mut stage: impl FnMut(usize, &mut TableWriter, &mut Part) -> Result<()>,
    ) -> Result<()> {
        if parts.len() <= 1 {
            let Some(part) = parts.pop() else { return Ok(()) };
            return self.commit_only(part, sync, |writer, part| stage(0, writer, part));
        }
        self.wait_for_memory()?;
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            let outcome = self.stage_parts(&mut catalogue, &mut parts, &mut stage);
            if outcome.is_err() || parts.iter().all(|part| part.staged.is_empty()) {
                drop(catalogue);
                self.acknowledge_published()?;
                return outcome;
            }
            self.apply_parts(&mut catalogue, &parts)?
        };
        self.acknowledge_as(ticket, sync)
    }

    /// A commit of one table, which may be large.
    fn commit_only(
        self: &Arc<Self>,
        part: Part,
        sync: Option<bool>,
        stage: impl FnOnce(&mut TableWriter, &mut Part) -> Result<()>,
    ) -> Result<()> {
        let Part { current, .. } = part;
        let id = current.core.id();
        let mut inner = Part::new(current.clone());
        self.commit_rows(&current, |catalogue, staged| {
            stage(&mut entry(catalogue, id)?.writer, &mut inner)?;
            *staged = std::mem::take(&mut inner.staged);
            staged.sync = sync;
            Ok(())
        })
    }

    fn stage_parts(
        &self,
        catalogue: &mut Catalogue,
        parts: &mut [Part],
        stage: &mut impl FnMut(usize, &mut TableWriter, &mut Part) -> Result<()>,
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
            let is_large = spill::is_large(&part.staged, self.options.commit_bytes_max);
            if is_large || self.has_long(&part.current.schema, &part.staged) {
                let message = "a commit of several tables with a value of more than 64 KiB, or of \
                               more rows than a frame of the log takes; change one table at a time";
                return Err(Error::new(ErrorKind::OverBudget, message));
            }
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
