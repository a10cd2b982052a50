use proptest::prelude::*;

use super::{by_digits, quickly, round};

/// A whole number of any length, its lowest digits first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Big(Vec<u8>);

impl Big {
    fn of(mut v: u64) -> Self {
        let mut digits = Vec::new();
        while v > 0 {
            digits.push(u8::try_from(v % 10).unwrap());
            v /= 10;
        }
        Self(digits)
    }

    fn times(mut self, factor: u8) -> Self {
        let mut carry = 0u8;
        for digit in &mut self.0 {
            let product = *digit * factor + carry;
            (*digit, carry) = (product % 10, product / 10);
        }
        if carry > 0 {
            self.0.push(carry);
        }
        self
    }

    /// The number without its lowest digits, rounded; halves upward.
    fn without(&self, digits: usize) -> Self {
        let is_up = digits > 0 && self.0.get(digits - 1).is_some_and(|digit| *digit >= 5);
        let mut kept = self.0.get(digits..).unwrap_or_default().to_vec();
        let mut carry = u8::from(is_up);
        for digit in &mut kept {
            (*digit, carry) = ((*digit + carry) % 10, (*digit + carry) / 10);
        }
        if carry > 0 {
            kept.push(carry);
        }
        Self(kept)
    }

    fn text(&self) -> String {
        let digits = self.0.iter().rev().map(|digit| char::from(b'0' + digit));
        std::iter::once('0').chain(digits).collect()
    }
}

/// By arithmetic of whole numbers: v is significand · 2^exponent, and where the exponent is below
/// zero, significand · 5^-exponent with -exponent digits behind the point.
fn wanted(v: f64, digits: i64) -> f64 {
    let bits = v.abs().to_bits();
    let field = i64::try_from(bits >> 52).unwrap();
    let fraction = bits & ((1 << 52) - 1);
    let significand = if field > 0 { fraction | 1 << 52 } else { fraction };
    let exponent = field.max(1) - 1075;
    let factor = if exponent < 0 { 5 } else { 2 };
    let mut number = Big::of(significand);
    for _ in 0..exponent.abs() {
        number = number.times(factor);
    }
    let behind = (-exponent).max(0);
    let dropped = behind - digits;
    if dropped <= 0 {
        return v;
    }
    let rounded = number.without(usize::try_from(dropped).unwrap());
    format!("{}e{}", rounded.text(), -digits).parse::<f64>().unwrap().copysign(v)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn the_number_that_a_float_is_decides_not_the_one_that_was_written() {
    let cases = [
        (42.12345, 4, 42.1234),
        (1.005, 2, 1.0),
        (2.675, 2, 2.67),
        (1.015, 2, 1.01),
        (0.285, 2, 0.28),
        (1.115, 2, 1.11),
        // Halves, exactly.
        (0.125, 2, 0.13),
        (-0.125, 2, -0.13),
        (0.5, 0, 1.0),
        (2.5, 0, 3.0),
        (-2.5, 0, -3.0),
        (0.25, 1, 0.3),
        (250.0, -2, 300.0),
        (-250.0, -2, -300.0),
        (5e21, -22, 1e22),
        (0.499_999_999_999_999_94, 0, 0.0),
        (4_503_599_627_370_497.5, 0, 4_503_599_627_370_498.0),
        // Far to the left.
        (1.6e308, -308, f64::INFINITY),
        (1.4e308, -308, 1e308),
        (1.4e308, -309, 0.0),
        (-1.4e308, -309, -0.0),
        (1.4e308, -400, 0.0),
        (1.4e308, i64::MIN, 0.0),
        (123.0, -3, 0.0),
        (523.0, -3, 1000.0),
        // Far to the right.
        (1.4e308, 300, 1.4e308),
        (5e-324, 323, 0.0),
        (5e-324, 1073, 5e-324),
        (5e-324, 1074, 5e-324),
        (1e-320, 320, 1e-320),
        (1.25, 400, 1.25),
        (1.25, i64::MAX, 1.25),
        (0.1, 20, 0.1),
        (0.1, 55, 0.1),
    ];
    for (v, digits, rounded) in cases {
        assert!(same(round(v, digits), rounded), "round({v:e}, {digits}): {}", round(v, digits));
        if digits.unsigned_abs() < 2000 {
            assert!(same(wanted(v, digits), rounded), "{v:e}, {digits}: {}", wanted(v, digits));
        }
    }
    assert!(round(f64::NAN, 2).is_nan());
    assert!(same(round(f64::INFINITY, 2), f64::INFINITY));
    assert!(same(round(-0.0, 2), -0.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rounding_is_exact(bits in any::<u64>(), digits in -320i64..330) {
        let v = f64::from_bits(bits);
        prop_assume!(v.is_finite());
        prop_assert!(same(round(v, digits), wanted(v, digits)), "{v:e} to {digits}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn rounding_of_everyday_numbers_is_exact(
        mantissa in -10_000_000i64..10_000_000,
        places in 0i32..9,
        nudge in -2i64..3,
        digits in -8i64..12,
    ) {
        let written = mantissa as f64 / 10f64.powi(places);
        let v = f64::from_bits(written.to_bits().wrapping_add_signed(nudge));
        prop_assume!(v.is_finite());
        let rounded = wanted(v, digits);
        prop_assert!(same(by_digits(v, digits, true), rounded), "{v:e} to {digits}");
        prop_assert!(same(round(v, digits), rounded), "{v:e} to {digits}");
        if let Some(quick) = quickly(v, digits) {
            prop_assert!(same(quick, rounded) || v == 0.0, "{v:e} to {digits}");
        }
    }

    #[test]
    fn halves_are_found(whole in 0u32..100_000, places in 1i64..20, odd in 0u32..1000) {
        // A number whose lowest binary digit is the half of its last decimal one.
        let scale = 2f64.powi(i32::try_from(places).unwrap() + 1);
        let v = f64::from(whole) + f64::from(2 * odd + 1) / scale;
        prop_assert!(same(round(v, places), wanted(v, places)), "{v:e} to {places}");
        prop_assert!(same(round(-v, places), wanted(-v, places)), "{v:e} to {places}");
    }
}
