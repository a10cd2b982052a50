//! Keys as bytes, numbered in the order in which they are first met.
//!
//! Open addressing; the keys lie end to end in one heap. A slot has half of the hash beside the
//! number, so that other keys on the way are passed by without a look at them. The hash is fixed,
//! so that runs repeat.

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
    /// The lower half of the hash, then the number of the key plus one; 0 for an empty slot. A
    /// power of two long, at most half full.
    slots: Vec<u64>,
    hashes: Vec<u64>,
    /// Where each key ends in `heap`.
    ends: Vec<usize>,
    heap: Vec<u8>,
}

impl KeyTable {
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

    /// The key of a number; empty for a number not given out.
    #[must_use]
    pub fn key(&self, number: usize) -> &[u8] {
        let start = match number {
            0 => 0,
            _ => self.ends.get(number - 1).copied().unwrap_or_default(),
        };
        let end = self.ends.get(number).copied().unwrap_or(start);
        self.heap.get(start..end).unwrap_or_default()
    }

    /// The number of a key; a new one when it is met for the first time.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        self.number_hashed(key, hash(key))
    }

    /// The number of a key; `None` when it has not been met.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        if self.slots.is_empty() { None } else { self.locate(key, hash(key)).ok() }
    }

    /// Notes every key of another table and returns the numbers they have here.
    pub fn absorb(&mut self, other: &Self) -> Vec<u32> {
        self.heap.reserve(other.heap.len());
        while (self.len() + other.len()) * 2 > self.slots.len() {
            self.grow();
        }
        let hashes = other.hashes.iter().enumerate();
        hashes.map(|(i, hash)| self.number_hashed(other.key(i), *hash)).collect()
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fixed = self.slots.capacity() * 8 + (self.hashes.capacity() + self.ends.capacity()) * 8;
        fixed + self.heap.capacity()
    }

    fn number_hashed(&mut self, key: &[u8], hash: u64) -> u32 {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let at = match self.locate(key, hash) {
            Ok(number) => return number,
            Err(at) => at,
        };
        let number = u32::try_from(self.len()).unwrap_or(u32::MAX - 1);
        self.hashes.push(hash);
        self.heap.extend_from_slice(key);
        self.ends.push(self.heap.len());
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = slot_of(hash, number);
        }
        number
    }

    /// The number of a key, or the empty slot where it belongs. There are slots.
    fn locate(&self, key: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = spread(hash) & mask;
        loop {
            let slot = self.slots.get(at).copied().unwrap_or_default();
            if slot == 0 {
                return Err(at);
            }
            if slot >> NUMBER_BITS == hash & NUMBER_MASK {
                let number = (slot & NUMBER_MASK) - 1;
                let index = usize::try_from(number).unwrap_or(usize::MAX);
                if self.hashes.get(index) == Some(&hash) && self.key(index) == key {
                    return Ok(u32::try_from(number).unwrap_or(u32::MAX));
                }
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(64);
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

const NUMBER_BITS: u32 = 32;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

fn slot_of(hash: u64, number: u32) -> u64 {
    hash << NUMBER_BITS | (u64::from(number) + 1)
}

/// The bits of a hash that choose a slot.
fn spread(hash: u64) -> usize {
    usize::try_from(hash >> NUMBER_BITS).unwrap_or_default()
}

/// A hash of bytes: eight at a time, each folded in by a 128-bit multiplication.
fn hash(key: &[u8]) -> u64 {
    const START: u64 = 0x9e37_79b9_7f4a_7c15;
    let (eights, rest) = key.as_chunks::<8>();
    let mut hash = START ^ key.len() as u64;
    for eight in eights {
        hash = fold(hash ^ u64::from_le_bytes(*eight));
    }
    let mut last = [0u8; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    fold(hash ^ u64::from_le_bytes(last))
}

#[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
fn fold(v: u64) -> u64 {
    let wide = u128::from(v ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
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
