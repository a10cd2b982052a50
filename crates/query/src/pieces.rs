//! Texts of any size, piece by piece: between pieces it is seen whether the statement is to end.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::Result;
use crate::meter::{Meter, PIECE_BYTES, Reservation};
use esker_format::case::folded as fold_piece;

/// How many characters a text has: each has one byte that is not a continuation byte.
pub(crate) fn character_count(text: &[u8]) -> usize {
    text.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

/// The capital whose small form depends on what stands around it.
const SIGMA: char = 'Σ';

/// Sets of no more bytes are looked through.
const FEW_BYTES: usize = 32;

/// Whether a character is passed over is found out as fast as so many bytes are worked on.
const PASSED_OVER_WORK: usize = 128;

/// A set of characters, given as a text.
pub(crate) enum Characters<'s> {
    Few(&'s str),
    /// A bit for each character: looking one up takes as long for any number of them.
    Many(Vec<u64>),
}

impl<'s> Characters<'s> {
    /// Those of a text.
    pub(crate) fn of(text: &'s [u8], meter: &Meter<'_>) -> Result<Self> {
        if text.len() <= FEW_BYTES {
            return Ok(Self::Few(std::str::from_utf8(text).unwrap_or_default()));
        }
        let mut bits = vec![0u64; char::MAX as usize / 64 + 1];
        let mut start = 0;
        while start < text.len() {
            let end = end_of_piece(text, start);
            for c in piece(text, start, end, meter)?.chars() {
                if let Some(word) = bits.get_mut(c as usize / 64) {
                    *word |= 1 << (c as usize % 64);
                }
            }
            start = end;
        }
        Ok(Self::Many(bits))
    }

    fn has(&self, c: char) -> bool {
        match self {
            Self::Few(all) => all.contains(c),
            Self::Many(bits) => {
                bits.get(c as usize / 64).is_some_and(|word| word >> (c as usize % 64) & 1 == 1)
            }
        }
    }
}

/// The characters of a text.
pub(crate) fn characters(text: &[u8], meter: &Meter<'_>) -> Result<usize> {
    let mut count = 0;
    for piece in meter.pieces(text) {
        count += character_count(piece?);
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

/// Every place where a part occurs, from left to right, none overlapping another; none of an empty
/// part.
pub(crate) fn find_all(
    text: &[u8],
    part: &Finder<'_>,
    meter: &Meter<'_>,
    mut visit: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let (mut from, len) = (0, part.needle().len());
    if len == 0 {
        return Ok(());
    }
    while let Some(at) = find(text.get(from..).unwrap_or_default(), part, meter)? {
        visit(from + at)?;
        from += at + len;
        meter.work(len)?;
    }
    Ok(())
}

/// Where character `index` begins; the end of the text past the last.
pub(crate) fn place(text: &[u8], index: usize, meter: &Meter<'_>) -> Result<usize> {
    let (mut left, mut start) = (index, 0);
    for piece in meter.pieces(text) {
        let piece = piece?;
        let count = character_count(piece);
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
pub(crate) fn leading(text: &[u8], set: &Characters<'_>, meter: &Meter<'_>) -> Result<usize> {
    let mut start = 0;
    while start < text.len() {
        let end = end_of_piece(text, start);
        let piece = piece(text, start, end, meter)?;
        let rest = piece.trim_start_matches(|c| set.has(c));
        if !rest.is_empty() {
            return Ok(start + piece.len() - rest.len());
        }
        start = end;
    }
    Ok(text.len())
}

/// How many bytes at the end of a text are characters of a set.
pub(crate) fn trailing(text: &[u8], set: &Characters<'_>, meter: &Meter<'_>) -> Result<usize> {
    let mut end = text.len();
    while end > 0 {
        let start = start_of_piece(text, end);
        let piece = piece(text, start, end, meter)?;
        let rest = piece.trim_end_matches(|c| set.has(c));
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
    room: &mut Reservation<'_>,
    meter: &Meter<'_>,
) -> Result<Cow<'t, [u8]>> {
    if text.len() <= PIECE_BYTES {
        return Ok(match fold_piece(piece(text, 0, text.len(), meter)?) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
    }
    // A letter of two bytes may have one case of three.
    let most = text.len().saturating_mul(2);
    room.take(most)?;
    let folded = mapped(text, most, meter, |piece, out| {
        out.extend_from_slice(fold_piece(piece).as_bytes());
    });
    folded.map(Cow::Owned)
}

/// The text in lower case.
pub(crate) fn lower(text: &[u8], meter: &Meter<'_>) -> Result<Vec<u8>> {
    if text.len() <= PIECE_BYTES {
        return Ok(piece(text, 0, text.len(), meter)?.to_lowercase().into_bytes());
    }
    if find(text, &Finder::new(SIGMA.encode_utf8(&mut [0; 4])), meter)?.is_none() {
        return mapped(text, text.len(), meter, |piece, out| {
            out.extend_from_slice(piece.to_lowercase().as_bytes());
        });
    }
    let (mut out, mut start) = (Vec::with_capacity(text.len()), 0);
    let (mut before, mut after) = (None, Stop { at: 0, character: None });
    while start < text.len() {
        let end = end_of_piece(text, start);
        let piece = piece(text, start, end, meter)?;
        if !piece.contains(SIGMA) {
            out.extend_from_slice(piece.to_lowercase().as_bytes());
        } else {
            if after.at < end {
                after = Stop::from(text, end, meter)?;
            }
            // What stands beside the piece is one character on either side, however far away.
            let (left, right) = (lowered_len(before), lowered_len(after.character));
            let whole: String =
                before.into_iter().chain(piece.chars()).chain(after.character).collect();
            let whole = whole.to_lowercase();
            let here = whole.len().checked_sub(right).and_then(|to| whole.get(left..to));
            out.extend_from_slice(here.unwrap_or_default().as_bytes());
        }
        before = piece.chars().rev().find(|c| !is_passed_over(*c)).or(before);
        start = end;
    }
    Ok(out)
}

/// The first character at a place or behind that the case of a sigma before it may depend on.
struct Stop {
    at: usize,
    /// None where there is none up to the end of the text.
    character: Option<char>,
}

impl Stop {
    fn from(text: &[u8], mut at: usize, meter: &Meter<'_>) -> Result<Self> {
        while at < text.len() {
            let end = end_of_piece(text, at);
            for (i, character) in piece(text, at, end, meter)?.char_indices() {
                meter.work(PASSED_OVER_WORK)?;
                if !is_passed_over(character) {
                    return Ok(Self { at: at + i, character: Some(character) });
                }
            }
            at = end;
        }
        Ok(Self { at, character: None })
    }
}

/// Whether the case of a sigma does not depend on this character but on the next.
fn is_passed_over(c: char) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    // A sigma is final where a letter stands before it and none behind: if `c` is passed over, it
    // is neither a letter itself nor does it keep the sigma from the letter behind it.
    let is_final = |text: [char; 4]| {
        let text = text.iter().collect::<String>().to_lowercase();
        text.chars().nth(1) == Some('ς')
    };
    is_final(['a', SIGMA, c, ' ']) && !is_final(['a', SIGMA, c, 'a'])
}

fn lowered_len(c: Option<char>) -> usize {
    c.map_or(0, |c| c.to_lowercase().map(char::len_utf8).sum())
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

#[cfg(test)]
mod tests;
