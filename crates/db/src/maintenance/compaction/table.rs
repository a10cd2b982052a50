//! Compacting one table.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Field, TableId};
use esker_table::Table as TableCore;
use esker_table::rewrite::{SEGMENT_BYTES_MAX, decoded_bytes, variable_fields};
use esker_table::view::RowGroup;

use crate::Result;
use crate::engine::Engine;
use crate::maintenance::compaction::leveled as key_levels;

/// Tells how far a compaction is, in rows.
pub(crate) struct Progress<'a> {
    tell: &'a mut dyn FnMut(u64, u64),
    all: u64,
    /// Of tables that are done.
    done: u64,
    /// Of the table that is compacted, and how many of them are done.
    of_table: u64,
    done_of_table: u64,
}

impl<'a> Progress<'a> {
    /// Of so many rows.
    pub fn new(tell: &'a mut dyn FnMut(u64, u64), all: u64) -> Self {
        tell(0, all);
        Self { tell, all, done: 0, of_table: 0, done_of_table: 0 }
    }

    /// A table of so many rows is next.
    pub fn begin(&mut self, rows: u64) {
        (self.of_table, self.done_of_table) = (rows, 0);
    }

    /// Some more rows are done: at the most as many as the table had, since a merge that does not
    /// fit one piece writes some rows again.
    fn pass(&mut self, rows: u64) {
        self.done_of_table = self.done_of_table.saturating_add(rows).min(self.of_table);
        (self.tell)(self.done + self.done_of_table, self.all);
    }

    /// The table is done.
    pub fn end(&mut self) {
        self.done += self.of_table;
        (self.of_table, self.done_of_table) = (0, 0);
        (self.tell)(self.done, self.all);
    }
}

/// A segment that may be rewritten.
struct Candidate {
    row_group: RowGroup,
    /// It has rows or long values that no reader can see any more.
    has_garbage: bool,
    /// What a rewritten segment would have of what it can have so much of: see [`Sizes`].
    sizes: Vec<u64>,
    is_small: bool,
}

/// What segments are measured by: rows, those that a merge reads, bytes, and bytes of each column.
struct Sizes<'a> {
    texts: Vec<&'a Field>,
    /// How much one segment may have of each.
    limits: Vec<u64>,
}

impl Engine {
    /// Returns how many segments were rewritten.
    pub(crate) fn compact_table(
        self: &Arc<Self>,
        id: TableId,
        dry_run: bool,
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let table = {
            let mut catalogue = self.lock_for_change()?;
            let Some(entry) = catalogue.tables.get_mut(&id) else { return Ok(0) };
            let large = entry
                .writer
                .open_group()
                .is_some_and(|group| group.group().byte_count() >= self.options.small_group_bytes);
            if large && !dry_run {
                entry.writer.freeze();
            }
            let table = Arc::clone(entry.writer.table());
            self.recount_frozen(&catalogue);
            table
        };
        if !dry_run {
            while self.seal_frozen()? {}
            self.finish_moving()?;
        }
        let mut own = ready_segments(&table);
        let planned = self.planned(&table, &own)?;
        if dry_run {
            return Ok(planned.iter().map(|batch| batch.len() as u64).sum());
        }
        let rows = |row_groups: &[RowGroup]| {
            row_groups.iter().map(|row_group| row_group.row_count() as u64).sum::<u64>()
        };
        let rewritten = planned.iter().map(|batch| rows(batch)).sum();
        progress.pass(rows(&own).saturating_sub(rewritten));
        let mut count = 0;
        if table.schema().is_ordered_by_key() {
            loop {
                let inputs = key_levels::overlapping(&table, &own, self.options.merge_rows_max)?;
                if inputs.is_empty() {
                    break;
                }
                count += inputs.len() as u64;
                let Some(now) = self.compact_row_groups(&table, inputs, own, progress)? else {
                    return Ok(count);
                };
                own = now;
            }
        }
        for inputs in self.planned(&table, &own)? {
            count += inputs.len() as u64;
            let Some(now) = self.compact_row_groups(&table, inputs, own, progress)? else { break };
            own = now;
        }
        Ok(count)
    }

