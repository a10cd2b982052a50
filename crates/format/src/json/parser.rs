//! JSON text, as RFC 8259 has it, to the binary form.

use super::{
    ARRAY, DEPTH_MAX, EXPONENT_MAX, FALSE, NULL, NUMBER, OBJECT, STRING, Steps, TRUE, document_of,
    width_of,
};
use crate::text::shown;
use crate::{Error, Result};

/// Reads a JSON text as a document in its stored form.
///
/// ```
/// use esker_format::json::{Json, parse};
///
/// let document = parse(r#"{"b": [1, 2.50], "a": null}"#)?;
/// let json = Json::document(&document);
/// assert_eq!(json.to_string(), r#"{"a":null,"b":[1,2.50]}"#);
/// assert_eq!(json.get("b").and_then(|b| b.index(-1)).unwrap().to_string(), "2.50");
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` with the place of what is not JSON, a name that an object has twice, more than
/// 128 levels, or a number with an exponent beyond a million.
pub fn parse(text: &str) -> Result<Vec<u8>> {
    parse_nested(text, DEPTH_MAX)
}

/// The same with another limit of levels, for what is read and not stored.
///
/// # Errors
/// As [`parse`].
pub fn parse_nested(text: &str, depth_max: usize) -> Result<Vec<u8>> {
    parse_by(text, depth_max, &mut |_| Ok(()))
}

/// The same for a text of any length: see [`Steps`].
///
/// # Errors
/// As [`parse`], and what `steps` fails with.
pub fn parse_in_steps(text: &str, steps: Steps<'_>) -> Result<Vec<u8>> {
    parse_by(text, DEPTH_MAX, steps)
}

fn parse_by(text: &str, depth_max: usize, steps: Steps<'_>) -> Result<Vec<u8>> {
    let mut parser = Parser { text, at: 0, depth_max, steps };
    parser.space();
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error("the end"));
    }
    document_of(value)
}

/// True for a number as JSON writes it, its exponent within bounds.
pub(super) fn is_number(text: &[u8]) -> bool {
    number_len(text) == Some(text.len())
}

/// The length of the number at the start of a text.
fn number_len(text: &[u8]) -> Option<usize> {
    let digits = |at: usize| text.iter().skip(at).take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && text.get(at) == Some(&b'0') {
        return None;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let start = at + 1;
        let sign = usize::from(matches!(text.get(start), Some(b'+' | b'-')));
        let end = start + sign + digits(start + sign);
        let exponent: i32 = std::str::from_utf8(text.get(start..end)?).ok()?.parse().ok()?;
        if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
            return None;
        }
        at = end;
    }
    Some(at)
}

struct Parser<'a, 's> {
    text: &'a str,
    at: usize,
    depth_max: usize,
    steps: Steps<'s>,
}

impl<'a> Parser<'a, '_> {
    fn rest(&self) -> &'a [u8] {
        debug_assert!(self.at <= self.text.len(), "at {} of {}", self.at, self.text.len());
        // default: the parser never goes past the end, behind which there is nothing.
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        let white = |b: &&u8| matches!(**b, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(white).count();
    }

    fn error(&self, expected: &str) -> Error {
        self.error_at(self.at, expected)
    }

    fn error_at(&self, at: usize, expected: &str) -> Error {
        let (before, rest) = self.text.split_at(self.text.floor_char_boundary(at));
        let line = before.matches('\n').count() + 1;
        let character = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let found = if rest.is_empty() {
            "the end".to_owned()
        } else {
            shown(rest.chars().take(20).collect::<String>().as_bytes())
        };
        Error::invalid(format!(
            "expected json: line {line}, character {character}: expected {expected}, found {found}"
        ))
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest().first() == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// A value in its form within a document.
    fn value(&mut self, depth: usize) -> Result<Vec<u8>> {
        if depth > self.depth_max {
            return Err(self.error(&format!("at most {} levels", self.depth_max)));
        }
        let start = self.at;
        let value = self.value_here(depth)?;
        // What holds it copies it.
        (self.steps)(self.at - start)?;
        Ok(value)
    }

    fn value_here(&mut self, depth: usize) -> Result<Vec<u8>> {
        for (word, tag) in [("null", NULL), ("false", FALSE), ("true", TRUE)] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(vec![tag]);
            }
        }
        match self.rest().first() {
            Some(b'"') => {
                let mut value = vec![STRING];
                self.string(&mut value)?;
                Ok(value)
            }
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            Some(b'-' | b'0'..=b'9') => {
                let rest = self.rest();
                let number = number_len(rest).and_then(|len| rest.get(..len)).ok_or_else(|| {
                    self.error(&format!("a number with an exponent of at most {EXPONENT_MAX}"))
                })?;
                self.at += number.len();
                Ok([&[NUMBER], number].concat())
            }
            _ => Err(self.error("a value")),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<u8>> {
        self.at += 1;
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        self.space();
        if self.take(b']') {
            return Ok(container(ARRAY, 0, &[], &[]));
        }
        loop {
            self.space();
            values.extend(self.value(depth + 1)?);
            ends.push(values.len());
            self.space();
            if self.take(b']') {
                return Ok(container(ARRAY, ends.len(), &[&ends], &[&values]));
            }
            if !self.take(b',') {
                return Err(self.error("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Vec<u8>> {
        self.at += 1;
        // Name, value, and where the name stands.
        let mut members: Vec<(Vec<u8>, Vec<u8>, usize)> = Vec::new();
        self.space();
        if !self.take(b'}') {
            loop {
                self.space();
                let place = self.at;
                let mut name = Vec::new();
                if self.rest().first() != Some(&b'"') {
                    return Err(self.error("a name in quotes"));
                }
                self.string(&mut name)?;
                self.space();
                if !self.take(b':') {
                    return Err(self.error("`:`"));
                }
                self.space();
                members.push((name, self.value(depth + 1)?, place));
                self.space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.error("`,` or `}`"));
                }
            }
        }
        members.sort();
        let (mut name_ends, mut ends, mut names, mut values) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut before: Option<&[u8]> = None;
        for (name, value, place) in &members {
            if before == Some(name) {
                return Err(self.error_at(*place, "a name that the object does not have yet"));
            }
            before = Some(name);
            names.extend_from_slice(name);
            name_ends.push(names.len());
            values.extend_from_slice(value);
            ends.push(values.len());
        }
        Ok(container(OBJECT, ends.len(), &[&name_ends, &ends], &[&names, &values]))
    }

    /// Appends the text of a string, which starts here.
    fn string(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        loop {
            let plain = |b: &&u8| !matches!(**b, b'"' | b'\\' | 0..0x20);
            let rest = self.rest();
            let (text, rest) = rest.split_at(rest.iter().take_while(plain).count());
            out.extend_from_slice(text);
            self.at += text.len();
            match rest {
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(());
                }
                [b'\\', escape, ..] => {
                    let place = self.at;
                    self.at += 2;
                    let c = match escape {
                        b'"' | b'\\' | b'/' => char::from(*escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode(place)?,
                        _ => return Err(self.error_at(place, "an escape of JSON")),
                    };
                    let mut buffer = [0; 4];
                    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                }
                _ => return Err(self.error("the rest of the string, control characters escaped")),
            }
        }
    }

    /// The character of `\u` and four digits, or of two of them that make a surrogate pair.
    fn unicode(&mut self, place: usize) -> Result<char> {
        let first = self.four_digits();
        let code = match first {
            Some(high @ 0xd800..=0xdbff) if self.rest().starts_with(b"\\u") => {
                self.at += 2;
                match self.four_digits() {
                    Some(low @ 0xdc00..=0xdfff) => {
                        Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                    }
                    _ => None,
                }
            }
            other => other,
        };
        let expected = "`\\u` and the four digits of a character, or of a pair of surrogates";
        code.and_then(char::from_u32).ok_or_else(|| self.error_at(place, expected))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().first_chunk::<4>()?;
        let mut code = 0;
        for digit in digits {
            code = code << 4 | char::from(*digit).to_digit(16)?;
        }
        self.at += 4;
        Some(code)
    }
}

/// The beginning of an array or object of so many values, with space for its tables of ends and
/// what they bound.
pub(super) fn header(
    tag: u8,
    width: usize,
    count: usize,
    (tables, content_len): (usize, usize),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + width * (1 + tables * count) + content_len);
    out.push(tag);
    push_number(&mut out, width, 1);
    push_number(&mut out, count, width);
    out
}

/// Appends a count or an end, of 1, 2 or 4 bytes.
#[inline]
pub(super) fn push_number(out: &mut Vec<u8>, n: usize, width: usize) {
    let [a, b, c, d, ..] = n.to_le_bytes();
    match width {
        1 => out.push(a),
        2 => out.extend_from_slice(&[a, b]),
        _ => out.extend_from_slice(&[a, b, c, d]),
    }
}

/// An array or object of so many values, from its tables of ends and what they bound.
pub(super) fn container(tag: u8, count: usize, tables: &[&[usize]], contents: &[&[u8]]) -> Vec<u8> {
    let longest = contents.iter().map(|content| content.len()).fold(0, usize::max);
    let width = width_of(longest.max(count));
    let content_len: usize = contents.iter().map(|content| content.len()).sum();
    let mut out = header(tag, width, count, (tables.len(), content_len));
    let ends = tables.iter().flat_map(|table| table.iter());
    ends.for_each(|end| push_number(&mut out, *end, width));
    contents.iter().for_each(|content| out.extend_from_slice(content));
    out
}
