//! Counts and sums by group number.
//!
//! With few groups, rows of the same group follow each other closely, and each addition would
//! wait for the last one to reach memory. So few groups are added up in four copies, by row
//! number, which are put together at the end of the batch. Integer sums do not mind the order;
//! sums of floats do, and stay in row order.

use super::float_sum::FloatSum;

/// The most groups that are added up in copies.
const FEW: usize = 256;

/// Rows that are added up side by side.
const COPIES: usize = 4;

/// Adds 1 to the count of each row's group; rows that are NULL do not count.
pub(super) fn count(counts: &mut [u64], groups: &[u32], nulls: Option<&[bool]>) {
    match nulls {
        None if counts.len() <= FEW => {
            let mut copies = [[0u32; COPIES]; FEW];
            for_each_lane(groups, |lane, row| {
                if let Some(count) = copy_of(&mut copies, groups, row, lane) {
                    *count += 1;
                }
            });
            for (count, copies) in counts.iter_mut().zip(&copies) {
                *count += copies.iter().map(|c| u64::from(*c)).sum::<u64>();
            }
        }
        None => {
            for group in groups {
                if let Some(count) = counts.get_mut(*group as usize) {
                    *count += 1;
                }
            }
        }
        Some(nulls) => {
            for (group, null) in groups.iter().zip(nulls) {
                if let Some(count) = counts.get_mut(*group as usize) {
                    *count += u64::from(!null);
                }
            }
        }
    }
}

/// Adds each row's value to the sum of its group; rows that are NULL are left out.
pub(super) fn sum_integers<T: Copy + Into<i128>>(
    sums: &mut [i128],
    groups: &[u32],
    values: &[T],
    nulls: Option<&[bool]>,
) {
    match nulls {
        None if sums.len() <= FEW => {
            let mut copies = [[0i128; COPIES]; FEW];
            for_each_lane(groups, |lane, row| {
                if let (Some(value), Some(sum)) =
                    (values.get(row), copy_of(&mut copies, groups, row, lane))
                {
                    *sum += (*value).into();
                }
            });
            for (sum, copies) in sums.iter_mut().zip(&copies) {
                *sum += copies.iter().sum::<i128>();
            }
        }
        None => {
            for (group, value) in groups.iter().zip(values) {
                if let Some(sum) = sums.get_mut(*group as usize) {
                    *sum += (*value).into();
                }
            }
        }
        Some(nulls) => {
            for ((group, value), null) in groups.iter().zip(values).zip(nulls) {
                if let Some(sum) = sums.get_mut(*group as usize).filter(|_| !null) {
                    *sum += (*value).into();
                }
            }
        }
    }
}

/// As [`sum_integers`], in row order.
pub(super) fn sum_floats(
    sums: &mut [FloatSum],
    groups: &[u32],
    values: &[f64],
    nulls: Option<&[bool]>,
) {
    match nulls {
        None => {
            for (group, value) in groups.iter().zip(values) {
                if let Some(sum) = sums.get_mut(*group as usize) {
                    sum.add(*value);
                }
            }
        }
        Some(nulls) => {
            for ((group, value), null) in groups.iter().zip(values).zip(nulls) {
                if let Some(sum) = sums.get_mut(*group as usize).filter(|_| !null) {
                    sum.add(*value);
                }
            }
        }
    }
}

/// Calls `visit` with every row and the copy it goes to.
fn for_each_lane(groups: &[u32], mut visit: impl FnMut(usize, usize)) {
    let whole = groups.len() / COPIES * COPIES;
    for first in (0..whole).step_by(COPIES) {
        for lane in 0..COPIES {
            visit(lane, first + lane);
        }
    }
    (whole..groups.len()).for_each(|row| visit(0, row));
}

fn copy_of<'c, T>(
    copies: &'c mut [[T; COPIES]; FEW],
    groups: &[u32],
    row: usize,
    lane: usize,
) -> Option<&'c mut T> {
    let group = *groups.get(row)? as usize;
    copies.get_mut(group).and_then(|copies| copies.get_mut(lane))
}
