//! The way in: a file, its schema, its rows in file order.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use esker_format::{Batch, DataType, Schema};
use esker_vfs::Environment;

use crate::chunk::{self, Layout, Parsed, record_error};
use crate::inference::{Inference, Survey};
use crate::nulls::Nulls;
use crate::options::CHUNK_FACTOR;
use crate::pipeline::{Pipeline, depth};
use crate::source::Source;
use crate::splitter::{Chunk, Splitter};
use crate::tokenizer::{self, read_record};
use crate::{CsvOptions, Error, ErrorKind, Result};

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows handed over so far, those of the batch at hand included.
    pub rows: u64,
    /// Bytes of the file read so far, compressed as it is. Reading runs a little ahead.
    pub file_bytes_read: u64,
    /// Bytes of the file in all, when known.
    pub file_bytes: Option<u64>,
}

/// What was read in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows handed over.
    pub rows: u64,
    /// Batches they came in.
    pub batches: u64,
    /// Lines of the file, the header included.
    pub lines: u64,
    /// Bytes of the file, compressed as it is.
    pub file_bytes: u64,
}

/// A CSV file, opened: its schema is known, its rows are still to be read.
///
/// ```
/// use esker_import::{CsvOptions, CsvReader, Error};
/// use esker_vfs::Environment;
///
/// let text = "name,height\nAnna,1.70\nBo,\n";
/// let reader = CsvReader::from_reader(
///     &Environment::os(), "people.csv", text.as_bytes(), None, CsvOptions::default(),
/// )?;
/// assert_eq!(esker_import::schema_text::write(reader.schema()), "name text not null, height f64");
/// let report = reader.read(|batch, progress| {
///     println!("{} rows, {} so far", batch.len(), progress.rows);
///     Ok::<_, Error>(())
/// })?;
/// assert_eq!(report.rows, 2);
/// # Ok::<(), Error>(())
/// ```
pub struct CsvReader {
    environment: Environment,
    file: String,
    splitter: Splitter,
    layout: Layout,
    inference: Option<Inference>,
    /// Chunks read already, in order.
    kept: VecDeque<Chunk>,
    /// Lines before the first chunk.
    lines: u64,
}

impl CsvReader {
    /// Opens a file and finds its schema. Compression is told by the first bytes.
    ///
    /// # Errors
    /// When the file cannot be read, has no usable header, or does not fit the options.
    pub fn open(environment: &Environment, path: &Path, options: CsvOptions) -> Result<Self> {
        let file = path.display().to_string();
        let source = Source::open(environment, path);
        Self::start(environment, file, source, options)
    }

    /// The same, from anything that can be read; `file` is its name in errors, `file_bytes` its
    /// length when known.
    ///
    /// # Errors
    /// Those of [`CsvReader::open`].
    pub fn from_reader(
        environment: &Environment,
        file: &str,
        bytes: impl Read + Send + 'static,
        file_bytes: Option<u64>,
        options: CsvOptions,
    ) -> Result<Self> {
        let source = Source::new(Box::new(bytes), file_bytes);
        Self::start(environment, file.to_owned(), source, options)
    }

