//! Rows in MessagePack, written as lines of JSON for the one reader of rows.
//!
//! A body is maps, one behind the other, or arrays of them. Each becomes a line, so that the number
//! of a line is that of its row. What JSON has no form for is written as text: bytes in hexadecimal
//! digits, times as RFC 3339 has them, and the extensions of the wire protocol as its types are.
#![allow(clippy::big_endian_bytes, reason = "MessagePack's numbers are")]

use std::io::{Error, ErrorKind, Read, Result};

use esker_format::{ValueRef, json};

use crate::export::{json_text, json_value};
use crate::source::unpacked_stream;

/// The longest row.
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// How deep a value may be.
const DEPTH_MAX: usize = 64;

/// The lines of a body in MessagePack, plain or compressed.
///
/// ```
/// use std::io::Read;
///
/// let mut lines = String::new();
/// let body: &[u8] = &[0x81, 0xa1, b'n', 0x07, 0x91, 0x81, 0xa1, b'n', 0xc0];
/// esker_import::packed_lines(body)?.read_to_string(&mut lines)?;
/// assert_eq!(lines, "{\"n\":7}\n{\"n\":null}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What reading the first bytes meets.
pub fn packed_lines(body: impl Read + Send + 'static) -> crate::Result<impl Read + Send> {
    let bytes = unpacked_stream(Box::new(body))?;
    let (buffer, lines) = (Vec::new(), Vec::new());
    Ok(Lines { bytes, buffer, start: 0, lines, given: 0, left: 0, is_at_end: false })
}

/// Appends the value that some MessagePack begins with as JSON; how many bytes it has.
///
/// ```
/// let mut text = Vec::new();
/// let bytes = [0x81, 0xa1, b'n', 0x92, 0x07, 0xc0, 0x01];
/// assert_eq!(esker_import::packed_json(&bytes, &mut text)?, 6);
/// assert_eq!(text, b"{\"n\":[7,null]}");
/// # Ok::<(), esker_import::Error>(())
/// ```
///
/// # Errors
/// What is no value, or not there as a whole.
pub fn packed_json(bytes: &[u8], out: &mut Vec<u8>) -> crate::Result<usize> {
    let mut input = Input { bytes, at: 0 };
    let read = input.value(out, 0).map_err(|stop| match stop {
        Stop::Short => "MessagePack: a value ends too early".to_owned(),
        Stop::Wrong(message) => message,
    });
    read.map(|()| input.at).map_err(crate::Error::data)
}

struct Lines<R> {
    bytes: R,
    /// What was read, and from where on it was not written yet.
    buffer: Vec<u8>,
    start: usize,
    /// What was written, and how much of it was given.
    lines: Vec<u8>,
    given: usize,
    /// Rows of an array that are still to come.
    left: u64,
    is_at_end: bool,
}

/// Why a value was not written.
#[derive(Debug)]
enum Stop {
    /// Its end is not there yet.
    Short,
    Wrong(String),
}

fn wrong<T>(message: impl Into<String>) -> std::result::Result<T, Stop> {
    Err(Stop::Wrong(message.into()))
}

impl<R: Read> Lines<R> {
    /// Writes the rows that are there whole, some of them at least.
    fn fill(&mut self) -> Result<()> {
        self.lines.clear();
        self.given = 0;
        while self.lines.len() < READ_BYTES {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if rest.is_empty() && self.is_at_end {
                return match self.left {
                    0 => Ok(()),
                    left => Err(short(&format!("{left} rows of an array are missing"))),
                };
            }
            let mut input = Input { bytes: rest, at: 0 };
            let before = self.lines.len();
            let read = match self.left {
                0 => input.array().and_then(|rows| match rows {
                    Some(rows) => {
                        self.left = rows;
                        Ok(())
                    }
                    None => input.value(&mut self.lines, 0).map(|()| self.lines.push(b'\n')),
                }),
                _ => input.value(&mut self.lines, 0).map(|()| {
                    self.lines.push(b'\n');
                    self.left -= 1;
                }),
            };
            match read {
                Ok(()) => self.start += input.at,
                Err(Stop::Wrong(message)) => {
                    return Err(Error::new(ErrorKind::InvalidData, message));
                }
                Err(Stop::Short) => {
                    self.lines.truncate(before);
                    if before > 0 {
                        return Ok(());
                    }
                    self.read_more()?;
                }
            }
        }
        Ok(())
    }

