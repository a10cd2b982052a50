//! Functions that take parts of texts by regular expressions.

use std::borrow::Cow;

use super::call::Call;
use super::letters::text;
use super::text::{Bytes, Source, TEXT_BYTES_MAX, count};
use crate::evaluate::{Lanes, Vector};
use crate::meter::Reservation;
use crate::model::Function as F;
use crate::pattern::Captured;
use crate::{Result, pieces};

/// Computes a call: operands are the text, and what else is no expression and no flags.
pub(super) fn call<'a>(
    call: &Call<'_, 'a>,
    expression: &Captured,
    len: usize,
) -> Result<Vector<'a>> {
    let ints = |v: Vec<i64>| Lanes::Ints(v.into());
    match call.function {
        F::RegexpCount => call.map(len, ints, |row| {
            let (bytes, from) = start(call, row)?;
            let (mut matches, mut found) = (expression.matches(bytes, from, call.meter), 0);
            while matches.next()?.is_some() {
                found += 1;
            }
            Ok(Some(found))
        }),
        F::RegexpInstr => call.map(len, ints, |row| {
            let Some((start, _)) = nth(call, expression, row)? else { return Ok(Some(0)) };
            let before = call.operand(0)?.lanes.bytes(row).get(..start).unwrap_or_default();
            Ok(Some(count(pieces::characters(before, call.meter)?).saturating_add(1)))
        }),
        F::RegexpSubstr => call.map_bytes(len, |row, _| {
            let Some(whole) = call.texts(0)?.get(row).map(Source) else { return Ok(None) };
            Ok(nth(call, expression, row)?.map(|(start, end)| whole.part(start..end)))
        }),
        F::RegexpExtract => {
            call.map_bytes(len, |row, _| extracted(call, expression, row).map(Some))
        }
        _ => call.map_bytes(len, |row, room| replaced(call, expression, row, room).map(Some)),
    }
}

/// The text, and the byte at which its character `start` begins.
fn start<'c>(call: &'c Call<'_, '_>, row: usize) -> Result<(&'c [u8], usize)> {
    let bytes = call.operand(0)?.lanes.bytes(row);
    let start = call.int(1, row, 1)?;
    if start < 1 {
        return Err(call.error(format!("expected a start of at least 1, found {start}")));
    }
    let before = usize::try_from(start - 1).unwrap_or(usize::MAX);
    // Behind the end nothing is found, not even nothing.
    let from = pieces::place(bytes, before, call.meter)?;
    let is_behind = from == bytes.len() && before > pieces::characters(bytes, call.meter)?;
    Ok((bytes, if is_behind { bytes.len() + 1 } else { from }))
}

/// Where the match that the operands say begins and ends.
fn nth(call: &Call<'_, '_>, expression: &Captured, row: usize) -> Result<Option<(usize, usize)>> {
    let (bytes, from) = start(call, row)?;
    let wanted = call.int(2, row, 1)?;
    if wanted < 1 {
        return Err(call.error(format!("expected the number of a match, found {wanted}")));
    }
    let mut matches = expression.matches(bytes, from, call.meter);
    for _ in 1..wanted {
        if matches.next()?.is_none() {
            return Ok(None);
        }
    }
    matches.next()
}

fn extracted<'a>(call: &Call<'_, 'a>, expression: &Captured, row: usize) -> Result<Bytes<'a>> {
    let Some(whole) = call.texts(0)?.get(row).map(Source) else { return Ok(Cow::default()) };
    let (wanted, known) = (call.int(1, row, 0)?, expression.part_count());
    let Some(wanted) = usize::try_from(wanted).ok().filter(|wanted| *wanted <= known) else {
        return Err(call.error(format!("the expression has {known} parts, found part {wanted}")));
    };
    let mut matches = expression.matches(whole.bytes(), 0, call.meter);
    matches.next()?;
    Ok(matches.part(wanted).map_or(Cow::default(), |(start, end)| whole.part(start..end)))
}

/// A part of what a match is replaced by.
enum Piece<'t> {
    Text(&'t str),
    Part(usize),
}

/// What a match is replaced by: text, and `\1` for its parts.
fn pieces_of<'t>(
    call: &Call<'_, '_>,
    expression: &Captured,
    by: &'t str,
) -> Result<Vec<Piece<'t>>> {
    let (mut all, mut rest) = (Vec::new(), by);
    while let Some((before, behind)) = rest.split_once('\\') {
        all.push(Piece::Text(before));
        let next = behind.chars().next();
        let len = next.map_or(0, char::len_utf8);
        let (this, behind) = behind.split_at_checked(len).unwrap_or((behind, ""));
        let piece = match next {
            Some('&') => Piece::Part(0),
            Some(digit @ '0'..='9') => {
                let (part, known) = (digit.to_digit(10), expression.part_count());
                let part = part.and_then(|part| usize::try_from(part).ok());
                Piece::Part(part.filter(|part| *part <= known).ok_or_else(|| {
                    call.error(format!("the expression has {known} parts, found \\{digit}"))
                })?)
            }
            Some('\\') | None => Piece::Text("\\"),
            Some(_) => {
                all.push(Piece::Text("\\"));
                Piece::Text(this)
            }
        };
        all.push(piece);
        rest = behind;
    }
    all.push(Piece::Text(rest));
    Ok(all)
}

fn replaced<'a>(
    call: &Call<'_, 'a>,
    expression: &Captured,
    row: usize,
    room: &mut Reservation<'a>,
) -> Result<Bytes<'a>> {
    let Some(whole) = call.texts(0)?.get(row).map(Source) else { return Ok(Cow::default()) };
    let bytes = whole.bytes();
    let by = pieces_of(call, expression, text(call, 1, row)?)?;
    let mut matches = expression.matches(bytes, 0, call.meter);
    let (mut out, mut end, mut taken) = (Vec::new(), 0, call.made_max(row)?);
    let mut add = |out: &mut Vec<u8>, more: &[u8]| {
        let needed = out.len().saturating_add(more.len());
        if needed > taken {
            if needed > TEXT_BYTES_MAX {
                return Err(call.error(format!("{needed} bytes, at most {TEXT_BYTES_MAX}")));
            }
            let grown = needed.max(taken.saturating_mul(2)) - taken;
            room.take(grown)?;
            taken += grown;
        }
        call.meter.work(more.len())?;
        out.extend_from_slice(more);
        Ok(())
    };
    let mut is_found = false;
    while let Some((start, next)) = matches.next()? {
        is_found = true;
        add(&mut out, bytes.get(end..start).unwrap_or_default())?;
        for piece in &by {
            let more = match piece {
                Piece::Text(text) => text.as_bytes(),
                Piece::Part(number) => {
                    let part = matches.part(*number);
                    part.and_then(|(from, to)| bytes.get(from..to)).unwrap_or_default()
                }
            };
            add(&mut out, more)?;
        }
        end = next;
        if !expression.is_every() {
            break;
        }
    }
    if !is_found {
        return Ok(whole.part(0..bytes.len()));
    }
    add(&mut out, bytes.get(end..).unwrap_or_default())?;
    Ok(Cow::Owned(out))
}
