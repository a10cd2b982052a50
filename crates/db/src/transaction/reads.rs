//! What a transaction has read and has to find unchanged when it commits.
//!
//! A row that was looked up by its key counts alone. A query counts as having read all of its
//! tables, so that a row that it would find now and did not find then is noticed, too. That is
//! more than is needed: it forbids all that has to be forbidden, and some that would be harmless.
//! So it is, too, with a table of which very many rows were looked up.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::{TableId, Value, ValueRef};
use esker_log::sabotage::planted;
use esker_table::Table as TableCore;

use crate::engine::{Catalogue, expect_snapshot};
use crate::table::Current;
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
    current: Current,
    by_bytes: BTreeMap<Vec<u8>, Vec<Value>>,
}

impl Reads {
    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// A whole table was read.
    pub fn note_table(&mut self, core: &Arc<TableCore>) {
        self.tables.entry(core.id()).or_insert_with(|| Arc::clone(core));
        if let Some(keys) = self.keys.remove(&core.id()) {
            let bytes = keys.by_bytes.keys().map(|key| KEY_BYTES + 2 * key.len()).sum::<usize>();
            self.bytes -= bytes;
        }
    }

    /// A key was looked up.
    pub fn note_key(&mut self, current: &Current, bytes: &[u8], key: &[ValueRef<'_>]) {
        let id = current.core.id();
        if self.tables.contains_key(&id) {
            return;
        }
        let empty = || Keys { current: current.clone(), by_bytes: BTreeMap::new() };
        let keys = &mut self.keys.entry(id).or_insert_with(empty).by_bytes;
        if keys.len() >= KEYS_MAX && !keys.contains_key(bytes) {
            let core = Arc::clone(&current.core);
            self.note_table(&core);
            return;
        }
        if !keys.contains_key(bytes) {
            self.bytes += KEY_BYTES + 2 * bytes.len();
            keys.insert(
                bytes.to_vec(),
                key.iter().map(|value| ValueRef::to_owned(*value)).collect(),
            );
        }
    }

    /// Refuses to go on when something that was read as of a commit has changed. Under the commit
    /// lock.
    pub fn expect_unchanged(&self, catalogue: &mut Catalogue, read_at: u64) -> Result<()> {
        if planted("serializable_reads_not_checked") {
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
            let Some(entry) = catalogue.tables.get(id) else {
                return Err(super::table_gone(&keys.current.core.name()));
            };
            for key in keys.by_bytes.values() {
                let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
                let existing = entry.writer.existing(&key, keys.current.hash(&key))?;
                expect_snapshot(&keys.current, &key, existing.as_ref(), read_at)?;
            }
        }
        Ok(())
    }
}
