//! Sorted runs: the rows of one segment in the order of an index.
//!
//! A run is a small table beside its segment, stored as a segment of its own: the values of the
//! index's fields in their order, and the row each is of. There is no tree; a look-up is a binary
//! search, a range two.
//!
//! ```text
//! segment-…2a      row   0  1  2  3  4          run-…2a-0001   entry  0  1  2  3  4
//!                  age  31 27  -  27 40                        age   27 27 31 40  -
//!                                                              row    1  3  0  4  2
//! ```
//!
//! Invariants
//! 1. Entries are sorted by the fields, each ascending or descending, NULL last; ties by row.
//! 2. Every row of the segment has one entry, the dead and the invisible included.
//! 3. A run is *derived*: segment and schema say what must be in it, so no catalogue names it and
//!    no frame names it. It has its name only once it is synced. One that is missing is built
//!    again, and until then readers scan. It is bound to its segment, which never changes, and
//!    to the number of its index, which is never used again, by its name and by its checksums.
//!
//! Long values are stored cut ([`KEY_BYTES_MAX`]); where that leaves a question open the segment's
//! own value answers it.

mod bitmap;
mod build;
mod bytes_order;
mod dead;
mod grams;
mod radix;
mod ranks;
mod row_number;
mod search;
mod sort;
#[cfg(test)]
mod tests;
mod whole;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError};

use esker_format::json::Json;
use esker_format::order_key::{Key, KeyRange, key};
use esker_format::schema::{Index, IndexField, IndexKind};
use esker_format::{Data, DataType, Field, FieldId, Schema, Value, ValueRef};
use esker_log::sabotage::planted;
use esker_vfs::sync::{Mutex, MutexGuard};

use super::{Error, Result};
use crate::segment::Segment;
pub use bitmap::VALUES_MAX;
pub use build::{RunSource, write_run};
use dead::DeadEntries;
use row_number::number;
use search::Probe;

/// The longest stored value of a text or byte string, in bytes; what is longer is cut.
pub const KEY_BYTES_MAX: usize = 64;

/// The field number under which a run stores rows.
const ROW_FIELD: FieldId = FieldId(u16::MAX);

/// The field number under which a run stores the texts of its field number `number`, a path.
fn path_field(number: usize) -> Result<FieldId> {
    let below = u16::try_from(number).ok().and_then(|number| (ROW_FIELD.0 - 1).checked_sub(number));
    below.map(FieldId).ok_or_else(|| Error::corrupt(format!("field {number} of an index")))
}

/// The text at the end of a path into a document.
fn document_text(document: ValueRef<'_>, path: &[String]) -> Option<String> {
    let document = Json::document(document.as_bytes()?);
    document.text_at(path.iter().map(String::as_str))
}

/// The rows of one segment in the order of one index.
pub struct IndexRun {
    index: Index,
    entries: Segment,
    row_field: Field,
    /// As what the texts of each path are stored.
    paths: Vec<Field>,
    dead: Mutex<Option<Arc<DeadEntries>>>,
    /// The first number of each zone, where the first field has numbers.
    firsts: OnceLock<Option<Vec<i64>>>,
}