    /// Merges some of the segments that are compacted, and returns what these are then: those that
    /// came meanwhile are not among them, or it might never end. `None` when the table was dropped.
    fn compact_row_groups(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        inputs: Vec<RowGroup>,
        own: Vec<RowGroup>,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Vec<RowGroup>>> {
        // It may take long, and writers wait for memory meanwhile.
        self.do_urgent_job()?;
        let readers = self.read_commits();
        let mut tell = |rows| progress.pass(rows);
        let merged = self.merge_telling(table, inputs, &readers, BTreeSet::new(), &mut tell)?;
        let Some(written) = merged else { return Ok(None) };
        let mut ids: BTreeSet<u64> = own.iter().map(RowGroup::id).collect();
        ids.extend(written);
        let mut now = ready_segments(table);
        now.retain(|row_group| ids.contains(&row_group.id()));
        Ok(Some(now))
    }

    /// What is to be rewritten together, as far as it is known before anything is. Segments that
    /// overlap become disjoint in as many merges as it takes.
    fn planned(&self, table: &TableCore, row_groups: &[RowGroup]) -> Result<Vec<Vec<RowGroup>>> {
        let schema = table.schema();
        let texts = variable_fields(schema.fields());
        let mut limits = vec![
            self.options.merged_rows_max as u64,
            self.options.merge_rows_max.max(self.options.merged_rows_max as u64),
            SEGMENT_BYTES_MAX,
        ];
        limits.resize(limits.len() + texts.len(), self.options.column_bytes_max);
        let sizes = Sizes { texts, limits };
        if let Some(stream) = schema.stream() {
            let segments = row_groups.iter().filter_map(|row_group| match row_group {
                RowGroup::Segment(segment) => Some(Arc::clone(segment)),
                RowGroup::Group(_) => None,
            });
            let segments: Vec<_> = segments.collect();
            let mut planned = Vec::new();
            for (_, part) in self.by_window(&schema, stream, &segments)? {
                let mut candidates = self.candidates(table, part, &sizes)?;
                candidates.retain(Candidate::is_worth);
                planned.extend(batches(candidates, &sizes));
            }
            return Ok(planned);
        }
        if !schema.is_ordered_by_key() {
            let mut candidates = self.candidates(table, row_groups.to_vec(), &sizes)?;
            candidates.retain(Candidate::is_worth);
            return Ok(batches(candidates, &sizes));
        }
        let (mut planned, mut alone) = (Vec::new(), Vec::new());
        for cluster in key_levels::by_key(table, row_groups)? {
            match cluster.len() {
                1 => alone.extend(cluster),
                _ => {
                    planned.extend(batches(self.candidates(table, alone, &sizes)?, &sizes));
                    alone = Vec::new();
                    planned.push(cluster);
                }
            }
        }
        planned.extend(batches(self.candidates(table, alone, &sizes)?, &sizes));
        Ok(planned)
    }

    fn candidates(
        &self,
        table: &TableCore,
        row_groups: Vec<RowGroup>,
        sizes: &Sizes<'_>,
    ) -> Result<Vec<Candidate>> {
        let readers = self.read_commits();
        let oldest = readers.oldest();
        let view = table.view();
        let expired_us = self.oldest_moment().of(&view.schema);
        let fields = view.fields_since(oldest);
        let expiry = view.expiry_since(oldest);
        let mut candidates = Vec::with_capacity(row_groups.len());
        for row_group in row_groups {
            let rows = row_group.row_count() as u64;
            let expired = match expiry {
                Some(field) => row_group.count_expired(field, expired_us, oldest)?,
                None => 0,
            };
            let (dead, ..) = row_group.count_droppable(&readers);
            let has_dropped = match &row_group {
                RowGroup::Segment(segment) => !segment.has_long_only_of(&fields),
                RowGroup::Group(_) => false,
            };
            let left = rows.saturating_sub(dead.saturating_add(expired));
            let of_left = |size: u64| {
                let size = u128::from(size) * u128::from(left) / u128::from(rows.max(1));
                // default: a figure beyond all files
                u64::try_from(size).unwrap_or(u64::MAX)
            };
            let has_garbage = dead > 0 || expired > 0 || has_dropped;
            let mut own = vec![left, rows, of_left(row_group.byte_count())];
            if has_garbage || sizes.are_small(&own) {
                // Reads the columns of some segments.
                let decoded = decoded_bytes(std::slice::from_ref(&row_group), &sizes.texts)?;
                own.extend(decoded.into_iter().map(of_left));
            }
            let is_small = sizes.are_small(&own);
            candidates.push(Candidate { row_group, has_garbage, sizes: own, is_small });
        }
        Ok(candidates)
    }
}

impl Sizes<'_> {
    fn are_small(&self, sizes: &[u64]) -> bool {
        sizes.iter().zip(&self.limits).all(|(size, limit)| *size < limit / 2)
    }
}

impl Candidate {
    /// It is worth to be rewritten, if only with another one.
    fn is_worth(&self) -> bool {
        self.has_garbage || self.is_small
    }
}

/// The segments of a table whose loads are done.
pub(crate) fn ready_segments(table: &TableCore) -> Vec<RowGroup> {
    let view = table.view();
    let ready = view.segments().filter(|segment| !segment.is_loading());
    ready.map(|segment| RowGroup::Segment(Arc::clone(segment))).collect()
}

/// Those that are worth it, as many side by side as make about one full segment; a small one alone
/// stays as it is. Of two that come one after the other, one is then at least half full.
fn batches(candidates: Vec<Candidate>, sizes: &Sizes<'_>) -> Vec<Vec<RowGroup>> {
    let mut batches: Vec<Vec<RowGroup>> = Vec::new();
    let mut batch: Vec<Candidate> = Vec::new();
    let mut close = |batch: &mut Vec<Candidate>| {
        let batch = std::mem::take(batch);
        if batch.len() > 1 || batch.iter().any(|candidate| candidate.has_garbage) {
            let mut row_groups: Vec<RowGroup> =
                batch.into_iter().map(|candidate| candidate.row_group).collect();
            row_groups.sort_by_key(RowGroup::id);
            batches.push(row_groups);
        }
    };
    for candidate in candidates {
        let fits = sizes.limits.iter().enumerate().all(|(at, limit)| {
            let with = batch.iter().chain([&candidate]);
            with.filter_map(|one| one.sizes.get(at)).sum::<u64>() <= *limit
        });
        if !fits || !candidate.is_worth() {
            close(&mut batch);
        }
        if candidate.is_worth() {
            batch.push(candidate);
        }
    }
    close(&mut batch);
    batches
}
