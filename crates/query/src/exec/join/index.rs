//! From keys to rows: the first row of each key, and from each row the next of the same key.
//!
//! ```text
//! key 7 ─► slot ─► row 2 ─► row 5 ─► row 9 ─► none
//! ```
//!
//! Single whole numbers are hashed as they are, or are places themselves where they lie close
//! together. Any other keys are written as bytes and numbered.
//!
//! All threads fill the index: places next to each other are a share, and so are the keys of which
//! the hashes begin alike ([`Shares`]). A task has a share of the rows, and the places of that
//! share for itself. Chains ascend, whatever shares there are.
//!
//! Invariants
//! 1. The rows of a key are in one share, and the place of a key is in it.
//! 2. Of hashed keys, each share has more slots than rows: a search for a slot ends.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use esker_format::{DataType, KeyTable, Value, ValueRef, hash};
use esker_vfs::parallel_map;

use super::NONE;
use super::matched::Marks;
use super::shares::{self, Shares};
use crate::bound::Bound;
use crate::evaluate::key_codec::decode;
use crate::evaluate::{Lanes, Vector};
use crate::exec::aggregate::group::encode;
use crate::{Options, Result, ZONE_ROWS};

/// After so many rows it is seen whether the query is to end.
const LOOK_ROWS: usize = 8 * ZONE_ROWS;

/// What a whole number is multiplied by to be hashed.
const HASH: u64 = 0x9e37_79b9_7f4a_7c15;

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
    /// At a slot by hash; the keys of the rows tell which.
    Hashed { keys: Vec<i64>, slots: Slots },
    /// At the number of the key's bytes: a table for each share of the hashes, and the first place
    /// of each.
    Numbered { tables: Vec<(KeyTable, usize)> },
}

/// Which slots there are. All of them, and those of a share, are a power of two.
#[derive(Clone, Copy, Debug)]
struct Slots {
    /// What leaves the bits of a hash that choose.
    shift: u32,
    /// How many a share has.
    width: usize,
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
        let wanted = shares::worth(keys.len(), options);
        let next = Next::new(keys.len());
        let mut left_out = Marks::new(if nulls.is_empty() { 0 } else { keys.len() });
        nulls.iter().for_each(|row| left_out.set(*row));
        let ints = Ints { keys: &keys, left_out: &left_out, next: &next };
        if span < near_max {
            let mut first = vec![NONE; span + 1];
            let width = first.len().div_ceil(wanted).next_power_of_two();
            let bits = width.trailing_zeros();
            let shares = Shares::new(keys.len(), first.len().div_ceil(width), options, |row| {
                ints.keys.get(row).map_or(0, |key| near(*key, least) >> bits)
            })?;
            let width = if shares.count() == 1 { first.len() } else { width };
            let places = first.chunks_mut(width).enumerate();
            ints.fill(&shares, places, options, |share, _, key| near(key, least) - share * width)?;
            return Ok(Self { places: Places::Near { least }, first, next: next.into_rows() });
        }
        let len = (keys.len() * 2).next_power_of_two().max(16);
        let shift = 64 - len.trailing_zeros();
        let count = wanted.min(len / 2);
        let width = len / count;
        let mut shares = Shares::new(keys.len(), count, options, |row| {
            ints.keys.get(row).map_or(0, |key| hashed(*key, shift) / width)
        })?;
        // Where one share has most keys, its slots do not hold them: then all slots are one share.
        if (0..shares.count()).any(|share| shares.len(share) >= len / shares.count()) {
            shares = Shares::one(keys.len(), options);
        }
        let slots = Slots { shift, width: len / shares.count() };
        let mut first = vec![NONE; len];
        let places = first.chunks_mut(slots.width).enumerate();
        ints.fill(&shares, places, options, |_, first, key| {
            slots.find(first, ints.keys, hashed(key, shift) & (slots.width - 1), key)
        })?;
        let next = next.into_rows();
        Ok(Self { places: Places::Hashed { keys, slots }, first, next })
    }

    fn of_bytes(heap: &[u8], ends: &[usize], options: &Options) -> Result<Self> {
        let key = |row: usize| {
            // default: the first key begins at the start
            let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied();
            let range = start.unwrap_or_default()..ends.get(row).copied().unwrap_or_default();
            heap.get(range).unwrap_or_default()
        };
        let (next, wanted) = (Next::new(ends.len()), shares::worth(ends.len(), options));
        let share_of = |row| share_of(key(row), wanted);
        let shares = Shares::new(ends.len(), wanted, options, share_of)?;
        let numbers: Vec<usize> = (0..shares.count()).collect();
        let filled: Vec<Result<_>> = parallel_map(&*options.tasks, &numbers, |share| {
            let mut table = KeyTable::default();
            let mut numbers = Vec::with_capacity(shares.len(*share));
            let mut look = Look::new(options);
            for row in shares.rows(*share) {
                look.after_row()?;
                let key = key(row);
                numbers.push(if key.is_empty() { NONE } else { table.number(key) });
            }
            let mut first = vec![NONE; table.len()];
            for (row, number) in shares.rows(*share).rev().zip(numbers.iter().rev()) {
                let place = first.get_mut(*number as usize);
                place.into_iter().for_each(|first| next.lead(row, first));
            }
            Ok((table, first))
        });
        drop(shares);
        let (mut tables, mut first) = (Vec::with_capacity(filled.len()), Vec::new());
        for filled in filled {
            let (table, places) = filled?;
            tables.push((table, first.len()));
            match first.is_empty() {
                true => first = places,
                false => first.extend(places),
            }
        }
        Ok(Self { places: Places::Numbered { tables }, first, next: next.into_rows() })
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
            Places::Hashed { keys, slots } => of_ints(vectors, rows, |key| {
                first(slots.find(&self.first, keys, hashed(key, slots.shift), key))
            }),
            Places::Numbered { .. } => {
                let mut key = Vec::new();
                let find = |i| {
                    if vectors.iter().any(|vector| vector.is_null(i)) {
                        return NONE;
                    }
                    key.clear();
                    vectors.iter().for_each(|vector| encode(&mut key, vector, i));
                    self.first_of(&key)
                };
                (0..rows).map(find).collect()
            }
        }
    }

    /// The first row of a key as bytes, of rows that were numbered by such.
    pub(super) fn first_of(&self, key: &[u8]) -> u32 {
        let Places::Numbered { tables } = &self.places else { return NONE };
        let share = share_of(key, tables.len());
        let Some((table, start)) = tables.get(share) else { return NONE };
        let number = table.find(key).and_then(|number| self.first.get(start + number as usize));
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
            Places::Numbered { tables } if data_type.is_variable() => {
                let bytes = |key: &[u8]| {
                    let bytes = key.get(5..).unwrap_or_default();
                    ValueRef::from_bytes(data_type, bytes).to_owned()
                };
                keys_of(tables).map(bytes).collect()
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
            Places::Numbered { tables } => {
                let word = |mut key: &[u8]| {
                    for before in types.iter().take(at) {
                        decode(&mut key, *before);
                    }
                    match key.split_first()? {
                        (1, rest) => rest.first_chunk().map(|word| i64::from_le_bytes(*word)),
                        _ => None,
                    }
                };
                keys_of(tables).map(word).collect()
            }
        }
    }

    /// How many keys there are at most.
    pub(super) fn keys_max(&self) -> usize {
        match &self.places {
            Places::Numbered { .. } => self.first.len(),
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
            Places::Numbered { tables } => tables.iter().map(|(table, _)| table.bytes()).sum(),
        };
        places + (self.first.capacity() + self.next.capacity()) * 4
    }
}

