//! What a transaction has read and has to find unchanged when it commits.
//!
//! A row that was looked up by its key counts alone. A query counts as having read all of its
//! tables, so that a row that it would find now and did not find then is noticed, too. That is
//! more than is needed: it forbids all that has to be forbidden, and some that would be harmless.
//! So it is, too, with a table of which very many rows were looked up.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use esker_format::{TableId, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;

use crate::catalogue::Catalogue;
use crate::commit::conflict::expect_snapshot;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Bytes that a key takes beside its own, about.
const KEY_BYTES: usize = 120;
/// Keys of a table that are remembered; with more of them, all of the table counts as read.
const KEYS_MAX: usize = 1 << 17;

/// What was read.
#[derive(Default)]
pub(super) struct Reads {
    tables: BTreeMap<TableId, Arc<TableCore>>,
    keys: BTreeMap<TableId, Keys>,
    bytes: usize,
}

struct Keys {
    current: TableVersion,
    by_bytes: BTreeMap<Vec<u8>, Noted>,
}

/// A key that was looked up.
struct Noted {
    key: Vec<Value>,
    /// No commit after this one may have changed it; without it, none after the one that the
    /// transaction reads at.
    since: Option<u64>,
    /// There was a row, which has to be there still: it may not have expired either.
    must_stay: bool,
}

impl Noted {
    /// Bytes that it takes under a key of so many, about.
    fn byte_count(bytes: usize) -> usize {
        KEY_BYTES + 2 * bytes
    }
}

impl Reads {
    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// A whole table was read.
    pub fn note_table(&mut self, core: &Arc<TableCore>) {
        self.tables.entry(core.id()).or_insert_with(|| Arc::clone(core));
        let Some(keys) = self.keys.get_mut(&core.id()) else { return };
        // What is to be as it was earlier than the transaction reads is no part of that.
        keys.by_bytes.retain(|bytes, noted| {
            let stays = noted.since.is_some();
            if !stays {
                self.bytes -= Noted::byte_count(bytes.len());
            }
            stays
        });
    }

    /// A key is to be as it was as of a commit, with a row or without.
    pub fn note_since(
        &mut self,
        current: &TableVersion,
        (bytes, key): (&[u8], &[ValueRef<'_>]),
        since: u64,
        is_there: bool,
    ) {
        let noted = self.noted(current, bytes, key);
        // default: read for the first time
        noted.since = Some(noted.since.map_or(since, |other| other.min(since)));
        noted.must_stay |= is_there;
    }

    /// A row was found under a key that was looked up, and has to be there still.
    pub fn note_found(&mut self, current: &TableVersion, bytes: &[u8]) {
        let keys = self.keys.get_mut(&current.core.id());
        if let Some(noted) = keys.and_then(|keys| keys.by_bytes.get_mut(bytes)) {
            noted.must_stay = true;
        }
    }

    fn noted(&mut self, current: &TableVersion, bytes: &[u8], key: &[ValueRef<'_>]) -> &mut Noted {
        let empty = || Keys { current: current.clone(), by_bytes: BTreeMap::new() };
        let keys = self.keys.entry(current.core.id()).or_insert_with(empty);
        match keys.by_bytes.entry(bytes.to_vec()) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                self.bytes += Noted::byte_count(bytes.len());
                let key = key.iter().map(|value| ValueRef::to_owned(*value)).collect();
                place.insert(Noted { key, since: None, must_stay: false })
            }
        }
    }

    /// A key was looked up.
    pub fn note_key(&mut self, current: &TableVersion, bytes: &[u8], key: &[ValueRef<'_>]) {
        let id = current.core.id();
        if self.tables.contains_key(&id) {
            return;
        }
        let known = self.keys.get(&id).map(|keys| &keys.by_bytes);
        if known.is_some_and(|known| known.len() >= KEYS_MAX && !known.contains_key(bytes)) {
            let core = Arc::clone(&current.core);
            self.note_table(&core);
            return;
        }
        self.noted(current, bytes, key);
    }

    /// Refuses to go on when something that was read as of a commit has changed. Under the commit
    /// lock.
    pub fn expect_unchanged(
        &self,
        engine: &Engine,
        catalogue: &mut Catalogue,
        read_at: u64,
    ) -> Result<()> {
        if Bug::SerializableReadsNotChecked.is_planted() {
            return Ok(());
        }
        for (id, core) in &self.tables {
            let changed_at = catalogue.tables.get(id).map(|entry| entry.changed_at);
            if changed_at.is_none_or(|commit| commit > read_at) {
                let name = core.name();
                let message = format!(
                    "table {name:?}, which the transaction has read, was changed by another \
                     commit since it began; begin again"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        }
        for (id, keys) in &self.keys {
            if keys.by_bytes.values().any(|noted| noted.must_stay) {
                engine.on_time(catalogue, &keys.current)?;
            }
            let Some(entry) = catalogue.tables.get(id) else {
                return Err(super::gone::table_gone(&keys.current.core.name()));
            };
            for noted in keys.by_bytes.values() {
                let key: Vec<ValueRef<'_>> = noted.key.iter().map(Value::as_ref).collect();
                let existing = entry.writer.existing(&key, keys.current.hash(&key))?;
                // default: read for the first time
                let since = noted.since.unwrap_or(read_at);
                expect_snapshot(&keys.current, &key, existing.as_ref(), since)?;
                let is_gone = existing.is_none_or(|existing| !existing.is_alive());
                if noted.must_stay && is_gone && !Bug::ExpiredKeyKeepsWatch.is_planted() {
                    return Err(super::gone::row_gone(&keys.current, &key));
                }
            }
        }
        Ok(())
    }
}
