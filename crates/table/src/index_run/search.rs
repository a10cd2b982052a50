//! Searching a run by halves: among the zones first, whose least values are at hand, then among the
//! entries of one zone, which lie next to each other.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use esker_format::schema::IndexField;
use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, Room, Schema, ValueRef, with_article};
use esker_log::sabotage::Bug;

use super::run::{IndexRun, KEY_BYTES_MAX, document_text};
use crate::index_values::{IndexValues, in_segment};
use crate::segment::Segment;
use crate::{Error, Result};

/// A search in one field of a run.
pub(super) struct Probe<'a> {
    pub(super) run: &'a IndexRun,
    pub(super) owner: &'a Segment,
    /// As what the run stores its values.
    pub(super) field: &'a Field,
    /// Where the segment has whole values.
    pub(super) whole: Whole<'a>,
    /// How the field orders all entries, where it is the first of the index.
    pub(super) leading: Option<&'a IndexField>,
}

/// Where the segment of a run has the whole values of which the run has the start.
#[derive(Clone, Copy)]
pub(super) enum Whole<'a> {
    /// In a field.
    Field(&'a Field),
    /// At the end of a path into its documents.
    Path(&'a Field, &'a [String]),
    /// They are computed, as a part of the index, for a reader's schema.
    Computed(&'a dyn IndexValues, usize, &'a Schema),
}

impl<'a> Probe<'a> {
    /// The first entry for which `is_before` is false: it is true of those before it only.
    pub(super) fn first(
        &self,
        entries: Range<usize>,
        mut is_before: impl FnMut(ValueRef<'_>, usize) -> Result<bool>,
    ) -> Result<usize> {
        let (mut low, mut high) = (entries.start, entries.end);
        while low < high {
            let (first_zone, last_zone) = (low / ZONE_ROWS, (high - 1) / ZONE_ROWS);
            if first_zone == last_zone {
                break;
            }
            let zone = first_zone + (last_zone - first_zone).div_ceil(2);
            let at = zone * ZONE_ROWS;
            if is_before(self.first_of(zone)?, at)? { low = at + 1 } else { high = at }
        }
        if low >= high {
            return Ok(low);
        }
        let (start, column) = (low, self.run.entries.column_as_stored(self.field, low..high)?);
        while low < high {
            let middle = low.midpoint(high);
            let value = column.value(middle - start);
            if is_before(value, middle)? { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// As [`Probe::first`], where it is likely near the first of the entries.
    pub(super) fn first_near(
        &self,
        entries: Range<usize>,
        mut is_before: impl FnMut(ValueRef<'_>, usize) -> Result<bool>,
    ) -> Result<usize> {
        let zone_end = (entries.start / ZONE_ROWS + 1) * ZONE_ROWS;
        if zone_end < entries.end {
            if is_before(self.first_of(zone_end / ZONE_ROWS)?, zone_end)? {
                return self.first(zone_end + 1..entries.end, is_before);
            }
            return self.first(entries.start..zone_end, is_before);
        }
        self.first(entries, is_before)
    }

    /// The value of the first entry of a zone.
    fn first_of(&self, zone: usize) -> Result<ValueRef<'a>> {
        if let Some(order) = self.leading
            && !self.field.data_type.is_variable()
            && let Some((least, Some(greatest), 0)) = self.run.entries.zone(self.field, zone)
        {
            return Ok(if order.descending { greatest } else { least });
        }
        self.run.entries.value_as_stored(self.field, zone * ZONE_ROWS)
    }

    /// How the value of an entry compares with some bytes.
    fn compare(&self, stored: &[u8], entry: usize, bytes: &[u8]) -> Result<Ordering> {
        // Text is cut where a character ends, at most three bytes before the limit.
        if stored.len() + 3 < KEY_BYTES_MAX || Bug::RunTrustsCutValues.is_planted() {
            return Ok(stored.cmp(bytes));
        }
        // default: fewer bytes than are stored are compared as they are
        match stored.cmp(bytes.get(..stored.len()).unwrap_or(bytes)) {
            Ordering::Equal => {
                let rows = self.run.rows(entry..entry + 1)?;
                let row = rows.first().ok_or_else(|| self.missing("a row", entry))?;
                self.compare_whole(*row as usize, entry, bytes)
            }
            order => Ok(order),
        }
    }

    /// How the whole value of a row compares with some bytes.
    fn compare_whole(&self, row: usize, entry: usize, bytes: &[u8]) -> Result<Ordering> {
        let room = Room::default();
        match self.whole {
            Whole::Field(field) => Ok(self.bytes(self.owner.value(field, row, &room)?)?.cmp(bytes)),
            Whole::Path(documents, path) => {
                let text = document_text(self.owner.value(documents, row, &room)?, path);
                Ok(text.ok_or_else(|| self.missing("a text", entry))?.as_bytes().cmp(bytes))
            }
            Whole::Computed(values, part, schema) => {
                let value = in_segment(values, schema, (self.owner, row), part)?;
                Ok(self.bytes(value.as_ref())?.cmp(bytes))
            }
        }
    }

    /// The bytes of a value that is not NULL, of a field of texts or byte strings.
    pub(super) fn bytes<'v>(&self, value: ValueRef<'v>) -> Result<&'v [u8]> {
        value.as_bytes().ok_or_else(|| {
            let (name, kind) = (&self.run.index.name, with_article(value.kind_name()));
            Error::corrupt(format!("index {name:?}: {kind} among texts or byte strings"))
        })
    }

    fn missing(&self, what: &str, entry: usize) -> Error {
        let (name, segment) = (&self.run.index.name, self.owner.id());
        Error::corrupt(format!("index {name:?}, segment {segment}: entry {entry} lacks {what}"))
    }

    pub(super) fn is_below(
        &self,
        stored: &[u8],
        entry: usize,
        least: &Bound<&[u8]>,
    ) -> Result<bool> {
        Ok(match least {
            Bound::Unbounded => false,
            Bound::Included(least) => self.compare(stored, entry, least)?.is_lt(),
            Bound::Excluded(least) => self.compare(stored, entry, least)?.is_le(),
        })
    }

    pub(super) fn is_above(
        &self,
        stored: &[u8],
        entry: usize,
        greatest: &Bound<&[u8]>,
    ) -> Result<bool> {
        Ok(match greatest {
            Bound::Unbounded => false,
            Bound::Included(greatest) => self.compare(stored, entry, greatest)?.is_gt(),
            Bound::Excluded(greatest) => self.compare(stored, entry, greatest)?.is_ge(),
        })
    }
}
