//! Where the fields of a chunk of JSON rows stand.

use memchr::memchr;

use super::Names;
use super::scan::{Object, name, own_members, skip_space};
use crate::dialect::Dialect;
use crate::splitter::Chunk;
use crate::tokenizer::{Fault, FaultKind, Span, block_rows, lines_before};

type Result<T> = std::result::Result<T, Fault>;

/// Finds the rows of a chunk, whichever way they are strung together.
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    dialect: Dialect,
    is_last: bool,
    /// Where the last row ended.
    position: usize,
    /// Lines that ended before the last row; kept for lines of rows only.
    lines: u64,
    expects: Expects,
}

/// What comes next in an array or object of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    RowOrEnd,
    Row,
    CommaOrEnd,
    Nothing,
}

/// A row that has been found.
pub(crate) struct Found {
    /// Its name in an object of rows, in quotes.
    pub(crate) key: Option<Span>,
    /// Where it starts.
    pub(crate) start: usize,
    /// Where it ends at the latest.
    pub(crate) limit: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(chunk: &'a Chunk, dialect: Dialect) -> Self {
        let expects = if chunk.is_first { Expects::RowOrEnd } else { Expects::Row };
        let (bytes, is_last) = (chunk.bytes(), chunk.is_last);
        Self { bytes, dialect, is_last, position: 0, lines: 0, expects }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// How many lines end before [`Rows::position`].
    pub(crate) fn lines(&self) -> u64 {
        match self.dialect {
            Dialect::Lines => self.lines,
            _ => lines_before(self.bytes, self.position),
        }
    }

    /// The next row; `None` at the end of the chunk.
    pub(crate) fn next_row(&mut self) -> Result<Option<Found>> {
        match self.dialect {
            Dialect::Lines => Ok(self.next_line()),
            _ => self.next_element(),
        }
    }

    fn next_line(&mut self) -> Option<Found> {
        loop {
            let rest = self.bytes.get(self.position..).filter(|rest| !rest.is_empty())?;
            let limit = self.position + memchr(b'\n', rest).unwrap_or(rest.len());
            let start = skip_space(self.bytes.get(..limit)?, self.position);
            if start < limit {
                return Some(Found { key: None, start, limit });
            }
            self.end_line(limit);
        }
    }

    /// Goes on behind the line that ends at `limit`.
    fn end_line(&mut self, limit: usize) {
        self.position = self.bytes.len().min(limit + 1);
        self.lines += u64::from(limit < self.bytes.len());
    }

    fn next_element(&mut self) -> Result<Option<Found>> {
        let limit = self.bytes.len();
        loop {
            let at = skip_space(self.bytes, self.position);
            self.position = at;
            let fault = |what| Err(Fault { position: at, kind: FaultKind::Expected(what) });
            let closing = if self.dialect == Dialect::Array { b']' } else { b'}' };
            self.expects = match (self.expects, self.bytes.get(at)) {
                (Expects::Row | Expects::Nothing, None) if !self.is_last => return Ok(None),
                (Expects::Nothing, None) => return Ok(None),
                (Expects::Nothing, Some(_)) => return fault("nothing behind the last row"),
                (Expects::RowOrEnd | Expects::CommaOrEnd, Some(b)) if *b == closing => {
                    self.position = at + 1;
                    Expects::Nothing
                }
                (Expects::CommaOrEnd, Some(b',')) => {
                    self.position = at + 1;
                    Expects::Row
                }
                (Expects::CommaOrEnd, _) if closing == b']' => {
                    return fault("`,` or `]` after a row");
                }
                (Expects::CommaOrEnd, _) => return fault("`,` or `}` after a row"),
                (Expects::Row | Expects::RowOrEnd, _) if self.dialect == Dialect::Array => {
                    return Ok(Some(Found { key: None, start: at, limit }));
                }
                (Expects::Row | Expects::RowOrEnd, _) => {
                    let (key, start) = name(self.bytes, at)?;
                    return Ok(Some(Found { key: Some(key), start, limit }));
                }
            };
        }
    }

    /// Goes on behind the line of a row that is none; false where rows are not lines.
    pub(crate) fn skip_line(&mut self, found: &Found) -> bool {
        let is_line = self.dialect == Dialect::Lines;
        if is_line {
            self.end_line(found.limit);
        }
        is_line
    }

    /// Says where the row that was found last ends.
    pub(crate) fn end_row(&mut self, found: &Found, end: usize) -> Result<()> {
        if self.dialect != Dialect::Lines {
            self.position = end;
            self.expects = Expects::CommaOrEnd;
            return Ok(());
        }
        let rest = self.bytes.get(..found.limit).unwrap_or_default();
        let after = skip_space(rest, end);
        if after < found.limit {
            let kind = FaultKind::Expected("the end of the line after a row");
            return Err(Fault { position: after, kind });
        }
        self.end_line(found.limit);
        Ok(())
    }
}

/// Walks through a chunk.
pub(crate) struct Tokenizer<'a> {
    rows: Rows<'a>,
    bytes: &'a [u8],
    names: &'a Names,
    columns: usize,
    /// The field that takes the names of rows.
    key: Option<usize>,
    /// For each field, the one that came after it last; the first stands behind the last.
    following: Vec<usize>,
    /// A row that reads as one and is none of the table's; it ends here.
    refused: Option<usize>,
    beside: Beside,
    /// The members of the last block that no field has.
    rest: Rest,
}

/// What becomes of members that no field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Refused,
    LeftOut,
    /// They go to this field, as do the members of an object that is called after it.
    Kept(usize),
}

