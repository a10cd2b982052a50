//! Keys as bytes, numbered in the order in which they are first met.
//!
//! Open addressing; the keys lie end to end in one heap. A slot has half of the hash beside the
//! number, so that other keys on the way are passed by without a look at them. The hash is fixed,
//! so that runs repeat.

use std::hint::black_box;

use crate::hash;

/// Keys and their numbers.
///
/// ```
/// use esker_format::KeyTable;
///
/// let mut table = KeyTable::default();
/// assert_eq!((table.number(b"red"), table.number(b"blue"), table.number(b"red")), (0, 1, 0));
/// assert_eq!(table.key(1), b"blue");
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    index: HashIndex,
    keys: KeyList,
}

/// Numbers by the hashes of their keys, which lie elsewhere.
///
/// ```
/// use esker_format::HashIndex;
///
/// let mut index = HashIndex::default();
/// index.reserve(1);
/// let slot = index.locate(77, |_| true).unwrap_err();
/// assert_eq!((index.insert(slot, 77), index.locate(77, |number| number == 0)), (0, Ok(0)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HashIndex {
    /// The lower half of the hash, then the number of the key plus one; 0 for an empty slot. A
    /// power of two long, at most half full.
    slots: Vec<u64>,
    hashes: Vec<u64>,
}

/// Byte strings, end to end in one heap.
#[derive(Clone, Debug, Default)]
pub struct KeyList {
    len: usize,
    /// How many of them are a 1 and a word.
    words: usize,
    /// How long each is, while all are as long as the first.
    width: usize,
    /// Where each ends in `heap`, from the first on that has another length; else empty.
    ends: Vec<usize>,
    heap: Vec<u8>,
}

impl KeyList {
    /// Takes all of them away; their room stays.
    pub fn clear(&mut self) {
        (self.len, self.words, self.width) = (0, 0, 0);
        self.ends.clear();
        self.heap.clear();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The one at `i`; empty past the end.
    #[must_use]
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let find = || {
            if self.ends.is_empty() {
                let start = i.checked_mul(self.width)?;
                return self.heap.get(start..start.checked_add(self.width)?);
            }
            let start = if i == 0 { 0 } else { *self.ends.get(i - 1)? };
            self.heap.get(start..*self.ends.get(i)?)
        };
        find().unwrap_or_default() // default: past the end there is none, as said above.
    }

    /// Appends one.
    pub fn push(&mut self, key: &[u8]) {
        if self.len == 0 {
            self.width = key.len();
        } else if self.ends.is_empty() && key.len() != self.width {
            self.ends.extend((1..=self.len).map(|i| i * self.width));
        }
        self.heap.extend_from_slice(key);
        self.words += usize::from(word_of(key).is_some());
        self.len += 1;
        if !self.ends.is_empty() {
            self.ends.push(self.heap.len());
        }
    }

    /// True when each is a 1 and a word, so that those with equal hashes are equal.
    #[must_use]
    pub fn are_told_by_hash(&self) -> bool {
        self.words == self.len
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<usize>() + self.heap.capacity()
    }
}

impl HashIndex {
    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True when there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hashes, by their numbers.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Makes room for so many more keys.
    pub fn reserve(&mut self, more: usize) {
        let len = ((self.len() + more) * 2).next_power_of_two().max(SLOTS_MIN);
        if len > self.slots.len() {
            self.grow_to(len);
        }
    }

    /// The number of a key, of which `is_it` knows whether a number is its, or the slot where it
    /// belongs. There is room.
    ///
    /// # Errors
    /// The slot, when the key is not there.
    #[inline]
    pub fn locate(&self, hash: u64, mut is_it: impl FnMut(usize) -> bool) -> Result<u32, usize> {
        self.locate_among(hash, |number| self.hashes.get(number) == Some(&hash) && is_it(number))
    }

