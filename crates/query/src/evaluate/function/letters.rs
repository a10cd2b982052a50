//! Functions of the characters of texts: parts between separators, padding, replacing one by one.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::call::Call;
use super::text::{Bytes, Source, expect_size};
use crate::evaluate::{Lanes, Vector};
use crate::meter::Reservation;
use crate::model::Function as F;
use crate::{Result, pieces};

/// Sets of no more characters are looked through.
const FEW: usize = 16;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    if call.function == F::Ascii {
        let ints = |v: Vec<i64>| Lanes::Ints(v.into());
        return call.map(len, ints, |i| {
            let first = text(call, 0, i)?.chars().next();
            Ok(Some(first.map_or(0, |c| i64::from(u32::from(c)))))
        });
    }
    call.map_bytes(len, |row, room| match call.function {
        F::SplitPart => split_part(call, row).map(Some),
        F::Lpad | F::Rpad => padded(call, row).map(Some),
        F::Translate => translated(call, row, room).map(Some),
        F::Initcap => Ok(Some(capitals(text(call, 0, row)?))),
        F::Chr => characters(call, row).map(Some),
        F::ConcatWs => joined(call, row),
        F::QuoteIdent => Ok(Some(owned(quoted_name(text(call, 0, row)?)))),
        F::QuoteNullable if call.operand(0)?.is_null(row) => Ok(Some(owned("NULL".to_owned()))),
        _ => Ok(Some(owned(quoted(text(call, 0, row)?, '\'')))),
    })
}

/// How many bytes those that count them make of a row.
pub(super) fn made_len(call: &Call<'_, '_>, row: usize) -> Result<usize> {
    match call.function {
        F::ConcatWs => {
            let others = call.vectors.iter().skip(1).filter(|v| !v.is_null(row));
            let len = |v: &Vector<'_>| v.lanes.bytes(row).len();
            let (number, bytes) = others.fold((0usize, 0usize), |(number, bytes), v| {
                (number + 1, bytes.saturating_add(len(v)))
            });
            let between = call.operand(0)?.lanes.bytes(row).len();
            let made = bytes.saturating_add(between.saturating_mul(number.saturating_sub(1)));
            if between > 0 { expect_size(call, made) } else { Ok(made) }
        }
        _ => Ok(Padding::of(call, row)?.made),
    }
}

pub(super) fn text<'c>(call: &'c Call<'_, '_>, operand: usize, row: usize) -> Result<&'c str> {
    let bytes = call.operand(operand)?.lanes.bytes(row);
    std::str::from_utf8(bytes).map_err(|_| call.error("expected a text in UTF-8"))
}

pub(super) fn owned(text: String) -> Bytes<'static> {
    Cow::Owned(text.into_bytes())
}

fn split_part<'a>(call: &Call<'_, 'a>, row: usize) -> Result<Bytes<'a>> {
    let Some(whole) = call.texts(0)?.get(row).map(Source) else { return Ok(Cow::default()) };
    let (bytes, separator) = (whole.bytes(), call.operand(1)?.lanes.bytes(row));
    let wanted = call.int(2, row, 1)?;
    if wanted == 0 {
        return Err(call.error("expected a place of 1 or more, or below 0, found 0"));
    }
    let finder = Finder::new(separator);
    let wanted = match wanted {
        1.. => wanted,
        _ => {
            let mut parts = 1i64;
            pieces::find_all(bytes, &finder, call.meter, |_| {
                parts += 1;
                Ok(())
            })?;
            parts.saturating_add(wanted).saturating_add(1)
        }
    };
    if separator.is_empty() {
        return Ok(if wanted == 1 { whole.part(0..bytes.len()) } else { Cow::default() });
    }
    let (mut start, mut at) = (0, 1);
    while at <= wanted {
        let rest = bytes.get(start..).unwrap_or_default();
        let found = pieces::find(rest, &finder, call.meter)?;
        if at == wanted {
            return Ok(whole.part(start..found.map_or(bytes.len(), |len| start + len)));
        }
        let Some(found) = found else { break };
        start += found + separator.len();
        at += 1;
    }
    Ok(Cow::default())
}

/// What `lpad` and `rpad` make of a row.
struct Padding {
    /// How many characters of the text are kept.
    kept: usize,
    /// How many characters are added.
    added: usize,
    /// How many bytes there will be at most.
    made: usize,
}

impl Padding {
    fn of(call: &Call<'_, '_>, row: usize) -> Result<Self> {
        let text = call.operand(0)?.lanes.bytes(row);
        let fill = fill(call, row);
        let length = usize::try_from(call.int(1, row, 0)?.max(0)).unwrap_or(usize::MAX);
        let own = pieces::characters(text, call.meter)?;
        let of_fill = pieces::characters(fill, call.meter)?;
        let kept = own.min(length);
        if kept < own || of_fill == 0 {
            return Ok(Self { kept, added: 0, made: text.len() });
        }
        let added = length - kept;
        let rounds = added.div_ceil(of_fill);
        let made = text.len().saturating_add(rounds.saturating_mul(fill.len()));
        Ok(Self { kept, added, made: if added > 0 { expect_size(call, made)? } else { made } })
    }
}

