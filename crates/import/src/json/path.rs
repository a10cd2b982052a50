//! The rows within a document: the way to them, and where they end.

use std::io::{BufReader, Read};

use esker_format::json::Step;
use esker_format::text::shown;

use super::unescaped;
use crate::source::{Source, read_error};
use crate::{Error, Result};

/// How much is read at once.
const READ_BYTES: usize = 256 << 10;
/// How many names an error lists.
const NAMES_MAX: usize = 20;

/// Leaves of a document only the array or object at a path; how many lines were before it.
///
/// # Errors
/// When there is none, with what is there instead.
pub(crate) fn enter(source: &mut Source, path: &[Step]) -> Result<u64> {
    let mut outcome = Ok(0);
    source.replace(|rest| {
        let mut walk =
            Walk { bytes: BufReader::with_capacity(READ_BYTES, rest), ahead: None, lines: 0 };
        match walk.to(path) {
            Ok(opening) => {
                outcome = Ok(walk.lines);
                let value = Value {
                    bytes: walk.bytes,
                    opening: Some(opening),
                    depth: 0,
                    in_string: false,
                    escaped: false,
                };
                Box::new(value)
            }
            Err(error) => {
                outcome = Err(error);
                Box::new(std::io::empty())
            }
        }
    });
    outcome
}

/// A document, read byte by byte.
struct Walk<R> {
    bytes: BufReader<R>,
    /// A byte that was read and is still to be taken.
    ahead: Option<u8>,
    lines: u64,
}

impl<R: Read> Walk<R> {
    /// Goes to the array or object at a path; its opening bracket, which has been read.
    fn to(&mut self, path: &[Step]) -> Result<u8> {
        let mut way = String::from("$");
        for step in path {
            match step {
                Step::Name(name) | Step::Part(name) => self.find_member(name, &way)?,
                Step::Place(place) => self.find_element(*place, &way)?,
            }
            match step {
                Step::Place(place) => way.push_str(&format!("[{place}]")),
                Step::Name(name) | Step::Part(name) => way.push_str(&format!(".{name}")),
            }
        }
        match self.next_plain()? {
            Some(bracket @ (b'[' | b'{')) => Ok(bracket),
            found => Err(self.unexpected("an array or object of rows", &way, found)),
        }
    }

    fn find_member(&mut self, wanted: &str, way: &str) -> Result<()> {
        self.open(b'{', "an object", way)?;
        let mut names = Vec::new();
        loop {
            match self.next_plain()? {
                Some(b'"') => {}
                Some(b',') if !names.is_empty() => continue,
                _ => {
                    let names: Vec<String> = names.into_iter().take(NAMES_MAX).collect();
                    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    return Err(Error::data(format!(
                        "{way} has no member {wanted:?}; it has {known}"
                    ))
                    .on_line(self.lines + 1));
                }
            }
            let name = self.string()?;
            let colon = self.next_plain()?;
            if colon != Some(b':') {
                return Err(self.unexpected("`:` after a name", way, colon));
            }
            if name == wanted {
                return Ok(());
            }
            names.push(name);
            self.pass_value(way)?;
        }
    }

    fn find_element(&mut self, wanted: i64, way: &str) -> Result<()> {
        self.open(b'[', "an array", way)?;
        let wanted = u64::try_from(wanted).map_err(|_| {
            Error::options(format!("path: places count from the start, from 0; found [{wanted}]"))
        })?;
        for place in 0..wanted {
            self.pass_value(way)?;
            let divider = self.next_plain()?;
            if divider != Some(b',') {
                let count = place + 1;
                return Err(Error::data(format!(
                    "{way} has {count} elements, and none at {wanted}"
                ))
                .on_line(self.lines + 1));
            }
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8, what: &str, way: &str) -> Result<()> {
        match self.next_plain()? {
            Some(found) if found == bracket => Ok(()),
            found => Err(self.unexpected(what, way, found)),
        }
    }

    fn unexpected(&self, what: &str, way: &str, found: Option<u8>) -> Error {
        let found = found.map_or("the end of the file".to_owned(), |b| shown(&[b]));
        Error::data(format!("expected {what} at {way}, found {found}")).on_line(self.lines + 1)
    }

    fn next(&mut self) -> Result<Option<u8>> {
        if let Some(byte) = self.ahead.take() {
            return Ok(Some(byte));
        }
        let mut byte = [0];
        loop {
            match self.bytes.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(read_error(e, "read")),
            }
        }
        let [byte] = byte;
        self.lines += u64::from(byte == b'\n');
        Ok(Some(byte))
    }

    /// The next byte that is no white space.
    fn next_plain(&mut self) -> Result<Option<u8>> {
        loop {
            match self.next()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => {}
                other => return Ok(other),
            }
        }
    }

    /// The rest of a string whose opening quote has been read.
    fn string(&mut self) -> Result<String> {
        let mut inner = Vec::new();
        loop {
            match self.next()? {
                Some(b'"') => break,
                Some(b'\\') => {
                    inner.push(b'\\');
                    inner.extend(self.next()?);
                }
                Some(byte) => inner.push(byte),
                None => return Err(self.unexpected("the closing quote of a string", "$", None)),
            }
        }
        // default: what is no text is no name that anyone looks for.
        Ok(String::from_utf8_lossy(&unescaped(&inner).unwrap_or_default()).into_owned())
    }

    fn pass_value(&mut self, way: &str) -> Result<()> {
        let mut depth = 0u64;
        loop {
            match self.next_plain()? {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') if depth > 0 => depth -= 1,
                Some(b',' | b':') if depth > 0 => continue,
                Some(b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => self.pass_word()?,
                found => return Err(self.unexpected("a value", way, found)),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The rest of a number, or of true, false or null.
    fn pass_word(&mut self) -> Result<()> {
        loop {
            match self.next()? {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'+' | b'-') => {}
                other => {
                    self.ahead = other;
                    return Ok(());
                }
            }
        }
    }
}

/// One array or object of a document, to its closing bracket.
struct Value<R> {
    bytes: BufReader<R>,
    opening: Option<u8>,
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl<R: Read> Read for Value<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let (Some(opening), Some(first)) = (self.opening, buffer.first_mut()) {
            *first = opening;
            self.opening = None;
            self.depth = 1;
            return Ok(1);
        }
        if self.depth == 0 {
            return Ok(0);
        }
        let count = self.bytes.read(buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default(); // default: never beyond.
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(at + 1);
                    }
                }
                _ => {}
            }
        }
        Ok(count)
    }
}