    /// The same, where `is_it` alone decides of keys with the same half of a hash.
    #[inline]
    fn locate_among(&self, hash: u64, mut is_it: impl FnMut(usize) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len().saturating_sub(1);
        let mut at = spread(hash) & mask;
        loop {
            // default: where there are no slots, there is no key.
            let slot = self.slots.get(at).copied().unwrap_or_default();
            if slot == 0 {
                return Err(at);
            }
            if slot >> NUMBER_BITS == hash & NUMBER_MASK {
                // default: half of a slot fits.
                let number = u32::try_from((slot & NUMBER_MASK) - 1).unwrap_or(u32::MAX);
                if is_it(number as usize) {
                    return Ok(number);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts a new key where [`HashIndex::locate`] said, and returns its number.
    #[inline]
    pub fn insert(&mut self, slot: usize, hash: u64) -> u32 {
        debug_assert!(self.len() < u32::MAX as usize, "{} keys", self.len());
        // default: no one has that many keys, which take more than 100 GB.
        let number = u32::try_from(self.len()).unwrap_or(u32::MAX - 1);
        self.hashes.push(hash);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = slot_of(hash, number);
        }
        number
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.slots.capacity() + self.hashes.capacity()) * 8
    }

    fn has_room(&self) -> bool {
        self.len() * 2 < self.slots.len()
    }

    /// Makes so many slots, a power of two.
    fn grow_to(&mut self, len: usize) {
        self.slots.clear();
        self.slots.resize(len, 0);
        for (number, hash) in (0u32..).zip(&self.hashes) {
            let mut at = spread(*hash) & (len - 1);
            while self.slots.get(at).is_some_and(|slot| *slot != 0) {
                at = (at + 1) & (len - 1);
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = slot_of(*hash, number);
            }
        }
    }
}

impl KeyTable {
    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of a number; empty for a number not given out.
    #[must_use]
    pub fn key(&self, number: usize) -> &[u8] {
        self.keys.get(number)
    }

    /// The hashes of the keys, by their numbers. They are the same in every table.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        self.index.hashes()
    }

    /// The keys, by their numbers.
    #[must_use]
    pub fn keys(&self) -> &KeyList {
        &self.keys
    }

    /// The same, without what finds them.
    #[must_use]
    pub fn into_keys(self) -> KeyList {
        self.keys
    }

    /// The number of a key; a new one when it is met for the first time.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        self.number_hashed(key, hash(key))
    }

    /// The numbers of keys, as [`KeyTable::number`] gives them one by one, behind those in `to`.
    pub fn number_all(&mut self, keys: &KeyList, to: &mut Vec<u32>) {
        if (self.len() + keys.len()) * 2 > self.index.slots.len() {
            self.index.reserve(keys.len());
        }
        let hashes: Vec<u64> = (0..keys.len()).map(|i| hash(keys.get(i))).collect();
        // Loads that wait for no other overlap: first those of slots, then those of keys.
        let mask = self.index.slots.len().saturating_sub(1);
        // default: a hint
        let slot = |hash: &u64| self.index.slots.get(spread(*hash) & mask).copied().unwrap_or(0);
        black_box(hashes.iter().map(slot).fold(0, |all, slot| all ^ slot));
        let first = |hash: &u64| match slot(hash) {
            0 => 0,
            // default: a hint
            slot => *self.keys.get((slot & NUMBER_MASK) as usize - 1).first().unwrap_or(&0),
        };
        black_box(hashes.iter().map(first).fold(0, |all, byte| all ^ byte));
        for (i, hash) in hashes.iter().enumerate() {
            to.push(self.number_hashed(keys.get(i), *hash));
        }
    }

    /// The number of a key that is not there, and is from now on. Until one is looked for, nothing
    /// is made that finds them.
    pub fn push(&mut self, key: &[u8]) -> u32 {
        let hash = hash(key);
        if !self.index.slots.is_empty() {
            return self.number_hashed(key, hash);
        }
        self.keys.push(key);
        self.index.insert(usize::MAX, hash)
    }

    /// The number of a key; `None` when it has not been met.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        if self.index.slots.is_empty() {
            let found = (0..self.len()).position(|number| self.key(number) == key)?;
            return u32::try_from(found).ok();
        }
        self.index.locate_among(hash(key), |number| is_same(self.keys.get(number), key)).ok()
    }

    /// Notes every key of another table and returns the numbers they have here.
    pub fn absorb(&mut self, other: &Self) -> Vec<u32> {
        self.keys.heap.reserve(other.keys.heap.len());
        self.index.reserve(other.len());
        let hashes = other.hashes().iter().enumerate();
        hashes.map(|(i, hash)| self.number_hashed(other.key(i), *hash)).collect()
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.keys.bytes()
    }

    fn number_hashed(&mut self, key: &[u8], hash: u64) -> u32 {
        if !self.index.has_room() {
            let wanted = (self.index.len() * 2 + 1).next_power_of_two();
            self.index.grow_to(wanted.max(SLOTS_MIN));
        }
        match self.index.locate_among(hash, |number| is_same(self.keys.get(number), key)) {
            Ok(number) => number,
            Err(slot) => {
                self.keys.push(key);
                self.index.insert(slot, hash)
            }
        }
    }
}

