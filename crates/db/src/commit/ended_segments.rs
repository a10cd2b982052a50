//! A commit that ends whole segments of a stream, beside deletes of rows of others.
//!
//! The frame has the numbers of the segments: however many events these have, it is a few bytes a
//! segment, and applying it is one word a segment. Such a frame frees space, so that it may take
//! what the log has in reserve on a full disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::Batch;
use esker_format::codec::Writer;
use esker_format::edit::Edit;
use esker_log::Purpose;
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::table::Existing;

use crate::catalogue::Catalogue;
use crate::commit::apply::{Own, Source};
use crate::commit::definitions::together;
use crate::commit::options::CommitOptions;
use crate::commit::staged::{Staged, StagedBatch};
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// Of so many bytes of groups a frame takes what the log has in reserve, which is twice as large at
/// the least.
const BYTES_OF_RESERVE: usize = 4 << 10;

/// What ends.
pub(crate) struct EndedEvents {
    /// Segments that have not ended.
    pub segments: BTreeSet<u64>,
    /// Living rows of others.
    pub deletes: Vec<Existing>,
    /// What they came to, for the histories of rollups.
    pub groups: Vec<EndedGroups>,
}

/// What the groups of events that end came to.
pub(crate) struct EndedGroups {
    /// The history of a rollup.
    pub history: Arc<TableCore>,
    /// New rows of it.
    pub rows: Batch,
    /// The bytes of these and of those before them, about.
    pub bytes: usize,
}

impl Engine {
    /// Ends events of a stream in one commit; says how many. Under the commit lock.
    pub(crate) fn commit_ended_events(
        &self,
        catalogue: &mut Catalogue,
        core: &Arc<TableCore>,
        EndedEvents { segments, deletes, groups }: EndedEvents,
    ) -> Result<u64> {
        if segments.is_empty() && deletes.is_empty() {
            return Ok(0);
        }
        let before = core.live_rows();
        let greatest = deletes.iter().map(|delete| delete.row_id).max();
        let view = core.view();
        let ended = view.segments().filter(|segment| segments.contains(&segment.id()));
        let greatest = ended.map(|segment| segment.row_id_bounds().1).chain(greatest).max();
        let current = TableVersion::newest(core);
        let mut staged = Staged::default();
        deletes.into_iter().for_each(|delete| staged.delete(delete));
        let mut set = WriteSet::One(TableWrites { staged, ..TableWrites::new(&current) });
        let options = CommitOptions::default();
        self.stage_groups(catalogue, &mut set, &groups)?;
        self.extend(catalogue, &mut set, options)?;
        // What adds little may take what the log has in reserve, as it frees space.
        // default: nothing is added
        let purpose = match groups.last().map_or(0, |groups| groups.bytes) {
            0..=BYTES_OF_RESERVE => Purpose::Frees,
            _ => Purpose::Adds,
        };
        let mut rows = Writer::new();
        self.encode_rows(&mut rows, set.as_slice(), options)?;
        let table = core.id();
        let no_rows = || Error::corrupt(format!("segments that end without rows: {segments:?}"));
        let through_row_id = greatest.ok_or_else(no_rows)?;
        let segments = segments.into_iter().collect();
        let edit = Edit::EndSegments { table, segments, through_row_id };
        let edit = together(vec![edit], rows.into_bytes());
        self.commit_edit(catalogue, purpose, &edit, |catalogue, commit| {
            self.on_commit(commit);
            let own = Own { writes: set.as_slice(), ..Own::default() };
            self.apply(catalogue, commit, Some(&edit), Source::Own(own)).map(drop)
        })?;
        self.wake_maintenance();
        Ok(before.saturating_sub(core.live_rows()))
    }

    /// Adds the groups of events that end to the histories that they are for.
    fn stage_groups<'r>(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'r>,
        groups: &'r [EndedGroups],
    ) -> Result<()> {
        let options = CommitOptions::default();
        for EndedGroups { history, rows, .. } in groups {
            let mut writes = TableWrites::new(TableVersion::newest(history));
            self.stage(catalogue, &mut writes, options, |writer, writes| {
                let first_row_id = writer.reserve_row_ids(rows.len() as u64);
                let (columns, long) = (rows, Vec::new());
                writes.staged.batch = Some(StagedBatch { columns, long, first_row_id });
                Ok(())
            })?;
            if Bug::HistoryInOtherFrame.is_planted() {
                let ticket =
                    self.commit_in_frame(catalogue, std::slice::from_ref(&writes), options)?;
                self.acknowledge(ticket)?;
                continue;
            }
            set.push(writes);
        }
        Ok(())
    }
}
