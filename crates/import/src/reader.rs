//! The way in: files, their schema, their rows in order.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::{Batch, Schema};
use esker_vfs::Environment;

use crate::chunk::{self, Parsed, Reject};
use crate::inference::Inference;
use crate::input::Input;
use crate::opening::{Opened, columns_of, survey};
use crate::options::{CHUNK_FACTOR, Unknown};
use crate::pipeline::{Pipeline, depth};
use crate::places::Places;
use crate::splitter::Chunk;
use crate::{Error, ErrorKind, Format, ImportOptions, Result};

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows handed over so far, those of the batch at hand included.
    pub rows: u64,
    /// Bytes of the files read so far, compressed as they are. Reading runs a little ahead.
    pub file_bytes_read: u64,
    /// Bytes of the files in all, when known.
    pub file_bytes: Option<u64>,
}

/// What was read in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Rows handed over.
    pub rows: u64,
    /// Rows left out.
    pub rejects: u64,
    /// Batches they came in.
    pub batches: u64,
    /// Lines of the files, headers included.
    pub lines: u64,
    /// Bytes of the files, compressed as they are.
    pub file_bytes: u64,
}

/// What takes a batch of rows, or a row that does not fit.
type Taker<'a, T, E> = &'a mut dyn FnMut(T, Progress) -> std::result::Result<(), E>;

/// One or more files, opened: their schema is known, their rows are still to be read.
///
/// ```
/// use esker_import::{ImportOptions, ImportReader, Error};
/// use esker_vfs::Environment;
///
/// let text = "name,height\nAnna,1.70\nBo,\n";
/// let reader = ImportReader::from_reader(
///     &Environment::os(), "people.csv", text.as_bytes(), None, ImportOptions::default(),
/// )?;
/// assert_eq!(esker_import::schema_text::write(reader.schema()), "name text, height f64");
/// let report = reader.read(|batch, progress| {
///     println!("{} rows, {} so far", batch.len(), progress.rows);
///     Ok::<_, Error>(())
/// })?;
/// assert_eq!(report.rows, 2);
/// # Ok::<(), Error>(())
/// ```
pub struct ImportReader {
    environment: Environment,
    options: ImportOptions,
    first: Opened,
    /// The files after the first.
    others: VecDeque<Input>,
    /// How to begin again with the types of all rows, where some only were looked at.
    again: Option<Again>,
    /// Bytes of all files, when known.
    file_bytes: Option<u64>,
    places: Places,
}

impl ImportReader {
    /// Opens a file and finds its schema. The first bytes tell whether it is compressed.
    ///
    /// # Errors
    /// When the file cannot be read, has no usable header, or does not fit the options.
    pub fn open(environment: &Environment, path: &Path, options: ImportOptions) -> Result<Self> {
        Self::open_all(environment, &[path.to_owned()], options)
    }

    /// The same with several files, to be read one after the other: what is true of the first, its
    /// fields and their types, has to be true of all.
    ///
    /// # Errors
    /// Those of [`ImportReader::open`]; when there is no file.
    pub fn open_all(
        environment: &Environment,
        paths: &[PathBuf],
        options: ImportOptions,
    ) -> Result<Self> {
        let (mut inputs, mut file_bytes) = (Vec::new(), Some(0));
        for path in paths {
            let (input, length) = Input::open(environment, path)?;
            file_bytes = file_bytes.zip(length).map(|(sum, bytes)| sum + bytes);
            inputs.push(input);
        }
        Self::start(environment, inputs, options, file_bytes)
    }

    /// The same, from anything that can be read; `file` is its name in errors, `file_bytes` its
    /// length when known. Without a schema, it is kept to be read again, see
    /// [`ImportOptions::spool`].
    ///
    /// # Errors
    /// Those of [`ImportReader::open`].
    pub fn from_reader(
        environment: &Environment,
        file: &str,
        bytes: impl Read + Send + 'static,
        file_bytes: Option<u64>,
        options: ImportOptions,
    ) -> Result<Self> {
        let input = Input::once(file, Box::new(bytes), file_bytes);
        Self::start(environment, vec![input], options, file_bytes)
    }

