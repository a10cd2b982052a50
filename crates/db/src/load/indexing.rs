//! Entering the keys of a loaded segment into the primary index.
//!
//! Keys are hashed and sorted by hash, so that the index is walked in memory order and equal keys
//! of the segment stand side by side. Every batch is checked and inserted under one hold of the
//! commit lock, so that no writer can slip a key in between.

use std::ops::ControlFlow;

use esker_format::{Batch, ValueRef};
use esker_table::Location;
use esker_table::segment::Segment;
use esker_table::table::describe_key;
use esker_table::view::{Resolved, Unit, View};
use std::sync::Arc;

use super::refused;
use crate::engine::{Engine, entry};
use crate::{Error, ErrorKind, Result, Table};

/// Entries per hold of the commit lock.
const LOCKED_BATCH: usize = 1_024;

/// Indexes the rows of segment `id`, which `batch` holds.
pub(super) fn index_segment(
    engine: &Arc<Engine>,
    table: &Table,
    batch: &Batch,
    id: u64,
    started_at: u64,
    own: &[Arc<Segment>],
) -> Result<()> {
    let schema = table.schema();
    let positions = schema.key_positions();
    let hasher = table.core.hasher();
    let key = |row: usize| -> Vec<ValueRef<'_>> {
        positions.iter().filter_map(|p| batch.columns.get(*p)).map(|c| c.value(row)).collect()
    };
    let bytes = match positions {
        [one] => batch.columns.get(*one).filter(|c| c.bytes(0).is_some()),
        _ => None,
    };
    let hash = |row: usize| match bytes.and_then(|column| column.bytes(row)) {
        Some(bytes) => hasher.hash_key([ValueRef::Bytes(bytes)]),
        None => hasher.hash_key(key(row)),
    };
    let mut entries: Vec<(u64, u64)> =
        (0..batch.len()).map(|row| (hash(row), Location::new(id, row).word())).collect();
    entries.sort_unstable();
    let row_of = |word: u64| Location::from_word(word).map_or(0, Location::row);
    for pair in entries.windows(2) {
        if let [(a, first), (b, second)] = pair
            && a == b
            && key(row_of(*first)) == key(row_of(*second))
        {
            let key = describe_key(&schema, &key(row_of(*first)));
            return Err(refused(ErrorKind::AlreadyExists, &key, "comes twice in the load"));
        }
    }
    let mut inserted = 0;
    for chunk in entries.chunks(LOCKED_BATCH) {
        {
            let mut catalogue = engine.lock_for_change()?;
            entry(&mut catalogue, table.core.id())?;
            let view = table.core.view();
            if table.core.index().len() > inserted {
                for (hash, word) in chunk {
                    let key = key(row_of(*word));
                    check_free(&view, table, *hash, &key, started_at, own, id)?;
                }
            }
            table.core.index().insert_many(chunk)?;
        }
        inserted += chunk.len();
        engine.environment.tasks.pause();
    }
    Ok(())
}

/// Refuses a key that somebody has already.
fn check_free(
    view: &View,
    table: &Table,
    hash: u64,
    key: &[ValueRef<'_>],
    started_at: u64,
    own: &[Arc<Segment>],
    id: u64,
) -> Result<()> {
    let positions = view.schema.key_positions();
    let mut outcome = Ok(());
    let _ = table.core.index().candidates(hash, |word| {
        let Some(location) = Location::from_word(word).filter(|l| l.unit() != id) else {
            return ControlFlow::Continue(());
        };
        outcome = match view.resolve(location) {
            Resolved::Row(unit, row) => match unit.key_equals(row, positions, key) {
                Ok(true) => judge(unit, row, started_at, own).map_or(Ok(()), |(kind, why)| {
                    Err(refused(kind, &describe_key(&view.schema, key), why))
                }),
                Ok(false) => Ok(()),
                Err(e) => Err(e.into()),
            },
            Resolved::Gone => Ok(()),
            Resolved::Unknown => Err(Error::corrupt(format!("{location:?} leads nowhere"))),
        };
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome
}

/// Why a version with the same key stands in the way of a load, if it does.
fn judge(
    unit: &Unit,
    row: usize,
    started_at: u64,
    own: &[Arc<Segment>],
) -> Option<(ErrorKind, &'static str)> {
    if own.iter().any(|segment| segment.id() == unit.id()) {
        return Some((ErrorKind::AlreadyExists, "comes twice in the load"));
    }
    if unit.is_loading() {
        return Some((ErrorKind::Conflict, "is being loaded by somebody else; try again"));
    }
    if unit.deleted(row) != 0 {
        return None;
    }
    if unit.created(row) > started_at {
        return Some((ErrorKind::Conflict, "was added after the load began; try again"));
    }
    Some((ErrorKind::AlreadyExists, "exists already"))
}

/// Takes the entries of a segment out again.
pub(super) fn unindex_segment(
    engine: &Arc<Engine>,
    table: &Table,
    segment: &Arc<Segment>,
) -> Result<()> {
    let schema = table.schema();
    let unit = Unit::Segment(Arc::clone(segment));
    for start in (0..segment.row_count()).step_by(LOCKED_BATCH) {
        let end = segment.row_count().min(start + LOCKED_BATCH);
        let mut entries = Vec::with_capacity(end - start);
        for row in start..end {
            let hash = esker_table::rewrite::key_hash(&table.core, &schema, &unit, row)?;
            entries.push((hash, Location::new(segment.id(), row).word()));
        }
        let _catalogue = engine.lock();
        for (hash, word) in entries {
            table.core.index().remove(hash, word);
        }
    }
    Ok(())
}
