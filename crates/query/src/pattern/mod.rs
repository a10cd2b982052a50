//! What a text is tested for with a constant: a LIKE pattern, a part that it contains, starts or
//! ends with, or a regular expression; with regard to case or without (see [`esker_format::case`]).

mod captured;
mod like;
mod parts;
mod regular;
mod stepped;

use std::borrow::Cow;

use esker_format::case::{fold, folded};
use memchr::memmem;

use super::Result;
use crate::meter::{Meter, PIECE_BYTES};
use crate::pieces;
pub(crate) use captured::Captured;
use regular::Regular;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: Source,
    any_case: bool,
    shape: Shape,
    /// What every text has that matches, where a search for it leaves out most others.
    needle: Option<Box<memmem::Finder<'static>>>,
}

/// A pattern that many texts are tried with, by one thread.
pub(crate) struct Matcher<'p> {
    pattern: &'p Pattern,
    search: Option<regular::Search<'p>>,
}

impl Matcher<'_> {
    /// As [`Pattern::matches_within`].
    ///
    /// # Errors
    /// As for [`Pattern::matches_within`].
    pub(crate) fn matches_within(&mut self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        match &mut self.search {
            Some(search) => search.matches_within(text, meter),
            None => self.pattern.matches_within(text, meter),
        }
    }
}

/// What many texts are searched for at once.
#[derive(Clone, Copy)]
pub(crate) struct Needle<'p> {
    /// What finds it, in texts whose letters are folded when [`Pattern::is_any_case`].
    pub(crate) finder: &'p memmem::Finder<'static>,
    /// Whether a text that has it matches.
    pub(crate) decides: bool,
}

/// What the pattern was made of: equal sources match the same.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Like(String, Option<char>),
    Fragment(Place, String),
    Regular(String),
}

/// Where a part of a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    Anywhere,
    End,
}

/// What decides.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// The whole text.
    Exact(Vec<u8>),
    /// How it starts.
    Prefix(Vec<u8>),
    /// How it ends.
    Suffix(Vec<u8>),
    /// What it has somewhere.
    Contains(Box<memmem::Finder<'static>>),
    /// The pieces between the `%` of a LIKE pattern, at least one.
    Pieces(Vec<like::Piece>),
    /// A regular expression.
    Regular(Box<Regular>),
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.any_case == other.any_case
    }
}

impl Pattern {
    /// A LIKE pattern. With `any_case`, letters match in either case.
    ///
    /// # Errors
    /// When the escape character ends the pattern or stands before an ordinary character.
    pub(crate) fn like(pattern: &str, escape: Option<char>, any_case: bool) -> Result<Self> {
        let mut pieces = like::pieces(pattern, escape)?;
        if any_case {
            // Only now: before, the escape character itself would be folded.
            let characters = pieces.iter_mut().flatten().flatten();
            characters.for_each(|c| *c = fold(*c));
        }
        let source = Source::Like(pattern.to_owned(), escape);
        Ok(Self::of(source, any_case, shape(pieces)))
    }

    /// A part of a text.
    pub(crate) fn part(place: Place, part: &str, any_case: bool) -> Self {
        let wanted = if any_case { folded(part).into_owned() } else { part.to_owned() };
        let shape = match place {
            Place::Start => Shape::Prefix(wanted.into_bytes()),
            Place::Anywhere => contains(wanted.as_bytes()),
            Place::End => Shape::Suffix(wanted.into_bytes()),
        };
        Self::of(Source::Fragment(place, part.to_owned()), any_case, shape)
    }

    /// A regular expression, found anywhere in a text.
    ///
    /// # Errors
    /// When it is none, with the place of what is wrong.
    pub(crate) fn regular(expression: &str, any_case: bool) -> Result<Self> {
        let shape = Shape::Regular(Box::new(Regular::new(expression, any_case)?));
        Ok(Self::of(Source::Regular(expression.to_owned()), any_case, shape))
    }

    fn of(source: Source, any_case: bool, shape: Shape) -> Self {
        let needle = match &shape {
            Shape::Pieces(pieces) => {
                let parts = pieces.iter().flat_map(|piece| like::parts(piece));
                parts.max_by_key(String::len)
            }
            Shape::Regular(regular) => regular.needle(),
            _ => None,
        };
        let finder = |part: String| Box::new(memmem::Finder::new(part.as_bytes()).into_owned());
        Self { source, any_case, shape, needle: needle.map(finder) }
    }

