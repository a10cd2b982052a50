//! Temporary files: records one after another, in blocks with checksums.
//!
//! ```text
//! block    payload length u32 | checksum u64 | records
//! record   length u32 | bytes
//! ```
//!
//! A file has no name from the moment it is made, so that nothing is left of it whatever happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::checksum::{Place, checksum};
use esker_format::codec::{Reader, Writer};
use esker_vfs::sync::AtomicU64;
use esker_vfs::{Environment, File, FileSystem, OpenMode, Random};

use super::{Error, ErrorKind, Result};

/// Bytes of a block before it is written.
const BLOCK_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 12;

/// How the names of temporary files begin, for the moment that they have one.
pub const TEMPORARY_PREFIX: &str = "temporary-";

/// Where queries write what they have no memory for.
#[derive(Clone, Debug)]
pub struct TemporaryFiles {
    files: Arc<dyn FileSystem>,
    random: Arc<dyn Random>,
    dir: PathBuf,
    /// How many bytes have been written so far.
    written: Arc<AtomicU64>,
}

impl TemporaryFiles {
    /// In a directory, which there is.
    #[must_use]
    pub fn new(environment: &Environment, dir: PathBuf) -> Self {
        let (files, random) = (Arc::clone(&environment.files), Arc::clone(&environment.random));
        Self { files, random, dir, written: Arc::new(AtomicU64::new(0)) }
    }

    pub(crate) fn create(&self) -> Result<SpillWriter> {
        let number = self.random.next_u64();
        let path = self.dir.join(format!("{TEMPORARY_PREFIX}{number:016x}"));
        let file = self.files.open(&path, OpenMode::CreateNew).map_err(|e| failed(&e))?;
        self.files.remove(&path).map_err(|e| failed(&e))?;
        let written = Arc::clone(&self.written);
        Ok(SpillWriter { file, number, len: 0, block: Writer::new(), written })
    }

    /// How many bytes have been written so far, to all of them.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

fn failed(error: &esker_vfs::Error) -> Error {
    let kind = match error.kind() {
        esker_vfs::ErrorKind::NoSpace => ErrorKind::NoSpace,
        _ => ErrorKind::Io,
    };
    let message = format!("a temporary file, for what the query has no memory for: {error}");
    Error::new(kind, message)
}

/// A file that is written.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    file: Arc<dyn File>,
    number: u64,
    len: u64,
    block: Writer,
    /// Of all files.
    written: Arc<AtomicU64>,
}

impl SpillWriter {
    /// Adds a record.
    ///
    /// # Errors
    /// `NoSpace` or `Io`.
    pub(crate) fn push(&mut self, record: &[u8]) -> Result<()> {
        self.push_parts(&[record])
    }

    /// Adds a record, of which there are the parts.
    pub(crate) fn push_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        self.block.u32(u32::try_from(len).unwrap_or(u32::MAX));
        parts.iter().for_each(|part| self.block.raw(part));
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Adds records, each behind its length.
    pub(crate) fn push_records(&mut self, records: &[u8]) -> Result<()> {
        self.block.raw(records);
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let payload = self.block.as_bytes();
        let mut out = Writer::new();
        out.u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        out.u64(checksum(place(self.number, self.len), payload));
        out.raw(payload);
        self.file.write_all_at(out.as_bytes(), self.len).map_err(|e| failed(&e))?;
        self.len += out.len() as u64;
        self.written.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.block.clear();
        Ok(())
    }

    /// The records, from the first.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn finish(mut self) -> Result<SpillReader> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        let Self { file, number, len, .. } = self;
        Ok(SpillReader { file, number, len, next_block: 0, block: Vec::new(), at: 0 })
    }
}

fn place(file: u64, position: u64) -> Place {
    Place { database: 0, file, position }
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct SpillReader {
    file: Arc<dyn File>,
    number: u64,
    len: u64,
    next_block: u64,
    block: Vec<u8>,
    at: usize,
}

impl SpillReader {
    /// How many bytes it has.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The same, read from the first record on.
    pub(crate) fn again(&self) -> Self {
        let file = Arc::clone(&self.file);
        Self { file, next_block: 0, block: Vec::new(), at: 0, ..*self }
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum, `Io`.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        if self.at >= self.block.len() {
            if self.next_block >= self.len {
                return Ok(None);
            }
            self.read_block()?;
        }
        let mut input = Reader::new(self.block.get(self.at..).unwrap_or_default());
        let len = input.u32()? as usize;
        let record = input.raw(len)?;
        self.at += 4 + len;
        Ok(Some(record))
    }

    fn read_block(&mut self) -> Result<()> {
        let mut header = [0u8; HEADER_BYTES];
        self.file.read_exact_at(&mut header, self.next_block).map_err(|e| failed(&e))?;
        let mut input = Reader::new(&header);
        let (len, stored) = (input.u32()? as usize, input.u64()?);
        let left = self.len.saturating_sub(self.next_block);
        let damaged = || {
            let message = format!("a temporary file is damaged at {}", self.next_block);
            Error::new(ErrorKind::Corrupt, message)
        };
        if len as u64 > left {
            return Err(damaged());
        }
        self.block.resize(len, 0);
        let start = self.next_block + HEADER_BYTES as u64;
        self.file.read_exact_at(&mut self.block, start).map_err(|e| failed(&e))?;
        if checksum(place(self.number, self.next_block), &self.block) != stored {
            return Err(damaged());
        }
        self.next_block = start + len as u64;
        self.at = 0;
        Ok(())
    }
}
