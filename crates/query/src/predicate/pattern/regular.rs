//! Regular expressions: matched in time linear in the text, whatever the expression.

use regex::bytes;

use super::parts::parts_of;
use crate::{Error, Result};

/// The most bytes of a compiled expression.
const SIZE_BYTES_MAX: usize = 1 << 20;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Regular {
    program: bytes::Regex,
    /// What every text has in which it is found.
    parts: Vec<String>,
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
            Ok(program) => Ok(Self { program, parts: parts_of(expression, any_case) }),
            Err(error) => Err(Error::invalid(match reason(expression, any_case) {
                Some(reason) => format!("regular expression '{expression}': {reason}"),
                None => {
                    let error = error.to_string();
                    let error = error.lines().next_back().unwrap_or_default();
                    format!("regular expression '{expression}': {error}")
                }
            })),
        }
    }

    /// What every text has in which it is found, in one case or another.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Whether it is found in a text.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        self.program.is_match(text)
    }
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
