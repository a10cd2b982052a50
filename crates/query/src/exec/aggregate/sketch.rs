//! About how many different values a group has.

use esker_format::hash;

use crate::evaluate::Vector;
use crate::evaluate::key_codec::encode;

/// The different values of one group: 4,096 registers, exact up to 256 values.
pub(crate) type Sketch = esker_format::Sketch<12>;

/// The hash of a value of a row. `key` is room to work in.
pub(super) fn hash(vector: &Vector<'_>, i: usize, key: &mut Vec<u8>) -> u64 {
    key.clear();
    encode(key, vector, i);
    hash::of_bytes(key)
}
