//! Filling a primary index when a table is opened.

use std::sync::{Arc, Mutex, PoisonError};

use esker_format::ColumnSlice;
use esker_table::segment::{Segment, SegmentFiles};
use esker_table::{Location, Table as TableCore};
use esker_vfs::Environment;

use crate::maintenance::read_index_file;
use crate::{Error, Result};

/// Fills the index from its checkpoint file, where there is one, and from the keys of segments that
/// the file does not cover. Returns the segments that the file covers.
pub(super) fn fill(
    environment: &Environment,
    files: &SegmentFiles,
    table: &Arc<TableCore>,
    index_file: u64,
) -> Result<Vec<u64>> {
    let view = table.view();
    if view.schema.key_positions().is_empty() {
        return Ok(Vec::new());
    }
    let covered =
        if index_file == 0 { Vec::new() } else { import(environment, files, table, index_file)? };
    let loose: Vec<&Arc<Segment>> =
        view.segments().filter(|s| !covered.contains(&s.id())).collect();
    let hashed: Vec<Mutex<Hashed>> = loose.iter().map(|_| Mutex::default()).collect();
    environment.tasks.parallel(loose.len(), &|i| {
        if let (Some(segment), Some(slot)) = (loose.get(i), hashed.get(i)) {
            let result = hash_segment(table, segment);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    });
    for slot in hashed {
        let entries = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        let entries = entries.unwrap_or_else(|| Ok(Vec::new()))?;
        table.index().insert_many(&entries)?;
    }
    Ok(covered)
}

type Hashed = Option<esker_table::Result<Vec<(u64, u64)>>>;

/// Hashes and locations of the living rows of a segment, sorted by hash.
fn hash_segment(
    table: &Arc<TableCore>,
    segment: &Arc<Segment>,
) -> esker_table::Result<Vec<(u64, u64)>> {
    let view = table.view();
    let positions = view.schema.key_positions();
    let mut entries = Vec::with_capacity(segment.row_count());
    let mut start = 0;
    while start < segment.row_count() {
        let end = segment.zone_end(start);
        let columns: Vec<ColumnSlice<'_>> = positions
            .iter()
            .map(|p| segment.column(*p, start..end))
            .collect::<esker_table::Result<_>>()?;
        for row in start..end {
            if segment.deleted(row) == 0 {
                let key = columns.iter().map(|column| column.value(row - start));
                let hash = table.hasher().hash_key(key);
                entries.push((hash, Location::new(segment.id(), row).word()));
            }
        }
        start = end;
    }
    entries.sort_unstable();
    Ok(entries)
}

/// Reads the entries of segments that are still there.
fn import(
    environment: &Environment,
    files: &SegmentFiles,
    table: &Arc<TableCore>,
    index_file: u64,
) -> Result<Vec<u64>> {
    let view = table.view();
    let imported = read_index_file(
        environment,
        files.dir(),
        index_file,
        |header| {
            if header.database != files.database() || header.table != table.id() {
                let message = format!("index file {index_file} belongs to another table");
                return Err(Error::corrupt(message));
            }
            let known = |id: &u64| view.segments().any(|s| s.id() == *id).then_some(*id);
            Ok(Imported {
                ids: header.segments.iter().map(known).collect(),
                entries: Vec::with_capacity(usize::try_from(header.entries).unwrap_or_default()),
            })
        },
        |imported, entry| {
            if let Some(Some(id)) = imported.ids.get(usize::from(entry.segment)) {
                let location = Location::new(*id, entry.row as usize);
                imported.entries.push((entry.tag, location.word()));
            }
        },
    )?;
    let expected = imported.entries.len();
    table.index().import(imported.entries, expected)?;
    Ok(imported.ids.into_iter().flatten().collect())
}

/// What has been read of an index file.
struct Imported {
    /// The segments it names that are still there.
    ids: Vec<Option<u64>>,
    entries: Vec<(u32, u64)>,
}
