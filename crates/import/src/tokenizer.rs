//! Finds the fields of a chunk.
//!
//! Two ways to the same answer. Without quotes, delimiters and line ends are found eight bytes at
//! a time: for a word `w` and a byte pattern `p`, the bytes of `w ^ p` that are zero are where the
//! pattern stands, and one addition marks them all; long fields go to `memchr`. With quotes, fields
//! are walked one by one.
//!
//! Both work on blocks of rows, so that the positions, and then the fields read column by column,
//! stay in the cache.
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "hot; positions come from scanning the same bytes, and chunks are below 4 GiB"
)]

use std::ops::Range;

use memchr::{memchr2, memrchr};

use crate::dialect::Csv;

/// Fields in a block, about: as many positions as stay in the cache.
const BLOCK_FIELDS: usize = 16 << 10;
/// Rows in a block of few columns.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// Rows in a block of many columns.
const BLOCK_ROWS_MIN: usize = 64;

/// How many rows of so many columns make a block.
pub(crate) fn block_rows(columns: usize) -> usize {
    (BLOCK_FIELDS / columns.max(1)).clamp(BLOCK_ROWS_MIN, BLOCK_ROWS)
}

/// From here on, the rest of a field is searched by `memchr`, which pays once it is this long.
const LONG_FIELD_BYTES: usize = 32;

/// Where a field stands, its quotes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// The position of the first byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// The position after the last byte.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The field, as it stands in the file.
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// A record that is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where in the chunk.
    pub(crate) position: usize,
    pub(crate) kind: FaultKind,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Too few or too many fields: this many.
    FieldCount(usize),
    /// A quoted field goes on to the end of the file.
    Unclosed,
    /// Something stands between a closing quote and the next delimiter.
    AfterQuote,
    /// JSON goes on otherwise than with this.
    Expected(&'static str),
    /// A name, this long, that is no field of the table.
    UnknownField(usize),
    /// A second value for this field.
    Twice(usize),
}

/// Walks through a chunk.
pub(crate) struct Tokenizer<'a> {
    bytes: &'a [u8],
    csv: Csv,
    columns: usize,
    has_quotes: bool,
    position: usize,
    /// Line ends passed; kept only where none can be within quotes.
    plain_lines: u64,
}

impl<'a> Tokenizer<'a> {
    pub(crate) fn new(bytes: &'a [u8], csv: Csv, columns: usize, has_quotes: bool) -> Self {
        Self { bytes, csv, columns, has_quotes, position: 0, plain_lines: 0 }
    }

    /// How many bytes have been walked through.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// How many lines end before [`Tokenizer::position`].
    pub(crate) fn lines(&self) -> u64 {
        if self.has_quotes { lines_before(self.bytes, self.position) } else { self.plain_lines }
    }

    /// Finds the next rows, at most [`block_rows`]: `spans` gets their fields, row by row. No row
    /// at the end. With a fault come the rows before it.
    pub(crate) fn next_block(&mut self, spans: &mut Vec<Span>) -> Result<(), Fault> {
        if self.has_quotes { self.quoted_block(spans) } else { self.plain_block(spans) }
    }

    /// Goes on behind the record that is none; where it stands. `None` when no one can tell where
    /// it ends.
    pub(crate) fn skip(&mut self, fault: Fault) -> Option<Span> {
        if fault.kind == FaultKind::Unclosed {
            return None;
        }
        let start = self.position;
        let end = self.csv.record_end(self.bytes, start).unwrap_or(self.bytes.len());
        self.plain_lines += lines_before(&self.bytes[start..end], end - start);
        self.position = end;
        Some(Span::new(start, end))
    }

    fn plain_block(&mut self, spans: &mut Vec<Span>) -> Result<(), Fault> {
        // Room for all first: fields are then stored one behind the other, and nothing grows.
        spans.resize(block_rows(self.columns) * self.columns, Span::new(0, 0));
        let mut found = 0;
        let is_whole = self.plain_fields(spans, &mut found);
        spans.truncate(found);
        if is_whole { Ok(()) } else { Err(self.count_fault()) }
    }

