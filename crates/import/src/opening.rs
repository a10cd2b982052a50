//! A file on its way to be read: how it is written, its first record, its columns, its schema.

use std::collections::VecDeque;
use std::sync::Arc;

use esker_format::{DataType, Schema};
use esker_vfs::Environment;

use crate::chunk::Layout;
use crate::dialect::{Csv, Dialect};
use crate::fault::record_error;
use crate::header::Header;
use crate::inference::{Inference, Survey};
use crate::input::Input;
use crate::json::{self, Names, RowsPlace};
use crate::nulls::Nulls;
use crate::options::{Format, Unknown};
use crate::pipeline::Pipeline;
use crate::sniff::{SAMPLE_BYTES, Sniffed, Unnamed, sniff};
use crate::source::Source;
use crate::splitter::{Chunk, Splitter};
use crate::tokenizer::{self, read_record};
use crate::typing::rest_field;
use crate::{Error, ErrorKind, ImportOptions, Result};

/// The name of the field for the names of rows, where there is no other.
pub(crate) const KEY_NAME: &str = "key";

/// A file whose schema is known, and whose rows are still to be read.
pub(crate) struct Opened {
    pub(crate) file: String,
    pub(crate) splitter: Splitter,
    pub(crate) layout: Layout,
    pub(crate) inference: Option<Inference>,
    /// Chunks read already, in order: the first at least.
    pub(crate) kept: VecDeque<Chunk>,
    /// Lines before the first chunk.
    pub(crate) lines: u64,
    /// Whether the first record names the columns.
    pub(crate) header: bool,
    /// How CSV is written, in words, where that was found out.
    pub(crate) form: Option<String>,
    /// What is not as the file has it, and what may help, in words.
    pub(crate) notes: Vec<String>,
}

impl Opened {
    /// Finds the schema of a file. The first of several cannot speak for all of them.
    pub(crate) fn new(
        environment: &Environment,
        input: &Input,
        options: ImportOptions,
        is_one_of_many: bool,
    ) -> Result<Self> {
        let opening = Opening::new(environment, input, options, is_one_of_many);
        let opened = opening.and_then(|opening| {
            let gone = opening.splitter.source().gone();
            opening.finish(&input.name).map_err(|e| e.beside(&gone))
        });
        opened.map_err(|e| e.in_file(&input.name))
    }

    /// How many bytes of text there are to read, when that is known.
    pub(crate) fn text_bytes(&self) -> Option<u64> {
        let kept = self.kept.iter().map(|chunk| chunk.bytes().len() as u64).sum();
        if self.splitter.at_end() {
            return Some(kept);
        }
        // There is more: a length that does not say so is none, as that of a pipe.
        self.splitter.source().plain_bytes().filter(|bytes| *bytes > kept)
    }
}

/// The columns of some files of CSV, by their names.
///
/// # Errors
/// When one cannot be read, or has none.
pub(crate) fn columns_of(
    environment: &Environment,
    inputs: &[Input],
    options: &ImportOptions,
) -> Result<Vec<Vec<String>>> {
    let mut options = options.clone();
    let mut all = Vec::new();
    for input in inputs {
        let opening = Opening::new(environment, input, options.clone(), inputs.len() > 1);
        let columns = opening.and_then(|mut opening| {
            let Layout { mut columns, blank, .. } = opening.layout()?;
            // The first says for all whether there is a header.
            options.header = opening.options.header;
            options.sniffs.header = false;
            blank.map(|at| columns.remove(at));
            Ok(columns)
        });
        all.push(columns.map_err(|e| e.in_file(&input.name))?);
    }
    Ok(all)
}