    /// The fields that batches will have.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.first.layout.schema
    }

    /// Where the rows stand that [`ImportReader::read`] will have handed over.
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// How the schema was inferred; `None` when it was given.
    #[must_use]
    pub fn inference(&self) -> Option<Inference> {
        self.first.inference
    }

    /// About how much memory [`ImportReader::read`] takes, in bytes: little for a small file, where
    /// its length is known or its end is within the first 64 KiB.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let kept: usize = self.first.kept.iter().map(Chunk::memory_bytes).sum();
        let chunks = chunks_at_a_time(&self.environment);
        let at_a_time = chunks.saturating_mul(self.options.chunk_bytes) as u64;
        let whole = if self.others.is_empty() { self.first.text_bytes() } else { None };
        let text = at_a_time.min(whole.unwrap_or(u64::MAX));
        text.saturating_mul(CHUNK_FACTOR as u64).saturating_add(kept as u64)
    }

    /// How to read the files again with types that hold all rows, where those that were inferred,
    /// from some rows, turn out not to: [`ErrorKind::Contradicted`]. `None` where no row can do
    /// that.
    #[must_use]
    pub fn again(&self) -> Option<Again> {
        self.again.clone()
    }

    /// How CSV is written, in words, where that was found out.
    #[must_use]
    pub fn form(&self) -> Option<&str> {
        self.first.form.as_deref()
    }

    /// What is not as the file has it, such as names of columns, and what may help, in words.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.first.notes
    }

    fn start(
        environment: &Environment,
        inputs: Vec<Input>,
        mut options: ImportOptions,
        file_bytes: Option<u64>,
    ) -> Result<Self> {
        options.validate()?;
        options.fit_memory(chunks_at_a_time(environment));
        let inputs = kept(environment, inputs, &mut options)?;
        let Some((first_input, others)) = inputs.split_first() else {
            return Err(Error::options("expected a file, found none"));
        };
        let others: VecDeque<Input> = others.iter().cloned().collect();
        let lacks = compare_columns(environment, &inputs, &mut options)?;
        let open = |options: &ImportOptions| {
            Opened::new(environment, first_input, options.clone(), !others.is_empty())
        };
        let mut first = match open(&options) {
            Err(e) if e.kind() == ErrorKind::Contradicted && options.survey.is_none() => {
                options.survey = Some(Arc::new(survey(environment, &inputs, &options)?));
                open(&options)?
            }
            opened => opened?,
        };
        first.notes.extend(lacks);
        let is_sampled = first.inference.is_some_and(|inference| !inference.whole);
        let may_widen = is_sampled || options.infers_rest() && options.survey.is_none();
        let again = may_widen.then(|| Again {
            environment: environment.clone(),
            inputs: inputs.clone(),
            options: options.clone(),
            file_bytes,
        });
        options.sniffs.header = false;
        if first.inference.is_some() && options.unknown == Unknown::Infer {
            options.unknown = Unknown::Error;
        }
        let options = options.schema(first.layout.schema.clone()).header(first.header);
        let (environment, places) = (environment.clone(), Places::default());
        Ok(Self { environment, options, first, others, again, file_bytes, places })
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
        self.read_files(&mut consume, None)
    }

    /// Reads all rows that fit; those that do not are handed to `reject`, in file order but before
    /// the batch they stand among. What cannot be passed over stops the import as before: a quote
    /// that is never closed, or an array of JSON that goes on otherwise than JSON does.
    ///
    /// # Errors
    /// Those of [`ImportReader::read`], rows that do not fit apart; and what `reject` returns.
    pub fn read_or_reject<E: From<Error>>(
        self,
        mut consume: impl FnMut(Batch, Progress) -> std::result::Result<(), E>,
        mut reject: impl FnMut(Reject, Progress) -> std::result::Result<(), E>,
    ) -> std::result::Result<ImportReport, E> {
        self.read_files(&mut consume, Some(&mut reject))
    }

    fn read_files<E: From<Error>>(
        self,
        consume: Taker<'_, Batch, E>,
        mut reject: Option<Taker<'_, Reject, E>>,
    ) -> std::result::Result<ImportReport, E> {
        let Self { environment, options, first, others, file_bytes, places, .. } = self;
        let (note, spellings) = (first.layout.note.clone(), first.layout.spellings);
        let mut run = Run { environment, file_bytes, places, report: ImportReport::default() };
        run.read_file(first, consume, &mut reject)?;
        for input in others {
            let mut opened = Opened::new(&run.environment, &input, options.clone(), true)?;
            opened.layout.note.clone_from(&note);
            opened.layout.spellings = spellings;
            run.read_file(opened, consume, &mut reject)?;
        }
        Ok(run.report)
    }
}

/// The files of a reader, to be read again: see [`ImportReader::again`].
#[derive(Clone)]
pub struct Again {
    environment: Environment,
    inputs: Vec<Input>,
    options: ImportOptions,
    file_bytes: Option<u64>,
}

impl Again {
    /// Looks at all rows of all files, and opens them with types that hold these.
    ///
    /// # Errors
    /// Those of [`ImportReader::open`], and of a record that is none.
    pub fn open(self) -> Result<ImportReader> {
        let Self { environment, inputs, mut options, file_bytes } = self;
        options.survey = Some(Arc::new(survey(&environment, &inputs, &options)?));
        ImportReader::start(&environment, inputs, options, file_bytes)
    }
}

/// Files being read one after the other.
struct Run {
    environment: Environment,
    file_bytes: Option<u64>,
    places: Places,
    /// What has been read so far.
    report: ImportReport,
}

