//! Where in a statement an error is about.

use esker_format::Excerpt;
use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, Tokenizer};

use crate::script::Lines;

/// The place in `statement` that an error is about, going by its message: the line and column that
/// a syntax error tells, or the first name in it that the message has in quotes or calls a
/// function. `None` when there is no such place.
///
/// ```
/// let statement = "SELECT id,\n  nme\nFROM people";
/// let message = "unknown field \"nme\"; did you mean \"name\"?";
/// let place = esker_sql::place(statement, message).unwrap();
/// assert_eq!((place.line(), place.column()), (2, 3));
/// assert_eq!(place.to_string(), "  nme\n  ^^^");
/// ```
#[must_use]
pub fn place(statement: &str, message: &str) -> Option<Excerpt> {
    if let Some((line, column)) = told(message) {
        let start = Lines::of(statement).offset(statement, Location { line, column })?;
        let rest = statement.get(start..).unwrap_or_default();
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Some(Excerpt::of(statement.as_bytes(), start, word.max(1)));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, statement).tokenize_with_location().ok()?;
    names(message).into_iter().find_map(|name| {
        let found = tokens.iter().find(|token| match &token.token {
            Token::Word(word) => word.value.eq_ignore_ascii_case(&name),
            Token::SingleQuotedString(text) => *text == name,
            _ => false,
        })?;
        let lines = Lines::of(statement);
        let start = lines.offset(statement, found.span.start)?;
        let end = lines.offset(statement, found.span.end)?;
        Some(Excerpt::of(statement.as_bytes(), start, end.saturating_sub(start)))
    })
}

/// The place in `… at Line: 1, Column: 8`.
fn told(message: &str) -> Option<(u64, u64)> {
    let (_, rest) = message.rsplit_once("Line: ")?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((line.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// The names that a message has in quotes, and that of an unknown function.
fn names(message: &str) -> Vec<String> {
    let message = message.split("; ").next().unwrap_or_default();
    let function = message.split_once("unknown function ").map(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default().to_owned()
    });
    let quoted = message.split('"').skip(1).step_by(2).map(str::to_owned);
    function.into_iter().chain(quoted).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(statement: &str, message: &str) -> Option<String> {
        place(statement, message).map(|excerpt| excerpt.to_string())
    }

    #[test]
    fn places_are_found() {
        let syntax = |text: &str| crate::parse_statement(text).unwrap_err().to_string();
        let text = "SELECT a\nFROM t WHERE )";
        let place = place(text, &syntax(text)).unwrap();
        assert_eq!((place.line(), place.column()), (2, 14));
        assert_eq!(
            shown("SELECT lowr(a)", "unknown function lowr").unwrap(),
            "SELECT lowr(a)\n       ^^^^"
        );
        assert_eq!(
            shown("SELECT 1 FROM \"no such\"", "no table \"no such\"; there are none").unwrap(),
            "SELECT 1 FROM \"no such\"\n              ^^^^^^^^^"
        );
        assert_eq!(
            shown("SELECT é, nme", "unknown field \"nme\"").unwrap(),
            "SELECT é, nme\n          ^^^"
        );
        assert_eq!(shown("SELECT 1", "something else"), None);
        assert!(shown("SELECT 1", "at Line: 9, Column: 9").unwrap().ends_with('^'));
    }
}
