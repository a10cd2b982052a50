//! Setting values, with the options of it.

use std::time::Duration;

use esker::{Moment, ScopedBucket, Ttl};

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

/// How a command gives a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeForm {
    /// In seconds, or else in milliseconds.
    pub is_in_seconds: bool,
    /// Since 1970, or else from now.
    pub is_absolute: bool,
}

impl TimeForm {
    /// The form of the words EX, PX, EXAT and PXAT.
    fn of_word(word: &str) -> Option<Self> {
        let (is_in_seconds, is_absolute) = match word {
            "EX" => (true, false),
            "PX" => (false, false),
            "EXAT" => (true, true),
            "PXAT" => (false, true),
            _ => return None,
        };
        Some(Self { is_in_seconds, is_absolute })
    }

    /// The end that an argument says, the last that there is where it would be later. An error
    /// where it has more milliseconds since 1970 than 64 bits count, as in Redis.
    pub fn ending(self, call: &Call<'_>, number: i64) -> Outcome<Ending> {
        let date_us = if self.is_absolute { 0 } else { call.moment()?.date_us };
        let ms = if self.is_in_seconds { number.checked_mul(1_000) } else { Some(number) };
        let ms = ms.filter(|ms| ms.checked_add(date_us / 1_000).is_some());
        let us = ms.ok_or_else(|| invalid_time(call))?.saturating_mul(1_000);
        Ok(if self.is_absolute { Ending::At(us) } else { Ending::In(us) })
    }
}

fn invalid_time(call: &Call<'_>) -> Failure {
    format!("ERR invalid expire time in '{}' command", call.name()).into()
}

/// The end that an argument says, which has to be a positive number.
fn positive_ending(call: &Call<'_>, position: usize, form: TimeForm) -> Outcome<Ending> {
    let number = call.integer(position)?;
    if number <= 0 {
        return Err(invalid_time(call));
    }
    form.ending(call, number)
}

/// The end that the words of a command ask for, before its time is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedEnd {
    Keep,
    Never,
    /// The time at a position.
    At(TimeForm, usize),
}

impl AskedEnd {
    /// The word that asks for it, where that is one alone.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Keep => Some("KEEPTTL"),
            Self::Never => Some("PERSIST"),
            Self::At(..) => None,
        }
    }

    fn end(self, call: &Call<'_>) -> Outcome<End> {
        Ok(match self {
            Self::Keep => End::Keep,
            Self::Never => End::Never,
            Self::At(form, position) => End::Said(positive_ending(call, position, form)?),
        })
    }

    /// True when a word may stand beside another one, which it replaces.
    fn may_replace(self, other: Option<Self>) -> bool {
        match (self, other) {
            (_, None) => true,
            (Self::At(form, _), Some(Self::At(other, _))) => form == other,
            (this, Some(other)) => this == other,
        }
    }
}

/// Reads the word at a position that says when a key ends, and moves behind it and its time.
/// Beside times, the command takes the word of one other end.
fn ask_end(
    call: &Call<'_>,
    position: &mut usize,
    asked: Option<AskedEnd>,
    other: AskedEnd,
) -> Outcome<Option<AskedEnd>> {
    let word = call.word(*position);
    let new = match TimeForm::of_word(&word) {
        Some(form) if *position + 1 < call.arguments.len() => {
            *position += 1;
            AskedEnd::At(form, *position)
        }
        None if Some(word.as_str()) == other.word() => other,
        _ => return Err(SYNTAX.into()),
    };
    *position += 1;
    if !new.may_replace(asked) {
        return Err(SYNTAX.into());
    }
    Ok(Some(new))
}

/// The words are read before the time, as in Redis.
fn options(call: &Call<'_>) -> Outcome<SetOptions> {
    let (mut options, mut asked, mut position) = (SetOptions::default(), None, 3);
    while position < call.arguments.len() {
        match call.word(position).as_str() {
            "NX" if !options.if_present => options.if_absent = true,
            "XX" if !options.if_absent => options.if_present = true,
            "GET" => options.tells = true,
            _ => {
                asked = ask_end(call, &mut position, asked, AskedEnd::Keep)?;
                continue;
            }
        }
        position += 1;
    }
    options.end = asked.map_or(Ok(End::Default), |asked| asked.end(call))?;
    Ok(options)
}

/// Sets a value; tells whether it was set, and the value before.
fn put(call: &Call<'_>, value: &[u8], options: &SetOptions) -> Outcome<(bool, Option<Vec<u8>>)> {
    let key = call.argument(1);
    call.reserve_quota(1, key.len() + value.len())?;
    let needs_before =
        options.if_absent || options.if_present || options.tells || options.end == End::Keep;
    // Whether a date is over is known where the moment is fixed.
    let may_be_over = matches!(options.end, End::Said(Ending::At(_)));
    let set = |bucket: &ScopedBucket<'_>| {
        let before = if needs_before { bucket.get_with_expiry(key)? } else { None };
        if let Some((value, _)) = before.as_ref().filter(|_| options.tells) {
            call.expect_small(value)?;
        }
        if (options.if_absent && before.is_some()) || (options.if_present && before.is_none()) {
            return Ok((false, before.map(|(value, _)| value)));
        }
        let ttl = match options.end {
            End::Said(ending) if may_be_over && ending.is_over(bucket.moment()) => {
                bucket.remove(key)?;
                return Ok((true, before.map(|(value, _)| value)));
            }
            End::Said(ending) => ending.ttl(),
            End::Keep => before.as_ref().map_or(Ttl::Default, |(_, end)| kept(*end)),
            End::Default => Ttl::Default,
            End::Never => Ttl::Never,
        };
        bucket.put(key, value, ttl.into())?;
        Ok((true, before.map(|(value, _)| value)))
    };
    if !needs_before && !may_be_over {
        call.put(|bucket| set(bucket).map(drop))?;
        return Ok((true, None));
    }
    // What ends before it begins is set and gone: no bucket is made for it.
    let is_over = match options.end {
        End::Said(ending) => ending.is_over(call.moment()?),
        _ => false,
    };
    let done = call.change(!options.if_present && !is_over, set)?;
    Ok(done.unwrap_or((!options.if_present, None)))
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
    let form = TimeForm { is_in_seconds: call.name() == "setex", is_absolute: false };
    let end = End::Said(positive_ending(call, 2, form)?);
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
    let (mut asked, mut position) = (None, 2);
    while position < call.arguments.len() {
        asked = ask_end(call, &mut position, asked, AskedEnd::Never)?;
    }
    let key = call.argument(1);
    let value = call.change(false, |bucket| {
        let Some((value, before)) = bucket.get_with_expiry(key)? else { return Ok(None) };
        // The time of a key that is not there is not looked at.
        let end = asked.map_or(Ok(End::Keep), |asked| asked.end(call))?;
        call.expect_small(&value)?;
        match end {
            End::Said(ending) if ending.is_over(bucket.moment()) => drop(bucket.remove(key)?),
            End::Said(ending) => bucket.put(key, &value, ending.ttl().into())?,
            End::Never if before.is_some() => bucket.put(key, &value, Ttl::Never.into())?,
            _ => {}
        }
        Ok(Some(value))
    })?;
    call.reply.optional(value.flatten().as_deref());
    Ok(())
}
