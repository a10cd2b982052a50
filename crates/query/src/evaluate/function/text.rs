//! Functions of text, which count characters, and of bytes.

use std::borrow::Cow;
use std::ops::Range;

use esker_format::{DataType, case};
use memchr::memmem::Finder;

use super::call::Call;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::{Result, pieces};

pub(super) type Bytes<'a> = Cow<'a, [u8]>;

/// The longest text that a function makes longer than its operands: there may be one for each of
/// thousands of rows at once.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 20;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    if call.function == F::Concat {
        return concat(call, len);
    }
    let first = call.texts(0)?;
    let at = |i: usize| first.get(i).map_or(&[][..], |v| v);
    let second = |i: usize| Ok::<_, crate::Error>(call.texts(1)?.get(i).map_or(&[][..], |v| v));
    let found = |i| pieces::find(at(i), &Finder::new(second(i)?), call.meter);
    let ints = |v: Vec<i64>| Lanes::Ints(v.into());
    match call.function {
        F::Length if call.operand(0)?.data_type == DataType::Text => {
            call.map(len, ints, |i| Ok(Some(count(pieces::characters(at(i), call.meter)?))))
        }
        F::Length | F::OctetLength => call.map(len, ints, |i| Ok(Some(count(at(i).len())))),
        F::BitLength => call.map(len, ints, |i| Ok(Some(count(at(i).len()).saturating_mul(8)))),
        F::Strpos => call.map(len, ints, |i| {
            let before = found(i)?.and_then(|place| at(i).get(..place));
            let before = before.map(|before| pieces::characters(before, call.meter)).transpose()?;
            Ok(Some(before.map_or(0, |before| count(before) + 1)))
        }),
        F::StartsWith => call.map(len, Lanes::Bools, |i| Ok(Some(at(i).starts_with(second(i)?)))),
        F::EndsWith => call.map(len, Lanes::Bools, |i| Ok(Some(at(i).ends_with(second(i)?)))),
        F::Contains => call.map(len, Lanes::Bools, |i| Ok(Some(found(i)?.is_some()))),
        F::IstartsWith | F::IendsWith | F::Icontains => call.map(len, Lanes::Bools, |i| {
            let mut room = call.meter.room(call.entry.name);
            let text = pieces::folded(at(i), &mut room, call.meter)?;
            let part = pieces::folded(second(i)?, &mut room, call.meter)?;
            Ok(Some(match call.function {
                F::IstartsWith => text.starts_with(&part),
                F::IendsWith => text.ends_with(&part),
                _ => pieces::find(&text, &Finder::new(&part), call.meter)?.is_some(),
            }))
        }),
        _ => call.map_bytes(len, |i, _| {
            first.get(i).map(|whole| derived(call, Source(whole), i)).transpose()
        }),
    }
}

/// A text made of the first operand. There is room for it.
fn derived<'a>(call: &Call<'_, 'a>, whole: Source<'_, 'a>, row: usize) -> Result<Bytes<'a>> {
    let text = whole.bytes();
    let other = |i: usize| Ok::<_, crate::Error>(call.texts(i)?.get(row).map_or(&[][..], |v| v));
    let meter = call.meter;
    let made = |bytes: Result<Vec<u8>>| bytes.map(Cow::Owned);
    match call.function {
        F::Lower => made(pieces::lower(text, meter)),
        F::AsciiLower => made(pieces::mapped(text, text.len(), meter, |piece, out| {
            out.extend(piece.bytes().map(|byte| byte.to_ascii_lowercase()));
        })),
        F::Casefold => made(pieces::mapped(text, text.len(), meter, |piece, out| {
            out.extend_from_slice(case::folded(piece).as_bytes());
        })),
        F::Upper => made(pieces::mapped(text, text.len(), meter, |piece, out| {
            out.extend_from_slice(piece.to_uppercase().as_bytes());
        })),
        F::Reverse => made(pieces::reversed(text, meter)),
        F::Replace => {
            let (part, by) = (other(1)?, other(2)?);
            if part.is_empty() {
                return Ok(whole.part(0..text.len()));
            }
            let (mut out, mut end) = (Vec::with_capacity(replaced_len(call, row)?), 0);
            pieces::find_all(text, &Finder::new(part), meter, |at| {
                out.extend_from_slice(text.get(end..at).unwrap_or_default());
                out.extend_from_slice(by);
                end = at + part.len();
                Ok(())
            })?;
            out.extend_from_slice(text.get(end..).unwrap_or_default());
            Ok(Cow::Owned(out))
        }
        F::Repeat => Ok(Cow::Owned(text.repeat(repeated_count(call, row)?))),
        F::Trim | F::Ltrim | F::Rtrim => {
            let set = if call.has(1) { other(1)? } else { b" " };
            let set = &pieces::Characters::of(set, meter)?;
            let from = match call.function {
                F::Rtrim => 0,
                _ => pieces::leading(text, set, meter)?,
            };
            let rest = text.get(from..).unwrap_or_default();
            let cut = match call.function {
                F::Ltrim => 0,
                _ => pieces::trailing(rest, set, meter)?,
            };
            Ok(whole.part(from..text.len() - cut))
        }
        F::Left | F::Right => {
            let total = pieces::characters(text, meter)?;
            let wanted = call.int(1, row, 0)?;
            let size = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
            let kept = if wanted < 0 { total.saturating_sub(size) } else { size.min(total) };
            let from = if call.function == F::Left { 0 } else { total - kept };
            let range = pieces::place(text, from, meter)?..pieces::place(text, from + kept, meter)?;
            Ok(whole.part(range))
        }
        F::Substr => substr(call, whole, row),
        _ => Err(call.undefined()),
    }
}

