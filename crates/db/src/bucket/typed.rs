//! A bucket whose keys and values have types.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

use super::codec::{key_bytes, value_bytes};
use super::{
    Bucket, Entries, Entry, KeyCodec, KeyPrefix, PutOptions, Swapped, Ttl, TypedBucketSnapshot,
    ValueCodec,
};
use crate::Result;

/// A [`Bucket`] whose keys and values have types. Cheap to clone.
pub struct TypedBucket<K, V> {
    bucket: Bucket,
    types: PhantomData<fn() -> (K, V)>,
}

/// The entries of a range of keys of a [`TypedBucket`], in the order of the keys.
pub struct TypedEntries<K, V> {
    entries: Entries,
    types: PhantomData<fn() -> (K, V)>,
}

impl Bucket {
    /// Keys and values of other types than bytes.
    #[must_use]
    pub fn typed<K: KeyCodec, V: ValueCodec>(&self) -> TypedBucket<K, V> {
        TypedBucket::new(self.clone())
    }
}

impl<K, V> Clone for TypedBucket<K, V> {
    fn clone(&self) -> Self {
        Self { bucket: self.bucket.clone(), types: PhantomData }
    }
}

pub(super) fn pair<K: KeyCodec, V: ValueCodec>(entry: &Entry) -> Result<(K, V)> {
    let mut input = entry.key();
    Ok((K::decode_key(&mut input, true)?, V::decode_value(entry.value())?))
}

pub(super) fn decoded<V: ValueCodec>(value: Option<impl AsRef<[u8]>>) -> Result<Option<V>> {
    value.map(|value| V::decode_value(value.as_ref())).transpose()
}

pub(super) fn owned_bounds<K: KeyCodec>(
    bounds: &impl RangeBounds<K>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (bounds.start_bound().map(key_bytes), bounds.end_bound().map(key_bytes))
}

pub(super) fn prefix_bytes<K, P: KeyPrefix<K> + ?Sized>(prefix: &P) -> Vec<u8> {
    let mut out = Vec::new();
    prefix.encode_prefix(&mut out);
    out
}

