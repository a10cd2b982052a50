//! From keys to rows: the first row of each key, and from each row the next of the same key.
//!
//! ```text
//! key 7 ─► slot ─► row 2 ─► row 5 ─► row 9 ─► none
//! ```
//!
//! Single whole numbers are hashed as they are, or are places themselves where they lie close
//! together. Any other keys are written as bytes and numbered.

use esker_format::{DataType, KeyTable, Value, ValueRef};

use super::NONE;
use crate::bound::Bound;
use crate::evaluate::key_codec::decode;
use crate::evaluate::{Lanes, Vector};
use crate::exec::aggregate::group::encode;
use crate::{Options, Result, ZONE_ROWS};

/// After so many rows it is seen whether the query is to end.
const LOOK_ROWS: usize = 8 * ZONE_ROWS;

/// The rows of each key, ascending.
#[derive(Debug)]
pub(super) struct Index {
    places: Places,
    /// The first row of each place.
    first: Vec<u32>,
    /// The next row of the same key.
    next: Vec<u32>,
}

/// Where the first row of a key is noted.
#[derive(Debug)]
enum Places {
    /// There is no key: every row matches.
    One,
    /// At the number itself, less the least.
    Near { least: i64 },
    /// At a slot by hash; the keys of the rows tell which. `shift` leaves the bits that choose.
    Hashed { keys: Vec<i64>, shift: u32 },
    /// At the number of the key's bytes.
    Numbered { table: KeyTable },
}

/// Keys of rows, gathered.
#[derive(Debug)]
pub(super) enum Keys {
    /// There are none.
    None,
    /// Single whole numbers, and which rows are NULL.
    Ints { values: Vec<i64>, nulls: Vec<u32> },
    /// As bytes end to end, and where each ends; a row with NULL has none.
    Bytes { heap: Vec<u8>, ends: Vec<usize> },
}

impl Keys {
    /// No rows yet, for keys of this form.
    pub(super) fn new(keys: &[Bound], floats: &[bool]) -> Self {
        match keys {
            [] => Self::None,
            [only] if is_int(only) && floats == [false] => {
                Self::Ints { values: Vec::new(), nulls: Vec::new() }
            }
            _ => Self::Bytes { heap: Vec::new(), ends: Vec::new() },
        }
    }

    /// Adds the keys of some rows.
    pub(super) fn push(&mut self, vectors: &[Vector<'_>], rows: usize) {
        match self {
            Self::None => {}
            Self::Ints { values, nulls } => {
                let Some(vector) = vectors.first() else { return };
                let Lanes::Ints(lanes) = &vector.lanes else { return };
                let start = values.len();
                if let Some(marks) = &vector.nulls {
                    let marked = marks.iter().enumerate().filter(|(_, null)| **null);
                    nulls.extend(marked.map(|(i, _)| row_number(start + i)));
                }
                values.extend_from_slice(lanes);
            }
            Self::Bytes { heap, ends } => {
                for i in 0..rows {
                    if vectors.iter().all(|vector| !vector.is_null(i)) {
                        vectors.iter().for_each(|vector| encode(heap, vector, i));
                    }
                    ends.push(heap.len());
                }
            }
        }
    }

    /// Adds keys of later rows.
    pub(super) fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Ints { values, nulls }, Self::Ints { values: more, nulls: more_nulls }) => {
                let start = row_number(values.len());
                nulls.extend(more_nulls.into_iter().map(|row| row + start));
                values.extend(more);
            }
            (Self::Bytes { heap, ends }, Self::Bytes { heap: more, ends: more_ends }) => {
                let start = heap.len();
                ends.extend(more_ends.into_iter().map(|end| end + start));
                heap.extend(more);
            }
            _ => {}
        }
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Ints { values, nulls } => values.capacity() * 8 + nulls.capacity() * 4,
            Self::Bytes { heap, ends } => heap.capacity() + ends.capacity() * 8,
        }
    }
}

/// True when a key lies in lanes of signed words.
pub(super) fn is_int(key: &Bound) -> bool {
    let none = Vector::nulls(key.data_type(), 0);
    matches!(none.lanes, Lanes::Ints(_))
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(NONE)
}

