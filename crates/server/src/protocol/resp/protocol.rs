//! Commands as they come: arrays of bulk strings, or words on a line.
//!
//! What has come of a command is looked at once, however many reads its rest takes.

use std::borrow::Cow;
use std::ops::Range;

/// The most arguments of a command.
pub(super) const ARGUMENTS_MAX: usize = 1 << 20;
/// The most bytes of a line.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The arguments of a command, its name first.
pub(super) type Arguments<'i> = Vec<Cow<'i, [u8]>>;

/// How far a command has come.
#[derive(Debug, Default)]
pub(super) struct Parser {
    position: usize,
    missing: usize,
    found: Vec<Range<usize>>,
}

impl Parser {
    /// The bytes of what is known of a command whose rest is missing.
    pub fn held_bytes(&self) -> usize {
        self.found.len() * size_of::<Range<usize>>()
    }

    /// Forgets what has been looked at.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// The command at the start of the input, and how many bytes it has; `None` when its rest is
    /// missing. A command without arguments is none, and has to be passed over.
    ///
    /// # Errors
    /// What is no command, in Redis's words; where the next starts cannot be known.
    pub fn next<'i>(
        &mut self,
        input: &'i [u8],
        bytes_max: usize,
    ) -> Result<Option<(Arguments<'i>, usize)>, &'static str> {
        if self.position == 0 {
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return words(input),
            }
            let invalid = "invalid multibulk length";
            let Some(count) = self.number(input, b'*', "too big mbulk count string", invalid)?
            else {
                return Ok(None);
            };
            self.missing = usize::try_from(count).unwrap_or(0);
            if self.missing > ARGUMENTS_MAX {
                return Err(invalid);
            }
        }
        while self.missing > 0 {
            let start = self.position;
            let invalid = "invalid bulk length";
            let Some(length) = self.number(input, b'$', "too big bulk count string", invalid)?
            else {
                return Ok(None);
            };
            let length = usize::try_from(length).map_err(|_| invalid)?;
            let end = self.position.saturating_add(length);
            if end > bytes_max {
                return Err(invalid);
            }
            if input.len() < end + 2 {
                self.position = start;
                return Ok(None);
            }
            self.found.push(self.position..end);
            self.position = end + 2;
            self.missing -= 1;
        }
        let found = std::mem::take(&mut self.found);
        let argument = |range: Range<usize>| Cow::Borrowed(input.get(range).unwrap_or_default());
        let arguments = found.into_iter().map(argument).collect();
        let length = std::mem::take(&mut self.position);
        Ok(Some((arguments, length)))
    }

    /// The number of a line that begins with a sign.
    fn number(
        &mut self,
        input: &[u8],
        sign: u8,
        too_big: &'static str,
        invalid: &'static str,
    ) -> Result<Option<i64>, &'static str> {
        let rest = input.get(self.position..).unwrap_or_default();
        let Some(first) = rest.first() else { return Ok(None) };
        if *first != sign {
            return Err("expected '$', got something else");
        }
        let Some(end) = rest.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
            return if rest.len() < LINE_BYTES_MAX { Ok(None) } else { Err(too_big) };
        };
        let line = rest.get(1..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.position += end + 1;
        integer(line).map(Some).ok_or(invalid)
    }
}

/// A number as Redis writes it: no sign but `-`, no zeros in front.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [first, ..] => first.is_ascii_digit() && *first != b'0',
        [] => false,
    };
    is_plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

fn words(input: &[u8]) -> Result<Option<(Arguments<'_>, usize)>, &'static str> {
    let Some(end) = input.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        let is_long = input.len() >= LINE_BYTES_MAX;
        return if is_long { Err("too big inline request") } else { Ok(None) };
    };
    let line = input.get(..end).unwrap_or_default();
    let words = split(line).ok_or("unbalanced quotes in request")?;
    Ok(Some((words.into_iter().map(Cow::Owned).collect(), end + 1)))
}

/// The words of a line; a quoted one may have spaces and, between double quotes, escapes.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while let Some(first) = rest.first() {
        let mut word = Vec::new();
        if matches!(first, b'"' | b'\'') {
            rest = quoted(rest.get(1..)?, *first, &mut word)?;
            if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return None;
            }
        } else {
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            word.extend_from_slice(rest.get(..end)?);
            rest = rest.get(end..)?;
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// Takes a word up to its quote; returns what follows.
fn quoted<'r>(mut rest: &'r [u8], quote: u8, word: &mut Vec<u8>) -> Option<&'r [u8]> {
    loop {
        rest = match (rest, quote) {
            ([b'\\', b'x', high, low, rest @ ..], b'"')
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digits = [*high, *low];
                word.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest
            }
            ([b'\\', escaped, rest @ ..], b'"') => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest
            }
            ([b'\\', b'\'', rest @ ..], b'\'') => {
                word.push(b'\'');
                rest
            }
            ([byte, rest @ ..], _) if *byte == quote => return Some(rest),
            ([byte, rest @ ..], _) => {
                word.push(*byte);
                rest
            }
            ([], _) => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &[u8]) -> Result<Option<(Arguments<'_>, usize)>, &'static str> {
        Parser::default().next(input, 1 << 20)
    }

    #[test]
    fn a_command_may_come_byte_by_byte() {
        let input = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nv\n\r\n";
        let mut parser = Parser::default();
        for end in 0..input.len() {
            assert_eq!(parser.next(&input[..end], 100), Ok(None), "{end}");
        }
        let (words, length) = parser.next(input, 100).unwrap().unwrap();
        assert_eq!((words.len(), &*words[2], length), (3, &b"v\n"[..], input.len()));
        assert_eq!(parser.position, 0);
    }

    #[test]
    fn a_line_is_a_command() {
        let (words, length) = parse(b"set 'a b' \"\\x41\\n\"\r\nrest").unwrap().unwrap();
        assert_eq!((&*words[1], &*words[2], length), (&b"a b"[..], &b"A\n"[..], 20));
        assert_eq!(parse(b"get 'a\n"), Err("unbalanced quotes in request"));
        assert_eq!(parse(b"\r\n").unwrap().unwrap(), (vec![], 2));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for input in [&b"*x\r\n"[..], b"*2000000\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$9999999\r\n"] {
            assert!(parse(input).is_err(), "{input:?}");
        }
        assert!(parse(b"*1\r\n:1\r\n").is_err());
        assert!(parse(&vec![b'a'; 70_000]).is_err());
        assert_eq!(parse(b"*0\r\n").unwrap().unwrap().1, 4);
    }

    #[test]
    fn numbers_are_written_in_one_way() {
        for text in ["0", "-1", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(integer(text.as_bytes()), text.parse().ok());
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1.0"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
