//! The mean of integers, rounded once.
//!
//! Two integers below 2^53 are exact floats, and one division of them rounds correctly. Larger ones
//! are divided bit by bit, as at school, until there are more bits than a float keeps; a rest makes
//! the last of them 1, so that what lies between two floats is never taken for the middle.

/// Integers below this are exact as floats.
const EXACT: u128 = 1 << 53;

/// So many bits of a quotient are enough to round it.
const QUOTIENT_MIN: u128 = 1 << 63;

/// The sum of `count` numbers, each of which `unit` make 1, divided by their count.
pub(super) fn mean(sum: i128, count: u64, unit: u128) -> f64 {
    let size = match u128::from(count).checked_mul(unit) {
        // Bits are shifted out of the rest one at a time.
        Some(divisor) if divisor < 1 << 127 => quotient(sum.unsigned_abs(), divisor),
        _ => quotient(sum.unsigned_abs(), count.into()) / unit as f64,
    };
    if sum < 0 { -size } else { size }
}

/// A quotient, rounded to the nearest float, halves to the even one.
fn quotient(sum: u128, divisor: u128) -> f64 {
    if sum == 0 {
        return 0.0;
    }
    if sum < EXACT && divisor < EXACT {
        return sum as f64 / divisor as f64;
    }
    let (mut bits, mut rest, mut scale) = (sum / divisor, sum % divisor, 1.0);
    while bits < QUOTIENT_MIN && rest != 0 {
        rest <<= 1;
        bits <<= 1;
        if rest >= divisor {
            rest -= divisor;
            bits |= 1;
        }
        scale /= 2.0;
    }
    (bits | u128::from(rest != 0)) as f64 * scale
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "only what fits is cast")]
mod tests {
    use proptest::prelude::*;

    use super::mean;

    /// The mean was its whole part and its fraction, each rounded, and their sum rounded again.
    #[test]
    fn a_mean_is_rounded_once() {
        assert_eq!(mean(25, 7, 1).to_bits(), (25.0f64 / 7.0).to_bits());
        assert_eq!(mean(-25, 7, 1).to_bits(), (-25.0f64 / 7.0).to_bits());
        assert_eq!(mean(7, 2, 1).to_bits(), 3.5f64.to_bits());
        assert_eq!(mean(0, 3, 1).to_bits(), 0.0f64.to_bits());
        // 1.10 + 2.25 as decimals of two digits.
        assert_eq!(mean(335, 2, 100).to_bits(), 1.675f64.to_bits());
        let most = i128::from(i64::MAX);
        assert_eq!(mean(most * 4, 4, 1).to_bits(), (i64::MAX as f64).to_bits());
        assert_eq!(mean(1, u64::MAX, 1).to_bits(), (1.0 / u64::MAX as f64).to_bits());
        // Halfway between two floats, and a bit more.
        let middle = (1i128 << 53) + 1;
        assert_eq!(mean(middle * 3, 3, 1).to_bits(), 9_007_199_254_740_992f64.to_bits());
        assert_eq!(mean(middle * 3 + 1, 3, 1).to_bits(), 9_007_199_254_740_994f64.to_bits());
        let long = 10u128.pow(37);
        assert_eq!(mean(i128::MAX, 1, long).to_bits(), 17.014_118_346_046_923f64.to_bits());
    }

    proptest! {
        /// No float is nearer to the mean, nor as near and even.
        #[test]
        fn no_float_is_nearer(sum in any::<i64>(), count in 1..1u64 << 40) {
            let found = mean(sum.into(), count, 1);
            // The distance of a float of few digits times the count, without rounding.
            let distance = |v: f64| {
                let scaled = v * 2f64.powi(52);
                let exact = scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(75);
                exact.then(|| {
                    let there = (scaled as i128).checked_mul(count.into())?;
                    i128::from(sum).checked_mul(1 << 52)?.checked_sub(there).map(i128::abs)
                })?
            };
            for other in [found.next_up(), found.next_down()] {
                if let (Some(found), Some(other)) = (distance(found), distance(other)) {
                    prop_assert!(found <= other);
                }
            }
        }
    }
}
