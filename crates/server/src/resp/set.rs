//! Setting values, with what may be asked along with it.

use esker::Ttl;

use super::call::{Call, Failure, Outcome, SYNTAX, kept};

/// When an entry ends that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// As the bucket says.
    #[default]
    Default,
    /// As before.
    Keep,
    /// Never.
    Never,
    /// At a time, in microseconds since 1970.
    At(i64),
}

#[derive(Debug, Default)]
struct SetOptions {
    if_absent: bool,
    if_present: bool,
    tells: bool,
    end: End,
}

/// A time of a command: of a unit of so many microseconds, from now unless it is since 1970.
pub(super) fn time_us(
    call: &Call<'_>,
    position: usize,
    (unit_us, is_absolute): (i64, bool),
    must_be_positive: bool,
) -> Outcome<i64> {
    let number = call.integer(position)?;
    let name = call.name();
    let invalid = || Failure::from(format!("ERR invalid expire time in '{name}' command"));
    if must_be_positive && number <= 0 {
        return Err(invalid());
    }
    let time = number.checked_mul(unit_us).ok_or_else(invalid)?;
    let start = if is_absolute { 0 } else { call.now_us() };
    start.checked_add(time).ok_or_else(invalid)
}

/// The unit of the words EX, PX, EXAT and PXAT.
fn unit_of(word: &str) -> Option<(i64, bool)> {
    Some(match word {
        "EX" => (1_000_000, false),
        "PX" => (1_000, false),
        "EXAT" => (1_000_000, true),
        "PXAT" => (1_000, true),
        _ => return None,
    })
}

fn options(call: &Call<'_>) -> Outcome<SetOptions> {
    let mut options = SetOptions::default();
    let mut position = 3;
    while position < call.arguments.len() {
        let word = call.word(position);
        let has_end = options.end != End::Default;
        match (word.as_str(), unit_of(&word)) {
            ("NX", _) if !options.if_present => options.if_absent = true,
            ("XX", _) if !options.if_absent => options.if_present = true,
            ("GET", _) => options.tells = true,
            ("KEEPTTL", _) if !has_end => options.end = End::Keep,
            (_, Some(unit)) if !has_end && position + 1 < call.arguments.len() => {
                position += 1;
                options.end = End::At(time_us(call, position, unit, true)?);
            }
            _ => return Err(SYNTAX.into()),
        }
        position += 1;
    }
    Ok(options)
}

/// Sets a value; tells whether it was set, and the value before.
fn put(call: &Call<'_>, value: &[u8], options: &SetOptions) -> Outcome<(bool, Option<Vec<u8>>)> {
    let (key, now_us) = (call.argument(1), call.now_us());
    call.expect_room(1, key.len() + value.len())?;
    let needs_before =
        options.if_absent || options.if_present || options.tells || options.end == End::Keep;
    let is_over = matches!(options.end, End::At(at_us) if at_us <= now_us);
    let ttl = |before: Option<Option<i64>>| match options.end {
        End::Default => Ttl::Default,
        End::Keep => before.map_or(Ttl::Default, kept),
        End::Never => Ttl::Never,
        End::At(at_us) => Ttl::At(at_us),
    };
    if call.within.is_none() && !needs_before && !is_over {
        call.bucket_to_put()?.put_with(key, value, ttl(None))?;
        return Ok((true, None));
    }
    let done = call.change(true, |bucket| {
        let before = if needs_before { bucket.get_with_expiry(key)? } else { None };
        if let Some((value, _)) = before.as_ref().filter(|_| options.tells) {
            call.expect_small(value)?;
        }
        if (options.if_absent && before.is_some()) || (options.if_present && before.is_none()) {
            return Ok((false, before.map(|(value, _)| value)));
        }
        if is_over {
            bucket.remove(key)?;
        } else {
            bucket.put_with(key, value, ttl(before.as_ref().map(|(_, end)| *end)))?;
        }
        Ok((true, before.map(|(value, _)| value)))
    })?;
    Ok(done.unwrap_or_default())
}

pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let options = options(call)?;
    let (is_set, before) = put(call, call.argument(2), &options)?;
    match (options.tells, is_set) {
        (true, _) => call.reply.optional(before.as_deref()),
        (false, true) => call.reply.ok(),
        (false, false) => call.reply.null(),
    }
    Ok(())
}

pub(super) fn setnx(call: &mut Call<'_>) -> Outcome {
    let options = SetOptions { if_absent: true, ..SetOptions::default() };
    let (is_set, _) = put(call, call.argument(2), &options)?;
    call.reply.integer(i64::from(is_set));
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_>) -> Outcome {
    let unit_us = if call.name() == "setex" { 1_000_000 } else { 1_000 };
    let at_us = time_us(call, 2, (unit_us, false), true)?;
    put(call, call.argument(3), &SetOptions { end: End::At(at_us), ..SetOptions::default() })?;
    call.reply.ok();
    Ok(())
}

pub(super) fn getset(call: &mut Call<'_>) -> Outcome {
    let options = SetOptions { tells: true, ..SetOptions::default() };
    let (_, before) = put(call, call.argument(2), &options)?;
    call.reply.optional(before.as_deref());
    Ok(())
}

pub(super) fn getex(call: &mut Call<'_>) -> Outcome {
    let word = call.word(2);
    let end = match (call.arguments.len(), unit_of(&word)) {
        (2, _) => End::Keep,
        (3, _) if word == "PERSIST" => End::Never,
        (4, Some(unit)) => End::At(time_us(call, 3, unit, true)?),
        _ => return Err(SYNTAX.into()),
    };
    let (key, now_us) = (call.argument(1), call.now_us());
    let value = call.change(false, |bucket| {
        let Some((value, before)) = bucket.get_with_expiry(key)? else { return Ok(None) };
        call.expect_small(&value)?;
        match end {
            End::At(at_us) if at_us <= now_us => drop(bucket.remove(key)?),
            End::At(at_us) => bucket.put_with(key, &value, Ttl::At(at_us))?,
            End::Never if before.is_some() => bucket.put_with(key, &value, Ttl::Never)?,
            _ => {}
        }
        Ok(Some(value))
    })?;
    call.reply.optional(value.flatten().as_deref());
    Ok(())
}
