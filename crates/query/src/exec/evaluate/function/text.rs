//! Functions of text, which count characters, and of bytes.

use std::borrow::Cow;
use std::ops::Range;

use esker_format::DataType;

use super::Call;
use crate::Result;
use crate::exec::vector::{Lanes, Vector, either_null};
use crate::model::Function as F;
use crate::predicate::{characters, folded};

type Bytes<'a> = Cow<'a, [u8]>;

/// The longest text that a function makes longer than its operands: there may be one for each of
/// thousands of rows at once.
const TEXT_BYTES_MAX: usize = 8 << 20;

pub(super) fn call<'a>(call: &Call<'a>, len: usize) -> Result<Vector<'a>> {
    if call.function == F::Concat {
        return concat(call, len);
    }
    let first = call.texts(0)?;
    let at = |i: usize| first.get(i).map_or(&[][..], |v| v);
    let text = |i: usize| as_text(at(i));
    let second = |i: usize| Ok::<_, crate::Error>(call.texts(1)?.get(i).map_or("", |v| as_text(v)));
    let ints = |v: Vec<i64>| Lanes::Ints(v.into());
    match call.function {
        F::Length if call.operand(0)?.data_type == DataType::Text => {
            call.map(len, ints, |i| Ok(Some(count(characters(at(i))))))
        }
        F::Length | F::OctetLength => call.map(len, ints, |i| Ok(Some(count(at(i).len())))),
        F::Strpos => call.map(len, ints, |i| {
            let before = text(i).find(second(i)?).and_then(|place| at(i).get(..place));
            Ok(Some(before.map_or(0, |before| count(characters(before)) + 1)))
        }),
        F::StartsWith => call.map(len, Lanes::Bools, |i| Ok(Some(text(i).starts_with(second(i)?)))),
        F::EndsWith => call.map(len, Lanes::Bools, |i| Ok(Some(text(i).ends_with(second(i)?)))),
        F::Contains => call.map(len, Lanes::Bools, |i| Ok(Some(text(i).contains(second(i)?)))),
        F::IstartsWith | F::IendsWith | F::Icontains => call.map(len, Lanes::Bools, |i| {
            let (text, part) = (folded(text(i)), folded(second(i)?));
            Ok(Some(match call.function {
                F::IstartsWith => text.starts_with(&*part),
                F::IendsWith => text.ends_with(&*part),
                _ => text.contains(&*part),
            }))
        }),
        _ => call.map(len, Lanes::Bytes, |i| {
            let whole = first.get(i).map_or(Cow::Borrowed(&[][..]), Clone::clone);
            derived(call, whole, i).map(Some)
        }),
    }
}

/// A text made of the first operand.
fn derived<'a>(call: &Call<'a>, whole: Bytes<'a>, row: usize) -> Result<Bytes<'a>> {
    let text = as_text(&whole);
    let owned = |text: String| Ok(Cow::Owned(text.into_bytes()));
    let other =
        |i: usize| Ok::<_, crate::Error>(call.texts(i)?.get(row).map_or("", |v| as_text(v)));
    match call.function {
        F::Lower => owned(text.to_lowercase()),
        F::Upper => owned(text.to_uppercase()),
        F::Reverse => owned(text.chars().rev().collect()),
        F::Replace => {
            let (part, by) = (other(1)?, other(2)?);
            if part.is_empty() {
                return Ok(whole);
            }
            let found = text.matches(part).count();
            check_size(call, (text.len() - found * part.len()).saturating_add(found * by.len()))?;
            owned(text.replace(part, by))
        }
        F::Repeat => {
            let count = usize::try_from(call.int(1, row, 0)?.max(0)).unwrap_or(usize::MAX);
            let count = if text.is_empty() { 0 } else { count };
            check_size(call, text.len().saturating_mul(count))?;
            owned(text.repeat(count))
        }
        F::Trim | F::Ltrim | F::Rtrim => {
            let set = if call.has(1) { other(1)? } else { " " };
            let inner = match call.function {
                F::Ltrim => text.trim_start_matches(|c| set.contains(c)),
                F::Rtrim => text.trim_end_matches(|c| set.contains(c)),
                _ => text.trim_matches(|c| set.contains(c)),
            };
            let cut = if call.function == F::Rtrim {
                0
            } else {
                text.len() - text.trim_start_matches(|c| set.contains(c)).len()
            };
            let range = cut..cut + inner.len();
            Ok(part(whole, range))
        }
        F::Left | F::Right => {
            let total = characters(&whole);
            let wanted = call.int(1, row, 0)?;
            let size = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
            let kept = if wanted < 0 { total.saturating_sub(size) } else { size.min(total) };
            let from = if call.function == F::Left { 0 } else { total - kept };
            let range = place(&whole, true, from)..place(&whole, true, from + kept);
            Ok(part(whole, range))
        }
        F::Substr => substr(call, whole, row),
        _ => Err(call.undefined()),
    }
}

