//! Entries in the order of their keys.

use std::ops::RangeBounds;

use esker_format::{Moment, Room, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::key_order::{Direction, KeyRow};
use esker_table::value_location::ValueLocation;

use super::{Bucket, BucketValue, KEY, VALUE_POSITION, guard};
use crate::read::range::KeyWalk;
use crate::{Error, Result};

/// The entries of a range of keys, in the order of the keys, as of one commit. Both ends can be
/// taken from. An entry that cannot be read is an error, and the walk ends there: none is skipped.
pub struct Entries {
    walk: KeyWalk,
    /// The moment as of which they are.
    now: Moment,
}

/// An entry of a bucket, where it lies.
pub struct Entry {
    row: KeyRow,
    now: Moment,
    /// Where the key lies, if it does on its own.
    key: Option<ValueLocation>,
    value: EntryValue,
    room: Room,
}

enum EntryValue {
    Near(ValueLocation),
    /// One that lies in a file of its own, copied.
    Long(Vec<u8>),
    /// One of another form in the row group.
    Row,
}

impl Bucket {
    /// All entries, in the order of their keys.
    ///
    /// # Errors
    /// `OverBudget` when too many snapshots are open; the same below.
    pub fn iter(&self) -> Result<Entries> {
        Ok(self.snapshot()?.iter())
    }

    /// The entries whose keys lie within bounds.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let bucket = db.bucket("letters")?;
    /// bucket.put_many([("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")])?;
    /// let mut entries = bucket.range("b".."d")?;
    /// assert_eq!(entries.next_back().expect("two entries")?.key(), b"c");
    /// assert_eq!(entries.next().expect("one more entry")?.key(), b"b");
    /// assert!(entries.next().is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<K, R>(&self, bounds: R) -> Result<Entries>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        Ok(self.snapshot()?.range(bounds))
    }

    /// The entries whose keys begin with a prefix.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        Ok(self.snapshot()?.prefix(prefix))
    }

    /// The entry with the least key.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be read; the same below.
    pub fn first(&self) -> Result<Option<Entry>> {
        self.iter()?.next().transpose()
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Result<Option<Entry>> {
        self.iter()?.next_back().transpose()
    }

    /// The entry with the least key above one.
    pub fn next_after(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>> {
        self.snapshot()?.next_after(key)
    }

    /// The entry with the greatest key below one.
    pub fn last_before(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>> {
        self.snapshot()?.last_before(key)
    }

    /// How many entries lie within bounds. Each is looked at.
    pub fn count_range<K, R>(&self, bounds: R) -> Result<u64>
    where
        K: AsRef<[u8]> + ?Sized,
        R: RangeBounds<K>,
    {
        self.range(bounds)?.count_rows()
    }
}

impl Entries {
    pub(super) fn new(walk: KeyWalk) -> Self {
        let now = walk.moment();
        Self { walk, now }
    }

    /// The same entries once more, from the beginning.
    pub(super) fn anew(&self) -> Self {
        Self { walk: self.walk.anew(), now: self.now }
    }

    /// Visits the keys, in their order.
    pub(super) fn for_each_key(mut self, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some(row) = self.walk.step(Direction::Up)? {
            let room = Room::default();
            visit(guard::stored_bytes(self.field(&row, 0, &room)?)?)?;
        }
        Ok(())
    }

    fn count_rows(mut self) -> Result<u64> {
        let mut count = 0;
        while self.walk.step(Direction::Up)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn field<'r>(
        &'r self,
        row: &'r KeyRow,
        position: usize,
        room: &'r Room,
    ) -> Result<ValueRef<'r>> {
        let field = self.walk.schema().fields().get(position);
        let field = field.ok_or_else(|| Error::corrupt(format!("no field {position}")))?;
        Ok(row.part.row_group().value(field, row.row, room)?)
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry>> {
        let row = match self.walk.step(direction) {
            Ok(None) => return None,
            Ok(Some(row)) => row,
            Err(e) => return Some(Err(e)),
        };
        let entry = Entry::new(row, self.now);
        if entry.is_err() {
            if Bug::WalkSkipsDamage.is_planted() {
                return self.step(direction);
            }
            self.walk.end();
        }
        Some(entry)
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        self.step(Direction::Up)
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Result<Entry>> {
        self.step(Direction::Down)
    }
}

impl Entry {
    /// The entry of a row; its bytes are verified here.
    fn new(row: KeyRow, now: Moment) -> Result<Self> {
        let (row_group, schema, number) = (row.part.row_group(), row.part.schema(), row.row);
        let key = schema.fields().first();
        let key = key.ok_or_else(|| Error::corrupt(format!("no field {KEY:?}")))?;
        let key = row_group.value_location(key, number)?;
        let field = guard::value_field(schema)?;
        let value = match row_group.value_location(field, number)? {
            Some(place) => EntryValue::Near(place),
            None => {
                let room = Room::default();
                let value = row_group.value(field, number, &room)?;
                match row_group.has_long(field) && row_group.long_value(field, number)?.is_some() {
                    true => EntryValue::Long(guard::stored_bytes(value)?.to_vec()),
                    false => EntryValue::Row,
                }
            }
        };
        Ok(Self { row, now, key, value, room: Room::default() })
    }

    fn bytes(&self, position: usize) -> &[u8] {
        let field = self.row.part.schema().fields().get(position);
        let (row_group, row) = (self.row.part.row_group(), self.row.row);
        let column = field.and_then(|field| row_group.column(field, row..row + 1, &self.room).ok());
        debug_assert!(column.is_some(), "bytes that were verified can be read");
        // default: what was verified can be read
        column.map_or(&[], |column| column.bytes(0))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.key {
            Some(place) => self.row.part.row_group().bytes_at(place),
            None => self.bytes(0),
        }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.value {
            EntryValue::Near(place) => self.row.part.row_group().bytes_at(place),
            EntryValue::Long(bytes) => bytes,
            EntryValue::Row => self.bytes(VALUE_POSITION),
        }
    }

    /// The value, to be held on its own.
    #[must_use]
    pub fn into_value(self) -> BucketValue {
        let row_group = self.row.part.row_group();
        match self.value {
            EntryValue::Near(place) => BucketValue::near(row_group, place),
            EntryValue::Long(bytes) => BucketValue::copied(bytes),
            EntryValue::Row => BucketValue::lying(row_group, self.row.part.schema(), self.row.row),
        }
    }

    /// When the entry expires, in microseconds since 1970; `None`: never. It ends by elapsed time:
    /// this is the date at which that is reached, as far as the date is known now.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be read.
    pub fn expires_at_us(&self) -> Result<Option<i64>> {
        let Some(field) = self.row.part.schema().expiry_field() else { return Ok(None) };
        let row_group = self.row.part.row_group();
        Ok(match row_group.value(field, self.row.row, &self.room)?.to_owned() {
            Value::Timestamp(at_us) => Some(self.now.date_of_elapsed(at_us)),
            _ => None,
        })
    }

    /// Copies of key and value.
    #[must_use]
    pub fn to_pair(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key().to_vec(), self.value().to_vec())
    }
}
