//! Changing entries.

use std::ops::RangeBounds;

use esker_format::schema::DefaultValue;
use esker_format::{Moment, Schema, Value, ValueRef};

use super::decision::{self, Change, Entry, Swapped, modify_entry};
use super::{Bucket, Entries, PutOptions, RemovalReservation, Ttl, microseconds, row};
use crate::Result;
use crate::catalog::defaults::later;
use crate::commit::by_key::remove_row;
use crate::commit::row_sink::StagedRows;
use crate::engine::Engine;
use crate::table_version::TableVersion;

impl Bucket {
    /// Puts an entry, in the place of the one with its key.
    ///
    /// # Errors
    /// `InvalidInput` for a key of more than 64 KiB, `Conflict` when others kept changing the entry
    /// while a value of more than 64 KiB was written, and what a commit meets. Nothing is changed
    /// then; the same below.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, PutOptions::new())
    }

    /// Puts an entry with a time to live or a durability of its own.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use esker::Ttl;
    ///
    /// # let db = esker::Options::new().memory()?;
    /// let cache = db.bucket("cache")?;
    /// cache.put_with(b"page", b"<html>", Ttl::After(Duration::from_secs(60)))?;
    /// assert!(cache.remaining(b"page")?.expect("an entry").is_some());
    /// cache.persist(b"page")?;
    /// assert_eq!(cache.remaining(b"page")?, Some(None));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<()> {
        let options = options.into();
        let (key, value) = (self.key(key.as_ref())?, self.value(value.as_ref())?);
        self.attempt(|current| {
            let expires_at = self.expires_at(current, options.ttl)?;
            self.table.change(current, |writer, staged| {
                staged.sync = options.sync.or(self.options.sync);
                let row = row(key, value, expires_at);
                self.expect_valid(current, &row)?;
                let prepared = writer.prepare_put(&row, false)?;
                staged.put(row, prepared);
                Ok(())
            })
        })
    }

    /// Puts entries, all or none; of two with one key the last wins.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        let mut batch = self.batch();
        for (key, value) in entries {
            batch.put(self, key, value)?;
        }
        batch.commit()
    }

    /// Puts an entry unless there is one with its key: returns the value that is in the way.
    pub fn put_if_absent(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<Option<Vec<u8>>> {
        let (options, value) = (options.into(), self.value(value.as_ref())?);
        self.modify(key.as_ref(), options.sync, |current, entry| {
            let end = || self.expires_at(current, options.ttl);
            decision::put_if_absent(entry, value, end)
        })
    }

    /// Replaces a value if it is the one expected; `None` stands for no entry, on either side.
    ///
    /// ```
    /// use esker::Swapped;
    ///
    /// # let db = esker::Options::new().memory()?;
    /// let locks = db.bucket("locks")?;
    /// assert_eq!(locks.compare_and_swap(b"a", None, Some(b"me"))?, Swapped::Done);
    /// let other = locks.compare_and_swap(b"a", None, Some(b"you"))?;
    /// assert_eq!(other, Swapped::Found(Some(b"me".to_vec())));
    /// assert_eq!(locks.compare_and_swap(b"a", Some(b"me"), None)?, Swapped::Done);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swapped> {
        let new = new.map(|new| self.value(new)).transpose()?;
        self.modify(key.as_ref(), None, |current, entry| {
            let end = || self.expires_at(current, Ttl::Default);
            decision::compare_and_swap(entry, expected, new, end)
        })
    }

    /// Changes a value by a function of what it is: `None` stands for no entry, on either side. The
    /// function may be called several times, while others change the entry. Returns the new value.
    /// An entry that was there keeps its time to live.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let words = db.bucket("words")?;
    /// words.put(b"w", b"ab")?;
    /// let doubled = words.update(b"w", |value| value.map(|v| v.repeat(2)))?;
    /// assert_eq!(doubled.as_deref(), Some(&b"abab"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        loop {
            let seen = self.get(key)?;
            let new = change(seen.as_deref());
            let swapped = self.modify(key, None, |current, entry| {
                let same = entry.map(|entry| entry.value) == seen.as_deref();
                if !same {
                    return Ok((Change::Keep, false));
                }
                let end = || self.expires_at(current, Ttl::Default);
                Ok((decision::replace(entry, new.as_deref(), end)?, true))
            })?;
            if swapped {
                return Ok(new);
            }
        }
    }

    /// Adds to a number; an entry that is not there counts as 0. Returns the sum. Numbers are
    /// stored as typed buckets store an `i64`. The entry keeps its time to live.
    ///
    /// # Errors
    /// `InvalidInput` when the value is no such number, or the sum would be none.
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64> {
        self.modify(key.as_ref(), None, |current, entry| {
            let end = || self.expires_at(current, Ttl::Default);
            decision::increment(entry, by, end)
        })
    }

    /// Adds bytes to the end of a value, or puts them where there is no entry. Returns how many
    /// bytes there are now. The entry keeps its time to live.
    pub fn append(&self, key: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<usize> {
        let bytes = bytes.as_ref();
        self.modify(key.as_ref(), None, |current, entry| {
            decision::append(entry, bytes, || self.expires_at(current, Ttl::Default))
        })
    }

    /// Removes an entry and returns its value; of two who take one entry at the same time one gets
    /// it.
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.modify(key.as_ref(), None, |_, entry| {
            Ok(match entry {
                Some(entry) => (Change::Remove, Some(entry.value.to_vec())),
                None => (Change::Keep, None),
            })
        })
    }

    /// Removes an entry; false when there is none.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = [ValueRef::Bytes(self.key(key.as_ref())?)];
        self.attempt(|current| {
            let hash = current.hash(&key);
            self.table.change(current, |writer, staged| {
                staged.sync = self.options.sync;
                let engine = &self.table.engine;
                let mut rows = StagedRows::new(engine, current, (writer, staged));
                remove_row(&mut rows, &key, hash)
            })
        })
    }

    /// Removes the entries whose keys lie within bounds, all in one commit; returns how many.
    /// Keys that others put meanwhile for the first time stay. An entry takes some seventy bytes of
    /// memory until it is removed, whatever its key and its value take.
    ///
    /// # Errors
    /// `OverBudget`, and nothing is removed, when there is less memory than that;
    /// [`Bucket::clear`] needs none. The same below.
    pub fn remove_range<K, R>(&self, bounds: R) -> Result<u64>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        self.remove_entries(&self.range(bounds)?)
    }

    /// Removes the entries whose keys begin with a prefix, all in one commit; returns how many.
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<u64> {
        self.remove_entries(&self.prefix(prefix)?)
    }

    /// Keys are read twice, once to know what memory it takes to remove the entries, which is not
    /// to be had while others wait for the commit.
    fn remove_entries(&self, entries: &Entries) -> Result<u64> {
        let mut room = RemovalReservation::new(&self.table.engine);
        entries.anew().for_each_key(|_| room.add())?;
        self.attempt(|current| {
            self.table.change(current, |writer, staged| {
                staged.sync = self.options.sync;
                let engine = &self.table.engine;
                let mut rows = StagedRows::new(engine, current, (writer, staged));
                let mut removed = 0;
                entries.anew().for_each_key(|key| {
                    let key = [ValueRef::Bytes(key)];
                    removed += u64::from(remove_row(&mut rows, &key, current.hash(&key))?);
                    Ok(())
                })?;
                Ok(removed)
            })
        })
    }

    /// Gives an entry another time to live, from now on; false when there is none.
    pub fn touch(&self, key: impl AsRef<[u8]>, ttl: Ttl) -> Result<bool> {
        self.modify(key.as_ref(), None, |current, entry| {
            decision::touch(entry, || self.expires_at(current, ttl))
        })
    }

    /// Lets an entry never expire; false when there is none, or it never did.
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.modify(key.as_ref(), None, |_, entry| Ok(decision::persist(entry)))
    }

    /// Changes an entry by what it is, under the commit lock: `decide` is ours, and quick.
    fn modify<R>(
        &self,
        key: &[u8],
        sync: Option<bool>,
        mut decide: impl FnMut(&TableVersion, Option<&Entry<'_>>) -> Result<(Change, R)>,
    ) -> Result<R> {
        self.key(key)?;
        self.attempt(|current| {
            self.table.change(current, |writer, staged| {
                staged.sync = sync.or(self.options.sync);
                let engine = &self.table.engine;
                let mut rows = StagedRows::new(engine, current, (writer, staged));
                modify_entry(&mut rows, &|| self.name(), key, |entry| decide(current, entry))
            })
        })
    }

    /// Refuses an entry whose value is too long, or that does not meet a check.
    fn expect_valid(&self, current: &TableVersion, row: &[Value]) -> Result<()> {
        if let Some(Value::Bytes(value)) = row.get(super::VALUE_POSITION) {
            self.value(value)?;
        }
        match current.schema.checks().is_empty() {
            true => Ok(()),
            false => self.table.engine.test_rows(current, &[row.to_vec()]),
        }
    }

    /// When an entry ends that is put now.
    pub(super) fn expires_at(&self, current: &TableVersion, ttl: Ttl) -> Result<Value> {
        let ttl = if ttl == Ttl::Default { self.options.ttl } else { ttl };
        let engine = &self.table.engine;
        expiry_of(engine, &current.schema, (engine.now(), ttl))
    }
}

/// When an entry ends that is put at a moment.
pub(crate) fn expiry_of(
    engine: &Engine,
    schema: &Schema,
    (now, ttl): (Moment, Ttl),
) -> Result<Value> {
    let after = |after_us| Value::Timestamp(later(now.of(schema), after_us));
    Ok(match (ttl, schema.expiry_field()) {
        (Ttl::Never, _) | (Ttl::Default, None) => Value::Null,
        (Ttl::At(date_us), _) => Value::Timestamp(now.elapsed_of_date(date_us)),
        (Ttl::After(ttl), _) => after(microseconds(ttl)?),
        (Ttl::Default, Some(field)) => match field.default {
            Some(DefaultValue::After(after_us)) => after(after_us),
            _ => engine.default_of(schema, field)?,
        },
    })
}