    /// Fills `spans` with fields from its start on, as many as `found` says afterwards. False at a
    /// row of too few or too many, none of which is kept.
    fn plain_fields(&mut self, spans: &mut [Span], found: &mut usize) -> bool {
        let bytes = self.bytes;
        let (delimiters, line_ends) = (repeat(self.csv.delimiter), repeat(b'\n'));
        let (mut start, mut row, mut next) = (self.position, 0, 0);
        let mut at = start;
        while at < bytes.len() {
            let word = match bytes[at..].first_chunk::<8>() {
                Some(word) => u64::from_le_bytes(*word),
                None => last_word(&bytes[at..]),
            };
            let ends = matches(word, line_ends);
            let mut hits = matches(word, delimiters) | ends;
            if hits == 0 {
                at += 8;
                if at - start > LONG_FIELD_BYTES && at < bytes.len() {
                    let rest = memchr2(self.csv.delimiter, b'\n', &bytes[at..]);
                    at = rest.map_or(bytes.len(), |ahead| at + ahead);
                }
                continue;
            }
            while hits != 0 {
                let end = at + (hits.trailing_zeros() / 8) as usize;
                let is_line_end = ends & hits & hits.wrapping_neg() != 0;
                hits &= hits - 1;
                if !is_line_end {
                    spans[next] = Span::new(start, end);
                    next += 1;
                    start = end + 1;
                    if next - row >= self.columns {
                        *found = row;
                        return false;
                    }
                    continue;
                }
                *found = row;
                let Some(after) = self.end_row(spans, row..next, start..end) else { return false };
                self.position = end + 1;
                self.plain_lines += 1;
                start = end + 1;
                (row, next, *found) = (after, after, after);
                if after == spans.len() {
                    return true;
                }
            }
            at += 8;
        }
        if self.position < bytes.len() {
            *found = row;
            let Some(after) = self.end_row(spans, row..next, start..bytes.len()) else {
                return false;
            };
            *found = after;
            self.position = bytes.len();
        }
        true
    }

    /// Ends a row, whose fields so far are in `row`, with its last one; where the next row's are to
    /// be. `None` when there are too few. An empty line is no row.
    #[inline]
    fn end_row(&self, spans: &mut [Span], row: Range<usize>, last: Range<usize>) -> Option<usize> {
        let cut = !last.is_empty() && self.bytes[last.end - 1] == b'\r';
        let end = last.end - usize::from(cut);
        if row.len() + 1 == self.columns {
            spans[row.end] = Span::new(last.start, end);
            return Some(row.end + 1);
        }
        (row.is_empty() && last.start == end).then_some(row.start)
    }

    /// The fault of the record that starts at the current position.
    #[cold]
    fn count_fault(&self) -> Fault {
        let mut record = Vec::new();
        match read_record(self.bytes, self.position, self.csv, &mut record) {
            Err(fault) => fault,
            Ok(_) => {
                let kind = FaultKind::FieldCount(record.len());
                Fault { position: self.position, kind }
            }
        }
    }

    fn quoted_block(&mut self, spans: &mut Vec<Span>) -> Result<(), Fault> {
        spans.clear();
        let (mut rows, rows_wanted) = (0, block_rows(self.columns));
        while rows < rows_wanted && self.position < self.bytes.len() {
            let before = spans.len();
            let next = read_record(self.bytes, self.position, self.csv, spans);
            let next = next.inspect_err(|_| spans.truncate(before))?;
            match &spans[before..] {
                [only] if self.columns > 1 && only.start == only.end => spans.truncate(before),
                fields if fields.len() != self.columns => {
                    spans.truncate(before);
                    return Err(self.count_fault());
                }
                _ => rows += 1,
            }
            self.position = next;
        }
        Ok(())
    }
}

/// Reads the record at `position`, field by field, into `spans`; returns where the next starts.
pub(crate) fn read_record(
    bytes: &[u8],
    mut position: usize,
    csv: Csv,
    spans: &mut Vec<Span>,
) -> Result<usize, Fault> {
    loop {
        let start = position;
        let end = if csv.opens(bytes.get(start)) {
            let closing = csv.closing_quote(bytes, start);
            closing.ok_or(Fault { position: start, kind: FaultKind::Unclosed })? + 1
        } else {
            memchr2(csv.delimiter, b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at)
        };
        match &bytes[end..] {
            [byte, ..] if *byte == csv.delimiter => {
                spans.push(Span::new(start, end));
                position = end + 1;
            }
            [] | [b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..] => {
                let cut = end > start && bytes[end - 1] == b'\r';
                spans.push(Span::new(start, end - usize::from(cut)));
                return Ok(next_record(bytes, end));
            }
            _ => return Err(Fault { position: end, kind: FaultKind::AfterQuote }),
        }
    }
}

/// Where the record after the one whose last field ends at `end` starts.
fn next_record(bytes: &[u8], end: usize) -> usize {
    let line_end = match &bytes[end..] {
        [b'\r', b'\n', ..] => 2,
        [] => 0,
        _ => 1,
    };
    end + line_end
}

/// The position of the start of the line that `position` stands on.
pub(crate) fn line_start(bytes: &[u8], position: usize) -> usize {
    memrchr(b'\n', &bytes[..position]).map_or(0, |at| at + 1)
}

/// How many lines end before `position`.
pub(crate) fn lines_before(bytes: &[u8], position: usize) -> u64 {
    memchr::memchr_iter(b'\n', &bytes[..position]).count() as u64
}

pub(crate) fn repeat(byte: u8) -> u64 {
    u64::from(byte) * 0x0101_0101_0101_0101
}

/// The high bit of every byte of `word` that equals the byte repeated in `pattern`.
#[inline]
pub(crate) fn matches(word: u64, pattern: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differing = word ^ pattern;
    !(((differing & LOW) + LOW) | differing | LOW)
}

/// Fewer than eight bytes, filled up with NUL, which is never looked for.
pub(crate) fn last_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests;
