//! The pairs of a join, in the order of the left rows and then of the right ones.

use super::build::Built;
use super::probe::Found;
use super::{NONE, Side};
use crate::budget::Charge;
use crate::exec::sort::Location;
use crate::{Error, ErrorKind, Options, Result};

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
        let mut charge = options.memory().charge();
        charge
            .set((pairs.len() + if side == Side::Left { built.locations.len() } else { 0 }) * 16)?;
        options.expect_time_left()?;
        let (left, right) = match side {
            Side::Right => pairs.iter().copied().unzip(),
            Side::Left => by_left(&pairs, built.locations.len(), is_left),
        };
        drop((pairs, found_charge));
        let (left_rows, right_rows) = side.order(built.locations, locations);
        let mut left = Half { locations: left_rows, numbers: left };
        let mut right = Half { locations: right_rows, numbers: right };
        drop((built.index, built.pair_columns, built.charge));
        options.expect_time_left()?;
        left.compact();
        options.expect_time_left()?;
        right.compact();
        let bytes = left.bytes() + right.bytes();
        charge.set(bytes)?;
        Ok(Self { left, right, _charge: charge })
    }

    pub(super) fn len(&self) -> usize {
        self.left.numbers.len()
    }
}

/// Pairs of (right, left) ordered by the left, those of one left row as they come.
fn by_left(pairs: &[(u32, u32)], rows: usize, is_left: bool) -> (Vec<u32>, Vec<u32>) {
    // Where the pairs of each left row begin.
    let mut starts = vec![0usize; rows + 1];
    for (_, left) in pairs {
        starts.get_mut(*left as usize + 1).into_iter().for_each(|count| *count += 1);
    }
    if is_left {
        starts.iter_mut().skip(1).for_each(|count| *count = (*count).max(1));
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let (mut lefts, mut rights) = (vec![0u32; sum], vec![NONE; sum]);
    if is_left {
        for (row, range) in (0u32..).zip(starts.windows(2)) {
            if let [start, end] = range {
                lefts.get_mut(*start..*end).into_iter().for_each(|lefts| lefts.fill(row));
            }
        }
    }
    for (right, left) in pairs {
        let Some(at) = starts.get_mut(*left as usize) else { continue };
        if let (Some(to_left), Some(to_right)) = (lefts.get_mut(*at), rights.get_mut(*at)) {
            (*to_left, *to_right) = (*left, *right);
        }
        *at += 1;
    }
    (lefts, rights)
}

impl Half {
    /// Forgets the rows that no pair has.
    fn compact(&mut self) {
        let mut is_used = vec![false; self.locations.len()];
        for number in &self.numbers {
            is_used.get_mut(*number as usize).into_iter().for_each(|used| *used = true);
        }
        if is_used.iter().all(|used| *used) {
            return;
        }
        let mut moved = vec![NONE; is_used.len()];
        let used = is_used.iter().zip(&mut moved).filter(|(used, _)| **used);
        (0u32..).zip(used).for_each(|(number, (_, to))| *to = number);
        for number in &mut self.numbers {
            *number = moved.get(*number as usize).copied().unwrap_or(NONE);
        }
        let mut used = is_used.iter();
        self.locations.retain(|_| used.next().copied().unwrap_or_default());
        self.locations.shrink_to_fit();
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

/// Refuses more rows than have numbers.
pub(super) fn refuse_many(rows: usize) -> Result<()> {
    match u32::try_from(rows) {
        Ok(rows) if rows < NONE => Ok(()),
        _ => Err(Error::new(
            ErrorKind::OverBudget,
            format!("a join of {rows} rows: at most {} on each side, and out of it", NONE - 1),
        )),
    }
}
