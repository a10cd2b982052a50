//! Texts of any size, piece by piece: between pieces it is seen whether the statement is to end.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::meter::{Meter, PIECE_BYTES, Room};
use crate::{Result, predicate};

/// The capital whose small form depends on what stands around it.
const SIGMA: &str = "Σ";

/// The characters of a text.
pub(crate) fn characters(text: &[u8], meter: &Meter<'_>) -> Result<usize> {
    let mut count = 0;
    for piece in meter.pieces(text) {
        count += predicate::characters(piece?);
    }
    Ok(count)
}

/// Where a part first occurs.
pub(crate) fn find(text: &[u8], part: &Finder<'_>, meter: &Meter<'_>) -> Result<Option<usize>> {
    let len = part.needle().len();
    // A piece goes on behind its end as far as a part that begins in it may.
    let step = PIECE_BYTES.max(len);
    for start in (0..text.len().max(1)).step_by(step) {
        let end = text.len().min(start.saturating_add(step).saturating_add(len));
        let piece = text.get(start..end).unwrap_or_default();
        let found = part.find(piece);
        meter.work(found.unwrap_or(piece.len()))?;
        if let Some(at) = found {
            return Ok(Some(start + at));
        }
    }
    Ok(None)
}

/// Every place where a part occurs, from left to right, none overlapping another.
pub(crate) fn find_all(
    text: &[u8],
    part: &Finder<'_>,
    meter: &Meter<'_>,
    mut visit: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut from = 0;
    while let Some(at) = find(text.get(from..).unwrap_or_default(), part, meter)? {
        visit(from + at)?;
        from += at + part.needle().len().max(1);
        meter.work(part.needle().len().max(1))?;
    }
    Ok(())
}

/// Where character `index` begins; the end of the text past the last.
pub(crate) fn place(text: &[u8], index: usize, meter: &Meter<'_>) -> Result<usize> {
    let (mut left, mut start) = (index, 0);
    for piece in meter.pieces(text) {
        let piece = piece?;
        let count = predicate::characters(piece);
        if left < count {
            let mut begins = piece.iter().enumerate().filter(|(_, b)| is_first(**b));
            return Ok(begins.nth(left).map_or(text.len(), |(at, _)| start + at));
        }
        left -= count;
        start += piece.len();
    }
    Ok(text.len())
}

/// How many bytes at the start of a text are characters of a set.
pub(crate) fn leading(text: &[u8], set: &str, meter: &Meter<'_>) -> Result<usize> {
    let mut start = 0;
    while start < text.len() {
        let end = end_of_piece(text, start);
        let piece = piece(text, start, end, meter)?;
        let rest = piece.trim_start_matches(|c| set.contains(c));
        if !rest.is_empty() {
            return Ok(start + piece.len() - rest.len());
        }
        start = end;
    }
    Ok(text.len())
}

/// How many bytes at the end of a text are characters of a set.
pub(crate) fn trailing(text: &[u8], set: &str, meter: &Meter<'_>) -> Result<usize> {
    let mut end = text.len();
    while end > 0 {
        let start = start_of_piece(text, end);
        let piece = piece(text, start, end, meter)?;
        let rest = piece.trim_end_matches(|c| set.contains(c));
        if !rest.is_empty() {
            return Ok(text.len() - start - rest.len());
        }
        end = start;
    }
    Ok(text.len())
}

/// The characters from the last to the first; at most as many bytes as before.
pub(crate) fn reversed(text: &[u8], meter: &Meter<'_>) -> Result<Vec<u8>> {
    let mut out = String::with_capacity(text.len());
    let mut end = text.len();
    while end > 0 {
        let start = start_of_piece(text, end);
        out.extend(piece(text, start, end, meter)?.chars().rev());
        end = start;
    }
    Ok(out.into_bytes())
}

/// The text with each piece made another one, at most `len_max` bytes of them.
pub(crate) fn mapped(
    text: &[u8],
    len_max: usize,
    meter: &Meter<'_>,
    map: impl Fn(&str, &mut Vec<u8>),
) -> Result<Vec<u8>> {
    let (mut out, mut start) = (Vec::with_capacity(len_max.min(text.len())), 0);
    while start < text.len() {
        let end = end_of_piece(text, start);
        map(piece(text, start, end, meter)?, &mut out);
        start = end;
    }
    Ok(out)
}

/// The text with its letters in one case, as comparisons without case see them.
pub(crate) fn folded<'t>(
    text: &'t [u8],
    room: &mut Room<'_>,
    meter: &Meter<'_>,
) -> Result<Cow<'t, [u8]>> {
    if text.len() <= PIECE_BYTES {
        return Ok(match predicate::folded(piece(text, 0, text.len(), meter)?) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
    }
    // A letter of two bytes may have one case of three.
    let most = text.len().saturating_mul(2);
    room.take(most)?;
    let folded = mapped(text, most, meter, |piece, out| {
        out.extend_from_slice(predicate::folded(piece).as_bytes());
    });
    folded.map(Cow::Owned)
}

/// The text in lower case.
pub(crate) fn lower(text: &[u8], meter: &Meter<'_>) -> Result<Vec<u8>> {
    if text.len() <= PIECE_BYTES {
        return Ok(piece(text, 0, text.len(), meter)?.to_lowercase().into_bytes());
    }
    let has_sigma = find(text, &Finder::new(SIGMA), meter)?.is_some();
    let (mut out, mut start) = (Vec::with_capacity(text.len()), 0);
    while start < text.len() {
        let end = match has_sigma {
            true => end_of_context(text, start),
            false => end_of_piece(text, start),
        };
        out.extend_from_slice(piece(text, start, end, meter)?.to_lowercase().as_bytes());
        start = end;
    }
    Ok(out)
}

/// Whether a byte is the first one of a character.
fn is_first(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn piece<'t>(text: &'t [u8], start: usize, end: usize, meter: &Meter<'_>) -> Result<&'t str> {
    meter.work(end - start)?;
    Ok(std::str::from_utf8(text.get(start..end).unwrap_or_default()).unwrap_or_default())
}

/// The end of a piece that starts here: whole characters.
fn end_of_piece(text: &[u8], start: usize) -> usize {
    let wanted = start.saturating_add(PIECE_BYTES);
    let is_end = |at: &usize| text.get(*at).is_none_or(|byte| is_first(*byte));
    (start + 1..=wanted).rev().find(is_end).unwrap_or(wanted).min(text.len())
}

fn start_of_piece(text: &[u8], end: usize) -> usize {
    let wanted = end.saturating_sub(PIECE_BYTES);
    let is_start = |at: &usize| text.get(*at).is_some_and(|byte| is_first(*byte));
    (wanted..end).find(is_start).unwrap_or(0)
}

/// The end of a piece that starts here, between two letters or digits of ASCII: what stands on one
/// side of them does not matter to the case of a sigma on the other side.
fn end_of_context(text: &[u8], start: usize) -> usize {
    let splits = |pair: &[u8]| matches!(pair, [a, b] if is_plain(*a) && is_plain(*b));
    let from = start.saturating_add(PIECE_BYTES);
    let rest = text.get(from..).unwrap_or_default();
    rest.windows(2).position(splits).map_or(text.len(), |at| from + at + 1)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b' ' || byte == b'\n'
}
