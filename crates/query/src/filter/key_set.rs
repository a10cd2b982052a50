//! A set of whole numbers that the values of a field are looked up in: the keys of a join's other
//! side.
//!
//! | keys | what is kept | a value that is none of them |
//! |---|---|---|
//! | close together | a bit for each number from the least to the greatest | fails |
//! | far apart | a Bloom filter, three bits of one word for each key | mostly fails |
//!
//! A key itself always passes.

use esker_format::order_key::key;
use esker_format::{Codes, ColumnSlice, Data, Validity, ValueRef};

use crate::evaluate::Mask;

/// A bit for each number is kept where it takes so many bits at most, or so many for each key.
const EXACT_BITS_MIN: u64 = 1 << 20;
const EXACT_BITS_PER_KEY: u64 = 32;
/// What a Bloom filter takes for each key, before its words are rounded up to a power of two.
const BLOOM_BITS_PER_KEY: u64 = 12;

/// Whole numbers, looked up by the thousand.
#[derive(Debug)]
pub(crate) struct KeySet {
    least: i64,
    greatest: i64,
    words: Vec<u64>,
    /// Of a Bloom filter: how far a hash is shifted to give the number of its word.
    bloom_shift: Option<u32>,
}

/// The keys that a field may have.
#[derive(Debug)]
pub(crate) struct FieldKeys {
    /// The field's position in the source.
    pub(crate) position: usize,
    pub(crate) keys: KeySet,
}

impl KeySet {
    /// The set of some keys; `None` for none.
    pub(crate) fn new(keys: &[i64]) -> Option<Self> {
        let (least, greatest) = (*keys.iter().min()?, *keys.iter().max()?);
        let (words, bloom_shift) = size(least, greatest, keys.len());
        let words = vec![0u64; words];
        let mut set = Self { least, greatest, words, bloom_shift };
        for key in keys {
            let (at, bits) = set.place(*key);
            set.words.get_mut(at).into_iter().for_each(|word| *word |= bits);
        }
        Some(set)
    }

