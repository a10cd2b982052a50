//! Values of other rows: so many before or after, or at a place of the frame.

use std::ops::Range;

use esker_format::Column;

use super::arguments::Arguments;
use super::arrangement::Chunk;
use super::columns::at;
use super::frames::Frames;
use crate::bind::window::{Pick, Place, Shift};
use crate::{Error, Result};

/// In no source: NULL.
const NOWHERE: (u32, u32) = (u32::MAX, 0);

/// The rows that have a value, where others are left out.
struct Known {
    /// These rows.
    rows: Vec<u32>,
    /// How many of them are before each row, and in all.
    before: Vec<u32>,
}

impl Known {
    fn of(column: &Column) -> Self {
        let (mut rows, mut before) = (Vec::new(), Vec::with_capacity(column.len() + 1));
        let mut count = 0u32;
        for (i, row) in (0..column.len()).zip(0u32..) {
            before.push(count);
            if !column.is_null(i) {
                rows.push(row);
                count += 1;
            }
        }
        before.push(count);
        Self { rows, before }
    }

    fn before(&self, row: usize) -> usize {
        // default: behind the last row
        self.before.get(row).map_or(self.rows.len(), |count| *count as usize)
    }

    /// How many there are in a range.
    fn count(&self, range: &Range<usize>) -> usize {
        self.before(range.end).saturating_sub(self.before(range.start))
    }

    /// The one at a place in a range, from 0.
    fn get(&self, range: &Range<usize>, place: usize) -> Option<u32> {
        self.rows.get(self.before(range.start) + place).copied()
    }
}

/// The values of rows before or after.
///
/// # Errors
/// `OutOfRange` when texts would pass 4 GiB; when the query is to end.
pub(super) fn shifted(chunk: &Chunk<'_>, shift: &Shift<usize>) -> Result<Column> {
    let column = chunk.column(shift.value)?;
    let otherwise = shift.otherwise.map(|otherwise| chunk.column(otherwise)).transpose()?;
    let by = Arguments::of(chunk, &shift.by)?;
    let known = shift.ignores_nulls.then(|| Known::of(&column));
    let mut places = Vec::with_capacity(chunk.len());
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        for row in partition.clone() {
            let Some(by) = by.get(row) else {
                places.push(NOWHERE);
                continue;
            };
            let by = if shift.is_back { by.checked_neg() } else { Some(by) };
            let found = by.and_then(|by| moved(row, by, &partition, known.as_ref()));
            places.push(match (found, &otherwise) {
                (Some(row), _) => (0, row),
                (None, Some(_)) => (1, number(row)?),
                (None, None) => NOWHERE,
            });
        }
    }
    let sources: Vec<&Column> = std::iter::once(&column).chain(&otherwise).collect();
    at(column.data_type, &sources, &places, true)
}

/// The row so many rows after, or before, within a partition.
fn moved(row: usize, by: i64, partition: &Range<usize>, known: Option<&Known>) -> Option<u32> {
    let steps = usize::try_from(by.unsigned_abs()).ok()?;
    let Some(known) = known.filter(|_| by != 0) else {
        let row = if by < 0 { row.checked_sub(steps)? } else { row.checked_add(steps)? };
        return partition.contains(&row).then(|| u32::try_from(row).ok()).flatten();
    };
    let range = if by < 0 { partition.start..row } else { row + 1..partition.end };
    let place = match by < 0 {
        true => known.count(&range).checked_sub(steps)?,
        false => steps - 1,
    };
    (place < known.count(&range)).then(|| known.get(&range, place)).flatten()
}

fn number(row: usize) -> Result<u32> {
    u32::try_from(row).map_err(|_| Error::invalid("too many rows of a window"))
}

/// The values at a place of the frame.
///
/// # Errors
/// `OutOfRange` for a place below 1, and when texts would pass 4 GiB; when the query is to end.
pub(super) fn picked(chunk: &Chunk<'_>, pick: &Pick<usize>, frames: &Frames) -> Result<Column> {
    let column = chunk.column(pick.value)?;
    let known = pick.ignores_nulls.then(|| Known::of(&column));
    let numbers = match &pick.place {
        Place::At(place) => Some(Arguments::of(chunk, place)?),
        Place::First | Place::Last => None,
    };
    let count = |range: &Range<usize>| match &known {
        Some(known) => known.count(range),
        None => range.len(),
    };
    let mut places = Vec::with_capacity(chunk.len());
    for row in 0..chunk.len() {
        chunk.meter.work(1)?;
        let ranges = frames.ranges(row);
        let place = match (&pick.place, &numbers) {
            (Place::First, _) => Some(0),
            (Place::Last, _) => ranges.iter().map(count).sum::<usize>().checked_sub(1),
            (_, numbers) => match numbers.as_ref().and_then(|numbers| numbers.get(row)) {
                None => None,
                Some(place @ 1..) => usize::try_from(place - 1).ok(),
                Some(place) => {
                    return Err(Error::out_of_range(format!(
                        "nth_value: expected a place from 1, found {place}"
                    )));
                }
            },
        };
        let found = place.and_then(|mut place| {
            for range in &ranges {
                let here = count(range);
                if place < here {
                    return match &known {
                        Some(known) => known.get(range, place),
                        None => u32::try_from(range.start + place).ok(),
                    };
                }
                place -= here;
            }
            None
        });
        places.push(found.map_or(NOWHERE, |row| (0, row)));
    }
    at(column.data_type, &[&column], &places, true)
}
