//! Entries of a bucket changed by what they are, within a transaction.

use esker_format::Value;

use super::Transaction;
use super::entries::TransactionBucket;
use crate::bucket::decision::{self, Change, Entry, modify_entry};
use crate::bucket::{expect_value, expiry_of, row, schema_of};
use crate::commit::by_key::remove_row;
use crate::{BucketOptions, BucketValue, Limits, PutOptions, Result, Swapped, Ttl};

impl Transaction {
    /// Makes a bucket: others see it with the commit, or never.
    ///
    /// ```
    /// use esker::BucketOptions;
    ///
    /// # let db = esker::Options::new().memory()?;
    /// let transaction = db.begin()?;
    /// transaction.create_bucket("stock", &BucketOptions::default())?.put(b"tea", b"3")?;
    /// assert_eq!(db.buckets().len(), 0);
    /// transaction.commit()?;
    /// assert_eq!(db.bucket("stock")?.get(b"tea")?.as_deref(), Some(&b"3"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`crate::Database::create_bucket`] and [`Transaction::create_table`].
    pub fn create_bucket(
        &self,
        name: &str,
        options: &BucketOptions,
    ) -> Result<TransactionBucket<'_>> {
        self.create_table(name, schema_of(options)?)?;
        self.bucket(name)
    }
}

impl TransactionBucket<'_> {
    /// The values of some keys, in the order of the keys.
    ///
    /// # Errors
    /// As for [`TransactionBucket::get`].
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<BucketValue>>> {
        keys.into_iter().map(|key| self.get(key)).collect()
    }

    /// Puts entries, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`]; nothing is changed then; the same below.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        self.table.upsert_many(&self.rows_of(entries, PutOptions::new())?)
    }

    /// The same with a time to live, and within limits: what takes longer than it may, or is
    /// cancelled, has put nothing.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put_many`]; `TimedOut`, `Cancelled`.
    pub fn put_many_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: &[(K, V)],
        options: impl Into<PutOptions>,
        limits: &Limits,
    ) -> Result<()> {
        let entries = entries.iter().map(|(key, value)| (key, value));
        self.table.upsert_many_with(&self.rows_of(entries, options.into())?, limits)
    }

    fn rows_of<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        options: PutOptions,
    ) -> Result<Vec<Vec<Value>>> {
        let end = self.end(options.ttl)?;
        let row_of = |(key, value): (K, V)| {
            let key = key.as_ref();
            self.key(key)?;
            let value = expect_value(|| self.name(), value.as_ref())?;
            Ok(row(key, value, end.clone()))
        };
        entries.into_iter().map(row_of).collect()
    }

    /// Removes entries by their keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`]; `TimedOut`, `Cancelled`.
    pub fn remove_many<K: AsRef<[u8]>>(&self, keys: &[K], limits: &Limits) -> Result<u64> {
        self.table.within_limits(limits, |check_cancelled| {
            self.table.change_rows(|rows| {
                let mut removed = 0;
                for (position, key) in keys.iter().enumerate() {
                    check_cancelled(position)?;
                    removed += u64::from(remove_row(rows, &self.key(key.as_ref())?, 0)?);
                }
                Ok(removed)
            })
        })
    }

    /// Puts an entry unless there is one with its key: returns the value that is in the way.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn put_if_absent(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<Option<Vec<u8>>> {
        let (options, value) = (options.into(), value.as_ref());
        self.modify(key.as_ref(), |entry| {
            decision::put_if_absent(entry, value, || self.end(options.ttl))
        })
    }

    /// Replaces a value if it is the one expected; `None` stands for no entry, on either side.
    ///
    /// ```
    /// use esker::Swapped;
    ///
    /// # let db = esker::Options::new().memory()?;
    /// # db.bucket("locks")?;
    /// db.transact(|transaction| {
    ///     let locks = transaction.bucket("locks")?;
    ///     assert_eq!(locks.compare_and_swap(b"a", None, Some(b"me"))?, Swapped::Done);
    ///     let other = locks.compare_and_swap(b"a", None, Some(b"you"))?;
    ///     assert_eq!(other, Swapped::Found(Some(b"me".to_vec())));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swapped> {
        self.modify(key.as_ref(), |entry| {
            decision::compare_and_swap(entry, expected, new, || self.end(Ttl::Default))
        })
    }

    /// Changes a value by a function of what it is: `None` stands for no entry, on either side.
    /// Returns the new value. An entry that was there keeps its time to live. The function is
    /// called once, and does not use the transaction.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        self.modify(key.as_ref(), |entry| {
            let new = change(entry.map(|entry| entry.value));
            let end = || self.end(Ttl::Default);
            Ok((decision::replace(entry, new.as_deref(), end)?, new))
        })
    }

    /// Adds bytes to the end of a value, or puts them where there is no entry. Returns how many
    /// bytes there are now. The entry keeps its time to live.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn append(&self, key: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<usize> {
        self.modify(key.as_ref(), |entry| {
            decision::append(entry, bytes.as_ref(), || self.end(Ttl::Default))
        })
    }

    /// Gives an entry another time to live, from now on; false when there is none.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn touch(&self, key: impl AsRef<[u8]>, ttl: Ttl) -> Result<bool> {
        self.modify(key.as_ref(), |entry| decision::touch(entry, || self.end(ttl)))
    }

    /// Lets an entry never expire; false when there is none, or it never did.
    ///
    /// # Errors
    /// As for [`TransactionBucket::put`].
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.modify(key.as_ref(), |entry| Ok(decision::persist(entry)))
    }

    /// When an entry ends that is put now.
    pub(super) fn end(&self, ttl: Ttl) -> Result<Value> {
        let transaction = self.table.transaction;
        expiry_of(&transaction.engine, self.table.schema(), (transaction.moment(), ttl))
    }

    /// Changes an entry by what it is.
    pub(super) fn modify<R>(
        &self,
        key: &[u8],
        decide: impl FnOnce(Option<&Entry<'_>>) -> Result<(Change, R)>,
    ) -> Result<R> {
        self.key(key)?;
        self.table.change_rows(|rows| modify_entry(rows, &|| self.name(), key, decide))
    }
}
