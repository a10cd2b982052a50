//! What of a source is the product: no tests, and for counting no comments, blanks or assertions.
//!
//! An item under an attribute that asks for `test` is a test: `#[test]`, `#[cfg(test)]`,
//! `#[cfg(all(test, loom))]`. The files below a `mod` line that is such an item are tests, too:
//! [`module_tree`](super::module_tree), which walks from file to file, does not come there.

use super::Source;
use super::lexer::Token;
use std::collections::BTreeSet;

/// Directories and names of files that hold nothing but tests, benchmarks and examples.
const TEST_DIRECTORIES: [&str; 4] = ["/tests/", "/benches/", "/examples/", "/fuzz_targets/"];

/// True for a file that is a test by its place.
#[must_use]
pub fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || TEST_DIRECTORIES.iter().any(|place| path.contains(place))
}

/// A source without its tests.
#[derive(Clone, Debug, Default)]
pub struct Product<'a> {
    /// Tokens with their comments.
    pub tokens: Vec<Token<'a>>,
}

impl<'a> Product<'a> {
    /// Cuts the tests out of a source.
    #[must_use]
    pub fn of(source: &Source<'a>) -> Self {
        let tokens = source.tokens();
        let mut product = Self::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let rest = tokens.get(at..).unwrap_or_default();
            match test_item(rest) {
                Some(length) => at += length,
                None => {
                    product.tokens.push(*token);
                    at += 1;
                }
            }
        }
        product
    }

    /// Tokens without comments.
    #[must_use]
    pub fn code(&self) -> Vec<Token<'a>> {
        self.tokens.iter().filter(|token| !token.is_comment()).copied().collect()
    }

    /// Lines that hold code which is no assertion.
    #[must_use]
    pub fn code_lines(&self) -> usize {
        let code = self.code();
        let mut lines = BTreeSet::new();
        let mut at = 0;
        while let Some(token) = code.get(at) {
            let rest = code.get(at..).unwrap_or_default();
            match assertion(rest) {
                Some(length) => at += length,
                None => {
                    lines.extend(token.line..=token.last_line());
                    at += 1;
                }
            }
        }
        lines.len()
    }
}

/// The length of the item at the start of `tokens`, with its attributes, when it is for tests.
fn test_item(tokens: &[Token<'_>]) -> Option<usize> {
    let mut at = attribute(tokens)?;
    let is_for_tests = |attribute: &[Token<'_>]| {
        let mut words = attribute.iter().filter(|token| token.is_word());
        match words.next().map(|word| word.text) {
            Some("test") => true,
            Some("cfg") => {
                let mut words = words.clone();
                let refused = words.clone().any(|word| word.is("not"));
                !refused && words.any(|word| word.is("test"))
            }
            _ => false,
        }
    };
    if !is_for_tests(tokens.get(..at)?) {
        return None;
    }
    loop {
        while tokens.get(at).is_some_and(Token::is_comment) {
            at += 1;
        }
        match attribute(tokens.get(at..)?) {
            Some(length) => at += length,
            None => return Some(at + item(tokens.get(at..)?)),
        }
    }
}

/// The length of an attribute, `#[…]`.
fn attribute(tokens: &[Token<'_>]) -> Option<usize> {
    (tokens.first()?.is("#") && tokens.get(1)?.is("[")).then_some(())?;
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "[" if token.is("[") => depth += 1,
            "]" if token.is("]") => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The length of an item: to its semicolon, or to the brace that closes its body; a field ends at
/// its comma.
fn item(tokens: &[Token<'_>]) -> usize {
    let is_declared = tokens.iter().take_while(|t| !t.is(":") && !t.is("{")).any(|token| {
        ["fn", "mod", "use", "impl", "struct", "enum", "trait", "const", "static", "type", "let"]
            .iter()
            .any(|word| token.is(word))
    });
    let (mut brackets, mut braces) = (0usize, 0usize);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            _ if !token.is(token.text) => {}
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if braces == 0 && brackets == 0 {
                    return at + 1;
                }
            }
            ";" if braces == 0 && brackets == 0 => return at + 1,
            "," if braces == 0 && brackets == 0 && !is_declared => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The length of an assertion, `assert…!(…);` or `debug_assert…!(…);`.
fn assertion(code: &[Token<'_>]) -> Option<usize> {
    let name = code.first().filter(|token| token.is_word())?.text;
    let is_assertion = name.starts_with("assert") || name.starts_with("debug_assert");
    (is_assertion && code.get(1)?.is("!") && code.get(2)?.is("(")).then_some(())?;
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate() {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth -= 1;
            if depth == 0 {
                let semicolon = code.get(at + 1).is_some_and(|next| next.is(";"));
                return Some(at + 1 + usize::from(semicolon));
            }
        }
    }
    None
}
