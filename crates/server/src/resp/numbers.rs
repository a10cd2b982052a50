//! Values that are numbers, written as text.

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
    call.expect_room(1, key.len() + 20)?;
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

pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    const NOT_A_FLOAT: &str = "ERR value is not a valid float";
    let (key, by) = (call.argument(1), float(call.argument(2)).ok_or(NOT_A_FLOAT)?);
    call.expect_room(1, key.len() + 20)?;
    let value = call.edit(key, |value| {
        let before = value.map_or(Some(0.0), float).ok_or(NOT_A_FLOAT)?;
        let sum = before + by;
        if !sum.is_finite() {
            return Err("ERR increment would produce NaN or Infinity".into());
        }
        // No minus in front of nothing.
        let sum = if sum == 0.0 { 0.0 } else { sum };
        Ok(sum.to_string().into_bytes())
    })?;
    call.reply.bulk(&value);
    Ok(())
}