fn substr<'a>(call: &Call<'a>, whole: Bytes<'a>, row: usize) -> Result<Bytes<'a>> {
    let is_text = call.operand(0)?.data_type == DataType::Text;
    let total = if is_text { characters(&whole) } else { whole.len() };
    let (start, wanted) = (call.int(1, row, 1)?, call.int(2, row, i64::MAX)?);
    if wanted < 0 {
        return Err(call.error(format!("expected a count of at least 0, found {wanted}")));
    }
    // Places from 0. Those before the first take part in the count and have no character.
    let total_wide = i128::from(count(total));
    let from = match start {
        ..0 => total_wide + i128::from(start),
        _ => i128::from(start) - 1,
    };
    let to = (from + i128::from(wanted)).clamp(0, total_wide);
    let from = from.clamp(0, to);
    let at = |place: i128| usize::try_from(place).unwrap_or_default();
    let range = place(&whole, is_text, at(from))..place(&whole, is_text, at(to));
    Ok(part(whole, range))
}

fn check_size(call: &Call<'_>, bytes: usize) -> Result<()> {
    if bytes > TEXT_BYTES_MAX {
        return Err(call.error(format!("{bytes} bytes, at most {TEXT_BYTES_MAX}")));
    }
    Ok(())
}

/// The operands one after another, without those that are NULL.
fn concat<'a>(call: &Call<'a>, len: usize) -> Result<Vector<'a>> {
    let mut values = Vec::with_capacity(len);
    for row in 0..len {
        let mut text = Vec::new();
        for (i, vector) in call.vectors.iter().enumerate() {
            if !vector.is_null(row) {
                text.extend_from_slice(call.texts(i)?.get(row).map_or(&[][..], |v| v));
            }
        }
        values.push(Cow::Owned(text));
    }
    Ok(Vector::new(DataType::Text, Lanes::Bytes(values), None))
}

/// `left || right`: NULL where either is.
pub(in super::super) fn concat_pair<'a>(left: &Vector<'a>, right: &Vector<'a>) -> Vector<'a> {
    let nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
    let values = match (&left.lanes, &right.lanes) {
        (Lanes::Bytes(a), Lanes::Bytes(b)) => {
            a.iter().zip(b).map(|(a, b)| Cow::Owned([&a[..], &b[..]].concat())).collect()
        }
        _ => vec![Cow::Borrowed(&[][..]); left.len()],
    };
    Vector::new(left.data_type, Lanes::Bytes(values), nulls)
}

fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn count(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Where character `index` begins, or byte `index` of what is no text.
fn place(bytes: &[u8], is_text: bool, index: usize) -> usize {
    if !is_text {
        return index.min(bytes.len());
    }
    let mut begins = bytes.iter().enumerate().filter(|(_, b)| **b & 0xc0 != 0x80);
    begins.nth(index).map_or(bytes.len(), |(place, _)| place)
}

/// Some of the bytes, borrowed where the whole is.
fn part(whole: Bytes<'_>, range: Range<usize>) -> Bytes<'_> {
    match whole {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(range).unwrap_or_default()),
        Cow::Owned(bytes) => Cow::Owned(bytes.get(range).unwrap_or_default().to_vec()),
    }
}