/// What all rows of some files hold.
///
/// # Errors
/// When one cannot be read, or a record is none.
pub(crate) fn survey(
    environment: &Environment,
    inputs: &[Input],
    options: &ImportOptions,
) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut options = options.clone();
    for (number, input) in inputs.iter().enumerate() {
        let mut opening = Opening::new(environment, input, options.clone(), inputs.len() > 1)
            .map_err(|e| e.in_file(&input.name))?;
        let seen = opening.layout().and_then(|layout| {
            let mut waiting = std::mem::take(&mut opening.kept);
            // The column behind the last delimiter, of a file that others come before.
            let blank = layout.blank.filter(|_| number > 0);
            let blank = blank.and_then(|at| layout.columns.get(at).cloned());
            let gone = opening.splitter.source().gone();
            let seen = opening.look(&Arc::new(layout), &mut waiting, Extent::All);
            let seen = seen.map_err(|e| e.beside(&gone))?;
            Ok(seen.without_blank(blank.as_deref()))
        });
        survey.merge(seen.map_err(|e| e.in_file(&input.name))?);
        // The first says for all whether there is a header.
        options.header = opening.options.header;
        options.sniffs.header = false;
    }
    Ok(survey)
}

pub(crate) struct Opening<'a> {
    environment: &'a Environment,
    pub(crate) splitter: Splitter,
    pub(crate) options: ImportOptions,
    pub(crate) kept: VecDeque<Chunk>,
    pub(crate) lines: u64,
    pub(crate) is_one_of_many: bool,
    dialect: Dialect,
    sniffed: Option<Sniffed>,
    pub(crate) notes: Vec<String>,
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The start, at least, which is kept.
    Start,
    All,
}

/// The first record of a file.
struct First {
    /// Chunks before it, of empty lines only.
    empty: Vec<Chunk>,
    /// The chunk it stands in.
    chunk: Chunk,
    /// Where in the chunk.
    start: usize,
    end: usize,
    spans: Vec<tokenizer::Span>,
}

fn lines_of(bytes: &[u8]) -> u64 {
    tokenizer::lines_before(bytes, bytes.len())
}

impl<'a> Opening<'a> {
    fn new(
        environment: &'a Environment,
        input: &Input,
        mut options: ImportOptions,
        is_one_of_many: bool,
    ) -> Result<Self> {
        let mut source = input.source(environment)?;
        let mut lines = source.skip_lines(options.skip)?;
        let mut sniffed = None;
        let mut dialect = options.dialect();
        if options.format == Format::Csv {
            let found = sniff_source(&mut source, &mut options, lines)?;
            lines += found.as_ref().map_or(0, |found| found.skip); // default: nothing to skip.
            dialect = options.dialect();
            sniffed = found;
        } else {
            (dialect, lines) = find_json(&mut source, dialect, &options, lines)?;
        }
        let mut splitter = Splitter::new(source, dialect, options.chunk_bytes)
            .with_record_limit(options.memory_bytes / 2);
        if dialect == Dialect::Array {
            let (found, before) = splitter.open_json().map_err(|e| e.after_lines(lines))?;
            dialect = found;
            lines += before;
        }
        let (kept, notes) = (VecDeque::new(), Vec::new());
        Ok(Self {
            environment,
            splitter,
            options,
            kept,
            lines,
            is_one_of_many,
            dialect,
            sniffed,
            notes,
        })
    }

    fn finish(mut self, file: &str) -> Result<Opened> {
        let layout = self.layout()?;
        let is_partial = self.options.infers_rest() && self.options.survey.is_some();
        let (layout, inference) = match &self.options.schema {
            Some(schema) if !is_partial => {
                let schema = schema.clone();
                self.expect_known(&layout)?;
                (self.declared(layout, schema)?, None)
            }
            _ => {
                let (layout, inference) = self.inferred(layout)?;
                (layout, Some(inference))
            }
        };
        let layout = with_names(layout)?;
        if self.kept.is_empty() {
            // Of a small file all is known then.
            let first = self.splitter.next_chunk().map_err(|e| e.after_lines(self.lines))?;
            self.kept.extend(first);
        }
        let form = self.sniffed.as_ref().map(|_| self.form());
        let header = self.options.header;
        let Self { splitter, kept, lines, notes, .. } = self;
        let file = file.to_owned();
        Ok(Opened { file, splitter, layout, inference, kept, lines, header, form, notes })
    }

