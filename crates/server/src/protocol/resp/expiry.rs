//! When keys end.

#[cfg(test)]
mod tests;

use esker::Ttl;

use super::call::{Call, Outcome};
use super::set::TimeForm;

/// Under which end that a key has it gets another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Condition {
    /// It has none.
    none: bool,
    /// It has one.
    some: bool,
    /// The new one is later.
    later: bool,
    /// The new one is earlier.
    earlier: bool,
}

fn condition(call: &Call<'_>) -> Outcome<Condition> {
    let mut condition = Condition::default();
    for position in 3..call.arguments.len() {
        match call.word(position).as_str() {
            "NX" => condition.none = true,
            "XX" => condition.some = true,
            "GT" => condition.later = true,
            "LT" => condition.earlier = true,
            _ => {
                let option = String::from_utf8_lossy(call.argument(position));
                return Err(format!("ERR Unsupported option {option}").into());
            }
        }
    }
    let Condition { none, some, later, earlier } = condition;
    if none && (some || later || earlier) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if later && earlier {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    Ok(condition)
}

impl Condition {
    /// A key without an end is one that ends after all others.
    fn holds(self, before: Option<i64>, at_us: i64) -> bool {
        (!self.none || before.is_none())
            && (!self.some || before.is_some())
            && (!self.later || before.is_some_and(|before| at_us > before))
            && (!self.earlier || before.is_none_or(|before| at_us < before))
    }
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
pub(super) fn expire(call: &mut Call<'_>) -> Outcome {
    let name = call.name();
    let form =
        TimeForm { is_in_seconds: !name.starts_with('p'), is_absolute: name.ends_with("at") };
    let condition = condition(call)?;
    let ending = form.ending(call, call.integer(2)?)?;
    let key = call.argument(1);
    let done = call.change(false, |bucket| {
        let Some((value, before)) = bucket.get_with_expiry(key)? else { return Ok(false) };
        let now = bucket.moment();
        if !condition.holds(before, ending.date_us(now)) {
            return Ok(false);
        }
        if ending.is_over(now) {
            bucket.remove(key)?;
        } else {
            bucket.put(key, &value, ending.ttl().into())?;
        }
        Ok(true)
    })?;
    call.reply.integer(i64::from(done == Some(true)));
    Ok(())
}

pub(super) fn persist(call: &mut Call<'_>) -> Outcome {
    let key = call.argument(1);
    let done = call.change(false, |bucket| {
        let Some((value, Some(_))) = bucket.get_with_expiry(key)? else { return Ok(false) };
        bucket.put(key, &value, Ttl::Never.into())?;
        Ok(true)
    })?;
    call.reply.integer(i64::from(done == Some(true)));
    Ok(())
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let (name, key) = (call.name(), call.argument(1));
    let (view, is_date) = (call.view()?, name.ends_with("time"));
    let time_us = if is_date { view.end_date_us(key)? } else { view.remaining_us(key)? };
    let time = match time_us {
        None => -2,
        Some(None) => -1,
        Some(Some(time_us)) => {
            let time_ms = time_us.max(0).saturating_add(999) / 1_000;
            if name.starts_with('p') { time_ms } else { time_ms.saturating_add(500) / 1_000 }
        }
    };
    call.reply.integer(time);
    Ok(())
}
