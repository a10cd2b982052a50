//! What the rows of a file hold, chunk by chunk: the kinds of their fields.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use esker_format::text;

use crate::Result;
use crate::chunk::Layout;
use crate::dialect::{Csv, Dialect};
use crate::fault::record_error;
use crate::json::{Found, Names, Object, Rows, is_same, unescaped};
use crate::kinds::Kinds;
use crate::splitter::Chunk;
use crate::tokenizer::{Fault, FaultKind, Span, Tokenizer};

/// How a schema was inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// How many rows were looked at.
    pub rows: u64,
    /// Whether these are all rows of the file.
    pub whole: bool,
}

/// What was seen in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kinds: Kinds,
    /// How many rows have it.
    rows: u64,
}

/// What was seen in the columns of some rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// The columns of `columns`, by name.
    positions: BTreeMap<String, usize>,
}

impl Survey {
    /// Whether a column had nothing but NULL.
    pub(crate) fn is_blank(&self, name: &str) -> bool {
        self.column(name).is_none_or(|column| column.kinds.is_blank())
    }

    /// The same without a column, if that had nothing but NULL.
    pub(crate) fn without_blank(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name.filter(|name| self.is_blank(name)) {
            let (rows, columns) = (self.rows, std::mem::take(&mut self.columns));
            self = Self { rows, ..Self::default() };
            let others = columns.into_iter().filter(|column| column.name != name);
            self.merge(Self { columns: others.collect(), ..Self::default() });
        }
        self
    }

    /// Adds rows that follow. Their columns, if new, come last.
    pub(crate) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        for column in other.columns {
            match self.positions.get(&column.name).and_then(|at| self.columns.get_mut(*at)) {
                Some(known) => {
                    known.kinds = known.kinds.union(column.kinds);
                    known.rows += column.rows;
                }
                None => {
                    self.positions.insert(column.name.clone(), self.columns.len());
                    self.columns.push(column);
                }
            }
        }
    }

    /// The names of the columns, as they came.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The names of those that a row has.
    pub(crate) fn names_seen(&self) -> Vec<String> {
        let seen = self.columns.iter().filter(|column| column.rows > 0);
        seen.map(|column| column.name.clone()).collect()
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.get(*self.positions.get(name)?)
    }

    /// Whether a row has NULL, or nothing, in a column.
    pub(crate) fn has_null(&self, column: &Column) -> bool {
        column.kinds.has_null() || column.rows < self.rows
    }

    fn new(rows: u64, columns: impl IntoIterator<Item = (String, Kinds, u64)>) -> Self {
        let columns = columns.into_iter().map(|(name, kinds, rows)| Column { name, kinds, rows });
        let mut survey = Self::default();
        survey.merge(Self { rows, columns: columns.collect(), ..Self::default() });
        survey
    }

    /// Surveys a chunk; passes over what is no row on request, as far as one can.
    ///
    /// # Errors
    /// When a record is none; lines count from the start of the chunk.
    pub(crate) fn of(layout: &Layout, chunk: &Chunk, passes_over: bool) -> Result<Self> {
        let surveyed = match layout.dialect {
            Dialect::Csv(csv) => Self::of_csv(layout, csv, chunk, passes_over),
            dialect => Self::of_json(layout, dialect, chunk, passes_over),
        };
        surveyed.map_err(|fault| record_error(&layout.columns, chunk.bytes(), fault))
    }

    fn of_csv(
        layout: &Layout,
        csv: Csv,
        chunk: &Chunk,
        passes_over: bool,
    ) -> std::result::Result<Self, Fault> {
        let (bytes, columns) = (chunk.bytes(), layout.columns.len());
        let mut rows = 0;
        let mut seen = vec![Kinds::default(); columns];
        let mut tokenizer = Tokenizer::new(bytes, csv, columns, chunk.has_quotes);
        let mut spans = Vec::new();
        loop {
            let fault = tokenizer.next_block(&mut spans).err();
            if spans.is_empty() && fault.is_none() {
                let columns = layout.columns.iter().cloned().zip(seen);
                return Ok(Self::new(rows, columns.map(|(name, kinds)| (name, kinds, rows))));
            }
            rows += (spans.len() / columns.max(1)) as u64;
            for (position, kinds) in seen.iter_mut().enumerate() {
                let column = spans.iter().skip(position).step_by(columns.max(1));
                *kinds = survey_column(layout, csv, bytes, column, *kinds);
            }
            if let Some(fault) = fault
                && (!passes_over || tokenizer.skip(fault).is_none())
            {
                return Err(fault);
            }
        }
    }

    fn of_json(
        layout: &Layout,
        dialect: Dialect,
        chunk: &Chunk,
        passes_over: bool,
    ) -> std::result::Result<Self, Fault> {
        let mut members = JsonMembers {
            layout,
            bytes: chunk.bytes(),
            names: Names::new(layout.columns.iter().map(String::as_str)),
            seen: vec![Default::default(); layout.columns.len()],
            row: Vec::new(),
        };
        let (mut count, mut rows) = (0, Rows::new(chunk, dialect));
        while let Some(found) = rows.next_row()? {
            match members.read(&found, &mut rows) {
                // Such a row is rejected, whatever its values are.
                Ok(()) if passes_over && members.has_repeated(&found) => {}
                Ok(()) => {
                    count += 1;
                    members.keep(&found, count)?;
                }
                Err(fault) if !passes_over || !rows.skip_line(&found) => return Err(fault),
                Err(_) => {}
            }
        }
        let columns = members.names.into_names().into_iter().zip(members.seen);
        Ok(Self::new(count, columns.map(|(name, (kinds, rows))| (name, kinds, rows))))
    }
}