    /// What chunks are surveyed by: all but the types is known.
    fn layout(&mut self) -> Result<Layout> {
        let (columns, blank) = match (self.dialect, &self.options.schema) {
            (Dialect::Csv(csv), _) => self.columns(csv)?,
            (Dialect::Keyed, Some(schema)) if self.options.infers_rest() => {
                // What the names of rows are in comes first.
                let fields = schema.fields();
                let key = schema.key_positions().iter().filter_map(|at| fields.get(*at));
                let mut names: Vec<String> = key.map(|field| field.name.clone()).collect();
                let others: Vec<String> = fields
                    .iter()
                    .filter(|field| !names.contains(&field.name))
                    .map(|field| field.name.clone())
                    .collect();
                names.extend(others);
                (names, None)
            }
            (_, Some(schema)) => (schema.fields().iter().map(|f| f.name.clone()).collect(), None),
            (Dialect::Keyed, None) => (vec![self.key_name()?], None),
            (_, None) => (Vec::new(), None),
        };
        Ok(Layout {
            dialect: self.dialect,
            nulls: Nulls::new(&self.options.nulls),
            names: Names::default(),
            key: None,
            schema: text_schema(&columns)?,
            sources: (0..columns.len()).map(Some).collect(),
            columns,
            note: String::new(),
            notation: self.options.notation(),
            spellings: self.options.spellings,
            unknown: self.options.unknown.clone(),
            rest: None,
            blank,
            untyped: Vec::new(),
            rest_columns: Vec::new(),
        })
    }

    /// How CSV is written, in words.
    fn form(&self) -> String {
        let csv = self.options.csv();
        let delimiter = match csv.delimiter {
            b'\t' => "tabs".to_owned(),
            byte => format!("{:?}", char::from(byte)),
        };
        let quote = csv.quote.map_or("none".to_owned(), |byte| char::from(byte).to_string());
        let mut form = format!("delimiter {delimiter}, quote {quote}");
        if let Some(escape) = csv.escape {
            form.push_str(&format!(", escape {}", char::from(escape)));
        }
        if let Some(comment) = self.sniffed.as_ref().and_then(|sniffed| sniffed.comment) {
            form.push_str(&format!(", comments behind {}", char::from(comment.start)));
        }
        form.push_str(if self.options.header { ", with a header" } else { ", without a header" });
        form
    }

    /// The field that the names of rows go to.
    fn key_name(&self) -> Result<String> {
        match self.options.key.as_slice() {
            [] => Ok(KEY_NAME.to_owned()),
            [name] => Ok(name.clone()),
            names => Err(Error::options(format!(
                "the file has rows by one name each; expected one key field, found {}",
                names.join(", ")
            ))),
        }
    }

    /// Finds the first record, and from it the names of the columns, and which of them may be
    /// nothing but the end of a line. Empty lines before it are rows when there is one column and
    /// no header, and are passed over otherwise.
    fn columns(&mut self, csv: Csv) -> Result<(Vec<String>, Option<usize>)> {
        let First { empty, mut chunk, start, end, spans } = self.first_record(csv)?;
        let bytes = chunk.bytes();
        let lines = empty.iter().map(|chunk| lines_of(chunk.bytes())).sum::<u64>();
        if self.options.header {
            self.lines += lines + tokenizer::lines_before(bytes, start);
            let names = spans.iter().map(|span| csv.unquoted(span.of(bytes)));
            let names = names.enumerate().map(|(position, name)| {
                String::from_utf8(name.into_owned()).map_err(|e| {
                    let found = esker_format::text::shown(e.as_bytes());
                    let error = Error::data(format!("expected a name in UTF-8, found {found}"));
                    error.on_line(self.lines + 1).in_column(position, "")
                })
            });
            let names: Vec<String> = names.collect::<Result<_>>()?;
            let line = self.lines + 1;
            self.lines +=
                tokenizer::lines_before(bytes, end) - tokenizer::lines_before(bytes, start);
            chunk.skip(end);
            self.kept.push_back(chunk);
            return self.named(names).map_err(|e| e.on_line(line));
        }
        let fields = spans.len();
        if fields == 1 {
            self.kept.extend(empty);
        } else {
            self.lines += lines + tokenizer::lines_before(bytes, start);
            chunk.skip(start);
        }
        self.kept.push_back(chunk);
        if !self.options.columns.is_empty() {
            return self.named(vec![String::new(); fields]);
        }
        let mut names: Vec<String> = match &self.options.schema {
            Some(schema) => schema.fields().iter().map(|f| f.name.clone()).collect(),
            None => Vec::new(),
        };
        if self.options.schema.is_none() || self.options.infers_rest() {
            names.extend((names.len() + 1..=fields).map(|n| format!("column{n}")));
        }
        Ok((names, None))
    }

