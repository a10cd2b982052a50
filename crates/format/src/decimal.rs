//! Decimal numbers: whole numbers of a power of ten, exact.
//!
//! A [`Decimal`] is a mantissa and a scale, `mantissa · 10^-scale`, with at most [`DIGITS_MAX`]
//! digits. A field has a scale of its own, and all its values have that one, so that its columns
//! hold nothing but mantissas: 8 bytes up to [`WORD_DIGITS_MAX`] digits, 16 beyond. Nothing here
//! goes through a float, and nothing is rounded but by the functions whose names say so.

use std::cmp::Ordering;
use std::fmt;

use crate::value::compare_floats;

/// The most digits of a decimal.
pub const DIGITS_MAX: u8 = 38;

/// The most digits of the decimals that are stored in 8 bytes.
pub const WORD_DIGITS_MAX: u8 = 18;

/// A decimal number. Its scale says how many digits stand behind the point, zeros at the end
/// included: 1.5 and 1.50 are equal and print as they were made.
// Bytes instead of an `i128`, whose alignment would make every value of every type larger.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decimal {
    mantissa: [u8; 16],
    scale: u8,
}

/// 10 to the power of `digits`, up to [`DIGITS_MAX`]; `None` beyond.
#[must_use]
pub const fn power(digits: u32) -> Option<i128> {
    if digits > DIGITS_MAX as u32 { None } else { 10i128.checked_pow(digits) }
}

/// The first mantissa that has more than `precision` digits.
#[must_use]
pub const fn limit(precision: u8) -> i128 {
    match power(precision as u32) {
        Some(limit) => limit,
        None => i128::MAX,
    }
}

/// How many digits a mantissa has; 1 for zero.
#[must_use]
pub fn digit_count(mantissa: i128) -> u8 {
    // default: zero, which has no logarithm, has one digit.
    let digits = mantissa.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    u8::try_from(digits).unwrap_or(u8::MAX) // default: 128 bits are 39 digits at most.
}

impl Decimal {
    /// `mantissa · 10^-scale`; `None` when either is out of range.
    #[must_use]
    pub const fn new(mantissa: i128, scale: u8) -> Option<Self> {
        if scale > DIGITS_MAX || mantissa.unsigned_abs() >= limit(DIGITS_MAX).unsigned_abs() {
            return None;
        }
        Some(Self { mantissa: mantissa.to_le_bytes(), scale })
    }

    /// A whole number.
    #[must_use]
    pub fn whole(value: impl Into<i128>) -> Option<Self> {
        Self::new(value.into(), 0)
    }

    /// The number as a whole number of `10^-scale`.
    #[must_use]
    #[inline]
    pub const fn mantissa(self) -> i128 {
        i128::from_le_bytes(self.mantissa)
    }

    /// How many digits stand behind the point.
    #[must_use]
    #[inline]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// How many digits a field needs for it, those behind the point included.
    #[must_use]
    pub fn precision(self) -> u8 {
        digit_count(self.mantissa()).max(self.scale)
    }

    /// The same number with another scale; `None` when it has no such form.
    #[must_use]
    pub fn rescale(self, scale: u8) -> Option<Self> {
        let mantissa = self.mantissa();
        let rescaled = if scale >= self.scale {
            mantissa.checked_mul(power(u32::from(scale - self.scale))?)?
        } else {
            let unit = power(u32::from(self.scale - scale))?;
            if mantissa % unit != 0 {
                return None;
            }
            mantissa / unit
        };
        Self::new(rescaled, scale)
    }

    /// The nearest number with at most `digits` digits behind the point (or, below zero, with that
    /// many zeros before it); halves go away from zero. Its scale is `digits`, at least 0 and at
    /// most what it was. `None` when it has too many digits.
    #[must_use]
    pub fn round(self, digits: i32) -> Option<Self> {
        let dropped = i32::from(self.scale).saturating_sub(digits);
        if dropped <= 0 {
            return Some(self);
        }
        // default: below zero no digit stands behind the point.
        let scale = u8::try_from(digits).unwrap_or(0);
        let Some(unit) = u32::try_from(dropped).ok().and_then(power) else {
            return Self::new(0, scale);
        };
        let (mantissa, half) = (self.mantissa(), unit / 2);
        let whole = (mantissa.checked_add(if mantissa < 0 { -half } else { half })?) / unit;
        // default: where digits stand behind the point, no zeros stand before it.
        let zeros = power(u32::try_from(-digits).unwrap_or(0))?;
        Self::new(whole.checked_mul(zeros)?, scale)
    }

    /// The part before the point.
    #[must_use]
    pub fn truncate(self) -> i128 {
        self.mantissa() / limit(self.scale)
    }

