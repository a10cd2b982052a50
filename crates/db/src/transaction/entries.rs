//! Entries of a bucket within a transaction.

use std::ops::RangeBounds;
use std::time::Duration;

use esker_format::{Moment, Value, ValueRef};

use super::rows::TransactionTable;
use super::{State, Transaction};
use crate::bucket::{
    VALUE_POSITION, decision, default_ttl, expect_bucket, expect_key, expect_value, no_bucket, row,
    with_end,
};
use crate::commit::by_key::remove_row;
use crate::{Bucket, BucketSnapshot, BucketValue, Entries, PutOptions, Result};

/// A bucket within a transaction: as of its snapshot, with its changes.
///
/// ```
/// # let db = esker::Options::new().memory()?;
/// db.bucket("stock")?.put(b"tea", b"3")?;
/// let transaction = db.begin()?;
/// let stock = transaction.bucket("stock")?;
/// stock.put(b"tea", b"2")?;
/// stock.put(b"tin", b"9")?;
/// assert_eq!(stock.get(b"tea")?.as_deref(), Some(&b"2"[..]));
/// assert_eq!(stock.prefix(b"t")?.count(), 2);
/// transaction.commit()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct TransactionBucket<'t> {
    pub(super) table: TransactionTable<'t>,
}

impl Transaction {
    /// A bucket as of the transaction's snapshot.
    ///
    /// # Errors
    /// `NotFound` when there was no such bucket when it began, `InvalidInput` when it is a table.
    pub fn bucket(&self, name: &str) -> Result<TransactionBucket<'_>> {
        let is_there =
            |name: &String| self.table(name).is_ok_and(|table| table.schema().is_bucket());
        // default: the error lists none then.
        let known = || self.tables().unwrap_or_default().into_iter().filter(is_there).collect();
        let table = self.table(name).map_err(|e| no_bucket(name, e, known))?;
        expect_bucket(name, table.schema())?;
        Ok(TransactionBucket { table })
    }

    /// The bucket that a handle stands for, whatever its name is now.
    ///
    /// # Errors
    /// As for [`Transaction::table_by_handle`].
    pub(crate) fn bucket_by_handle(&self, bucket: &Bucket) -> Result<TransactionBucket<'_>> {
        let table = self.table_by_handle(bucket.as_table())?;
        expect_bucket(&table.name(), table.schema())?;
        Ok(TransactionBucket { table })
    }
}