fn near(key: i64, least: i64) -> usize {
    usize::try_from(i128::from(key) - i128::from(least)).unwrap_or(usize::MAX)
}

/// The slot that a key has by its hash.
fn hashed(key: i64, shift: u32) -> usize {
    let hash = key.cast_unsigned().wrapping_mul(HASH);
    usize::try_from(hash >> shift).unwrap_or_default()
}

/// Which of so many shares, a power of two, has a key as bytes.
fn share_of(key: &[u8], count: usize) -> usize {
    match count.trailing_zeros() {
        0 => 0,
        bits => usize::try_from(hash::of_bytes(key) >> (u64::BITS - bits)).unwrap_or_default(),
    }
}

fn keys_of(tables: &[(KeyTable, usize)]) -> impl Iterator<Item = &[u8]> {
    tables.iter().flat_map(|(table, _)| (0..table.len()).map(|number| table.key(number)))
}

impl Slots {
    /// The slot of a key, or the empty one where it belongs, from that of its hash on; of a
    /// share of them as of all.
    fn find(self, first: &[u32], keys: &[i64], mut at: usize, key: i64) -> usize {
        let mask = self.width - 1;
        while let Some(row) = first.get(at).filter(|row| **row != NONE) {
            if keys.get(*row as usize) == Some(&key) {
                break;
            }
            at = at & !mask | (at + 1) & mask;
        }
        at
    }
}

/// For each row the next one of the same key. Tasks write it at once, each that of its own rows.
#[derive(Debug)]
struct Next(Vec<AtomicU32>);

impl Next {
    fn new(rows: usize) -> Self {
        Self((0..rows).map(|_| AtomicU32::new(NONE)).collect())
    }

    /// Puts a row before those that a place leads to.
    fn lead(&self, row: usize, first: &mut u32) {
        if let Some(next) = self.0.get(row) {
            next.store(*first, Ordering::Relaxed);
            *first = row_number(row);
        }
    }

    fn into_rows(self) -> Vec<u32> {
        self.0.into_iter().map(AtomicU32::into_inner).collect()
    }
}

/// Looks from time to time whether the query is to end.
struct Look<'o> {
    options: &'o Options,
    rows: usize,
}

