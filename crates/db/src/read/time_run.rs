//! The events of a segment in the order of time, as if an index had them so: their rows lie in it.
//!
//! ```text
//! entry   0   1   2   3        an entry is its row
//! time    10  10  12  15       rises
//! row id  4   9   7   8        rises among those of one time
//! ```
//!
//! So a query for the newest events, for those of a span of time or for how many these are reads
//! what it needs, and no index is written.

use std::borrow::Cow;
use std::ops::Range;

use esker_format::Room;
use esker_format::order_key::{Key, key};
use esker_query::{Entries, KeyRange, SortedRun, ZONE_ROWS};
use esker_table::segment::Segment;
use esker_table::table::SnapshotPart;
use esker_table::view::RowGroup;

use super::source::query_error;

type Result<T> = esker_query::Result<T>;

/// The rows of a segment of a stream, by time and row id.
pub(super) struct TimeRun<'a> {
    part: &'a SnapshotPart,
    segment: &'a Segment,
    /// The positions of the time and of the row id, both rising.
    fields: [(usize, bool); 2],
}

impl<'a> TimeRun<'a> {
    /// That of a part, if its rows lie so.
    pub fn of(part: &'a SnapshotPart, row_id_position: usize) -> Option<Self> {
        let RowGroup::Segment(segment) = part.row_group() else { return None };
        let time = part.schema().stream()?.time;
        let position = part.schema().fields().iter().position(|field| field.id == time)?;
        let fields = [(position, false), (row_id_position, false)];
        segment.is_sorted().then_some(Self { part, segment, fields })
    }

    /// The key of a row in field number `field` of the run.
    fn key_at(&self, field: usize, row: usize) -> Result<Key> {
        let read = match field {
            0 => self.part.value(self.time_position(), row, &Room::default()).map(key),
            _ => self.segment.row_id(row).map(Key::from),
        };
        read.map_err(|e| query_error(&e))
    }

    fn time_position(&self) -> usize {
        let [(position, _), _] = self.fields;
        position
    }

    /// The first of some entries whose key is not below one; `beyond`: whose key is above it.
    fn first(
        &self,
        entries: Range<usize>,
        field: usize,
        (bound, beyond): (Key, bool),
    ) -> Result<usize> {
        let is_before = |found: Key| found < bound || (beyond && found == bound);
        let (mut low, mut high) = (entries.start, entries.end);
        // The least time of a zone is that of its first row, and at hand.
        while low < high && low / ZONE_ROWS < (high - 1) / ZONE_ROWS {
            let (first, last) = (low / ZONE_ROWS, (high - 1) / ZONE_ROWS);
            let zone = first + (last - first).div_ceil(2);
            let known = self.part.zone(self.time_position(), zone).filter(|_| field == 0);
            let found = match known {
                Some((least, ..)) => key(least),
                None => self.key_at(field, zone * ZONE_ROWS)?,
            };
            if is_before(found) { low = zone * ZONE_ROWS } else { high = zone * ZONE_ROWS }
        }
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.key_at(field, middle)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

impl SortedRun for TimeRun<'_> {
    fn name(&self) -> &'static str {
        "time"
    }

    fn fields(&self) -> &[(usize, bool)] {
        &self.fields
    }

    fn len(&self) -> usize {
        self.part.row_count()
    }

    fn is_sorted_exactly(&self) -> bool {
        true
    }

    fn find(&self, within: Range<usize>, field: usize, range: &KeyRange<'_>) -> Result<Entries> {
        let (least, greatest) = match range {
            // Neither a time nor a row id is NULL.
            KeyRange::Null => {
                return Ok(Entries { range: within.end..within.end, exact: true });
            }
            KeyRange::NotNull => return Ok(Entries { range: within, exact: true }),
            KeyRange::Keys(least, greatest) => (*least, *greatest),
            KeyRange::Bytes(..) => {
                return Err(esker_query::Error::invalid("a time between byte strings"));
            }
        };
        let start = self.first(within.clone(), field, (least, false))?;
        let end = self.first(start..within.end, field, (greatest, true))?;
        Ok(Entries { range: start..end, exact: true })
    }

    fn rows(&self, entries: Range<usize>) -> Result<Cow<'_, [u32]>> {
        let row = |row: usize| {
            let beyond = |_| esker_query::Error::invalid(format!("no row {row} of a segment"));
            u32::try_from(row).map_err(beyond)
        };
        Ok(Cow::Owned(entries.map(row).collect::<Result<_>>()?))
    }

    fn shown(&self, entries: Range<usize>) -> Result<Range<usize>> {
        if self.part.known_count().is_some() {
            return Ok(entries);
        }
        Ok(self.part.first_shown(entries.clone())..entries.end)
    }

    fn count_visible(&self, entries: Range<usize>) -> Result<usize> {
        if self.part.known_count().is_some() {
            return Ok(entries.len());
        }
        let (mut count, mut start) = (0, entries.start);
        while start < entries.end {
            let end = entries.end.min((start / ZONE_ROWS + 1) * ZONE_ROWS);
            count += match self.part.visible(start..end) {
                None => end - start,
                Some(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
            };
            start = end;
        }
        Ok(count)
    }
}