    /// How many bytes of memory a set of so many keys between two takes.
    pub(crate) fn bytes_of(least: i64, greatest: i64, keys: usize) -> usize {
        size(least, greatest, keys).0.saturating_mul(8)
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Whether other numbers than the keys may pass.
    pub(crate) fn is_bloom(&self) -> bool {
        self.bloom_shift.is_some()
    }

    /// The word of a key, and its bits there.
    fn place(&self, key: i64) -> (usize, u64) {
        let above = key.wrapping_sub(self.least).cast_unsigned();
        match self.bloom_shift {
            None => (usize::try_from(above / 64).unwrap_or(usize::MAX), 1 << (above % 64)),
            Some(shift) => {
                let hash = above.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
                let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
                (usize::try_from(hash >> shift).unwrap_or(usize::MAX), bits)
            }
        }
    }

    fn has(&self, key: i64) -> bool {
        let (at, bits) = self.place(key);
        let is_marked = self.words.get(at).is_some_and(|word| word & bits == bits);
        is_marked & (key >= self.least) & (key <= self.greatest)
    }

    /// Removes the rows whose value is NULL or none of the keys; values that are no whole numbers
    /// of 64 bits stay.
    pub(crate) fn keep(&self, column: &ColumnSlice<'_>, mask: &mut Mask) {
        if !matches!(column.validity, Validity::AllValid) {
            mask.and(&Mask::valid(&column.validity, mask.len()));
        }
        match column.data {
            Data::Constant(ValueRef::Null) => mask.clear(),
            Data::Constant(value)
                if i64::try_from(key(value)).is_ok_and(|number| !self.has(number)) =>
            {
                mask.clear();
            }
            Data::Narrowed { base, codes } => {
                let of = |code: i64| self.has(base.cast_signed().wrapping_add(code));
                match codes {
                    Codes::U8(v) => mask.retain(v, |code| of(i64::from(code))),
                    Codes::U16(v) => mask.retain(v, |code| of(i64::from(code))),
                    Codes::U32(v) => mask.retain(v, |code| of(i64::from(code))),
                }
            }
            Data::I8(v) => self.keep_plain(v, mask),
            Data::I16(v) => self.keep_plain(v, mask),
            Data::I32(v) => self.keep_plain(v, mask),
            Data::I64(v) => self.keep_plain(v, mask),
            Data::U8(v) => self.keep_plain(v, mask),
            Data::U16(v) => self.keep_plain(v, mask),
            Data::U32(v) => self.keep_plain(v, mask),
            _ => {}
        }
    }

    fn keep_plain<T: Copy + Into<i64>>(&self, values: &[T], mask: &mut Mask) {
        mask.retain(values, |value| self.has(value.into()));
    }
}

/// How many words a set takes, and the shift of a Bloom filter.
fn size(least: i64, greatest: i64, keys: usize) -> (usize, Option<u32>) {
    let keys = keys as u64;
    let span = greatest.wrapping_sub(least).cast_unsigned();
    if span < EXACT_BITS_MIN.max(keys.saturating_mul(EXACT_BITS_PER_KEY)) {
        return (usize::try_from(span / 64 + 1).unwrap_or(usize::MAX), None);
    }
    let words = (keys.saturating_mul(BLOOM_BITS_PER_KEY) / 64).next_power_of_two().max(2);
    (usize::try_from(words).unwrap_or(usize::MAX), Some(64 - words.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use esker_format::DataType;

    use super::*;

    fn passing(set: &KeySet, data: Data<'_>, validity: Validity<'_>, len: usize) -> Vec<u32> {
        let mut mask = Mask::all(len);
        set.keep(&ColumnSlice { data_type: DataType::I64, data, validity, len }, &mut mask);
        mask.rows()
    }

    #[test]
    fn keys_pass_and_numbers_close_to_them_do_not() {
        let set = KeySet::new(&[5, -3, 700]).unwrap();
        assert!(!set.is_bloom());
        let values = [-4, -3, -2, 5, 6, 699, 700, 701, i64::MIN, i64::MAX];
        assert_eq!(passing(&set, Data::I64(&values), Validity::AllValid, 10), [1, 3, 6]);
        let nulls = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let validity = Validity::NullBytes(&nulls);
        assert_eq!(passing(&set, Data::I64(&values), validity, 10), [3, 6]);
        let codes = [0u16, 1, 8, 9, 703];
        let narrowed = Data::Narrowed { base: (-3i64).cast_unsigned(), codes: Codes::U16(&codes) };
        assert_eq!(passing(&set, narrowed, Validity::AllValid, 5), [0, 2, 4]);
    }

    #[test]
    fn constants_pass_or_fail_as_one() {
        let set = KeySet::new(&[5]).unwrap();
        for (value, rows) in [(ValueRef::Int(5), 3), (ValueRef::Int(4), 0), (ValueRef::Null, 0)] {
            let passed = passing(&set, Data::Constant(value), Validity::AllValid, 3);
            assert_eq!(passed.len(), rows, "{value:?}");
        }
    }

    #[test]
    fn keys_far_apart_pass_and_few_others_do() {
        let ends = [i64::MIN, i64::MAX, 0, -1];
        let keys: Vec<i64> =
            (0..10_000i64).map(|i| i.wrapping_mul(0x5851_f42d_4c95_7f2d)).collect();
        let keys = [keys.as_slice(), &ends].concat();
        let set = KeySet::new(&keys).unwrap();
        assert!(set.is_bloom());
        assert!(keys.iter().all(|key| set.has(*key)));
        let others = keys.iter().filter(|key| set.has(key.wrapping_add(1_234_567))).count();
        assert!(others < keys.len() / 10, "{others} others of {}", keys.len());
        assert_eq!(set.words.len() * 8, KeySet::bytes_of(i64::MIN, i64::MAX, keys.len()));
    }

    #[test]
    fn a_set_of_nothing_is_none() {
        assert!(KeySet::new(&[]).is_none());
    }
}
