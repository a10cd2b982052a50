//! Sealing frozen groups, and what sealing and merging share: write, number, publish, repoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::invariant;
use esker_format::segment::SEGMENT_ROWS_MAX;
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::rewrite::{Repoint, RewritePlan, Rewritten};
use esker_table::view::RowGroup;

use super::FileSink;
use super::work::bytes_of;
use crate::commit::apply::{LinkSegments, Own, Source};
use crate::commit::journal::{Journal, Ticket};
use crate::engine::Engine;
use crate::{Error, Result};

/// A window has a segment of its own from so many parts of a full group on.
const WINDOW_SHARE: usize = 256;

impl Engine {
    /// Seals the frozen groups of one table, if there are any.
    pub(crate) fn seal_frozen(self: &Arc<Self>) -> Result<bool> {
        if !self.is_durable() {
            return Ok(false);
        }
        let frozen = {
            let catalogue = self.lock();
            catalogue.tables.values().find_map(|entry| {
                let groups = frozen_groups(entry);
                (!groups.is_empty()).then(|| (Arc::clone(entry.writer.table()), groups))
            })
        };
        let Some((table, groups)) = frozen else { return Ok(false) };
        let through = groups.iter().map(|row_group| match row_group {
            RowGroup::Group(group) => group.newest_commit(),
            RowGroup::Segment(_) => 0,
        });
        // default: no groups: nothing is sealed
        let through = through.max().unwrap_or_default();
        // Deletes go on after the newest row, and a checkpoint may have put some of them out of
        // reach of replay: the segment has to hold all there are.
        let late = !Bug::SealForgetsLateDeletes.is_planted();
        let holds_through = if late { self.watermarks.published() } else { through };
        let ahead = if Bug::SealAheadOfItsFrame.is_planted() { 1_000 } else { 0 };
        let holds_through = holds_through + ahead;
        let plan = RewritePlan {
            table: Arc::clone(&table),
            inputs: groups,
            readers: self.read_commits(),
            expired: self.oldest_moment(),
            through: holds_through,
            database: self.database,
            rows_max: SEGMENT_ROWS_MAX,
            column_bytes_max: self.options.column_bytes_max,
            emptied: BTreeSet::new(),
            window_rows_min: self.window_rows_min(),
        };
        self.seals.count(&*self.environment.clock, |bytes| {
            let mut sink = FileSink::new(self);
            let rewritten = plan.build(&mut sink, &mut |_| {})?;
            self.build_first_runs(&table, &rewritten.segments, &mut sink)?;
            sink.keep();
            *bytes = bytes_of(&rewritten);
            let segments = rewritten.entries();
            let edit = Edit::Seal { table: table.id(), through, segments };
            self.install(&table, rewritten, &edit)
        })?;
        self.recount_frozen(&self.lock());
        Ok(true)
    }

    /// Names what was written in the log, swaps it in, and moves the index entries. False when
    /// the table was dropped meanwhile.
    pub(super) fn install(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        rewritten: Rewritten,
        edit: &Edit,
    ) -> Result<bool> {
        let mark_for_deletion =
            || rewritten.segments.iter().for_each(|segment| segment.mark_for_deletion());
        self.finish_moving().inspect_err(|_| mark_for_deletion())?;
        if !rewritten.segments.is_empty() {
            self.sync_segment_dir().inspect_err(|_| mark_for_deletion())?;
        }
        self.environment.tasks.pause();
        let numbered = self.number_edit(&rewritten, edit).inspect_err(|_| mark_for_deletion())?;
        let Some(ticket) = numbered else {
            mark_for_deletion();
            return Ok(false);
        };
        if !Bug::PublishBeforeDurable.is_planted() {
            self.wait_for(ticket)?;
        }
        self.environment.tasks.pause();
        let inputs = rewritten.input_ids();
        let old = table.view();
        if Bug::RepointBeforeSwap.is_planted() {
            self.repoint(&mut rewritten.repoint())?;
        }
        let repoint = match Bug::PublishWithoutLock.is_planted() {
            true => rewritten.publish(self.watermarks.published())?,
            false => self.swap_in(rewritten, ticket.commit(), edit)?,
        };
        if Bug::ForwardingDroppedTooEarly.is_planted() {
            let _catalogue = self.lock();
            repoint.forget()?;
        }
        for segment in old.segments().filter(|s| inputs.contains(&s.id())) {
            segment.mark_for_deletion();
        }
        drop(old);
        self.environment.tasks.pause();
        self.maintenance_state().moving = Some(repoint);
        // It is done; what fails here is tried again before the next job.
        if let Err(e) = self.finish_moving() {
            self.note_error(&e);
        }
        Ok(true)
    }

