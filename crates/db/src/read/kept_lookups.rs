//! Rows of other tables that were looked up, kept for those that come next.
//!
//! Invariant: what is kept is as of a commit: it is used at another one only where the table was
//! not changed between the two. A table knows its newest change before that is published.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use esker_format::{TableId, Value};
use esker_vfs::sync::Mutex;

use crate::Result;

/// Bytes of rows, and of begins of keys, of a table that are kept, about.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Bytes of what is kept beside keys and values.
const ENTRY_BYTES: usize = 64;
/// Tables of which rows are kept.
const TABLES_MAX: usize = 64;

/// Rows that were looked up, by table.
#[derive(Default)]
pub(crate) struct KeptLookups(Mutex<BTreeMap<TableId, Kept>>);

impl KeptLookups {
    /// Uses what is kept of a table as of a commit, since before which it has not changed.
    pub fn of<R>(&self, table: TableId, as_of: (u64, u64), run: impl FnOnce(&mut Kept) -> R) -> R {
        // default: nothing panics while the rows change
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > TABLES_MAX {
            all.clear();
        }
        run(all.entry(table).or_default().at(as_of))
    }
}

/// The rows of a table that were looked up.
#[derive(Default)]
pub(crate) struct Kept {
    as_of: u64,
    /// By the bytes of what is before the last field of the key, or of all of it.
    runs: BTreeMap<Vec<u8>, Arc<Run>>,
    bytes: usize,
}

/// The rows with the same begin of the key, in order, by the bytes of their keys.
pub(crate) enum Run {
    Whole(Vec<(Vec<u8>, Vec<Value>)>),
    /// There are too many to be kept.
    Long,
}

impl Kept {
    /// What is kept as of a commit.
    fn at(&mut self, (changed_at, commit): (u64, u64)) -> &mut Self {
        if self.as_of < changed_at {
            *self = Self::default();
        }
        self.as_of = self.as_of.max(commit);
        self
    }

    pub fn run(
        &mut self,
        begin: Vec<u8>,
        read: impl FnOnce() -> Result<(Arc<Run>, bool)>,
    ) -> Result<Arc<Run>> {
        if let Some(run) = self.runs.get(&begin) {
            return Ok(Arc::clone(run));
        }
        let (run, is_kept) = read()?;
        if is_kept {
            let bytes = ENTRY_BYTES + begin.len() + run.byte_count();
            if bytes > KEPT_BYTES_MAX {
                return Ok(run);
            }
            if self.bytes + bytes > KEPT_BYTES_MAX {
                (self.runs, self.bytes) = (BTreeMap::new(), 0);
            }
            self.bytes += bytes;
            self.runs.insert(begin, Arc::clone(&run));
        }
        Ok(run)
    }
}

impl Run {
    fn byte_count(&self) -> usize {
        let Self::Whole(rows) = self else { return 0 };
        let value = |value: &Value| {
            let bytes = value.as_ref().as_bytes().map(<[u8]>::len);
            // default: what is no text or bytes has none
            size_of::<Value>() + bytes.unwrap_or(0)
        };
        let row = |(key, row): &(Vec<u8>, Vec<Value>)| {
            ENTRY_BYTES + key.len() + row.iter().map(value).sum::<usize>()
        };
        rows.iter().map(row).sum()
    }
}