/// The members of the rows of a chunk of JSON.
struct JsonMembers<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
    names: Names,
    /// What was seen of each, and in how many rows.
    seen: Vec<(Kinds, u64)>,
    /// Those of the row at hand.
    row: Vec<(Span, Span)>,
}

impl JsonMembers<'_> {
    fn read(&mut self, found: &Found, rows: &mut Rows<'_>) -> std::result::Result<(), Fault> {
        self.row.clear();
        let bytes = self.bytes.get(..found.limit).unwrap_or_default(); // default: never beyond.
        let mut object = Object::new(bytes, found.start)?;
        while let Some(member) = object.next_member()? {
            self.row.push(member);
        }
        rows.end_row(found, object.end())
    }

    /// Whether the row that was read has a member twice, or another name than its own.
    fn has_repeated(&self, found: &Found) -> bool {
        let (bytes, mut seen) = (self.bytes, BTreeSet::new());
        self.row.iter().any(|(name, value)| {
            let name = name.of(bytes);
            let is_key = found.key.is_some() && self.names.find(name, 0) == Some(0);
            let is_own = |key: Span| is_same(bytes, key, *value);
            // default: "".
            let inner = name.get(1..name.len().saturating_sub(1)).unwrap_or_default();
            let is_first = seen.insert(unescaped(inner).unwrap_or(Cow::Borrowed(inner)));
            if is_key { !found.key.is_some_and(is_own) } else { !is_first }
        })
    }

    /// Adds the row that was read to what was seen.
    fn keep(&mut self, found: &Found, count: u64) -> std::result::Result<(), Fault> {
        let (bytes, notation) = (self.bytes, &self.layout.notation);
        if let (Some(key), Some((kinds, rows))) = (found.key, self.seen.first_mut()) {
            let key = key.of(bytes);
            let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default(); // default: "".
            // default: what is no text is refused later.
            let name = unescaped(inner).unwrap_or(Cow::Borrowed(inner));
            *kinds = kinds.union(Kinds::of(&name, notation));
            *rows = count;
        }
        let mut guess = 0;
        for (name, value) in &self.row {
            let position = self.names.find_or_add(name.of(bytes), guess).ok_or(Fault {
                position: name.start(),
                kind: FaultKind::Expected("a name of whole characters"),
            })?;
            guess = position + 1;
            if position >= self.seen.len() {
                self.seen.resize(position + 1, Default::default());
            }
            if let Some((kinds, rows)) = self.seen.get_mut(position)
                && (found.key.is_none() || position > 0)
            {
                *kinds = kinds.union(Kinds::of_json(value.of(bytes), notation));
                *rows += 1;
            }
        }
        Ok(())
    }
}

/// Adds one column of a block to what was seen of it before.
fn survey_column<'a>(
    layout: &Layout,
    csv: Csv,
    bytes: &[u8],
    spans: impl Iterator<Item = &'a Span>,
    mut seen: Kinds,
) -> Kinds {
    let notation = &layout.notation;
    let mut timestamps = text::TimestampParser::default();
    for span in spans {
        let raw = span.of(bytes);
        if layout.nulls.contains(raw) {
            seen = seen.union(Kinds::NULL);
        } else if !seen.has(Kinds::TEXT) {
            let field = csv.unquoted(raw);
            let field = field.as_ref();
            seen = seen.union(match field {
                [b'1'..=b'9', rest @ ..] if is_short_number(rest) => Kinds::INTEGER,
                _ if seen.has(Kinds::TIMESTAMP)
                    && !notation.dates.is_given()
                    && timestamps.parse(field).is_some() =>
                {
                    // A date alone reads as a timestamp too, and changes nothing here.
                    Kinds::TIMESTAMP
                }
                _ => Kinds::of(field, notation),
            });
        }
    }
    seen
}

/// True for digits after a first one that make an integer a double holds for sure.
#[inline]
fn is_short_number(rest: &[u8]) -> bool {
    rest.len() < 15 && rest.iter().all(u8::is_ascii_digit)
}
