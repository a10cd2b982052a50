//! When keys end.

use esker::Ttl;

use super::call::{Call, Outcome};
use super::set::time_us;

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
            word => return Err(format!("ERR Unsupported option {word}").into()),
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
    let unit_us = if name.starts_with('p') { 1_000 } else { 1_000_000 };
    let at_us = time_us(call, 2, (unit_us, name.ends_with("at")), false)?;
    let condition = condition(call)?;
    let (key, now_us) = (call.argument(1), call.now_us());
    let done = call.change(false, |bucket| {
        let Some((value, before)) = bucket.get_with_expiry(key)? else { return Ok(false) };
        if !condition.holds(before, at_us) {
            return Ok(false);
        }
        if at_us <= now_us {
            bucket.remove(key)?;
        } else {
            bucket.put_with(key, &value, Ttl::At(at_us))?;
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
        bucket.put_with(key, &value, Ttl::Never)?;
        Ok(true)
    })?;
    call.reply.integer(i64::from(done == Some(true)));
    Ok(())
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let name = call.name();
    let left = match call.view()?.expiry(call.argument(1))? {
        None => -2,
        Some(None) => -1,
        Some(Some(at_us)) => {
            let start_us = if name.ends_with("time") { 0 } else { call.now_us() };
            let left_ms = at_us.saturating_sub(start_us).max(0).saturating_add(999) / 1_000;
            if name.starts_with('p') { left_ms } else { left_ms.saturating_add(500) / 1_000 }
        }
    };
    call.reply.integer(left);
    Ok(())
}
