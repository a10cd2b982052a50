//! Sets of values of several fields, in the order in which they came: one entry for all that are
//! equal.

use esker_format::{Value, ValueRef};

use crate::commit::staged_keys::StagedKeys;

/// Bytes that an entry takes beside its values, about.
const ENTRY_BYTES: usize = 80;

/// Different values, found by their hash.
#[derive(Default)]
pub(crate) struct ValueSet {
    rows: Vec<Vec<Value>>,
    places: StagedKeys,
    bytes: usize,
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
        let is_it = |at: usize| {
            let known = self.rows.get(at);
            known.is_some_and(|known| known.iter().zip(values).all(|(a, b)| a.as_ref() == *b))
        };
        self.places.find(hash, is_it).is_some()
    }

    /// Adds values; false when they were there.
    pub fn insert(&mut self, hash: u64, values: &[ValueRef<'_>]) -> bool {
        if self.contains(hash, values) {
            return false;
        }
        self.places.insert(hash, self.rows.len(), |_| false);
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
