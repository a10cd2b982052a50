//! The row ids of a segment.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::schema::RowOrder;
use esker_format::segment::{RowIds, ZONE_ROWS};
use esker_format::{Codes, ColumnSlice, Data, DataType, Validity, invariant};
use esker_log::sabotage::Bug;
use esker_vfs::sync::MutexGuard;

use super::Segment;
use super::plain::byte;
use crate::{Error, Result};

/// Zones that are looked at row by row for a row id.
const LOOKED_AT_ZONES_MAX: usize = 2;
/// Numbers that are compared at a time.
const BLOCK: usize = 256;

/// The numbers of the rows of a zone.
const COUNTED: &[u16; ZONE_ROWS] = &counted();

#[allow(clippy::cast_possible_truncation, reason = "a zone has fewer rows than u16 counts")]
#[allow(clippy::indexing_slicing, reason = "checked when it is compiled")]
const fn counted() -> [u16; ZONE_ROWS] {
    let mut numbers = [0; ZONE_ROWS];
    let mut row = 0;
    while row < ZONE_ROWS {
        numbers[row] = row as u16;
        row += 1;
    }
    numbers
}

/// Adds the places of a number among others, the first of which is at `start`.
fn add_equal<T: Copy + PartialEq>(values: &[T], wanted: T, start: usize, found: &mut Vec<usize>) {
    // Mostly there is none in a block, which is seen at once.
    for (block, values) in (start..).step_by(BLOCK).zip(values.chunks(BLOCK)) {
        if values.iter().fold(false, |any, value| any | (*value == wanted)) {
            let at = (block..).zip(values).filter(|(_, value)| **value == wanted);
            found.extend(at.map(|(at, _)| at));
        }
    }
}