impl<K: KeyCodec, V: ValueCodec> TypedBucket<K, V> {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self { bucket, types: PhantomData }
    }

    /// The bucket of bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bucket {
        &self.bucket
    }

    /// A handle of the same bucket whose writes have these options, unless a call says others; see
    /// [`Bucket::with`].
    #[must_use]
    pub fn with(&self, options: impl Into<PutOptions>) -> Self {
        Self::new(self.bucket.with(options))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As for [`Bucket::get`]; `Corrupt` when the bytes are no value of the type; the same below.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        decoded(self.bucket.get(key_bytes(key))?)
    }

    /// The values of some keys, in the order of the keys, all as of one commit.
    pub fn get_many<'a>(&self, keys: impl IntoIterator<Item = &'a K>) -> Result<Vec<Option<V>>>
    where
        K: 'a,
    {
        let snapshot = self.snapshot()?;
        keys.into_iter().map(|key| snapshot.get(key)).collect()
    }

    /// True when there is an entry with this key.
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.bucket.contains(key_bytes(key))
    }

    /// Puts an entry, in the place of the one with its key.
    pub fn put(&self, key: &K, value: &V) -> Result<()> {
        self.put_with(key, value, PutOptions::new())
    }

    /// Puts an entry with a time to live or a durability of its own.
    pub fn put_with(&self, key: &K, value: &V, options: impl Into<PutOptions>) -> Result<()> {
        self.bucket.put_with(key_bytes(key), value_bytes(value)?, options)
    }

    /// Puts entries, all or none; of two with one key the last wins.
    pub fn put_many<'a>(&self, entries: impl IntoIterator<Item = (&'a K, &'a V)>) -> Result<()>
    where
        K: 'a,
        V: 'a,
    {
        let mut batch = self.bucket.batch();
        for (key, value) in entries {
            batch.put(&self.bucket, key_bytes(key), value_bytes(value)?)?;
        }
        batch.commit()
    }

    /// Puts an entry unless there is one with its key: returns the value that is in the way.
    pub fn put_if_absent(&self, key: &K, value: &V) -> Result<Option<V>> {
        let options = PutOptions::new();
        decoded(self.bucket.put_if_absent(key_bytes(key), value_bytes(value)?, options)?)
    }

    /// Replaces a value if its bytes are those of the expected one, and tells what is there if they
    /// are not; `None` stands for no entry.
    pub fn compare_and_swap(
        &self,
        key: &K,
        expected: Option<&V>,
        new: Option<&V>,
    ) -> Result<Swapped<V>> {
        let expected = expected.map(value_bytes).transpose()?;
        let new = new.map(value_bytes).transpose()?;
        let (expected, new) = (expected.as_deref(), new.as_deref());
        Ok(match self.bucket.compare_and_swap(key_bytes(key), expected, new)? {
            Swapped::Done => Swapped::Done,
            Swapped::Found(found) => Swapped::Found(decoded(found)?),
        })
    }

    /// Changes a value by a function of what it is; see [`Bucket::update`].
    pub fn update(
        &self,
        key: &K,
        mut change: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>> {
        let mut failed = Ok(());
        let new = self.bucket.update(key_bytes(key), |value| {
            failed = Ok(());
            let changed = value
                .map(V::decode_value)
                .transpose()
                .and_then(|value| change(value).as_ref().map(value_bytes).transpose());
            // default: the error is returned below
            changed.unwrap_or_else(|e| {
                failed = Err(e);
                // What is there stays.
                value.map(<[u8]>::to_vec)
            })
        })?;
        failed?;
        decoded(new)
    }

    /// Removes an entry and returns its value.
    pub fn take(&self, key: &K) -> Result<Option<V>> {
        decoded(self.bucket.take(key_bytes(key))?)
    }

    /// Removes an entry; false when there is none.
    pub fn remove(&self, key: &K) -> Result<bool> {
        self.bucket.remove(key_bytes(key))
    }

    /// Removes the entries whose keys lie within bounds; see [`Bucket::remove_range`].
    pub fn remove_range(&self, bounds: impl RangeBounds<K>) -> Result<u64> {
        self.bucket.remove_range::<Vec<u8>, _>(owned_bounds(&bounds))
    }

    /// Removes the entries whose keys begin so, all in one commit; returns how many. See
    /// [`KeyPrefix`].
    pub fn remove_prefix<P: KeyPrefix<K> + ?Sized>(&self, prefix: &P) -> Result<u64> {
        self.bucket.remove_prefix(prefix_bytes(prefix))
    }

    /// Removes all entries at once; see [`Bucket::clear`].
    pub fn clear(&self) -> Result<()> {
        self.bucket.clear()
    }

    /// Gives an entry another time to live, from now on; false when there is none.
    pub fn touch(&self, key: &K, ttl: Ttl) -> Result<bool> {
        self.bucket.touch(key_bytes(key), ttl)
    }

    /// Lets an entry never expire; false when there is none, or it never did.
    pub fn persist(&self, key: &K) -> Result<bool> {
        self.bucket.persist(key_bytes(key))
    }

    /// How long an entry is still there; see [`Bucket::remaining`].
    #[allow(clippy::option_option, reason = "no entry, and an entry without an end, differ")]
    pub fn remaining(&self, key: &K) -> Result<Option<Option<Duration>>> {
        self.bucket.remaining(key_bytes(key))
    }

    /// How many entries there are.
    pub fn len(&self) -> Result<u64> {
        self.bucket.len()
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> Result<bool> {
        self.bucket.is_empty()
    }

    /// This bucket as of the newest commit.
    pub fn snapshot(&self) -> Result<TypedBucketSnapshot<K, V>> {
        Ok(self.bucket.snapshot()?.typed())
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Result<TypedEntries<K, V>> {
        Ok(self.snapshot()?.iter())
    }

    /// The entries whose keys lie within bounds.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> Result<TypedEntries<K, V>> {
        Ok(self.snapshot()?.range(bounds))
    }

    /// The entries whose keys begin so; see [`KeyPrefix`].
    pub fn prefix<P: KeyPrefix<K> + ?Sized>(&self, prefix: &P) -> Result<TypedEntries<K, V>> {
        Ok(self.snapshot()?.prefix(prefix))
    }

    /// How many entries lie within bounds. Each is looked at.
    pub fn count_range(&self, bounds: impl RangeBounds<K>) -> Result<u64> {
        self.bucket.count_range::<Vec<u8>, _>(owned_bounds(&bounds))
    }

    /// The entry with the least key above one.
    pub fn next_after(&self, key: &K) -> Result<Option<(K, V)>> {
        self.snapshot()?.next_after(key)
    }

    /// The entry with the greatest key below one.
    pub fn last_before(&self, key: &K) -> Result<Option<(K, V)>> {
        self.snapshot()?.last_before(key)
    }

    /// The entry with the least key.
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.bucket.first()?.as_ref().map(pair).transpose()
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.bucket.last()?.as_ref().map(pair).transpose()
    }
}

impl<K: KeyCodec> TypedBucket<K, i64> {
    /// Adds to a number; an entry that is not there counts as 0. Returns the sum. See
    /// [`Bucket::increment`].
    ///
    /// # Errors
    /// `InvalidInput` when the sum would be beyond 64 bits.
    pub fn increment(&self, key: &K, by: i64) -> Result<i64> {
        self.bucket.increment(key_bytes(key), by)
    }
}

impl<K, V> TypedEntries<K, V> {
    pub(super) fn new(entries: Entries) -> Self {
        Self { entries, types: PhantomData }
    }
}

impl<K: KeyCodec, V: ValueCodec> Iterator for TypedEntries<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| pair(&entry?))
    }
}

impl<K: KeyCodec, V: ValueCodec> DoubleEndedIterator for TypedEntries<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries.next_back().map(|entry| pair(&entry?))
    }
}
