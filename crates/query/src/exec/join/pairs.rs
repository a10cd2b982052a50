//! The pairs of a join, in the order of the left rows and then of the right ones.
//!
//! Where the right side was built, pairs come in order, morsel by morsel. Where the left side was,
//! they are sorted by counting the pairs of each left row: those of left rows next to each other
//! are a share, and each task puts one in its place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use esker_vfs::parallel_map;

use super::build::Built;
use super::input::refuse_many;
use super::probe::{Found, FoundPairs};
use super::shares::{self, Shares};
use super::{NONE, Side};
use crate::budget::Charge;
use crate::exec::scan::MORSEL_ROWS;
use crate::exec::sort::Location;
use crate::{Options, Result};

/// Pairs: row `left[i]` of the left with row `right[i]` of the right, which may be `NONE`.
#[derive(Debug)]
pub(super) struct Pairs<'b> {
    pub(super) left: Half,
    pub(super) right: Half,
    pub(super) _charge: Charge<'b>,
}

/// One side of pairs.
#[derive(Debug)]
pub(super) struct Half {
    /// Where rows lie, ascending.
    pub(super) locations: Vec<Location>,
    /// For each pair, the number of its row in `locations`.
    pub(super) numbers: Vec<u32>,
}

/// Where pairs are written: those of the left and of the right, as many.
type Halves<'p> = Mutex<(&'p mut [u32], &'p mut [u32])>;

impl<'b> Pairs<'b> {
    /// Orders what was found. In a left join, left rows without a match stand alone.
    pub(super) fn new(
        found: Found<'b>,
        built: Built<'b>,
        side: Side,
        is_left: bool,
        options: &'b Options,
    ) -> Result<Self> {
        let Found { locations, pairs, charge: found_charge, .. } = found;
        let count: usize = pairs.iter().map(|found| found.pairs.len()).sum();
        let mut charge = options.memory().charge();
        charge.set((count + if side == Side::Left { built.locations.len() } else { 0 }) * 16)?;
        options.expect_time_left()?;
        let (left, right) = match side {
            Side::Right => in_order(&pairs, count, options)?,
            Side::Left => by_left(&pairs, built.locations.len(), is_left, options)?,
        };
        drop((pairs, found_charge));
        let (left_rows, right_rows) = side.order(built.locations, locations);
        let mut left = Half { locations: left_rows, numbers: left };
        let mut right = Half { locations: right_rows, numbers: right };
        drop((built.index, built.pair_columns, built.charge));
        options.expect_time_left()?;
        // Of the side that was streamed, rows without a pair were not noted.
        match side {
            Side::Right => right.compact(options)?,
            Side::Left if is_left => {}
            Side::Left => left.compact(options)?,
        }
        let bytes = left.bytes() + right.bytes();
        charge.set(bytes)?;
        Ok(Self { left, right, _charge: charge })
    }

    pub(super) fn len(&self) -> usize {
        self.left.numbers.len()
    }
}

/// Pairs of (left, right), in the order in which they come.
fn in_order(found: &[FoundPairs], count: usize, options: &Options) -> Result<(Vec<u32>, Vec<u32>)> {
    let (mut lefts, mut rights) = (vec![0u32; count], vec![0u32; count]);
    let lens = found.iter().map(|found| found.pairs.len());
    let parts: Vec<_> = found.iter().zip(cut((&mut lefts, &mut rights), lens)).collect();
    let done = parallel_map(&*options.tasks, &parts, |(found, halves)| {
        options.expect_time_left()?;
        let mut halves = halves.lock().unwrap_or_else(PoisonError::into_inner);
        let (lefts, rights) = &mut *halves;
        let to = lefts.iter_mut().zip(rights.iter_mut());
        for ((left, right), pair) in to.zip(&found.pairs) {
            (*left, *right) = (found.start + pair.0, pair.1);
        }
        Ok(())
    });
    done.into_iter().collect::<Result<()>>()?;
    drop(parts);
    Ok((lefts, rights))
}

