//! Bytes of one value of a unit, where they lie.

use std::ops::Range;

use esker_format::{Field, Schema};

use crate::Result;
use crate::segment::COLUMNS_MAX;
use crate::view::Unit;

/// Where the bytes of a value lie in its unit, for as long as the unit is held.
#[derive(Clone, Debug)]
pub struct BytesPlace(Place);

#[derive(Clone, Debug)]
enum Place {
    /// Bytes of a segment that have been verified.
    Segment(Range<usize>),
    /// A word of the heap of a group's column.
    Group { column: usize, word: u64 },
}

impl Unit {
    /// The bytes of a value where that is quick to tell; [`Unit::near_bytes`] may tell them, too,
    /// where this does not.
    #[must_use]
    #[inline]
    pub fn cell(&self, field: &Field, row: usize) -> Option<&[u8]> {
        match self {
            Self::Segment(segment) => segment.cell(field, row),
            Self::Group(_) => None,
        }
    }

    /// The bytes of a value and their place. `None` where they do not lie in the unit on their
    /// own: [`Unit::value`] and [`Unit::long_value`] tell what there is.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn near_bytes(&self, field: &Field, row: usize) -> Result<Option<(BytesPlace, &[u8])>> {
        Ok(match self {
            Self::Segment(segment) => segment
                .near_bytes(field, row)?
                .map(|(range, bytes)| (BytesPlace(Place::Segment(range)), bytes)),
            Self::Group(group) => group
                .near_bytes(field, row)
                .map(|(column, word, bytes)| (BytesPlace(Place::Group { column, word }), bytes)),
        })
    }

    /// The place of the bytes of a value, as [`Unit::near_bytes`] tells it.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn near_place(&self, field: &Field, row: usize) -> Result<Option<BytesPlace>> {
        if let Self::Segment(segment) = self {
            let place = segment.near_place(field, row)?;
            return Ok(place.map(|range| BytesPlace(Place::Segment(range))));
        }
        Ok(self.near_bytes(field, row)?.map(|(place, _)| place))
    }

    /// Loads where the values of a row lie and whether it is dead, a hint; likewise below.
    pub(crate) fn touch_places(&self, row: usize) {
        std::hint::black_box(self.deleted(row));
        if let Self::Segment(segment) = self {
            segment.touch_places(row);
        }
    }

    /// Loads the values of a row.
    pub(crate) fn touch_values(&self, row: usize, schema: &Schema) {
        match self {
            Self::Segment(segment) => segment.touch_values(row),
            Self::Group(group) => {
                let of = |field| group.near_bytes(field, row);
                let first = |field| of(field).and_then(|(_, _, bytes)| bytes.first().copied());
                let firsts = schema.fields().iter().take(COLUMNS_MAX).filter_map(first);
                std::hint::black_box(firsts.fold(0, u8::wrapping_add));
            }
        }
    }

    /// The bytes at a place that [`Unit::near_bytes`] gave; empty for one of another unit.
    #[must_use]
    #[inline]
    pub fn bytes_at(&self, place: &BytesPlace) -> &[u8] {
        match (self, &place.0) {
            (Self::Segment(segment), Place::Segment(range)) => {
                segment.raw(range.clone()).unwrap_or_default()
            }
            (Self::Group(group), Place::Group { column, word }) => group.word_bytes(*column, *word),
            _ => &[],
        }
    }
}
