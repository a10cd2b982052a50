//! Rounding floats to decimal digits, exactly.
//!
//! A float is a binary number, and so some decimal one: 42.12345 is written for
//! 42.1234499999999968…, which is nearer to 42.1234 than to 42.1235. That number is rounded, halves
//! away from zero, and the answer is the float nearest to the outcome. It does not depend on how
//! the arithmetic in between rounds.

use esker_vfs::sabotage::Bug;

/// Powers of ten that are exact floats.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Below this, halves and whole numbers are exact floats.
const EXACT: f64 = 4_503_599_627_370_496.0;

/// The float nearest to `v` rounded to `digits` digits behind the point, or, below zero, to tens,
/// hundreds, …; halves go away from zero.
pub(super) fn round(v: f64, digits: i64) -> f64 {
    if Bug::RoundInFloats.is_planted() {
        let scale = 10f64.powi(i32::try_from(digits.clamp(-400, 400)).unwrap_or(0));
        return if scale > 0.0 { (v * scale).round() / scale } else { v };
    }
    if digits == 0 || v == 0.0 || !v.is_finite() {
        return v.round();
    }
    quickly(v, digits).unwrap_or_else(|| by_digits(v, digits, true))
}

/// The float nearest to `v` cut to `digits` digits behind the point, or, below zero, to tens,
/// hundreds, …
pub(super) fn truncate(v: f64, digits: i64) -> f64 {
    if digits == 0 || v == 0.0 || !v.is_finite() {
        return v.trunc();
    }
    let behind = digits_behind(v);
    if digits >= behind {
        return v;
    }
    let near = round(v, digits);
    if near.abs() <= v.abs() {
        return near;
    }
    by_digits(v, digits, false)
}

/// The same where one multiplication or division leaves no doubt which way it goes.
fn quickly(v: f64, digits: i64) -> Option<f64> {
    let power = *POWERS.get(usize::try_from(digits.unsigned_abs()).ok()?)?;
    let scaled = if digits > 0 { v * power } else { v / power };
    if scaled.abs() >= EXACT {
        return None;
    }
    // Rounded once, it is off by half of what lies between two floats there, at most.
    let doubt = scaled.abs() * f64::EPSILON;
    let from_half = (scaled.abs().fract() - 0.5).abs();
    let whole = scaled.round();
    // Of two exact floats the quotient or product is the nearest float.
    (from_half > doubt).then(|| if digits > 0 { whole / power } else { whole * power })
}

/// The same by the digits of the number, of which there are at most 309 before the point and 1,074
/// behind it; without rounding the digits that are too many are left out.
fn by_digits(v: f64, digits: i64, rounds: bool) -> f64 {
    let behind = digits_behind(v);
    if digits >= behind {
        return v;
    }
    let behind = usize::try_from(behind).unwrap_or(0);
    let text = format!("{:.behind$}", v.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let kept = i64::try_from(whole.len()).unwrap_or(0).saturating_add(digits);
    let Ok(kept) = usize::try_from(kept) else { return 0f64.copysign(v) };
    let (kept, rest) = all.split_at_checked(kept).unwrap_or((&all, &[]));
    let mut rounded = kept.to_vec();
    if rounds && rest.first().is_some_and(|digit| *digit >= b'5') {
        increment(&mut rounded);
    }
    let rounded = String::from_utf8(rounded).unwrap_or_default();
    let nearest = format!("0{rounded}e{}", digits.saturating_neg()).parse::<f64>();
    nearest.unwrap_or(v).copysign(v)
}

/// How many digits a float has behind the point.
fn digits_behind(v: f64) -> i64 {
    let bits = v.to_bits();
    let exponent = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let fraction = bits & ((1 << 52) - 1);
    let significand = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    // v = significand / 2^places
    let places = 1075 - exponent.max(1);
    (places - i64::from(significand.trailing_zeros())).max(0)
}

/// Adds one to a number of digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

#[cfg(test)]
mod tests;
