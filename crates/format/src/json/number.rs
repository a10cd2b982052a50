//! Arithmetic of numbers as JSON writes them.
//!
//! A number is what its digits say, a decimal, and sums and products are exact: `0.1 + 0.2` is
//! `0.3`. Where the exact result has more than 38 digits, those behind the point are rounded until
//! it has 38; digits before the point are never lost, so that is an error. A number with an
//! exponent that no decimal of 38 digits has (`1e300`) is a float of 64 bits, and so is what comes
//! of it; beside it, a whole number beyond 2^53 is an error.

use std::cmp::Ordering;

use super::edit::written_float;
use super::{number_document, order_len};
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
    let (a, b) = (number_document(a), number_document(b));
    let ordered = |bytes: &[u8]| {
        let bytes = bytes.get(1..).unwrap_or_default();
        bytes.get(..order_len(bytes)).unwrap_or_default().to_vec()
    };
    ordered(&a).cmp(&ordered(&b))
}

fn calculate(
    symbol: char,
    a: &str,
    b: &str,
    exact: fn(Decimal, Decimal) -> Option<Decimal>,
    float: fn(f64, f64) -> f64,
) -> Result<String> {
    let too_large = || Error::invalid(format!("{a} {symbol} {b}: more than 38 digits"));
    if let (Some(a), Some(b)) = (Decimal::parse(a.as_bytes()), Decimal::parse(b.as_bytes())) {
        return exact(a, b).map(|result| result.to_string()).ok_or_else(too_large);
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

/// The sum, with fewer digits behind the point where it had more than 38; `None` where it has more
/// than that before it.
#[must_use]
pub fn add_decimals(mut a: Decimal, mut b: Decimal) -> Option<Decimal> {
    loop {
        let scale = a.scale().max(b.scale());
        let aligned = a.rescale(scale).zip(b.rescale(scale));
        let sum = aligned.and_then(|(a, b)| a.mantissa().checked_add(b.mantissa()));
        if let Some(sum) = sum.and_then(|sum| Decimal::new(sum, scale)) {
            return Some(sum);
        }
        shorten(&mut a, &mut b)?;
    }
}

/// The product, likewise, with no more digits behind the point than its value or either needs.
#[must_use]
pub fn multiply_decimals(mut a: Decimal, mut b: Decimal) -> Option<Decimal> {
    let least = a.scale().max(b.scale());
    loop {
        let scale = a.scale().saturating_add(b.scale());
        let product = a.mantissa().checked_mul(b.mantissa());
        let product = product.filter(|_| scale <= DIGITS_MAX);
        if let Some(product) = product.and_then(|product| Decimal::new(product, scale)) {
            return Some(without_zeros(product, least));
        }
        shorten(&mut a, &mut b)?;
    }
}

/// Rounds away one digit behind the point, of the one that has more of them.
fn shorten(a: &mut Decimal, b: &mut Decimal) -> Option<()> {
    let longer = if a.scale() >= b.scale() { a } else { b };
    let digits = i32::from(longer.scale()).checked_sub(1).filter(|digits| *digits >= 0)?;
    *longer = longer.round(digits)?;
    Some(())
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
