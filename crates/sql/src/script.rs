//! Texts of several statements.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::tokenize;

/// The statements of a text, without the semicolons behind them and without empty ones. A text
/// with a quote that is never closed is one statement, which is then refused.
///
/// ```
/// let text = "SELECT ';' FROM t; -- a comment;\nDELETE FROM t;";
/// assert_eq!(esker_sql::statements(text), ["SELECT ';' FROM t", "DELETE FROM t"]);
/// ```
#[must_use]
pub fn statements(text: &str) -> Vec<&str> {
    let Ok(tokens) = tokenize(text) else { return vec![text.trim()] };
    let mut cursor = Cursor::new(text);
    let (mut found, mut start, mut last) = (Vec::new(), None, 0);
    for token in &tokens {
        let is_end = token.token == Token::SemiColon;
        if is_end || token.token == Token::EOF {
            found.extend(start.take().and_then(|start| text.get(start..last)));
        } else if !matches!(token.token, Token::Whitespace(_)) {
            if start.is_none() {
                start = Some(cursor.advance_to(token.span.start));
            }
            last = cursor.advance_to(token.span.end);
        }
    }
    found.extend(start.and_then(|start| text.get(start..last)));
    found
}

/// Whether a text ends with a whole statement, and a semicolon behind it.
#[must_use]
pub fn is_complete(text: &str) -> bool {
    let tokens = tokenize(text).unwrap_or_default();
    let blank = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::EOF);
    tokens.iter().rfind(blank).is_some_and(|token| token.token == Token::SemiColon)
}

/// What a text is within at its end: a text (`'`), a name in quotes (`"`), a comment (`*`) or
/// parentheses (`(`); `None` when nothing is open.
///
/// ```
/// assert_eq!(esker_sql::open_quote("SELECT 'it''s"), Some('\''));
/// assert_eq!(esker_sql::open_quote("SELECT '(' -- it's"), None);
/// ```
#[must_use]
pub fn open_quote(text: &str) -> Option<char> {
    let (mut rest, mut depth) = (text, 0_usize);
    while let Some(at) = rest.find(['\'', '"', '-', '/', '(', ')']) {
        let (_, found) = rest.split_at(at);
        let mut chars = found.chars();
        let first = chars.next()?;
        // A quote that is doubled ends one text and begins the next.
        let (end, open) = match (first, chars.next()) {
            ('\'' | '"', _) => (String::from(first), first),
            ('-', Some('-')) => ("\n".to_owned(), '-'),
            ('/', Some('*')) => ("*/".to_owned(), '*'),
            _ => {
                match first {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                rest = found.get(1..)?;
                continue;
            }
        };
        let inside = found.get(if matches!(open, '-' | '*') { 2 } else { 1 }..)?;
        match inside.split_once(&end) {
            Some((_, behind)) => rest = behind,
            None if open == '-' => break,
            None => return Some(open),
        }
    }
    (depth > 0).then_some('(')
}

/// A place in a text that only goes on: finding all tokens takes one walk through it.
pub(crate) struct Cursor<'t> {
    rest: std::str::Chars<'t>,
    place: Location,
    offset: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text.chars(), place: Location { line: 1, column: 1 }, offset: 0 }
    }

    /// The byte at a line and a character, both counted from 1, which is not before the last one;
    /// the end when it lies behind.
    pub(crate) fn advance_to(&mut self, place: Location) -> usize {
        while self.place < place
            && let Some(c) = self.rest.next()
        {
            self.offset += c.len_utf8();
            self.place = match c {
                '\n' => Location { line: self.place.line + 1, column: 1 },
                _ => Location { line: self.place.line, column: self.place.column + 1 },
            };
        }
        self.offset
    }
}

/// Where the lines of a text start.
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The byte at a line and a character, both counted from 1; the end when it lies behind.
    pub(crate) fn offset(&self, text: &str, place: Location) -> Option<usize> {
        let line = usize::try_from(place.line.checked_sub(1)?).ok()?;
        let column = usize::try_from(place.column.checked_sub(1)?).ok()?;
        let start = self.0.get(line).copied().unwrap_or(text.len());
        let rest = text.get(start..)?;
        Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes() {
        assert_eq!(statements("a"), ["a"]);
        assert_eq!(statements(" a ; ;b\n;"), ["a", "b"]);
        assert_eq!(statements("'é;' x;\"a;\" /* ; */ y"), ["'é;' x", "\"a;\" /* ; */ y"]);
        assert!(statements(" ;; -- x\n").is_empty());
        assert_eq!(statements("a; 'b"), ["a; 'b"]);
        assert_eq!(
            statements("é 'ß\nü' ;\r\n\r\n  ö -- ä\n, x;\ny"),
            ["é 'ß\nü'", "ö -- ä\n, x", "y"]
        );
        assert!(is_complete("a;") && is_complete("a; -- done") && is_complete("a;b; \n"));
        assert!(!is_complete("a") && !is_complete("a;b") && !is_complete("';") && !is_complete(""));
    }
}
