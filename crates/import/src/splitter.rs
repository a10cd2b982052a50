//! Cuts a stream of bytes into chunks of whole records.
//!
//! A line end inside quotes does not end a record, so where a record ends depends on everything
//! before it. A chunk without any quote is cut at its last line end; one with quotes is scanned
//! from quote to quote, by the same rules as the tokenizer's, and cut at the last line end outside.

use memchr::{memchr, memrchr};

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
    /// Whether there is a quote anywhere.
    pub(crate) has_quotes: bool,
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

    #[cfg(test)]
    pub(crate) fn of(text: &[u8]) -> Self {
        let has_quotes = text.contains(&b'"');
        Self { buffer: text.to_vec(), start: 0, end: text.len(), has_quotes }
    }
}

/// Makes chunks.
pub(crate) struct Splitter {
    source: Source,
    delimiter: u8,
    chunk_bytes: usize,
    /// The longest record, in bytes.
    record_bytes_max: usize,
    /// The start of a record that the last chunk left.
    carry: Vec<u8>,
    at_end: bool,
    spare: Vec<Vec<u8>>,
}

impl Splitter {
    pub(crate) fn new(source: Source, delimiter: u8, chunk_bytes: usize) -> Self {
        let (carry, spare) = (Vec::new(), Vec::new());
        let record_bytes_max = RECORD_BYTES_MAX;
        Self { source, delimiter, chunk_bytes, record_bytes_max, carry, at_end: false, spare }
    }

    /// The same, with less memory for one record, though never less than for a chunk.
    pub(crate) fn with_record_limit(mut self, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(self.chunk_bytes);
        self.record_bytes_max = self.record_bytes_max.min(bytes);
        self
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
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

    fn read_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.at_end {
            return Ok(None);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        let mut filled = self.carry.len();
        let mut wanted = self.chunk_bytes.max(filled + 1);
        grow(&mut buffer, wanted);
        if let Some(front) = buffer.get_mut(..filled) {
            front.copy_from_slice(&self.carry);
        }
        self.carry.clear();
        loop {
            let room = buffer.get_mut(filled..wanted).unwrap_or_default();
            filled += self.source.fill(room)?;
            let bytes = buffer.get(..filled).unwrap_or_default();
            let has_quotes = memchr(b'"', bytes).is_some();
            if filled < wanted {
                self.at_end = true;
                let chunk = Chunk { buffer, start: 0, end: filled, has_quotes };
                return Ok((filled > 0).then_some(chunk));
            }
            if let Some(end) = last_record_end(bytes, self.delimiter, has_quotes) {
                self.carry.extend_from_slice(bytes.get(end..).unwrap_or_default());
                return Ok(Some(Chunk { buffer, start: 0, end, has_quotes }));
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

/// Makes a buffer at least `len` long, without writing twice what it has.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// The position after the last line end that is not within quotes.
fn last_record_end(bytes: &[u8], delimiter: u8, has_quotes: bool) -> Option<usize> {
    let after = |from: usize, part: &[u8]| memrchr(b'\n', part).map(|at| from + at + 1);
    if !has_quotes {
        return after(0, bytes);
    }
    let mut end = None;
    let mut position = 0;
    loop {
        let rest = bytes.get(position..).unwrap_or_default();
        let Some(quote) = memchr(b'"', rest) else {
            return after(position, rest).or(end);
        };
        end = after(position, rest.get(..quote).unwrap_or_default()).or(end);
        let quote = position + quote;
        let before = quote.checked_sub(1).and_then(|at| bytes.get(at));
        let opens = before.is_none_or(|b| *b == delimiter || *b == b'\n');
        position = quote + 1;
        if opens {
            match closing_quote(bytes, quote) {
                Some(closing) => position = closing + 1,
                None => return end,
            }
        }
    }
}

/// The position of the quote that closes the one at `opening`.
pub(crate) fn closing_quote(bytes: &[u8], opening: usize) -> Option<usize> {
    let mut position = opening + 1;
    loop {
        let quote = position + memchr(b'"', bytes.get(position..)?)?;
        if bytes.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        position = quote + 2;
    }
}

#[cfg(test)]
mod tests;
