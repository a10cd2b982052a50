//! Files that statements name: [`FileAccess`] is what a database reaches them by.
//!
//! | module | what it has |
//! |---|---|
//! | [`named_form`] | how a file is written, by its name |
//! | [`statement_options`] | what a statement says of a file |
//! | [`text_reader`] | the text format of PostgreSQL, as CSV |
//! | [`sink`] | a file that is written |

pub(crate) mod named_form;
pub(crate) mod sink;
mod statement_options;
#[cfg(test)]
mod tests;
mod text_reader;

use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use esker::{Batch, FileRequest, FileRows, FileSink, FileTable, Schema};
use esker_query::ResultColumn;
use esker_vfs::{Environment, OpenMode};

use self::sink::{FileWriter, RowsOut, Written};
use self::statement_options::Reading;
use self::text_reader::TextReader;
use crate::input::Input;
use crate::source::Source;
use crate::{Error, ErrorKind, ImportReader, Places};

/// The files that a database reaches: all of the machine, or those below a directory.
///
/// ```
/// use std::sync::Arc;
///
/// use esker_import::FileAccess;
/// use esker_vfs::Environment;
///
/// let files = Arc::new(FileAccess::anywhere(&Environment::os()));
/// let db = esker::Options::new().files(files).memory()?;
/// let query = esker::Query::table("'no such.csv'");
/// assert_eq!(db.query(&query).unwrap_err().kind(), esker::ErrorKind::NotFound);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileAccess {
    environment: Environment,
    below: Option<PathBuf>,
}

impl FileAccess {
    /// Every file that the process may open.
    #[must_use]
    pub fn anywhere(environment: &Environment) -> Self {
        Self { environment: environment.clone(), below: None }
    }

    /// Files below a directory alone, by paths that begin there: none that leads out of it, by `..`
    /// or by a symbolic link, and no pipe or device.
    #[must_use]
    pub fn below(environment: &Environment, directory: impl Into<PathBuf>) -> Self {
        Self { environment: environment.clone(), below: Some(directory.into()) }
    }

    /// Where a file is that is read.
    fn place(&self, path: &str) -> esker::Result<PathBuf> {
        let Some((below, path)) = self.within(path)? else { return Ok(PathBuf::from(path)) };
        let real = self.environment.files.real_path(&below.join(path));
        let real = real.map_err(|e| hidden(e, path))?;
        match (real.path.starts_with(&below), real.is_file) {
            (false, _) => Err(out_of_reach(path)),
            (true, false) => Err(invalid(format!("{}: expected a file", path.display()))),
            (true, true) => Ok(real.path),
        }
    }

    /// Where a file is to be that is made.
    fn new_place(&self, path: &str) -> esker::Result<PathBuf> {
        let Some((below, path)) = self.within(path)? else { return Ok(PathBuf::from(path)) };
        let (Some(name), whole) = (path.file_name(), below.join(path)) else {
            return Err(invalid(format!("{}: expected the name of a file", path.display())));
        };
        let directory = whole.parent().unwrap_or(&below); // default: never without
        let real = self.environment.files.real_path(directory);
        let real = real.map_err(|e| hidden(e, path))?;
        match real.path.starts_with(&below) {
            false => Err(out_of_reach(path)),
            true => Ok(real.path.join(name)),
        }
    }

