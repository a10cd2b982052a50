//! Whether the rows of a commit have values of a unique index that other rows have.
//!
//! It runs once all changes of a commit are staged, under the commit lock: what counts is how
//! the rows are after the commit, so that two rows may exchange their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::segment::Segment;
use esker_table::table::{ComputedRow, Existing, Holder, UniqueEntry, UniqueKeys};
use esker_table::view::View;
use esker_table::{Location, TableWriter};

use crate::commit::fit::refuse_long_unique;
use crate::commit::private_rows::row_of;
use crate::commit::staged::{Put, Staged};
use crate::{Error, ErrorKind, Result};

/// Refuses rows of a schema that are staged with values that other rows have, and notes which
/// entries move.
pub(crate) fn expect_unique(
    writer: &TableWriter,
    schema: &Schema,
    staged: &mut Staged<'_>,
) -> Result<()> {
    if !writer.table().has_uniques() {
        return Ok(());
    }
    let mut puts = staged.puts.iter_mut().collect::<Vec<_>>();
    expect_unique_rows((writer, schema), &mut puts, &staged.deletes, staged.read_at)
}

/// The same for rows that are put as others are deleted. Who has read as of a commit meets a
/// `Conflict` where the other row is younger.
pub(crate) fn expect_unique_rows(
    (writer, schema): (&TableWriter, &Schema),
    puts: &mut [&mut Put<'_>],
    deletes: &[Existing],
    read_at: Option<u64>,
) -> Result<()> {
    puts.iter_mut().for_each(|put| put.prepared.uniques.clear());
    let (uniques, view) = (writer.table().uniques(), writer.table().view());
    let updated = puts.iter().filter(|put| put.prepared.is_update());
    let changed: BTreeSet<u64> = deletes
        .iter()
        .map(|existing| existing.row_id)
        .chain(updated.map(|put| put.prepared.row_id))
        .collect();
    let terms = (&changed, read_at);
    uniques
        .iter()
        .filter(|keys| stays(keys, schema))
        .try_for_each(|keys| expect_unique_values((writer, schema), &view, keys, puts, terms))
}

/// An index that goes with the same commit refuses nothing.
fn stays(keys: &UniqueKeys, schema: &Schema) -> bool {
    schema.indexes().iter().any(|index| index.id == keys.index().id)
}

fn expect_unique_values(
    (writer, schema): (&TableWriter, &Schema),
    view: &View,
    keys: &Arc<UniqueKeys>,
    puts: &mut [&mut Put<'_>],
    (changed, read_at): (&BTreeSet<u64>, Option<u64>),
) -> Result<()> {
    let is_alone = puts.len() == 1 || Bug::UniqueNotCheckedInCommit.is_planted();
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for at in 0..puts.len() {
        let Some(put) = puts.get(at) else { break };
        let (mut room, mut other) = (ComputedRow::default(), ComputedRow::default());
        let Some(values) = keys.values_of(schema, &put.row, &mut room)? else { continue };
        refuse_long_unique(keys.index(), values.iter().copied())?;
        let hash = writer.table().hasher().hash_key(values.iter().copied());
        if !is_alone {
            let same_hash = seen.entry(hash).or_default();
            for earlier in same_hash.iter().filter_map(|earlier| puts.get(*earlier)) {
                if keys.values_of(schema, &earlier.row, &mut other)?.as_ref() == Some(&values) {
                    return Err(refused(keys, schema, &put.row, "comes twice in one commit"));
                }
            }
            same_hash.push(at);
        }
        let row = (put.prepared.row_id, &*put.row);
        let is_changed = |row_id: u64| changed.contains(&row_id);
        let old = entry_of((keys, schema, view), (hash, &values), row, (&is_changed, read_at))?;
        if let Some(put) = puts.get_mut(at) {
            put.prepared.uniques.push(UniqueEntry { keys: Arc::clone(keys), hash, old });
        }
    }
    Ok(())
}

/// The entry that the values of a row take, with the row id; refuses them when another row has
/// them that does not change in the same commit.
fn entry_of(
    (keys, schema, view): (&UniqueKeys, &Schema, &View),
    (hash, values): (u64, &[ValueRef<'_>]),
    (row_id, row): (u64, &[Value]),
    (is_changed, read_at): (&dyn Fn(u64) -> bool, Option<u64>),
) -> Result<Option<Location>> {
    let held = keys.held(view, hash, values)?;
    let Some(holder) = held.holder else { return Ok(held.dead) };
    if holder.row_id == row_id {
        return Ok(Some(holder.entry));
    }
    if is_changed(holder.row_id) {
        return Ok(held.dead);
    }
    if read_at.is_some_and(|at| is_younger(view, &holder, at)) {
        let e = refused(keys, schema, row, "has been taken by another commit meanwhile");
        return Err(Error::new(ErrorKind::Conflict, e.to_string()));
    }
    Err(refused(keys, schema, row, "exists already"))
}

/// What the rows of some segments do to the unique indexes of their table, by segment and row, as
/// the rows `replaced`, by rising row id, go with the same commit. Refuses values that other rows
/// have, or two of them; a `Conflict` where the other row is younger than a commit.
pub(crate) fn of_segments(
    (writer, schema): (&TableWriter, &Schema),
    segments: &[&Arc<Segment>],
    (replaced, read_at): (&[u64], u64),
) -> Result<Vec<Vec<Vec<UniqueEntry>>>> {
    let mut entries: Vec<Vec<Vec<UniqueEntry>>> =
        segments.iter().map(|segment| vec![Vec::new(); segment.row_count()]).collect();
    let (uniques, view) = (writer.table().uniques(), writer.table().view());
    let is_changed = |row_id: u64| replaced.binary_search(&row_id).is_ok();
    for keys in uniques.iter().filter(|keys| stays(keys, schema)) {
        let mut hashes = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            for row in 0..segment.row_count() {
                let values = row_of(segment, schema, row)?;
                let mut room = ComputedRow::default();
                let Some(unique) = keys.values_of(schema, &values, &mut room)? else { continue };
                refuse_long_unique(keys.index(), unique.iter().copied())?;
                let hash = writer.table().hasher().hash_key(unique.iter().copied());
                let of_row = (segment.row_id(row)?, values.as_slice());
                let terms: (&dyn Fn(u64) -> bool, _) = (&is_changed, Some(read_at));
                let old = entry_of((keys, schema, &view), (hash, &unique), of_row, terms)?;
                hashes.push((hash, at, row));
                if let Some(of_row) = entries.get_mut(at).and_then(|rows| rows.get_mut(row)) {
                    of_row.push(UniqueEntry { keys: Arc::clone(keys), hash, old });
                }
            }
        }
        refuse_twice(keys, schema, segments, &mut hashes)?;
    }
    Ok(entries)
}

/// Refuses rows with the same values, which have the same hash.
fn refuse_twice(
    keys: &UniqueKeys,
    schema: &Schema,
    segments: &[&Arc<Segment>],
    hashes: &mut [(u64, usize, usize)],
) -> Result<()> {
    hashes.sort_unstable();
    let row = |(_, at, row): &(u64, usize, usize)| match segments.get(*at) {
        Some(segment) => row_of(segment, schema, *row),
        None => Ok(Vec::new()),
    };
    for same in hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let rows = same.iter().map(row).collect::<esker_table::Result<Vec<_>>>()?;
        for (i, one) in rows.iter().enumerate() {
            let (mut room, mut room_of_other) = (ComputedRow::default(), ComputedRow::default());
            let values = keys.values_of(schema, one, &mut room)?;
            for other in rows.iter().skip(i + 1) {
                if keys.values_of(schema, other, &mut room_of_other)? == values {
                    return Err(refused(keys, schema, one, "comes twice in one commit"));
                }
            }
        }
    }
    Ok(())
}

/// True when a row came after a commit.
fn is_younger(view: &View, holder: &Holder, at: u64) -> bool {
    view.row(holder.location).is_none_or(|(row_group, row)| !row_group.is_created_at(row, at))
}

/// The error for a row whose values another one has.
fn refused(keys: &UniqueKeys, schema: &Schema, row: &[Value], how: &str) -> Error {
    let mut room = ComputedRow::default();
    let values = match keys.values_of(schema, row, &mut room) {
        // default: the message shows no values where there are none
        Ok(values) => values.unwrap_or_default(),
        Err(e) => return e.into(),
    };
    let message = format!("{} {how}", keys.describe(schema, &values));
    Error::new(ErrorKind::AlreadyExists, message)
}