impl Index {
    /// The index of `rows` rows.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn new(keys: Keys, rows: usize, options: &Options) -> Result<Self> {
        match keys {
            Keys::None => {
                let next = (1..=rows).map(|row| if row < rows { row_number(row) } else { NONE });
                let first = vec![if rows > 0 { 0 } else { NONE }];
                Ok(Self { places: Places::One, first, next: next.collect() })
            }
            Keys::Ints { values, nulls } => Self::of_ints(values, &nulls, options),
            Keys::Bytes { heap, ends } => Self::of_bytes(&heap, &ends, options),
        }
    }

    fn of_ints(keys: Vec<i64>, nulls: &[u32], options: &Options) -> Result<Self> {
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        keys.iter().for_each(|key| (least, greatest) = (least.min(*key), greatest.max(*key)));
        let near_max = keys.len().saturating_mul(4).saturating_add(1_024);
        let span = usize::try_from(i128::from(greatest) - i128::from(least)).unwrap_or(usize::MAX);
        let (places, len) = if span < near_max {
            (Places::Near { least }, span + 1)
        } else {
            let len = (keys.len() * 2).next_power_of_two().max(16);
            (Places::Hashed { keys: Vec::new(), shift: 64 - len.trailing_zeros() }, len)
        };
        let (first, next) = (vec![NONE; len], vec![NONE; keys.len()]);
        let mut index = Self { places, first, next };
        // From the last row on, so that chains ascend.
        let mut left_out = nulls.iter().rev().copied().peekable();
        let mut row = keys.len();
        while row > 0 {
            row -= 1;
            if row.is_multiple_of(LOOK_ROWS) {
                options.expect_time_left()?;
            }
            let number = row_number(row);
            if left_out.next_if_eq(&number).is_none() {
                index.insert(&keys, row, number);
            }
        }
        if let Places::Hashed { keys: kept, .. } = &mut index.places {
            *kept = keys;
        }
        Ok(index)
    }

    fn insert(&mut self, keys: &[i64], row: usize, number: u32) {
        let Some(key) = keys.get(row) else { return };
        let at = match &self.places {
            Places::Near { least } => near(*key, *least),
            Places::Hashed { shift, .. } => slot(&self.first, keys, *shift, *key),
            Places::One | Places::Numbered { .. } => return,
        };
        let (Some(first), Some(next)) = (self.first.get_mut(at), self.next.get_mut(row)) else {
            return;
        };
        (*next, *first) = (*first, number);
    }

    fn of_bytes(heap: &[u8], ends: &[usize], options: &Options) -> Result<Self> {
        let mut table = KeyTable::default();
        let mut numbers = Vec::with_capacity(ends.len());
        let mut start = 0;
        for (row, end) in ends.iter().enumerate() {
            if row.is_multiple_of(LOOK_ROWS) {
                options.expect_time_left()?;
            }
            let key = heap.get(start..*end).unwrap_or_default();
            numbers.push(if key.is_empty() { NONE } else { table.number(key) });
            start = *end;
        }
        let (mut first, mut next) = (vec![NONE; table.len()], vec![NONE; ends.len()]);
        for (row, number) in numbers.iter().enumerate().rev() {
            if let (Some(first), Some(next)) = (first.get_mut(*number as usize), next.get_mut(row))
            {
                (*next, *first) = (*first, row_number(row));
            }
        }
        Ok(Self { places: Places::Numbered { table }, first, next })
    }

    /// The next row of the same key.
    pub(super) fn next(&self, row: u32) -> u32 {
        self.next.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The first row for each of some keys.
    pub(super) fn first(&self, vectors: &[Vector<'_>], rows: usize) -> Vec<u32> {
        let first = |at: usize| self.first.get(at).copied().unwrap_or(NONE);
        match &self.places {
            Places::One => vec![first(0); rows],
            Places::Near { least } => {
                of_ints(
                    vectors,
                    rows,
                    |key| if key < *least { NONE } else { first(near(key, *least)) },
                )
            }
            Places::Hashed { keys, shift } => {
                of_ints(vectors, rows, |key| first(slot(&self.first, keys, *shift, key)))
            }
            Places::Numbered { table } => {
                let mut key = Vec::new();
                let find = |i| {
                    if vectors.iter().any(|vector| vector.is_null(i)) {
                        return NONE;
                    }
                    key.clear();
                    vectors.iter().for_each(|vector| encode(&mut key, vector, i));
                    table.find(&key).map_or(NONE, |number| first(number as usize))
                };
                (0..rows).map(find).collect()
            }
        }
    }

    /// The first row of a key as bytes, of rows that were numbered by such.
    pub(super) fn first_of(&self, key: &[u8]) -> u32 {
        let Places::Numbered { table } = &self.places else { return NONE };
        let number = table.find(key).and_then(|number| self.first.get(number as usize));
        number.copied().unwrap_or(NONE)
    }

    /// The keys, sorted, where they are not more than `most`.
    pub(super) fn values(&self, most: usize, key: &Bound) -> Option<Vec<Value>> {
        let data_type = key.data_type();
        let word = |word: i64| ValueRef::from_word(data_type, word).to_owned();
        let firsts = || self.first.iter().enumerate().filter(|(_, row)| **row != NONE);
        let mut values: Vec<Value> = match &self.places {
            Places::One => return None,
            _ if firsts().nth(most).is_some() => return None,
            Places::Near { least } => {
                let key = |(at, _): (usize, &u32)| i64::try_from(at).ok()?.checked_add(*least);
                firsts().map(key).map(|key| key.map(word)).collect::<Option<_>>()?
            }
            Places::Hashed { keys, .. } => {
                let key = |(_, row): (usize, &u32)| keys.get(*row as usize).copied();
                firsts().map(key).map(|key| key.map(word)).collect::<Option<_>>()?
            }
            // A mark, the length, the bytes.
            Places::Numbered { table } if data_type.is_variable() => {
                let bytes = |number| table.key(number).get(5..).unwrap_or_default();
                let value = |number| ValueRef::from_bytes(data_type, bytes(number)).to_owned();
                (0..table.len()).map(value).collect()
            }
            Places::Numbered { .. } => return None,
        };
        values.sort();
        Some(values)
    }

    /// The words of the key at a place among all keys of a row, whose types are given: of each row
    /// or each tuple of keys, not sorted. `None` where it is none of 64 bits.
    pub(super) fn words(&self, types: &[DataType], at: usize) -> Option<Vec<i64>> {
        let firsts = || self.first.iter().enumerate().filter(|(_, row)| **row != NONE);
        match &self.places {
            Places::One => None,
            Places::Near { least } => {
                let key = |(at, _): (usize, &u32)| i64::try_from(at).ok()?.checked_add(*least);
                firsts().map(key).collect()
            }
            Places::Hashed { keys, .. } => {
                firsts().map(|(_, row)| keys.get(*row as usize).copied()).collect()
            }
            Places::Numbered { table } => {
                let word = |number| {
                    let mut key = table.key(number);
                    for before in types.iter().take(at) {
                        decode(&mut key, *before);
                    }
                    match key.split_first()? {
                        (1, rest) => rest.first_chunk().map(|word| i64::from_le_bytes(*word)),
                        _ => None,
                    }
                };
                (0..table.len()).map(word).collect()
            }
        }
    }

    /// How many keys there are at most.
    pub(super) fn keys_max(&self) -> usize {
        match &self.places {
            Places::Numbered { table } => table.len(),
            _ => self.next.len().min(self.first.len()),
        }
    }

    /// No key is less than the first, nor greater than the second; `None` where that is not known.
    pub(super) fn bounds(&self, key: &Bound) -> Option<[Value; 2]> {
        let [least, greatest] = match &self.places {
            Places::Near { least } => {
                let last = i64::try_from(self.first.len()).ok()?.checked_sub(1)?;
                [*least, least.checked_add(last)?]
            }
            Places::Hashed { keys, .. } => [*keys.iter().min()?, *keys.iter().max()?],
            Places::One | Places::Numbered { .. } => return None,
        };
        let word = |word: i64| ValueRef::from_word(key.data_type(), word).to_owned();
        Some([least, greatest].map(word))
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        let places = match &self.places {
            Places::One | Places::Near { .. } => 0,
            Places::Hashed { keys, .. } => keys.capacity() * 8,
            Places::Numbered { table } => table.bytes(),
        };
        places + (self.first.capacity() + self.next.capacity()) * 4
    }
}

fn near(key: i64, least: i64) -> usize {
    usize::try_from(i128::from(key) - i128::from(least)).unwrap_or(usize::MAX)
}

/// The slot of a key, or the empty one where it belongs.
fn slot(first: &[u32], keys: &[i64], shift: u32, key: i64) -> usize {
    let hash = key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = usize::try_from(hash >> shift).unwrap_or_default();
    let mask = first.len() - 1;
    while let Some(row) = first.get(at).filter(|row| **row != NONE) {
        if keys.get(*row as usize) == Some(&key) {
            break;
        }
        at = (at + 1) & mask;
    }
    at
}

/// The outcome for each key of a vector of whole numbers.
fn of_ints(vectors: &[Vector<'_>], rows: usize, find: impl Fn(i64) -> u32) -> Vec<u32> {
    let Some(Vector { lanes: Lanes::Ints(keys), nulls, .. }) = vectors.first() else {
        return vec![NONE; rows];
    };
    match nulls {
        None => keys.iter().map(|key| find(*key)).collect(),
        Some(nulls) => {
            let both = keys.iter().zip(nulls);
            both.map(|(key, null)| if *null { NONE } else { find(*key) }).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use esker_vfs::Environment;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn building_ends_with_the_query() {
        let options = Options::new(&Environment::os());
        options.inputs.limits.cancel.store(true, Ordering::Relaxed);
        let ints = Keys::Ints { values: (0..100).collect(), nulls: Vec::new() };
        let bytes = Keys::Bytes { heap: vec![7; 100], ends: (1..=100).collect() };
        for keys in [ints, bytes] {
            let error = Index::new(keys, 100, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        }
    }
}
