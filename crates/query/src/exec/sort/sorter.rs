//! Ordering rows by keys written as bytes that sort as the values do.
//!
//! Per key of the order: a byte that puts NULLs first or last, then the value in the
//! order-preserving form of [`esker_format::key`], its bits flipped for a descending key. Equal
//! keys keep the order of the rows. With a limit only the best rows are kept: whenever twice as
//! many have come together, the worse half is dropped.

use std::cmp::Ordering;

use esker_format::key::first_words;

pub(crate) use crate::bind::sort_key::encode_value;
use crate::bound::OrderKey;
use crate::evaluate::Vector;
use crate::exec::sort::packed_keys;
use crate::exec::sort::packed_keys::PackedKeys;
use crate::{Options, Result};

/// The most rows that are sorted before it is seen whether the query is to end.
const PIECE_ROWS: usize = 1 << 16;

/// How many bytes of a key are in its entry.
const PREFIX_BYTES: usize = 16;

/// Where a row lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) part: u32,
    pub(crate) row: u32,
}

/// Rows and their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorter {
    /// How many rows are wanted; `usize::MAX` for all.
    wanted: usize,
    entries: Vec<Entry>,
    heap: Vec<u8>,
    /// All there is, where all rows are wanted and keys are short.
    packed: Option<PackedKeys>,
    /// The last row that is wanted, once enough rows are there.
    bar: Option<Bar>,
}

/// A row that no row after it in the order is wanted with.
pub(crate) type Bar = (Vec<u8>, Location);

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first bytes of the key, which mostly decide.
    prefix: [u64; 2],
    start: usize,
    len: u32,
    location: Location,
}

impl Sorter {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// One for the keys of an order.
    pub(crate) fn of(wanted: usize, order: &[OrderKey]) -> Self {
        let is_packed = wanted == usize::MAX && packed_keys::are_short(order);
        Self { packed: is_packed.then(PackedKeys::default), ..Self::new(wanted) }
    }

    /// The same, without rows that come after one that is the last wanted elsewhere.
    pub(crate) fn up_to(mut self, bar: Option<&Bar>) -> Self {
        self.bar = bar.cloned();
        self
    }

    /// The last row that is wanted, once enough rows are there.
    pub(crate) fn bar(&self) -> Option<&Bar> {
        self.bar.as_ref()
    }

    /// True when no row is wanted any more whose key is `least` or comes after it.
    pub(crate) fn has_all_before(&mut self, least: &[u8]) -> bool {
        if self.packed.is_none() && self.entries.len() == self.wanted && self.bar.is_none() {
            self.cut();
        } else {
            self.prune();
        }
        self.bar.as_ref().is_some_and(|(bar, _)| bar.as_slice() < least)
    }

    pub(crate) fn bytes(&self) -> usize {
        let packed = self.packed.as_ref().map_or(0, PackedKeys::bytes);
        packed + self.entries.capacity() * size_of::<Entry>() + self.heap.capacity()
    }