fn fill<'c>(call: &'c Call<'_, '_>, row: usize) -> &'c [u8] {
    call.vectors.get(2).map_or(b" ", |fill| fill.lanes.bytes(row))
}

fn padded<'a>(call: &Call<'_, 'a>, row: usize) -> Result<Bytes<'a>> {
    let Padding { kept, added, made } = Padding::of(call, row)?;
    let Some(whole) = call.texts(0)?.get(row).map(Source) else { return Ok(Cow::default()) };
    let text = whole.bytes();
    let kept = pieces::place(text, kept, call.meter)?;
    if added == 0 {
        return Ok(whole.part(0..kept));
    }
    let (kept, fill) = (text.get(..kept).unwrap_or_default(), fill(call, row));
    let rounds = added / pieces::characters(fill, call.meter)?.max(1);
    let rest = added - rounds * pieces::characters(fill, call.meter)?;
    let rest = fill.get(..pieces::place(fill, rest, call.meter)?).unwrap_or_default();
    let mut out = Vec::with_capacity(made);
    if call.function == F::Rpad {
        out.extend_from_slice(kept);
    }
    for _ in 0..rounds {
        call.meter.work(fill.len())?;
        out.extend_from_slice(fill);
    }
    out.extend_from_slice(rest);
    if call.function == F::Lpad {
        out.extend_from_slice(kept);
    }
    Ok(Cow::Owned(out))
}

fn translated<'a>(
    call: &Call<'_, 'a>,
    row: usize,
    room: &mut Reservation<'a>,
) -> Result<Bytes<'a>> {
    let (whole, from, to) = (text(call, 0, row)?, text(call, 1, row)?, text(call, 2, row)?);
    let of_map = from.len().saturating_mul(size_of::<(char, usize, Option<char>)>());
    room.take(of_map)?;
    let mut by = to.chars();
    // The first of several that are the same counts.
    let mut map: Vec<_> = from.chars().enumerate().map(|(i, c)| (c, i, by.next())).collect();
    let is_few = map.len() <= FEW;
    if !is_few {
        map.sort_unstable();
        map.dedup_by_key(|(c, ..)| *c);
    }
    let find = |c: char| match is_few {
        true => map.iter().find(|(known, ..)| *known == c),
        false => map.binary_search_by_key(&c, |(known, ..)| *known).ok().and_then(|i| map.get(i)),
    };
    let mut out = String::with_capacity(whole.len());
    for piece in call.meter.pieces(whole.as_bytes()) {
        piece?;
    }
    for c in whole.chars() {
        match find(c) {
            Some((.., by)) => out.extend(*by),
            None => out.push(c),
        }
    }
    room.give_back(of_map);
    Ok(owned(out))
}

fn capitals(text: &str) -> Bytes<'static> {
    let (mut out, mut is_inside) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        match is_inside {
            true => out.extend(c.to_lowercase()),
            false => out.extend(c.to_uppercase()),
        }
        is_inside = c.is_alphanumeric();
    }
    owned(out)
}

fn characters(call: &Call<'_, '_>, row: usize) -> Result<Bytes<'static>> {
    let mut out = String::new();
    for operand in 0..call.vectors.len() {
        let number = call.int(operand, row, 0)?;
        let character = u32::try_from(number).ok().and_then(char::from_u32);
        match character.filter(|c| *c != '\0') {
            Some(c) => out.push(c),
            None => {
                return Err(
                    call.error(format!("expected the number of a character, found {number}"))
                );
            }
        }
    }
    Ok(owned(out))
}

fn joined(call: &Call<'_, '_>, row: usize) -> Result<Option<Bytes<'static>>> {
    let separator = call.operand(0)?;
    if separator.is_null(row) {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(made_len(call, row)?);
    let known = call.vectors.iter().skip(1).filter(|v| !v.is_null(row));
    for (i, vector) in known.enumerate() {
        if i > 0 {
            out.extend_from_slice(separator.lanes.bytes(row));
        }
        for piece in call.meter.pieces(vector.lanes.bytes(row)) {
            out.extend_from_slice(piece?);
        }
    }
    Ok(Some(Cow::Owned(out)))
}

/// A text between quotes, those within doubled.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        out.push(c);
        if c == quote {
            out.push(c);
        }
    }
    out.push(quote);
    out
}

/// Words that are no names without quotes.
const RESERVED: [&str; 40] = [
    "all", "and", "any", "as", "asc", "between", "by", "case", "cast", "check", "create",
    "default", "delete", "desc", "distinct", "else", "end", "exists", "false", "from", "group",
    "having", "in", "insert", "into", "is", "join", "like", "limit", "not", "null", "on", "or",
    "order", "select", "table", "true", "union", "update", "where",
];

/// A name as SQL takes it.
pub(super) fn quoted_name(name: &str) -> String {
    let is_first = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match is_first && name.chars().all(is_word) && !RESERVED.contains(&name) {
        true => name.to_owned(),
        false => quoted(name, '"'),
    }
}