    /// The fields that batches will have.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.layout.schema
    }

    /// How the schema was inferred; `None` when it was given.
    #[must_use]
    pub fn inference(&self) -> Option<Inference> {
        self.inference
    }

    /// About how much memory [`CsvReader::read`] takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let chunks = chunks_at_a_time(&self.environment) * CHUNK_FACTOR;
        let kept: usize = self.kept.iter().map(Chunk::memory_bytes).sum();
        (kept + chunks.saturating_mul(self.splitter.chunk_bytes())) as u64
    }

    fn start(
        environment: &Environment,
        file: String,
        source: Result<Source>,
        mut options: CsvOptions,
    ) -> Result<Self> {
        options.validate()?;
        options.fit_memory(chunks_at_a_time(environment));
        let source = source.map_err(|e| e.in_file(&file))?;
        let splitter = Splitter::new(source, options.delimiter, options.chunk_bytes)
            .with_record_limit(options.memory_bytes / 2);
        let opening = Opening { environment, splitter, options, kept: VecDeque::new(), lines: 0 };
        opening.finish(&file)
    }

    /// Reads all rows. `consume` gets them in file order, in batches of a few MiB, and may stop
    /// the import by an error.
    ///
    /// # Errors
    /// The first record or value in file order that does not fit, with its place; or what
    /// `consume` returns.
    pub fn read<E: From<Error>>(
        self,
        mut consume: impl FnMut(Batch, Progress) -> std::result::Result<(), E>,
    ) -> std::result::Result<ImportReport, E> {
        let Self { environment, file, mut splitter, layout, mut kept, mut lines, .. } = self;
        let mut pipeline: Pipeline<Result<Chunk>, Result<Parsed>> =
            Pipeline::new(&environment.tasks, "csv", move |chunk: Result<Chunk>| {
                chunk.map(|chunk| chunk::parse(&layout, chunk))
            });
        let (mut rows, mut batches, mut at_end) = (0, 0, false);
        loop {
            while !at_end && pipeline.in_flight() < pipeline.depth() {
                let next = kept.pop_front().map_or_else(|| splitter.next_chunk(), |c| Ok(Some(c)));
                match next.transpose() {
                    Some(chunk) => pipeline.push(chunk),
                    None => at_end = true,
                }
            }
            if pipeline.in_flight() == 0 {
                break;
            }
            let panicked = || Error::new(ErrorKind::Io, "a worker has panicked").in_file(&file);
            let parsed = pipeline.next().ok_or_else(panicked)?;
            let parsed = parsed.map_err(|e| e.in_file(&file).after_lines(lines))?;
            let rows_and_lines = parsed.rows.map_err(|e| e.in_file(&file).after_lines(lines));
            let (batch, more_lines) = rows_and_lines?;
            lines += more_lines;
            rows += batch.len() as u64;
            batches += 1;
            splitter.recycle(parsed.buffer);
            let source = splitter.source();
            let (file_bytes_read, file_bytes) = (source.file_bytes_read(), source.file_bytes());
            consume(batch, Progress { rows, file_bytes_read, file_bytes })?;
        }
        let file_bytes = splitter.source().file_bytes_read();
        Ok(ImportReport { rows, batches, lines, file_bytes })
    }
}

/// Chunks that are read, parsed or handed over, and the start of the next one.
fn chunks_at_a_time(environment: &Environment) -> usize {
    depth(environment.tasks.parallelism()) + 1
}

