//! Whether the rows of a commit have values of a unique index that other rows have.
//!
//! It is asked once all changes of a commit are staged, under the commit lock: what counts is how
//! the rows are after the commit, so that two rows may exchange their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{Schema, Value};
use esker_log::sabotage::planted;
use esker_table::TableWriter;
use esker_table::table::{Existing, Holder, UniqueEntry, UniqueKeys};
use esker_table::view::{Resolved, View};

use super::commit::{Put, Staged, refuse_long_unique};
use crate::{Error, ErrorKind, Result};

/// Refuses rows of a schema that are staged with values that other rows have, and notes which
/// entries move.
pub(super) fn expect_unique(
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

/// Likewise, for rows that are put as others are deleted. Who has read as of a commit meets a
/// `Conflict` where the other row is younger.
pub(super) fn expect_unique_rows(
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
    // An index that goes with the same commit refuses nobody.
    let stays = |keys: &&Arc<UniqueKeys>| schema.indexes().iter().any(|i| i.id == keys.index().id);
    uniques
        .iter()
        .filter(stays)
        .try_for_each(|keys| expect_unique_values((writer, schema), &view, keys, puts, terms))
}

fn expect_unique_values(
    (writer, schema): (&TableWriter, &Schema),
    view: &View,
    keys: &Arc<UniqueKeys>,
    puts: &mut [&mut Put<'_>],
    (changed, read_at): (&BTreeSet<u64>, Option<u64>),
) -> Result<()> {
    let is_alone = puts.len() == 1 || planted("unique_not_checked_in_commit");
    let mut seen: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for at in 0..puts.len() {
        let Some(put) = puts.get(at) else { break };
        let Some(values) = keys.values_of(schema, &put.row) else { continue };
        refuse_long_unique(keys.index(), values.iter().copied())?;
        let hash = writer.table().hasher().hash_key(values.iter().copied());
        let twice = |earlier: &usize| {
            let earlier = puts.get(*earlier).and_then(|put| keys.values_of(schema, &put.row));
            earlier.is_some_and(|earlier| earlier == values)
        };
        if !is_alone {
            let same_hash = seen.entry(hash).or_default();
            if same_hash.iter().any(twice) {
                return Err(refused(keys, schema, &put.row, "comes twice in one commit"));
            }
            same_hash.push(at);
        }
        let held = keys.held(view, hash, &values)?;
        let mut old = held.dead;
        if let Some(holder) = held.holder {
            if holder.row_id == put.prepared.row_id {
                old = Some(holder.entry);
            } else if !changed.contains(&holder.row_id) {
                if read_at.is_some_and(|at| is_younger(view, &holder, at)) {
                    let how = "has been taken by another commit meanwhile";
                    let e = refused(keys, schema, &put.row, how);
                    return Err(Error::new(ErrorKind::Conflict, e.to_string()));
                }
                return Err(refused(keys, schema, &put.row, "exists already"));
            }
        }
        if let Some(put) = puts.get_mut(at) {
            put.prepared.uniques.push(UniqueEntry { keys: Arc::clone(keys), hash, old });
        }
    }
    Ok(())
}

/// True when a row came after a commit.
fn is_younger(view: &View, holder: &Holder, at: u64) -> bool {
    match view.resolve(holder.location) {
        Resolved::Row(unit, row) => unit.created(row) > at,
        Resolved::Gone | Resolved::Unknown => true,
    }
}

/// The error for a row whose values another one has.
fn refused(keys: &UniqueKeys, schema: &Schema, row: &[Value], how: &str) -> Error {
    let values = keys.values_of(schema, row).unwrap_or_default();
    let message = format!("{} {how}", keys.describe(schema, &values));
    Error::new(ErrorKind::AlreadyExists, message)
}
