//! Finding whole numbers in a run whose first field is one, ascending, and never NULL.
//!
//! The first number of every zone is kept in memory, so that the zone is found without touching the
//! run. Within a zone a number is looked for where it would lie if the numbers rose evenly, then in
//! steps that double, then by halves: evenly spread numbers cost a cache miss or two, others a
//! binary search more.
//!
//! ```text
//! firsts     10        37        62        (one a zone, in memory)
//! wanted 41                v
//! zone 1     37 38 38 40 41 41 44 … 61     guess: (41 - 37) / (62 - 37) of the zone
//! ```

use std::ops::Range;

use esker_format::order_key::{Key, key};
use esker_format::segment::ZONE_ROWS;
use esker_format::{Codes, Data, DataType, Field, ValueRef};

use super::run::IndexRun;
use crate::Result;

/// Entries looked at together at the end of a range.
const NEAR: usize = 64;

/// A search in the numbers of one zone.
#[derive(Clone, Copy)]
struct Within {
    /// The first number of the zone, and one that none of its numbers is greater than.
    bounds: (Key, Key),
    least: Key,
    greatest: Key,
}

impl IndexRun {
    /// The entries whose first field lies in a range of keys; `None` where the numbers do not lie
    /// as this search needs them.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub(super) fn find_whole(
        &self,
        field: &Field,
        (least, greatest): (Key, Key),
    ) -> Result<Option<Range<usize>>> {
        let Some(firsts) = self.firsts(field) else { return Ok(None) };
        let (Ok(low), high) = (i64::try_from(least), clamped(greatest)) else { return Ok(None) };
        if least > greatest {
            return Ok(Some(0..0));
        }
        // The zones in which the two ends lie.
        let first = firsts.partition_point(|number| *number < low).saturating_sub(1);
        let Some(rest) = firsts.get(first..) else { return Ok(None) };
        let beyond = match rest.get(1) {
            Some(next) if *next > high => 1,
            _ => rest.partition_point(|number| *number <= high).max(1),
        };
        let last = first + beyond - 1;
        let Some(range) = self.find_in(field, firsts, first, (least, greatest))? else {
            return Ok(None);
        };
        if last == first {
            return Ok(Some(range));
        }
        let end = self.find_in(field, firsts, last, (least, greatest))?;
        Ok(end.map(|end| range.start..end.end))
    }

    /// The same among the entries of one zone.
    fn find_in(
        &self,
        field: &Field,
        firsts: &[i64],
        zone: usize,
        (least, greatest): (Key, Key),
    ) -> Result<Option<Range<usize>>> {
        let start = zone * ZONE_ROWS;
        let entries = start..self.entries.row_count().min(start + ZONE_ROWS);
        let Some(first) = firsts.get(zone).copied() else { return Ok(None) };
        // default: a guess of the last zone, behind which nothing is known
        let next = firsts.get(zone + 1).copied().unwrap_or(first.saturating_add(1));
        let bounds = (first.into(), next.into());
        let column = self.entries.column_as_stored(field, entries)?;
        let within = Within { bounds, least, greatest };
        let found = match column.data {
            Data::I8(v) => within.find(v),
            Data::I16(v) => within.find(v),
            Data::I32(v) => within.find(v),
            Data::I64(v) => within.find(v),
            Data::U8(v) => within.find(v),
            Data::U16(v) => within.find(v),
            Data::U32(v) => within.find(v),
            Data::Narrowed { base, codes } => {
                let base = match field.data_type.is_unsigned() {
                    true => Key::from(base),
                    false => Key::from(base.cast_signed()),
                };
                within.moved(base).find_codes(codes)
            }
            _ => return Ok(None),
        };
        Ok(Some(start + found.start..start + found.end))
    }

    /// The first number of each zone; `None` where the first field is of another kind.
    fn firsts(&self, field: &Field) -> Option<&[i64]> {
        if !is_whole(field.data_type) {
            return None;
        }
        let firsts = self.firsts.get_or_init(|| {
            let part = self.index.fields.first()?;
            if part.descending || part.field != field.id || self.entries.has_nulls(field) {
                return None;
            }
            let first = |zone: usize| match self.entries.zone(field, zone)? {
                (ValueRef::Null, ..) => None,
                (least, _, 0) => i64::try_from(key(least)).ok(),
                _ => None,
            };
            (0..self.entries.row_count().div_ceil(ZONE_ROWS)).map(first).collect()
        });
        firsts.as_deref()
    }
}

/// Types whose keys are the numbers that they are stored as.
fn is_whole(data_type: DataType) -> bool {
    match data_type {
        DataType::Bool | DataType::U64 | DataType::Ipv4 => false,
        other => !other.is_variable() && !other.is_float() && !other.is_wide(),
    }
}

fn clamped(key: Key) -> i64 {
    // default: the bound on its side
    i64::try_from(key).unwrap_or(if key < 0 { i64::MIN } else { i64::MAX })
}

impl Within {
    /// The same of codes, which are the distances from a base.
    fn moved(self, base: Key) -> Self {
        Self {
            bounds: (self.bounds.0 - base, self.bounds.1 - base),
            least: self.least - base,
            greatest: self.greatest - base,
        }
    }

