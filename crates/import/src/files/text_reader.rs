//! The text format of PostgreSQL's `COPY`, as CSV that the reader of files knows.
//!
//! ```text
//! a\tb<tab>\N<tab>x          "a<tab>b",,"x"
//! ```
//!
//! A field is between tabs, or other delimiters; a backslash stands before what is special, and
//! `\N` is NULL. `\.` alone on a line ends the rows. Here each field that is not NULL gets quotes,
//! so that CSV with an empty field for NULL says the same.

use std::io::Read;

use crate::source::Source;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// How the text format is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextForm {
    pub delimiter: u8,
    /// What stands for NULL, before backslashes are undone.
    pub null: String,
    pub header: bool,
}

/// Reads the text format as CSV.
pub(super) struct TextReader {
    source: Source,
    form: TextForm,
    /// The most bytes of a field.
    most: usize,
    input: Vec<u8>,
    /// The field under way, as it is written.
    raw: Vec<u8>,
    is_escaped: bool,
    /// How many fields of the line have ended.
    fields: usize,
    out: Vec<u8>,
    taken: usize,
    at_end: bool,
}

impl TextReader {
    pub fn new(source: Source, form: TextForm, memory_bytes: u64) -> Self {
        // default: beyond the addresses of 32 bits
        let most = usize::try_from(memory_bytes / 4).unwrap_or(usize::MAX);
        Self {
            source,
            form,
            most,
            input: vec![0; READ_BYTES],
            raw: Vec::new(),
            is_escaped: false,
            fields: 0,
            out: Vec::new(),
            taken: 0,
            at_end: false,
        }
    }

    /// Reads some more of the file.
    fn fill(&mut self) -> std::io::Result<()> {
        let mut input = std::mem::take(&mut self.input);
        let count = self.source.fill(&mut input).map_err(std::io::Error::other)?;
        for byte in input.iter().take(count) {
            if self.at_end {
                break;
            }
            self.take(*byte)?;
        }
        if count < input.len() && !self.at_end {
            if !self.raw.is_empty() || self.fields > 0 {
                self.end_line();
            }
            self.at_end = true;
        }
        self.input = input;
        Ok(())
    }

    fn take(&mut self, byte: u8) -> std::io::Result<()> {
        if self.is_escaped {
            self.is_escaped = false;
            self.raw.push(byte);
        } else if byte == self.form.delimiter {
            self.end_field();
            self.out.push(b',');
        } else if byte == b'\n' {
            self.end_line();
        } else {
            self.is_escaped = byte == b'\\';
            self.raw.push(byte);
        }
        if self.raw.len() > self.most {
            let message = format!("a field has more than {} bytes", self.most);
            return Err(std::io::Error::other(message));
        }
        Ok(())
    }

    fn end_line(&mut self) {
        if self.raw.last() == Some(&b'\r') && !self.raw.ends_with(b"\\\r") {
            self.raw.pop();
        }
        if self.fields == 0 && self.raw == b"\\." {
            self.at_end = true;
            return;
        }
        self.end_field();
        self.out.push(b'\n');
        self.fields = 0;
    }

    fn end_field(&mut self) {
        self.fields += 1;
        let raw = std::mem::take(&mut self.raw);
        if raw != self.form.null.as_bytes() {
            self.out.push(b'"');
            unescape(&raw, &mut self.out);
            self.out.push(b'"');
        }
        self.raw = raw;
        self.raw.clear();
    }
}

/// Undoes backslashes, and doubles quotes.
fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut put = |byte: u8| {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    };
    let mut rest = raw;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let Some((escaped, behind)) = behind.split_first().filter(|_| *first == b'\\') else {
            put(*first);
            continue;
        };
        rest = behind;
        match *escaped {
            b'b' => put(8),
            b'f' => put(12),
            b'n' => put(b'\n'),
            b'r' => put(b'\r'),
            b't' => put(b'\t'),
            b'v' => put(11),
            b'0'..=b'7' => {
                let octal = digits(rest, 2, 8);
                let first = u32::from(*escaped - b'0');
                let value = octal.iter().fold(first, |v, b| v * 8 + u32::from(*b - b'0'));
                put(value.to_le_bytes().first().copied().unwrap_or_default()); // default: never
                rest = rest.get(octal.len()..).unwrap_or_default();
            }
            b'x' if !digits(rest, 2, 16).is_empty() => {
                let hex = digits(rest, 2, 16);
                let value = hex.iter().filter_map(|b| char::from(*b).to_digit(16));
                let value = value.fold(0u32, |v, digit| v * 16 + digit);
                put(value.to_le_bytes().first().copied().unwrap_or_default()); // default: never
                rest = rest.get(hex.len()..).unwrap_or_default();
            }
            other => put(other),
        }
    }
}

/// The digits that a text begins with, at most so many.
fn digits(text: &[u8], most: usize, base: u32) -> &[u8] {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(base);
    let count = text.iter().take(most).take_while(is_digit).count();
    text.get(..count).unwrap_or_default()
}

impl Read for TextReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.taken == self.out.len() && !self.at_end {
            self.out.clear();
            self.taken = 0;
            self.fill()?;
        }
        let ready = self.out.get(self.taken..).unwrap_or_default(); // default: never beyond
        let count = ready.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(ready) {
            *to = *from;
        }
        self.taken += count;
        Ok(count)
    }
}
