//! Comment lines of CSV, left out on the way from the file.
//!
//! In the place of such a line an empty one stays, so that lines count as in the file. In a file of
//! one column an empty line is a row, so that there the line goes, and its place is kept.

use std::io::{Read, Result};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memchr_iter;

use crate::dialect::Csv;

/// How much is read at once.
const READ_BYTES: usize = 256 << 10;

/// Which lines are comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// What they begin with.
    pub(crate) start: u8,
    /// How many fields rows have, when known.
    pub(crate) fields: Option<usize>,
    /// A line that has as many fields as a row is one all the same: no one said that it is not.
    pub(crate) spares_rows: bool,
}

impl Comment {
    /// Whether a line, which begins as comments do, is one.
    pub(crate) fn is_comment(&self, line: &[u8], csv: Csv) -> bool {
        let fields = memchr_iter(csv.delimiter, line).count() + 1;
        !(self.spares_rows && self.fields == Some(fields))
    }
}

/// The lines of a file that are gone from a stream, up to where it has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinesGone(Arc<Mutex<Vec<Gone>>>);

/// At how many places: 16 MiB.
const PLACES_MAX: usize = 1 << 20;

/// Lines that are gone at one place.
#[derive(Clone, Copy, Debug)]
struct Gone {
    /// How many lines of the stream are before them.
    before: u64,
    /// How many are gone, with those before.
    count: u64,
}

impl LinesGone {
    /// The number of a line in the file, by that in the stream, both from 1.
    pub(crate) fn in_file(&self, line: u64) -> u64 {
        let gone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = gone.partition_point(|gone| gone.before < line);
        let last = after.checked_sub(1).and_then(|at| gone.get(at));
        line + last.map_or(0, |gone| gone.count) // default: none is gone before it.
    }

    fn add(&self, before: u64) {
        let mut gone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = gone.last().map_or(0, |gone| gone.count) + 1; // default: it is the first.
        let has_room = gone.len() < PLACES_MAX;
        match gone.last_mut().filter(|last| last.before == before) {
            Some(last) => last.count = count,
            None if has_room => gone.push(Gone { before, count }),
            // Lines after so many places count without the comments that follow.
            None => {}
        }
    }
}

/// A stream without its comments.
pub(crate) struct WithoutComments<R> {
    inner: R,
    csv: Csv,
    comment: Comment,
    place: Place,
    /// A line that may be a comment, as far as it has come.
    held: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// How much of `output` has been handed out.
    taken: usize,
    at_end: bool,
    /// Lines so far, of the file before the stream and of the stream.
    lines: u64,
    gone: LinesGone,
}

/// Where in a record the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    FieldStart,
    Field,
    Quoted,
    /// The next byte stands for itself.
    Escaped,
    Held,
}

impl<R: Read> WithoutComments<R> {
    /// There are `lines` of the file before the stream.
    pub(crate) fn new(inner: R, csv: Csv, comment: Comment, lines: u64) -> Self {
        Self {
            lines,
            gone: LinesGone::default(),
            inner,
            csv,
            comment,
            place: Place::LineStart,
            held: Vec::new(),
            input: vec![0; READ_BYTES],
            output: Vec::new(),
            taken: 0,
            at_end: false,
        }
    }

    /// The lines that go.
    pub(crate) fn gone(&self) -> LinesGone {
        self.gone.clone()
    }

    /// Reads on until there is something to hand out, or to the end.
    fn refill(&mut self) -> Result<()> {
        self.output.clear();
        self.taken = 0;
        while self.output.is_empty() && !self.at_end {
            let mut input = std::mem::take(&mut self.input);
            let read = self.inner.read(&mut input);
            let bytes = read.as_ref().ok().and_then(|count| input.get(..*count));
            // default: an error has no bytes.
            bytes.unwrap_or_default().iter().for_each(|byte| self.take(*byte));
            self.input = input;
            if read? == 0 {
                self.at_end = true;
                self.end_held(false);
            }
        }
        Ok(())
    }

    fn take(&mut self, byte: u8) {
        let csv = self.csv;
        if self.place == Place::LineStart && byte == self.comment.start {
            self.place = Place::Held;
        }
        if self.place == Place::Held {
            if byte == b'\n' {
                self.end_held(true);
            } else {
                self.held.push(byte);
            }
            return;
        }
        self.output.push(byte);
        self.lines += u64::from(byte == b'\n');
        self.place = match self.place {
            Place::Escaped => Place::Quoted,
            Place::Quoted if csv.escape == Some(byte) => Place::Escaped,
            Place::Quoted if csv.quote == Some(byte) => Place::Field,
            Place::Quoted => Place::Quoted,
            // A doubled quote closes and opens.
            Place::Field if csv.quote == Some(byte) && self.is_doubled() => Place::Quoted,
            Place::LineStart | Place::FieldStart if csv.quote == Some(byte) => Place::Quoted,
            _ if byte == b'\n' => Place::LineStart,
            _ if byte == csv.delimiter => Place::FieldStart,
            _ => Place::Field,
        };
    }

    /// Whether the quote that was written last follows another at once.
    fn is_doubled(&self) -> bool {
        let before = self.output.len().checked_sub(2).and_then(|at| self.output.get(at));
        self.csv.escape.is_none() && before.copied() == self.csv.quote
    }

    /// Ends the line that is held: it goes, or comes back.
    fn end_held(&mut self, has_line_end: bool) {
        if self.place != Place::Held {
            return;
        }
        let is_comment = self.comment.is_comment(&self.held, self.csv);
        if !is_comment {
            self.output.append(&mut self.held);
        }
        self.held.clear();
        if is_comment && self.comment.fields == Some(1) {
            self.gone.add(self.lines);
        } else if has_line_end {
            self.output.push(b'\n');
            self.lines += 1;
        }
        self.place = Place::LineStart;
    }
}

impl<R: Read> Read for WithoutComments<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.taken == self.output.len() {
            self.refill()?;
        }
        let rest = self.output.get(self.taken..).unwrap_or_default(); // default: none is left.
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, fields: Option<usize>, spares_rows: bool) -> String {
        let comment = Comment { start: b'#', fields, spares_rows };
        let mut found = String::new();
        let mut reader = WithoutComments::new(text.as_bytes(), Csv::commas(), comment, 0);
        reader.read_to_string(&mut found).unwrap();
        found
    }

    #[test]
    fn comments_leave_empty_lines() {
        let text = "# one\na,b\n#\n1,\"x\n# y\"\n2,#3\n1,\"\"\"\n#\"\n# end";
        assert_eq!(read(text, Some(2), false), "\na,b\n\n1,\"x\n# y\"\n2,#3\n1,\"\"\"\n#\"\n");
        assert_eq!(read("#a\n1\n#b\n2\n", Some(1), false), "1\n2\n");
        assert_eq!(read("# a\n#1,x\n1,x\n", Some(2), true), "\n#1,x\n1,x\n");
        assert_eq!(read("# a\n#1,x\n1,x\n", Some(2), false), "\n\n1,x\n");
    }
}
