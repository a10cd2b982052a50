//! A file on its way to be read: its first record, its columns, its schema.

use std::collections::VecDeque;
use std::sync::Arc;

use esker_format::{DataType, Schema};
use esker_vfs::Environment;

use crate::chunk::Layout;
use crate::dialect::{Csv, Dialect};
use crate::fault::{check_names, record_error};
use crate::inference::{Inference, Survey};
use crate::json::Names;
use crate::nulls::Nulls;
use crate::pipeline::Pipeline;
use crate::source::Source;
use crate::splitter::{Chunk, Splitter};
use crate::tokenizer::{self, read_record};
use crate::{Error, ErrorKind, ImportOptions, Result};

/// The name of the field for the names of rows, where there is no other.
const KEY_NAME: &str = "key";

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
}

impl Opened {
    /// Finds the schema of a file. The first of several cannot speak for all of them.
    pub(crate) fn new(
        environment: &Environment,
        file: &str,
        source: Source,
        options: ImportOptions,
        is_one_of_many: bool,
    ) -> Result<Self> {
        let splitter = Splitter::new(source, options.dialect(), options.chunk_bytes)
            .with_record_limit(options.memory_bytes / 2);
        let kept = VecDeque::new();
        let opening = Opening { environment, splitter, options, kept, lines: 0, is_one_of_many };
        opening.finish(file).map_err(|e| e.in_file(file))
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

struct Opening<'a> {
    environment: &'a Environment,
    splitter: Splitter,
    options: ImportOptions,
    kept: VecDeque<Chunk>,
    lines: u64,
    is_one_of_many: bool,
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

impl Opening<'_> {
    fn finish(mut self, file: &str) -> Result<Opened> {
        let dialect = match self.options.dialect() {
            Dialect::Array => {
                let (dialect, lines) = self.splitter.open_json()?;
                self.lines = lines;
                dialect
            }
            dialect => dialect,
        };
        let columns = match (dialect, &self.options.schema) {
            (Dialect::Csv(csv), _) => self.columns(csv)?,
            (_, Some(schema)) => schema.fields().iter().map(|f| f.name.clone()).collect(),
            (Dialect::Keyed, None) => vec![self.key_name()?],
            (_, None) => Vec::new(),
        };
        let layout = Layout {
            dialect,
            nulls: Nulls::new(&self.options.nulls),
            names: Names::default(),
            key: None,
            schema: text_schema(&columns)?,
            sources: (0..columns.len()).map(Some).collect(),
            columns,
            note: String::new(),
        };
        let (layout, inference) = match self.options.schema.take() {
            Some(schema) => (self.declared(layout, schema)?, None),
            None => {
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
        let (splitter, kept, lines) = (self.splitter, self.kept, self.lines);
        Ok(Opened { file: file.to_owned(), splitter, layout, inference, kept, lines })
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

    /// Finds the first record, and from it the names of the columns. Empty lines before it are
    /// rows when there is one column and no header, and are passed over otherwise.
    fn columns(&mut self, csv: Csv) -> Result<Vec<String>> {
        let First { empty, mut chunk, start, end, spans } = self.first_record(csv)?;
        let (options, bytes) = (&self.options, chunk.bytes());
        let lines = empty.iter().map(|chunk| lines_of(chunk.bytes())).sum::<u64>();
        if options.header {
            self.lines = lines + tokenizer::lines_before(bytes, start);
            let names = spans.iter().map(|span| csv.unquoted(span.of(bytes)));
            let names = names.enumerate().map(|(position, name)| {
                String::from_utf8(name.into_owned()).map_err(|e| {
                    let found = esker_format::text::shown(e.as_bytes());
                    let error = Error::data(format!("expected a name in UTF-8, found {found}"));
                    error.on_line(self.lines + 1).in_column(position, "")
                })
            });
            let names: Vec<String> = names.collect::<Result<_>>()?;
            let checked = check_names(&names, "the header");
            checked.map_err(|e| e.on_line(self.lines + 1))?;
            self.lines = lines + tokenizer::lines_before(bytes, end);
            chunk.skip(end);
            self.kept.push_back(chunk);
            return Ok(names);
        }
        let names = match &options.schema {
            Some(schema) => schema.fields().iter().map(|f| f.name.clone()).collect(),
            None => (1..=spans.len()).map(|n| format!("column{n}")).collect::<Vec<_>>(),
        };
        if names.len() == 1 {
            self.kept.extend(empty);
        } else {
            self.lines = lines + tokenizer::lines_before(bytes, start);
            chunk.skip(start);
        }
        self.kept.push_back(chunk);
        Ok(names)
    }

    /// Reads on until a record is not an empty line, or to the end.
    fn first_record(&mut self, csv: Csv) -> Result<First> {
        let mut empty: Vec<Chunk> = Vec::new();
        loop {
            let next = self.splitter.next_chunk()?;
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
                    let lines = empty.iter().map(|chunk| lines_of(chunk.bytes())).sum();
                    record_error(&[], bytes, fault).after_lines(lines)
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

    /// Matches the columns of the file to a given schema.
    fn declared(&self, layout: Layout, schema: Schema) -> Result<Layout> {
        if layout.dialect.is_json() {
            return Ok(Layout { schema, ..layout });
        }
        let names = layout.columns.join(", ");
        for name in &layout.columns {
            schema.expect_position(name).map_err(|_| {
                let fields: Vec<_> = schema.fields().iter().map(|f| f.name.as_str()).collect();
                Error::data(format!(
                    "the file has a column {name:?} that the schema has not (it has {})",
                    fields.join(", ")
                ))
            })?;
        }
        let sources = schema.fields().iter().map(|field| {
            let column = layout.columns.iter().position(|c| *c == field.name);
            if column.is_none() && !field.nullable && field.default.is_none() {
                let name = &field.name;
                let message = format!(
                    "no column for field {name:?}, which must have a value; the columns are {names}"
                );
                return Err(Error::data(message));
            }
            Ok(column)
        });
        Ok(Layout { sources: sources.collect::<Result<_>>()?, schema, ..layout })
    }

    /// Infers the schema: from the whole file when it is small, else from its first rows.
    fn inferred(&mut self, layout: Layout) -> Result<(Layout, Inference)> {
        let layout = Arc::new(layout);
        let shared = Arc::clone(&layout);
        let mut pipeline: Pipeline<Chunk, (Result<Survey>, u64, Chunk)> =
            Pipeline::new(&self.environment.tasks, "inference", move |chunk: Chunk| {
                let bytes = chunk.bytes();
                let lines = tokenizer::lines_before(bytes, bytes.len());
                (Survey::of(&shared, &chunk), lines, chunk)
            });
        let bytes_max = self.options.whole_bytes_max as u64;
        let long = self.splitter.source().plain_bytes().is_some_and(|len| len > bytes_max);
        let mut survey = Survey::default();
        let mut waiting = std::mem::take(&mut self.kept);
        let (mut lines, mut bytes, mut failed) = (self.lines, 0, None);
        loop {
            let enough = bytes > bytes_max || (long && survey.rows >= self.options.sample_rows);
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
            self.kept.push_back(chunk);
        }
        drop(pipeline);
        self.kept.append(&mut waiting);
        if let Some(error) = failed {
            return Err(error.after_lines(lines));
        }
        let whole = self.splitter.at_end() && !self.is_one_of_many;
        let inference = Inference { rows: survey.rows, whole };
        let layout = Arc::into_inner(layout)
            .ok_or_else(|| Error::new(ErrorKind::Io, "a worker has panicked"))?;
        Ok((self.typed(layout, &survey, inference)?, inference))
    }

    fn typed(&self, layout: Layout, survey: &Survey, inference: Inference) -> Result<Layout> {
        let mut key = self.options.key.clone();
        if layout.dialect.is_json() && survey.rows == 0 {
            return Err(Error::data("the file has no rows to infer fields from; give a schema"));
        }
        if layout.dialect == Dialect::Keyed && key.is_empty() {
            key.push(KEY_NAME.to_owned());
        }
        // A file without rows says nothing; its columns are those of the header.
        let columns = if survey.rows == 0 { &layout.columns } else { &survey.names() };
        let mut builder = Schema::builder();
        for name in columns {
            let seen = survey.column(name);
            let kinds = seen.map(|column| column.kinds).unwrap_or_default();
            if kinds.has_nested() {
                return Err(Error::data("arrays and objects have no inferred type; give a schema")
                    .in_field(name));
            }
            let has_null = seen.is_none_or(|column| survey.has_null(column));
            let nullable =
                !key.contains(name) && (has_null || !inference.whole || survey.rows == 0);
            builder = match nullable {
                true => builder.nullable(name.as_str(), kinds.data_type()),
                false => builder.field(name.as_str(), kinds.data_type()),
            };
        }
        if layout.dialect.is_json() {
            check_names(columns, "the file")?;
        }
        let schema = builder.primary_key(key).build();
        let schema = schema.map_err(|e| Error::options(e.to_string()))?;
        let note = if inference.whole {
            String::new()
        } else {
            let rows = inference.rows;
            format!(
                "; the types were inferred from the first {rows} rows: declare them in a schema \
                 (--schema on the command line)"
            )
        };
        let columns = columns.clone();
        Ok(Layout {
            sources: (0..columns.len()).map(Some).collect(),
            schema,
            columns,
            note,
            ..layout
        })
    }
}

/// Fills in what JSON needs: the fields by name, and which of them takes the names of rows.
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
    Ok(Layout { names, key, ..layout })
}

/// A schema of text fields, to hold the place until the types are known.
fn text_schema(columns: &[String]) -> Result<Schema> {
    let (start, none) = (Schema::builder(), [KEY_NAME.to_owned()]);
    let columns = if columns.is_empty() { &none } else { columns };
    let builder = columns.iter().fold(start, |b, name| b.nullable(name.as_str(), DataType::Text));
    builder.build().map_err(|e| Error::data(e.to_string()))
}