/// A file on its way to a [`CsvReader`].
struct Opening<'a> {
    environment: &'a Environment,
    splitter: Splitter,
    options: CsvOptions,
    kept: VecDeque<Chunk>,
    lines: u64,
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
    fn finish(mut self, file: &str) -> Result<CsvReader> {
        let columns = self.columns().map_err(|e| e.in_file(file))?;
        let layout = Layout {
            delimiter: self.options.delimiter,
            nulls: Nulls::new(&self.options.nulls),
            schema: text_schema(&columns).map_err(|e| e.in_file(file))?,
            sources: (0..columns.len()).collect(),
            columns,
            note: String::new(),
        };
        let (layout, inference) = match self.options.schema.take() {
            Some(schema) => (self.declared(layout, schema).map_err(|e| e.in_file(file))?, None),
            None => {
                let (layout, inference) = self.inferred(layout).map_err(|e| e.in_file(file))?;
                (layout, Some(inference))
            }
        };
        Ok(CsvReader {
            environment: self.environment.clone(),
            file: file.to_owned(),
            splitter: self.splitter,
            layout,
            inference,
            kept: self.kept,
            lines: self.lines,
        })
    }

    /// Finds the first record, and from it the names of the columns. Empty lines before it are
    /// rows when there is one column and no header, and are passed over otherwise.
    fn columns(&mut self) -> Result<Vec<String>> {
        let First { empty, mut chunk, start, end, spans } = self.first_record()?;
        let (options, bytes) = (&self.options, chunk.bytes());
        let lines = empty.iter().map(|chunk| lines_of(chunk.bytes())).sum::<u64>();
        if options.header {
            self.lines = lines + tokenizer::lines_before(bytes, start);
            let names = spans.iter().map(|span| chunk::unquoted(span.of(bytes), true));
            let names = names.enumerate().map(|(position, name)| {
                String::from_utf8(name.into_owned()).map_err(|e| {
                    let found = esker_format::text::shown(e.as_bytes());
                    let error = Error::data(format!("expected a name in UTF-8, found {found}"));
                    error.on_line(self.lines + 1).in_column(position, "")
                })
            });
            let names: Vec<String> = names.collect::<Result<_>>()?;
            self.check_names(&names)?;
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
    fn first_record(&mut self) -> Result<First> {
        let delimiter = self.options.delimiter;
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
                let end = read_record(bytes, start, delimiter, &mut spans).map_err(|fault| {
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

    fn check_names(&self, names: &[String]) -> Result<()> {
        let on_header = |message: String| Error::data(message).on_line(self.lines + 1);
        let mut seen = std::collections::BTreeSet::new();
        for (position, name) in names.iter().enumerate() {
            let number = position + 1;
            esker_format::schema::validate_name("column", name).map_err(|e| {
                on_header(format!("the header has a bad name for column {number}: {e}"))
            })?;
            if !seen.insert(name) {
                return Err(on_header(format!("the header names column {name:?} twice")));
            }
        }
        Ok(())
    }

    /// Matches the columns of the file to a given schema.
    fn declared(&self, layout: Layout, schema: Schema) -> Result<Layout> {
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
            layout.columns.iter().position(|c| *c == field.name).ok_or_else(|| {
                Error::data(format!(
                    "no column for field {:?}; the columns are {names}",
                    field.name
                ))
            })
        });
        Ok(Layout { sources: sources.collect::<Result<_>>()?, schema, ..layout })
    }

    /// Infers the schema: from the whole file when it is small, else from its first rows.
    fn inferred(&mut self, layout: Layout) -> Result<(Layout, Inference)> {
        let layout = Arc::new(layout);
        let shared = Arc::clone(&layout);
        let mut pipeline: Pipeline<Chunk, (Result<Survey>, u64, Chunk)> =
            Pipeline::new(&self.environment.tasks, "csv inference", move |chunk: Chunk| {
                let bytes = chunk.bytes();
                let lines = tokenizer::lines_before(bytes, bytes.len());
                (Survey::of(&shared, &chunk), lines, chunk)
            });
        let bytes_max = self.options.whole_bytes_max as u64;
        let long = self.splitter.source().plain_bytes().is_some_and(|len| len > bytes_max);
        let mut survey = Survey::new(layout.columns.len());
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
            survey.merge(&seen.map_err(|e| e.after_lines(lines))?);
            lines += more_lines;
            self.kept.push_back(chunk);
        }
        drop(pipeline);
        self.kept.append(&mut waiting);
        if let Some(error) = failed {
            return Err(error.after_lines(lines));
        }
        let inference = Inference { rows: survey.rows, whole: self.splitter.at_end() };
        let layout = Arc::into_inner(layout)
            .ok_or_else(|| Error::new(ErrorKind::Io, "a worker has panicked"))?;
        Ok((self.typed(layout, &survey, inference)?, inference))
    }

    fn typed(&self, layout: Layout, survey: &Survey, inference: Inference) -> Result<Layout> {
        let mut builder = Schema::builder();
        for (name, kinds) in layout.columns.iter().zip(&survey.columns) {
            let nullable = !self.options.key.contains(name)
                && (kinds.has_null() || !inference.whole || inference.rows == 0);
            builder = match nullable {
                true => builder.nullable(name.as_str(), kinds.data_type()),
                false => builder.field(name.as_str(), kinds.data_type()),
            };
        }
        let schema = builder.primary_key(self.options.key.iter().cloned()).build();
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
        Ok(Layout { schema, note, ..layout })
    }
}

/// A schema of text fields, to hold the place until the types are known.
fn text_schema(columns: &[String]) -> Result<Schema> {
    let start = Schema::builder();
    let builder = columns.iter().fold(start, |b, name| b.nullable(name.as_str(), DataType::Text));
    builder.build().map_err(|e| Error::data(e.to_string()))
}

#[cfg(test)]
mod tests;