impl IndexRun {
    /// A run over what [`write_run`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it has other entries than `rows` rows need.
    pub fn new(index: Index, entries: Segment, rows: usize) -> Result<Self> {
        if index.kind == IndexKind::Ordered && entries.row_count() != rows {
            let (id, found) = (index.id.0, entries.row_count());
            let message = format!("run of index {id}: {found} entries for {rows} rows");
            return Err(Error::corrupt(message));
        }
        let row_field = Field::new(ROW_FIELD, "row".to_owned(), DataType::U32, false);
        let path = |number| {
            let id = path_field(number)?;
            Ok(Field::new(id, String::new(), DataType::Text, true))
        };
        let paths = (0..index.fields.len()).map(path).collect::<Result<_>>()?;
        let (dead, firsts) = (Mutex::new(None), OnceLock::new());
        Ok(Self { index, entries, row_field, paths, dead, firsts })
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What it is stored as.
    #[must_use]
    pub fn entries(&self) -> &Segment {
        &self.entries
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.row_count()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when a reader's schema orders entries as they lie: it has the index's fields, none of
    /// them of a narrower type. What is read as a narrower type is right only where the reader
    /// sees the row, and a search looks at all.
    #[must_use]
    pub fn is_readable_by(&self, schema: &Schema) -> bool {
        if self.index.kind == IndexKind::Trigram {
            return self.index.fields.iter().all(|part| schema.field_of(part.field).is_some());
        }
        self.index.fields.iter().all(|part| {
            let field = schema.field_of(part.field);
            if !part.path.is_empty() {
                return field.is_some_and(|field| field.data_type == DataType::Json);
            }
            let stored = field.and_then(|field| Some((self.entries.stored_type(field)?, field)));
            stored.is_some_and(|(stored, field)| stored.widens_to(field.data_type))
        })
    }

    /// The rows of some entries.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn rows(&self, entries: Range<usize>) -> Result<std::borrow::Cow<'_, [u32]>> {
        let column = self.entries.column(&self.row_field, entries)?;
        Ok(match column.data {
            Data::U32(rows) => rows.into(),
            _ => {
                let rows: Result<Vec<_>> =
                    (0..column.len).map(|i| number(column.value(i))).collect();
                rows.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?.into()
            }
        })
    }

    /// The entries, among some that are equal in all fields before number `number`, whose value of
    /// that field lies in a range. `owner` is the segment, `schema` the reader's.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn find(
        &self,
        owner: &Segment,
        schema: &Schema,
        within: Range<usize>,
        number: usize,
        range: &KeyRange<'_>,
    ) -> Result<Range<usize>> {
        let part = self.index.fields.get(number).zip(self.paths.get(number));
        let part = part.and_then(|(part, texts)| Some((part, texts, schema.field_of(part.field)?)));
        let Some((part, texts, documents)) = part else {
            let message = format!("index {:?} has no field {number}", self.index.name);
            return Err(Error::corrupt(message));
        };
        let path = part.path.as_slice();
        let field = if path.is_empty() { documents } else { texts };
        if let KeyRange::Keys(least, greatest) = range
            && number == 0
            && within == (0..self.len())
            && let Some(found) = self.find_whole(field, (*least, *greatest))?
        {
            return Ok(found);
        }
        let leading = (number == 0).then_some(part);
        let probe = Probe { run: self, owner, field, documents, path, leading };
        let nulls = match planted("run_forgets_nulls") || !self.entries.has_nulls(field) {
            true => within.end,
            false => probe.first(within.clone(), |value, _| Ok(!value.is_null()))?,
        };
        let values = within.start..nulls;
        let descending = part.descending;
        match range {
            KeyRange::Null => Ok(nulls..within.end),
            KeyRange::NotNull => Ok(values),
            KeyRange::Keys(least, greatest) => {
                if least > greatest {
                    return Ok(values.start..values.start);
                }
                let below = |k: Key| if descending { k > *greatest } else { k < *least };
                let above = |k: Key| if descending { k < *least } else { k > *greatest };
                let start = probe.first(values.clone(), |value, _| Ok(below(key(value))))?;
                let end = probe.first_near(start..values.end, |value, _| Ok(!above(key(value))))?;
                Ok(start..end)
            }
            KeyRange::Bytes(least, greatest) => {
                let (below, above) = (
                    |value: &[u8], entry| probe.is_below(value, entry, least),
                    |value: &[u8], entry| probe.is_above(value, entry, greatest),
                );
                let (mut start, mut end);
                let rest;
                if descending {
                    start = probe.first(values.clone(), |v, e| above(probe.bytes(v)?, e))?;
                    rest = start..values.end;
                    end = probe.first_near(rest, |v, e| Ok(!below(probe.bytes(v)?, e)?))?;
                } else {
                    start = probe.first(values.clone(), |v, e| below(probe.bytes(v)?, e))?;
                    rest = start..values.end;
                    end = probe.first_near(rest, |v, e| Ok(!above(probe.bytes(v)?, e)?))?;
                }
                // An empty range: its end lies before its start.
                end = end.max(start);
                start = start.min(end);
                Ok(start..end)
            }
        }
    }

