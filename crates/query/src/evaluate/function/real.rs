//! Functions of real numbers: logarithms, powers of e, angles. What has no real value is NULL.

use super::call::Call;
use super::number::real;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let floats = |v: Vec<f64>| Lanes::Floats(v.into());
    let first = call.floats(0)?;
    let at = |values: &[f64], i: usize| values.get(i).copied().unwrap_or_default();
    if !call.has(1) {
        return call.map(len, floats, |i| of_one(call, at(first, i)));
    }
    let second = call.floats(1)?;
    call.map(len, floats, |i| {
        let (x, y) = (at(first, i), at(second, i));
        Ok(match call.function {
            F::Log => logarithm(x, y),
            F::Atan2 => Some(x.atan2(y)),
            _ => return Err(call.undefined()),
        })
    })
}

fn of_one(call: &Call<'_, '_>, x: f64) -> Result<Option<f64>> {
    let value = match call.function {
        F::Cbrt => x.cbrt(),
        F::Exp => x.exp(),
        F::Ln => return Ok(of_positive(x, f64::ln)),
        F::Log | F::Log10 => return Ok(of_positive(x, f64::log10)),
        F::Log2 => return Ok(of_positive(x, f64::log2)),
        F::Sin => x.sin(),
        F::Cos => x.cos(),
        F::Tan => x.tan(),
        F::Cot => return Ok((x != 0.0).then(|| 1.0 / x.tan()).filter(|v| !v.is_nan())),
        F::Asin => x.asin(),
        F::Acos => x.acos(),
        F::Atan => x.atan(),
        F::Sinh => x.sinh(),
        F::Cosh => x.cosh(),
        F::Tanh => x.tanh(),
        F::Asinh => x.asinh(),
        F::Acosh => x.acosh(),
        F::Atanh => x.atanh(),
        F::Degrees => x.to_degrees(),
        F::Radians => x.to_radians(),
        _ => return Err(call.undefined()),
    };
    Ok(real(value, x.is_nan()))
}

/// A logarithm, which only positive numbers have.
fn of_positive(x: f64, logarithm: impl Fn(f64) -> f64) -> Option<f64> {
    (x > 0.0 || x.is_nan()).then(|| logarithm(x))
}

/// The logarithm to a base. Those to bases with functions of their own are as exact as these.
fn logarithm(base: f64, x: f64) -> Option<f64> {
    if base == 2.0 {
        return of_positive(x, f64::log2);
    }
    if base == 10.0 {
        return of_positive(x, f64::log10);
    }
    let divisor = of_positive(base, f64::ln).filter(|v| *v != 0.0)?;
    Some(of_positive(x, f64::ln)? / divisor)
}

/// `gcd` and `lcm`.
pub(super) fn divisors<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let ints = |v: Vec<i64>| Lanes::Ints(v.into());
    call.map(len, ints, |i| {
        let (a, b) = (call.int(0, i, 0)?.unsigned_abs(), call.int(1, i, 0)?.unsigned_abs());
        let divisor = greatest_divisor(a, b);
        let value = match call.function {
            F::Gcd => Some(divisor),
            _ if divisor == 0 => Some(0),
            _ => (a / divisor).checked_mul(b),
        };
        let value = value.and_then(|value| i64::try_from(value).ok());
        value.map(Some).ok_or_else(|| call.error(format!("that of {a} and {b} does not fit i64")))
    })
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Functions of the bits of integers.
pub(super) fn bits<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map(
        len,
        |v: Vec<i64>| Lanes::Ints(v.into()),
        |i| {
            let (a, b) = (call.int(0, i, 0)?, call.int(1, i, 0)?);
            let count = || match u32::try_from(b) {
                Ok(count @ ..64) => Ok(count),
                _ => Err(call.error(format!("expected a count of 0 to 63, found {b}"))),
            };
            Ok(Some(match call.function {
                F::BitAnd => a & b,
                F::BitOr => a | b,
                F::BitXor => a ^ b,
                F::BitNot => !a,
                F::BitShiftLeft => a << count()?,
                F::BitShiftRight => a >> count()?,
                _ => return Err(call.undefined()),
            }))
        },
    )
}

/// `random` and `gen_random_uuid`: other values for each row.
pub(super) fn random<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let source = call.meter.limits().random.as_ref();
    let source = source.ok_or_else(|| {
        call.error("a constant is expected here, which is the same each time it is read")
    })?;
    call.meter.work(len.saturating_mul(16))?;
    if call.function == F::Random {
        // The highest 53 bits: all that a float below 1 has.
        let one = |_| Ok(Some((source.next_u64() >> 11) as f64 / 2f64.powi(53)));
        return call.map(len, |v| Lanes::Floats(v.into()), one);
    }
    call.map_bytes(len, |_, room| {
        room.take(16)?;
        let high = source.next_u64() & !0xf000 | 0x4000;
        let low = source.next_u64() >> 2 | 0b10 << 62;
        let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes().to_vec();
        bytes.reverse();
        Ok(Some(bytes.into()))
    })
}