/// Pairs of (right, left) ordered by the left, those of one left row as they come.
fn by_left(
    found: &[FoundPairs],
    rows: usize,
    is_left: bool,
    options: &Options,
) -> Result<(Vec<u32>, Vec<u32>)> {
    let pairs: Vec<(u32, u32)> = found
        .iter()
        .flat_map(|found| found.pairs.iter().map(|(right, left)| (found.start + right, *left)))
        .collect();
    // Each share has some left rows next to each other.
    let width = rows.div_ceil(shares::worth(pairs.len(), options)).next_power_of_two();
    let bits = width.trailing_zeros();
    let count = rows.div_ceil(width).max(1);
    let share_of = |pair: usize| pairs.get(pair).map_or(0, |(_, left)| *left as usize >> bits);
    let shares = Shares::new(pairs.len(), count, options, share_of)?;
    let width = if shares.count() == 1 { rows.max(1) } else { width };
    // For each left row, where its pairs begin among those of its share, and how many these are.
    let mut starts = vec![0u32; rows];
    let parts: Vec<_> = starts.chunks_mut(width).map(Mutex::new).enumerate().collect();
    let own = |share: usize| shares.rows(share).filter_map(|pair| pairs.get(pair));
    let counted = parallel_map(&*options.tasks, &parts, |(share, starts)| {
        options.expect_time_left()?;
        let mut starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
        own(*share).for_each(|(_, left)| {
            let count = starts.get_mut(*left as usize - share * width);
            count.into_iter().for_each(|count| *count += 1);
        });
        let mut sum = 0u32;
        for start in starts.iter_mut() {
            let count = if is_left { (*start).max(1) } else { *start };
            *start = sum;
            sum = sum.saturating_add(count);
        }
        Ok(sum as usize)
    });
    let lens = counted.into_iter().collect::<Result<Vec<usize>>>()?;
    let all = lens.iter().sum();
    refuse_many(all)?;
    let (mut lefts, mut rights) = (vec![0u32; all], vec![NONE; all]);
    let parts: Vec<_> = parts.into_iter().zip(cut((&mut lefts, &mut rights), lens)).collect();
    let done = parallel_map(&*options.tasks, &parts, |((share, starts), halves)| {
        options.expect_time_left()?;
        let mut starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut halves = halves.lock().unwrap_or_else(PoisonError::into_inner);
        let (lefts, rights) = &mut *halves;
        if is_left {
            let ends = starts.iter().skip(1).map(|end| *end as usize).chain([lefts.len()]);
            for (row, (start, end)) in (share * width..).zip(starts.iter().zip(ends)) {
                let row = u32::try_from(row).unwrap_or(NONE);
                let alone = lefts.get_mut(*start as usize..end);
                alone.into_iter().for_each(|lefts| lefts.fill(row));
            }
        }
        own(*share).for_each(|(right, left)| {
            let Some(at) = starts.get_mut(*left as usize - share * width) else { return };
            let to = (lefts.get_mut(*at as usize), rights.get_mut(*at as usize));
            if let (Some(to_left), Some(to_right)) = to {
                (*to_left, *to_right) = (*left, *right);
            }
            *at += 1;
        });
        Ok(())
    });
    done.into_iter().collect::<Result<()>>()?;
    drop(parts);
    Ok((lefts, rights))
}

/// Cuts both halves into pieces of some lengths, each for a task.
fn cut<'p>(
    (mut lefts, mut rights): (&'p mut [u32], &'p mut [u32]),
    lens: impl IntoIterator<Item = usize>,
) -> Vec<Halves<'p>> {
    let piece = |len| {
        let left = lefts.split_off_mut(..len).unwrap_or_default();
        Mutex::new((left, rights.split_off_mut(..len).unwrap_or_default()))
    };
    lens.into_iter().map(piece).collect()
}

