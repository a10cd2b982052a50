//! Filling a primary index when a table is opened.

use std::path::Path;
use std::sync::Arc;

use esker_table::view::Unit;
use esker_table::{Location, Table as TableCore};
use esker_vfs::Environment;

use crate::maintenance::read_index_file;
use crate::{Error, Result};

/// Fills the index from its checkpoint file, where there is one, and from the keys of segments that
/// the file does not cover. Returns the segments that the file covers.
pub(super) fn fill(
    environment: &Environment,
    dir: &Path,
    database: u128,
    table: &Arc<TableCore>,
    index_file: u64,
) -> Result<Vec<u64>> {
    let view = table.view();
    if view.schema.key_positions().is_empty() {
        return Ok(Vec::new());
    }
    let covered = if index_file == 0 {
        Vec::new()
    } else {
        import(environment, dir, database, table, index_file)?
    };
    let mut entries: Vec<(u64, u64)> = Vec::new();
    for segment in view.segments().filter(|s| !covered.contains(&s.id())) {
        let unit = Unit::Segment(Arc::clone(segment));
        for row in 0..segment.row_count() {
            if segment.deleted(row) == 0 {
                let hash = esker_table::rewrite::key_hash(table, &view.schema, &unit, row)?;
                entries.push((hash, Location::new(segment.id(), row).word()));
            }
        }
    }
    entries.sort_unstable();
    table.index().insert_many(&entries)?;
    Ok(covered)
}

/// Reads the entries of segments that are still there.
fn import(
    environment: &Environment,
    dir: &Path,
    database: u128,
    table: &Arc<TableCore>,
    index_file: u64,
) -> Result<Vec<u64>> {
    let view = table.view();
    let imported = read_index_file(
        environment,
        dir,
        index_file,
        |header| {
            if header.database != database || header.table != table.id() {
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
