//! What is read: files by their paths, and what can be read once only, kept so that it can be read
//! again where types are inferred.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use esker_vfs::{Environment, File, OpenMode};

use crate::source::{Source, read_error};
use crate::{Error, ImportOptions, Result};

/// What is kept of a stream in memory; more goes to a temporary file.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// How much of a stream is written at once.
const SPOOL_BYTES: usize = 1 << 20;

/// Something to read.
#[derive(Clone)]
pub(crate) struct Input {
    /// As errors call it.
    pub(crate) name: String,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Path(PathBuf),
    /// An open file; a pipe is read on from where it is.
    File(Arc<dyn File>),
    Bytes(Arc<[u8]>),
    /// Whatever can be read once, and its length when known.
    Once(Arc<Mutex<Option<Box<dyn Read + Send>>>>, Option<u64>),
}

impl Input {
    /// A file, and its length if it has one. A pipe stays open: it is there once.
    pub(crate) fn open(environment: &Environment, path: &Path) -> Result<(Self, Option<u64>)> {
        let name = path.display().to_string();
        let open = || {
            let file = environment.files.open(path, OpenMode::Read)?;
            if file.is_stream()? {
                return Ok((Place::File(file), None));
            }
            let length = file.len()?;
            // A directory opens, and cannot be read.
            file.read_at(&mut [0], 0)?;
            Ok((Place::Path(path.to_owned()), Some(length)))
        };
        let (place, length) =
            open().map_err(|e: esker_vfs::Error| Error::from(e).in_file(&name))?;
        Ok((Self { name, place }, length))
    }

    /// Whatever can be read once.
    pub(crate) fn once(name: &str, bytes: Box<dyn Read + Send>, length: Option<u64>) -> Self {
        let place = Place::Once(Arc::new(Mutex::new(Some(bytes))), length);
        Self { name: name.to_owned(), place }
    }

    /// The same input, so that it can be read more than once.
    pub(crate) fn kept(self, environment: &Environment, options: &ImportOptions) -> Result<Self> {
        match self.place {
            Place::File(file) if file.is_stream()? => {
                let bytes = Box::new(FileReader { file, offset: 0 });
                Self::keep(environment, self.name, bytes, options)
            }
            Place::Once(bytes, _) => Self::keep(environment, self.name, taken(&bytes), options),
            Place::File(_) | Place::Path(_) | Place::Bytes(_) => Ok(self),
        }
    }

    /// The same input; what can be read once is kept where memory has room for all of it.
    pub(crate) fn kept_if_short(self, options: &ImportOptions) -> Result<Self> {
        let mut bytes: Box<dyn Read + Send> = match self.place {
            Place::File(file) if file.is_stream()? => Box::new(FileReader { file, offset: 0 }),
            Place::Once(bytes, _) => taken(&bytes),
            Place::File(_) | Place::Path(_) | Place::Bytes(_) => return Ok(self),
        };
        let (head, is_all) = head(&mut bytes, options).map_err(|e| e.in_file(&self.name))?;
        if is_all {
            return Ok(Self { place: Place::Bytes(head.into()), ..self });
        }
        Ok(Self::once(&self.name, Box::new(Cursor::new(head).chain(bytes)), None))
    }

    /// Whether it can be read more than once.
    pub(crate) fn can_be_read_again(&self) -> Result<bool> {
        Ok(match &self.place {
            Place::File(file) => !file.is_stream()?,
            Place::Path(_) | Place::Bytes(_) => true,
            Place::Once(..) => false,
        })
    }

    /// Keeps what can be read once: in memory, or in a temporary file.
    fn keep(
        environment: &Environment,
        name: String,
        mut bytes: Box<dyn Read + Send>,
        options: &ImportOptions,
    ) -> Result<Self> {
        let (head, is_all) = head(&mut bytes, options).map_err(|e| e.in_file(&name))?;
        let place = if is_all {
            Place::Bytes(head.into())
        } else {
            let spool = Spool::new(environment, options)?;
            Place::File(spool.fill(head, bytes).map_err(|e| e.in_file(&name))?)
        };
        Ok(Self { name, place })
    }

    /// Opens it from its start.
    pub(crate) fn source(&self, environment: &Environment) -> Result<Source> {
        let source = || match &self.place {
            Place::Path(path) => {
                let file = environment.files.open(path, OpenMode::Read)?;
                Self::of_file(file)
            }
            Place::File(file) => Self::of_file(Arc::clone(file)),
            Place::Bytes(bytes) => {
                let length = bytes.len() as u64;
                Source::new(Box::new(Cursor::new(Arc::clone(bytes))), Some(length))
            }
            Place::Once(bytes, length) => Source::new(taken(bytes), *length),
        };
        source().map_err(|e| e.in_file(&self.name))
    }

    fn of_file(file: Arc<dyn File>) -> Result<Source> {
        let length = if file.is_stream()? { None } else { Some(file.len()?) };
        Source::new(Box::new(FileReader { file, offset: 0 }), length)
    }
}

/// As much of a stream as memory keeps, and whether that is all of it.
fn head(bytes: &mut dyn Read, options: &ImportOptions) -> Result<(Vec<u8>, bool)> {
    // default: beyond the addresses of 32 bits.
    let quarter = usize::try_from(options.memory_bytes / 4).unwrap_or(usize::MAX);
    let most = KEPT_BYTES_MAX.min(quarter);
    let mut head = Vec::new();
    bytes.take(most as u64).read_to_end(&mut head).map_err(|e| read_error(e, "read"))?;
    let is_all = head.len() < most;
    Ok((head, is_all))
}

/// What can be read once; nothing when it has been.
fn taken(bytes: &Mutex<Option<Box<dyn Read + Send>>>) -> Box<dyn Read + Send> {
    let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
    bytes.unwrap_or_else(|| Box::new(std::io::empty()))
}

/// A temporary file that a stream is written to. It has no name as soon as it is open.
struct Spool {
    file: Arc<dyn File>,
    bytes_max: u64,
}

impl Spool {
    fn new(environment: &Environment, options: &ImportOptions) -> Result<Self> {
        let name = format!("esker-spool-{:016x}", environment.random.next_u64());
        let path = options.spool_directory.join(name);
        let file = environment.files.open(&path, OpenMode::CreateNew)?;
        environment.files.remove(&path)?;
        Ok(Self { file, bytes_max: options.spool_bytes_max })
    }

    fn fill(self, head: Vec<u8>, mut bytes: impl Read) -> Result<Arc<dyn File>> {
        let mut length = 0;
        let mut buffer = head;
        loop {
            if length + buffer.len() as u64 > self.bytes_max {
                let most = self.bytes_max;
                return Err(Error::data(format!(
                    "more than {most} bytes from a pipe, which is what is kept to infer types \
                     from; give a schema, or a file"
                )));
            }
            self.file.write_all_at(&buffer, length)?;
            length += buffer.len() as u64;
            buffer.clear();
            let more = bytes.by_ref().take(SPOOL_BYTES as u64).read_to_end(&mut buffer);
            let more = more.map_err(|e| read_error(e, "read"))?;
            if more == 0 {
                return Ok(self.file);
            }
        }
    }
}

/// A file, read from start to end.
struct FileReader {
    file: Arc<dyn File>,
    offset: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset).map_err(|e| match e.kind() {
            esker_vfs::ErrorKind::Interrupted => std::io::ErrorKind::Interrupted.into(),
            _ => std::io::Error::other(e),
        })?;
        self.offset += count as u64;
        Ok(count)
    }
}
