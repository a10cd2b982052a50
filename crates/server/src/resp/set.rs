//! Setting values, with what may be asked along with it.

use std::time::Duration;

use esker::{Moment, Ttl};

use super::call::{Call, Failure, Outcome, SYNTAX, kept};

/// When an entry is to end, as a command says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// In so many microseconds, whatever happens to the date meanwhile.
    In(i64),
    /// At a date, in microseconds since 1970.
    At(i64),
}

impl Ending {
    /// The date.
    pub fn date_us(self, now: Moment) -> i64 {
        match self {
            Self::In(us) => now.date_us.saturating_add(us),
            Self::At(date_us) => date_us,
        }
    }

    /// True when that is not later than now.
    pub fn is_over(self, now: Moment) -> bool {
        self.date_us(now) <= now.date_us
    }

    /// The time to live of an entry that is put.
    pub fn ttl(self) -> Ttl {
        match self {
            Self::In(us) => Ttl::After(Duration::from_micros(us.max(0).unsigned_abs())),
            Self::At(date_us) => Ttl::At(date_us),
        }
    }
}

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
    /// As the command says.
    Said(Ending),
}

#[derive(Debug, Default)]
struct SetOptions {
    if_absent: bool,
    if_present: bool,
    tells: bool,
    end: End,
}

/// The end that a command says: a number of units of so many microseconds, from now or since 1970.
pub(super) fn ending(
    call: &Call<'_>,
    position: usize,
    (unit_us, is_absolute): (i64, bool),
    must_be_positive: bool,
) -> Outcome<Ending> {
    let number = call.integer(position)?;
    let name = call.name();
    let invalid = || Failure::from(format!("ERR invalid expire time in '{name}' command"));
    if must_be_positive && number <= 0 {
        return Err(invalid());
    }
    let time_us = number.checked_mul(unit_us).ok_or_else(invalid)?;
    if is_absolute {
        return Ok(Ending::At(time_us));
    }
    call.moment()?.date_us.checked_add(time_us).ok_or_else(invalid)?;
    Ok(Ending::In(time_us))
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
                options.end = End::Said(ending(call, position, unit, true)?);
            }
            _ => return Err(SYNTAX.into()),
        }
        position += 1;
    }
    Ok(options)
}

/// Sets a value; tells whether it was set, and the value before.
fn put(call: &Call<'_>, value: &[u8], options: &SetOptions) -> Outcome<(bool, Option<Vec<u8>>)> {
    let key = call.argument(1);
    call.expect_room(1, key.len() + value.len())?;
    let needs_before =
        options.if_absent || options.if_present || options.tells || options.end == End::Keep;
    // Whether a date is over is known where the moment is fixed.
    let may_be_over = matches!(options.end, End::Said(Ending::At(_)));
    let ttl = |before: Option<Option<i64>>| match options.end {
        End::Default => Ttl::Default,
        End::Keep => before.map_or(Ttl::Default, kept),
        End::Never => Ttl::Never,
        End::Said(ending) => ending.ttl(),
    };
    if call.within.is_none() && !needs_before && !may_be_over {
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
        match options.end {
            End::Said(ending) if ending.is_over(bucket.moment()) => drop(bucket.remove(key)?),
            _ => bucket.put_with(key, value, ttl(before.as_ref().map(|(_, end)| *end)))?,
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
    let end = End::Said(ending(call, 2, (unit_us, false), true)?);
    put(call, call.argument(3), &SetOptions { end, ..SetOptions::default() })?;
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
        (4, Some(unit)) => End::Said(ending(call, 3, unit, true)?),
        _ => return Err(SYNTAX.into()),
    };
    let key = call.argument(1);
    let value = call.change(false, |bucket| {
        let Some((value, before)) = bucket.get_with_expiry(key)? else { return Ok(None) };
        call.expect_small(&value)?;
        match end {
            End::Said(ending) if ending.is_over(bucket.moment()) => drop(bucket.remove(key)?),
            End::Said(ending) => bucket.put_with(key, &value, ending.ttl())?,
            End::Never if before.is_some() => bucket.put_with(key, &value, Ttl::Never)?,
            _ => {}
        }
        Ok(Some(value))
    })?;
    call.reply.optional(value.flatten().as_deref());
    Ok(())
}
