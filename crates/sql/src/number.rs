//! Numbers as they are written.
//!
//! The tokenizer takes `1_000` for a number and a name, which is then the name of a column, and
//! `0xFF` for bytes. So numbers are read here, from the text, as PostgreSQL reads them: whole ones
//! of base 10, or of base 16, 8 and 2 behind `0x`, `0o` and `0b`; with a point, an exponent, or
//! both; single underscores between digits. What follows directly is no letter, digit, `_`, `$` or
//! point.

use esker_vfs::sabotage::Bug;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use crate::script::Cursor;
use crate::{Error, Result};

/// What is expected behind a number.
const END: &str = "the end of the number";

/// Reads the numbers among the tokens of a text anew.
///
/// # Errors
/// `InvalidQuery` with the place where a number goes on as none does.
pub(crate) fn read_all(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut cursor = Cursor::new(text);
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut end = Location::empty();
    for token in tokens {
        if token.span.start < end {
            // A part of the number before.
            continue;
        }
        let mut rest = || text.get(cursor.advance_to(token.span.start)..).unwrap_or_default();
        let rest = match &token.token {
            Token::Placeholder(name) if name.starts_with('?') => {
                let rest = rest();
                let goes_on = expect_end(rest, name.len(), "the end of the parameter");
                goes_on.map_err(|e| e.at(token.span.start, rest))?;
                ""
            }
            Token::Number(..) | Token::HexStringLiteral(_) => rest(),
            _ => "",
        };
        let is_planted = match &token.token {
            Token::HexStringLiteral(_) => Bug::HexIsBytes.is_planted(),
            _ => Bug::DigitsEndAtSeparator.is_planted(),
        };
        if is_planted || !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            // Or X'…', which is bytes.
            read.push(token);
            continue;
        }
        let start = token.span.start;
        let (number, length) = scan(rest).map_err(|e| e.at(start, rest))?;
        end = after(start, length);
        let token = Token::Number(number, false);
        read.push(TokenWithSpan { token, span: Span::new(start, end) });
    }
    Ok(read)
}

/// The place so many characters later in a line.
fn after(start: Location, count: usize) -> Location {
    Location { column: start.column.saturating_add(count as u64), ..start }
}

/// What is read of a number.
type Scanned<T> = std::result::Result<T, Fault>;

/// What is wrong with a number, and behind how many of its characters.
struct Fault {
    expected: &'static str,
    length: usize,
}

impl Fault {
    fn at(&self, start: Location, rest: &str) -> Error {
        let Self { expected, length } = self;
        let (number, found) = rest.split_at_checked(*length).unwrap_or((rest, ""));
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let found = found.split(|c| !word(c)).next().unwrap_or_default();
        let found = match found {
            "" => "nothing".to_owned(),
            found => format!("{found:?}"),
        };
        let place = after(start, *length);
        Error::invalid(format!("{number}: expected {expected}, found {found}{place}"))
    }
}

/// The number that a text begins with, of base 10, and how many characters it takes.
fn scan(text: &str) -> Scanned<(String, usize)> {
    let bases = [("0x", 16, "a hexadecimal digit"), ("0o", 8, "an octal digit")];
    let bases = bases.into_iter().chain([("0b", 2, "a binary digit")]);
    for (prefix, base, expected) in bases {
        let Some((start, rest)) = text.split_at_checked(prefix.len()) else { continue };
        if !start.eq_ignore_ascii_case(prefix) {
            continue;
        }
        // One may stand before the first digit, too.
        let rest = rest.strip_prefix('_').unwrap_or(rest);
        let skipped = text.len() - rest.len();
        let (digits, length) = run(rest, base);
        let length = skipped + length;
        if digits.is_empty() {
            return Err(Fault { expected, length: prefix.len() });
        }
        let number = u128::from_str_radix(&digits, base);
        let number =
            number.map_err(|_| Fault { expected: "at most 128 bits", length: prefix.len() })?;
        expect_end(text, length, END)?;
        return Ok((number.to_string(), length));
    }
    let (mut number, mut length) = run(text, 10);
    let behind = |length: usize| text.get(length..).unwrap_or_default();
    if behind(length).starts_with('.') {
        let (fraction, count) = run(behind(length + 1), 10);
        number = format!("{number}.{fraction}");
        length += 1 + count;
    }
    if behind(length).starts_with(['e', 'E']) {
        let sign = behind(length + 1).chars().next().filter(|c| matches!(c, '+' | '-'));
        let start = length + 1 + usize::from(sign.is_some());
        let (exponent, count) = run(behind(start), 10);
        if !exponent.is_empty() {
            number = format!("{number}e{}{exponent}", sign.map_or(String::new(), String::from));
            length = start + count;
        }
    }
    expect_end(text, length, END)?;
    Ok((number, length))
}

/// The digits that a text begins with, without the underscores between them, and the characters
/// they take.
fn run(text: &str, base: u32) -> (String, usize) {
    let (mut digits, mut length) = (String::new(), 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c.is_digit(base) {
            digits.push(c);
        } else if c != '_'
            || digits.is_empty()
            || !rest.as_str().starts_with(|c: char| c.is_digit(base))
        {
            break;
        }
        length += 1;
    }
    (digits, length)
}

fn expect_end(text: &str, length: usize, expected: &'static str) -> Scanned<()> {
    let next = text.get(length..).and_then(|rest| rest.chars().next());
    match next {
        Some(c) if c.is_alphanumeric() || matches!(c, '_' | '$' | '.') => {
            Err(Fault { expected, length })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn numbers_are_read_as_postgresql_reads_them() {
        let pairs = [
            ("1_000_000", "1000000"),
            ("1_000.000_1 ", "1000.0001"),
            ("1.", "1."),
            (".5+", ".5"),
            ("1e5)", "1e5"),
            ("1.5E-1_0", "1.5e-10"),
            ("0xFF", "255"),
            ("0X_ff_ff", "65535"),
            ("0o17", "15"),
            ("0b101", "5"),
            ("00", "00"),
            ("0xffffffffffffffff", "18446744073709551615"),
        ];
        for (text, wanted) in pairs {
            let (number, length) = scan(text).unwrap_or_else(|e| panic!("{text}: {}", e.expected));
            assert_eq!(number, wanted, "{text}");
            assert_eq!(length, text.trim_end_matches([' ', '+', ')']).len(), "{text}");
        }
    }

    #[test]
    fn what_goes_on_behind_a_number_is_told_with_its_place() {
        let faults = [
            ("1abc", 1),
            ("1_", 1),
            ("1__0", 1),
            ("1e", 1),
            ("1e+", 1),
            ("1$", 1),
            ("1.5.5", 3),
            ("1..2", 2),
            ("1._5", 2),
            ("1L", 1),
            ("0x", 2),
            ("0xg", 2),
            ("0x1.5", 3),
            ("0b2", 2),
            ("0b12", 3),
            ("0o8", 2),
            ("1é", 1),
        ];
        for (text, length) in faults {
            let fault = scan(text).err().unwrap_or_else(|| panic!("{text} is a number"));
            assert_eq!(fault.length, length, "{text}");
        }
    }
}