    /// Swaps the segments of a frame that is durable in, with what the frame says besides.
    fn swap_in(&self, rewritten: Rewritten, commit: u64, edit: &Edit) -> Result<Repoint> {
        let (mut rewritten, mut repoint) = (Some(rewritten), None);
        let link: &mut LinkSegments<'_> = &mut |_, _, _| {
            let now = self.watermarks.published();
            let published = rewritten.take().map(|rewritten| rewritten.publish(now));
            repoint = published.transpose()?;
            Ok(())
        };
        let own = Own { link: Some(link), ..Own::default() };
        let mut catalogue = self.lock();
        let applied = self.apply(&mut catalogue, commit, Some(edit), Source::Own(own));
        // The log has it and memory has not.
        catalogue.broken |= applied.is_err();
        applied?;
        repoint.ok_or_else(|| Error::corrupt("the segments of a rewrite were not swapped in"))
    }

    /// Leads on who still names rows of the inputs of the last seal or merge, then forgets where
    /// these went. No other row group may be retired before: the places that are named lead on
    /// through the newer ones.
    pub(super) fn finish_moving(&self) -> Result<()> {
        let Some(mut moving) = self.maintenance_state().moving.take() else { return Ok(()) };
        if let Err(e) = self.repoint(&mut moving) {
            self.maintenance_state().moving = Some(moving);
            return Err(e);
        }
        moving.relocate(&mut || self.environment.tasks.pause());
        {
            let _catalogue = self.lock();
            moving.forget()?;
        }
        // Snapshots that are older see when its rows were created.
        let now = self.watermarks.published();
        self.maintenance_state().settles_at = Some(now);
        Ok(())
    }

    fn repoint(&self, repoint: &mut Repoint) -> Result<()> {
        while let Some(batch) = repoint.next_batch()? {
            {
                let _catalogue = self.lock();
                repoint.apply(&batch);
            }
            self.environment.tasks.pause();
        }
        Ok(())
    }

    /// The fewest events of one window that make a segment of their own.
    pub(super) fn window_rows_min(&self) -> usize {
        (self.options.group_rows_max / WINDOW_SHARE).max(1)
    }

    /// Numbers an edit that changes no answer; it counts as published at once. `None` when the
    /// table is gone.
    fn number_edit(&self, rewritten: &Rewritten, edit: &Edit) -> Result<Option<Ticket>> {
        let catalogue = self.lock_for_change()?;
        let table = rewritten.table();
        if !catalogue.tables.contains_key(&table.id()) {
            return Ok(None);
        }
        // The log would say so of the old segment only.
        let place = format_args!("table {}", table.id().0);
        invariant!(
            !rewritten.has_ended_input(),
            place,
            "a segment ends while it is written anew: one job does either"
        );
        self.log_edit(edit).map(Some)
    }

    /// Waits until a frame is durable, whatever the durability of commits.
    pub(crate) fn wait_for(&self, ticket: Ticket) -> Result<()> {
        match (&self.journal, ticket) {
            (Journal::Log(log), Ticket::Log(ticket)) => Ok(log.wait_durable(ticket)?),
            _ => Ok(()),
        }
    }
}

/// The groups of a table that take no more rows, by age.
pub(crate) fn frozen_groups(entry: &crate::catalogue::TableEntry) -> Vec<RowGroup> {
    let open = entry.writer.open_group().map(|writer| Arc::clone(writer.group()));
    let view = entry.writer.table().view();
    let is_open = |group| open.as_ref().is_some_and(|open| Arc::ptr_eq(open, group));
    view.groups()
        .filter(|group| !is_open(group))
        .map(|group| RowGroup::Group(Arc::clone(group)))
        .collect()
}
