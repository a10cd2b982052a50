//! A bucket whose keys and values have types.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use super::{Bucket, Entries, Entry, KeyCodec, PutOptions, Swapped, ValueCodec};
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

impl<K, V> Clone for TypedBucket<K, V> {
    fn clone(&self) -> Self {
        Self { bucket: self.bucket.clone(), types: PhantomData }
    }
}

fn key_bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out, true);
    out
}

fn value_bytes<V: ValueCodec>(value: &V) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    value.encode_value(&mut out)?;
    Ok(out)
}

fn pair<K: KeyCodec, V: ValueCodec>(entry: &Entry) -> Result<(K, V)> {
    let mut input = entry.key();
    Ok((K::decode_key(&mut input, true)?, V::decode_value(entry.value())?))
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

    /// The value of a key.
    ///
    /// # Errors
    /// As for [`Bucket::get`]; `Corrupt` when the bytes are no value of the type; likewise below.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = self.bucket.get(key_bytes(key))?;
        value.map(|value| V::decode_value(&value)).transpose()
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
        let there = self.bucket.put_if_absent(key_bytes(key), value_bytes(value)?, options)?;
        there.map(|there| V::decode_value(&there)).transpose()
    }

    /// Replaces a value if its bytes are those of the expected one; false when they are not.
    pub fn compare_and_swap(&self, key: &K, expected: Option<&V>, new: Option<&V>) -> Result<bool> {
        let expected = expected.map(value_bytes).transpose()?;
        let new = new.map(value_bytes).transpose()?;
        let (expected, new) = (expected.as_deref(), new.as_deref());
        Ok(self.bucket.compare_and_swap(key_bytes(key), expected, new)? == Swapped::Done)
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
            changed.unwrap_or_else(|e| {
                failed = Err(e);
                // What is there stays.
                value.map(<[u8]>::to_vec)
            })
        })?;
        failed?;
        new.map(|new| V::decode_value(&new)).transpose()
    }

    /// Removes an entry and returns its value.
    pub fn take(&self, key: &K) -> Result<Option<V>> {
        let taken = self.bucket.take(key_bytes(key))?;
        taken.map(|value| V::decode_value(&value)).transpose()
    }

    /// Removes an entry; false when there is none.
    pub fn remove(&self, key: &K) -> Result<bool> {
        self.bucket.remove(key_bytes(key))
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Result<TypedEntries<K, V>> {
        Ok(TypedEntries { entries: self.bucket.iter()?, types: PhantomData })
    }

    /// The entries whose keys lie within bounds.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> Result<TypedEntries<K, V>> {
        let owned = |bound: Bound<&K>| match bound {
            Bound::Included(key) => Bound::Included(key_bytes(key)),
            Bound::Excluded(key) => Bound::Excluded(key_bytes(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let bounds = (owned(bounds.start_bound()), owned(bounds.end_bound()));
        let entries = self.bucket.range::<Vec<u8>, _>(bounds)?;
        Ok(TypedEntries { entries, types: PhantomData })
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
