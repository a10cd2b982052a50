//! Beginnings of some keys in memory, so that a search reads few rows.
//!
//! ```text
//!   key of a segment ─► zone heads ─► zone ─► heads of every 16th row ─► 16 rows ─► row
//!                       (zone map)            (read when needed)
//!   key of a run ─────────────────────────► heads of every 16th row ─► 16 rows ─► row
//! ```
//!
//! A head is the eight bytes that follow what the sampled keys have in common. Heads tell of most
//! keys on which side of another they are; those that they do not tell are read. A zone's samples
//! take half a byte a row, once somebody has searched in the zone.

use std::ops::Range;
use std::sync::OnceLock;

use esker_format::Field;
use esker_format::key::first_word;
use esker_format::segment::ZONE_ROWS;

use super::KeyForm;
use super::sorted_rows::{Heads, SegmentSamples, SortedRun};
use crate::segment::Segment;
use crate::view::RowGroup;
use crate::{Error, Result};

/// Of so many rows one is sampled.
pub(super) const SAMPLED_ROWS: usize = 16;
/// Shorter runs are searched without samples.
const SAMPLED_FROM_ROWS: usize = 64;

impl Heads {
    /// The heads of sorted keys, of which `first` and `last` are the ends.
    fn new(first: &[u8], last: &[u8], capacity: usize) -> Self {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b);
        let prefix = common.map(|(byte, _)| *byte).collect();
        Self { prefix, heads: Vec::with_capacity(capacity) }
    }

    /// Adds a key; false when it lies outside of what the ends have in common, so that the keys
    /// are not sorted.
    #[must_use]
    fn push(&mut self, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else { return false };
        self.heads.push(first_word(rest));
        true
    }

    /// The keys before the start of the range are less than `key`, those from its end on greater.
    fn near(&self, key: &[u8]) -> Range<usize> {
        match key.strip_prefix(self.prefix.as_slice()) {
            Some(rest) => {
                let head = first_word(rest);
                let start = self.heads.partition_point(|other| *other < head);
                start..self.heads.partition_point(|other| *other <= head)
            }
            None if key > self.prefix.as_slice() => self.heads.len()..self.heads.len(),
            None => 0..0,
        }
    }
}

/// The heads of some rows of a row group in the order of the key, named by their places among
/// `len`.
fn sampled(
    row_group: &RowGroup,
    form: &KeyForm,
    len: usize,
    row: impl Fn(usize) -> Result<usize>,
) -> Result<Heads> {
    let places = (0..len).step_by(SAMPLED_ROWS);
    let (mut key, mut last) = (Vec::new(), Vec::new());
    let Some(end) = places.clone().next_back() else { return Ok(Heads::default()) };
    form.read(row_group, row(0)?, &mut key)?;
    form.read(row_group, row(end)?, &mut last)?;
    let mut heads = Heads::new(&key, &last, places.len());
    for place in places {
        let row = row(place)?;
        form.read(row_group, row, &mut key)?;
        if !heads.push(&key) {
            let id = row_group.id();
            return Err(Error::corrupt(format!("row group {id}: row {row} is not in key order")));
        }
    }
    Ok(heads)
}

/// Where among `len` sampled rows to look for the first whose key is not less: before `start`
/// all are less, at `end` one is greater.
fn rows_near(heads: &Heads, key: &[u8], len: usize) -> Range<usize> {
    let near = heads.near(key);
    // default: no sample is less, so the first row may be the one
    let start = near.start.checked_sub(1).map_or(0, |before| before * SAMPLED_ROWS + 1);
    start..(near.end * SAMPLED_ROWS).min(len)
}

impl SortedRun {
    /// A run of rows that are sorted.
    pub(super) fn new(row_group: &RowGroup, form: &KeyForm, rows: Vec<u32>) -> Result<Self> {
        let mut run = Self { rows, heads: None };
        let len = run.rows.len();
        if len >= SAMPLED_FROM_ROWS {
            run.heads = Some(sampled(row_group, form, len, |place| run.row(row_group, place))?);
        }
        Ok(run)
    }

