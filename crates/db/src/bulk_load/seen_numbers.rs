//! Numbers that were seen: a page of bits for those that lie close together, as most row keys do,
//! and a set for the others.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use crate::commit::staged_keys::AsItIs;

/// Words of a page.
const PAGE_WORDS: usize = 512;
/// Numbers of a page.
const PAGE_NUMBERS: u64 = PAGE_WORDS as u64 * 64;
/// Pages that there may be however few numbers they have.
const PAGES_MIN: usize = 16;
/// Numbers that a page has at least, on average, where there are more pages.
const NUMBERS_EACH_MIN: usize = 256;
/// Bytes that a number of the set takes, at most about.
const NUMBER_BYTES: usize = 24;

/// Numbers that were seen.
#[derive(Default)]
pub(super) struct SeenNumbers {
    /// By the number of the page, spread.
    pages: HashMap<u64, Box<[u64; PAGE_WORDS]>, BuildHasherDefault<AsItIs>>,
    /// How many numbers the pages have.
    in_pages: usize,
    /// Spread as well.
    others: HashSet<u64, BuildHasherDefault<AsItIs>>,
}

impl SeenNumbers {
    /// True when a number was seen.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let (page, word, bit) = place(number);
        let words = self.pages.get(&page).and_then(|page| page.get(word));
        words.is_some_and(|word| word & bit != 0)
            || (!self.others.is_empty() && self.others.contains(&spread(number)))
    }

    /// Notes a number that was not seen.
    pub fn insert(&mut self, number: u64) {
        let (page, word, bit) = place(number);
        let may_have_page = self.pages.len() < PAGES_MIN.max(self.in_pages / NUMBERS_EACH_MIN);
        let words = match self.pages.get_mut(&page) {
            Some(words) => words,
            None if may_have_page => self.pages.entry(page).or_insert(Box::new([0; PAGE_WORDS])),
            None => {
                self.others.insert(spread(number));
                return;
            }
        };
        if let Some(word) = words.get_mut(word) {
            self.in_pages += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.pages.len() * (PAGE_WORDS * 8 + NUMBER_BYTES) + self.others.capacity() * NUMBER_BYTES
    }
}

/// The page of a number, spread, the word within it, and the bit.
fn place(number: u64) -> (u64, usize, u64) {
    let within = number % PAGE_NUMBERS;
    #[allow(clippy::cast_possible_truncation, reason = "below PAGE_WORDS")]
    let word = (within / 64) as usize;
    (spread(number / PAGE_NUMBERS), word, 1 << (within % 64))
}

/// A number with its bits spread: as good as a hash, and no two numbers have the same.
fn spread(number: u64) -> u64 {
    // The golden ratio, which is odd.
    let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_and_scattered_numbers_are_seen_once_noted() {
        let mut seen = SeenNumbers::default();
        let scattered = (0..20_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let numbers: Vec<u64> = (0..100_000).chain(scattered).chain([u64::MAX]).collect();
        for number in &numbers {
            if !seen.contains(*number) {
                seen.insert(*number);
            }
        }
        assert!(numbers.iter().all(|number| seen.contains(*number)));
        assert!(![100_000, 1 << 40, u64::MAX - 1].into_iter().any(|number| seen.contains(number)));
        assert!(seen.pages.len() <= 16 + numbers.len() / NUMBERS_EACH_MIN);
        assert!(seen.byte_count() < 60 * numbers.len());
    }
}
