//! LIKE patterns: `%` stands for any run of characters, `_` for exactly one.
//!
//! A pattern is cut at its `%` into pieces that must occur in this order. The first piece is
//! anchored at the start, the last at the end, and each one between is taken at its first
//! occurrence, which never loses a match. So matching is linear in the common cases: no
//! backtracking beyond one piece.

use std::convert::Infallible;

use crate::meter::Meter;
use crate::{Error, Result};

/// What lies between two `%`: characters, `None` for `_`.
pub(super) type Piece = Vec<Option<char>>;

/// The pieces of a pattern, at least one.
///
/// # Errors
/// When the escape character ends the pattern or stands before an ordinary character.
pub(super) fn pieces(pattern: &str, escape: Option<char>) -> Result<Vec<Piece>> {
    let (all, breaks) = parse(pattern, escape)?;
    Ok(cut(&all, &breaks))
}

/// The characters of a pattern without its `%` and escapes, `None` for `_`, and before which of
/// them the `%` stood.
fn parse(pattern: &str, escape: Option<char>) -> Result<(Piece, Vec<usize>)> {
    let (mut all, mut breaks) = (Piece::new(), Vec::new());
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        if Some(c) == escape {
            match characters.next() {
                Some(c) if c == '%' || c == '_' || Some(c) == escape => all.push(Some(c)),
                _ => {
                    return Err(Error::invalid(format!(
                        "pattern '{pattern}': the escape {c:?} goes before %, _ or itself"
                    )));
                }
            }
        } else if c == '%' {
            breaks.push(all.len());
        } else {
            all.push(if c == '_' { None } else { Some(c) });
        }
    }
    Ok((all, breaks))
}

fn cut(all: &[Option<char>], breaks: &[usize]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(breaks.len() + 1);
    let mut start = 0;
    for end in breaks {
        pieces.push(all.get(start..*end).unwrap_or_default().to_vec());
        start = *end;
    }
    pieces.push(all.get(start..).unwrap_or_default().to_vec());
    pieces
}

/// Whether a whole text is the pieces with any runs between.
pub(super) fn matches(pieces: &[Piece], text: &str) -> bool {
    // What never fails has no error.
    follow(pieces, text, &mut |_| Ok::<_, Infallible>(())).unwrap_or_else(|never| match never {})
}

/// The same for a text of any length.
///
/// # Errors
/// When the statement is to end.
pub(super) fn matches_within(pieces: &[Piece], text: &[u8], meter: &Meter<'_>) -> Result<bool> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    follow(pieces, text, &mut |steps| meter.work(steps))
}

/// The same; `work` counts steps before they are taken.
fn follow<E>(
    pieces: &[Piece],
    text: &str,
    work: &mut impl FnMut(usize) -> std::result::Result<(), E>,
) -> std::result::Result<bool, E> {
    let (Some((first, rest)), mut text) = (pieces.split_first(), text) else { return Ok(false) };
    let Some(after) = strip(first, text) else { return Ok(false) };
    text = after;
    let Some((last, middle)) = rest.split_last() else { return Ok(text.is_empty()) };
    for piece in middle {
        match find(piece, text, work)? {
            Some(after) => text = after,
            None => return Ok(false),
        }
    }
    // The last piece has a fixed number of characters: it can only start that far from the end.
    let mut characters = text.chars();
    let mut start = text.len();
    for _ in last {
        let Some(c) = characters.next_back() else { return Ok(false) };
        start -= c.len_utf8();
    }
    let end = text.get(start..).unwrap_or_default();
    Ok(strip(last, end).is_some_and(str::is_empty))
}

/// The texts between the `_` of a piece.
pub(super) fn parts(piece: &[Option<char>]) -> Vec<String> {
    let parts = piece.split(Option::is_none);
    parts.map(|part| part.iter().flatten().collect::<String>()).filter(|p| !p.is_empty()).collect()
}

/// What follows a piece at the start of a text.
fn strip<'t>(piece: &[Option<char>], text: &'t str) -> Option<&'t str> {
    let mut characters = text.chars();
    for wanted in piece {
        let found = characters.next()?;
        if wanted.is_some_and(|wanted| wanted != found) {
            return None;
        }
    }
    Some(characters.as_str())
}

/// What follows the first occurrence of a piece.
fn find<'t, E>(
    piece: &[Option<char>],
    text: &'t str,
    work: &mut impl FnMut(usize) -> std::result::Result<(), E>,
) -> std::result::Result<Option<&'t str>, E> {
    let mut characters = text.chars();
    loop {
        work(piece.len())?;
        if let Some(after) = strip(piece, characters.as_str()) {
            return Ok(Some(after));
        }
        if characters.next().is_none() {
            return Ok(None);
        }
    }
}
