//! LIKE patterns: `%` stands for any run of characters, `_` for exactly one.
//!
//! A pattern is cut at its `%` into pieces that must occur in this order. The first piece is
//! anchored at the start, the last at the end, and each one between is taken at its first
//! occurrence, which never loses a match. So matching is linear in the common cases: no
//! backtracking beyond one piece.

use memchr::memmem;

use crate::{Error, Result};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: (String, Option<char>),
    any_case: bool,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// No wildcard.
    Exact(Vec<u8>),
    /// `text%`
    Prefix(Vec<u8>),
    /// `%text`
    Suffix(Vec<u8>),
    /// `%text%`
    Contains(Box<memmem::Finder<'static>>),
    /// Anything else: the pieces between the `%`, at least one.
    Pieces(Vec<Piece>),
}

/// What lies between two `%`: characters, `None` for `_`.
type Piece = Vec<Option<char>>;

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.any_case == other.any_case
    }
}

impl Pattern {
    /// Compiles a pattern. With `any_case`, letters match in either case.
    ///
    /// # Errors
    /// When the escape character ends the pattern or stands before an ordinary character.
    pub(crate) fn new(pattern: &str, escape: Option<char>, any_case: bool) -> Result<Self> {
        let (all, breaks) = parse(pattern, escape)?;
        let mut pieces = cut(&all, &breaks);
        if any_case {
            // Only now: before, the escape character itself would be folded.
            let characters = pieces.iter_mut().flatten().flatten();
            characters.for_each(|c| *c = fold(*c));
        }
        let shape = shape(pieces);
        Ok(Self { source: (pattern.to_owned(), escape), any_case, shape })
    }

    /// Whether a text matches.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if self.any_case {
            let folded = folded(std::str::from_utf8(text).unwrap_or_default());
            return self.matches_cased(folded.as_bytes());
        }
        self.matches_cased(text)
    }

    /// The text that every match starts with, when that alone decides.
    pub(crate) fn as_prefix(&self) -> Option<&[u8]> {
        match &self.shape {
            Shape::Prefix(text) if !self.any_case => Some(text),
            _ => None,
        }
    }

    /// The only text that matches, when there is one.
    pub(crate) fn as_exact(&self) -> Option<&[u8]> {
        match &self.shape {
            Shape::Exact(text) if !self.any_case => Some(text),
            _ => None,
        }
    }

    fn matches_cased(&self, text: &[u8]) -> bool {
        match &self.shape {
            Shape::Exact(wanted) => text == wanted,
            Shape::Prefix(wanted) => text.starts_with(wanted),
            Shape::Suffix(wanted) => text.ends_with(wanted),
            Shape::Contains(finder) => finder.find(text).is_some(),
            Shape::Pieces(pieces) => {
                std::str::from_utf8(text).is_ok_and(|text| matches_pieces(pieces, text))
            }
        }
    }
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

/// A text with its letters in one case.
fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(fold).collect() }
}

/// A letter's form in which all its cases are one, by Unicode's simple case folding: one character
/// for one, whatever stands beside it. So the three sigmas are equal, and `_` stands for as many
/// characters as without regard to case.
fn fold(c: char) -> char {
    fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
        characters.next().filter(|_| characters.next().is_none())
    }
    match c {
        // Its capital is that of another letter.
        '\u{131}' => c,
        // Equal letters that have no capital of their own.
        '\u{1fd3}' => '\u{390}',
        '\u{1fe3}' => '\u{3b0}',
        '\u{fb05}' => '\u{fb06}',
        _ => {
            let upper = single(c.to_uppercase()).unwrap_or(c);
            single(upper.to_lowercase()).unwrap_or(upper)
        }
    }
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

fn shape(pieces: Vec<Piece>) -> Shape {
    let text = |piece: &Piece| -> Option<Vec<u8>> {
        let text: Option<String> = piece.iter().copied().collect();
        text.map(String::into_bytes)
    };
    let simple = match pieces.as_slice() {
        [only] => text(only).map(Shape::Exact),
        [first, last] if last.is_empty() => text(first).map(Shape::Prefix),
        [first, last] if first.is_empty() => text(last).map(Shape::Suffix),
        [first, middle, last] if first.is_empty() && last.is_empty() => text(middle)
            .map(|needle| Shape::Contains(Box::new(memmem::Finder::new(&needle).into_owned()))),
        _ => None,
    };
    simple.unwrap_or(Shape::Pieces(pieces))
}

fn matches_pieces(pieces: &[Piece], text: &str) -> bool {
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