    fn find_codes(self, codes: Codes<'_>) -> Range<usize> {
        match codes {
            Codes::U8(v) => self.find(v),
            Codes::U16(v) => self.find(v),
            Codes::U32(v) => self.find(v),
        }
    }

    /// The numbers of the range.
    fn find<T: Copy + Ord + TryFrom<Key>>(self, numbers: &[T]) -> Range<usize>
    where
        Key: From<T>,
    {
        let start = match T::try_from(self.least) {
            Ok(least) => start_of(numbers, least, self.guess(numbers.len())),
            Err(_) if self.least < self.bounds.0 => 0,
            Err(_) => numbers.len(),
        };
        let end = match T::try_from(self.greatest) {
            Ok(greatest) => end_of(numbers, greatest, start),
            Err(_) if self.greatest < self.bounds.0 => start,
            Err(_) => numbers.len(),
        };
        start..end
    }

    /// Where the least number would lie if numbers rose evenly.
    fn guess(self, len: usize) -> usize {
        let (low, high) = self.bounds;
        let (before, all) = ((self.least - low).max(0), (high - low).max(1));
        match (u64::try_from(before), u64::try_from(all)) {
            (Ok(before), Ok(all)) => {
                let share = (before as f64 / all as f64).min(1.0);
                #[allow(clippy::cast_possible_truncation, reason = "at most the length")]
                #[allow(clippy::cast_sign_loss, reason = "a share is not negative")]
                let guess = (share * len as f64) as usize;
                guess
            }
            _ => 0,
        }
    }
}

/// How many of some rising numbers are less than one.
fn start_of<T: Copy + Ord>(numbers: &[T], least: T, guess: usize) -> usize {
    let is_less = |at: usize| numbers.get(at).is_some_and(|number| *number < least);
    let guess = guess.min(numbers.len());
    let (mut low, mut high, mut step) = (guess, guess, 8);
    if is_less(guess) {
        // Up: those before `low` are less.
        low = guess + 1;
        while is_less(guess + step) {
            low = guess + step + 1;
            step *= 2;
        }
        high = numbers.len().min(guess + step);
    } else {
        // Down: none from `high` on is less.
        while low > 0 {
            low = guess.saturating_sub(step);
            if is_less(low) {
                low += 1;
                break;
            }
            high = low;
            step *= 2;
        }
    }
    low + part(numbers, low..high.max(low)).partition_point(|number| *number < least)
}

/// How many of some rising numbers are at most one, of which those before `start` are.
fn end_of<T: Copy + Ord>(numbers: &[T], greatest: T, start: usize) -> usize {
    let rest = part(numbers, start..numbers.len());
    let is_in = |number: &T| *number <= greatest;
    // default: fewer are all near
    let near = rest.get(..NEAR).unwrap_or(rest);
    let found = near.iter().filter(|number| is_in(number)).count();
    if found < near.len() || near.len() == rest.len() {
        return start + found;
    }
    let mut step = NEAR;
    while rest.get(step).is_some_and(is_in) {
        step *= 2;
    }
    let (low, high) = (step / 2, step.min(rest.len()));
    start + low + part(rest, low..high).partition_point(is_in)
}

/// Some of the numbers, which a search has seen to be there.
#[inline]
fn part<T>(numbers: &[T], range: Range<usize>) -> &[T] {
    debug_assert!(numbers.get(range.clone()).is_some(), "{range:?} of {} numbers", numbers.len());
    // default: both ends are places of numbers, or the end of all
    numbers.get(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Within, end_of, start_of};

    #[test]
    fn a_search_finds_what_counting_finds() {
        let lists: [Vec<u32>; 4] = [
            (0..3_000).map(|i| i / 40).collect(),
            (0..500).map(|i| i * i).collect(),
            vec![7; 200],
            (0..100).chain(std::iter::repeat_n(100, 700)).chain(5_000..5_010).collect(),
        ];
        for numbers in &lists {
            let last = numbers.last().copied().unwrap();
            for wanted in (0..=last + 2).step_by(usize::try_from(last / 97).unwrap().max(1)) {
                let less = numbers.iter().filter(|n| **n < wanted).count();
                for guess in [0, 1, less, numbers.len() / 2, numbers.len(), usize::MAX] {
                    assert_eq!(start_of(numbers, wanted, guess), less, "{wanted} from {guess}");
                }
                let within = numbers.iter().filter(|n| **n <= wanted).count();
                assert_eq!(end_of(numbers, wanted, less), within, "up to {wanted}");
                for more in [0, 1, 50] {
                    let bounds = (numbers[0].into(), (last + 1).into());
                    let greatest = (wanted + more).into();
                    let search = Within { bounds, least: wanted.into(), greatest };
                    let end = numbers.iter().filter(|n| **n <= wanted + more).count();
                    assert_eq!(search.find(numbers), less..end);
                }
            }
            let bounds = (numbers[0].into(), last.into());
            let all = Within { bounds, least: -5, greatest: 1 << 80 };
            assert_eq!(all.find(numbers), 0..numbers.len());
            assert_eq!(Within { least: -5, greatest: -1, ..all }.find(numbers), 0..0);
            let beyond = Within { least: 1 << 40, greatest: 1 << 80, ..all };
            assert_eq!(beyond.find(numbers), numbers.len()..numbers.len());
        }
    }
}
