//! How a file of CSV is written, found out from a sample of it.
//!
//! Each delimiter is tried with each kind of quotes, and the one is taken by which most records
//! have as many fields as each other, two at least; of several, the one that finds more fields,
//! then the usual one. A space is one where no other is and a header stands over values alone:
//! texts have spaces within. What was given is not tried. The first record is the header, unless
//! it has values where the column has such values, and no name over a column of other values.

use esker_format::{DataType, Schema};

use crate::comments::Comment;
use crate::dialect::Csv;
use crate::kinds::Kinds;
use crate::nulls::Nulls;
use crate::options::ImportOptions;
use crate::tokenizer::{Span, read_record};

/// How much of a file is looked at.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;
/// How many records of it.
const RECORDS_MAX: usize = 500;
/// A quoted field that is longer was never closed.
const QUOTED_BYTES_MAX: usize = 16 << 10;
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// What is found out, rather than given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) delimiter: bool,
    pub(crate) quote: bool,
    pub(crate) comment: bool,
    pub(crate) header: bool,
}

/// A column that the header does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The first: the names of rows, as R writes them.
    First,
    /// The last: nothing but what follows the delimiter at the end of each row.
    Last,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) csv: Csv,
    pub(crate) comment: Option<Comment>,
    /// Lines before the header.
    pub(crate) skip: u64,
    pub(crate) header: bool,
    pub(crate) unnamed: Option<Unnamed>,
    /// Whether the header names a column, the last, that no row has.
    pub(crate) header_is_longer: bool,
}

/// Finds out how a file is written that begins with `sample`; `is_whole` says that this is all.
pub(crate) fn sniff(sample: &[u8], is_whole: bool, options: &ImportOptions) -> Sniffed {
    let wanted = options.sniffs;
    let start = options.comment.or_else(|| {
        let text = sample.trim_ascii_start();
        (wanted.comment && text.first() == Some(&b'#')).then_some(b'#')
    });
    let lines = Lines::of(sample, start);
    let shape = Shape::best(&lines.rows, is_whole, options);
    let header = HeaderTest { records: &shape.records, options };
    let mut sniffed = Sniffed {
        csv: shape.csv,
        comment: start.map(|start| Comment {
            start,
            fields: Some(shape.fields),
            spares_rows: options.comment.is_none(),
        }),
        skip: lines.before,
        header: options.header,
        unnamed: None,
        header_is_longer: false,
    };
    if !wanted.header {
        sniffed.compare_header(&shape);
        return sniffed;
    }
    if let Some(line) = lines.header(&shape).filter(|_| options.comment.is_none())
        && !header.names_values(0)
    {
        sniffed.comment = None;
        sniffed.skip = line;
        sniffed.header = true;
        return sniffed;
    }
    let preamble = shape.preamble();
    if preamble > 0
        && options.skip == 0
        && options.schema.is_none()
        && header.names_values(preamble)
    {
        let offset = shape.records.get(preamble).and_then(|record| record.fields.first());
        sniffed.skip = offset.map_or(0, |field| lines.number(field.position)); // default: none.
        sniffed.header = true;
        return sniffed;
    }
    sniffed.header = header.is_header();
    sniffed.compare_header(&shape);
    sniffed
}

impl Sniffed {
    /// Compares how many fields the header and the rows have.
    fn compare_header(&mut self, shape: &Shape) {
        let Some((first, rest)) = shape.records.split_first().filter(|(_, rest)| !rest.is_empty())
        else {
            return;
        };
        let (names, fields) = (first.fields.len(), shape.fields);
        if !self.header || rest.iter().any(|record| record.fields.len() != fields) {
            return;
        }
        let last_is_empty =
            |record: &Record| record.fields.last().is_some_and(|field| field.text.is_empty());
        if names + 1 == fields && names > 0 {
            let is_trailing = rest.iter().all(last_is_empty);
            self.unnamed = Some(if is_trailing { Unnamed::Last } else { Unnamed::First });
        }
        self.header_is_longer = names == fields + 1 && last_is_empty(first);
    }
}