impl TransactionBucket<'_> {
    /// The name, as it is now.
    #[must_use]
    pub fn name(&self) -> String {
        self.table.name()
    }

    /// What entries get that are put without a time to live of their own.
    #[must_use]
    pub fn default_ttl(&self) -> Option<Duration> {
        default_ttl(self.table.schema())
    }

    /// The moment at which entries have expired for the transaction.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.transaction().moment()
    }

    pub(super) fn transaction(&self) -> &Transaction {
        self.table.transaction
    }

    pub(super) fn key<'k>(&self, key: &'k [u8]) -> Result<[ValueRef<'k>; 1]> {
        expect_key(|| self.name(), key).map(|key| [ValueRef::Bytes(key)])
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As for [`crate::Bucket::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<BucketValue>> {
        let key = self.key(key.as_ref())?;
        let mut state = self.transaction().state();
        self.table.note_read(&mut state, &key)?;
        self.look(&state, &key)
    }

    /// The value of a key that no other transaction may change before this one commits: see
    /// [`TransactionTable::get_for_update`].
    ///
    /// # Errors
    /// As for [`crate::Bucket::get`].
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<BucketValue>> {
        let key = self.key(key.as_ref())?;
        let mut state = self.transaction().state();
        self.table.hold(&mut state, &key)?;
        self.look(&state, &key)
    }

    /// The value of a key, and when it expires in microseconds since 1970, where it does; as for
    /// [`TransactionBucket::get_for_update`], the commit fails when another has changed it, and
    /// when it has expired: what is put with its end would be gone at once.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let notes = db.bucket("notes")?;
    /// notes.put_with("a", "alpha", esker::Ttl::At(9_000_000_000_000_000))?;
    /// let transaction = db.begin()?;
    /// let found = transaction.bucket("notes")?.get_with_expiry("a")?;
    /// assert_eq!(found, Some((b"alpha".to_vec(), Some(9_000_000_000_000_000))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt` when the entry cannot be read.
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Option<i64>)>> {
        let key = self.key(key.as_ref())?;
        let mut state = self.transaction().state();
        self.table.hold(&mut state, &key)?;
        let now = self.transaction().moment();
        let date = |elapsed_us| now.date_of_elapsed(elapsed_us);
        if let Some(change) = self.table.change_of(&state, &key)? {
            return Ok(match self.table.row_of(&change) {
                Some([_, Value::Bytes(value), Value::Timestamp(at_us)]) => {
                    Some((value.clone(), Some(date(*at_us))))
                }
                Some([_, Value::Bytes(value), _]) => Some((value.clone(), None)),
                _ => None,
            });
        }
        let found = self.transaction().base(&state).find(&self.table.current, &key, with_end)?;
        if found.is_some() {
            state.reads.note_found(&self.table.current, &self.table.bytes_of(&key));
        }
        Ok(found.map(|((value, end), _)| (value, end.map(date))))
    }

    /// Lets the commit, and [`Transaction::validate`], fail unless the entry of a key is the one
    /// that there was as of an earlier commit, when it was there or not: with a `Conflict` when
    /// another commit has put or removed it since, or it has expired. A transaction that began
    /// then and is open still lets entries be noticed that have come and gone meanwhile.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let notes = db.bucket("notes")?;
    /// notes.put("a", "1")?;
    /// let earlier = db.begin()?;
    /// let (commit, is_there) = (earlier.read_at(), earlier.bucket("notes")?.contains("a")?);
    /// let expect = || {
    ///     let transaction = db.begin()?;
    ///     transaction.bucket("notes")?.expect_since("a", commit, is_there)?;
    ///     transaction.validate()
    /// };
    /// expect()?;
    /// notes.put("a", "1")?;
    /// assert_eq!(expect().unwrap_err().kind(), esker::ErrorKind::Conflict);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a key that is too long; `ReadOnly` in a transaction that only reads.
    pub fn expect_since(&self, key: impl AsRef<[u8]>, commit: u64, is_there: bool) -> Result<()> {
        let key = self.key(key.as_ref())?;
        let mut state = self.transaction().state();
        self.table.hold(&mut state, &key)?;
        let bytes = self.table.bytes_of(&key);
        state.reads.note_since(&self.table.current, (&bytes, &key), commit, is_there);
        Ok(())
    }

    fn look(&self, state: &State, key: &[ValueRef<'_>]) -> Result<Option<BucketValue>> {
        if let Some(change) = self.table.change_of(state, key)? {
            return Ok(match self.table.row_of(&change).and_then(|row| row.get(VALUE_POSITION)) {
                Some(Value::Bytes(value)) => Some(BucketValue::copied(value.clone())),
                _ => None,
            });
        }
        let take = |found: &esker_table::Found<'_>| {
            BucketValue::new(found.row_group, found.schema, found.row)
        };
        let found = self.transaction().base(state).find(&self.table.current, key, take)?;
        Ok(found.map(|(value, _)| value))
    }

    /// True when there is an entry with a key.
    ///
    /// # Errors
    /// As for [`crate::Bucket::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn len(&self) -> Result<u64> {
        self.table.count()
    }

    /// True when there are none.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    fn as_it_is(&self) -> Result<BucketSnapshot> {
        Ok(BucketSnapshot::new(self.table.as_it_is()?))
    }

    /// All entries, by key, as they are now: later changes do not show.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn iter(&self) -> Result<Entries> {
        Ok(self.as_it_is()?.iter())
    }

    /// The entries whose keys lie within bounds, by key.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn range<K, R>(&self, bounds: R) -> Result<Entries>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        Ok(self.as_it_is()?.range(bounds))
    }

    /// The entries whose keys begin with a prefix, by key.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        Ok(self.as_it_is()?.prefix(prefix))
    }

    /// Puts an entry, in the place of the one with its key.
    ///
    /// # Errors
    /// As for [`crate::Bucket::put`], but that what others commit meanwhile is reported by
    /// [`Transaction::commit`]; `OverBudget` when the changes take too much memory.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, PutOptions::new())
    }

    /// Puts an entry with a time to live of its own, which begins now. Durability is the
    /// transaction's.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<()> {
        let (options, key) = (options.into(), key.as_ref());
        let found = self.key(key)?;
        let expires_at = self.end(options.ttl)?;
        let value = expect_value(|| self.name(), value.as_ref())?;
        let row = row(key, value, expires_at);
        let mut state = self.transaction().state();
        let known = self.table.known(&state, &found)?;
        // default: what was not changed has no row id of its own
        let new_row_id = known.change.map_or(0, |change| change.new_row_id);
        let base = known.base;
        self.table
            .done(&mut state, |state| self.table.replace(state, &found, (row, base, new_row_id)))
    }

    /// Removes an entry; false when there is none.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = self.key(key.as_ref())?;
        self.table.change_rows(|rows| remove_row(rows, &key, 0))
    }

    /// Removes an entry and returns its value.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let value = self.get(key)?.map(BucketValue::into_vec);
        self.remove(key)?;
        Ok(value)
    }

    /// Removes the entries whose keys lie within bounds; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn remove_range<K, R>(&self, bounds: R) -> Result<u64>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        self.remove_entries(self.range(bounds)?)
    }

    /// Removes the entries whose keys begin with a prefix; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<u64> {
        self.remove_entries(self.prefix(prefix)?)
    }

    /// Removes all entries that the transaction sees; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn clear(&self) -> Result<u64> {
        self.table.clear()
    }

    fn remove_entries(&self, entries: Entries) -> Result<u64> {
        self.table.change_rows(|rows| {
            let mut removed = 0;
            for entry in entries {
                let entry = entry?;
                removed += u64::from(remove_row(rows, &[ValueRef::Bytes(entry.key())], 0)?);
            }
            Ok(removed)
        })
    }

    /// Adds to a number, as [`crate::Bucket::increment`] does.
    ///
    /// # Errors
    /// As for [`crate::Bucket::increment`] and [`TransactionBucket::put`].
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64> {
        self.modify(key.as_ref(), |entry| {
            decision::increment(entry, by, || self.end(crate::Ttl::Default))
        })
    }
}
