//! Which staged row has a key, by the hash that its look-up needed anyway.
//!
//! Keys with one hash are those that are there twice, and hardly ever others: the hash has 64 bits
//! and a secret key. So a key is compared only where its hash is staged already.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// The places of staged rows, by the hashes of their keys.
#[derive(Default)]
pub(crate) struct StagedKeys {
    by_hash: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
    /// Those whose hash another key has, too; of one key the last counts.
    beside: Vec<(u64, usize)>,
}

impl StagedKeys {
    /// The place of the key with a hash, which `has_key` knows.
    pub fn find(&self, hash: u64, has_key: impl Fn(usize) -> bool) -> Option<usize> {
        let first = *self.by_hash.get(&hash)?;
        if has_key(first) {
            return Some(first);
        }
        let beside = self.beside.iter().rev().filter(|(other, _)| *other == hash);
        beside.map(|(_, at)| *at).find(|at| has_key(*at))
    }

    /// The key with a hash is at a place now, wherever it was before.
    pub fn insert(&mut self, hash: u64, at: usize, has_key: impl Fn(usize) -> bool) {
        match self.by_hash.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(at);
            }
            Entry::Occupied(mut entry) if has_key(*entry.get()) => {
                entry.insert(at);
            }
            Entry::Occupied(_) => self.beside.push((hash, at)),
        }
    }
}

/// What is hashed is a hash.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_hash_are_told_apart_and_the_last_of_a_key_counts() {
        let mut keys = StagedKeys::default();
        let staged = ["a", "b", "a", "b", "c"];
        for (at, key) in staged.iter().enumerate() {
            assert_eq!(keys.find(8, |at| staged[at] == "c"), None);
            let hash = if *key == "c" { 7 } else { 8 };
            keys.insert(hash, at, |other| staged[other] == *key);
        }
        for (hash, key, place) in [(8, "a", Some(2)), (8, "b", Some(3)), (7, "c", Some(4))] {
            assert_eq!(keys.find(hash, |at| staged[at] == key), place, "{key}");
        }
        assert_eq!(keys.find(8, |at| staged[at] == "d"), None);
        assert_eq!(keys.find(9, |_| true), None);
    }
}
