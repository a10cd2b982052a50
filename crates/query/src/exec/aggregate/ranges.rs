//! Aggregates of ranges of rows, as windows look at them.
//!
//! Counts and exact sums are taken from what they are up to each row, so that those of a range are
//! a difference. Others are added to, row by row.

use std::ops::Range;

use esker_format::{Column, Value, Values};

use super::extremes::Extremes;
use super::group::{FEW, GroupIds};
use super::{Accumulator, State};
use crate::Result;
use crate::evaluate::{Lanes, Vector};

/// What counts and sums are up to each row of a vector.
pub(crate) struct Prefixes<'a> {
    accumulator: &'a Accumulator,
    /// How many values there are; `None` where no row is NULL.
    counts: Option<Vec<u32>>,
    /// Sums, or the high halves of sums.
    sums: Vec<i128>,
    lows: Vec<i128>,
}

impl Accumulator {
    /// Takes away all rows; there is one group.
    pub(crate) fn clear(&mut self) {
        self.resize(0);
        self.resize(1);
    }

    /// Adds a range of rows to the first group.
    pub(crate) fn add_range(&mut self, vector: Option<&Vector<'_>>, range: Range<usize>) {
        let Some(vector) = vector else { return self.add_rows(range.len() as u64) };
        if let (State::Floats { sums, counts, .. }, Lanes::Floats(values)) =
            (&mut self.state, &vector.lanes)
        {
            let (Some(sum), Some(count)) = (sums.first_mut(), counts.first_mut()) else { return };
            let rows = range.clone().zip(values.get(range).unwrap_or_default());
            for (_, value) in rows.filter(|(row, _)| !vector.is_null(*row)) {
                sum.add(*value);
                *count += 1;
            }
            return;
        }
        // As of many groups: of few, more is noted than is worth it here.
        let groups = GroupIds::from_numbers(vec![0; range.len()], FEW + 1);
        self.update(&groups, Some(&vector.part(range)));
    }

    /// Whether it is the greatest value that is wanted; `None` for what is no extreme.
    pub(crate) fn wants_greatest(&self) -> Option<bool> {
        match &self.state {
            State::Extremes(extremes) => Some(Extremes::is_greatest(extremes)),
            _ => None,
        }
    }

    /// What it is up to each row, where that tells what it is of any range.
    pub(crate) fn prefixes(&self, vector: Option<&Vector<'_>>) -> Option<Prefixes<'_>> {
        let (mut sums, mut lows) = (Vec::new(), Vec::new());
        let Some(vector) = vector else {
            let is_count = matches!(self.state, State::Rows(_));
            return is_count.then_some(Prefixes { accumulator: self, counts: None, sums, lows });
        };
        let nulls = vector.nulls.as_deref();
        match (&self.state, &vector.lanes) {
            (State::Values(_), _) => {}
            (State::Integers { .. }, Lanes::Ints(values)) => {
                sums = added_up(values.iter().map(|v| i128::from(*v)), nulls);
            }
            (State::Integers { .. }, Lanes::Uints(values)) => {
                sums = added_up(values.iter().map(|v| i128::from(*v)), nulls);
            }
            (State::Wides { .. }, Lanes::Wides(values)) => {
                sums = added_up(values.iter().map(|v| v >> 64), nulls);
                lows = added_up(values.iter().map(|v| v & i128::from(u64::MAX)), nulls);
            }
            _ => return None,
        }
        let counts = nulls.map(|nulls| {
            let mut counts = Vec::with_capacity(nulls.len() + 1);
            let mut count = 0u32;
            counts.push(count);
            for null in nulls {
                count += u32::from(!null);
                counts.push(count);
            }
            counts
        });
        Some(Prefixes { accumulator: self, counts, sums, lows })
    }
}

/// The sums of the values before each, and of all.
fn added_up(values: impl ExactSizeIterator<Item = i128>, nulls: Option<&[bool]>) -> Vec<i128> {
    let mut sums = Vec::with_capacity(values.len() + 1);
    let mut sum = 0i128;
    sums.push(sum);
    for (i, value) in values.enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.get(i) == Some(&true));
        sum += if is_null { 0 } else { value };
        sums.push(sum);
    }
    sums
}

impl Prefixes<'_> {
    /// Appends the aggregate of the rows of some ranges to a column of its type.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type.
    pub(crate) fn push(&self, ranges: &[Range<usize>], column: &mut Column) -> Result<()> {
        let between = |sums: &[i128]| -> i128 {
            let of_range = |range: &Range<usize>| match (sums.get(range.start), sums.get(range.end))
            {
                (Some(before), Some(sum)) => sum - before,
                _ => 0,
            };
            ranges.iter().map(of_range).sum()
        };
        let count: u64 = match &self.counts {
            None => ranges.iter().map(|range| range.len() as u64).sum(),
            Some(counts) => {
                let of_range =
                    |range: &Range<usize>| match (counts.get(range.start), counts.get(range.end)) {
                        (Some(before), Some(count)) => u64::from(count - before),
                        _ => 0,
                    };
                ranges.iter().map(of_range).sum()
            }
        };
        let value = match &self.accumulator.state {
            State::Integers { .. } => self.accumulator.finish_integers(
                between(&self.sums),
                count,
                &self.accumulator.own(),
            )?,
            State::Wides { .. } => {
                let (high, low) = (between(&self.sums), between(&self.lows));
                self.accumulator.finish_wides(high, low, count, &self.accumulator.own())?
            }
            // default: there are fewer rows
            _ => Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
        };
        match (value, &mut column.values) {
            (Value::Int(value), Values::I64(to)) if column.nulls.is_none() => to.push(value),
            (value, _) => column.push((&value).into())?,
        }
        Ok(())
    }
}
