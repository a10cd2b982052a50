//! The bytes of a file, decompressed.

use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_vfs::{Environment, File, OpenMode};

use crate::{Error, ErrorKind, Result};

/// How much of a compressed file is read at once.
const READ_BYTES: usize = 1 << 20;

/// A stream of uncompressed bytes, and how far the file behind it has been read.
pub(crate) struct Source {
    bytes: Box<dyn Read + Send>,
    compression: Compression,
    file_bytes_read: Arc<AtomicU64>,
    file_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Tells by the first bytes. Neither magic number is valid UTF-8, so no CSV file starts so.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(environment: &Environment, path: &Path) -> Result<Self> {
        let file = environment.files.open(path, OpenMode::Read)?;
        let file_bytes = file.len()?;
        Self::new(Box::new(FileReader { file, offset: 0 }), Some(file_bytes))
    }

    /// Reads from anything. `file_bytes` is its length, when known.
    pub(crate) fn new(mut bytes: Box<dyn Read + Send>, file_bytes: Option<u64>) -> Result<Self> {
        let mut head = Vec::with_capacity(4);
        bytes.by_ref().take(4).read_to_end(&mut head).map_err(|e| read_error(e, "read"))?;
        let compression = Compression::of(&head);
        let file_bytes_read = Arc::new(AtomicU64::new(0));
        let whole = Cursor::new(head).chain(bytes);
        let counted = Counted { inner: whole, count: Arc::clone(&file_bytes_read) };
        let bytes: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(counted),
            Compression::Gzip => {
                let buffered = BufReader::with_capacity(READ_BYTES, counted);
                Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
            }
            Compression::Zstd => {
                let buffered = BufReader::with_capacity(READ_BYTES, counted);
                let decoder = zstd::stream::read::Decoder::with_buffer(buffered);
                Box::new(decoder.map_err(|e| read_error(e, "decompress"))?)
            }
        };
        let mut source = Self { bytes, compression, file_bytes_read, file_bytes };
        source.skip_mark()?;
        Ok(source)
    }

    /// Drops the byte order mark of UTF-8, and refuses those of UTF-16.
    fn skip_mark(&mut self) -> Result<()> {
        let mut head = vec![0; 3];
        let count = self.fill(&mut head)?;
        head.truncate(count);
        match head.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                return Err(Error::data("the file is UTF-16; expected UTF-8"));
            }
            [0xef, 0xbb, 0xbf] => return Ok(()),
            _ => {}
        }
        let rest = std::mem::replace(&mut self.bytes, Box::new(std::io::empty()));
        self.bytes = Box::new(Cursor::new(head).chain(rest));
        Ok(())
    }

    /// Fills `buffer`; fewer bytes only at the end.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.bytes.read(rest) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(read_error(e, self.operation())),
            }
        }
        Ok(filled)
    }

    fn operation(&self) -> &'static str {
        match self.compression {
            Compression::None => "read",
            Compression::Gzip => "decompress (gzip)",
            Compression::Zstd => "decompress (zstd)",
        }
    }

    /// How many bytes of the file, compressed as it is, have been read.
    pub(crate) fn file_bytes_read(&self) -> u64 {
        self.file_bytes_read.load(Ordering::Relaxed)
    }

    /// How many bytes the file has, compressed as it is.
    pub(crate) fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// How many bytes come out of [`Source::fill`] in all, when known beforehand.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        if self.compression == Compression::None { self.file_bytes } else { None }
    }
}

/// What went wrong below: the machine, or the compressed data.
fn read_error(error: std::io::Error, operation: &str) -> Error {
    let message = format!("{operation}: {error}");
    match error.downcast::<esker_vfs::Error>() {
        Ok(machine) => machine.into(),
        Err(other) => match other.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let end = "the file is cut short, or something follows what is compressed";
                Error::data(format!("{operation}: {end}"))
            }
            _ if operation.starts_with("decompress") => Error::data(message),
            _ => Error::new(ErrorKind::Io, message),
        },
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

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
