//! A bucket as of one commit.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use esker_format::ValueRef;
use esker_table::key_order::KeyForm;

use super::{Bucket, BucketValue, Entries, Entry, expect_bucket, guard, no_bucket};
use crate::read::range::{KeyWalk, prefix_end};
use crate::{Result, Snapshot, SnapshotTable};

/// Keys that are looked for together: what they need fits the nearest cache.
const KEYS_AT_ONCE: usize = 32;

/// A bucket as of one commit and one time. Cheap to clone; many reads by one snapshot are cheaper
/// than as many snapshots.
///
/// ```
/// # let db = esker::Options::new().memory()?;
/// let bucket = db.bucket("letters")?;
/// bucket.put("a", "1")?;
/// let before = bucket.snapshot()?;
/// bucket.put("a", "2")?;
/// assert_eq!(before.get("a")?.as_deref(), Some(&b"1"[..]));
/// assert_eq!(before.iter().count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone)]
pub struct BucketSnapshot {
    rows: Arc<SnapshotTable>,
    form: Arc<KeyForm>,
}

impl Bucket {
    /// This bucket as of the newest commit.
    ///
    /// # Errors
    /// `OverBudget` when too many snapshots are open.
    pub fn snapshot(&self) -> Result<BucketSnapshot> {
        Ok(BucketSnapshot::new(self.table.snapshot()?))
    }
}

impl Snapshot {
    /// A bucket as of this commit.
    ///
    /// # Errors
    /// `NotFound` when there was no such bucket then, `InvalidInput` for a table that is none.
    pub fn bucket(&self, name: &str) -> Result<BucketSnapshot> {
        let is_there =
            |name: &String| self.table(name).is_ok_and(|table| table.schema().is_bucket());
        let known = || self.table_names().into_iter().filter(is_there).collect();
        let rows = self.table(name).map_err(|e| no_bucket(name, e, known))?;
        expect_bucket(name, rows.schema())?;
        Ok(BucketSnapshot::new(rows))
    }
}

impl BucketSnapshot {
    pub(crate) fn new(rows: SnapshotTable) -> Self {
        let form = Arc::new(KeyForm::of(rows.schema()));
        Self { rows: Arc::new(rows), form }
    }

    /// The value of a key, where it lies.
    ///
    /// # Errors
    /// `Corrupt` when the entry cannot be read; the same below.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<BucketValue>> {
        self.rows.find(&[ValueRef::Bytes(key.as_ref())], |found| {
            BucketValue::new(found.row_group, found.schema, found.row)
        })
    }

    /// The values of some keys, in the order given. They are looked for some at a time, so that
    /// the processor waits for the memory that one needs while it waits for that of the others.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let bucket = db.bucket("letters")?;
    /// bucket.put_many([("a", "1"), ("b", "2")])?;
    /// let values = bucket.snapshot()?.get_many(["b", "x"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"2"[..]));
    /// assert!(values[1].is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<BucketValue>>> {
        let mut keys = keys.into_iter();
        let mut values = Vec::new();
        loop {
            let some: Vec<K> = keys.by_ref().take(KEYS_AT_ONCE).collect();
            if some.is_empty() {
                return Ok(values);
            }
            if some.len() > 1 {
                let bytes: Vec<&[u8]> = some.iter().map(AsRef::as_ref).collect();
                self.rows.prefetch_keys(&bytes);
            }
            for key in &some {
                values.push(self.get(key)?);
            }
        }
    }

    /// What `take` makes of the value of a key, which it sees where it lies; see [`Bucket::read`].
    pub fn read<R>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut take = Some(take);
        let found = self.rows.find(&[ValueRef::Bytes(key.as_ref())], |found| {
            take.take().map(|take| guard::read(&found, take)).transpose()
        })?;
        Ok(found.flatten())
    }

    /// True when there is an entry with this key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.rows.find(&[ValueRef::Bytes(key.as_ref())], |_| Ok(()))?.is_some())
    }

    /// How many entries there are.
    pub fn len(&self) -> Result<u64> {
        self.rows.count()
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// All entries, in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> Entries {
        self.entries(Bound::Unbounded, Bound::Unbounded)
    }

    /// The entries whose keys lie within bounds.
    #[must_use]
    pub fn range<K, R>(&self, bounds: R) -> Entries
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.entries(owned(bounds.start_bound()), owned(bounds.end_bound()))
    }

    /// The entries whose keys begin with a prefix.
    #[must_use]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        let prefix = prefix.as_ref().to_vec();
        // default: a prefix of greatest bytes has no end
        let end = prefix_end(prefix.clone()).map_or(Bound::Unbounded, Bound::Excluded);
        self.entries(Bound::Included(prefix), end)
    }

    /// The entry with the least key above one.
    pub fn next_after(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>> {
        let least = Bound::Excluded(key.as_ref().to_vec());
        self.entries(least, Bound::Unbounded).next().transpose()
    }

    /// The entry with the greatest key below one.
    pub fn last_before(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>> {
        let greatest = Bound::Excluded(key.as_ref().to_vec());
        self.entries(Bound::Unbounded, greatest).next_back().transpose()
    }

    /// How many sorted sequences of rows a range is looked for in: one a segment, and a few for
    /// what was put since these were sealed.
    pub fn sorted_runs(&self) -> Result<usize> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let (rows, form) = (Arc::clone(&self.rows), Arc::clone(&self.form));
        KeyWalk::new(rows, form, all.0, all.1).source_count()
    }

    fn entries(&self, least: Bound<Vec<u8>>, greatest: Bound<Vec<u8>>) -> Entries {
        let (rows, form) = (Arc::clone(&self.rows), Arc::clone(&self.form));
        Entries::new(KeyWalk::new(rows, form, least, greatest))
    }
}

impl std::fmt::Debug for BucketSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketSnapshot").field("commit", &self.rows.commit()).finish()
    }
}
