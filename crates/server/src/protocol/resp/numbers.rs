//! Values that are numbers, written as text.

use esker_format::decimal::Decimal;

use super::call::{Call, NOT_AN_INTEGER, Outcome};
use super::protocol::integer;

pub(super) fn incr(call: &mut Call<'_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_>) -> Outcome {
    let by = call.integer(2)?;
    add(call, by)
}

pub(super) fn decrby(call: &mut Call<'_>) -> Outcome {
    let by = call.integer(2)?.checked_neg().ok_or("ERR decrement would overflow")?;
    add(call, by)
}

fn add(call: &mut Call<'_>, by: i64) -> Outcome {
    let key = call.argument(1);
    call.reserve_quota(1, key.len() + 20)?;
    let value = call.edit(key, |value| {
        let before = value.map_or(Some(0), integer).ok_or(NOT_AN_INTEGER)?;
        let sum = before.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
        Ok(sum.to_string().into_bytes())
    })?;
    call.reply.integer(integer(&value).unwrap_or(0));
    Ok(())
}

/// A number with a fraction; no spaces, no words but those for what has no end.
fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

/// The sum of two decimals with up to 38 digits, exact but for what lies beyond
/// [`FRACTION_DIGITS`]; `None` where one of the three is none.
fn exact_sum(left: &[u8], right: &[u8]) -> Option<String> {
    /// Digits behind the point that Redis writes.
    const FRACTION_DIGITS: u8 = 17;
    let (left, right) = (Decimal::parse(left)?, Decimal::parse(right)?);
    let scale = left.scale().max(right.scale());
    let mantissas = (left.rescale(scale)?.mantissa(), right.rescale(scale)?.mantissa());
    let sum = Decimal::new(mantissas.0.checked_add(mantissas.1)?, scale)?;
    let text = sum.round(FRACTION_DIGITS.into())?.to_string();
    Some(match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    })
}

pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    const NOT_A_FLOAT: &str = "ERR value is not a valid float";
    let (key, added) = (call.argument(1), call.argument(2));
    let by = float(added).ok_or(NOT_A_FLOAT)?;
    call.reserve_quota(1, key.len() + 20)?;
    let value = call.edit(key, |value| {
        let value = value.unwrap_or(b"0");
        let sum = float(value).ok_or(NOT_A_FLOAT)? + by;
        if !sum.is_finite() {
            return Err("ERR increment would produce NaN or Infinity".into());
        }
        // No minus in front of nothing.
        let sum = if sum == 0.0 { 0.0 } else { sum };
        Ok(exact_sum(value, added).unwrap_or_else(|| sum.to_string()).into_bytes())
    })?;
    call.reply.bulk(&value);
    Ok(())
}
