//! Where strings, numbers and members end.
//!
//! Strings are searched eight bytes at a time for what ends or interrupts them. Numbers keep to the
//! grammar; values within values are only matched bracket by bracket, since the reader that takes
//! them reads them again.
#![allow(clippy::indexing_slicing, reason = "hot; positions come from scanning the same bytes")]

use memchr::memchr2;

use crate::tokenizer::{Fault, FaultKind, Span, last_word, matches, repeat};

/// How deep values may lie within one another.
const DEPTH_MAX: usize = 128;

type Result<T> = std::result::Result<T, Fault>;

fn expected(position: usize, what: &'static str) -> Fault {
    Fault { position, kind: FaultKind::Expected(what) }
}

/// The position of the first byte from `at` on that is no white space.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The position after the string whose opening quote is at `start`.
#[inline]
fn string_end(bytes: &[u8], start: usize) -> Result<usize> {
    let mut at = start + 1;
    loop {
        let word = match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => u64::from_le_bytes(*word),
            // What it is filled up with ends the string as a control character would.
            None => last_word(bytes.get(at..).unwrap_or_default()),
        };
        let controls = word.wrapping_sub(repeat(0x20)) & !word & repeat(0x80);
        // A borrow may mark bytes behind a control character; only the first mark is used.
        let hits = matches(word, repeat(b'"')) | matches(word, repeat(b'\\')) | controls;
        if hits == 0 {
            at += 8;
            continue;
        }
        at += (hits.trailing_zeros() / 8) as usize;
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(bytes, at)?,
            None => return Err(expected(at, "the closing quote of a string")),
            Some(_) => return Err(expected(at, "a character of a string, escaped like \\n")),
        }
    }
}

/// The position after the escape sequence at `at`.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = bytes.get(at + 2..at + 6);
            let fits = digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit));
            if fits { Ok(at + 6) } else { Err(expected(at, "an escape like \\u00e9")) }
        }
        _ => Err(expected(at, "an escape like \\n or \\u00e9")),
    }
}

fn digits_end(bytes: &[u8], at: usize) -> Result<usize> {
    let mut end = at;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    if end == at { Err(expected(at, "a digit")) } else { Ok(end) }
}

/// The position after the number at `start`.
fn number_end(bytes: &[u8], start: usize) -> Result<usize> {
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits_end(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits_end(bytes, at + 1 + usize::from(sign))?;
    }
    Ok(at)
}

/// The position after the array or object at `start`.
fn nested_end(bytes: &[u8], start: usize) -> Result<usize> {
    let mut closers = Vec::new();
    let mut at = start;
    loop {
        let Some(byte) = bytes.get(at) else {
            return Err(expected(at, "the closing bracket of an array or object"));
        };
        match byte {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' => closers.push(b'}'),
            b'[' => closers.push(b']'),
            b'}' | b']' if closers.pop() != Some(*byte) => {
                return Err(expected(at, "the bracket that closes the last one opened"));
            }
            _ => {}
        }
        at += 1;
        if closers.is_empty() {
            return Ok(at);
        }
        if closers.len() > DEPTH_MAX {
            return Err(expected(at - 1, "at most 128 values within one another"));
        }
    }
}

/// The position after the value at `start`.
#[inline]
pub(super) fn value_end(bytes: &[u8], start: usize) -> Result<usize> {
    match bytes.get(start) {
        Some(b'"') => string_end(bytes, start),
        Some(b'-' | b'0'..=b'9') => number_end(bytes, start),
        Some(b'{' | b'[') => nested_end(bytes, start),
        _ => {
            let rest = bytes.get(start..).unwrap_or_default();
            let words: [&[u8]; 3] = [b"null", b"true", b"false"];
            let word = words.into_iter().find(|word| rest.starts_with(word));
            word.map(|word| start + word.len()).ok_or_else(|| expected(start, "a value"))
        }
    }
}

/// What a member that is called after the field of the rest adds to it: the members of an object,
/// so that a row that was exported comes back as it was; nothing where it is NULL; else itself.
pub(crate) fn own_members(bytes: &[u8], name: Span, value: Span) -> Option<Span> {
    let text = value.of(bytes);
    if text == b"null" {
        return None;
    }
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    match inner {
        Some(inner) if inner.iter().all(u8::is_ascii_whitespace) => None,
        Some(_) => Some(Span::new(value.start() + 1, value.end() - 1)),
        None => Some(Span::new(name.start(), value.end())),
    }
}

/// An object, member by member.
pub(crate) struct Object<'a> {
    bytes: &'a [u8],
    at: usize,
    is_first: bool,
}

impl<'a> Object<'a> {
    /// The object that starts at `start`.
    pub(crate) fn new(bytes: &'a [u8], start: usize) -> Result<Self> {
        if bytes.get(start) != Some(&b'{') {
            return Err(expected(start, "a row, an object like {\"name\": value}"));
        }
        Ok(Self { bytes, at: skip_space(bytes, start + 1), is_first: true })
    }

    /// The next name, in quotes, and its value; `None` at the end.
    #[inline]
    pub(crate) fn next_member(&mut self) -> Result<Option<(Span, Span)>> {
        let bytes = self.bytes;
        match bytes.get(self.at) {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !self.is_first => self.at = skip_space(bytes, self.at + 1),
            _ if !self.is_first => return Err(expected(self.at, "`,` or `}`")),
            _ => {}
        }
        self.is_first = false;
        let (name, value) = member(bytes, self.at)?;
        self.at = skip_space(bytes, value.end());
        Ok(Some((name, value)))
    }

    /// The position after what has been read.
    pub(crate) fn end(&self) -> usize {
        self.at
    }
}

/// The name at `start`, in quotes, and where its value starts.
pub(super) fn name(bytes: &[u8], start: usize) -> Result<(Span, usize)> {
    if bytes.get(start) != Some(&b'"') {
        return Err(expected(start, "a name in quotes"));
    }
    let end = string_end(bytes, start)?;
    let colon = skip_space(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return Err(expected(colon, "`:` after a name"));
    }
    Ok((Span::new(start, end), skip_space(bytes, colon + 1)))
}

#[inline]
fn member(bytes: &[u8], start: usize) -> Result<(Span, Span)> {
    let (name, value) = name(bytes, start)?;
    Ok((name, Span::new(value, value_end(bytes, value)?)))
}

/// The position after the last comma between two rows, in an array or object of rows whose opening
/// bracket is not in `bytes`.
pub(crate) fn last_element_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut end, mut at) = (1usize, None, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => loop {
                let found = at + memchr2(b'"', b'\\', bytes.get(at..)?).unwrap_or(usize::MAX / 2);
                at = found + 1;
                match bytes.get(found) {
                    Some(b'"') => break,
                    Some(_) => at += 1,
                    None => return end,
                }
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return end;
                }
            }
            b',' if depth == 1 => end = Some(at),
            _ => {}
        }
    }
    end
}
