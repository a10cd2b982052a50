//! A few ranges of codes at once. Each value is compared with all of them, without branches and
//! without a table, so that the compiler makes vector code of it; what is only counted makes no
//! mask.
//!
//! ```text
//! dictionary  0 1 2 3 4 5 6 7 8      runs that pass  (1, 2) (5, 5) (7, 8)
//! passes      - x x - - x - x x      a code passes   code - 1 <= 1 | code - 5 <= 0 | code - 7 <= 1
//! ```
//!
//! Differences wrap around, so that a code below a run is far above it.

use esker_format::Data;

use super::range::Whole;
use crate::evaluate::Mask;
use crate::predicate::Key;

/// More runs than so many take longer than a look at a table.
const RUNS_MAX: usize = 8;

/// Counters beside each other, each of which takes so many rows.
const LANES: usize = 64;
/// Rows of each counter before it could wrap around.
const ROUNDS_MAX: usize = 255;

/// From where, and how far.
#[derive(Clone, Copy)]
struct Run<T: Whole> {
    low: T,
    span: T::Unsigned,
}

/// Removes the rows whose code is in none of some runs, or with `negated` in one; false, and
/// nothing is removed, where there are many, or the values are no codes.
pub(super) fn keep(data: Data<'_>, runs: &[(Key, Key)], negated: bool, mask: &mut Mask) -> bool {
    match data {
        Data::U8(v) => keep_in(v, runs, negated, mask),
        Data::U16(v) => keep_in(v, runs, negated, mask),
        Data::U32(v) => keep_in(v, runs, negated, mask),
        _ => false,
    }
}

/// How many codes are in one of some runs; `None` where there are many, or codes are wide, whose
/// masks are made as fast.
pub(super) fn count(data: Data<'_>, runs: &[(Key, Key)]) -> Option<usize> {
    match data {
        Data::U8(v) => count_in(v, runs),
        Data::U16(v) => count_in(v, runs),
        _ => None,
    }
}

/// As many runs as an array has, some of them twice.
fn filled<T: Whole, const N: usize>(runs: &[(Key, Key)]) -> Option<[Run<T>; N]> {
    let run = |(low, high): &(Key, Key)| {
        let is_possible = *low >= T::LEAST && *high <= T::GREATEST && low <= high;
        let (low, high) = is_possible.then(|| (T::from_key(*low), T::from_key(*high)))?;
        Some(Run { low, span: high.distance(low) })
    };
    let first = run(runs.first()?)?;
    let mut all = [first; N];
    for (to, from) in all.iter_mut().zip(runs) {
        *to = run(from)?;
    }
    (runs.len() <= N).then_some(all)
}

fn is_in<T: Whole, const N: usize>(value: T, runs: &[Run<T>; N]) -> bool {
    runs.iter().fold(false, |any, run| any | (value.distance(run.low) <= run.span))
}

fn keep_in<T: Whole>(values: &[T], runs: &[(Key, Key)], negated: bool, mask: &mut Mask) -> bool {
    fn each<T: Whole, const N: usize>(
        values: &[T],
        runs: Option<[Run<T>; N]>,
        negated: bool,
        mask: &mut Mask,
    ) -> bool {
        let Some(runs) = runs else { return false };
        match negated {
            true => mask.retain(values, |value| !is_in(value, &runs)),
            false => mask.retain(values, |value| is_in(value, &runs)),
        }
        true
    }
    match runs.len() {
        0 => {
            if !negated {
                mask.clear();
            }
            true
        }
        1 => each(values, filled::<T, 1>(runs), negated, mask),
        2 => each(values, filled::<T, 2>(runs), negated, mask),
        3..=4 => each(values, filled::<T, 4>(runs), negated, mask),
        5..=RUNS_MAX => each(values, filled::<T, RUNS_MAX>(runs), negated, mask),
        _ => false,
    }
}

fn count_in<T: Whole>(values: &[T], runs: &[(Key, Key)]) -> Option<usize> {
    fn each<T: Whole, const N: usize>(values: &[T], runs: &[(Key, Key)]) -> Option<usize> {
        filled::<T, N>(runs).map(|runs| count_passing(values, |value| is_in(value, &runs)))
    }
    match runs {
        [] => Some(0),
        [(low, high)] if low == high => {
            let [Run { low, .. }] = filled::<T, 1>(runs)?;
            Some(count_passing(values, |value| value == low))
        }
        [_] => each::<T, 1>(values, runs),
        [_, _] => each::<T, 2>(values, runs),
        [_, _, _] | [_, _, _, _] => each::<T, 4>(values, runs),
        more if more.len() <= RUNS_MAX => each::<T, RUNS_MAX>(values, runs),
        _ => None,
    }
}

/// Counts in bytes beside each other, which are added up before they could wrap around.
fn count_passing<T: Copy>(values: &[T], passes: impl Fn(T) -> bool + Copy) -> usize {
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut sum = rest.iter().filter(|value| passes(**value)).count();
    for blocks in blocks.chunks(ROUNDS_MAX) {
        let mut counters = [0u8; LANES];
        for block in blocks {
            for (counter, value) in counters.iter_mut().zip(block) {
                *counter = counter.wrapping_add(u8::from(passes(*value)));
            }
        }
        sum += counters.iter().map(|counter| usize::from(*counter)).sum::<usize>();
    }
    sum
}

#[cfg(test)]
mod tests;