    /// The row at a place of the run, which is one of a row group.
    #[inline]
    pub(super) fn row(&self, row_group: &RowGroup, place: usize) -> Result<usize> {
        let row = self.rows.get(place).map(|row| *row as usize);
        row.ok_or_else(|| {
            let (id, len) = (row_group.id(), self.rows.len());
            Error::corrupt(format!("row group {id}: no row {place} of {len} by key"))
        })
    }

    /// Where in the run to look for a key.
    pub(super) fn near(&self, key: &[u8]) -> Range<usize> {
        match &self.heads {
            Some(heads) => rows_near(heads, key, self.rows.len()),
            None => 0..self.rows.len(),
        }
    }
}

impl SegmentSamples {
    /// `None` when the zone map does not tell.
    pub fn new(segment: &Segment, field: &Field) -> Option<Self> {
        let count = segment.row_count().div_ceil(ZONE_ROWS);
        let least = |zone| segment.zone(field, zone).and_then(|(least, _, _)| least.as_bytes());
        let mut zones = Heads::new(least(0)?, least(count.checked_sub(1)?)?, count);
        for zone in 0..count {
            if !zones.push(least(zone)?) {
                return None;
            }
        }
        Some(Self { zones, within: (0..count).map(|_| OnceLock::new()).collect() })
    }

    /// The last zone that may begin with the key or before it, by the zone map; 0 if there is none.
    pub fn zone(&self, segment: &Segment, field: &Field, key: &[u8]) -> usize {
        let near = self.zones.near(key);
        let (mut low, mut high) = (near.start, near.end);
        while low < high {
            let middle = low.midpoint(high);
            let least = segment.zone(field, middle).and_then(|(least, _, _)| least.as_bytes());
            match least.is_some_and(|least| least > key) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low.saturating_sub(1)
    }

    /// Where in a zone to look for a key; a start at the first row of the zone says nothing of the
    /// zone before. Where keys are damaged, the whole zone: reading those tells.
    pub fn within(
        &self,
        (row_group, form): (&RowGroup, &KeyForm),
        rows: Range<usize>,
        zone: usize,
        key: &[u8],
    ) -> Range<usize> {
        let Some(slot) = self.within.get(zone) else { return rows };
        let heads = match slot.get() {
            Some(heads) => heads,
            None => match sampled(row_group, form, rows.len(), |place| Ok(rows.start + place)) {
                Ok(heads) => slot.get_or_init(|| heads),
                Err(_) => return rows,
            },
        };
        let near = rows_near(heads, key, rows.len());
        rows.start + near.start..rows.start + near.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_never_tell_wrong() {
        let texts = ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefgz", "b", "ba"];
        for from in 0..texts.len() {
            let keys = &texts[from..];
            let mut heads = Heads::new(keys[0].as_bytes(), b"ba", 0);
            assert!(keys.iter().all(|key| heads.push(key.as_bytes())));
            for key in texts.iter().chain(&["abcdefghij", "a\0\0", "bb", "z"]) {
                let near = heads.near(key.as_bytes());
                assert!(keys[..near.start].iter().all(|other| other < key), "{key:?}");
                assert!(keys[near.end..].iter().all(|other| other > key), "{key:?}");
            }
        }
        let mut shared = Heads::new(b"user:1", b"user:9", 0);
        assert!(["user:1", "user:5", "user:9"].iter().all(|key| shared.push(key.as_bytes())));
        assert!(!shared.push(b"vendor:1"), "it is not between them");
        assert_eq!(shared.near(b"user"), 0..0);
        assert_eq!(shared.near(b"user:4"), 1..1);
        assert_eq!(shared.near(b"user:5"), 1..2);
        assert_eq!(shared.near(b"uses"), 3..3);
    }
}
