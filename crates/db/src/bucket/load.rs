//! Loading many entries at once.

use esker_format::{Batch, ValueRef};

use super::Bucket;
use crate::Result;

/// Entries that are handed over at a time.
const BATCH_ENTRIES: usize = 8_192;
/// Bytes of them, about, at the most.
const BATCH_BYTES: usize = 4 << 20;

impl Bucket {
    /// Puts many entries that are not there yet, all or none, beside the log: the quickest way to
    /// fill a bucket. Returns how many. They get the bucket's time to live.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let bucket = db.bucket("squares")?;
    /// let squares = (0..100_000u64).map(|n| (n.to_le_bytes(), (n * n).to_le_bytes()));
    /// assert_eq!(bucket.load(squares)?, 100_000);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when a key comes twice or is there, `Conflict` when somebody else is putting
    /// one, `OverBudget` when there is too little memory. Nothing is changed then.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut load = self.table.load()?;
        let (current, expires_at) = self.attempt(|current| {
            Ok((current.clone(), self.expires_at(current, super::Ttl::Default)?))
        })?;
        let mut batch = Batch::empty(&current.schema);
        let mut bytes = 0;
        for (key, value) in entries {
            let (key, value) = (self.key(key.as_ref())?, value.as_ref());
            let row = [ValueRef::Bytes(key), ValueRef::Bytes(value), expires_at.as_ref()];
            for (column, value) in batch.columns.iter_mut().zip(row) {
                column.push(value)?;
            }
            bytes += key.len() + value.len();
            if batch.len() >= BATCH_ENTRIES || bytes >= BATCH_BYTES {
                load.push(std::mem::replace(&mut batch, Batch::empty(&current.schema)))?;
                bytes = 0;
            }
        }
        load.push(batch)?;
        Ok(load.finish()?.rows)
    }
}