impl<'o> Look<'o> {
    fn new(options: &'o Options) -> Self {
        Self { options, rows: 0 }
    }

    fn after_row(&mut self) -> Result<()> {
        self.rows += 1;
        match (self.rows - 1).is_multiple_of(LOOK_ROWS) {
            true => self.options.expect_time_left(),
            false => Ok(()),
        }
    }
}

/// Whole numbers of which an index is made.
struct Ints<'i> {
    keys: &'i [i64],
    /// The rows that are NULL.
    left_out: &'i Marks,
    next: &'i Next,
}

impl Ints<'_> {
    /// Fills the places of each share, of which `place` finds that of a key.
    fn fill<'f>(
        &self,
        shares: &Shares<'_>,
        places: impl Iterator<Item = (usize, &'f mut [u32])>,
        options: &Options,
        place: impl Fn(usize, &[u32], i64) -> usize + Sync,
    ) -> Result<()> {
        let places: Vec<_> = places.map(|(share, first)| (share, Mutex::new(first))).collect();
        let filled = parallel_map(&*options.tasks, &places, |(share, first)| {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            let mut look = Look::new(options);
            // From the last row on, so that chains ascend.
            shares.rows(*share).rev().try_for_each(|row| {
                look.after_row()?;
                let Some(key) = self.keys.get(row) else { return Ok(()) };
                if !self.left_out.has(row_number(row)) {
                    let at = place(*share, &first, *key);
                    first.get_mut(at).into_iter().for_each(|first| self.next.lead(row, first));
                }
                Ok(())
            })
        });
        filled.into_iter().collect()
    }
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
    use crate::{ErrorKind, IndexUse};

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

    /// The rows of each of some keys, as a vector finds them.
    fn chains(index: &Index, keys: &[i64]) -> Vec<Vec<u32>> {
        let vector = Vector::new(DataType::I64, Lanes::Ints(keys.into()), None);
        let firsts = index.first(&[vector], keys.len());
        let chain = |first| std::iter::successors(Some(first), |row| Some(index.next(*row)));
        firsts
            .into_iter()
            .map(|first| chain(first).take_while(|row| *row != NONE).collect())
            .collect()
    }

    #[test]
    fn shares_make_the_index_that_one_makes() {
        let one = Options { indexes: IndexUse::Never, ..Options::new(&Environment::os()) };
        let shared = Options { indexes: IndexUse::Always, ..one.clone() };
        let near: Vec<i64> = (0..5_000).map(|row| row * 7 % 3_001).collect();
        let far: Vec<i64> = near.iter().map(|key| key * 1_000_003 - 5).collect();
        // The hash of each is its row: all are in one share, which does not hold them.
        let undone = (0..6).fold(1u64, |undone, _| {
            undone.wrapping_mul(2u64.wrapping_sub(undone.wrapping_mul(HASH)))
        });
        let crowded: Vec<i64> =
            (0..5_000u64).map(|row| row.wrapping_mul(undone).cast_signed()).collect();
        for keys in [near, far, crowded] {
            let ints = || Keys::Ints { values: keys.clone(), nulls: vec![3, 4_999] };
            let encoded = |key: &i64| [&[1], key.to_le_bytes().as_slice()].concat();
            let heap: Vec<u8> = keys.iter().flat_map(encoded).collect();
            let bytes = || Keys::Bytes {
                heap: heap.clone(),
                ends: (1..=keys.len()).map(|row| row * 9).collect(),
            };
            let made: [Index; 4] = [
                Index::new(ints(), keys.len(), &one).unwrap(),
                Index::new(ints(), keys.len(), &shared).unwrap(),
                Index::new(bytes(), keys.len(), &one).unwrap(),
                Index::new(bytes(), keys.len(), &shared).unwrap(),
            ];
            let asked: Vec<i64> = keys.iter().copied().chain([-1, i64::MAX]).collect();
            let expected = |is_ints: bool| -> Vec<Vec<u32>> {
                let mut rows = std::collections::BTreeMap::<i64, Vec<u32>>::new();
                for (row, key) in (0u32..).zip(&keys) {
                    if !(is_ints && [3, 4_999].contains(&row)) {
                        rows.entry(*key).or_default().push(row);
                    }
                }
                asked.iter().map(|key| rows.get(key).cloned().unwrap_or_default()).collect()
            };
            assert_eq!(chains(&made[0], &asked), expected(true));
            assert_eq!(chains(&made[1], &asked), expected(true));
            let of_bytes = |index: &Index| -> Vec<Vec<u32>> {
                let chain = |key: &i64| {
                    let first = index.first_of(&encoded(key));
                    let next = |row: &u32| Some(index.next(*row));
                    std::iter::successors(Some(first), next).take_while(|r| *r != NONE).collect()
                };
                asked.iter().map(chain).collect()
            };
            assert_eq!(of_bytes(&made[2]), expected(false));
            assert_eq!(of_bytes(&made[3]), expected(false));
        }
    }
}
