//! Candidates as a set of rows of a part: a bitmap, or a sorted list where they are few.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Result;
use crate::access_path::{Candidates, Lookup};
use crate::evaluate::Mask;

/// Below one row in so many, a list is read faster than a bitmap is cleared.
const ROWS_PER_LISTED: usize = 1_024;

/// Rows of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowSet {
    /// These, ascending.
    Listed(Vec<u32>),
    /// One bit per row.
    Bits(Vec<u64>),
}

impl RowSet {
    /// Reads the candidates of a part of `row_count` rows.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn new(candidates: &Candidates<'_>, row_count: usize) -> Result<Self> {
        match candidates {
            Candidates::Lookup(lookup) => Self::of_lookup(lookup, row_count),
            Candidates::Keys(rows) => Ok(Self::of_rows(rows.clone(), row_count)),
            Candidates::Grams(grams) => {
                let rows = grams.rows()?;
                if rows.len() <= row_count / ROWS_PER_LISTED {
                    return Ok(Self::Listed(rows));
                }
                let mut bits = vec![0u64; row_count.div_ceil(64)];
                set(&mut bits, &rows);
                Ok(Self::Bits(bits))
            }
            Candidates::Bitmaps(bitmaps) => {
                let mut bits = vec![0u64; row_count.div_ceil(64)];
                bitmaps.fill(&mut bits, row_count)?;
                Ok(Self::Bits(bits))
            }
            Candidates::All(members) => {
                let mut members: Vec<&Candidates<'_>> = members.iter().collect();
                members.sort_by_key(|member| member.count_max());
                let Some((first, rest)) = members.split_first() else {
                    return Ok(Self::Listed(Vec::new()));
                };
                let mut all = Self::new(first, row_count)?;
                for member in rest {
                    all.intersect(&Self::new(member, row_count)?);
                }
                Ok(all)
            }
            Candidates::Any(members) => {
                let mut any = Self::Listed(Vec::new());
                for member in members {
                    any = any.union(Self::new(member, row_count)?);
                }
                Ok(any)
            }
        }
    }

    /// Some rows of a part of `row_count` rows; they ascend.
    pub(crate) fn of_rows(rows: Vec<u32>, row_count: usize) -> Self {
        if rows.len() <= row_count / ROWS_PER_LISTED {
            return Self::Listed(rows);
        }
        let mut bits = vec![0u64; row_count.div_ceil(64)];
        set(&mut bits, &rows);
        Self::Bits(bits)
    }

    fn of_lookup(lookup: &Lookup<'_>, row_count: usize) -> Result<Self> {
        if lookup.len() <= row_count / ROWS_PER_LISTED {
            let mut listed = Vec::with_capacity(lookup.len());
            for range in &lookup.ranges {
                listed.extend_from_slice(&lookup.run.rows(range.clone())?);
            }
            listed.sort_unstable();
            return Ok(Self::Listed(listed));
        }
        let mut bits = vec![0u64; row_count.div_ceil(64)];
        for range in &lookup.ranges {
            set(&mut bits, &lookup.run.rows(range.clone())?);
        }
        Ok(Self::Bits(bits))
    }

    fn contains(&self, row: u32) -> bool {
        match self {
            Self::Listed(rows) => rows.binary_search(&row).is_ok(),
            Self::Bits(bits) => {
                bits.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
            }
        }
    }

    fn intersect(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Listed(rows), other) => rows.retain(|row| other.contains(*row)),
            (Self::Bits(a), Self::Bits(b)) => a.iter_mut().zip(b).for_each(|(a, b)| *a &= b),
            (bits, Self::Listed(rows)) => {
                let rows = rows.iter().copied().filter(|row| bits.contains(*row));
                *self = Self::Listed(rows.collect());
            }
        }
    }

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Listed(mut a), Self::Listed(b)) => {
                a.extend(b);
                a.sort_unstable();
                a.dedup();
                Self::Listed(a)
            }
            (Self::Bits(mut a), Self::Bits(b)) => {
                a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
                Self::Bits(a)
            }
            (Self::Bits(mut bits), Self::Listed(rows))
            | (Self::Listed(rows), Self::Bits(mut bits)) => {
                set(&mut bits, &rows);
                Self::Bits(bits)
            }
        }
    }

    /// The first rows of the set within a range, up to the last that is known to be of it; `None`
    /// when none is.
    pub(crate) fn span(&self, rows: Range<usize>) -> Option<Range<usize>> {
        match self {
            Self::Listed(listed) => {
                let from = listed.partition_point(|row| (*row as usize) < rows.start);
                let first = listed.get(from).filter(|row| (**row as usize) < rows.end)?;
                // default: behind the last there is none
                let later = listed.get(from..).unwrap_or_default();
                let count = later.partition_point(|row| (*row as usize) < rows.end);
                let last = later.get(count.checked_sub(1)?)?;
                Some(*first as usize..*last as usize + 1)
            }
            Self::Bits(bits) => {
                let (first, last) = (rows.start / 64, rows.end.div_ceil(64).min(bits.len()));
                // default: behind the last there is none
                let words = bits.get(first..last).unwrap_or_default().iter().enumerate();
                let found = words.map(|(i, word)| {
                    let low = if i == 0 { u64::MAX << (rows.start % 64) } else { u64::MAX };
                    let past = ((first + i + 1) * 64).saturating_sub(rows.end).min(63);
                    (first + i, word & low & (u64::MAX >> past))
                });
                let (word, set) = found.into_iter().find(|(_, set)| *set != 0)?;
                Some(word * 64 + set.trailing_zeros() as usize..rows.end)
            }
        }
    }

    /// The rows of the set in a batch.
    pub(crate) fn mask(&self, rows: Range<usize>) -> Mask {
        match self {
            Self::Listed(listed) => {
                let from = listed.partition_point(|row| (*row as usize) < rows.start);
                let mut words = vec![0u64; rows.len().div_ceil(64)];
                // default: behind the last there is none
                let later = listed.get(from..).unwrap_or_default().iter().map(|row| *row as usize);
                for row in later.take_while(|row| *row < rows.end) {
                    let at = row - rows.start;
                    words.get_mut(at / 64).into_iter().for_each(|word| *word |= 1 << (at % 64));
                }
                Mask::from_words(&words, rows.len())
            }
            Self::Bits(bits) => {
                let (first, shift) = (rows.start / 64, rows.start % 64);
                // default: behind the last there is none
                let words = bits.get(first..).unwrap_or_default();
                if shift == 0 {
                    return Mask::from_words(words, rows.len());
                }
                let next = words.iter().skip(1).chain(std::iter::once(&0));
                let moved = words.iter().zip(next).take(rows.len().div_ceil(64));
                let moved: Vec<u64> =
                    moved.map(|(low, high)| low >> shift | high << (64 - shift)).collect();
                Mask::from_words(&moved, rows.len())
            }
        }
    }
}

