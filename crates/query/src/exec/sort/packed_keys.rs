//! Ordering all rows by short keys, each with the number of its row in one integer.
//!
//! ```text
//! key, at most 12 bytes, zeros behind it | number of the row     128 bits
//! ```
//!
//! No key is the beginning of another, so that the zeros decide nothing; rows are numbered as they
//! come, so that equal keys keep their order. The caller sorts rows before they are merged:
//! that is done by all threads. How they are put together is in [`Runs`].
//!
//! Invariant: `locations` has one location for each number.

use esker_format::key::first_words;

use crate::bound::OrderKey;
use crate::exec::sort::Location;
use crate::exec::sort::runs::Runs;
use crate::{Options, Result};

/// How many bytes a key has at most.
const KEY_BYTES_MAX: usize = 12;

/// Keys with the numbers of their rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedKeys {
    keys: Runs,
    locations: Vec<Location>,
}

/// True when every key of an order is short enough.
pub(crate) fn are_short(order: &[OrderKey]) -> bool {
    let bytes = |key: &OrderKey| Some(1 + key.bound.data_type().width()?);
    let bytes: Option<usize> = order.iter().map(bytes).sum();
    bytes.is_some_and(|bytes| bytes <= KEY_BYTES_MAX)
}

impl PackedKeys {
    /// How much memory it has; more than there is when rows cannot be numbered any more.
    pub fn bytes(&self) -> usize {
        if u32::try_from(self.locations.len()).is_err() {
            return usize::MAX;
        }
        self.keys.bytes() + self.locations.capacity() * size_of::<Location>()
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds a row.
    pub fn push(&mut self, key: &[u8], location: Location) {
        debug_assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        let [high, low] = first_words(key).map(u128::from);
        self.keys.push(high << 64 | low | self.locations.len() as u128);
        self.locations.push(location);
    }

    /// Sorts what was added since the last run.
    pub fn sort_last(&mut self) {
        self.keys.sort_last();
    }

    /// Adds the sorted rows of another one, all of which come later.
    pub fn merge(&mut self, other: &Self) {
        self.keys.merge(&other.keys, self.locations.len() as u128);
        self.locations.extend_from_slice(&other.locations);
    }

    /// The rows in order, without the first `skipped`.
    ///
    /// # Errors
    /// When the query is to end.
    pub fn finish(self, skipped: usize, options: &Options) -> Result<Vec<Location>> {
        let Self { keys, locations: all } = self;
        let mut locations = Vec::with_capacity(all.len());
        for piece in keys.finish(options, |keys| locations_of(&all, keys))? {
            locations.extend(piece);
        }
        locations.drain(..skipped.min(locations.len()));
        Ok(locations)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the number of a row has 32 bits")]
fn locations_of(locations: &[Location], keys: Vec<u128>) -> Vec<Location> {
    let location = |key: u128| locations.get(key as u32 as usize).copied();
    keys.into_iter().filter_map(location).collect()
}

#[cfg(test)]
mod tests {
    use esker_vfs::Environment;

    use super::*;

    fn location(n: usize) -> Location {
        Location { part: 3, row: u32::try_from(n).unwrap() }
    }

    /// Rows that come one by one before others that come as a run.
    #[test]
    fn rows_and_runs_become_one_order() {
        let options = Options::new(&Environment::os());
        let (mut all, mut run) = (PackedKeys::default(), PackedKeys::default());
        let key = |n: u32| [&[1], n.swap_bytes().to_le_bytes().as_slice()].concat();
        // In more than one piece, in no order.
        let mixed = (0..100_000_u32).map(|n| 50_000 + n * 7_919 % 100_000);
        mixed.for_each(|n| all.push(&key(n), location(n as usize)));
        (0..50_000).rev().for_each(|n| run.push(&key(n), location(n as usize)));
        run.sort_last();
        all.merge(&run);
        let found = all.finish(0, &options).unwrap();
        assert!(found.into_iter().eq((0..150_000).map(location)));
    }

    /// Keys of few values and of many, in runs of any size: in order, equal ones as they came.
    #[test]
    fn runs_become_one_order() {
        let options = Options::new(&Environment::os());
        for (rows, values, run_rows) in
            [(0, 1, 5), (1, 1, 1), (1_000, 7, 130), (200_000, 3, 8_192), (150_000, 1 << 40, 70_000)]
        {
            let value = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % values;
            let mut all = PackedKeys::default();
            for start in (0..rows).step_by(run_rows) {
                let mut run = PackedKeys::default();
                for n in start..(start + run_rows).min(rows) {
                    let mut key = vec![1];
                    key.extend_from_slice(&value(n).swap_bytes().to_le_bytes());
                    run.push(&key, location(n));
                }
                run.sort_last();
                all.merge(&run);
            }
            assert_eq!(all.len(), rows);
            let mut wanted: Vec<usize> = (0..rows).collect();
            wanted.sort_by_key(|n| value(*n));
            for skipped in [0, rows / 3, rows + 1] {
                let found = all.clone().finish(skipped, &options).unwrap();
                let wanted: Vec<_> = wanted.iter().skip(skipped).map(|n| location(*n)).collect();
                assert!(found == wanted, "{rows} rows of {values} values, {skipped} skipped");
            }
        }
    }
}
