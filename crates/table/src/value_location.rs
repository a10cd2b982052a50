//! Bytes of one value of a row group, where they lie.

use std::ops::Range;

use esker_format::{Field, Schema};

use super::Result;
use crate::segment::COLUMNS_MAX;
use crate::view::RowGroup;

/// Where the bytes of a value lie in its row group, for as long as the row group is held.
#[derive(Clone, Debug)]
pub struct ValueLocation(Place);

#[derive(Clone, Debug)]
enum Place {
    /// Bytes of a segment that have been verified.
    Segment(Range<usize>),
    /// A word of the heap of a group's column.
    Group { column: usize, word: u64 },
}

impl RowGroup {
    /// The bytes of a value where that is quick to tell; [`RowGroup::in_place_bytes`] may tell
    /// them, too, where this does not.
    #[must_use]
    #[inline]
    pub fn cell(&self, field: &Field, row: usize) -> Option<&[u8]> {
        match self {
            Self::Segment(segment) => segment.cell(field, row),
            Self::Group(_) => None,
        }
    }

    /// The bytes of a value and their place. `None` where they do not lie in the row group on their
    /// own: [`RowGroup::value`] and [`RowGroup::long_value`] tell what there is.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn in_place_bytes(
        &self,
        field: &Field,
        row: usize,
    ) -> Result<Option<(ValueLocation, &[u8])>> {
        Ok(match self {
            Self::Segment(segment) => segment
                .in_place_bytes(field, row)?
                .map(|(range, bytes)| (ValueLocation(Place::Segment(range)), bytes)),
            Self::Group(group) => group
                .in_place_bytes(field, row)
                .map(|(column, word, bytes)| (ValueLocation(Place::Group { column, word }), bytes)),
        })
    }

    /// The place of the bytes of a value, as [`RowGroup::in_place_bytes`] tells it.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn value_location(&self, field: &Field, row: usize) -> Result<Option<ValueLocation>> {
        if let Self::Segment(segment) = self {
            let place = segment.value_location(field, row)?;
            return Ok(place.map(|range| ValueLocation(Place::Segment(range))));
        }
        Ok(self.in_place_bytes(field, row)?.map(|(place, _)| place))
    }

    /// Loads where the values of a row lie and whether it is dead, a hint; the same below.
    pub(crate) fn prefetch_locations(&self, row: usize) {
        std::hint::black_box(self.deleted(row));
        if let Self::Segment(segment) = self {
            segment.prefetch_locations(row);
        }
    }

    /// Loads the values of a row.
    pub(crate) fn prefetch_values(&self, row: usize, schema: &Schema) {
        match self {
            Self::Segment(segment) => segment.prefetch_values(row),
            Self::Group(group) => {
                let of = |field| group.in_place_bytes(field, row);
                let first = |field| of(field).and_then(|(_, _, bytes)| bytes.first().copied());
                let firsts = schema.fields().iter().take(COLUMNS_MAX).filter_map(first);
                std::hint::black_box(firsts.fold(0, u8::wrapping_add));
            }
        }
    }

    /// The bytes at a place that [`RowGroup::in_place_bytes`] gave; empty for one of another row
    /// group.
    #[must_use]
    #[inline]
    pub fn bytes_at(&self, place: &ValueLocation) -> &[u8] {
        match (self, &place.0) {
            (Self::Segment(segment), Place::Segment(range)) => {
                // default: empty for a place of another segment, as said above
                segment.raw(range.clone()).unwrap_or_default()
            }
            (Self::Group(group), Place::Group { column, word }) => group.word_bytes(*column, *word),
            _ => &[],
        }
    }
}
