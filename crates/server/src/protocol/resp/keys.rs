//! Keys: whether they are there, which there are, taking them away.

use std::ops::Bound;

use esker::ScopedBucket;
use esker_vfs::Environment;

use super::call::{Call, Outcome, Pace, SYNTAX, kept};
use super::glob;
use super::protocol::integer;
use crate::session::Level;

/// The most keys that one SCAN looks at.
const COUNT_MAX: i64 = 100_000;

pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    let keys = call.rest(1);
    let remove = |bucket: &ScopedBucket<'_>| {
        let (mut removed, mut pace) = (0, Pace::begin());
        for key in keys {
            pace.step(call)?;
            removed += usize::from(bucket.remove(key)?);
        }
        Ok(removed)
    };
    let removed = match keys {
        [_] => call.bucket_there()?.as_ref().map(remove).transpose()?,
        _ => call.change(false, remove)?,
    };
    call.reply.number(removed.unwrap_or(0));
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    let (view, keys) = (call.view()?, call.rest(1));
    let (mut found, mut pace) = (0, Pace::begin());
    if let Some(reader) = view.reader(keys.len())? {
        for key in keys {
            pace.step(call)?;
            found += usize::from(reader.contains(key)?);
        }
    }
    call.reply.number(found);
    Ok(())
}

pub(super) fn kind(call: &mut Call<'_>) -> Outcome {
    let is_there = call.view()?.read(call.argument(1), |_| ())?.is_some();
    call.reply.simple(if is_there { "string" } else { "none" });
    Ok(())
}

/// RENAME and RENAMENX.
pub(super) fn rename(call: &mut Call<'_>) -> Outcome {
    let (from, to, must_be_new) = (call.argument(1), call.argument(2), call.name() == "renamenx");
    let renamed = call.change(false, |bucket| {
        let Some((value, end)) = bucket.get_with_expiry(from)? else { return Ok(None) };
        if must_be_new && bucket.get_for_update(to)?.is_some() {
            return Ok(Some(false));
        }
        if from != to {
            bucket.remove(from)?;
            bucket.put(to, &value, kept(end).into())?;
        }
        Ok(Some(true))
    })?;
    let renamed = renamed.flatten().ok_or("ERR no such key")?;
    match must_be_new {
        true => call.reply.integer(i64::from(renamed)),
        false => call.reply.ok(),
    }
    Ok(())
}

pub(super) fn dbsize(call: &mut Call<'_>) -> Outcome {
    let count = call.view()?.0.map_or(Ok(0), |bucket| bucket.len())?;
    call.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn flushdb(call: &mut Call<'_>) -> Outcome {
    let word = call.word(1);
    if call.arguments.len() > 2 || !matches!(word.as_str(), "" | "ASYNC" | "SYNC") {
        return Err(SYNTAX.into());
    }
    call.session()?.expect(Level::Admin, Some(call.state.bucket_name()))?;
    if let Some(bucket) = call.bucket_there()? {
        bucket.clear()?;
    }
    call.reply.ok();
    Ok(())
}

/// The keys that begin as all do that are as a pattern says.
fn bounds(pattern: &[u8], after: Option<Vec<u8>>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let prefix = glob::prefix(pattern);
    let end = crate::session::after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    let start = match after {
        Some(key) if key.as_slice() >= prefix => Bound::Excluded(key),
        _ => Bound::Included(prefix.to_vec()),
    };
    (start, end)
}

/// A pattern that is not too long: comparing takes time of its length.
fn expect_pattern(pattern: &[u8]) -> Outcome {
    const PATTERN_BYTES_MAX: usize = 4_096;
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("ERR a pattern has at most {PATTERN_BYTES_MAX} bytes").into());
    }
    Ok(())
}

pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let pattern = call.argument(1);
    expect_pattern(pattern)?;
    let mut told = super::reply::Reply::default();
    let (mut count, mut pace) = (0, Pace::begin());
    for entry in call.view()?.range(bounds(pattern, None))?.into_iter().flatten() {
        let entry = entry?;
        pace.step(call)?;
        if glob::is_match(pattern, entry.key()) {
            call.expect_small(entry.key())?;
            told.bulk(entry.key());
            count += 1;
        }
    }
    call.reply.array(count);
    call.reply.out.append(&mut told.out);
    Ok(())
}

/// A cursor as Redis reads it: nothing is 0, a sign may be in front, and a negative one is counted
/// from the greatest down.
fn cursor(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = match digits {
        "" if text.is_empty() => 0,
        _ if is_number => digits.parse::<u64>().ok()?,
        _ => return None,
    };
    Some(if text.starts_with('-') { number.wrapping_neg() } else { number })
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let cursor = cursor(call.argument(1)).ok_or("ERR invalid cursor")?;
    let (mut pattern, mut count, mut is_other) = (&b"*"[..], 10, false);
    for (position, option) in call.rest(2).chunks(2).enumerate() {
        let [_, value] = option else { return Err(SYNTAX.into()) };
        match call.word(2 + position * 2).as_str() {
            "MATCH" => pattern = value,
            "COUNT" => count = integer(value).ok_or(super::call::NOT_AN_INTEGER)?,
            "TYPE" => is_other = !value.eq_ignore_ascii_case(b"string"),
            _ => return Err(SYNTAX.into()),
        }
    }
    if count < 1 {
        return Err(SYNTAX.into());
    }
    expect_pattern(pattern)?;
    let most = usize::try_from(count.min(COUNT_MAX)).unwrap_or(1);
    let place = call.state.place();
    let after = match cursor {
        0 => None,
        _ => Some(
            call.state
                .cursors
                .find(&place, cursor)
                .ok_or("ERR the cursor is not known any more: expected 0, to begin again")?,
        ),
    };
    let (mut found, mut last, mut looked, mut bytes) = (Vec::new(), None, 0, 0);
    let mut entries = call.view()?.range(bounds(pattern, after))?;
    while let Some(entry) = entries.as_mut().and_then(Iterator::next).transpose()? {
        let key = entry.key();
        looked += 1;
        if !is_other && glob::is_match(pattern, key) {
            bytes += key.len();
            found.push(key.to_vec());
        }
        if looked == most || bytes > super::call::ANSWER_BYTES_MAX / 64 {
            last = Some(key.to_vec());
            break;
        }
    }
    let next = last.map_or(0, |key| call.state.cursors.add(place, &key));
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.bulks(&found);
    Ok(())
}

/// A key near a random place between the first and the last: not each is as likely.
pub(super) fn randomkey(call: &mut Call<'_>) -> Outcome {
    let view = call.view()?;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let first = view.range(all.clone())?.and_then(|mut entries| entries.next()).transpose()?;
    let last = view.range(all)?.and_then(|mut entries| entries.next_back()).transpose()?;
    let (Some(first), Some(last)) = (first, last) else {
        call.reply.null();
        return Ok(());
    };
    let same = first.key().iter().zip(last.key()).take_while(|(a, b)| a == b).count();
    let mut place = first.key().get(..same).unwrap_or_default().to_vec();
    let (low, high) = (first.key().get(same), last.key().get(same));
    let random = Environment::os().random.next_u64().to_le_bytes();
    let (low, high) = (low.map_or(0, |b| u16::from(*b)), high.map_or(255, |b| u16::from(*b)));
    let [one, rest @ ..] = random;
    let within = low + u16::from(one) % (high.saturating_sub(low) + 1);
    place.push(u8::try_from(within).unwrap_or(u8::MAX));
    place.extend_from_slice(&rest);
    let range = (Bound::Included(place), Bound::Unbounded);
    let found = view.range(range)?.and_then(|mut entries| entries.next()).transpose()?;
    call.reply.bulk(found.as_ref().map_or(last.key(), |entry| entry.key()));
    Ok(())
}