    /// The names of the columns, by those in the header or those that are given.
    fn named(&mut self, mut names: Vec<String>) -> Result<(Vec<String>, Option<usize>)> {
        let unnamed = self.sniffed.as_ref().and_then(|sniffed| sniffed.unnamed);
        match unnamed {
            Some(Unnamed::First) => names.insert(0, String::new()),
            Some(Unnamed::Last) => names.push(String::new()),
            None => {}
        }
        if self.sniffed.as_ref().is_some_and(|sniffed| sniffed.header_is_longer) {
            names.pop();
            self.notes.push("the header ends with a delimiter, the rows do not".to_owned());
        }
        let has_blank = names.len() > 1 && names.last().is_some_and(String::is_empty);
        let given = &self.options.columns;
        if !given.is_empty() {
            let count = names.len();
            if given.len() != count && !(has_blank && given.len() + 1 == count) {
                let given = given.len();
                return Err(Error::options(format!(
                    "expected a name for each of {count} columns, found {given} names"
                )));
            }
            let unnamed = names.split_off(given.len());
            names = given.iter().cloned().chain(unnamed).collect();
        }
        let header = Header::of(names);
        for (number, name) in header.names.iter().enumerate().map(|(at, name)| (at + 1, name)) {
            esker_format::schema::validate_name("column", name)
                .map_err(|e| Error::data(format!("the header: column {number}: {e}")))?;
        }
        let blank = header.last_is_unnamed.then(|| header.names.len() - 1);
        self.notes.extend(header.changes);
        Ok((header.names, blank))
    }

    /// Reads on until a record is not an empty line, or to the end.
    fn first_record(&mut self, csv: Csv) -> Result<First> {
        let mut empty: Vec<Chunk> = Vec::new();
        loop {
            let next = self.splitter.next_chunk().map_err(|e| e.after_lines(self.lines))?;
            let (chunk, is_last) = match (next, empty.pop()) {
                (Some(chunk), last) => {
                    empty.extend(last);
                    (chunk, false)
                }
                (None, Some(last)) => (last, true),
                (None, None) => {
                    let expected = if self.options.header { "a header line" } else { "a row" };
                    return Err(Error::data(format!("the file is empty; expected {expected}")));
                }
            };
            let bytes = chunk.bytes();
            let (mut spans, mut start) = (Vec::new(), 0);
            while start < bytes.len() {
                spans.clear();
                let end = read_record(bytes, start, csv, &mut spans).map_err(|fault| {
                    let lines = empty.iter().map(|chunk| lines_of(chunk.bytes())).sum::<u64>();
                    record_error(&[], bytes, fault).after_lines(self.lines + lines)
                })?;
                let is_empty = matches!(spans.as_slice(), [only] if only.of(bytes).is_empty());
                if !is_empty || (is_last && end == bytes.len()) {
                    return Ok(First { empty, chunk, start, end, spans });
                }
                start = end;
            }
            empty.push(chunk);
        }
    }