    /// The greatest whole number that is not above it.
    #[must_use]
    pub fn floor(self) -> i128 {
        self.mantissa().div_euclid(limit(self.scale))
    }

    /// The least whole number that is not below it.
    #[must_use]
    pub fn ceil(self) -> i128 {
        -(-self.mantissa()).div_euclid(limit(self.scale))
    }

    /// The order of numbers, whatever their scales.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        let at = |v: Self| {
            let unit = limit(scale - v.scale);
            // default: what does not fit is further from zero than anything that does.
            v.mantissa().checked_mul(unit).unwrap_or(match v.mantissa() {
                ..0 => i128::MIN,
                _ => i128::MAX,
            })
        };
        at(self).cmp(&at(other))
    }

    /// The order of this number and a float, exactly; NaN is the greatest.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked first")]
    #[allow(clippy::cast_sign_loss, reason = "signs are handled first")]
    pub fn compare_float(self, other: f64) -> Ordering {
        if other.is_nan() || other >= 1e39 {
            return Ordering::Less;
        }
        if other <= -1e39 {
            return Ordering::Greater;
        }
        // The whole parts are exact, and so are the fractions.
        let (whole, unit) = (other.trunc(), limit(self.scale));
        let fraction = other - whole;
        let by_whole = self.truncate().cmp(&(whole as i128));
        if by_whole.is_ne() {
            return by_whole;
        }
        let rest = self.mantissa() % unit;
        match (rest.signum(), compare_floats(fraction, 0.0)) {
            (0, Ordering::Equal) => Ordering::Equal,
            (..=0, Ordering::Greater) | (-1, Ordering::Equal) => Ordering::Less,
            (0.., Ordering::Less) | (1.., Ordering::Equal) => Ordering::Greater,
            (sign, _) => {
                let (rest, unit) = (rest.unsigned_abs(), unit.unsigned_abs());
                let order = compare_fractions(rest, unit, fraction.abs());
                if sign < 0 { order.reverse() } else { order }
            }
        }
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let mantissa = self.mantissa();
        // Two exact floats: one division rounds correctly.
        if mantissa.unsigned_abs() < 1 << 53 && self.scale <= 22 {
            return mantissa as f64 / limit(self.scale) as f64;
        }
        // default: a decimal is always written as a float may be.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// A float as a decimal with at most `scale` digits behind the point: the shortest number that
    /// reads back as the float, rounded. `None` when it has too many digits, or is no number.
    #[must_use]
    pub fn round_float(v: f64, scale: u8) -> Option<Self> {
        if v.is_finite() { Self::round_text(&format!("{v:e}"), scale) } else { None }
    }

    /// The same of a 32-bit float.
    #[must_use]
    pub fn round_float32(v: f32, scale: u8) -> Option<Self> {
        if v.is_finite() { Self::round_text(&format!("{v:e}"), scale) } else { None }
    }

    /// A float as the formatter writes it with an exponent.
    fn round_text(text: &str, scale: u8) -> Option<Self> {
        let (digits, exponent) = text.split_once('e')?;
        let digits = Self::parse(digits.as_bytes())?;
        // The number is `digits`, one of them before the point, moved by the exponent.
        let moved = exponent.parse::<i32>().ok()?;
        let kept = digits.round(moved.saturating_add(scale.into()))?;
        let places = i32::from(kept.scale).saturating_sub(moved);
        let mantissa = match u8::try_from(places) {
            Ok(places) if places <= scale => {
                kept.mantissa().checked_mul(power(u32::from(scale - places))?)?
            }
            // Rounding has left zeros alone behind the last place.
            // default: no number has a digit before so many places.
            Ok(places) => kept.mantissa() / power(u32::from(places - scale)).unwrap_or(i128::MAX),
            Err(_) if places > 0 => 0,
            Err(_) if kept.mantissa() == 0 => 0,
            Err(_) => {
                let zeros = i32::from(scale).checked_sub(places)?;
                kept.mantissa().checked_mul(power(u32::try_from(zeros).ok()?)?)?
            }
        };
        Self::new(mantissa, scale)
    }

    /// A number as it is written, `-12.50` or `1e3`: exactly that, with as many digits behind the
    /// point as are written. `None` for what is not a number, or has more than 38 digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let parts = Parts::of(text)?;
        let fraction = i32::try_from(parts.fraction.len()).ok()?;
        let scale = fraction.saturating_sub(parts.exponent).max(0);
        let scale = u8::try_from(scale).ok()?;
        Self::new(parts.mantissa(scale)?, scale)
    }

    /// A number as a field of `precision` digits, `scale` of them behind the point, holds it: its
    /// mantissa. `None` when that would not be the very number that is written.
    #[must_use]
    #[inline]
    pub fn parse_mantissa(text: &[u8], precision: u8, scale: u8) -> Option<i128> {
        let mantissa = Parts::of(text)?.mantissa(scale)?;
        (mantissa.unsigned_abs() < limit(precision).unsigned_abs()).then_some(mantissa)
    }
}

