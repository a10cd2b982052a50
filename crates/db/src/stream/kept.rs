//! Entries of buckets that go into the commit of events, and tell what became of these.

use std::sync::Arc;

use esker_format::TableId;

use super::Stream;
use crate::bucket::decision::{Change, modify_entry};
use crate::bucket::expiry_of;
use crate::commit::row_sink::StagedRows;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Bucket, Error, ErrorKind, Result, Ttl};

/// What the value of an entry is, by what became of the rows of its request.
pub type KeptValue = dyn Fn(&[Result<u64>]) -> Result<Vec<u8>> + Send + Sync;

/// An entry of a bucket that is put in the commit of events, if there is still the value under its
/// key that was read before: after a crash both are there, or neither.
///
/// Its commit ends with `AlreadyExists` where another one came first.
pub struct KeptEntry {
    bucket: Bucket,
    key: Vec<u8>,
    expected: Option<Vec<u8>>,
    ttl: Ttl,
    value: Arc<KeptValue>,
    /// The table that the value speaks of, where it names one.
    table: Option<TableId>,
}

impl KeptEntry {
    /// An entry under a key that had the value `expected`.
    pub fn new(
        bucket: Bucket,
        (key, expected): (Vec<u8>, Option<Vec<u8>>),
        ttl: Ttl,
        value: Arc<KeptValue>,
    ) -> Self {
        Self { bucket, key, expected, ttl, value, table: None }
    }

    /// The same, whose value names the table of the events.
    pub(super) fn of_table(self, table: TableId) -> Self {
        Self { table: Some(table), ..self }
    }

    /// Refuses to tell of the events of another table: the stream was truncated meanwhile.
    pub(super) fn expect_table(&self, table: TableId) -> Result<()> {
        match self.table.is_none_or(|own| own == table) {
            true => Ok(()),
            false => {
                let message = "the stream was cleared meanwhile";
                Err(Error::new(ErrorKind::AlreadyExists, message))
            }
        }
    }

    /// The bucket, as it is now.
    pub(super) fn bucket(&self) -> TableVersion {
        self.bucket.as_table().current()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Stages the entry by the outcomes of the rows of its request. Under the commit lock.
    pub(super) fn stage(
        &self,
        (engine, current): (&Engine, &TableVersion),
        outcomes: &[Result<u64>],
        rows: &mut StagedRows<'_, '_>,
    ) -> Result<()> {
        modify_entry(rows, &|| self.bucket.name(), &self.key, |entry| {
            if entry.map(|entry| entry.value) != self.expected.as_deref() {
                let message = "the request was done meanwhile, or one before it";
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            let end = expiry_of(engine, &current.schema, (engine.now(), self.ttl))?;
            Ok((Change::Put((self.value)(outcomes)?, end), ()))
        })
    }
}

impl Stream {
    /// The bucket of a name, beside the stream.
    pub(super) fn bucket(&self, name: &str) -> Result<Bucket> {
        self.database.bucket(name)
    }
}
