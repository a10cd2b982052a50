//! Sums are exact or compensated, and extremes agree with the order of values.

use esker_format::{Column, ColumnSlice, DataType, Value, ValueRef};
use proptest::prelude::*;

use super::float_sum::{FloatLanes, FloatSum};
use super::kernels;
use crate::evaluate::{Mask, Selection};

#[test]
fn small_terms_survive_large_ones() {
    let mut sum = FloatSum::default();
    for value in [1e100, 1.0, -1e100, 1.0] {
        sum.add(value);
    }
    assert_eq!(sum.value().to_bits(), 2.0f64.to_bits());
    sum.add(f64::INFINITY);
    assert_eq!(sum.value().to_bits(), f64::INFINITY.to_bits());
    sum.add(f64::NEG_INFINITY);
    assert!(sum.value().is_nan());
}

fn column(values: &[i64]) -> Column {
    let mut column = Column::empty(DataType::I64);
    values.iter().for_each(|v| column.push(ValueRef::Int(*v)).unwrap());
    column
}

fn masked(len: usize, seed: u64) -> Mask {
    let words: Vec<u64> = (0..len.div_ceil(64))
        .map(|i| match (seed >> (i % 8)) & 3 {
            0 => 0,
            1 => u64::MAX,
            _ => seed.rotate_left(u32::try_from(i).unwrap()) ^ (seed >> 7),
        })
        .collect();
    Mask::from_words(&words, len)
}

proptest! {
    #[test]
    fn integer_kernels_are_exact(
        values in prop::collection::vec(any::<i64>(), 0..300), seed in any::<u64>(),
    ) {
        let column = column(&values);
        let slice = ColumnSlice::from(&column);
        for mask in [Mask::all(values.len()), masked(values.len(), seed)] {
            let mut kept = Vec::new();
            mask.for_each(|row| kept.push(values[row]));
            let sum: i128 = kept.iter().map(|v| i128::from(*v)).sum();
            prop_assert_eq!(kernels::sum_integers(&slice, &mask), Some(sum));
            for greatest in [false, true] {
                let found = kernels::extreme(&slice, &mask, greatest).unwrap();
                let expected = if greatest { kept.iter().max() } else { kept.iter().min() };
                prop_assert_eq!(found.map(ValueRef::to_owned), expected.map(|v| Value::Int(*v)));
            }
        }
    }

    #[test]
    fn float_lanes_do_not_depend_on_batches(
        values in prop::collection::vec(-1e9f64..1e9, 0..200),
        cut in 0usize..200,
        start in 0usize..9,
    ) {
        let cut = cut.min(values.len());
        let mut whole = FloatLanes::default();
        whole.add(&values, Selection::All(values.len()), start);
        let mut parts = FloatLanes::default();
        parts.add(&values[..cut], Selection::All(cut), start);
        let rest: Vec<u32> = (0..u32::try_from(values.len() - cut).unwrap()).collect();
        parts.add(&values[cut..], Selection::Rows(&rest), start + cut);
        let (whole, parts) = (whole.total().value(), parts.total().value());
        prop_assert_eq!(whole.to_bits(), parts.to_bits());
    }
}

#[test]
fn variances_do_not_depend_on_how_values_are_cut() {
    let values: Vec<f64> = (0..1_000).map(|i| 1e9 + f64::from(i % 7)).collect();
    let of = |values: &[f64]| {
        let mut moments = super::Moments::default();
        values.iter().for_each(|v| moments.add(*v));
        moments
    };
    let mut merged = of(&values[..13]);
    merged.merge(of(&values[13..600]));
    merged.merge(of(&[]));
    merged.merge(of(&values[600..]));
    let mean = values.iter().map(|v| v - 1e9).sum::<f64>() / 1_000.0;
    let wanted = values.iter().map(|v| (v - 1e9 - mean).powi(2)).sum::<f64>() / 1_000.0;
    for moments in [of(&values), merged] {
        let found = moments.variance(false).unwrap();
        assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
    }
    assert_eq!(of(&[5.0]).variance(true), None);
    assert_eq!(of(&[5.0, 7.0]).variance(true), Some(2.0));
}

#[test]
fn quantiles_lie_between_values_in_proportion() {
    use super::spread::quantile;
    let values = [3.0, 1.0, f64::INFINITY, 2.0, f64::INFINITY];
    assert_eq!(quantile(&values, 500_000), Some(3.0));
    assert_eq!(quantile(&values, 125_000), Some(1.5));
    assert_eq!(quantile(&values, 900_000), Some(f64::INFINITY));
    assert_eq!(quantile(&values, 0), Some(1.0));
    assert_eq!(quantile(&values, 1_000_000), Some(f64::INFINITY));
    assert_eq!(quantile(&[], 0), None);
}