    /// Adds a row. Where all rows are wanted, they come in the order of their locations.
    pub(crate) fn push(&mut self, key: &[u8], location: Location) {
        if let Some(packed) = &mut self.packed {
            return packed.push(key, location);
        }
        let is_past = |(bar, last): &Bar| (key, location) >= (bar.as_slice(), *last);
        if self.bar.as_ref().is_some_and(is_past) {
            return;
        }
        let start = self.heap.len();
        self.heap.extend_from_slice(key);
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { prefix: first_words(key), start, len, location });
        if self.entries.len() > self.wanted.saturating_mul(2).saturating_add(4_096) {
            self.prune();
        }
    }

    /// Adds the rows of another sorter. Where all rows are wanted, they come later.
    pub(crate) fn take(&mut self, other: Self) {
        let is_first = self.len() == 0 && self.bar.is_none() && self.wanted == other.wanted;
        if is_first && self.packed.is_some() == other.packed.is_some() {
            *self = other;
        } else {
            self.merge(&other);
        }
    }

    /// The same of one that stays.
    pub(crate) fn merge(&mut self, other: &Self) {
        if let (Some(packed), Some(other)) = (&mut self.packed, &other.packed) {
            return packed.merge(other);
        }
        debug_assert!(other.packed.is_none(), "keys are packed on one side only");
        if self.packed.is_none() && self.wanted == usize::MAX {
            let moved = self.heap.len();
            self.heap.extend_from_slice(&other.heap);
            let entries = other.entries.iter();
            self.entries.extend(entries.map(|e| Entry { start: e.start + moved, ..*e }));
            return;
        }
        for entry in &other.entries {
            self.push(key_of(&other.heap, entry), entry.location);
        }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.packed.as_ref().map_or(self.entries.len(), PackedKeys::len)
    }

    /// The greatest key of the rows from number `first` on.
    pub(crate) fn greatest_from(&self, first: usize) -> Option<&[u8]> {
        let rows = self.entries.get(first..).unwrap_or_default();
        rows.iter().map(|entry| key_of(&self.heap, entry)).max()
    }

    /// The key and the part of the last row that is wanted, of those there are; `None` while there
    /// are fewer.
    pub(crate) fn last_wanted(&self) -> Option<(&[u8], u32)> {
        let at = self.wanted.checked_sub(1).filter(|at| *at < self.entries.len())?;
        let mut entries = self.entries.clone();
        let (_, last, _) = entries.select_nth_unstable_by(at, |a, b| compare(&self.heap, a, b));
        Some((key_of(&self.heap, last), last.location.part))
    }

    /// Every row with its key, in no order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[u8], Location)> {
        self.entries.iter().map(|entry| (key_of(&self.heap, entry), entry.location))
    }

    /// Drops rows that cannot be among those wanted.
    pub(crate) fn prune(&mut self) {
        if let Some(packed) = &mut self.packed {
            return packed.sort_last();
        }
        if self.entries.len() > self.wanted {
            self.cut();
        }
    }

    /// Keeps the rows that are wanted, of at least as many, and the last of them as the bar.
    fn cut(&mut self) {
        let heap = std::mem::take(&mut self.heap);
        if self.wanted > 0 {
            self.entries.select_nth_unstable_by(self.wanted - 1, |a, b| compare(&heap, a, b));
        }
        self.bar = match self.entries.get(self.wanted.saturating_sub(1)) {
            Some(last) if self.wanted > 0 => Some((key_of(&heap, last).to_vec(), last.location)),
            _ => Some((Vec::new(), Location { part: 0, row: 0 })),
        };
        self.entries.truncate(self.wanted);
        for entry in &mut self.entries {
            let start = self.heap.len();
            self.heap.extend_from_slice(key_of(&heap, entry));
            entry.start = start;
        }
    }

    /// Hands over every row with its key, in order; no keys are packed.
    ///
    /// # Errors
    /// When the query is to end.
    pub(crate) fn in_order(
        mut self,
        options: &Options,
        visit: &mut dyn FnMut(&[u8], Location),
    ) -> Result<()> {
        debug_assert!(self.packed.is_none(), "packed keys are not kept apart");
        let heap = &self.heap;
        sort(&mut self.entries, |a, b| compare(heap, a, b), options)?;
        self.entries.iter().for_each(|entry| visit(key_of(heap, entry), entry.location));
        Ok(())
    }

    /// The rows in order, without the first `skipped`.
    ///
    /// # Errors
    /// When the query is to end.
    pub(crate) fn finish(mut self, skipped: usize, options: &Options) -> Result<Vec<Location>> {
        if let Some(packed) = self.packed {
            return packed.finish(skipped, options);
        }
        self.prune();
        let heap = &self.heap;
        sort(&mut self.entries, |a, b| compare(heap, a, b), options)?;
        Ok(self.entries.iter().skip(skipped).map(|entry| entry.location).collect())
    }
}

/// Sorts: cut at their median until the pieces are small, so that it can end early.
fn sort<T>(
    entries: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering + Copy,
    options: &Options,
) -> Result<()> {
    options.expect_time_left()?;
    if entries.len() <= PIECE_ROWS {
        entries.sort_unstable_by(compare);
        return Ok(());
    }
    let middle = entries.len() / 2;
    let (before, _, after) = entries.select_nth_unstable_by(middle, compare);
    sort(before, compare, options)?;
    sort(after, compare, options)
}

fn key_of<'h>(heap: &'h [u8], entry: &Entry) -> &'h [u8] {
    heap.get(entry.start..entry.start + entry.len as usize).unwrap_or_default()
}

fn compare(heap: &[u8], a: &Entry, b: &Entry) -> Ordering {
    let by_key = || match a.len.max(b.len) as usize {
        // Both keys are in their prefixes but for zeros at the end.
        ..=PREFIX_BYTES => a.len.cmp(&b.len),
        _ => key_of(heap, a).cmp(key_of(heap, b)),
    };
    let by_key = a.prefix.cmp(&b.prefix).then_with(by_key);
    by_key.then_with(|| a.location.cmp(&b.location))
}

/// Appends the key of row `i` of a vector.
pub(crate) fn encode(out: &mut Vec<u8>, order: &OrderKey, vector: &Vector<'_>, i: usize) {
    encode_value(out, order, vector.data_type, vector.value(i));
}

#[cfg(test)]
mod tests {
    use esker_vfs::Environment;

    use super::*;

    /// Rows of several sorters in one: taken over whole or row by row, they are the same.
    #[test]
    fn sorters_that_are_taken_over_become_one_order() {
        let options = Options::new(&Environment::os());
        for (wanted, rows_each) in [(0, 3), (1, 1), (5, 2), (5, 5), (5, 40), (usize::MAX, 20)] {
            let mut all = Sorter::new(wanted);
            let mut pairs = Vec::new();
            for part in 0..3u32 {
                let mut one = Sorter::new(wanted);
                for row in 0..rows_each {
                    let key = [1, u8::try_from((row * 7 + part * 3) % 11).unwrap()];
                    one.push(&key, Location { part, row });
                    pairs.push((key, Location { part, row }));
                }
                one.prune();
                all.take(one);
            }
            pairs.sort_unstable();
            let least = all.clone().has_all_before(&[2]);
            assert_eq!(least, wanted <= pairs.len(), "{wanted} of {rows_each} rows each");
            let found = all.finish(0, &options).unwrap();
            let right = pairs.iter().take(wanted).map(|pair| pair.1);
            assert!(found.into_iter().eq(right), "{wanted} of {rows_each} rows each");
        }
    }
}