    /// How many of some entries are of rows that a reader at commit `at` sees.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn count_visible(&self, owner: &Segment, entries: Range<usize>, at: u64) -> Result<usize> {
        let all_created = owner.newest_commit() <= at;
        if (all_created && owner.dead_count() == 0) || planted("run_counts_dead_rows") {
            return Ok(entries.len());
        }
        // A short range is looked at row by row, and so is what an older reader asks of rows that
        // are not all there yet for it.
        let is_short = entries.len() <= self.len() / dead::TEST_SHARE;
        if !all_created || is_short && !self.knows_dead_entries(owner) {
            let is_visible = |row: &&u32| {
                let row = **row as usize;
                let deleted = owner.deleted(row);
                (deleted == 0 || deleted > at) && (all_created || owner.created(row) <= at)
            };
            return Ok(self.rows(entries)?.iter().filter(is_visible).count());
        }
        let dead = self.dead_entries(owner)?;
        let count = dead.count(entries.clone(), at);
        let count = count.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?;
        Ok(entries.len() - count)
    }

    /// True when somebody has looked for the dead entries since the last row died.
    fn knows_dead_entries(&self, owner: &Segment) -> bool {
        self.kept_dead().as_ref().is_some_and(|dead| dead.is_of(owner))
    }

    fn kept_dead(&self) -> MutexGuard<'_, Option<Arc<DeadEntries>>> {
        // default: a list is put there when it is whole
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dead_entries(&self, owner: &Segment) -> Result<Arc<DeadEntries>> {
        let mut kept = self.kept_dead();
        match kept.as_ref().filter(|dead| dead.is_of(owner)) {
            Some(dead) => Ok(Arc::clone(dead)),
            None => {
                let dead = Arc::new(DeadEntries::of(self, owner)?);
                *kept = Some(Arc::clone(&dead));
                Ok(dead)
            }
        }
    }

    /// Compares every entry with the segment: whether each row is there once, with the values that
    /// it has there, in order.
    ///
    /// # Errors
    /// `Corrupt` saying what does not fit.
    pub fn verify(&self, owner: &Segment, schema: &Schema) -> Result<()> {
        match self.index.kind {
            IndexKind::Ordered => {}
            IndexKind::Trigram => return self.verify_grams(owner, schema),
            IndexKind::Bitmap => return self.verify_bitmaps(owner, schema),
        }
        self.entries.verify_all()?;
        let wrong = |what: &str, entry: usize| {
            let (name, segment) = (&self.index.name, owner.id());
            let message = format!("index {name:?}, segment {segment}, entry {entry}: {what}");
            Error::corrupt(message)
        };
        let mut seen = vec![false; owner.row_count()];
        let mut fields = Vec::new();
        for (part, stored) in self.index.fields.iter().zip(&self.paths) {
            let Some(field) = schema.field_of(part.field) else { continue };
            let stored = if part.path.is_empty() { field } else { stored };
            fields.push((field, stored, part));
        }
        let mut last: Option<(Vec<Value>, u32)> = None;
        for (entry, row) in self.rows(0..self.len())?.iter().enumerate() {
            match seen.get_mut(*row as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(wrong("a row comes twice", entry)),
            }
            let mut values = Vec::new();
            for (field, stored, part) in &fields {
                let value = owner.value(field, *row as usize)?;
                let value = match part.path.is_empty() {
                    true => value.to_owned(),
                    // default: a document without a text there is entered as NULL
                    false => document_text(value, &part.path).map_or(Value::Null, Value::Text),
                };
                let found = self.entries.value(stored, entry)?;
                if value.as_ref().shortened(KEY_BYTES_MAX) != found {
                    return Err(wrong("another value than the row has", entry));
                }
                values.push(value);
            }
            if let Some((before, row_before)) = &last
                && compare(before, &values, &fields).then(row_before.cmp(row)).is_ge()
            {
                return Err(wrong("not in order", entry));
            }
            last = Some((values, *row));
        }
        Ok(())
    }
}

/// The order of two entries.
fn compare(a: &[Value], b: &[Value], fields: &[(&Field, &Field, &IndexField)]) -> Ordering {
    for ((a, b), (_, _, part)) in a.iter().zip(b).zip(fields) {
        let order = match (a.is_null(), b.is_null()) {
            (false, false) if part.descending => b.as_ref().compare(a.as_ref()),
            (false, false) => a.as_ref().compare(b.as_ref()),
            (a, b) => a.cmp(&b),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