    /// The directory that files are below, and a path from there; `None` where all are reached.
    fn within<'p>(&self, path: &'p str) -> esker::Result<Option<(PathBuf, &'p Path)>> {
        let Some(below) = &self.below else { return Ok(None) };
        let path = Path::new(path);
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(is_plain) || path.as_os_str().is_empty() {
            return Err(out_of_reach(path));
        }
        let below = self.environment.files.real_path(below).map_err(|_| {
            let message = "the directory of files (files_dir) is not there";
            esker::Error::new(esker::ErrorKind::NotFound, message)
        })?;
        Ok(Some((below.path, path)))
    }

    /// The same error by the name that a statement has for a file.
    fn named(&self, file: &FileTable, place: &Path, e: Error) -> esker::Error {
        let e = esker::Error::from(e);
        match &self.below {
            None => e,
            Some(_) => {
                let message = e.to_string().replace(&place.display().to_string(), &file.path);
                esker::Error::new(e.kind(), message)
            }
        }
    }

    fn found(
        &self,
        file: &FileTable,
        request: &FileRequest,
        open: impl FnOnce(Reading) -> crate::Result<ImportReader>,
    ) -> Result<Found, Error> {
        let reader = open(Reading::of(file, request)?)?;
        // The types are to hold all rows: who reads has begun with them.
        let reader = match reader.again().filter(|_| request.schema.is_none()) {
            Some(again) => again.open()?,
            None => reader,
        };
        Ok(Found { places: reader.places(), reader })
    }
}

impl esker::Files for FileAccess {
    fn open(&self, file: &FileTable, request: &FileRequest) -> esker::Result<Box<dyn FileRows>> {
        let place = self.place(&file.path)?;
        let environment = &self.environment;
        if let Some(schema) = may_be_empty(file, request)? {
            let opened = environment.files.open(&place, OpenMode::Read);
            let is_empty = opened.and_then(|opened| Ok(!opened.is_stream()? && opened.len()? == 0));
            if is_empty.map_err(|e| self.named(file, &place, e.into()))? {
                return Ok(Box::new(Nothing(schema)));
            }
        }
        let found = self.found(file, request, |reading| match reading.text {
            None => ImportReader::open(environment, &place, reading.options),
            Some(form) => {
                let (input, _) = Input::open(environment, &place)?;
                let source = input.source(environment)?;
                let text = TextReader::new(source, form, request.memory_bytes);
                ImportReader::from_reader(environment, &file.path, text, None, reading.options)
            }
        });
        let found = found.map_err(|e| self.named(file, &place, e))?;
        let access = (self.clone(), file.clone(), place);
        Ok(Box::new(Reached { found, access }))
    }

    fn open_from(
        &self,
        file: &FileTable,
        bytes: Box<dyn Read + Send>,
        request: &FileRequest,
    ) -> esker::Result<Box<dyn FileRows>> {
        let environment = &self.environment;
        let mut bytes = bytes;
        if let Some(schema) = may_be_empty(file, request)? {
            let mut first = Vec::new();
            bytes.by_ref().take(1).read_to_end(&mut first).map_err(|e| {
                esker::Error::new(esker::ErrorKind::Io, format!("{}: {e}", file.path))
            })?;
            if first.is_empty() {
                return Ok(Box::new(Nothing(schema)));
            }
            bytes = Box::new(std::io::Cursor::new(first).chain(bytes));
        }
        let found = self.found(file, request, |reading| match reading.text {
            None => {
                ImportReader::from_reader(environment, &file.path, bytes, None, reading.options)
            }
            Some(form) => {
                let source = Source::new(bytes, None)?;
                let text = TextReader::new(source, form, request.memory_bytes);
                ImportReader::from_reader(environment, &file.path, text, None, reading.options)
            }
        })?;
        let access = (self.clone(), file.clone(), PathBuf::new());
        Ok(Box::new(Reached { found, access }))
    }

    fn create(
        &self,
        file: &FileTable,
        columns: &[ResultColumn],
    ) -> esker::Result<Box<dyn FileSink>> {
        let rows = RowsOut::new(file, columns)?;
        let place = self.new_place(&file.path)?;
        let environment = self.environment.clone();
        let opened = environment.files.open(&place, OpenMode::CreateNew);
        let opened = opened.map_err(|e| self.named(file, &place, e.into()))?;
        Ok(Box::new(Written::new(rows, FileWriter::new(opened), (environment, place))?))
    }

    fn create_in<'w>(
        &self,
        file: &FileTable,
        columns: &[ResultColumn],
        out: &'w mut dyn Write,
    ) -> esker::Result<Box<dyn FileSink + 'w>> {
        Ok(Box::new(sink::Passed::new(RowsOut::new(file, columns)?, out)?))
    }
}