    fn read_more(&mut self) -> Result<()> {
        if self.is_at_end {
            return Err(short("the body ends within a row"));
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let before = self.buffer.len();
        if before > ROW_BYTES_MAX {
            let message = format!("a row of more than {ROW_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        // Twice as much each time, as a row is looked at from its start again.
        let most = before.max(READ_BYTES) as u64;
        let count = self.bytes.by_ref().take(most).read_to_end(&mut self.buffer)?;
        self.is_at_end = (count as u64) < most;
        Ok(())
    }
}

fn short(message: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("MessagePack: {message}"))
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.given == self.lines.len() {
            self.fill()?;
        }
        let left = self.lines.get(self.given..).unwrap_or_default();
        let count = left.len().min(out.len());
        for (to, from) in out.iter_mut().zip(left) {
            *to = *from;
        }
        self.given += count;
        Ok(count)
    }
}

struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Input<'b> {
    fn take(&mut self, count: usize) -> std::result::Result<&'b [u8], Stop> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end).ok_or(Stop::Short)?;
        self.at = end;
        Ok(taken)
    }

    /// A number of so many bytes.
    fn number(&mut self, bytes: usize) -> std::result::Result<u64, Stop> {
        Ok(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn length(&mut self, bytes: usize) -> std::result::Result<usize, Stop> {
        let length = self.number(bytes)?;
        usize::try_from(length).map_err(|_| Stop::Wrong(format!("{length} bytes")))
    }

    /// How many values an array has, where one begins here.
    fn array(&mut self) -> std::result::Result<Option<u64>, Stop> {
        let start = self.at;
        let count = match self.number(1)? {
            tag @ 0x90..=0x9f => tag & 15,
            0xdc => self.number(2)?,
            0xdd => self.number(4)?,
            _ => {
                self.at = start;
                return Ok(None);
            }
        };
        Ok(Some(count))
    }

    /// Writes a value as JSON.
    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> std::result::Result<(), Stop> {
        if depth > DEPTH_MAX {
            return wrong(format!("MessagePack: values of more than {DEPTH_MAX} levels"));
        }
        if let Some(count) = self.array()? {
            return self.list(out, (count, depth));
        }
        let tag = self.number(1)?;
        let small = usize::try_from(tag & 31).unwrap_or(0);
        match tag {
            0..=0x7f => json_value(out, ValueRef::Uint(tag)),
            0x80..=0x8f => return self.map(out, (tag & 15, depth)),
            0xde => return self.number(2).and_then(|count| self.map(out, (count, depth))),
            0xdf => return self.number(4).and_then(|count| self.map(out, (count, depth))),
            0xa0..=0xbf => self.text(out, small)?,
            0xc0 => json_value(out, ValueRef::Null),
            0xc2 | 0xc3 => json_value(out, ValueRef::Bool(tag == 0xc3)),
            0xc4..=0xc6 => {
                let length = self.length(1 << (tag - 0xc4))?;
                json_value(out, ValueRef::Bytes(self.take(length)?));
            }
            0xc7..=0xc9 => {
                let length = self.length(1 << (tag - 0xc7))?;
                self.extension(out, length)?;
            }
            0xca => {
                let bits = u32::try_from(self.number(4)?).unwrap_or(0);
                json_value(out, ValueRef::Float32(f32::from_bits(bits)));
            }
            0xcb => json_value(out, ValueRef::Float(f64::from_bits(self.number(8)?))),
            0xcc..=0xcf => json_value(out, ValueRef::Uint(self.number(1 << (tag - 0xcc))?)),
            0xd0..=0xd3 => {
                let bytes = 1usize << (tag - 0xd0);
                let unused = 64 - 8 * bytes;
                let n = self.number(bytes)? << unused;
                json_value(out, ValueRef::Int(n.cast_signed() >> unused));
            }
            0xd4..=0xd8 => self.extension(out, 1 << (tag - 0xd4))?,
            0xd9..=0xdb => {
                let length = self.length(1 << (tag - 0xd9))?;
                self.text(out, length)?;
            }
            0xe0..=0xff => json_value(out, ValueRef::Int(tag.cast_signed() - 256)),
            _ => return wrong(format!("MessagePack: no value begins with {tag:#04x}")),
        }
        Ok(())
    }

    fn list(
        &mut self,
        out: &mut Vec<u8>,
        (count, depth): (u64, usize),
    ) -> std::result::Result<(), Stop> {
        out.push(b'[');
        for at in 0..count {
            if at > 0 {
                out.push(b',');
            }
            self.value(out, depth + 1)?;
        }
        out.push(b']');
        Ok(())
    }

    fn map(
        &mut self,
        out: &mut Vec<u8>,
        (count, depth): (u64, usize),
    ) -> std::result::Result<(), Stop> {
        out.push(b'{');
        for at in 0..count {
            if at > 0 {
                out.push(b',');
            }
            let start = out.len();
            self.value(out, depth + 1)?;
            if out.get(start) != Some(&b'"') {
                return wrong("MessagePack: the name of a member is no text");
            }
            out.push(b':');
            self.value(out, depth + 1)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn text(&mut self, out: &mut Vec<u8>, length: usize) -> std::result::Result<(), Stop> {
        json_text(out, self.take(length)?);
        Ok(())
    }

    fn extension(&mut self, out: &mut Vec<u8>, length: usize) -> std::result::Result<(), Stop> {
        let code = self.number(1)?;
        let bytes = self.take(length)?;
        let number = bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)).cast_signed();
        let short = u32::try_from(number).map_or(0, u32::cast_signed);
        let text = || std::str::from_utf8(bytes).map_err(|_| Stop::Wrong("no UTF-8".to_owned()));
        match (code, length) {
            (0xff, 4 | 8 | 12) => json_value(out, ValueRef::Timestamp(time_of(bytes))),
            (1, 4) => json_value(out, ValueRef::Date(short)),
            (2, 8) => json_value(out, ValueRef::Timestamp(number)),
            (3, 8) => json_value(out, ValueRef::Time(number)),
            (4, 16) | (6, 16) => {
                let bytes = bytes.try_into().map_err(|_| Stop::Short)?;
                json_value(
                    out,
                    if code == 4 { ValueRef::Uuid(bytes) } else { ValueRef::Ipv6(bytes) },
                );
            }
            (5, 4) => json_value(out, ValueRef::Ipv4(short.cast_unsigned())),
            (7, _) if bytes.iter().all(|b| b.is_ascii_digit() || b"+-.".contains(b)) => {
                json_text(out, bytes);
            }
            (8, _) => {
                let document = json::parse(text()?);
                let document = document.map_err(|e| Stop::Wrong(e.to_string()))?;
                json_value(out, ValueRef::Json(&document));
            }
            (9, _) => json_text(out, text()?.as_bytes()),
            _ => return wrong(format!("MessagePack: an extension {code} of {length} bytes")),
        }
        Ok(())
    }
}

/// The microseconds since 1970 of a timestamp of MessagePack.
fn time_of(bytes: &[u8]) -> i64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let (seconds, nanoseconds) = match bytes {
        [a, b, c, d] => (number(&[*a, *b, *c, *d]).cast_signed(), 0),
        [a, b, c, d, seconds @ ..] if seconds.len() == 8 => {
            (number(seconds).cast_signed(), number(&[*a, *b, *c, *d]))
        }
        both => ((number(both) & ((1 << 34) - 1)).cast_signed(), number(both) >> 34),
    };
    let microseconds = i64::try_from(nanoseconds / 1_000).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> std::result::Result<String, String> {
        // Pieces of any size come to the same.
        let mut seen = Vec::new();
        for size in [1, 3, 1 << 20] {
            let pieces = Pieces(bytes.to_vec(), 0, size);
            let mut text = String::new();
            let read = packed_lines(pieces).map_err(|e| e.to_string());
            let read = read
                .and_then(|mut lines| lines.read_to_string(&mut text).map_err(|e| e.to_string()));
            seen.push(read.map(|_| text));
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        seen.remove(0)
    }

    struct Pieces(Vec<u8>, usize, usize);

    impl Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            let end = self.0.len().min(self.1 + self.2.min(out.len()));
            let count = end - self.1;
            out[..count].copy_from_slice(&self.0[self.1..end]);
            self.1 = end;
            Ok(count)
        }
    }

    #[test]
    fn rows_become_lines() {
        let row: &[u8] = &[
            0x89, 0xa1, b'a', 0xd1, 0xff, 0xfe, 0xa1, b'b', 0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0,
            0xa1, b'c', 0x92, 0xc3, 0xc0, 0xa1, b'd', 0x81, 0xa1, b'"', 0xa1, b'\n', 0xa1, b'e',
            0xc4, 2, 0xab, 0x01, 0xa1, b'f', 0xd6, 0xff, 0, 0, 0, 1, 0xa1, b'g', 0xcf, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xa1, b'h', 0xff, 0xa1, b'i', 0xd6, 1, 0, 0, 0, 1,
        ];
        let line = concat!(
            r#"{"a":-2,"b":1.5,"c":[true,null],"d":{"\"":"\n"},"e":"ab01","#,
            r#""f":"1970-01-01T00:00:01","g":18446744073709551615,"h":-1,"i":"1970-01-02"}"#,
        );
        let text = lines(row).unwrap().replace("1970-01-01 ", "1970-01-01T");
        assert_eq!(text.trim_end(), line);
        let twice = [&[0x92][..], row, row, &[0x07], &[0x90]].concat();
        assert_eq!(lines(&twice).unwrap().lines().count(), 3);
        assert_eq!(lines(&[]).unwrap(), "");
    }

    #[test]
    fn what_is_no_row_ends_the_lines() {
        let refused: [(&[u8], &str); 5] = [
            (&[0x81, 0xa1], "ends within a row"),
            (&[0x92, 0x80], "1 rows of an array are missing"),
            (&[0xc1], "no value begins with 0xc1"),
            (&[0x81, 0x07, 0x07], "no text"),
            (&[0x81, 0xa1, b'a', 0xd4, 0x63, 0], "an extension 99 of 1 bytes"),
        ];
        for (bytes, words) in refused {
            let e = lines(bytes).unwrap_err();
            assert!(e.contains(words), "{e}");
        }
        let deep = [vec![0x81, 0xa1, b'a'], vec![0x91; 100], vec![0xc0]].concat();
        assert!(lines(&deep).unwrap_err().contains("more than 64 levels"));
        // A length that is a lie takes no memory.
        assert!(lines(&[0xdb, 0xff, 0xff, 0xff, 0xff, b'x']).is_err());
    }
}
