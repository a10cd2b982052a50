//! Regular expressions of which the matches and their parts are wanted, not only whether there is
//! one.

use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::regular::{SIZE_BYTES_MAX, refused};
use crate::meter::Meter;
use crate::{Error, Result};

/// A compiled expression with its flags.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    program: Regex,
    flags: String,
    is_every: bool,
}

impl PartialEq for Captured {
    fn eq(&self, other: &Self) -> bool {
        self.program.as_str() == other.program.as_str() && self.flags == other.flags
    }
}

impl Captured {
    /// Compiles an expression; `known` are the flags that are possible.
    ///
    /// # Errors
    /// When it is none, with the place of what is wrong; when it would be too large; for another
    /// flag.
    pub(crate) fn new(expression: &str, flags: &str, known: &str) -> Result<Self> {
        if let Some(flag) = flags.chars().find(|flag| !known.contains(*flag)) {
            let known: Vec<_> = known.chars().map(String::from).collect();
            let known = known.join(", ");
            return Err(Error::invalid(format!("unknown flag '{flag}'; flags: {known}")));
        }
        let has = |flag: char| flags.contains(flag);
        let program = RegexBuilder::new(expression)
            .case_insensitive(has('i'))
            .dot_matches_new_line(has('s'))
            .multi_line(has('m'))
            .ignore_whitespace(has('x'))
            .size_limit(SIZE_BYTES_MAX)
            .build();
        match program {
            Ok(program) => Ok(Self { program, flags: flags.to_owned(), is_every: has('g') }),
            Err(error) => Err(refused(expression, has('i'), &error)),
        }
    }

    /// Whether every match is meant, not the first alone.
    pub(crate) fn is_every(&self) -> bool {
        self.is_every
    }

    /// How many parts in parentheses it has.
    pub(crate) fn part_count(&self) -> usize {
        self.program.captures_len() - 1
    }

    /// Refuses parts that a replacement names and there are not.
    ///
    /// # Errors
    /// With how many there are.
    pub(crate) fn expect_parts(&self, by: &str) -> Result<()> {
        let (mut rest, known) = (by, self.part_count());
        while let Some((_, behind)) = rest.split_once('\\') {
            let next = behind.chars().next();
            let part = next.and_then(|next| next.to_digit(10));
            if let Some(part) = part.filter(|part| usize::try_from(*part).is_ok_and(|p| p > known))
            {
                let message = format!("the expression has {known} parts, found \\{part}");
                return Err(Error::invalid(message));
            }
            rest = behind.get(next.map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        Ok(())
    }

    /// The matches in a text from a byte on, none overlapping another.
    pub(crate) fn matches<'m>(
        &'m self,
        text: &'m [u8],
        from: usize,
        meter: &'m Meter<'m>,
    ) -> Matches<'m> {
        let places = self.program.capture_locations();
        Matches { expression: self, text, at: from, last_end: None, places, meter }
    }
}

/// The matches in a text, one after another.
pub(crate) struct Matches<'m> {
    expression: &'m Captured,
    text: &'m [u8],
    at: usize,
    last_end: Option<usize>,
    places: CaptureLocations,
    meter: &'m Meter<'m>,
}

impl Matches<'_> {
    /// Where the next match begins and ends. Between matches it is seen whether the statement is to
    /// end.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, usize)>> {
        while self.at <= self.text.len() {
            let found =
                self.expression.program.captures_read_at(&mut self.places, self.text, self.at);
            let Some(found) = found else { break };
            let (start, end) = (found.start(), found.end());
            self.meter.work(end - self.at + 1)?;
            // Nothing is found once, between characters, and not right behind a match.
            if start == end && (self.last_end == Some(end) || !is_between(self.text, end)) {
                self.at = end + 1;
                continue;
            }
            (self.at, self.last_end) = (end, Some(end));
            return Ok(Some((start, end)));
        }
        self.meter.work(self.text.len().saturating_sub(self.at))?;
        self.at = self.text.len() + 1;
        Ok(None)
    }

    /// What a part in parentheses of the match has, 0 for the whole match.
    pub(crate) fn part(&self, number: usize) -> Option<(usize, usize)> {
        self.places.get(number)
    }
}

/// Whether a character begins at a byte, or the text ends there.
fn is_between(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}