impl Segment {
    /// True when its rows are sorted by what the table has them sorted by, and do not lie as they
    /// came.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.footer.order != RowOrder::Arrival
    }

    /// True when it is known that row ids never fall from one row to the next.
    #[must_use]
    pub fn has_rising_row_ids(&self) -> bool {
        !self.is_sorted() || matches!(self.footer.row_ids, RowIds::Dense { .. })
    }

    /// Gives the rows the ids of the commit that makes them real: those in the file, with so much
    /// added. Before a reader can see one of them.
    ///
    /// # Errors
    /// `Corrupt` when the ids in the file lie so far apart that they are no numbers from the first
    /// one on, or when the last one would be none.
    pub fn shift_row_ids(&self, shift: u64) -> Result<()> {
        let id = self.id;
        if shift != 0 && matches!(self.footer.row_ids, RowIds::Plain { .. }) {
            let message = format!("segment {id}: row ids that lie far apart are to be shifted");
            return Err(Error::corrupt(message));
        }
        let (_, last) = self.stored_bounds();
        if last.checked_add(shift).is_none() {
            let message = format!("segment {id}: row id {last} cannot be shifted by {shift}");
            return Err(Error::corrupt(message));
        }
        self.row_id_shift.store(shift, Ordering::Release);
        Ok(())
    }

    fn shift(&self) -> u64 {
        self.row_id_shift.load(Ordering::Acquire)
    }

    /// The row id of a row.
    ///
    /// # Errors
    /// `Corrupt` when its block does not fit its checksum.
    pub fn row_id(&self, row: usize) -> Result<u64> {
        Ok(self.stored_row_id(row)? + self.shift())
    }

    /// The same, as the file has it.
    fn stored_row_id(&self, row: usize) -> Result<u64> {
        Ok(match self.footer.row_ids {
            RowIds::Dense { first } => first + row as u64,
            RowIds::Narrowed { first, codes, .. } => {
                let code = self.typed::<u32>(codes, row..row + 1)?.first();
                first + u64::from(*code.ok_or_else(|| self.no_row(row))?)
            }
            RowIds::Plain { values, .. } => {
                let value = self.typed::<u64>(values, row..row + 1)?.first();
                *value.ok_or_else(|| self.no_row(row))?
            }
        })
    }

    /// The row ids of some rows of one zone, as a column.
    ///
    /// # Errors
    /// `Corrupt` when their blocks do not fit their checksums.
    pub fn row_id_column(&self, rows: Range<usize>) -> Result<ColumnSlice<'_>> {
        let (len, start) = (rows.len(), rows.start as u64);
        let data = match self.footer.row_ids {
            RowIds::Dense { first } => {
                let Some(numbers) = COUNTED.get(..len) else {
                    let message = format!("segment {}: {len} rows, more than of a zone", self.id);
                    return Err(Error::corrupt(message));
                };
                Data::Narrowed { base: first + self.shift() + start, codes: Codes::U16(numbers) }
            }
            RowIds::Narrowed { first, codes, .. } => Data::Narrowed {
                base: first + self.shift(),
                codes: Codes::U32(self.typed::<u32>(codes, rows)?),
            },
            RowIds::Plain { values, .. } => Data::U64(self.typed::<u64>(values, rows)?),
        };
        Ok(ColumnSlice { data_type: DataType::U64, len, validity: Validity::AllValid, data })
    }

    /// The least and the greatest row id.
    #[must_use]
    pub fn row_id_bounds(&self) -> (u64, u64) {
        let ((first, last), shift) = (self.stored_bounds(), self.shift());
        (first + shift, last + shift)
    }

    /// The same, as the file has them.
    fn stored_bounds(&self) -> (u64, u64) {
        match self.footer.row_ids {
            RowIds::Dense { first } => (first, first + u64::from(self.footer.rows).max(1) - 1),
            RowIds::Narrowed { first, last, .. } | RowIds::Plain { first, last, .. } => {
                (first, last)
            }
        }
    }

    /// The rows with an id, oldest version first: usually one or none. Versions of an event lie
    /// side by side; a table whose rows are sorted by a key has no row looked up by its id.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn rows_with_id(&self, row_id: u64) -> Result<Range<usize>> {
        let (first, last) = self.row_id_bounds();
        if row_id < first || row_id > last || self.footer.rows == 0 {
            return Ok(0..0);
        }
        if !self.has_rising_row_ids() {
            return self.rows_with_id_in_zones(row_id);
        }
        if let RowIds::Dense { .. } = self.footer.row_ids {
            let row = byte(row_id - first);
            return Ok(row..row + 1);
        }
        let (mut low, mut high) = (0, self.row_count());
        while low < high {
            let middle = low.midpoint(high);
            if self.row_id(middle)? < row_id { low = middle + 1 } else { high = middle }
        }
        let mut end = low;
        while end < self.row_count() && self.row_id(end)? == row_id {
            end += 1;
        }
        Ok(low..end)
    }

    /// The same where rows are sorted otherwise: those of the zones that may have the id are looked
    /// at. Where events came about in the order of their times these are few; else all rows are
    /// sorted by row id, once.
    fn rows_with_id_in_zones(&self, row_id: u64) -> Result<Range<usize>> {
        let Some(stored) = row_id.checked_sub(self.shift()) else { return Ok(0..0) };
        let zones = self.row_id_zones()?.iter().enumerate();
        let may_have =
            |(_, (least, greatest)): &(usize, &(u64, u64))| (*least..=*greatest).contains(&stored);
        let zones: Vec<usize> = zones.filter(may_have).map(|(zone, _)| zone).collect();
        let mut found = Vec::new();
        if zones.len() > LOOKED_AT_ZONES_MAX {
            found = self.find_row_id(row_id)?;
        } else {
            for zone in zones {
                let rows = zone * ZONE_ROWS..self.row_count().min((zone + 1) * ZONE_ROWS);
                self.find_stored(stored, rows, &mut found)?;
            }
        }
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return Ok(0..0) };
        let is_run = last - first + 1 == found.len();
        let place = format_args!("segment {}", self.id);
        invariant!(is_run, place, "versions of row {row_id} lie apart, in rows {first} to {last}");
        Ok(*first..last + 1)
    }

    /// Adds the rows of a zone that have an id, as the file has it.
    fn find_stored(&self, id: u64, rows: Range<usize>, found: &mut Vec<usize>) -> Result<()> {
        let start = rows.start;
        match self.footer.row_ids {
            RowIds::Dense { first } => {
                let row = id.checked_sub(first).and_then(|row| usize::try_from(row).ok());
                found.extend(row.filter(|row| rows.contains(row)));
            }
            RowIds::Narrowed { first, codes, .. } => {
                // An id that no code stands for is in no row.
                let code = id.checked_sub(first).and_then(|code| u32::try_from(code).ok());
                if let Some(code) = code {
                    add_equal(self.typed::<u32>(codes, rows)?, code, start, found);
                }
            }
            RowIds::Plain { values, .. } => {
                add_equal(self.typed::<u64>(values, rows)?, id, start, found);
            }
        }
        Ok(())
    }

    /// The least and the greatest row id of each zone, as the file has them; found when first
    /// needed.
    fn row_id_zones(&self) -> Result<&[(u64, u64)]> {
        if let Some(known) = self.row_id_zones.get() {
            return Ok(known);
        }
        let mut zones = Vec::with_capacity(self.row_count().div_ceil(ZONE_ROWS));
        for start in (0..self.row_count()).step_by(ZONE_ROWS) {
            let mut bounds = (u64::MAX, 0);
            for row in start..self.row_count().min(start + ZONE_ROWS) {
                let row_id = self.stored_row_id(row)?;
                bounds = (bounds.0.min(row_id), bounds.1.max(row_id));
            }
            zones.push(bounds);
        }
        Ok(self.row_id_zones.get_or_init(|| zones.into_boxed_slice()))
    }

    /// The rows with an id, the oldest version first, in whatever order rows lie. Where that is not
    /// the order of row ids, the first call sorts all of them; [`Segment::forget_row_order`] ends
    /// that.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn find_row_id(&self, row_id: u64) -> Result<Vec<usize>> {
        if self.has_rising_row_ids() || Bug::ReplayFindsRowsByRowOrder.is_planted() {
            return Ok(self.rows_with_id(row_id)?.collect());
        }
        let (first, last) = self.row_id_bounds();
        if row_id < first || row_id > last {
            return Ok(Vec::new());
        }
        let rows = self.rows_by_row_id()?;
        let (mut low, mut high) = (0, rows.len());
        let id_at = |at: usize| match rows.get(at) {
            Some(row) => self.row_id(*row as usize),
            None => Err(self.no_row(at)),
        };
        while low < high {
            let middle = low.midpoint(high);
            if id_at(middle)? < row_id { low = middle + 1 } else { high = middle }
        }
        let mut found = Vec::new();
        while low < rows.len() && id_at(low)? == row_id {
            found.extend(rows.get(low).map(|row| *row as usize));
            low += 1;
        }
        Ok(found)
    }

    /// Frees what [`Segment::find_row_id`] keeps.
    pub fn forget_row_order(&self) {
        *self.row_order() = None;
    }

    fn row_order(&self) -> MutexGuard<'_, Option<Arc<Vec<u32>>>> {
        // default: rows are put there when all of them are sorted
        self.by_row_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rows_by_row_id(&self) -> Result<Arc<Vec<u32>>> {
        let mut kept = self.row_order();
        if let Some(rows) = kept.as_ref() {
            return Ok(Arc::clone(rows));
        }
        let mut pairs = Vec::with_capacity(self.row_count());
        for (row, number) in (0..self.row_count()).zip(0u32..) {
            pairs.push((self.row_id(row)?, number));
        }
        // Versions of one key stand side by side, so that by row number the older comes first.
        pairs.sort_unstable();
        let rows = Arc::new(pairs.into_iter().map(|(_, row)| row).collect::<Vec<u32>>());
        *kept = Some(Arc::clone(&rows));
        Ok(rows)
    }
}
