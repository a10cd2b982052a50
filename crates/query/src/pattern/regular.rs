//! Regular expressions: matched in time linear in the text, whatever the expression. That time is
//! at most as many steps as the text has bytes, times the states of the expression: where this is
//! much, they are taken one by one.

use std::sync::{Arc, OnceLock};

use regex::bytes;
use regex_automata::hybrid::dfa::Cache;

use super::parts::{exact_parts_of, parts_of};
use super::stepped::Stepped;
use crate::meter::Meter;
use crate::{Error, Result};

/// The most bytes of a compiled expression.
pub(super) const SIZE_BYTES_MAX: usize = 1 << 20;

/// Of texts that are no longer, an expression of any size takes little time.
const SHORT_BYTES_MAX: usize = 512;

/// So many states at most are looked at without a look at the time: less than 100 ms of work.
const STATES_MAX: usize = 1 << 23;

/// So few texts are matched before an automaton is made that is kept from text to text.
const FEW_TEXTS: usize = 512;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Regular {
    program: bytes::Regex,
    expression: String,
    any_case: bool,
    /// For texts that `program` may take long for.
    stepped: Arc<OnceLock<std::result::Result<Stepped, String>>>,
    /// What every text has in which it is found, once it was needed.
    parts: OnceLock<Vec<String>>,
}

impl Regular {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is none, with the place of what is wrong; when it would be too large.
    pub(super) fn new(expression: &str, any_case: bool) -> Result<Self> {
        let program = bytes::RegexBuilder::new(expression)
            .case_insensitive(any_case)
            .size_limit(SIZE_BYTES_MAX)
            .build();
        match program {
            Ok(program) => Ok(Self {
                program,
                expression: expression.to_owned(),
                any_case,
                stepped: Arc::default(),
                parts: OnceLock::new(),
            }),
            Err(error) => Err(refused(expression, any_case, &error)),
        }
    }

    /// What every text has in which it is found, in one case or another.
    pub(super) fn parts(&self) -> &[String] {
        self.parts.get_or_init(|| parts_of(&self.expression, self.any_case))
    }

    /// A part that every text has in which it is found: with the letters folded where case does
    /// not matter, else as it is written.
    pub(super) fn needle(&self) -> Option<String> {
        let longest = |parts: &[String]| parts.iter().max_by_key(|part| part.len()).cloned();
        match self.any_case {
            true => longest(self.parts()),
            false => longest(&exact_parts_of(&self.expression)),
        }
    }

    /// Whether it is found in a text, however long that takes.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.program.is_match(text)
    }

    /// Whether it is found in a text.
    ///
    /// # Errors
    /// When the statement is to end.
    pub(super) fn matches_within(&self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        meter.work(text.len())?;
        if text.len() <= SHORT_BYTES_MAX {
            return Ok(self.matches(text));
        }
        let stepped = self.stepped.get_or_init(|| Stepped::new(&self.expression, self.any_case));
        match stepped {
            Ok(stepped) if text.len().saturating_mul(stepped.state_count()) > STATES_MAX => {
                stepped.matches(text, meter)
            }
            Ok(_) => Ok(self.matches(text)),
            Err(reason) => {
                let expression = &self.expression;
                Err(Error::invalid(format!("regular expression '{expression}': {reason}")))
            }
        }
    }
}

/// An expression that is looked for in many texts, by one thread: it keeps its place in the
/// automaton from text to text.
pub(super) struct Search<'r> {
    regular: &'r Regular,
    /// The automaton, and the states of it that were met.
    by: Option<(&'r Stepped, Cache)>,
    /// How many texts come before the automaton is made.
    texts_before: usize,
}

impl<'r> Search<'r> {
    pub(super) fn new(regular: &'r Regular) -> Self {
        let mut search = Self { regular, by: None, texts_before: FEW_TEXTS };
        if regular.stepped.get().is_some() {
            search.begin();
        }
        search
    }

    /// Goes on by the automaton.
    fn begin(&mut self) {
        let Self { regular, .. } = *self;
        let stepped =
            regular.stepped.get_or_init(|| Stepped::new(&regular.expression, regular.any_case));
        self.by = stepped.as_ref().ok().map(|stepped| (stepped, stepped.cache()));
        self.texts_before = 0;
    }

    /// As [`Regular::matches_within`].
    ///
    /// # Errors
    /// When the statement is to end.
    pub(super) fn matches_within(&mut self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        if self.texts_before > 0 {
            self.texts_before -= 1;
            if self.texts_before > 0 {
                return self.regular.matches_within(text, meter);
            }
            self.begin();
        }
        if let Some((stepped, cache)) = &mut self.by
            && text.len() <= SHORT_BYTES_MAX
            && let Some(found) = stepped.matches_short(text, cache)
        {
            meter.work(text.len())?;
            return Ok(found);
        }
        self.regular.matches_within(text, meter)
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        if let Some((stepped, cache)) = self.by.take() {
            stepped.give_back(cache);
        }
    }
}

/// The error for an expression that does not compile.
pub(super) fn refused(expression: &str, any_case: bool, error: &regex::Error) -> Error {
    Error::invalid(match reason(expression, any_case) {
        Some(reason) => format!("regular expression '{expression}': {reason}"),
        None => {
            let error = error.to_string();
            let error = error.lines().next_back().unwrap_or_default();
            format!("regular expression '{expression}': {error}")
        }
    })
}

/// What is wrong with an expression, and at which character.
fn reason(expression: &str, any_case: bool) -> Option<String> {
    let mut parser = regex_syntax::ParserBuilder::new().case_insensitive(any_case).build();
    let (kind, at) = match parser.parse(expression).err()? {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        _ => return None,
    };
    let before = expression.get(..at).unwrap_or(expression);
    Some(format!("{kind} (at character {})", before.chars().count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn many_texts_match_as_one_does() {
        let limits = Limits::default();
        let meter = Meter::new(&limits);
        let regular = Regular::new("b[0-9]*7$", false).unwrap();
        for _ in 0..2 {
            let mut search = Search::new(&regular);
            for i in 0..2 * FEW_TEXTS {
                let text = format!("{}b{i}", "a".repeat(i % 3 * SHORT_BYTES_MAX / 2));
                let found = search.matches_within(text.as_bytes(), &meter).unwrap();
                assert_eq!(found, i % 10 == 7, "{i}");
            }
        }
        assert!(regular.stepped.get().is_some(), "the automaton was made");
    }
}
