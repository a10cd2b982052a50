//! Entries of a bucket, of a database or within a transaction.

use std::ops::RangeBounds;
use std::time::Duration;

use esker_format::Moment;

use crate::{
    Bucket, BucketSnapshot, BucketValue, Entries, Limits, PutOptions, Result, Transaction,
    TransactionBucket,
};

/// A bucket of a [`Scope`](super::Scope).
pub enum ScopedBucket<'s> {
    /// Each change is a commit.
    Database(Bucket),
    /// Changes become part of the transaction.
    Transaction(TransactionBucket<'s>),
}

/// Reads several entries as of one commit.
pub enum ScopedBucketReader<'b> {
    /// One entry alone is of one commit anyway.
    Bucket(&'b Bucket),
    /// As of the newest commit when it was made.
    Snapshot(Box<BucketSnapshot>),
    /// As the transaction sees them.
    Transaction(&'b TransactionBucket<'b>),
}

impl ScopedBucketReader<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<BucketValue>> {
        match self {
            Self::Bucket(bucket) => bucket.get(key),
            Self::Snapshot(bucket) => bucket.get(key),
            Self::Transaction(bucket) => bucket.get(key),
        }
    }

    /// True when there is an entry with a key.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Bucket(bucket) => bucket.contains(key),
            Self::Snapshot(bucket) => bucket.contains(key),
            Self::Transaction(bucket) => bucket.contains(key),
        }
    }

    /// What `take` makes of the value of a key, which it sees where it lies.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn read<R>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self {
            Self::Bucket(bucket) => bucket.read(key, take),
            Self::Snapshot(bucket) => bucket.read(key, take),
            Self::Transaction(bucket) => Ok(bucket.get(key)?.map(|value| take(&value))),
        }
    }
}

/// The same of a bucket as it is, and as a transaction sees it.
macro_rules! either {
    ($scoped:expr, $bucket:ident => $done:expr) => {
        match $scoped {
            Self::Database($bucket) => $done,
            Self::Transaction($bucket) => $done,
        }
    };
}

impl ScopedBucket<'_> {
    /// The name, as it is now.
    #[must_use]
    pub fn name(&self) -> String {
        either!(self, bucket => bucket.name())
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// As for [`Bucket::len`].
    pub fn len(&self) -> Result<u64> {
        either!(self, bucket => bucket.len())
    }

    /// True when there is no entry.
    ///
    /// # Errors
    /// As for [`Bucket::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// What entries get that are put without a time to live of their own.
    #[must_use]
    pub fn default_ttl(&self) -> Option<Duration> {
        either!(self, bucket => bucket.default_ttl())
    }

    /// What reads so many entries as of one commit.
    ///
    /// # Errors
    /// As for [`Bucket::snapshot`].
    pub fn reader(&self, entries: usize) -> Result<ScopedBucketReader<'_>> {
        Ok(match self {
            Self::Database(bucket) if entries <= 1 => ScopedBucketReader::Bucket(bucket),
            Self::Database(bucket) => ScopedBucketReader::Snapshot(Box::new(bucket.snapshot()?)),
            Self::Transaction(bucket) => ScopedBucketReader::Transaction(bucket),
        })
    }

    /// The moment at which entries have expired.
    #[must_use]
    pub fn moment(&self) -> Moment {
        match self {
            Self::Database(bucket) => bucket.as_table().engine.now(),
            Self::Transaction(bucket) => bucket.moment(),
        }
    }

    /// What `take` makes of the value of a key, which it sees where it lies.
    ///
    /// # Errors
    /// As for [`Bucket::read`].
    pub fn read<R>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.reader(1)?.read(key, take)
    }

    /// The value of a key that no other commit may change before the transaction's.
    ///
    /// # Errors
    /// As for [`TransactionBucket::get_for_update`].
    pub fn get_for_update(&self, key: &[u8]) -> Result<Option<BucketValue>> {
        match self {
            Self::Database(bucket) => bucket.get(key),
            Self::Transaction(bucket) => bucket.get_for_update(key),
        }
    }

    /// The value of a key, and when it expires in microseconds since 1970, where it does; in a
    /// transaction as for [`ScopedBucket::get_for_update`].
    ///
    /// # Errors
    /// As for [`TransactionBucket::get_with_expiry`].
    pub fn get_with_expiry(&self, key: &[u8]) -> Result<Option<(Vec<u8>, Option<i64>)>> {
        match self {
            Self::Database(bucket) => bucket.get_with_expiry(key),
            Self::Transaction(bucket) => bucket.get_with_expiry(key),
        }
    }

    /// How long an entry is still there: `None` when there is none, `Some(None)` when it never
    /// expires.
    ///
    /// # Errors
    /// As for [`Bucket::remaining`].
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn remaining(&self, key: &[u8]) -> Result<Option<Option<Duration>>> {
        match self {
            Self::Database(bucket) => bucket.remaining(key),
            Self::Transaction(bucket) => {
                let now_us = bucket.moment().date_us;
                let left = |end: i64| end.saturating_sub(now_us).max(0).unsigned_abs();
                let found = bucket.get_with_expiry(key)?;
                Ok(found.map(|(_, end)| end.map(left).map(Duration::from_micros)))
            }
        }
    }

    /// Removes all entries.
    ///
    /// # Errors
    /// As for [`Bucket::clear`] and [`TransactionBucket::clear`].
    pub fn clear(&self) -> Result<()> {
        match self {
            Self::Database(bucket) => bucket.clear(),
            Self::Transaction(bucket) => bucket.clear().map(drop),
        }
    }

    /// Puts an entry, in the place of the one with its key.
    ///
    /// # Errors
    /// As for [`Bucket::put_with`].
    pub fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Result<()> {
        either!(self, bucket => bucket.put_with(key, value, options))
    }

    /// Puts entries, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Bucket::put_many`]; `TimedOut`, `Cancelled`.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
        options: PutOptions,
        limits: &Limits,
    ) -> Result<()> {
        match self {
            Self::Database(bucket) => {
                let mut batch = bucket.batch();
                for (key, value) in entries {
                    batch.put_with(bucket, key, value, options)?;
                }
                batch.commit_with(limits)
            }
            Self::Transaction(bucket) => bucket.put_many_with(entries, options, limits),
        }
    }

    /// Removes an entry; false when there is none.
    ///
    /// # Errors
    /// As for [`Bucket::remove`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        either!(self, bucket => bucket.remove(key))
    }

    /// Removes entries by their keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`Bucket::remove`]; `TimedOut`, `Cancelled`.
    pub fn remove_many(&self, keys: &[Vec<u8>], limits: &Limits) -> Result<u64> {
        match self {
            Self::Database(bucket) => {
                let remove = |transaction: &Transaction| {
                    transaction.bucket_by_handle(bucket)?.remove_many(keys, limits)
                };
                Transaction::run(&bucket.as_table().engine, remove)
            }
            Self::Transaction(bucket) => bucket.remove_many(keys, limits),
        }
    }

    /// Adds to a number; returns what it is then. An entry that is not there counts as 0.
    ///
    /// # Errors
    /// As for [`Bucket::increment`].
    pub fn increment(&self, key: &[u8], by: i64) -> Result<i64> {
        either!(self, bucket => bucket.increment(key, by))
    }

    /// The entries whose keys lie within bounds, in the order of the keys.
    ///
    /// # Errors
    /// As for [`Bucket::range`].
    pub fn range<K, R>(&self, bounds: R) -> Result<Entries>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        either!(self, bucket => bucket.range(bounds))
    }
}
