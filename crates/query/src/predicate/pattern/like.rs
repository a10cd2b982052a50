//! LIKE patterns: `%` stands for any run of characters, `_` for exactly one.
//!
//! A pattern is cut at its `%` into pieces that must occur in this order. The first piece is
//! anchored at the start, the last at the end, and each one between is taken at its first
//! occurrence, which never loses a match. So matching is linear in the common cases: no
//! backtracking beyond one piece.

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
    let (Some((first, rest)), mut text) = (pieces.split_first(), text) else { return false };
    let Some(after) = strip(first, text) else { return false };
    text = after;
    let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
    for piece in middle {
        match find(piece, text) {
            Some(after) => text = after,
            None => return false,
        }
    }
    // The last piece has a fixed number of characters: it can only start that far from the end.
    let count = text.chars().count();
    let Some(skip) = count.checked_sub(last.len()) else { return false };
    let mut characters = text.chars();
    characters.by_ref().take(skip).for_each(drop);
    strip(last, characters.as_str()).is_some_and(str::is_empty)
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
fn find<'t>(piece: &[Option<char>], text: &'t str) -> Option<&'t str> {
    let mut characters = text.chars();
    loop {
        if let Some(after) = strip(piece, characters.as_str()) {
            return Some(after);
        }
        characters.next()?;
    }
}