impl Run {
    fn read_file<E: From<Error>>(
        &mut self,
        opened: Opened,
        consume: Taker<'_, Batch, E>,
        reject: &mut Option<Taker<'_, Reject, E>>,
    ) -> std::result::Result<(), E> {
        let Opened { file, mut splitter, layout, mut kept, mut lines, .. } = opened;
        let (skips, name) = (reject.is_some(), Arc::from(file.as_str()));
        let gone = splitter.source().gone();
        let bytes_before = self.report.file_bytes;
        let mut pipeline: Pipeline<Result<Chunk>, Result<Parsed>> =
            Pipeline::new(&self.environment.tasks, "import", move |chunk: Result<Chunk>| {
                chunk.map(|chunk| chunk::parse(&layout, chunk, skips))
            });
        let mut at_end = false;
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
            let place = |e: Error| e.in_file(&file).after_lines(lines).beside(&gone);
            let Parsed { rows, buffer } = parsed.map_err(place)?;
            let rows = rows.map_err(place)?;
            splitter.recycle(buffer);
            self.report.rows += rows.batch.len() as u64;
            self.report.rejects += rows.rejects.len() as u64;
            self.report.batches += 1;
            self.report.file_bytes = bytes_before + splitter.source().file_bytes_read();
            let progress = Progress {
                rows: self.report.rows,
                file_bytes_read: self.report.file_bytes,
                file_bytes: self.file_bytes,
            };
            for rejected in rows.rejects {
                let rejected = Reject { error: place(rejected.error), ..rejected };
                reject.as_mut().map_or(Ok(()), |reject| reject(rejected, progress))?;
            }
            self.places.add((&name, &gone), lines, rows.batch.len() as u64, rows.places);
            lines += rows.lines;
            consume(rows.batch, progress)?;
        }
        self.report.lines += lines;
        self.report.file_bytes = bytes_before + splitter.source().file_bytes_read();
        Ok(())
    }
}

/// The inputs, so that they can be read again where types are inferred.
fn kept(
    environment: &Environment,
    inputs: Vec<Input>,
    options: &mut ImportOptions,
) -> Result<Vec<Input>> {
    let infers_rest = options.infers_rest();
    let mut all = Vec::new();
    for input in inputs {
        let input = match options.schema {
            None => input.kept(environment, options)?,
            Some(_) if infers_rest => input.kept_if_short(options)?,
            Some(_) => input,
        };
        if infers_rest && !input.can_be_read_again()? {
            options.unknown = Unknown::Error;
        }
        all.push(input);
    }
    Ok(all)
}

/// Compares the columns of several files of CSV whose types are inferred: which of them lack some,
/// in words. Where the first does, all rows are looked at.
fn compare_columns(
    environment: &Environment,
    inputs: &[Input],
    options: &mut ImportOptions,
) -> Result<Vec<String>> {
    /// How many files are named that lack columns.
    const NAMED: usize = 5;
    if options.schema.is_some() || options.format != Format::Csv || inputs.len() < 2 {
        return Ok(Vec::new());
    }
    let columns = columns_of(environment, inputs, options)?;
    let mut union: Vec<&String> = Vec::new();
    for (input, own) in inputs.iter().zip(&columns) {
        if !union.is_empty() && !own.iter().any(|name| union.contains(&name)) {
            let own = own.join(", ");
            let first = columns.first().map_or_else(String::new, |first| first.join(", "));
            return Err(Error::data(format!(
                "no column of the files before it is one of this file, which has {own}; \
                 the first has {first}: load it into a table of its own"
            ))
            .in_file(&input.name));
        }
        let new: Vec<&String> = own.iter().filter(|name| !union.contains(name)).collect();
        union.extend(new);
    }
    let mut lacks = Vec::new();
    for (input, own) in inputs.iter().zip(&columns) {
        let missing: Vec<&str> =
            union.iter().filter(|name| !own.contains(name)).map(|name| name.as_str()).collect();
        if !missing.is_empty() {
            lacks.push(format!("{} has no column {}: NULL", input.name, missing.join(", ")));
        }
    }
    if lacks.len() > NAMED {
        let more = lacks.len() - NAMED;
        lacks.truncate(NAMED);
        lacks.push(format!("{more} more files lack columns: NULL"));
    }
    let is_first_short = columns.first().is_some_and(|first| first.len() < union.len());
    let is_known = !is_first_short && (!options.strict || lacks.is_empty());
    if !is_known && options.survey.is_none() {
        options.survey = Some(Arc::new(survey(environment, inputs, options)?));
    }
    Ok(lacks)
}

/// Chunks that are read, parsed or handed over, and the start of the next one.
fn chunks_at_a_time(environment: &Environment) -> usize {
    depth(environment.tasks.parallelism()) + 1
}

#[cfg(test)]
mod first_files_tests;
#[cfg(test)]
mod json_tests;
#[cfg(test)]
mod sampled_tests;
#[cfg(test)]
mod tests;
