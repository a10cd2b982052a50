//! Entries of buckets.

use std::ops::Bound;
use std::time::Duration;

use esker::{BucketValue, PutOptions, Scope, ScopedBucket, Ttl};

use super::{Answer, EntryRange, Expiry, Level, Session, is_internal};
use crate::{Code, Error, Result};

impl Session {
    pub(super) fn buckets(&self) -> Result<Answer> {
        self.access.expect(Level::Read, None)?;
        let mut names = self.scope().buckets()?;
        names.retain(|name| !is_internal(name));
        Ok(Answer::Names(names))
    }

    /// A bucket that there is, or an error; a table of its name is no bucket, and reading makes
    /// none.
    pub(crate) fn bucket(&self, level: Level, name: &str) -> Result<ScopedBucket<'_>> {
        self.bucket_in(self.scope(), level, name)
    }

    /// The same of another scope: for protocols whose transactions are not the session's.
    pub(crate) fn bucket_in<'s>(
        &self,
        scope: &'s dyn Scope,
        level: Level,
        name: &str,
    ) -> Result<ScopedBucket<'s>> {
        self.access.expect(level, Some(name))?;
        Ok(scope.bucket(name)?)
    }

    /// The same, which is made when there is none.
    pub(crate) fn bucket_to_put_in<'s>(
        &self,
        scope: &'s dyn Scope,
        name: &str,
    ) -> Result<ScopedBucket<'s>> {
        match self.bucket_in(scope, Level::Write, name) {
            Err(e) if e.code() == Code::NotFound => {
                self.access.expect(Level::Admin, Some(name))?;
                Ok(scope.bucket_or_new(name)?)
            }
            found => found,
        }
    }

    /// A bucket that there is, of the database itself.
    pub(crate) fn own_bucket(&self, level: Level, name: &str) -> Result<esker::Bucket> {
        self.access.expect(level, Some(name))?;
        Ok(self.database().existing_bucket(name)?)
    }

    /// The same, which is made when there is none.
    pub(crate) fn own_bucket_to_put(&self, name: &str) -> Result<esker::Bucket> {
        match self.bucket_to_put_in(self.database(), name)? {
            ScopedBucket::Database(bucket) => Ok(bucket),
            ScopedBucket::Transaction(_) => {
                let message = format!("bucket {name:?} is wanted outside of the transaction");
                Err(Error::new(Code::Internal, message))
            }
        }
    }

    /// Puts so many entries and bytes into a bucket, which is made in the same commit when there is
    /// none: what is refused makes none.
    fn put_into<R>(
        &self,
        name: &str,
        (entries, bytes): (usize, usize),
        put: impl Fn(&ScopedBucket<'_>) -> esker::Result<R>,
    ) -> Result<R> {
        let found = match self.bucket(Level::Write, name) {
            Err(e) if e.code() == Code::NotFound => {
                self.access.expect(Level::Admin, Some(name))?;
                None
            }
            found => Some(found?),
        };
        self.reserve_quota(entries, bytes)?;
        match found {
            Some(bucket) => Ok(put(&bucket)?),
            None => self.as_one(|transaction| put(&transaction.bucket_or_new(name)?)),
        }
    }

    pub(super) fn bucket_get(&self, bucket: &str, keys: &[Vec<u8>]) -> Result<Answer> {
        let bucket = self.bucket(Level::Read, bucket)?;
        let with_room = |value: esker::Result<Option<BucketValue>>| {
            let Some(value) = value? else { return Ok(None) };
            self.take_answer(value.len())?;
            Ok(Some(value.into_vec()))
        };
        let reader = bucket.reader(keys.len())?;
        let values: Result<_> = self.each(keys, |key| reader.get(key)).map(with_room).collect();
        Ok(Answer::Values(values?))
    }

    pub(super) fn bucket_put(
        &self,
        bucket: &str,
        entries: &[(Vec<u8>, Vec<u8>)],
        expiry: Expiry,
    ) -> Result<Answer> {
        let options = match expiry {
            Expiry::Default => PutOptions::new(),
            Expiry::Never => Ttl::Never.into(),
            Expiry::After(ttl) => Ttl::After(lasting(ttl)?).into(),
        };
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.put_into(bucket, (entries.len(), bytes), |bucket| match entries {
            [(key, value)] => bucket.put(key, value, options),
            entries => bucket.put_many(entries, options, &self.limits()),
        })?;
        Ok(Answer::Stored { rows: entries.len() as u64, row_id: None })
    }

    pub(super) fn bucket_remove(&self, bucket: &str, keys: &[Vec<u8>]) -> Result<Answer> {
        let bucket = self.bucket(Level::Write, bucket)?;
        let removed = match keys {
            [key] => u64::from(bucket.remove(key)?),
            keys => bucket.remove_many(keys, &self.limits())?,
        };
        Ok(Answer::Changed(removed))
    }

    pub(super) fn bucket_increment(&self, bucket: &str, key: &[u8], by: i64) -> Result<Answer> {
        let sum = self.put_into(bucket, (1, key.len()), |bucket| bucket.increment(key, by))?;
        Ok(Answer::Number(sum))
    }

    pub(super) fn bucket_range(&self, bucket: &str, range: &EntryRange) -> Result<Answer> {
        let bucket = self.bucket(Level::Read, bucket)?;
        let entries = bucket.range(range.bounds())?;
        let pair = |entry: esker::Result<esker::Entry>| {
            self.expect_wanted()?;
            let entry = entry?;
            self.take_answer(entry.key().len() + entry.value().len())?;
            Ok(entry.to_pair())
        };
        let most = range.limit.unwrap_or(usize::MAX);
        let entries: Result<_> = match range.reverse {
            true => entries.rev().take(most).map(pair).collect(),
            false => entries.take(most).map(pair).collect(),
        };
        Ok(Answer::Entries(entries?))
    }
}

impl EntryRange {
    /// The bounds of the keys: the narrower of both that are given.
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let start = self.from.iter().chain(&self.prefix).max();
        let after = self.prefix.as_deref().and_then(after_prefix);
        let end = self.to.iter().chain(&after).min();
        let start = start.map_or(Bound::Unbounded, |key| Bound::Included(key.clone()));
        (start, end.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone())))
    }
}

/// A time to live, where it is one: what ends at once would be acknowledged and gone.
pub(crate) fn lasting(ttl: Duration) -> Result<Duration> {
    match ttl.is_zero() {
        true => Err(Error::invalid("time to live: expected more than 0")),
        false => Ok(ttl),
    }
}

/// The least key behind all that begin with a prefix; `None` where there is none.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut after = prefix.to_vec();
    while let Some(last) = after.pop() {
        if let Some(next) = last.checked_add(1) {
            after.push(next);
            return Some(after);
        }
    }
    None
}
