//! Something for each field of a segment, by its number.
//!
//! Numbers are small for most fields, but not for all: the hidden fields of index runs have the
//! greatest there are, and a table that has had thousands of fields may have few left. A table of
//! all numbers would take megabytes for each segment then.

use esker_format::FieldId;

/// Numbers below this many times the number of fields have a place of their own.
const PLACES: usize = 2;
/// So many more have one.
const PLACES_MORE: usize = 16;

/// What is known of each field.
pub(super) struct ByField<T> {
    /// By number, for numbers below its length.
    low: Vec<Option<T>>,
    /// The fields with greater numbers, in order.
    high: Vec<(FieldId, T)>,
}

impl<T: Copy> ByField<T> {
    /// Of `count` fields at the most.
    pub fn of(fields: impl Iterator<Item = (FieldId, T)>, count: usize) -> Self {
        let limit = PLACES * count + PLACES_MORE;
        let mut this = Self { low: Vec::new(), high: Vec::new() };
        for (field, value) in fields {
            let at = usize::from(field.0);
            if at >= limit {
                this.high.push((field, value));
                continue;
            }
            if this.low.len() <= at {
                this.low.resize(at + 1, None);
            }
            if let Some(place) = this.low.get_mut(at) {
                *place = Some(value);
            }
        }
        this.high.sort_unstable_by_key(|(field, _)| *field);
        this
    }

    /// Of one field.
    #[inline]
    pub fn get(&self, field: FieldId) -> Option<&T> {
        match self.low.get(usize::from(field.0)) {
            Some(value) => value.as_ref(),
            None => self.get_high(field),
        }
    }

    fn get_high(&self, field: FieldId) -> Option<&T> {
        let at = self.high.binary_search_by_key(&field, |(field, _)| *field).ok()?;
        self.high.get(at).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_great_number_takes_no_room_for_all_below_it() {
        let numbers = [u16::MAX, 3, u16::MAX - 1, 40_000, 1];
        let map = ByField::of(numbers.into_iter().map(|n| (FieldId(n), n)), numbers.len());
        assert!(map.low.len() <= 26 && map.high.len() == 3, "{}", map.low.len());
        for number in numbers {
            assert_eq!(map.get(FieldId(number)), Some(&number));
        }
        for number in [0, 2, 4, 39_999, u16::MAX - 2] {
            assert_eq!(map.get(FieldId(number)), None);
        }
    }
}