    /// Infers the schema: from what is known of all rows, from the whole file when it is small,
    /// else from its first rows.
    fn inferred(&mut self, layout: Layout) -> Result<(Layout, Inference)> {
        if let Some(survey) = self.options.survey.clone() {
            let inference = Inference { rows: survey.rows, whole: true };
            return Ok((self.typed(layout, &survey, inference)?, inference));
        }
        let layout = Arc::new(layout);
        let mut waiting = std::mem::take(&mut self.kept);
        let survey = self.look(&layout, &mut waiting, Extent::Start)?;
        self.kept.append(&mut waiting);
        let whole = self.splitter.at_end() && !self.is_one_of_many;
        let inference = Inference { rows: survey.rows, whole };
        let layout = Arc::into_inner(layout)
            .ok_or_else(|| Error::new(ErrorKind::Io, "a worker has panicked"))?;
        Ok((self.typed(layout, &survey, inference)?, inference))
    }

    /// Refuses a file of JSON whose first rows have members that the schema does not name, where
    /// inference adds their fields.
    fn expect_known(&mut self, layout: &Layout) -> Result<()> {
        if !layout.dialect.is_json() || !self.options.infers_rest() {
            return Ok(());
        }
        let Some(chunk) = self.splitter.next_chunk().map_err(|e| e.after_lines(self.lines))? else {
            return Ok(());
        };
        let seen = Survey::of(layout, &chunk, true);
        self.kept.push_back(chunk);
        // What is wrong with a row is found where it is read.
        let names = seen.map(|seen| seen.names()).unwrap_or_default();
        match names.iter().find(|name| !layout.columns.contains(name)) {
            Some(name) => {
                Err(Error::data(format!("the schema does not name {name:?}")).contradicting())
            }
            None => Ok(()),
        }
    }

    /// Surveys chunks in parallel: those that wait, then more. The start is kept.
    fn look(
        &mut self,
        layout: &Arc<Layout>,
        waiting: &mut VecDeque<Chunk>,
        extent: Extent,
    ) -> Result<Survey> {
        let (shared, passes_over) = (Arc::clone(layout), self.options.passes_over);
        let mut pipeline: Pipeline<Chunk, (Result<Survey>, u64, Chunk)> =
            Pipeline::new(&self.environment.tasks, "inference", move |chunk: Chunk| {
                let bytes = chunk.bytes();
                let lines = tokenizer::lines_before(bytes, bytes.len());
                (Survey::of(&shared, &chunk, passes_over), lines, chunk)
            });
        let bytes_max = self.options.whole_bytes_max as u64;
        let long = self.splitter.source().plain_bytes().is_some_and(|len| len > bytes_max);
        let mut survey = Survey::default();
        let (mut lines, mut bytes, mut failed) = (self.lines, 0, None);
        loop {
            let enough = extent == Extent::Start
                && (bytes > bytes_max || (long && survey.rows >= self.options.sample_rows));
            if !enough && failed.is_none() && pipeline.in_flight() < pipeline.depth() {
                let next = waiting.pop_front();
                match next.map_or_else(|| self.splitter.next_chunk(), |c| Ok(Some(c))) {
                    Ok(Some(chunk)) => {
                        bytes += chunk.bytes().len() as u64;
                        pipeline.push(chunk);
                        continue;
                    }
                    Ok(None) if pipeline.in_flight() == 0 => break,
                    Ok(None) => {}
                    Err(error) => failed = Some(error),
                }
            }
            let Some((seen, more_lines, chunk)) = pipeline.next() else { break };
            survey.merge(seen.map_err(|e| e.after_lines(lines))?);
            lines += more_lines;
            match extent {
                Extent::Start => self.kept.push_back(chunk),
                Extent::All => self.splitter.recycle(chunk.into_buffer()),
            }
        }
        drop(pipeline);
        failed.map_or(Ok(survey), |error| Err(error.after_lines(lines)))
    }
}

