//! Sorting rows by whole numbers without comparing them: by counting.
//!
//! Numbers of 16 bits are counted once, and each row goes straight to its place. Others are
//! packed with their positions into words of 64 bits, which are moved by one byte of the number
//! after the other, the lowest first (a radix sort from the least significant digit). Of numbers
//! that do not fit beside a position the highest bits are sorted so; what these leave equal is
//! compared.

use crate::{Error, Result};

/// Bits of a position in a packed word.
const POSITION_BITS: u32 = 22;
const DIGIT_BITS: u32 = u8::BITS;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts rows by their rank, which is at most `greatest`; equal ones keep their order.
///
/// # Errors
/// `Corrupt` when a rank is greater.
pub(super) fn sort_by_rank(
    order: &[u32],
    rank: impl Fn(u32) -> u64,
    greatest: u64,
) -> Result<Vec<u32>> {
    if order.is_sorted_by_key(|row| rank(*row)) {
        return Ok(order.to_vec());
    }
    if let Ok(greatest) = u16::try_from(greatest) {
        return counted(order, rank, greatest);
    }
    if order.len() > 1 << POSITION_BITS {
        let mut sorted = order.to_vec();
        sorted.sort_by_key(|row| rank(*row));
        return Ok(sorted);
    }
    let bits = u64::BITS - greatest.leading_zeros();
    let dropped = bits.saturating_sub(u64::BITS - POSITION_BITS);
    let mut words: Vec<u64> = Vec::with_capacity(order.len());
    for (position, row) in (0u64..).zip(order) {
        words.push(rank(*row) >> dropped << POSITION_BITS | position);
    }
    let words = by_digits(words, POSITION_BITS, bits - dropped);
    let mut sorted = Vec::with_capacity(order.len());
    for word in &words {
        let position = word & ((1 << POSITION_BITS) - 1);
        let row = usize::try_from(position).ok().and_then(|position| order.get(position));
        let missing = || Error::corrupt(format!("no row {position} of {}", order.len()));
        sorted.push(*row.ok_or_else(missing)?);
    }
    if dropped > 0 {
        let mut start = 0;
        for equal in words.chunk_by(|a, b| a >> POSITION_BITS == b >> POSITION_BITS) {
            if let Some(rows) = sorted.get_mut(start..start + equal.len()) {
                // Stable, as the digits are.
                rows.sort_by_key(|row| rank(*row));
            }
            start += equal.len();
        }
    }
    Ok(sorted)
}

/// Each row goes to where the rows of lower rank end.
fn counted(order: &[u32], rank: impl Fn(u32) -> u64, greatest: u16) -> Result<Vec<u32>> {
    let beyond = |rank: u64| Error::corrupt(format!("a rank of {rank}, at most {greatest}"));
    let mut ends = vec![0u32; usize::from(greatest) + 1];
    for row in order {
        let rank = rank(*row);
        *slot(&mut ends, rank).ok_or_else(|| beyond(rank))? += 1;
    }
    to_starts(&mut ends);
    let mut sorted = vec![0; order.len()];
    for row in order {
        let rank = rank(*row);
        let at = slot(&mut ends, rank).ok_or_else(|| beyond(rank))?;
        *sorted.get_mut(*at as usize).ok_or_else(|| beyond(rank))? = *row;
        *at += 1;
    }
    Ok(sorted)
}

fn slot(slots: &mut [u32], rank: u64) -> Option<&mut u32> {
    slots.get_mut(usize::try_from(rank).ok()?)
}

/// Counts become the places where each digit begins.
fn to_starts(counts: &mut [u32]) {
    let mut start = 0;
    for count in counts {
        let here = *count;
        *count = start;
        start += here;
    }
}

/// Sorts words by `bits` bits from bit `low` on.
fn by_digits(mut words: Vec<u64>, low: u32, bits: u32) -> Vec<u64> {
    let passes = bits.div_ceil(DIGIT_BITS);
    let digit = |word: u64, pass: u32| {
        let [digit, ..] = (word >> (low + pass * DIGIT_BITS)).to_le_bytes();
        usize::from(digit)
    };
    let mut counts = vec![[0u32; DIGITS]; passes as usize];
    for word in &words {
        for (pass, counts) in (0..).zip(&mut counts) {
            if let Some(count) = counts.get_mut(digit(*word, pass)) {
                *count += 1;
            }
        }
    }
    let mut moved = vec![0; words.len()];
    for (pass, counts) in (0..).zip(&mut counts) {
        if counts.iter().any(|count| *count as usize == words.len()) {
            continue;
        }
        to_starts(counts);
        for word in &words {
            if let Some(at) = counts.get_mut(digit(*word, pass)) {
                if let Some(place) = moved.get_mut(*at as usize) {
                    *place = *word;
                }
                *at += 1;
            }
        }
        std::mem::swap(&mut words, &mut moved);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_sorted_as_by_comparing(
            ranks in prop::collection::vec(any::<u64>(), 1..300),
            shift in 0u32..64,
        ) {
            let ranks: Vec<u64> = ranks.iter().map(|rank| rank >> shift).collect();
            let greatest = ranks.iter().copied().max().unwrap_or_default();
            let order: Vec<u32> = (0..u32::try_from(ranks.len()).unwrap()).rev().collect();
            let sorted = sort_by_rank(&order, |row| ranks[row as usize], greatest).unwrap();
            let mut wanted = order;
            wanted.sort_by_key(|row| ranks[*row as usize]);
            prop_assert_eq!(sorted, wanted);
        }
    }
}
