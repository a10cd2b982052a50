//! Functions of numbers: of integers exact, of floats as IEEE 754 says.

use esker_format::decimal::power;
use esker_format::{Decimal, ValueRef};

use super::call::Call;
use super::rounding;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;

pub(super) fn call<'a>(call: &Call<'_, 'a>) -> Result<Vector<'a>> {
    let operand = call.operand(0)?;
    if operand.data_type.is_decimal() {
        return decimal(call, operand);
    }
    let len = operand.len();
    match &operand.lanes {
        Lanes::Ints(values) => {
            let value = |i: usize| values.get(i).copied().unwrap_or_default();
            call.map(len, |v| Lanes::Ints(v.into()), |i| integer(call, value(i), i).map(Some))
        }
        Lanes::Uints(values) => {
            let value = |i: usize| values.get(i).copied().unwrap_or_default();
            call.map(len, |v| Lanes::Uints(v.into()), |i| unsigned(call, value(i), i).map(Some))
        }
        Lanes::Floats(values) => {
            let value = |i: usize| values.get(i).copied().unwrap_or_default();
            call.map(len, |v| Lanes::Floats(v.into()), |i| float(call, value(i), i))
        }
        _ => Err(call.undefined()),
    }
}

fn decimal<'a>(call: &Call<'_, 'a>, operand: &Vector<'a>) -> Result<Vector<'a>> {
    let value = |row: usize| {
        let ValueRef::Decimal(v) = operand.value(row) else { return Ok(None) };
        if call.vectors.iter().any(|v| v.is_null(row)) {
            return Ok(None);
        }
        let computed = match call.function {
            F::Abs => Decimal::new(v.mantissa().abs(), v.scale()),
            F::Sign => Decimal::whole(v.mantissa().signum()),
            F::Floor => Decimal::whole(v.floor()),
            F::Ceil => Decimal::whole(v.ceil()),
            F::Round => {
                let digits = call.int(1, row, 0)?;
                v.round(i32::try_from(digits.clamp(-400, 400)).unwrap_or(0))
            }
            F::Trunc => truncate_decimal(v, call.int(1, row, 0)?),
            _ => return Err(call.undefined()),
        };
        computed.map(Some).ok_or_else(|| call.error(format!("{v} has too many digits")))
    };
    super::super::decimal::map(call.data_type, (0..operand.len()).map(value))
}

fn integer(call: &Call<'_, '_>, value: i64, row: usize) -> Result<i64> {
    match call.function {
        F::Abs => value.checked_abs().ok_or_else(|| call.error(format!("{value} has none in i64"))),
        F::Sign => Ok(value.signum()),
        F::Round => {
            let digits = call.int(1, row, 0)?;
            let rounded = round_integer(value.into(), digits);
            i64::try_from(rounded).map_err(|_| call.error(format!("{rounded} does not fit i64")))
        }
        F::Trunc => {
            let zeros = call.int(1, row, 0)?.saturating_neg();
            let Ok(zeros @ 1..) = u32::try_from(zeros) else { return Ok(value) };
            Ok(10i64.checked_pow(zeros).map_or(0, |unit| value / unit * unit))
        }
        _ => Ok(value),
    }
}

fn unsigned(call: &Call<'_, '_>, value: u64, row: usize) -> Result<u64> {
    match call.function {
        F::Sign => Ok(u64::from(value > 0)),
        F::Round => {
            let rounded = round_integer(value.into(), call.int(1, row, 0)?);
            u64::try_from(rounded).map_err(|_| call.error(format!("{rounded} does not fit u64")))
        }
        F::Trunc => {
            let zeros = call.int(1, row, 0)?.saturating_neg();
            let Ok(zeros @ 1..) = u32::try_from(zeros) else { return Ok(value) };
            Ok(10u64.checked_pow(zeros).map_or(0, |unit| value / unit * unit))
        }
        _ => Ok(value),
    }
}

fn float(call: &Call<'_, '_>, value: f64, row: usize) -> Result<Option<f64>> {
    Ok(Some(match call.function {
        F::Abs => value.abs(),
        F::Sign if value == 0.0 || value.is_nan() => value,
        F::Sign => value.signum(),
        F::Round => rounding::round(value, call.int(1, row, 0)?),
        F::Trunc => rounding::truncate(value, call.int(1, row, 0)?),
        F::Floor => value.floor(),
        F::Ceil => value.ceil(),
        F::Sqrt => return Ok(real(value.sqrt(), value.is_nan())),
        F::Power => {
            let exponent = call.floats(1)?.get(row).copied().unwrap_or_default();
            return Ok(real(value.powf(exponent), value.is_nan() || exponent.is_nan()));
        }
        _ => return Err(call.undefined()),
    }))
}

/// What is no real number is NULL, unless it came of what was none.
pub(super) fn real(value: f64, from_nan: bool) -> Option<f64> {
    (!value.is_nan() || from_nan).then_some(value)
}

/// Cut to so many digits behind the point, or, below zero, to tens, hundreds, …
fn truncate_decimal(v: Decimal, digits: i64) -> Option<Decimal> {
    let dropped = i64::from(v.scale()).saturating_sub(digits);
    if dropped <= 0 {
        return Some(v);
    }
    // default: below zero no digit stands behind the point.
    let scale = u8::try_from(digits).unwrap_or(0);
    let Some(unit) = u32::try_from(dropped).ok().and_then(power) else {
        return Decimal::new(0, scale);
    };
    // default: where digits stand behind the point, no zeros stand before it.
    let zeros = power(u32::try_from(digits.saturating_neg()).unwrap_or(0))?;
    Decimal::new((v.mantissa() / unit).checked_mul(zeros)?, scale)
}

/// Half away from zero, to tens, hundreds, … when `digits` is negative.
fn round_integer(value: i128, digits: i64) -> i128 {
    let Ok(zeros @ 1..) = u32::try_from(digits.saturating_neg()) else { return value };
    let Some(unit) = 10i128.checked_pow(zeros) else { return 0 };
    (value.abs() + unit / 2) / unit * unit * value.signum()
}
