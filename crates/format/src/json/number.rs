//! Arithmetic of numbers as JSON writes them.
//!
//! A number is what its digits say, a decimal, and sums and products are exact: `0.1 + 0.2` is
//! `0.3`. Where the exact result has more than 38 digits, those behind the point are rounded until
//! it has 38; digits before the point are never lost, so that is an error. A number with an
//! exponent that no decimal of 38 digits has (`1e300`) is a float of 64 bits, and so is what comes
//! of it; beside it, a whole number beyond 2^53 is an error.

use std::cmp::Ordering;

use super::edit::written_float;
use super::push_order;
use crate::decimal::DIGITS_MAX;
use crate::{Decimal, Error, Result};

/// The sum of two numbers, as it is written.
///
/// # Errors
/// `InvalidInput` when it has more than 38 digits before the point, or is no finite float.
pub fn add_numbers(a: &str, b: &str) -> Result<String> {
    calculate('+', a, b, add_decimals, |a, b| a + b)
}

/// The product of two numbers, as it is written.
///
/// # Errors
/// As for [`add_numbers`].
pub fn multiply_numbers(a: &str, b: &str) -> Result<String> {
    calculate('*', a, b, multiply_decimals, |a, b| a * b)
}

/// The order of two numbers by their value.
#[must_use]
pub fn compare_numbers(a: &str, b: &str) -> Ordering {
    if let (Ok(a), Ok(b)) = (a.parse::<i64>(), b.parse::<i64>()) {
        return a.cmp(&b);
    }
    let order = |written| {
        let mut order = Vec::new();
        push_order(&mut order, written);
        order
    };
    order(a).cmp(&order(b))
}

fn calculate(
    symbol: char,
    a: &str,
    b: &str,
    exact: fn(Decimal, Decimal) -> Option<(Decimal, bool)>,
    float: fn(f64, f64) -> f64,
) -> Result<String> {
    let too_large = || Error::invalid(format!("{a} {symbol} {b}: more than 38 digits"));
    if let (Some(a), Some(b)) = (Decimal::parse(a.as_bytes()), Decimal::parse(b.as_bytes())) {
        return exact(a, b).map(|(result, _)| result.to_string()).ok_or_else(too_large);
    }
    let operand = |written: &str| match Decimal::parse(written.as_bytes()) {
        Some(decimal) if decimal.scale() == 0 && decimal.mantissa().unsigned_abs() > 1 << 53 => {
            None
        }
        Some(_) => written.parse::<f64>().ok(),
        // All its digits, or an exponent.
        None => {
            let is_float = written.contains(['e', 'E', '.']);
            written.parse::<f64>().ok().filter(|v| is_float && v.is_finite())
        }
    };
    let (x, y) = operand(a).zip(operand(b)).ok_or_else(too_large)?;
    let result = float(x, y);
    if result.is_finite() {
        Ok(written_float(result))
    } else {
        Err(Error::invalid(format!("{a} {symbol} {b} does not fit f64")))
    }
}

/// The sum, rounded once behind the point where it had more than 38 digits, and whether it is
/// exact; `None` where it has more than that before the point.
#[must_use]
pub fn add_decimals(a: Decimal, b: Decimal) -> Option<(Decimal, bool)> {
    let scale = a.scale().max(b.scale());
    let aligned = a.rescale(scale).zip(b.rescale(scale));
    let sum = aligned.and_then(|(a, b)| a.mantissa().checked_add(b.mantissa()));
    if let Some(sum) = sum.and_then(|sum| Decimal::new(sum, scale)) {
        return Some((sum, true));
    }
    let mut digits = vec![0; 2 * usize::from(DIGITS_MAX) + 2];
    for operand in [a, b] {
        let shift = usize::from(scale - operand.scale());
        for (to, digit) in digits.iter_mut().skip(shift).zip(digits_of(operand)) {
            *to += digit;
        }
    }
    rounded(digits, scale.into())
}

/// The product, in the same way, with no more digits behind the point than its value or either
/// needs.
#[must_use]
pub fn multiply_decimals(a: Decimal, b: Decimal) -> Option<(Decimal, bool)> {
    let least = a.scale().max(b.scale());
    let scale = a.scale().saturating_add(b.scale());
    let product = a.mantissa().checked_mul(b.mantissa());
    let product = product.filter(|_| scale <= DIGITS_MAX);
    if let Some(product) = product.and_then(|product| Decimal::new(product, scale)) {
        return Some((without_zeros(product, least), true));
    }
    let mut digits = vec![0; 2 * usize::from(DIGITS_MAX) + 2];
    for (place, x) in digits_of(a).enumerate() {
        for (to, y) in digits.iter_mut().skip(place).zip(digits_of(b)) {
            *to += x * y;
        }
    }
    let (product, is_exact) = rounded(digits, scale.into())?;
    Some((without_zeros(product, least), is_exact))
}

/// The digits of a mantissa from the last, each with its sign.
fn digits_of(value: Decimal) -> impl Iterator<Item = i64> {
    let mut rest = value.mantissa();
    std::iter::from_fn(move || {
        let digit = i64::try_from(rest % 10).ok().filter(|_| rest != 0)?;
        rest /= 10;
        Some(digit)
    })
}

/// The decimal nearest to what has these sums in place of digits, from the last.
fn rounded(mut digits: Vec<i64>, scale: usize) -> Option<(Decimal, bool)> {
    let is_negative = carry(&mut digits) < 0;
    if is_negative {
        digits.iter_mut().for_each(|digit| *digit = -*digit);
        // Its digits were those of the number above it by a power of ten.
        if let Some(last) = digits.last_mut() {
            *last += 10;
        }
        carry(&mut digits);
    }
    let most = usize::from(DIGITS_MAX);
    // default: zero has no digits but zeros.
    let len = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let first = len.saturating_sub(most).max(scale.saturating_sub(most));
    for dropped in first..=scale {
        let (behind, kept) = digits.split_at_checked(dropped)?;
        let is_up = behind.last().is_some_and(|digit| *digit >= 5);
        let whole = |sum: i128, digit: &i64| sum.checked_mul(10)?.checked_add((*digit).into());
        let kept = kept.get(..len.saturating_sub(dropped))?;
        let mantissa = kept.iter().rev().try_fold(0, whole)? + i128::from(is_up);
        let mantissa = if is_negative { -mantissa } else { mantissa };
        // Rounded up, it may have one digit more.
        if let Some(value) = Decimal::new(mantissa, u8::try_from(scale - dropped).ok()?) {
            return Some((value, behind.iter().all(|digit| *digit == 0)));
        }
    }
    None
}

/// Makes digits of sums; returns what goes beyond the first.
fn carry(digits: &mut [i64]) -> i64 {
    let mut carried = 0;
    for digit in digits {
        let sum = *digit + carried;
        (*digit, carried) = (sum.rem_euclid(10), sum.div_euclid(10));
    }
    carried
}

fn without_zeros(mut value: Decimal, least: u8) -> Decimal {
    while value.scale() > least {
        match value.rescale(value.scale() - 1) {
            Some(shorter) => value = shorter,
            None => break,
        }
    }
    value
}
