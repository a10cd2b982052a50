//! Counts and sums by group number.
//!
//! Few groups have codes of one byte, and integers are added up in four copies by row number,
//! so that additions to the same group do not wait for each other. Integer sums do not mind the
//! order; sums of floats do, and stay in row order.

use super::float_sum::FloatSum;
use crate::exec::aggregate::group::{COPIES, FEW, Few, GroupIds};

/// Adds 1 to the count of each row's group; rows that are NULL do not count.
pub(super) fn count(counts: &mut [u64], groups: &GroupIds<'_>, nulls: Option<&[bool]>) {
    match (nulls, &groups.few) {
        (None, Some(few)) => {
            for (_, group, more) in few.present() {
                if let Some(count) = counts.get_mut(group) {
                    *count += u64::from(more);
                }
            }
        }
        (None, None) => {
            for group in groups.numbers() {
                if let Some(count) = counts.get_mut(*group as usize) {
                    *count += 1;
                }
            }
        }
        (Some(nulls), _) => {
            for (group, null) in groups.numbers().iter().zip(nulls) {
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
    groups: &GroupIds<'_>,
    values: &[T],
    nulls: Option<&[bool]>,
) {
    match (nulls, &groups.few) {
        (None, Some(few)) => sum_few(sums, few, values),
        (None, None) => {
            for (group, value) in groups.numbers().iter().zip(values) {
                if let Some(sum) = sums.get_mut(*group as usize) {
                    *sum += (*value).into();
                }
            }
        }
        (Some(nulls), _) => {
            for ((group, value), null) in groups.numbers().iter().zip(values).zip(nulls) {
                if let Some(sum) = sums.get_mut(*group as usize).filter(|_| !null) {
                    *sum += (*value).into();
                }
            }
        }
    }
}

fn sum_few<T: Copy + Into<i128>>(sums: &mut [i128], few: &Few<'_>, values: &[T]) {
    let mut copies = [[0i128; FEW]; COPIES];
    let (fours, codes_left) = few.codes.as_chunks::<COPIES>();
    let (value_fours, values_left) = values.as_chunks::<COPIES>();
    for (four, values) in fours.iter().zip(value_fours) {
        for ((copy, code), value) in copies.iter_mut().zip(four).zip(values) {
            if let Some(sum) = copy.get_mut(usize::from(*code)) {
                *sum += (*value).into();
            }
        }
    }
    for (copy, (code, value)) in copies.iter_mut().zip(codes_left.iter().zip(values_left)) {
        if let Some(sum) = copy.get_mut(usize::from(*code)) {
            *sum += (*value).into();
        }
    }
    for (code, group, _) in few.present() {
        let more: i128 = copies.iter().filter_map(|copy| copy.get(code)).sum();
        if let Some(sum) = sums.get_mut(group) {
            *sum += more;
        }
    }
}

/// As [`sum_integers`], in row order.
pub(super) fn sum_floats(
    sums: &mut [FloatSum],
    groups: &GroupIds<'_>,
    values: &[f64],
    nulls: Option<&[bool]>,
) {
    match (nulls, &groups.few) {
        (None, Some(few)) => {
            let mut near = [FloatSum::default(); FEW];
            for (code, group, _) in few.present() {
                if let (Some(near), Some(sum)) = (near.get_mut(code), sums.get(group)) {
                    *near = *sum;
                }
            }
            for (code, value) in few.codes.iter().zip(values) {
                if let Some(sum) = near.get_mut(usize::from(*code)) {
                    sum.add(*value);
                }
            }
            for (code, group, _) in few.present() {
                if let (Some(near), Some(sum)) = (near.get(code), sums.get_mut(group)) {
                    *sum = *near;
                }
            }
        }
        (None, None) => {
            for (group, value) in groups.numbers().iter().zip(values) {
                if let Some(sum) = sums.get_mut(*group as usize) {
                    sum.add(*value);
                }
            }
        }
        (Some(nulls), _) => {
            for ((group, value), null) in groups.numbers().iter().zip(values).zip(nulls) {
                if let Some(sum) = sums.get_mut(*group as usize).filter(|_| !null) {
                    sum.add(*value);
                }
            }
        }
    }
}
