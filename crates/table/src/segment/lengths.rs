//! How long the texts of a zone are, as far as queries have found out.
//!
//! Zone maps of the file bound values, and these say nothing of lengths. A query that asks for
//! lengths computes those of all rows that it looks at; what it found is remembered in a word for
//! each zone, and the next query leaves out the zones that have none of the lengths it asks for.
//!
//! ```text
//!   word of a zone:   rows known, from its first | least, at most 2^24 − 1 | greatest, the same
//!                     16 bits                    | 24 bits                 | 24 bits
//! ```
//!
//! Invariants:
//! - A word speaks of rows that lie without gap from the first of the zone: others are not added.
//! - Lengths beyond 24 bits are remembered as the greatest that fits, which stands for "or more".
//! - Rows do not change, so what is remembered stays true; dead rows are counted in.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::Ordering;

use esker_format::Field;
use esker_format::segment::ZONE_ROWS;

use super::Segment;

const LENGTH_BITS: u32 = 24;
const LENGTH_MAX: u32 = (1 << LENGTH_BITS) - 1;

impl Segment {
    /// The least and the greatest length of a field's values in a zone, if that is known: a text's
    /// in characters, a byte string's in bytes. A bound of [`u32::MAX`] says nothing.
    #[must_use]
    pub fn lengths(&self, field: &Field, zone: usize) -> Option<RangeInclusive<u32>> {
        let (column, layout) = self.indexed_layout(field)?;
        let word = self.lengths.zone(column, zone)?.load(Ordering::Relaxed);
        let known = known(word);
        let rows = self.row_count().checked_sub(zone * ZONE_ROWS)?.min(ZONE_ROWS);
        let is_of_field = layout.data_type == field.data_type;
        let greatest = if known.greatest == LENGTH_MAX { u32::MAX } else { known.greatest };
        (known.rows == rows && is_of_field).then_some(known.least..=greatest)
    }

    /// Remembers the least and the greatest length of the values in some rows, in the row group of
    /// [`Segment::lengths`].
    pub fn learn_lengths(&self, field: &Field, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        let Some((column, layout)) = self.indexed_layout(field) else { return };
        if layout.data_type != field.data_type || rows.is_empty() {
            return;
        }
        let (zone, first) = (rows.start / ZONE_ROWS, rows.start % ZONE_ROWS);
        let of_column = (column, self.footer.columns.len());
        let zones = self.row_count().div_ceil(ZONE_ROWS);
        let Some(word) = self.lengths.zone_or_new(of_column, (zone, zones)) else { return };
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let known = known(word);
            (known.rows == first && first + rows.len() <= ZONE_ROWS).then(|| {
                let is_first = known.rows == 0;
                let (least, greatest) =
                    ((*lengths.start()).min(LENGTH_MAX), (*lengths.end()).min(LENGTH_MAX));
                word_of(&Known {
                    rows: first + rows.len(),
                    least: if is_first { least } else { known.least.min(least) },
                    greatest: if is_first { greatest } else { known.greatest.max(greatest) },
                })
            })
        });
    }
}

/// A word, taken apart.
struct Known {
    rows: usize,
    least: u32,
    greatest: u32,
}

fn known(word: u64) -> Known {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    let (greatest, least) = (u32::from_le_bytes([a, b, c, 0]), u32::from_le_bytes([d, e, f, 0]));
    Known { rows: u16::from_le_bytes([g, h]).into(), least, greatest }
}

fn word_of(known: &Known) -> u64 {
    (known.rows as u64) << (2 * LENGTH_BITS)
        | u64::from(known.least) << LENGTH_BITS
        | u64::from(known.greatest)
}
