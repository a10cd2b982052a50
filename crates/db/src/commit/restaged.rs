//! Changes that were staged, once the commit lock has been let go: they have to be as they were.

use esker_arena::ReaderGuard;
use esker_format::{Schema, Value, ValueRef};
use esker_table::table::Existing;
use esker_table::{Location, PinnedLocations, Table as TableCore, TableWriter};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::conflict::{as_changed, changed, refuse_other_schema};
use crate::commit::options::CommitOptions;
use crate::commit::staged::{Put, Staged};
use crate::commit::unique_check as unique;
use crate::commit::write_set::TableWrites;
use crate::table_version::TableVersion;

/// Refuses what was staged when another commit changed the same rows first.
pub(crate) fn expect_as_staged(
    catalogue: &mut Catalogue,
    parts: &mut [TableWrites<'_>],
    commit_options: CommitOptions<'_>,
    staged_at: &ReaderGuard,
) -> Result<()> {
    for TableWrites { current, staged, .. } in parts {
        refuse_other_schema(catalogue, current.core.id(), commit_options.schema_before(current))?;
        let writer = &mut catalogue.entry(current.core.id())?.writer;
        // The writer of a table that comes with this commit has not given them out itself.
        staged.puts.iter().for_each(|put| writer.note_row_id(put.prepared.row_id));
        expect_unchanged(writer, current, staged, staged_at.commit())?;
        if current.schema.stream().is_some() {
            staged.renumber(writer);
        }
    }
    Ok(())
}

/// Refuses it when another commit changed the same rows first, and finds the versions that
/// it replaces.
fn expect_unchanged(
    writer: &TableWriter,
    current: &TableVersion,
    staged: &mut Staged<'_>,
    staged_at: u64,
) -> Result<()> {
    expect_alive(&current.core, &mut staged.deletes, staged.places.as_deref())?;
    let puts = &mut staged.puts;
    puts.iter_mut().try_for_each(|put| expect_same(writer, &current.schema, put, staged_at))?;
    unique::expect_unique(writer, &current.schema, staged).map_err(as_changed)
}

/// Refuses versions that died since they were staged to be deleted, and finds where the others are
/// now.
pub(crate) fn expect_alive(
    core: &TableCore,
    deletes: &mut [Existing],
    places: Option<&PinnedLocations>,
) -> Result<()> {
    let (view, located) = (core.view(), places.map(PinnedLocations::locate));
    for (number, existing) in deletes.iter_mut().enumerate() {
        let found = match &located {
            Some(located) => located.get(number),
            None => view.row(existing.location),
        };
        match found {
            Some((row_group, row)) if row_group.is_alive(row) => {
                existing.location = Location::new(row_group.id(), row);
            }
            _ => return Err(changed()),
        }
    }
    Ok(())
}

/// Finds the version that a put replaces, wherever it is now; it has to be the one that was staged.
pub(crate) fn expect_same(
    writer: &TableWriter,
    schema: &Schema,
    put: &mut Put<'_>,
    staged_at: u64,
) -> Result<()> {
    let prepared = &mut put.prepared;
    let key: Vec<ValueRef<'_>> = match schema.key_positions() {
        [] if prepared.existing.is_none() => return Ok(()),
        [] => vec![ValueRef::Uint(prepared.row_id)],
        positions => positions.iter().filter_map(|p| put.row.get(*p)).map(Value::as_ref).collect(),
    };
    let now = writer.existing(&key, prepared.hash)?;
    // One that came since has a commit above: the reader held keeps it known.
    let is_same = match now.filter(|e| e.deleted == 0) {
        Some(now) => {
            prepared.is_update() && now.row_id == prepared.row_id && now.created <= staged_at
        }
        None => !prepared.is_update(),
    };
    prepared.existing = now;
    if is_same { Ok(()) } else { Err(changed()) }
}