fn set(bits: &mut [u64], rows: &[u32]) {
    for row in rows {
        if let Some(word) = bits.get_mut(*row as usize / 64) {
            *word |= 1 << (row % 64);
        }
    }
}

/// The sets of the parts of a scan, each read when the first morsel of its part needs it.
#[derive(Debug, Default)]
pub(crate) struct RowSets {
    sets: Vec<Mutex<Option<Arc<RowSet>>>>,
}

impl RowSets {
    pub(crate) fn new(part_count: usize) -> Self {
        Self { sets: (0..part_count).map(|_| Mutex::default()).collect() }
    }

    /// The set of a part of `row_count` rows.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn get(
        &self,
        part: usize,
        candidates: &Candidates<'_>,
        row_count: usize,
    ) -> Result<Arc<RowSet>> {
        let Some(set) = self.sets.get(part) else {
            return RowSet::new(candidates, row_count).map(Arc::new);
        };
        // default: a panic leaves what is locked as it was, or whole
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        match &*set {
            Some(set) => Ok(Arc::clone(set)),
            None => {
                let new = Arc::new(RowSet::new(candidates, row_count)?);
                Ok(Arc::clone(set.insert(new)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RowSet;

    fn rows(set: &RowSet) -> Vec<usize> {
        (0..256).filter(|row| set.span(*row..row + 1).is_some()).collect()
    }

    #[test]
    fn lists_and_bits_are_the_same_sets() {
        let listed = |rows: &[u32]| RowSet::Listed(rows.to_vec());
        let bits = |rows: &[u32]| {
            let mut bits = vec![0; 4];
            super::set(&mut bits, rows);
            RowSet::Bits(bits)
        };
        let (a, b) = ([0, 3, 63, 64, 200], [3, 64, 65, 255]);
        for one in [listed(&a), bits(&a)] {
            assert_eq!(rows(&one), [0, 3, 63, 64, 200]);
            for other in [listed(&b), bits(&b)] {
                let mut both = one.clone();
                both.intersect(&other);
                assert_eq!(rows(&both), [3, 64]);
                assert_eq!(rows(&one.clone().union(other)), [0, 3, 63, 64, 65, 200, 255]);
            }
            assert_eq!(one.span(4..63), None);
            let first = |rows| one.span(rows).map(|span| span.start);
            assert_eq!([first(4..64), first(65..256)], [Some(63), Some(200)]);
            assert!(one.span(1..64).is_some_and(|span| (3, 64) == (span.start, span.end)));
            for start in [0, 1, 3, 60, 64, 65] {
                let mask = one.mask(start..201);
                let found: Vec<_> = mask.rows().iter().map(|r| *r as usize + start).collect();
                let expected = rows(&one).into_iter().filter(|r| *r >= start);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{start}");
            }
        }
    }
}
