//! A table as of one commit, for scanning.

use std::ops::Range;
use std::sync::Arc;

use esker_format::segment::ZONE_ROWS;
use esker_format::{ColumnSlice, Schema, Value, ValueRef};

use super::Table;
use crate::Result;
use crate::location::row_word;
use crate::view::{Unit, View};

/// A table as of one commit. The caller keeps the commit registered for as long as this lives, so
/// that no merge drops what it may see.
pub struct TableSnapshot {
    table: Arc<Table>,
    view: Arc<View>,
    at: u64,
    parts: Vec<SnapshotPart>,
}

/// The rows of one unit that had been created at the snapshot's commit.
pub struct SnapshotPart {
    unit: Unit,
    rows: usize,
    at: u64,
    all_created: bool,
}

impl Table {
    /// The table as of commit `at`, which the caller has registered.
    #[must_use]
    pub fn snapshot(self: &Arc<Self>, at: u64) -> TableSnapshot {
        let view = self.view();
        let mut parts: Vec<SnapshotPart> =
            view.units.iter().map(|unit| SnapshotPart::new(unit, at)).collect();
        parts.retain(|part| part.rows > 0);
        TableSnapshot { table: Arc::clone(self), view, at, parts }
    }
}

impl TableSnapshot {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.view.schema
    }

    /// The commit.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[SnapshotPart] {
        &self.parts
    }

    /// How many rows are visible.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.count() as u64).sum()
    }
}

impl SnapshotPart {
    fn new(unit: &Unit, at: u64) -> Self {
        let (rows, all_created) = match unit {
            Unit::Group(group) => (group.rows_at(at), true),
            Unit::Segment(segment) if segment.is_loading() => (0, true),
            Unit::Segment(segment) => (segment.row_count(), segment.newest_commit() <= at),
        };
        Self { unit: unit.clone(), rows, at, all_created }
    }

    /// How many rows there are, the dead and (in a segment) the invisible included.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The unit.
    #[must_use]
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// How many rows are visible, when no row has to be looked at.
    #[must_use]
    pub fn known_count(&self) -> Option<usize> {
        (self.all_created && self.unit.dead_count() == 0).then_some(self.rows)
    }

    /// How many rows are visible.
    #[must_use]
    pub fn count(&self) -> usize {
        if let Some(count) = self.known_count() {
            return count;
        }
        let mut count = 0;
        for start in (0..self.rows).step_by(ZONE_ROWS) {
            let rows = start..self.rows.min(start + ZONE_ROWS);
            count += match self.visible(rows.clone()) {
                None => rows.len(),
                Some(words) => words.iter().map(|w| w.count_ones() as usize).sum(),
            };
        }
        count
    }

    /// The end of the longest batch from `start` of at most `rows_max` rows within one zone whose
    /// columns are contiguous.
    #[must_use]
    pub fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let zone_end = (start / ZONE_ROWS + 1) * ZONE_ROWS;
        let end = self.rows.min(zone_end).min(start + rows_max);
        match &self.unit {
            Unit::Group(group) => end.min(group.chunk_end(start)),
            Unit::Segment(_) => end,
        }
    }

    /// Rows of a column, within what [`SnapshotPart::batch_end`] allows.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn column(&self, position: usize, rows: Range<usize>) -> Result<ColumnSlice<'_>> {
        match &self.unit {
            Unit::Segment(segment) => segment.column(position, rows),
            Unit::Group(group) => group
                .column(position, rows.start, rows.end)
                .ok_or_else(|| crate::Error::corrupt(format!("no column for field {position}"))),
        }
    }

    /// Which rows are visible: `None` for all, else one bit per row.
    #[must_use]
    pub fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        let deaths = match &self.unit {
            Unit::Group(group) => &group.deleted,
            Unit::Segment(segment) => &segment.deleted,
        };
        let none_dead = self.unit.dead_count() == 0;
        if none_dead && self.all_created {
            return None;
        }
        let mut words = vec![0u64; rows.len().div_ceil(64)];
        let mut all = true;
        for (i, row) in rows.enumerate() {
            let deleted = if none_dead { 0 } else { deaths.get(row_word(row)) };
            let alive = deleted == 0 || deleted > self.at;
            let seen = alive && (self.all_created || self.unit.created(row) <= self.at);
            all &= seen;
            if let Some(word) = words.get_mut(i / 64) {
                *word |= u64::from(seen) << (i % 64);
            }
        }
        (!all).then_some(words)
    }

    /// Bounds on a field within a zone: the least value (NULL when all are), the greatest when it
    /// is known, and how many rows are NULL.
    #[must_use]
    pub fn zone(
        &self,
        position: usize,
        zone: usize,
    ) -> Option<(ValueRef<'_>, Option<ValueRef<'_>>, usize)> {
        let Unit::Segment(segment) = &self.unit else { return None };
        let entry = segment.zone(position, zone)?;
        let greatest = entry.greatest.as_ref().map(Value::as_ref);
        Some((entry.least.as_ref(), greatest, entry.null_count as usize))
    }
}
