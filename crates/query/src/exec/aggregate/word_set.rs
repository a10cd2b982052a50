//! The different words of groups, to be counted.
//!
//! A word and its group lie in the slot that their hash names, or in the next one that is free; a
//! table is at most half full. The highest bits of the hash choose the slot, so that the slots of
//! one table, one after the other, go to rising places of any other.

use std::hint::black_box;

/// Pairs of a group and a word, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct WordSet {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    word: u64,
    /// The number of the group plus one; 0 for an empty slot.
    group: u32,
}

const SLOTS_MIN: usize = 256;

/// How many are looked up at once.
const AT_ONCE: usize = 32;

impl WordSet {
    /// Notes the words of rows, each with its group.
    pub(super) fn add(&mut self, pairs: impl Iterator<Item = (u32, u64)>) {
        let mut slots = pairs.map(|(group, word)| Slot { word, group: group + 1 });
        let mut next = Vec::with_capacity(AT_ONCE);
        loop {
            next.clear();
            next.extend(slots.by_ref().take(AT_ONCE));
            if next.is_empty() {
                return;
            }
            if (self.len + next.len()) * 2 > self.slots.len() {
                // Small tables are soon full again.
                let more = if self.len < 1 << 14 { 4 } else { 2 };
                self.grow_to((self.slots.len() * more).max(SLOTS_MIN));
            }
            self.insert_all(&next);
        }
    }

    /// Notes those of another set, whose groups have other numbers here.
    pub(super) fn merge(&mut self, other: &Self, pairs: &[(u32, u32)]) {
        let len = ((self.len + other.len) * 2).next_power_of_two().max(SLOTS_MIN);
        if len > self.slots.len() {
            self.grow_to(len);
        }
        let mut next = Vec::with_capacity(AT_ONCE);
        for slot in other.slots.iter().filter(|slot| slot.group > 0) {
            if let Some((_, group)) = pairs.get(slot.group as usize - 1) {
                next.push(Slot { group: group + 1, ..*slot });
            }
            if next.len() == AT_ONCE {
                self.insert_all(&next);
                next.clear();
            }
        }
        self.insert_all(&next);
    }

    /// Adds how many words each group has.
    pub(super) fn count(&self, counts: &mut [u64]) {
        for slot in self.slots.iter().filter(|slot| slot.group > 0) {
            let count = counts.get_mut(slot.group as usize - 1);
            count.into_iter().for_each(|count| *count += 1);
        }
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// There are as many free slots.
    fn insert_all(&mut self, new: &[Slot]) {
        // Loads that wait for no other: those of the slots that are wanted next overlap.
        let near = |slot: &Slot| self.slots.get(self.place(*slot)).map_or(0, |slot| slot.group);
        black_box(new.iter().map(near).fold(0, |all, group| all ^ group));
        new.iter().for_each(|slot| self.insert(*slot));
    }

    /// There is a free slot.
    #[inline]
    fn insert(&mut self, new: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.place(new);
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.group == 0 {
                *slot = new;
                self.len += 1;
                return;
            }
            if slot.word == new.word && slot.group == new.group {
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Where a slot belongs. There are slots.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn place(&self, slot: Slot) -> usize {
        let group = u64::from(slot.group).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let wide =
            u128::from(slot.word ^ group ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db_u128;
        let hash = (wide as u64) ^ ((wide >> 64) as u64);
        (hash >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// Makes so many slots, a power of two.
    fn grow_to(&mut self, len: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); len]);
        self.len = 0;
        old.into_iter().filter(|slot| slot.group > 0).for_each(|slot| self.insert(slot));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::WordSet;

    #[test]
    fn words_are_counted_once_in_each_group() {
        let words = |seed: u64| (0..40_000u64).map(move |i| (i * seed) % 7_919 * 0x1_0000_0001);
        let pairs = |seed| words(seed).map(|word| (u32::try_from(word % 5).unwrap(), word));
        let (mut set, mut known) = (WordSet::default(), BTreeSet::new());
        set.add(pairs(3));
        known.extend(pairs(3));
        let mut other = WordSet::default();
        other.add(pairs(11).chain([(0, 0), (4, u64::MAX)]));
        // Groups 0 to 4 of the other are 4 to 0 here.
        set.merge(&other, &[(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]);
        known.extend(pairs(11).map(|(group, word)| (4 - group, word)));
        known.extend([(4, 0), (0, u64::MAX)]);
        let mut counts = [0; 5];
        set.count(&mut counts);
        let expected: Vec<u64> =
            (0..5).map(|g| known.iter().filter(|(group, _)| *group == g).count() as u64).collect();
        assert_eq!(counts.as_slice(), expected);
    }

    #[test]
    fn an_empty_set_has_no_words() {
        let (mut set, mut counts) = (WordSet::default(), [0; 2]);
        set.merge(&WordSet::default(), &[]);
        set.count(&mut counts);
        assert_eq!(counts, [0, 0]);
    }
}