/// Finds out how CSV is written, as far as that is wanted, and leaves out what is no row.
fn sniff_source(
    source: &mut Source,
    options: &mut ImportOptions,
    lines: u64,
) -> Result<Option<Sniffed>> {
    if options.sniffs == crate::sniff::Wanted::default() && options.comment.is_none() {
        return Ok(None);
    }
    let sample = source.peek(SAMPLE_BYTES)?;
    let sniffed = sniff(&sample, sample.len() < SAMPLE_BYTES, options);
    options.delimiter = sniffed.csv.delimiter;
    options.quote = sniffed.csv.quote;
    options.escape = sniffed.csv.escape;
    options.header = sniffed.header;
    source.skip_lines(sniffed.skip)?;
    if let Some(comment) = sniffed.comment {
        source.leave_out(sniffed.csv, comment, lines + sniffed.skip);
    }
    Ok(Some(sniffed))
}

/// Finds the rows of a file of JSON: how they are strung together, and how many lines are before
/// them.
fn find_json(
    source: &mut Source,
    dialect: Dialect,
    options: &ImportOptions,
    lines: u64,
) -> Result<(Dialect, u64)> {
    if !options.path.is_empty() {
        let before = json::enter(source, &options.path).map_err(|e| e.after_lines(lines))?;
        return Ok((Dialect::Array, lines + before));
    }
    if !options.finds_rows {
        return Ok((dialect, lines));
    }
    let sample = source.peek(4 * SAMPLE_BYTES)?;
    if dialect == Dialect::Lines {
        let is_array = sample.trim_ascii_start().first() == Some(&b'[');
        return Ok((if is_array { Dialect::Array } else { dialect }, lines));
    }
    match json::find_rows(&sample, sample.len() < 4 * SAMPLE_BYTES) {
        RowsPlace::Document => Ok((dialect, lines)),
        RowsPlace::Lines => Ok((Dialect::Lines, lines)),
        RowsPlace::One => {
            source.replace(|rest| {
                Box::new(std::io::Read::chain(std::io::Read::chain(&b"["[..], rest), &b"]"[..]))
            });
            Ok((dialect, lines))
        }
        RowsPlace::Within(arrays) => {
            let paths: Vec<String> = arrays.iter().map(|name| format!("$.{name}")).collect();
            let which = match paths.as_slice() {
                [] => "the path of the array of its rows, such as $.rows".to_owned(),
                paths => format!("the path of its rows, {}", paths.join(" or ")),
            };
            Err(Error::data(format!(
                "the file is one object; give {which} (--path on the command line)"
            )))
        }
    }
}

/// Fills in what JSON needs: the fields by name, which of them takes the names of rows, and which
/// takes what no other does.
fn with_names(layout: Layout) -> Result<Layout> {
    if !layout.dialect.is_json() {
        return Ok(layout);
    }
    let names = Names::new(layout.columns.iter().map(String::as_str));
    let key = match (layout.dialect, layout.schema.key_positions()) {
        (Dialect::Keyed, [key]) => Some(*key),
        (Dialect::Keyed, _) => {
            return Err(Error::data(
                "the file is an object of rows by their names; expected a primary key of one \
                 field, which takes the names",
            ));
        }
        _ => None,
    };
    let rest = match &layout.unknown {
        Unknown::Field(name) => Some(rest_field(&layout.schema, name)?),
        Unknown::Error | Unknown::Ignore | Unknown::Infer => None,
    };
    Ok(Layout { names, key, rest, ..layout })
}

/// A schema of text fields, to hold the place until the types are known.
fn text_schema(columns: &[String]) -> Result<Schema> {
    let (start, none) = (Schema::builder(), [KEY_NAME.to_owned()]);
    let columns = if columns.is_empty() { &none } else { columns };
    let builder = columns.iter().fold(start, |b, name| b.nullable(name.as_str(), DataType::Text));
    builder.build().map_err(|e| Error::data(e.to_string()))
}