    /// For many texts.
    pub(crate) fn matcher(&self) -> Matcher<'_> {
        let search = match &self.shape {
            Shape::Regular(regular) => Some(regular::Search::new(regular)),
            _ => None,
        };
        Matcher { pattern: self, search }
    }

    /// What many texts are searched for at once, if there is such a part.
    pub(crate) fn needle(&self) -> Option<Needle<'_>> {
        let (finder, decides) = match (&self.shape, &self.needle) {
            (Shape::Contains(finder), _) => (finder, true),
            (_, Some(finder)) => (finder, false),
            _ => return None,
        };
        (!finder.needle().is_empty()).then_some(Needle { finder, decides })
    }

    /// What decides; letters are to be folded first when [`Pattern::is_any_case`].
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether letters match in either case.
    pub(crate) fn is_any_case(&self) -> bool {
        self.any_case
    }

    /// Whether a text matches.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if self.any_case {
            return self.matches_folded(std::str::from_utf8(text).unwrap_or_default());
        }
        match &self.shape {
            Shape::Exact(wanted) => text == wanted,
            Shape::Prefix(wanted) => text.starts_with(wanted),
            Shape::Suffix(wanted) => text.ends_with(wanted),
            Shape::Contains(finder) => finder.find(text).is_some(),
            Shape::Pieces(pieces) => {
                std::str::from_utf8(text).is_ok_and(|text| like::matches(pieces, text))
            }
            Shape::Regular(regular) => regular.matches(text),
        }
    }

    /// Whether a text of any length matches.
    ///
    /// # Errors
    /// When the statement is to end, or memory does not hold the text with its letters folded.
    pub(crate) fn matches_within(&self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        if let Shape::Regular(regular) = &self.shape {
            return regular.matches_within(text, meter);
        }
        if text.len() <= PIECE_BYTES {
            meter.work(text.len())?;
            return Ok(self.matches(text));
        }
        let mut room = meter.room("a pattern");
        let folded = match self.any_case {
            true => pieces::folded(text, &mut room, meter)?,
            false => Cow::Borrowed(text),
        };
        Ok(match &self.shape {
            Shape::Exact(wanted) => *folded == **wanted,
            Shape::Prefix(wanted) => folded.starts_with(wanted),
            Shape::Suffix(wanted) => folded.ends_with(wanted),
            Shape::Contains(finder) => pieces::find(&folded, finder, meter)?.is_some(),
            Shape::Pieces(pieces) => like::matches_within(pieces, &folded, meter)?,
            Shape::Regular(regular) => regular.matches_within(text, meter)?,
        })
    }

    fn matches_folded(&self, text: &str) -> bool {
        let characters = text.chars().map(fold);
        let wanted = |bytes| std::str::from_utf8(bytes).unwrap_or_default().chars();
        match &self.shape {
            Shape::Exact(exact) => characters.eq(wanted(exact)),
            Shape::Prefix(prefix) => is_start(characters, wanted(prefix)),
            Shape::Suffix(suffix) => is_start(characters.rev(), wanted(suffix).rev()),
            Shape::Contains(finder) => finder.find(folded(text).as_bytes()).is_some(),
            Shape::Pieces(pieces) => like::matches(pieces, &folded(text)),
            // It folds by itself.
            Shape::Regular(regular) => regular.matches(text.as_bytes()),
        }
    }

    /// Parts that every text that matches has, in one case or another.
    pub(crate) fn parts(&self) -> Vec<String> {
        let text = |bytes: &[u8]| {
            std::str::from_utf8(bytes).map_or_else(|_| Vec::new(), |text| vec![text.to_owned()])
        };
        match &self.shape {
            Shape::Exact(part) | Shape::Prefix(part) | Shape::Suffix(part) => text(part),
            Shape::Contains(finder) => text(finder.needle()),
            Shape::Pieces(pieces) => pieces.iter().flat_map(|piece| like::parts(piece)).collect(),
            Shape::Regular(regular) => regular.parts().to_vec(),
        }
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
}

/// Whether some characters begin with others.
fn is_start(
    mut characters: impl Iterator<Item = char>,
    mut wanted: impl Iterator<Item = char>,
) -> bool {
    wanted.all(|c| characters.next() == Some(c))
}

fn contains(part: &[u8]) -> Shape {
    Shape::Contains(Box::new(memmem::Finder::new(part).into_owned()))
}

fn shape(pieces: Vec<like::Piece>) -> Shape {
    let text = |piece: &like::Piece| -> Option<Vec<u8>> {
        let text: Option<String> = piece.iter().copied().collect();
        text.map(String::into_bytes)
    };
    let simple = match pieces.as_slice() {
        [only] => text(only).map(Shape::Exact),
        [first, last] if last.is_empty() => text(first).map(Shape::Prefix),
        [first, last] if first.is_empty() => text(last).map(Shape::Suffix),
        [first, middle, last] if first.is_empty() && last.is_empty() => {
            text(middle).map(|part| contains(&part))
        }
        _ => None,
    };
    simple.unwrap_or(Shape::Pieces(pieces))
}