/// A sample, without the lines that begin as comments do.
struct Lines {
    rows: Vec<u8>,
    /// For each line of `rows`, where it begins there, and how many lines of the file are before.
    starts: Vec<(usize, u64)>,
    /// The last comment before the first row, and how many lines are before it.
    last_comment: Option<(Vec<u8>, u64)>,
    /// How many lines are before the first row, where there are comments among them.
    before: u64,
}

impl Lines {
    fn of(sample: &[u8], start: Option<u8>) -> Self {
        let mut lines =
            Self { rows: Vec::new(), starts: Vec::new(), last_comment: None, before: 0 };
        let (mut number, mut has_rows) = (0, false);
        for line in sample.split_inclusive(|byte| *byte == b'\n') {
            if start.is_some() && line.first() == start.as_ref() {
                if !has_rows {
                    lines.last_comment = Some((line.trim_ascii_end().to_vec(), number));
                    lines.before = number + 1;
                }
            } else {
                has_rows |= !line.trim_ascii().is_empty();
                lines.starts.push((lines.rows.len(), number));
                lines.rows.extend_from_slice(line);
            }
            number += 1;
        }
        lines
    }

    /// How many lines of the file are before a position of the rows.
    fn number(&self, position: usize) -> u64 {
        let after = self.starts.partition_point(|(start, _)| *start <= position);
        let line = after.checked_sub(1).and_then(|at| self.starts.get(at));
        line.map_or(0, |(_, number)| *number) // default: there is no line before the first.
    }

    /// How many lines are before a comment that has as many fields as the rows: it names them.
    fn header(&self, shape: &Shape) -> Option<u64> {
        let (line, number) = self.last_comment.as_ref()?;
        let mut spans = Vec::new();
        read_record(line, 0, shape.csv, &mut spans).ok()?;
        (spans.len() == shape.fields && spans.len() > 1).then_some(*number)
    }
}

/// A field of the sample.
struct Field {
    position: usize,
    text: Vec<u8>,
    is_quoted: bool,
}

struct Record {
    fields: Vec<Field>,
}

/// The records of a sample, by one way of writing them.
struct Shape {
    csv: Csv,
    records: Vec<Record>,
    /// How many fields most records have.
    fields: usize,
    /// How many records have as many, of all.
    agreement: f64,
    faults: usize,
    /// How many fields stand within quotes.
    quoted: usize,
}

impl Shape {
    fn best(rows: &[u8], is_whole: bool, options: &ImportOptions) -> Self {
        let usual = options.csv();
        let mut best = Self::of(rows, is_whole, usual);
        for csv in candidates(rows, usual, options) {
            let shape = Self::of(rows, is_whole, csv);
            let is_likely = match (csv.quote, usual.quote) {
                (quote, given) if quote == given => true,
                // Other quotes are some only where fields stand within them.
                (Some(_), _) => shape.faults == 0 && shape.quoted > 0,
                // Quotes are none where they go wrong more often than right.
                (None, quote) => {
                    let quoted = Self::of(rows, is_whole, Csv { quote, ..csv });
                    quoted.faults > quoted.quoted
                }
            };
            if is_likely && shape.is_better_than(&best) {
                best = shape;
            }
        }
        let has_header = options.sniffs.header || options.header;
        if best.fields < 2 && options.sniffs.delimiter && has_header {
            let spaced = Self::of(rows, is_whole, Csv { delimiter: b' ', ..usual });
            if spaced.is_of_values(options) {
                return spaced;
            }
        }
        best
    }

    /// Whether a header stands over columns of values, or of quoted texts, one name over each, or
    /// as R writes it one less, and no field is empty.
    fn is_of_values(&self, options: &ImportOptions) -> bool {
        let Some((header, rows)) = self.records.split_first() else { return false };
        let notation = options.notation();
        let kinds_of = |field: &Field| Kinds::of(&field.text, &notation);
        let is_even = |record: &Record| {
            record.fields.len() == self.fields && record.fields.iter().all(|f| !f.text.is_empty())
        };
        let has_names = header.fields.iter().all(|name| !kinds_of(name).is_value());
        let is_quoted = |fields: &[Field]| fields.iter().all(|field| field.is_quoted);
        let has_row_names = header.fields.len() + 1 == self.fields
            && is_quoted(&header.fields)
            && rows.iter().all(|row| row.fields.first().is_some_and(|name| name.is_quoted));
        let is_column = |at: usize| {
            let fields = || rows.iter().filter_map(|row| row.fields.get(at));
            let kinds = fields().map(kinds_of).fold(Kinds::default(), Kinds::union);
            kinds.data_type() != DataType::Text || fields().all(|field| field.is_quoted)
        };
        self.faults == 0
            && !rows.is_empty()
            && (header.fields.len() == self.fields || has_row_names)
            && has_names
            && rows.iter().all(is_even)
            && (0..self.fields).all(is_column)
    }

