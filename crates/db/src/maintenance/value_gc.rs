//! Giving back the space of long values that nothing refers to any more.
//!
//! * A file that is more than half garbage is *due*: the row groups whose rows refer to it are
//!   rewritten, one after another, and their values go to the current file.
//! * So are small files, once there are many: each opening begins a new one.
//! * A file without a holder goes, once what let go of it is durable.
//!
//! Other rewriting copies no long value: it only drops what refers to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_arena::ReadCommits;
use esker_format::Field;
use esker_table::Table as TableCore;
use esker_table::view::RowGroup;

use super::TableJob;
use super::state::{Bytes, Counted};
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Files below one part in so many of a full one are small.
const SMALL_SHARE: u64 = 16;
/// Small files that there may be.
const SMALL_MAX: usize = 8;

/// Which files are emptied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CollectionThreshold {
    /// Those that it pays to copy.
    Usual,
    /// All with a number below this one that have an eighth of garbage.
    Compact { before: u64 },
    /// All with a number below this one that have any.
    All { before: u64 },
}

/// True for an error that other files need not have.
pub(super) fn is_of_file(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io)
}

impl Engine {
    /// Removes the value files without a holder. False when there are none.
    pub(super) fn remove_unused_values(&self) -> Result<bool> {
        let values = self.segment_files.values();
        let unused = values.unused();
        if unused.is_empty() || self.lock().broken {
            return Ok(false);
        }
        // What let go of them has been numbered, and recovery must see it, too.
        self.sync()?;
        values.remove(&unused);
        Ok(true)
    }

    /// Rewrites a row group that refers to a value file which is due. False when there is none.
    pub(super) fn empty_value_file(
        self: &Arc<Self>,
        threshold: CollectionThreshold,
    ) -> Result<bool> {
        if !self.is_durable() || !self.segment_files.values().is_used() {
            return Ok(false);
        }
        let readers = self.read_commits();
        let tables = self.all_tables();
        let due = self.due_value_files(&tables, &readers, threshold)?;
        if due.is_empty() {
            return Ok(false);
        }
        let values = self.segment_files.values();
        if values.current().is_some_and(|current| due.contains(&current)) {
            values.finish_current();
        }
        let is_all = matches!(threshold, CollectionThreshold::All { .. });
        let mut failed = None;
        for table in &tables {
            if threshold == CollectionThreshold::Usual
                && self.is_backing_off(table.id(), TableJob::Merge)
            {
                continue;
            }
            let view = table.view();
            let refers = |row_group: &&RowGroup| {
                !row_group.is_loading()
                    && row_group.value_files().iter().any(|f| due.contains(&f.id()))
            };
            for row_group in view.row_groups.iter().filter(refers) {
                if matches!(row_group, RowGroup::Group(_)) {
                    return self.freeze_groups_of(table);
                }
                let merged = self.merge(table, vec![row_group.clone()], &readers, due.clone());
                self.back_off(table.id(), TableJob::Merge, merged.is_err());
                match merged {
                    // What cannot be read keeps nothing else from being erased.
                    Err(e) if is_all && is_of_file(&e) => failed = failed.or(Some(e)),
                    merged => return merged.map(|()| true),
                }
            }
        }
        failed.map_or(Ok(false), Err) // default: nothing refers to one
    }

    fn all_tables(&self) -> Vec<Arc<TableCore>> {
        let catalogue = self.lock();
        catalogue.tables.values().map(|entry| Arc::clone(entry.writer.table())).collect()
    }

    /// True when a value file is due.
    pub(super) fn has_due_values(&self, threshold: CollectionThreshold) -> Result<bool> {
        if !self.is_durable() || !self.segment_files.values().is_used() {
            return Ok(false);
        }
        let readers = self.read_commits();
        let due = self.due_value_files(&self.all_tables(), &readers, threshold)?;
        Ok(!due.is_empty())
    }

    /// Has the groups of a table sealed: then they are segments, which can be rewritten.
    pub(super) fn freeze_groups_of(self: &Arc<Self>, table: &Arc<TableCore>) -> Result<bool> {
        {
            let mut catalogue = self.lock_for_change()?;
            if let Some(entry) = catalogue.tables.get_mut(&table.id()) {
                entry.writer.freeze();
            }
            self.recount_frozen(&catalogue);
        }
        self.seal_frozen()
    }

    fn due_value_files(
        &self,
        tables: &[Arc<TableCore>],
        readers: &ReadCommits,
        threshold: CollectionThreshold,
    ) -> Result<BTreeSet<u64>> {
        let values = self.segment_files.values();
        // Before the row groups are looked at: a value that comes now is in a file that has grown
        // since.
        let files: Vec<(u64, u64)> =
            values.files().iter().map(|file| (file.id(), file.value_bytes())).collect();
        let mut live = Bytes::new();
        let mut counted = BTreeMap::new();
        for table in tables {
            let view = table.view();
            let fields = view.fields_since(readers.oldest());
            for row_group in view.row_groups.iter().filter(|row_group| row_group.refers_to_files())
            {
                let count = self.count_long(row_group, &fields, readers)?;
                count.bytes.iter().for_each(|(id, n)| *live.entry(*id).or_default() += n);
                counted.insert(row_group.id(), count);
            }
        }
        self.maintenance_state().counted = counted;
        let small_bytes = self.options.values.file_bytes_max / SMALL_SHARE;
        let current = values.current();
        let is_small = |(id, size): &&(u64, u64)| *size < small_bytes && Some(*id) != current;
        let small = files.iter().filter(is_small).count();
        let is_due = |file: &&(u64, u64)| {
            // default: no row refers to it
            let used = live.get(&file.0).copied().unwrap_or_default();
            let garbage = file.1.saturating_sub(used);
            match threshold {
                CollectionThreshold::Compact { before } => {
                    file.0 < before && garbage.saturating_mul(8) > file.1
                }
                CollectionThreshold::All { before } => file.0 < before && garbage > 0,
                CollectionThreshold::Usual => {
                    let is_worth = garbage.saturating_mul(2) > file.1 && garbage >= small_bytes;
                    is_worth || (small > SMALL_MAX && is_small(file))
                }
            }
        };
        Ok(files.iter().filter(is_due).map(|(id, _)| *id).collect())
    }

    /// What a row group refers to, but for rows that no snapshot sees and fields that are dropped.
    fn count_long(
        &self,
        row_group: &RowGroup,
        fields: &[Field],
        readers: &ReadCommits,
    ) -> Result<Counted> {
        let (dead, events) = (row_group.dead_count(), row_group.delete_events());
        let as_of = (row_group.row_count(), events);
        let up_to = |newest| (dead > 0).then(|| readers.up_to(newest));
        if let Some(known) = self.maintenance_state().counted.remove(&row_group.id())
            && known.as_of == as_of
            && known.readers == up_to(known.newest)
            && known.fields.iter().eq(fields.iter().map(|field| &field.id))
        {
            return Ok(known);
        }
        let bytes = match row_group {
            RowGroup::Segment(segment) if dead == 0 && segment.has_long_only_of(fields) => {
                let files = segment.value_files().iter();
                files.map(|file| (file.id(), segment.bytes_in(file.id()))).collect()
            }
            _ => row_group.long_bytes_kept(fields, readers)?,
        };
        let fields = fields.iter().map(|field| field.id).collect();
        let newest = row_group.newest_delete_stamp();
        Ok(Counted { as_of, newest, readers: up_to(newest), fields, bytes })
    }
}
