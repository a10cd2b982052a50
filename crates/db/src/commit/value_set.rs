//! Sets of values of several fields, in the order in which they came: one entry for all that are
//! equal.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use esker_format::{Value, ValueRef};

/// Bytes that an entry takes beside its values, about.
const ENTRY_BYTES: usize = 80;

/// Different values, by their hash.
#[derive(Default)]
pub(crate) struct ValueSet {
    rows: Vec<Vec<Value>>,
    /// The place of the first with a hash.
    by_hash: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
    /// Those whose hash another one had already.
    others: Vec<(u64, u32)>,
    bytes: usize,
}

/// The values are hashed already.
#[derive(Default)]
struct AsItIs(u64);

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

impl ValueSet {
    /// Bytes that it takes, about.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// All of them, from one on.
    pub fn iter_from(&self, first: usize) -> impl Iterator<Item = &Vec<Value>> {
        self.rows.iter().skip(first)
    }

    /// True when some values are there.
    pub fn contains(&self, hash: u64, values: &[ValueRef<'_>]) -> bool {
        let is_it = |at: &u32| {
            let known = self.rows.get(*at as usize);
            known.is_some_and(|known| known.iter().zip(values).all(|(a, b)| a.as_ref() == *b))
        };
        match self.by_hash.get(&hash) {
            None => false,
            Some(at) if is_it(at) => true,
            Some(_) => self.others.iter().any(|(other, at)| *other == hash && is_it(at)),
        }
    }

    /// Adds values; false when they were there.
    pub fn insert(&mut self, hash: u64, values: &[ValueRef<'_>]) -> bool {
        // default: more than memory holds
        let at = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if self.contains(hash, values) || at == u32::MAX {
            return false;
        }
        match self.by_hash.entry(hash) {
            Entry::Occupied(_) => self.others.push((hash, at)),
            Entry::Vacant(place) => {
                place.insert(at);
            }
        }
        // default: what is no text or bytes has none
        let own: usize = values.iter().map(|v| v.as_bytes().map_or(0, <[u8]>::len)).sum();
        self.bytes += ENTRY_BYTES + values.len() * size_of::<Value>() + own;
        self.rows.push(values.iter().map(|value| (*value).to_owned()).collect());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_one_hash_are_told_apart() {
        let mut set = ValueSet::default();
        let [a, b, c] = [1, 2, 3].map(|n| [ValueRef::Int(n)]);
        assert!(set.insert(7, &a) && set.insert(7, &b) && !set.insert(7, &b) && !set.insert(7, &a));
        assert!(set.contains(7, &b) && !set.contains(7, &c) && !set.contains(8, &a));
        assert_eq!(set.iter_from(1).collect::<Vec<_>>(), [&vec![Value::Int(2)]]);
        assert!(set.byte_count() > 0 && set.len() == 2);
    }
}
