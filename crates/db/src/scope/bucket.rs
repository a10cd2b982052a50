//! Entries of a bucket, of a database or within a transaction.

use std::ops::RangeBounds;
use std::time::Duration;

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
}

impl ScopedBucket<'_> {
    /// The name, as it is now.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Database(bucket) => bucket.name(),
            Self::Transaction(bucket) => bucket.name(),
        }
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// As for [`Bucket::len`].
    pub fn len(&self) -> Result<u64> {
        match self {
            Self::Database(bucket) => bucket.len(),
            Self::Transaction(bucket) => bucket.len(),
        }
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
        match self {
            Self::Database(bucket) => bucket.default_ttl(),
            Self::Transaction(bucket) => bucket.default_ttl(),
        }
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

    /// Puts an entry, in the place of the one with its key.
    ///
    /// # Errors
    /// As for [`Bucket::put_with`].
    pub fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Result<()> {
        match self {
            Self::Database(bucket) => bucket.put_with(key, value, options),
            Self::Transaction(bucket) => bucket.put_with(key, value, options),
        }
    }

    /// Puts entries, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Bucket::put_many`]; `TimedOut`, `Cancelled`.
    pub fn put_many(
        &self,
        entries: &[(Vec<u8>, Vec<u8>)],
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
        match self {
            Self::Database(bucket) => bucket.remove(key),
            Self::Transaction(bucket) => bucket.remove(key),
        }
    }

    /// Removes entries by their keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`Bucket::remove`]; `TimedOut`, `Cancelled`.
    pub fn remove_many(&self, keys: &[Vec<u8>], limits: &Limits) -> Result<u64> {
        match self {
            Self::Database(bucket) => {
                let remove = |transaction: &Transaction| {
                    transaction.bucket(&bucket.name())?.remove_many(keys, limits)
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
        match self {
            Self::Database(bucket) => bucket.increment(key, by),
            Self::Transaction(bucket) => bucket.increment(key, by),
        }
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
        match self {
            Self::Database(bucket) => bucket.range(bounds),
            Self::Transaction(bucket) => bucket.range(bounds),
        }
    }
}
