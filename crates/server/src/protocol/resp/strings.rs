//! Values, whole and in parts.

use esker::{PutOptions, ScopedBucketReader};

use super::call::{Call, Outcome, Pace};
use super::reply::Reply;
use super::state::NO_AUTHENTICATION;

/// Tells the value of a key where there is room, or that there is none: what GET does, MGET for
/// each of its keys, and what is read together for each command.
pub(super) fn tell_value(
    reader: Option<&ScopedBucketReader<'_>>,
    key: &[u8],
    reply: &mut Reply,
    reserve: impl FnOnce(&[u8]) -> Outcome,
) -> Outcome {
    let tell = |value: &[u8]| reserve(value).map(|()| reply.bulk(value));
    match reader.map(|reader| reader.read(key, tell)).transpose()?.flatten() {
        Some(told) => told,
        None => {
            reply.null();
            Ok(())
        }
    }
}

/// Tells it in the answer of a command.
fn tell_in(call: &mut Call<'_>, reader: Option<&ScopedBucketReader<'_>>, key: &[u8]) -> Outcome {
    let session = call.state.session.as_ref().ok_or(NO_AUTHENTICATION)?;
    tell_value(reader, key, call.reply, |value| Ok(session.take_answer(value.len())?))
}

pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    let view = call.view()?;
    tell_in(call, view.reader(1)?.as_ref(), call.argument(1))
}

pub(super) fn strlen(call: &mut Call<'_>) -> Outcome {
    let length = call.view()?.read(call.argument(1), <[u8]>::len)?;
    call.reply.number(length.unwrap_or(0));
    Ok(())
}

pub(super) fn append(call: &mut Call<'_>) -> Outcome {
    let (key, more, most) = (call.argument(1), call.argument(2), call.state.request_bytes_max);
    call.reserve_quota(1, key.len() + more.len())?;
    let value = call.edit(key, |value| {
        let value = [value.unwrap_or_default(), more].concat();
        if value.len() > most { Err(TOO_LONG.into()) } else { Ok(value) }
    })?;
    call.reply.number(value.len());
    Ok(())
}

const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

pub(super) fn getrange(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let found =
        call.view()?.read(call.argument(1), |value| call.tell(part_of(value, start, end)))?;
    found.unwrap_or_else(|| call.tell(b""))
}

/// The bytes from one to another, which count from the end where they are negative.
fn part_of(value: &[u8], start: i64, end: i64) -> &[u8] {
    let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let place = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    // Both before the first byte, and in the wrong order.
    let is_empty = start < 0 && end < 0 && start > end;
    let (start, end) = (place(start), place(end).min(length - 1));
    let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end + 1).unwrap_or(0);
    let range = if is_empty { 0..0 } else { range };
    value.get(range).unwrap_or_default()
}

pub(super) fn setrange(call: &mut Call<'_>) -> Outcome {
    let (key, offset, part) = (call.argument(1), call.integer(2)?, call.argument(3));
    let offset = usize::try_from(offset).map_err(|_| "ERR offset is out of range")?;
    if part.is_empty() {
        let length = call.change(false, |bucket| Ok(bucket.read(key, <[u8]>::len)?))?;
        call.reply.number(length.flatten().unwrap_or(0));
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    if end > call.state.request_bytes_max {
        return Err(TOO_LONG.into());
    }
    call.reserve_quota(1, key.len() + end)?;
    let value = call.edit(key, |value| {
        let mut value = value.unwrap_or_default().to_vec();
        value.resize(value.len().max(end), 0);
        if let Some(place) = value.get_mut(offset..end) {
            place.copy_from_slice(part);
        }
        Ok(value)
    })?;
    call.reply.number(value.len());
    Ok(())
}

pub(super) fn mget(call: &mut Call<'_>) -> Outcome {
    let (view, keys) = (call.view()?, call.rest(1));
    let (reader, mut pace) = (view.reader(keys.len())?, Pace::begin());
    call.reply.array(keys.len());
    for key in keys {
        pace.step(call)?;
        tell_in(call, reader.as_ref(), key)?;
    }
    Ok(())
}

/// Keys and values, in turn.
fn pairs<'c>(call: &Call<'c>) -> Outcome<Vec<(&'c [u8], &'c [u8])>> {
    let mut pairs = Vec::with_capacity(call.arguments.len() / 2);
    for pair in call.rest(1).chunks(2) {
        let [key, value] = pair else { return Err(call.wrong_count()) };
        pairs.push((&**key, &**value));
    }
    call.reserve_quota(
        pairs.len(),
        pairs.iter().map(|(key, value)| key.len() + value.len()).sum(),
    )?;
    Ok(pairs)
}

pub(super) fn mset(call: &mut Call<'_>) -> Outcome {
    let pairs = pairs(call)?;
    let limits = call.session()?.limits();
    call.put(|bucket| Ok(bucket.put_many(&pairs, PutOptions::new(), &limits)?))?;
    call.reply.ok();
    Ok(())
}

pub(super) fn msetnx(call: &mut Call<'_>) -> Outcome {
    let pairs = pairs(call)?;
    let done = call.change(true, |bucket| {
        let mut pace = Pace::begin();
        for (key, _) in &pairs {
            pace.step(call)?;
            if bucket.get_for_update(key)?.is_some() {
                return Ok(false);
            }
        }
        for (key, value) in &pairs {
            pace.step(call)?;
            bucket.put(key, value, PutOptions::new())?;
        }
        Ok(true)
    })?;
    call.reply.integer(i64::from(done == Some(true)));
    Ok(())
}

pub(super) fn getdel(call: &mut Call<'_>) -> Outcome {
    let key = call.argument(1);
    let value = call.change(false, |bucket| {
        let Some(value) = bucket.get_for_update(key)? else { return Ok(None) };
        call.expect_small(&value)?;
        bucket.remove(key)?;
        Ok(Some(value))
    })?;
    call.reply.optional(value.flatten().as_deref());
    Ok(())
}