/// Whether two keys are the same. Most are a few words, for which a call takes longer than this.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let ((a_words, a_rest), (b_words, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    a.len() == b.len()
        && a_words.iter().zip(b_words).all(|(a, b)| a == b)
        && a_rest.iter().zip(b_rest).all(|(a, b)| a == b)
}

/// The fewest slots, a power of two.
const SLOTS_MIN: usize = 64;

const NUMBER_BITS: u32 = 32;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

fn slot_of(hash: u64, number: u32) -> u64 {
    hash << NUMBER_BITS | (u64::from(number) + 1)
}

/// The bits of a hash that choose a slot.
fn spread(hash: u64) -> usize {
    usize::try_from(hash >> NUMBER_BITS).unwrap_or_default() // default: 32 bits fit.
}

/// The word behind a 1: most keys are that, of one number that is not NULL.
#[inline]
fn word_of(key: &[u8]) -> Option<u64> {
    match key.split_first_chunk::<1>()? {
        ([1], word) => Some(u64::from_le_bytes(word.try_into().ok()?)),
        _ => None,
    }
}

/// The hash of a key.
#[inline]
fn hash(key: &[u8]) -> u64 {
    match word_of(key) {
        Some(word) => hash::of_word(word),
        None => hash::of_bytes(key),
    }
}

#[cfg(test)]
mod tests {
    use super::KeyTable;

    #[test]
    fn keys_are_numbered_as_they_are_met() {
        let mut table = KeyTable::default();
        let keys: Vec<Vec<u8>> = (0..5_000u32)
            .map(|i| i.to_le_bytes().into_iter().cycle().take(4 + (i % 9) as usize).collect())
            .collect();
        for _ in 0..2 {
            for (i, key) in (0u32..).zip(&keys) {
                assert_eq!(table.number(key), i);
                assert_eq!(table.key(i as usize), key.as_slice());
            }
        }
        assert_eq!(table.len(), keys.len());
        for (i, key) in (0u32..).zip(&keys) {
            assert_eq!(table.find(key), Some(i));
        }
        assert_eq!((table.find(b"another"), KeyTable::default().find(b"any")), (None, None));
    }

    #[test]
    fn keys_of_one_length_and_then_of_others_are_found() {
        let mut table = KeyTable::default();
        let keys = [&b"abc"[..], b"abd", b"", b"abcdefghi", b"abcdefghj", b"abc\0"];
        for (i, key) in (0u32..).zip(keys) {
            assert_eq!((table.number(key), table.len()), (i, i as usize + 1));
            for (j, before) in keys.iter().enumerate().take(i as usize + 1) {
                assert_eq!(table.key(j), *before);
            }
        }
        let mut empty = KeyTable::default();
        assert_eq!((empty.number(b""), empty.number(b"")), (0, 0));
        assert_eq!((empty.number(b"x"), empty.key(0), empty.key(1)), (1, &b""[..], &b"x"[..]));
        assert_eq!(empty.key(2), b"");
    }

    #[test]
    fn keys_that_are_pushed_are_found() {
        let mut table = KeyTable::default();
        let key = |i: u64| [&[1u8][..], &(i * 0x1_0001).to_le_bytes()].concat();
        for i in 0..1_000u64 {
            assert_eq!(u64::from(table.push(&key(i))), i);
        }
        assert!(table.keys().are_told_by_hash());
        assert_eq!((table.find(&key(7)), table.find(&key(1_000))), (Some(7), None));
        assert_eq!((table.number(&key(999)), table.number(&[0])), (999, 1_000));
        assert!(!table.keys().are_told_by_hash());
        assert_eq!(table.push(&[2]), 1_001);
        assert_eq!((table.find(&key(8)), table.find(&[2])), (Some(8), Some(1_001)));
    }

    #[test]
    fn absorbing_translates_numbers() {
        let (mut a, mut b) = (KeyTable::default(), KeyTable::default());
        a.number(b"x");
        a.number(b"");
        b.number(b"y");
        b.number(b"x");
        assert_eq!(a.absorb(&b), [2, 0]);
        assert_eq!(a.key(2), b"y");
    }
}