/// The members of rows that no field has, names and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    members: Vec<Span>,
    /// For each row, where its members end.
    ends: Vec<usize>,
}

impl Rest {
    /// Those of a row.
    pub(crate) fn of(&self, row: usize) -> &[Span] {
        // default: rows without any are not noted where none are kept.
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).unwrap_or(&0);
        let end = self.ends.get(row).unwrap_or(start); // default: as above.
        self.members.get(*start..*end).unwrap_or_default() // default: as above.
    }

    fn clear(&mut self) {
        self.members.clear();
        self.ends.clear();
    }
}

impl<'a> Tokenizer<'a> {
    pub(crate) fn new(
        chunk: &'a Chunk,
        dialect: Dialect,
        names: &'a Names,
        columns: usize,
        key: Option<usize>,
        beside: Beside,
    ) -> Self {
        let rows = Rows::new(chunk, dialect);
        let following = (1..=columns).chain([0]).collect();
        let (bytes, rest) = (chunk.bytes(), Rest::default());
        Self { rows, bytes, names, columns, key, following, refused: None, beside, rest }
    }

    /// The members of the last block that no field has, by its rows.
    pub(crate) fn rest(&self) -> &Rest {
        &self.rest
    }

    pub(crate) fn position(&self) -> usize {
        self.rows.position()
    }

    /// How many lines end before [`Tokenizer::position`].
    pub(crate) fn lines(&self) -> u64 {
        self.rows.lines()
    }

    /// Finds the next rows, at most [`block_rows`]: `spans` gets their fields, row by row, an empty
    /// one for a field that a row has not. No row at the end. With a fault come the rows before it.
    pub(crate) fn next_block(&mut self, spans: &mut Vec<Span>) -> Result<()> {
        spans.clear();
        self.rest.clear();
        let rows = block_rows(self.columns);
        // A field takes two bytes at least, and few rows are as short as that.
        spans.reserve((rows * self.columns).min(self.bytes.len() / 2));
        for _ in 0..rows {
            let Some(found) = self.rows.next_row()? else { break };
            let (before, kept) = (spans.len(), self.rest.members.len());
            if let Err(fault) = self.read_row(&found, spans) {
                spans.truncate(before);
                self.rest.members.truncate(kept);
                return Err(fault);
            }
            if let Beside::Kept(_) = self.beside {
                self.rest.ends.push(self.rest.members.len());
            }
        }
        Ok(())
    }

    /// Goes on behind the row that is none; where it stands. `None` when no one can tell where it
    /// ends.
    pub(crate) fn skip(&mut self) -> Option<Span> {
        let start = self.rows.position;
        if self.rows.dialect == Dialect::Lines {
            let rest = self.bytes.get(start..)?;
            let limit = start + memchr(b'\n', rest).unwrap_or(rest.len());
            self.rows.end_line(limit);
            return Some(Span::new(start, limit));
        }
        let end = self.refused.take()?;
        self.rows.position = end;
        self.rows.expects = Expects::CommaOrEnd;
        Some(Span::new(start, end))
    }

    fn read_row(&mut self, found: &Found, spans: &mut Vec<Span>) -> Result<()> {
        let bytes = self.bytes.get(..found.limit).unwrap_or_default();
        let first = spans.len();
        spans.resize(first + self.columns, Span::new(found.start, found.start));
        let mut object = Object::new(bytes, found.start)?;
        let (mut refusal, mut has_own) = (None, false);
        let row = spans.get_mut(first..).unwrap_or_default();
        if let (Some(key), Some(slot)) = (found.key, self.key.and_then(|at| row.get_mut(at))) {
            *slot = key;
        }
        let mut last = self.columns;
        while let Some((name, value)) = object.next_member()? {
            let guess = self.following.get(last).copied().unwrap_or_default();
            let field = self.names.find(name.of(bytes), guess);
            if let Some(field) = field.filter(|field| self.beside == Beside::Kept(*field)) {
                if std::mem::replace(&mut has_own, true) {
                    let kind = FaultKind::Twice(field);
                    refusal.get_or_insert(Fault { position: name.start(), kind });
                }
                self.rest.members.extend(own_members(bytes, name, value));
                continue;
            }
            let Some(field) = field else {
                match self.beside {
                    Beside::Refused => {}
                    Beside::LeftOut => continue,
                    Beside::Kept(_) => {
                        self.rest.members.push(Span::new(name.start(), value.end()));
                        continue;
                    }
                }
                let kind = FaultKind::UnknownField(name.end() - name.start());
                refusal.get_or_insert(Fault { position: name.start(), kind });
                continue;
            };
            if field != guess
                && let Some(slot) = self.following.get_mut(last)
            {
                *slot = field;
            }
            last = field;
            match row.get_mut(field) {
                Some(slot) if slot.is_empty() => *slot = value,
                // The name of a row may stand in it, too.
                Some(slot) if self.key == Some(field) && is_same(bytes, *slot, value) => {}
                _ => {
                    let kind = FaultKind::Twice(field);
                    refusal.get_or_insert(Fault { position: name.start(), kind });
                }
            }
        }
        if let Some(fault) = refusal {
            self.refused = Some(object.end());
            return Err(fault);
        }
        self.rows.end_row(found, object.end())
    }
}

/// Whether a name of a row and a value say the same.
pub(crate) fn is_same(bytes: &[u8], name: Span, value: Span) -> bool {
    let (name, value) = (name.of(bytes), value.of(bytes));
    name == value || name.get(1..name.len().saturating_sub(1)) == Some(value)
}
