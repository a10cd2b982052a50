//! Lengths of texts and byte strings, from the offsets alone where every character is one byte.

use std::ops::RangeInclusive;

use esker_format::{BytesReader, ColumnSlice, Data, Validity};

use super::range;
use crate::evaluate::Mask;
use crate::pieces::character_count;
use crate::predicate::Key;

/// Removes the rows whose length is outside a range, or with `negated` those inside. The least and
/// the greatest length of all rows that are not NULL, if there are any.
pub(super) fn keep(
    column: &ColumnSlice<'_>,
    bounds: (Key, Key),
    negated: bool,
    in_characters: bool,
    mask: &mut Mask,
) -> Option<RangeInclusive<u32>> {
    let lengths: Vec<u32> = match column.data {
        Data::Variable { offsets, start, heap }
            if !in_characters || is_ascii(offsets, start, heap) =>
        {
            let ends = offsets.get(1..).unwrap_or_default();
            offsets.iter().zip(ends).map(|(from, to)| to.wrapping_sub(*from)).collect()
        }
        _ => {
            let mut reader = BytesReader::new(column);
            let length = |row| {
                let text = reader.bytes(row);
                let length = if in_characters { character_count(text) } else { text.len() };
                u32::try_from(length).unwrap_or(u32::MAX)
            };
            (0..mask.len()).map(length).collect()
        }
    };
    range::keep(Data::U32(&lengths), bounds, negated, mask);
    let (mut least, mut greatest) = (u32::MAX, 0);
    let mut add = |length: u32| (least, greatest) = (least.min(length), greatest.max(length));
    match column.validity {
        // A loop without exits takes many at a time.
        Validity::AllValid => lengths.iter().for_each(|length| add(*length)),
        _ => Mask::valid(&column.validity, mask.len())
            .for_each(|row| lengths.get(row).copied().into_iter().for_each(&mut add)),
    }
    (least <= greatest).then_some(least..=greatest)
}

/// Whether all texts of a column are ASCII.
fn is_ascii(offsets: &[u32], start: u32, heap: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return true };
    let place = |offset: &u32| offset.wrapping_sub(start) as usize;
    heap.get(place(first)..place(last)).is_some_and(<[u8]>::is_ascii)
}