/// The order of `rest / unit` and `fraction`, both above 0 and below 1.
#[allow(clippy::cast_possible_truncation, reason = "halves are cut on purpose")]
fn compare_fractions(rest: u128, unit: u128, fraction: f64) -> Ordering {
    let bits = fraction.to_bits();
    let exponent = bits >> 52;
    // fraction = significand / 2^places
    let significand = u128::from(bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52);
    let places = 1075u64.saturating_sub(exponent.max(1));
    if places > 190 {
        // Below 10^-38, and so below every decimal.
        return Ordering::Greater;
    }
    // significand · unit, in a high and a low half, against rest · 2^places.
    let low = significand * (unit & u128::from(u64::MAX));
    let middle = significand * (unit >> 64) + (low >> 64);
    let (high, low) = (middle >> 64, middle << 64 | low & u128::from(u64::MAX));
    let (quotient, is_exact) = match places {
        0..128 => {
            let mask = (1u128 << places) - 1;
            let upper = if places == 0 { 0 } else { high << (128 - places) };
            (low >> places | upper, low & mask == 0)
        }
        _ => {
            let mask = (1u128 << (places - 128)) - 1;
            (high >> (places - 128), high & mask == 0 && low == 0)
        }
    };
    rest.cmp(&quotient).then(if is_exact { Ordering::Equal } else { Ordering::Less })
}

/// A number as it is written, taken apart.
struct Parts<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
}

impl<'a> Parts<'a> {
    #[inline]
    fn of(text: &'a [u8]) -> Option<Self> {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let digits = |text: &'a [u8]| {
            let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
            text.split_at_checked(count)
        };
        let (whole, rest) = digits(rest)?;
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest)?,
            _ => (&[][..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', exponent @ ..] if exponent.len() <= 6 => {
                std::str::from_utf8(exponent).ok()?.parse().ok()?
            }
            _ => return None,
        };
        let any = !whole.is_empty() || !fraction.is_empty();
        any.then_some(Self { negative, whole, fraction, exponent })
    }

    /// The number as a whole number of `10^-scale`; `None` when it is none, or has too many digits.
    #[inline]
    fn mantissa(&self, scale: u8) -> Option<i128> {
        let digits = || self.whole.iter().chain(self.fraction).map(|b| b - b'0');
        let written = self.whole.len() + self.fraction.len();
        let behind = i64::try_from(self.fraction.len()).ok()? - i64::from(self.exponent);
        let zeros = i64::from(scale) - behind;
        let kept = i64::try_from(written).ok()?.checked_add(zeros.min(0))?;
        let kept = usize::try_from(kept).unwrap_or(0); // default: below zero none is kept.
        if zeros < 0 && digits().skip(kept).any(|digit| digit != 0) {
            return None;
        }
        let mut mantissa = if kept <= usize::from(WORD_DIGITS_MAX) {
            digits().take(kept).fold(0u64, |sum, digit| sum * 10 + u64::from(digit)).into()
        } else {
            digits().take(kept).try_fold(0i128, |sum, digit| {
                let sum = sum.checked_mul(10)?.checked_add(digit.into())?;
                (sum < limit(DIGITS_MAX)).then_some(sum)
            })?
        };
        if zeros > 0 && mantissa != 0 {
            mantissa = mantissa.checked_mul(power(u32::try_from(zeros).ok()?)?)?;
        }
        Some(if self.negative { -mantissa } else { mantissa })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mantissa = self.mantissa();
        let sign = if mantissa < 0 { "-" } else { "" };
        let (unit, scale) = (limit(self.scale).unsigned_abs(), usize::from(self.scale));
        let (whole, rest) = (mantissa.unsigned_abs() / unit, mantissa.unsigned_abs() % unit);
        write!(f, "{sign}{whole}")?;
        if scale == 0 { Ok(()) } else { write!(f, ".{rest:0scale$}") }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(*other)
    }
}

impl std::str::FromStr for Decimal {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        Self::parse(text.as_bytes()).ok_or_else(|| {
            let found = crate::text::shown(text.as_bytes());
            crate::Error::invalid(format!(
                "expected a number of at most {DIGITS_MAX} digits, found {found}"
            ))
        })
    }
}

#[cfg(test)]
mod tests;
