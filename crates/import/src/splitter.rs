//! Cuts a stream of bytes into chunks of whole records.
//!
//! CSV: a line end inside quotes does not end a record, so where one ends depends on everything
//! before it. A chunk without any quote is cut at its last line end; one with quotes is scanned
//! from quote to quote, by the same rules as the tokenizer's, and cut at the last line end outside.
//!
//! JSON: a line end within a string is not one, so that lines of objects are cut at any line end.
//! Arrays and objects of rows are cut behind the last comma between two rows.

use memchr::{memchr, memrchr};

use crate::dialect::{Csv, Dialect};
use crate::json::last_element_end;
use crate::options::CHUNK_BYTES_MIN;
use crate::source::Source;
use crate::{Error, Result};

/// The longest record. A quote that is never closed makes one record of the rest of the file;
/// this bounds the memory it may take.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Some whole records.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether there is a quote of CSV anywhere.
    pub(crate) has_quotes: bool,
    /// Whether it is the first of the file, and the last.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

impl Chunk {
    /// The records.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Drops bytes at the front.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// The memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// The memory, for the next chunk.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// All there is, from a place on.
    pub(crate) fn whole(buffer: Vec<u8>, start: usize) -> Self {
        let end = buffer.len();
        Self { buffer, start, end, has_quotes: false, is_first: true, is_last: true }
    }

    #[cfg(test)]
    pub(crate) fn of(text: &[u8]) -> Self {
        let has_quotes = text.contains(&b'"');
        let (buffer, end) = (text.to_vec(), text.len());
        Self { buffer, start: 0, end, has_quotes, is_first: true, is_last: true }
    }
}

/// Makes chunks.
pub(crate) struct Splitter {
    source: Source,
    dialect: Dialect,
    chunk_bytes: usize,
    /// The longest record, in bytes.
    record_bytes_max: usize,
    /// The start of a record that the last chunk left.
    carry: Vec<u8>,
    at_start: bool,
    at_end: bool,
    spare: Vec<Vec<u8>>,
}

impl Splitter {
    /// With chunks of so many bytes; they need no room for more than a file is known to have.
    pub(crate) fn new(source: Source, dialect: Dialect, chunk_bytes: usize) -> Self {
        let known = source.plain_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        // One more tells that it ends there. A length may be none: that of a pipe is 0.
        let whole = known.map(|bytes| bytes.saturating_add(1).max(CHUNK_BYTES_MIN));
        let chunk_bytes = chunk_bytes.min(whole.unwrap_or(usize::MAX));
        Self {
            source,
            dialect,
            chunk_bytes,
            record_bytes_max: RECORD_BYTES_MAX,
            carry: Vec::new(),
            at_start: true,
            at_end: false,
            spare: Vec::new(),
        }
    }

    /// The same, with less memory for one record, though never less than for a chunk.
    pub(crate) fn with_record_limit(mut self, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(self.chunk_bytes);
        self.record_bytes_max = self.record_bytes_max.min(bytes);
        self
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the last chunk has been made.
    pub(crate) fn at_end(&self) -> bool {
        self.at_end
    }

    /// Takes memory back.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// The next chunk; `None` at the end. After an error, the end.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let chunk = self.read_chunk();
        self.at_end |= chunk.is_err();
        chunk
    }

    /// Reads the opening bracket of a JSON file: how its rows are strung together, and how many
    /// lines end before the first.
    pub(crate) fn open_json(&mut self) -> Result<(Dialect, u64)> {
        let mut lines = 0;
        let mut byte = [0];
        loop {
            let found = if self.source.fill(&mut byte)? == 0 { None } else { byte.first() };
            self.dialect = match found {
                Some(b'[') => Dialect::Array,
                Some(b'{') => Dialect::Keyed,
                Some(b' ' | b'\t' | b'\r') => continue,
                Some(b'\n') => {
                    lines += 1;
                    continue;
                }
                Some(byte) => {
                    let found = char::from(*byte);
                    let message = format!("expected `[` or `{{`, found {found:?}");
                    return Err(Error::data(message).on_line(lines + 1));
                }
                None => return Err(Error::data("the file is empty; expected `[` or `{`")),
            };
            return Ok((self.dialect, lines));
        }
    }

    fn read_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.at_end {
            return Ok(None);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        let mut filled = self.carry.len();
        // The first is small: if that is all, little memory was taken.
        let most = if self.at_start { CHUNK_BYTES_MIN } else { usize::MAX };
        let mut wanted = self.chunk_bytes.min(most).max(filled + 1);
        grow(&mut buffer, wanted);
        if let Some(front) = buffer.get_mut(..filled) {
            front.copy_from_slice(&self.carry);
        }
        self.carry.clear();
        loop {
            let room = buffer.get_mut(filled..wanted).unwrap_or_default();
            filled += self.source.fill(room)?;
            let bytes = buffer.get(..filled).unwrap_or_default();
            let has_quotes = match self.dialect {
                Dialect::Csv(csv) => csv.has_quotes(bytes),
                _ => false,
            };
            let is_last = filled < wanted;
            let end = if is_last { Some(filled) } else { self.last_record_end(bytes, has_quotes) };
            if let Some(end) = end {
                self.at_end = is_last;
                let is_first = std::mem::replace(&mut self.at_start, false);
                self.carry.extend_from_slice(bytes.get(end..).unwrap_or_default());
                let chunk = Chunk { buffer, start: 0, end, has_quotes, is_first, is_last };
                // JSON has to be closed, even if nothing is left.
                let is_wanted = end > 0 || matches!(self.dialect, Dialect::Array | Dialect::Keyed);
                return Ok(is_wanted.then_some(chunk));
            }
            if filled >= self.record_bytes_max {
                let most = self.record_bytes_max;
                return Err(Error::data(format!(
                    "a record is longer than {most} bytes; is a quote not closed?"
                )));
            }
            wanted = (filled * 2).min(self.record_bytes_max);
            grow(&mut buffer, wanted);
        }
    }
}

impl Splitter {
    fn last_record_end(&self, bytes: &[u8], has_quotes: bool) -> Option<usize> {
        match self.dialect {
            Dialect::Csv(csv) if has_quotes => last_quoted_record_end(bytes, csv),
            Dialect::Csv(_) | Dialect::Lines => memrchr(b'\n', bytes).map(|at| at + 1),
            Dialect::Array | Dialect::Keyed => last_element_end(bytes),
        }
    }
}

/// Makes a buffer at least `len` long, without writing twice what it has.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// The position after the last line end that is not within quotes.
fn last_quoted_record_end(bytes: &[u8], csv: Csv) -> Option<usize> {
    let after = |from: usize, part: &[u8]| memrchr(b'\n', part).map(|at| from + at + 1);
    let quote = csv.quote?;
    let mut end = None;
    let mut position = 0;
    loop {
        let rest = bytes.get(position..).unwrap_or_default();
        let Some(ahead) = memchr(quote, rest) else {
            return after(position, rest).or(end);
        };
        end = after(position, rest.get(..ahead).unwrap_or_default()).or(end);
        let found = position + ahead;
        let before = found.checked_sub(1).and_then(|at| bytes.get(at));
        let opens = before.is_none_or(|b| *b == csv.delimiter || *b == b'\n');
        position = found + 1;
        if opens {
            match csv.closing_quote(bytes, found) {
                Some(closing) => position = closing + 1,
                None => return end,
            }
        }
    }
}

#[cfg(test)]
mod tests;
