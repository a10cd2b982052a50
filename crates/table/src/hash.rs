//! The keyed hash of primary keys.
//!
//! Folded multiplication: each 8-byte piece is mixed into the state by a 64 × 64 → 128 bit
//! multiplication whose halves are xored, under a secret key of 128 bits that the database drew
//! when it was created. The key keeps anybody who does not know it from choosing keys that
//! collide.

use std::convert::Infallible;

use esker_format::key::one_spelling;
use esker_format::{Schema, ValueRef};

/// Hashes the primary keys of one database.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher {
    key: [u64; 2],
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = halves(u128::from(a) * u128::from(b));
    low ^ high
}

#[inline]
fn halves(v: u128) -> (u64, u64) {
    match v.to_le_bytes().as_chunks::<8>().0 {
        [low, high] => (u64::from_le_bytes(*low), u64::from_le_bytes(*high)),
        _ => (0, 0),
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut array = [0; 8];
    for (to, from) in array.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(array)
}

impl KeyHasher {
    /// A hasher under a secret key.
    #[must_use]
    pub fn new(key: [u64; 2]) -> Self {
        Self { key: [key[0] | 1, key[1] | 1 << 63] }
    }

    /// The hash of one number, for generated keys.
    #[must_use]
    pub fn hash_row_id(&self, row_id: u64) -> u64 {
        self.finish(self.mix(self.key[0], row_id), 8)
    }

    #[inline]
    fn mix(&self, state: u64, piece: u64) -> u64 {
        fold(state ^ piece, self.key[1] ^ 0x9e37_79b9_7f4a_7c15) ^ state.rotate_left(23)
    }

    #[inline]
    fn finish(&self, state: u64, len: u64) -> u64 {
        fold(state ^ len, self.key[0] ^ 0xe703_7ed1_a0b4_28db)
    }

    /// The hash of one byte string.
    #[must_use]
    #[inline]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        self.finish(self.mix_bytes(self.key[0], bytes), 1)
    }

    #[inline]
    fn mix_bytes(&self, mut state: u64, bytes: &[u8]) -> u64 {
        let (words, tail) = bytes.as_chunks::<8>();
        for piece in words {
            state = self.mix(state, u64::from_le_bytes(*piece));
        }
        if !tail.is_empty() {
            state = self.mix(state, word(tail));
        }
        self.mix(state, bytes.len() as u64)
    }

    /// The hash of a key: its values in the order of the key fields, each of its field's type.
    #[must_use]
    pub fn hash_key<'a>(&self, values: impl IntoIterator<Item = ValueRef<'a>>) -> u64 {
        let Ok(hash) = self.hash_read(values.into_iter().map(Ok::<_, Infallible>));
        hash
    }

    /// The same of values that have to be read; an error of one is that of the hash.
    #[inline]
    pub(crate) fn hash_read<'a, E>(
        &self,
        values: impl Iterator<Item = Result<ValueRef<'a>, E>>,
    ) -> Result<u64, E> {
        let mut state = self.key[0];
        let mut count = 0;
        for value in values {
            count += 1;
            state = match value? {
                ValueRef::Text(text) => self.mix_bytes(state, text.as_bytes()),
                ValueRef::Bytes(bytes)
                | ValueRef::Enum(bytes)
                | ValueRef::Json(bytes)
                | ValueRef::List(bytes) => self.mix_bytes(state, bytes),
                ValueRef::Uuid(bytes) | ValueRef::Ipv6(bytes) => self.mix_bytes(state, bytes),
                ValueRef::Interval(bytes) => self.mix_bytes(state, bytes),
                ValueRef::Decimal(v) => {
                    let (low, high) = halves(v.mantissa().cast_unsigned());
                    self.mix(self.mix(state, low), high)
                }
                other => self.mix(state, number_bits(other)),
            };
        }
        Ok(self.finish(state, count))
    }
}

/// Bits that are equal for equal values of one type: floats have one zero and one NaN.
fn number_bits(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Float32(v) => one_spelling(v.into()).to_bits(),
        ValueRef::Float(v) => one_spelling(v).to_bits(),
        // default: only NULL is left, and every NULL hashes alike
        other => other.as_word().map_or(0, i64::cast_unsigned),
    }
}

/// True when the key of `schema` is one field stored as byte strings, the common case with a fast
/// path.
#[must_use]
pub fn is_single_variable_key(schema: &Schema) -> bool {
    match schema.key_positions() {
        [position] => schema.fields().get(*position).is_some_and(|f| f.data_type.is_variable()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_hash_equal_and_others_spread() {
        let hasher = KeyHasher::new([3, 5]);
        let hash = |v: ValueRef<'_>| hasher.hash_key([v]);
        assert_eq!(hash(ValueRef::Float(0.0)), hash(ValueRef::Float(-0.0)));
        assert_eq!(hash(ValueRef::Float(f64::NAN)), hash(ValueRef::Float(-f64::NAN)));
        assert_ne!(hash(ValueRef::Text("a\0")), hash(ValueRef::Text("a")));
        let pair = |a, b| hasher.hash_key([ValueRef::Text(a), ValueRef::Text(b)]);
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
        let mut top = vec![0u32; 256];
        (0..65_536).for_each(|i| top[(hasher.hash_row_id(i) >> 56) as usize] += 1);
        assert!(top.iter().all(|n| (150..400).contains(n)), "top bits are spread evenly");
    }

    #[test]
    fn the_key_changes_the_hash() {
        let (a, b) = (KeyHasher::new([1, 2]), KeyHasher::new([1, 3]));
        assert_ne!(a.hash_bytes(b"x"), b.hash_bytes(b"x"));
    }
}