/// A file whose rows are still to be read.
struct Found {
    reader: ImportReader,
    places: Places,
}

/// The fields of rows that a file may have none of, since that is how `COPY` writes no rows:
/// without a header, and without the brackets of JSON.
fn may_be_empty(file: &FileTable, request: &FileRequest) -> esker::Result<Option<Arc<Schema>>> {
    let has_header = file.options.iter().any(|(name, value)| name == "header" && value != "false");
    if !request.as_copied || has_header {
        return Ok(None);
    }
    // What cannot be read is refused.
    Reading::of(file, request)?;
    Ok(request.schema.clone())
}

/// A file without rows.
struct Nothing(Arc<Schema>);

impl FileRows for Nothing {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn read(self: Box<Self>, _: &mut dyn FnMut(Batch) -> esker::Result<()>) -> esker::Result<u64> {
        Ok(0)
    }

    fn places(&self) -> Box<dyn Fn(esker::Error) -> esker::Error> {
        Box::new(|e| e)
    }
}

/// The same, and how errors are to name it.
struct Reached {
    found: Found,
    access: (FileAccess, FileTable, PathBuf),
}

/// Why reading has ended: for what the file has, or who takes its rows.
enum Ended {
    File(Error),
    Taker(esker::Error),
}

impl From<Error> for Ended {
    fn from(e: Error) -> Self {
        Self::File(e)
    }
}

impl FileRows for Reached {
    fn schema(&self) -> &Schema {
        self.found.reader.schema()
    }

    fn memory_bytes(&self) -> u64 {
        self.found.reader.memory_bytes()
    }

    fn read(
        self: Box<Self>,
        take: &mut dyn FnMut(Batch) -> esker::Result<()>,
    ) -> esker::Result<u64> {
        let Self { found, access: (access, file, place) } = *self;
        let read = found.reader.read(|batch, _| take(batch).map_err(Ended::Taker));
        read.map(|report| report.rows).map_err(|ended| match ended {
            Ended::File(e) => access.named(&file, &place, e),
            Ended::Taker(e) => e,
        })
    }

    fn places(&self) -> Box<dyn Fn(esker::Error) -> esker::Error> {
        let (places, path) = (self.found.places.clone(), self.access.1.path.clone());
        Box::new(move |e| {
            let message = e.to_string();
            let row = message.strip_prefix("row ").and_then(|rest| rest.split_once(": "));
            let found = row.and_then(|(row, rest)| {
                let (_, line) = places.find(row.parse::<u64>().ok()?.checked_sub(1)?)?;
                Some(format!("{path}:{line}: {rest}"))
            });
            match found {
                Some(message) => esker::Error::new(e.kind(), message),
                None => e,
            }
        })
    }
}

impl From<Error> for esker::Error {
    fn from(e: Error) -> Self {
        let kind = match e.kind() {
            ErrorKind::InvalidOptions | ErrorKind::BadData | ErrorKind::Contradicted => {
                esker::ErrorKind::InvalidInput
            }
            ErrorKind::NotFound => esker::ErrorKind::NotFound,
            ErrorKind::Io => esker::ErrorKind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

fn invalid(message: String) -> esker::Error {
    esker::Error::new(esker::ErrorKind::InvalidInput, message)
}

fn out_of_reach(path: &Path) -> esker::Error {
    invalid(format!(
        "{}: out of reach: expected a path below the directory of files, without .. and without \
         links that lead out of it",
        path.display()
    ))
}

/// The error of a path that is not told in full.
fn hidden(e: esker_vfs::Error, path: &Path) -> esker::Error {
    let path = path.display();
    match e.kind() {
        esker_vfs::ErrorKind::NotFound => {
            esker::Error::new(esker::ErrorKind::NotFound, format!("{path}: no such file"))
        }
        _ => esker::Error::new(esker::ErrorKind::Io, format!("{path} cannot be reached")),
    }
}
