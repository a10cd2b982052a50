//! `SIMILAR TO`: the standard's patterns, as regular expressions over the whole text.
//!
//! | pattern | regular expression |
//! |---|---|
//! | `%`, `_` | `.*`, `.` |
//! | `\|`, `*`, `+`, `?`, `{m,n}`, `(…)`, `[…]` | the same |
//! | `\c` (or another character of `ESCAPE`) | `c` itself |
//! | anything else | itself |

use std::iter::Peekable;
use std::str::Chars;

use esker_query::model::{Expr, Function};
use sqlparser::ast;

use crate::expression::Names;
use crate::statement::unsupported;
use crate::{Error, Result};

impl Names {
    /// `text SIMILAR TO pattern [ESCAPE character]`.
    pub(crate) fn similar(
        &self,
        text: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let Some(written) = written(pattern) else {
            return match pattern {
                ast::Expr::Value(value) if value.value == ast::Value::Null => {
                    Ok(Expr::Cast(Box::new(self.convert(pattern)?), esker_format::DataType::Bool))
                }
                _ => Err(unsupported("SIMILAR TO a pattern that is not written out", pattern)),
            };
        };
        let escape = match escape {
            None => Some('\\'),
            Some(escape) => escape_character(escape)?,
        };
        let expression = regular(written, escape)
            .map_err(|e| Error::invalid(format!("SIMILAR TO {written:?}: {e}")))?;
        Ok(Expr::call(Function::RegexpLike, [self.convert(text)?, Expr::literal(expression)]))
    }
}

fn written(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        ast::Expr::Nested(inner) => written(inner),
        _ => None,
    }
}

/// The character behind `ESCAPE`; none for an empty text.
fn escape_character(expr: &ast::Expr) -> Result<Option<char>> {
    let Some(text) = written(expr) else { return Err(unsupported("ESCAPE", expr)) };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(Error::invalid(format!("ESCAPE: expected one character or none, found {text:?}"))),
    }
}

/// The regular expression that a whole text has to meet.
fn regular(pattern: &str, escape: Option<char>) -> std::result::Result<String, String> {
    let mut expression = String::from("(?s)^(?:");
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            c if Some(c) == escape => literal(quoted(c, &mut characters)?, &mut expression),
            '[' => class(&mut characters, escape, &mut expression)?,
            '%' => expression.push_str(".*"),
            '_' => expression.push('.'),
            // Not the beginning of flags.
            '(' => expression.push_str("(?:"),
            '|' | '*' | '+' | '?' | ')' | '{' | '}' => expression.push(c),
            c => literal(c, &mut expression),
        }
    }
    expression.push_str(")$");
    Ok(expression)
}

/// The characters of `[…]`, behind the bracket: single ones, ranges, and names such as `[:alpha:]`.
fn class(
    characters: &mut Peekable<Chars<'_>>,
    escape: Option<char>,
    expression: &mut String,
) -> std::result::Result<(), String> {
    expression.push('[');
    if characters.next_if_eq(&'^').is_some() {
        expression.push('^');
    }
    while let Some(c) = characters.next() {
        match c {
            ']' => {
                expression.push(c);
                return Ok(());
            }
            '[' if characters.peek() == Some(&':') => {
                expression.push(c);
                for c in characters.by_ref() {
                    expression.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            c => {
                let c = if Some(c) == escape { quoted(c, characters)? } else { c };
                literal(c, expression);
                let mut ahead = characters.clone();
                if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                    characters.next();
                    expression.push('-');
                    let last = characters.next().unwrap_or(c); // default: it was seen ahead
                    let is_quoted = Some(last) == escape;
                    literal(if is_quoted { quoted(last, characters)? } else { last }, expression);
                }
            }
        }
    }
    Err("expected ] behind [".to_owned())
}

/// The character behind an escape.
fn quoted(escape: char, characters: &mut Peekable<Chars<'_>>) -> std::result::Result<char, String> {
    let end = || format!("expected a character behind the escape {escape:?} at its end");
    characters.next().ok_or_else(end)
}

/// A character that means itself. Others than these mean themselves as they are, and something else
/// behind a backslash.
fn literal(c: char, expression: &mut String) {
    if r"\.+*?()|[]{}^$#&-~".contains(c) {
        expression.push('\\');
    }
    expression.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_regular_expressions() {
        let cases = [
            ("a%_", "(?s)^(?:a.*.)$"),
            ("(a|b){2,3}", "(?s)^(?:(?:a|b){2,3})$"),
            ("a<b>", "(?s)^(?:a<b>)$"),
            ("(?i)a", "(?s)^(?:(?:?i)a)$"),
            ("[+--a-]", r"(?s)^(?:[\+-\-a\-])$"),
            ("a.b$", r"(?s)^(?:a\.b\$)$"),
            (r"50\%", r"(?s)^(?:50%)$"),
            ("[^a-c&[]x", r"(?s)^(?:[^a-c\&\[]x)$"),
            ("[[:alpha:]_]+", r"(?s)^(?:[[:alpha:]_]+)$"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(regular(pattern, Some('\\')).unwrap(), expected);
        }
        assert_eq!(regular("50#%", Some('#')).unwrap(), r"(?s)^(?:50%)$");
        assert!(regular("a[b", None).unwrap_err().contains("expected ]"));
        assert!(regular("a\\", Some('\\')).unwrap_err().contains("at its end"));
    }
}
