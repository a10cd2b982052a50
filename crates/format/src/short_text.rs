//! Numbers, dates and times as text, digit by digit: what exports are full of.
//!
//! A floating-point number is written by its shortest digits that read back as itself. Those of
//! most numbers that people write are few: when `v` is the double next to `m / 10^k`, and `m` has
//! up to 15 digits, no other decimal of up to 15 digits reads as `v`, so that the digits of `m` are
//! the shortest for the least such `k`. Other numbers go through the standard library.
#![allow(
    clippy::indexing_slicing,
    reason = "hot; the longest text is far below the array's length"
)]

use crate::ValueRef;
use crate::calendar::{DAY_US, civil_from_days};

/// Bytes for the longest of these texts, a timestamp in the year -290308, and more.
const BYTES_MAX: usize = 48;

/// Powers of ten by which short decimals are whole.
const UNITS: [f64; 6] = [1e1, 1e2, 1e3, 1e4, 1e5, 1e6];

/// A text of a few bytes, on the stack.
///
/// ```
/// use esker_format::{ShortText, ValueRef};
///
/// let text = ShortText::of(ValueRef::Float(-12.75)).unwrap();
/// assert_eq!(text.as_bytes(), b"-12.75");
/// assert!(ShortText::of(ValueRef::Text("long")).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ShortText {
    bytes: [u8; BYTES_MAX],
    len: usize,
}

impl ShortText {
    /// A value as it is displayed; `None` when it is no number, date or time, or has many digits.
    #[must_use]
    #[inline]
    pub fn of(value: ValueRef<'_>) -> Option<Self> {
        let mut text = Self { bytes: [0; BYTES_MAX], len: 0 };
        match value {
            ValueRef::Int(v) => {
                text.push_sign(v < 0);
                text.push_digits(v.unsigned_abs(), 1);
            }
            ValueRef::Uint(v) => text.push_digits(v, 1),
            ValueRef::Float(v) => return text.push_float(v).then_some(text),
            ValueRef::Date(v) => text.push_date(v.into()),
            ValueRef::Timestamp(v) => text.push_timestamp(v),
            ValueRef::Time(v) => text.push_time(v),
            _ => return None,
        }
        Some(text)
    }

    /// The text, which is ASCII.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default() // default: ASCII is always text.
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn push_sign(&mut self, is_negative: bool) {
        if is_negative {
            self.push(b'-');
        }
    }

    /// A number with zeros in front to make up a width.
    #[inline]
    fn push_digits(&mut self, mut value: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut start = digits.len();
        while value > 0 {
            start -= 1;
            // default: a digit fits.
            digits[start] = b'0' + u8::try_from(value % 10).unwrap_or_default();
            value /= 10;
        }
        let digits = &digits[start.min(20 - width)..];
        self.bytes[self.len..self.len + digits.len()].copy_from_slice(digits);
        self.len += digits.len();
    }

    /// A number below 100 of two digits.
    #[inline]
    fn push_pair(&mut self, value: i64) {
        debug_assert!((0..100).contains(&value), "{value} as two digits");
        let value = u8::try_from(value).unwrap_or_default(); // default: it is below 100.
        self.push(b'0' + value / 10);
        self.push(b'0' + value % 10);
    }

    fn push_date(&mut self, days: i64) {
        let (year, month, day) = civil_from_days(days);
        self.push_sign(year < 0);
        self.push_digits(year.unsigned_abs(), 4);
        self.push(b'-');
        self.push_pair(month);
        self.push(b'-');
        self.push_pair(day);
    }

    fn push_timestamp(&mut self, us: i64) {
        self.push_date(us.div_euclid(DAY_US));
        self.push(b' ');
        self.push_time(us.rem_euclid(DAY_US));
    }

    /// With a fraction only when there is one.
    fn push_time(&mut self, of_day: i64) {
        let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
        self.push_pair(seconds / 3600);
        self.push(b':');
        self.push_pair(seconds / 60 % 60);
        self.push(b':');
        self.push_pair(seconds % 60);
        if fraction != 0 {
            self.push(b'.');
            self.push_digits(fraction.unsigned_abs(), 6);
        }
    }

    /// False, and nothing written, when its digits are many, or it has an exponent or none at all.
    fn push_float(&mut self, value: f64) -> bool {
        let magnitude = value.abs();
        if magnitude != 0.0 && !(1e-3..1e14).contains(&magnitude) {
            return false;
        }
        for (unit, decimals) in UNITS.iter().zip(1..) {
            let mantissa = (magnitude * unit).round();
            if mantissa >= 1e15 {
                return false;
            }
            if mantissa / unit == magnitude {
                self.push_sign(value.is_sign_negative());
                self.push_mantissa(mantissa, *unit, decimals);
                return true;
            }
        }
        false
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "both are whole, from 0 up to below 10^15"
    )]
    fn push_mantissa(&mut self, mantissa: f64, unit: f64, decimals: usize) {
        let (mantissa, unit) = (mantissa as u64, unit as u64);
        self.push_digits(mantissa / unit, 1);
        self.push(b'.');
        self.push_digits(mantissa % unit, decimals);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short(value: f64) -> Option<String> {
        Some(ShortText::of(ValueRef::Float(value))?.as_str().to_owned())
    }

    #[test]
    fn floats_read_as_the_standard_library_writes_them() {
        let none = [f64::NAN, f64::INFINITY, 1e300, 1e-7, 5e-324, 0.1 + 0.2, 1.0 / 3.0, 1e16];
        assert!(none.iter().all(|value| short(*value).is_none()));
        let some = [0.0, -0.0, 1.0, -1.5, 0.001, 0.000_1 * 10.0, 12.25, 99_999_999_999.9, 1e13];
        for value in some.iter().chain(&[0.1, 0.07, 1234.5678, 0.999_999, 1e5, 100.01]) {
            assert_eq!(short(*value), Some(format!("{value:?}")));
        }
    }

    #[test]
    fn numbers_and_times_are_written_in_full() {
        let of = |value| ShortText::of(value).unwrap().as_str().to_owned();
        for value in [0, 7, -7, 10, 99, 100, i64::MIN, i64::MAX] {
            assert_eq!(of(ValueRef::Int(value)), value.to_string());
        }
        assert_eq!(of(ValueRef::Uint(u64::MAX)), u64::MAX.to_string());
        assert_eq!(of(ValueRef::Timestamp(-1)), "1969-12-31 23:59:59.999999");
        assert_eq!(of(ValueRef::Timestamp(i64::MIN)), "-290308-12-21 19:59:05.224192");
        assert_eq!(of(ValueRef::Date(i32::MAX)), "5881580-07-11");
        assert_eq!(of(ValueRef::Date(-719_529)), "-0001-12-31");
        assert_eq!(of(ValueRef::Time(DAY_US - 1_000_000)), "23:59:59");
    }

    proptest! {
        #[test]
        fn a_short_float_is_the_shortest(mantissa in any::<i32>(), decimals in 0i32..8) {
            let value = f64::from(mantissa) / 10f64.powi(decimals);
            if let Some(text) = short(value) {
                prop_assert_eq!(text, format!("{value:?}"));
            }
        }

        #[test]
        fn any_float_is_the_shortest(bits in any::<u64>(), exponent in 1010u64..1080) {
            let value = f64::from_bits(bits & !(0x7ff << 52) | exponent << 52);
            if let Some(text) = short(value) {
                prop_assert_eq!(text, format!("{value:?}"));
            }
        }
    }
}