    fn of(rows: &[u8], is_whole: bool, csv: Csv) -> Self {
        let mut shape =
            Self { csv, records: Vec::new(), fields: 0, agreement: 0.0, faults: 0, quoted: 0 };
        let (mut position, mut spans) = (0, Vec::new());
        while position < rows.len() && shape.records.len() < RECORDS_MAX {
            spans.clear();
            let end = match read_record(rows, position, csv, &mut spans) {
                // What is cut off says nothing.
                Ok(end) if end == rows.len() && !is_whole => break,
                Ok(end) => end,
                Err(_) if !is_whole && rows.len() - position < QUOTED_BYTES_MAX => break,
                Err(_) => {
                    shape.faults += 1;
                    let Some(end) = csv.record_end(rows, position) else { break };
                    position = end;
                    continue;
                }
            };
            position = end;
            if !matches!(spans.as_slice(), [only] if only.is_empty()) {
                let fields: Vec<Field> =
                    spans.iter().map(|span| Field::of(rows, *span, csv)).collect();
                shape.quoted += fields.iter().filter(|field| field.is_quoted).count();
                shape.records.push(Record { fields });
            }
        }
        shape.count_fields();
        shape
    }

    #[allow(clippy::cast_precision_loss, reason = "a few hundred records")]
    fn count_fields(&mut self) {
        let mut counts = std::collections::BTreeMap::new();
        for record in &self.records {
            *counts.entry(record.fields.len()).or_insert(0usize) += 1;
        }
        let most = counts.into_iter().max_by_key(|(fields, count)| (*count, *fields));
        let Some((fields, count)) = most else { return };
        self.fields = fields;
        self.agreement = count as f64 / (self.records.len() + self.faults) as f64;
        // A header has as many fields as the rows, one more or one less; else the delimiter is one
        // by chance.
        let first = self.records.first().map_or(0, |record| record.fields.len()); // default: none.
        if first.abs_diff(fields) > 1 && self.preamble() == 0 || first == 1 && fields == 2 {
            self.agreement /= 2.0;
        }
    }

    fn is_better_than(&self, other: &Self) -> bool {
        if self.fields < 2 || self.agreement < 0.5 {
            return false;
        }
        if other.fields < 2 {
            return true;
        }
        let order = self.agreement.total_cmp(&other.agreement);
        order.then(self.fields.cmp(&other.fields)).then(other.faults.cmp(&self.faults)).is_gt()
    }

    /// How many records come before the first that has as many fields as most: titles and the like,
    /// of one field each.
    fn preamble(&self) -> usize {
        let mut records = self.records.iter();
        let Some(first) = records.position(|record| record.fields.len() == self.fields) else {
            return 0;
        };
        let before = self.records.get(..first).unwrap_or_default(); // default: none.
        if before.iter().all(|record| record.fields.len() == 1) && self.fields > 2 {
            first
        } else {
            0
        }
    }
}

/// The ways of writing that are tried.
fn candidates(rows: &[u8], usual: Csv, options: &ImportOptions) -> Vec<Csv> {
    let wanted = options.sniffs;
    let mut quotes = vec![(usual.quote, usual.escape)];
    if wanted.quote {
        let double = usual.quote;
        if options.escape.is_none() && memchr::memmem::find(rows, b"\\\"").is_some() {
            quotes.push((double, Some(b'\\')));
        }
        if !rows.contains(&b'"') && rows.contains(&b'\'') {
            quotes.push((Some(b'\''), None));
        }
        quotes.push((None, None));
    }
    let mut delimiters = vec![usual.delimiter];
    if wanted.delimiter {
        delimiters.extend(DELIMITERS.iter().filter(|byte| **byte != usual.delimiter));
    }
    let mut all = Vec::new();
    for (quote, escape) in quotes {
        let mut by = |delimiter| all.push(Csv { delimiter, quote, escape });
        delimiters.iter().for_each(|delimiter| by(*delimiter));
    }
    all
}

