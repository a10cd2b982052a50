//! A bucket of types as of one commit.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use super::codec::key_bytes;
use super::typed::{TypedEntries, decoded, owned_bounds, pair, prefix_bytes};
use super::{BucketSnapshot, KeyCodec, KeyPrefix, ValueCodec};
use crate::Result;

/// A [`crate::TypedBucket`] as of one commit and one time. Cheap to clone.
///
/// ```
/// # let db = esker::Options::new().memory()?;
/// let squares = db.bucket("squares")?.typed::<u32, u64>();
/// squares.put(&3, &9)?;
/// let before = squares.snapshot()?;
/// squares.put(&4, &16)?;
/// assert_eq!(before.get(&3)?, Some(9));
/// assert_eq!(before.iter().count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub struct TypedBucketSnapshot<K, V> {
    snapshot: BucketSnapshot,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedBucketSnapshot<K, V> {
    fn clone(&self) -> Self {
        Self { snapshot: self.snapshot.clone(), types: PhantomData }
    }
}

impl BucketSnapshot {
    /// Keys and values of other types than bytes.
    #[must_use]
    pub fn typed<K: KeyCodec, V: ValueCodec>(&self) -> TypedBucketSnapshot<K, V> {
        TypedBucketSnapshot { snapshot: self.clone(), types: PhantomData }
    }
}

impl<K: KeyCodec, V: ValueCodec> TypedBucketSnapshot<K, V> {
    /// The snapshot of bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &BucketSnapshot {
        &self.snapshot
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt` when the entry cannot be read, or the bytes are none of the type; the same below.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        decoded(self.snapshot.get(key_bytes(key))?)
    }

    /// True when there is an entry with this key.
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.snapshot.contains(key_bytes(key))
    }

    /// How many entries there are.
    pub fn len(&self) -> Result<u64> {
        self.snapshot.len()
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> Result<bool> {
        self.snapshot.is_empty()
    }

    /// All entries, in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> TypedEntries<K, V> {
        TypedEntries::new(self.snapshot.iter())
    }

    /// The entries whose keys lie within bounds.
    #[must_use]
    pub fn range(&self, bounds: impl RangeBounds<K>) -> TypedEntries<K, V> {
        let bounds: (Bound<_>, Bound<_>) = owned_bounds(&bounds);
        TypedEntries::new(self.snapshot.range::<Vec<u8>, _>(bounds))
    }

    /// The entries whose keys begin so; see [`KeyPrefix`].
    #[must_use]
    pub fn prefix<P: KeyPrefix<K> + ?Sized>(&self, prefix: &P) -> TypedEntries<K, V> {
        TypedEntries::new(self.snapshot.prefix(prefix_bytes(prefix)))
    }

    /// The entry with the least key above one.
    pub fn next_after(&self, key: &K) -> Result<Option<(K, V)>> {
        self.snapshot.next_after(key_bytes(key))?.as_ref().map(pair).transpose()
    }

    /// The entry with the greatest key below one.
    pub fn last_before(&self, key: &K) -> Result<Option<(K, V)>> {
        self.snapshot.last_before(key_bytes(key))?.as_ref().map(pair).transpose()
    }
}
