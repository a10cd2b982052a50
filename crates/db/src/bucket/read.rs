//! Reading entries by key.

use std::time::Duration;

use esker_format::ValueRef;

use super::{Bucket, BucketValue, guard};
use crate::Result;

impl Bucket {
    /// The value of a key, where it lies. Takes no lock and copies nothing.
    ///
    /// # Errors
    /// `Corrupt` when the entry cannot be read; the same below.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<BucketValue>> {
        self.table.find(&[ValueRef::Bytes(key.as_ref())], |found| {
            BucketValue::new(found.row_group, found.schema, found.row)
        })
    }

    /// What `take` makes of the value of a key, which it sees where it lies: the cheapest way to
    /// read, since nothing has to be held.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let bucket = db.bucket("letters")?;
    /// bucket.put("a", "alpha")?;
    /// assert_eq!(bucket.read("a", |value| value.len())?, Some(5));
    /// assert_eq!(bucket.read("b", |value| value.len())?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn read<R>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut take = Some(take);
        let found = self.table.find(&[ValueRef::Bytes(key.as_ref())], |found| {
            // It is called for one row at most.
            take.take().map(|take| guard::read(found, take)).transpose()
        })?;
        Ok(found.flatten())
    }

    /// A copy of the value of a key.
    pub fn get_copy(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        Ok(self.get(key)?.map(BucketValue::into_vec))
    }

    /// The values of some keys, in the order given, all as of one commit; quicker than to get one
    /// after the other. See [`BucketSnapshot::get_many`](super::BucketSnapshot::get_many).
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<BucketValue>>> {
        self.snapshot()?.get_many(keys)
    }

    /// The value of a key, and when it expires in microseconds since 1970, where it does.
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Option<i64>)>> {
        let found = self.table.find(&[ValueRef::Bytes(key.as_ref())], guard::with_end)?;
        let now = self.table.engine.now();
        Ok(found.map(|(value, end)| (value, end.map(|at_us| now.date_of_elapsed(at_us)))))
    }

    /// True when there is an entry with this key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.table.find(&[ValueRef::Bytes(key.as_ref())], |_| Ok(()))?.is_some())
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// `OverBudget` when too many snapshots are open.
    pub fn len(&self) -> Result<u64> {
        self.table.count()
    }

    /// True when there is no entry.
    ///
    /// # Errors
    /// As for [`Bucket::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// How long an entry is still there: `None` when there is none, `Some(None)` when it never
    /// expires.
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn remaining(&self, key: impl AsRef<[u8]>) -> Result<Option<Option<Duration>>> {
        let now_us = self.table.engine.now().elapsed_us;
        let expires = self.table.find(&[ValueRef::Bytes(key.as_ref())], guard::end_of)?;
        Ok(expires.map(|at_us| {
            let left =
                |at: i64| Duration::from_micros(at.saturating_sub(now_us).max(0).unsigned_abs());
            at_us.map(left)
        }))
    }
}
