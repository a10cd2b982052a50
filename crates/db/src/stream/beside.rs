//! Commits of events with entries beside them: one frame.

use std::ops::Range;

use esker_format::{Batch, TableId};
use esker_log::sabotage::Bug;

use super::Stream;
use super::fate::{self, Fate};
use super::kept::KeptEntry;
use crate::Result;
use crate::commit::options::CommitOptions;
use crate::commit::row_sink::StagedRows;
use crate::commit::staged::StagedBatch;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::table_version::TableVersion;

/// An entry, and the rows of a commit that it tells of.
pub(super) struct Beside<'e> {
    pub entry: &'e KeptEntry,
    /// Which rows of the commit are those of its request.
    pub rows: Range<u64>,
    /// What becomes of each event of its request; empty where all of them are among the rows.
    pub fates: &'e [Fate],
}

impl Beside<'_> {
    /// What became of the rows of the request, where the first row of the commit has a row id.
    fn outcomes(&self, first: u64) -> Vec<Result<u64>> {
        let ids = self.rows.clone().map(|at| Ok(first + at));
        match self.fates.is_empty() {
            true => ids.collect(),
            false => fate::outcomes(self.fates, ids),
        }
    }
}

/// Entries of one bucket.
struct OfBucket<'b, 'e> {
    current: TableVersion,
    entries: Vec<&'b Beside<'e>>,
}

fn by_bucket<'b, 'e>(all: &'b [Beside<'e>]) -> Vec<OfBucket<'b, 'e>> {
    let mut buckets: Vec<OfBucket<'b, 'e>> = Vec::new();
    for beside in all {
        let current = beside.entry.bucket();
        let id: TableId = current.core.id();
        match buckets.iter_mut().find(|known| known.current.core.id() == id) {
            Some(known) => known.entries.push(beside),
            None => buckets.push(OfBucket { current, entries: vec![beside] }),
        }
    }
    buckets
}

impl Stream {
    /// One commit of rows that are ready, with entries that tell of them; the first of the row ids.
    /// Nothing is done but to find out whether it would be, where that is asked.
    pub(super) fn commit_beside(
        &self,
        current: &TableVersion,
        columns: &Batch,
        (entries, is_probe): (&[Beside<'_>], bool),
    ) -> Result<u64> {
        let engine = &self.table.engine;
        let table = current.core.id();
        entries.iter().try_for_each(|beside| beside.entry.expect_table(table))?;
        if Bug::ProducerRowInOtherCommit.is_planted() && !columns.is_empty() && !is_probe {
            let first = engine.commit_tested(current, columns)?;
            engine.sync()?;
            self.commit_beside(current, &Batch::empty(&current.schema), (entries, false))?;
            return Ok(first);
        }
        engine.wait_for_memory()?;
        let mut long = Some(engine.store_long_columns(&current.schema, columns)?);
        let buckets = by_bucket(entries);
        let rows = (!columns.is_empty()).then(|| TableWrites::new(current));
        let before = usize::from(rows.is_some());
        let beside = buckets.iter().map(|of| TableWrites::new(&of.current));
        let set = WriteSet::Many(rows.into_iter().chain(beside).collect());
        let options = CommitOptions { is_probe, in_one_frame: true, ..CommitOptions::default() };
        let mut first_row_id = 0;
        engine.commit_writes(set, options, |at, writer, writes| {
            let of = at.checked_sub(before).and_then(|at| buckets.get(at));
            let Some(OfBucket { current, entries }) = of else {
                first_row_id = writer.reserve_row_ids(columns.len() as u64);
                // default: a table is staged once
                let long = long.take().unwrap_or_default();
                writes.staged.batch = Some(StagedBatch { columns, long, first_row_id });
                return Ok(());
            };
            let mut rows = StagedRows::new(engine, current, (writer, &mut writes.staged));
            entries.iter().try_for_each(|beside| {
                beside.entry.stage((engine, current), &beside.outcomes(first_row_id), &mut rows)
            })
        })?;
        Ok(first_row_id)
    }
}