fn substr<'a>(call: &Call<'_, 'a>, whole: Source<'_, 'a>, row: usize) -> Result<Bytes<'a>> {
    let is_text = call.operand(0)?.data_type == DataType::Text;
    let (bytes, meter) = (whole.bytes(), call.meter);
    let total = if is_text { pieces::characters(bytes, meter)? } else { bytes.len() };
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
    let to = match call.vectors.len() {
        ..3 => total_wide,
        _ => (from + i128::from(wanted)).clamp(0, total_wide),
    };
    let from = from.clamp(0, to);
    let at = |place: i128| usize::try_from(place).unwrap_or_default();
    let place = |index: usize| match is_text {
        true => pieces::place(bytes, index, meter),
        false => Ok(index.min(bytes.len())),
    };
    Ok(whole.part(place(at(from))?..place(at(to))?))
}

/// How often `repeat` repeats its text.
fn repeated_count(call: &Call<'_, '_>, row: usize) -> Result<usize> {
    let count = usize::try_from(call.int(1, row, 0)?.max(0)).unwrap_or(usize::MAX);
    Ok(if call.operand(0)?.lanes.bytes(row).is_empty() { 0 } else { count })
}

/// How many bytes `repeat` makes.
pub(super) fn repeated_len(call: &Call<'_, '_>, row: usize) -> Result<usize> {
    let len = call.operand(0)?.lanes.bytes(row).len();
    expect_size(call, len.saturating_mul(repeated_count(call, row)?))
}

/// How many bytes `replace` makes.
pub(super) fn replaced_len(call: &Call<'_, '_>, row: usize) -> Result<usize> {
    let [text, part, by] = [0, 1, 2].map(|i| call.vectors.get(i).map(|v| v.lanes.bytes(row)));
    let [text, part, by] = [text, part, by].map(Option::unwrap_or_default);
    if part.is_empty() {
        return Ok(text.len());
    }
    let mut found = 0usize;
    pieces::find_all(text, &Finder::new(part), call.meter, |_| {
        found += 1;
        Ok(())
    })?;
    let kept = text.len().saturating_sub(found.saturating_mul(part.len()));
    let len = kept.saturating_add(found.saturating_mul(by.len()));
    if len <= text.len() { Ok(len) } else { expect_size(call, len) }
}

pub(super) fn expect_size(call: &Call<'_, '_>, bytes: usize) -> Result<usize> {
    if bytes > TEXT_BYTES_MAX {
        return Err(call.error(format!("{bytes} bytes, at most {TEXT_BYTES_MAX}")));
    }
    Ok(bytes)
}

/// The operands one after another, without those that are NULL.
fn concat<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map_bytes(len, |row, _| {
        let mut text = Vec::with_capacity(call.made_max(row)?);
        for vector in call.vectors.iter().filter(|v| !v.is_null(row)) {
            for piece in call.meter.pieces(vector.lanes.bytes(row)) {
                text.extend_from_slice(piece?);
            }
        }
        Ok(Some(Cow::Owned(text)))
    })
}

pub(super) fn count(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The value of an operand, which a part of may be borrowed where it is.
pub(super) struct Source<'v, 'a>(pub &'v Bytes<'a>);

impl<'v, 'a> Source<'v, 'a> {
    pub fn bytes(&self) -> &'v [u8] {
        self.0
    }

    /// Some of the bytes, borrowed where the whole is.
    pub fn part(&self, range: Range<usize>) -> Bytes<'a> {
        match self.0 {
            Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(range).unwrap_or_default()),
            Cow::Owned(bytes) => Cow::Owned(bytes.get(range).unwrap_or_default().to_vec()),
        }
    }
}