impl Field {
    fn of(rows: &[u8], span: Span, csv: Csv) -> Self {
        let raw = span.of(rows);
        let is_quoted = csv.opens(raw.first());
        Self { position: span.start(), text: csv.unquoted(raw).into_owned(), is_quoted }
    }
}

/// Whether the first record of a sample is a header.
struct HeaderTest<'a> {
    records: &'a [Record],
    options: &'a ImportOptions,
}

/// What a column says about a record over it.
#[derive(PartialEq, Eq)]
enum Evidence {
    Name,
    Value,
    None,
}

impl HeaderTest<'_> {
    fn is_header(&self) -> bool {
        let Some(first) = self.records.first() else { return true };
        if let Some(schema) = &self.options.schema {
            return is_header_of(schema, first, self.options);
        }
        let evidence = self.evidence(0);
        let is_sequence = first.fields.len() > 1
            && first
                .fields
                .iter()
                .enumerate()
                .all(|(position, field)| field.text == position.to_string().as_bytes());
        evidence.contains(&Evidence::Name) || is_sequence || !evidence.contains(&Evidence::Value)
    }

    /// Whether a record names columns of values, beyond doubt.
    fn names_values(&self, at: usize) -> bool {
        self.evidence(at).contains(&Evidence::Name)
    }

    fn evidence(&self, at: usize) -> Vec<Evidence> {
        let Some((first, rest)) = self.records.get(at..).and_then(<[Record]>::split_first) else {
            return Vec::new();
        };
        let options = self.options;
        let nulls = Nulls::new(&options.nulls);
        let notation = options.notation();
        // Where rows have a field more than the header, it is the first.
        let fields = rest.first().map_or(0, |record| record.fields.len()); // default: no rows.
        let shift = usize::from(fields == first.fields.len() + 1);
        let kinds_of = |field: &Field| match nulls.contains(&field.text) && !field.is_quoted {
            true => Kinds::NULL,
            false => Kinds::of(&field.text, &notation),
        };
        let column = |(position, field): (usize, &Field)| {
            let fields = rest.iter().filter_map(|record| record.fields.get(position + shift));
            let seen = fields.map(kinds_of).fold(Kinds::default(), Kinds::union);
            evidence_of(kinds_of(field), &field.text, seen, rest.is_empty())
        };
        first.fields.iter().enumerate().map(column).collect()
    }
}

fn evidence_of(name: Kinds, text: &[u8], column: Kinds, is_alone: bool) -> Evidence {
    let of_values = column.data_type() != DataType::Text;
    if !name.is_value() {
        return if of_values && !text.is_empty() { Evidence::Name } else { Evidence::None };
    }
    if is_alone {
        return Evidence::Value;
    }
    // The name of a column may be a year.
    let is_year = matches!(text, [b'1' | b'2', _, _, _]) && text.iter().all(u8::is_ascii_digit);
    let is_one_more = name.union(column).data_type() == column.data_type();
    if of_values && is_one_more && !is_year { Evidence::Value } else { Evidence::None }
}

/// Whether a record names fields of a schema, rather than having their values.
fn is_header_of(schema: &Schema, first: &Record, options: &ImportOptions) -> bool {
    let fields = schema.fields();
    let named = |field: &Field| fields.iter().any(|f| f.name.as_bytes() == field.text);
    if first.fields.iter().any(named) || fields.len() != first.fields.len() {
        return true;
    }
    let nulls = Nulls::new(&options.nulls);
    let mut has_value = false;
    let fits = first.fields.iter().zip(fields).all(|(field, declared)| {
        let Ok(text) = std::str::from_utf8(&field.text) else { return false };
        let is_null = nulls.contains(&field.text);
        has_value |= !is_null && !matches!(declared.data_type, DataType::Text | DataType::Enum);
        is_null || esker_format::text::parse_value(text, declared.data_type).is_ok()
    });
    !(fits && has_value)
}

#[cfg(test)]
mod tests;