impl Half {
    /// Forgets the rows that no pair has.
    fn compact(&mut self, options: &Options) -> Result<()> {
        let is_used: Vec<AtomicBool> =
            self.locations.iter().map(|_| AtomicBool::new(false)).collect();
        let chunks: Vec<&[u32]> = self.numbers.chunks(MORSEL_ROWS).collect();
        let marked = parallel_map(&*options.tasks, &chunks, |numbers| {
            options.expect_time_left()?;
            for number in *numbers {
                let used = is_used.get(*number as usize);
                used.into_iter().for_each(|used| used.store(true, Ordering::Relaxed));
            }
            Ok(())
        });
        marked.into_iter().collect::<Result<()>>()?;
        let is_used: Vec<bool> = is_used.into_iter().map(AtomicBool::into_inner).collect();
        if is_used.iter().all(|used| *used) {
            return Ok(());
        }
        let mut moved = vec![NONE; is_used.len()];
        let used = is_used.iter().zip(&mut moved).filter(|(used, _)| **used);
        (0u32..).zip(used).for_each(|(number, (_, to))| *to = number);
        let chunks: Vec<_> = self.numbers.chunks_mut(MORSEL_ROWS).map(Mutex::new).collect();
        parallel_map(&*options.tasks, &chunks, |numbers| {
            for number in numbers.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
                *number = moved.get(*number as usize).copied().unwrap_or(NONE);
            }
        });
        drop(chunks);
        let mut used = is_used.iter();
        self.locations.retain(|_| used.next().copied().unwrap_or_default());
        self.locations.shrink_to_fit();
        Ok(())
    }

    /// Puts the pairs in another order.
    pub(super) fn permute(&mut self, order: &[u32]) {
        let numbers = &self.numbers;
        let number = |pair: &u32| numbers.get(*pair as usize).copied().unwrap_or(NONE);
        self.numbers = order.iter().map(number).collect();
    }

    /// True when each row has one pair, and they come in order.
    pub(super) fn is_whole(&self) -> bool {
        self.numbers.len() == self.locations.len()
            && (0u32..).zip(&self.numbers).all(|(i, number)| i == *number)
    }

    fn bytes(&self) -> usize {
        self.locations.capacity() * size_of::<Location>() + self.numbers.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use esker_vfs::Environment;

    use super::*;
    use crate::IndexUse;

    #[test]
    fn pairs_are_ordered_by_the_left_whatever_the_shares() {
        let one = Options { indexes: IndexUse::Never, ..Options::new(&Environment::os()) };
        let shared = Options { indexes: IndexUse::Always, ..one.clone() };
        for rows in [1usize, 77, 1_000] {
            // Two morsels; left rows that three divides have no match.
            let morsel = |start: u32| {
                let left = |i: u32| (i * 7 + start) % u32::try_from(rows).unwrap();
                let pairs = (0..600).map(|i| (i, left(i))).filter(|(_, left)| left % 3 != 0);
                FoundPairs { start, pairs: pairs.collect() }
            };
            let found = [morsel(0), morsel(600)];
            let mut expected: Vec<(u32, u32)> = found
                .iter()
                .flat_map(|of| of.pairs.iter().map(|(right, left)| (*left, of.start + right)))
                .collect();
            expected.sort_unstable();
            let zipped = |(lefts, rights): (Vec<u32>, Vec<u32>)| -> Vec<(u32, u32)> {
                lefts.into_iter().zip(rights).collect()
            };
            let alone = (0..u32::try_from(rows).unwrap())
                .filter(|row| expected.iter().all(|(left, _)| left != row))
                .map(|row| (row, NONE));
            let mut outer: Vec<_> = expected.iter().copied().chain(alone).collect();
            outer.sort_unstable();
            for options in [&one, &shared] {
                assert_eq!(zipped(by_left(&found, rows, false, options).unwrap()), expected);
                assert_eq!(zipped(by_left(&found, rows, true, options).unwrap()), outer);
            }
        }
    }

    #[test]
    fn a_half_forgets_rows_without_pairs() {
        let options = Options::new(&Environment::os());
        let locations = (0..6).map(|row| Location { part: 0, row }).collect();
        let mut half = Half { locations, numbers: vec![4, NONE, 1, 4] };
        half.compact(&options).unwrap();
        assert_eq!(half.numbers, [1, NONE, 0, 1]);
        assert_eq!(half.locations.iter().map(|l| l.row).collect::<Vec<_>>(), [1, 4]);
    }
}
