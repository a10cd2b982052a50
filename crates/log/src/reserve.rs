//! The reserve of the log: disk space that is kept for opening the database and for commits that
//! free space, so that a full disk can be emptied.
//!
//! ```text
//!  log-0000000000000005   │ header │ frames ………… │ tail: at least half of the reserve, zeros │
//!  reserve                │ the space of the next log file                                  │
//! ```
//!
//! * Frames that only add data leave the *tail* free; frames that free space may use it.
//! * Opening takes the *reserve file* when the disk has no space for a new file. The new log file
//!   is written over it, synced, and gets its name only then. What the reserve file held before is
//!   never read.
//! * A checkpoint that a caller asks for may use the space of the reserve file: log files go after
//!   it.
//! * Where the reserve file was taken, the next log file that is superseded becomes the reserve.
//! * Opening and maintenance fill both again as soon as there is space.
//!
//! What a crash leaves:
//! * while the reserve file is overwritten: a file that is not a log file. It is overwritten again.
//! * after it got its name: a whole log file that counts, and no reserve file.
//! * after a log file became the reserve: the old name may come back. Nothing needs that file any
//!   more, and its bytes change only once the directory was synced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::frame::FileHeader;
use esker_vfs::{Environment, ErrorKind as VfsErrorKind, File, FileSystem, OpenMode};

use crate::log::reserve_space;
use crate::log_file;
use crate::sabotage::Bug;
use crate::{Error, Result};

/// The name of the reserve file.
pub const RESERVE_FILE: &str = "reserve";

/// Less space than this is left alone.
const LEAST_BYTES: usize = 512;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It adds data.
    Adds,
    /// It frees space.
    Frees,
}

impl Purpose {
    pub(crate) fn may_use_reserve(self) -> bool {
        self == Self::Frees || Bug::ReserveUsedByInserts.is_planted()
    }
}

/// The reserve file, or that there is none.
#[derive(Debug)]
pub(crate) struct ReserveFile {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The length of the file; 0 when there is none.
    bytes: u64,
}

impl ReserveFile {
    /// Looks for the reserve file. One that cannot be read counts as none: without it nothing is
    /// lost but the reserve.
    pub fn find(environment: &Environment, dir: &Path) -> Self {
        let files = Arc::clone(&environment.files);
        let path = dir.join(RESERVE_FILE);
        let len = || match files.exists(&path)? {
            true => files.open(&path, OpenMode::Read)?.len(),
            false => Ok(0),
        };
        let bytes = len().unwrap_or(0); // default: it counts as none.
        Self { files, dir: dir.to_owned(), bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> PathBuf {
        self.dir.join(RESERVE_FILE)
    }

    /// Makes the file at least this long, as far as the disk has space.
    pub fn fill(&mut self, bytes: u64) -> Result<()> {
        if self.bytes >= bytes || Bug::ReserveNotRefilled.is_planted() {
            return Ok(());
        }
        let path = self.path();
        let mode = if self.files.exists(&path)? { OpenMode::Write } else { OpenMode::CreateNew };
        let file = self.files.open(&path, mode)?;
        let before = file.len()?;
        let (reached, full) = write_zeros(file.as_ref(), before, bytes)?;
        if reached > before {
            // It has to be there after a crash, too.
            file.sync_data()?;
            self.files.sync_dir(&self.dir)?;
        }
        self.bytes = file.len()?;
        match full {
            Some(full) => Err(full),
            None => Ok(()),
        }
    }

    /// Gives the space of the file back. False when there is none.
    pub fn release(&mut self) -> Result<bool> {
        if self.bytes == 0 {
            return Ok(false);
        }
        self.bytes = 0;
        self.files.remove(&self.path())?;
        Ok(true)
    }

    /// Overwrites the file with zeros, with what it held as a log file.
    ///
    /// # Errors
    /// `Io`; some of it may be there still.
    pub fn clear(&self) -> Result<()> {
        let path = self.path();
        if !self.files.exists(&path)? {
            return Ok(());
        }
        // The name that it may have had as a log file must not come back with other bytes.
        self.files.sync_dir(&self.dir)?;
        let file = self.files.open(&path, OpenMode::Write)?;
        if let (_, Some(full)) = write_zeros(file.as_ref(), 0, file.len()?)? {
            return Err(full);
        }
        Ok(file.sync_data()?)
    }

    /// Gives a log file that nothing needs any more the name of the reserve file, or removes it
    /// when there is one.
    pub fn retire(&mut self, number: u64, bytes_max: u64) -> Result<()> {
        let path = log_file::path(&self.dir, number);
        let wanted = self.bytes == 0 && bytes_max > 0 && !Bug::ReserveNotRefilled.is_planted();
        if !wanted {
            return match self.files.remove(&path) {
                Err(e) if e.kind() != VfsErrorKind::NotFound => Err(e.into()),
                _ => Ok(()),
            };
        }
        match self.files.rename(&path, &self.path()) {
            Err(e) if e.kind() == VfsErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        // The log is rid of the file. When this fails, only the reserve has to be filled again.
        let _ = self.cut(bytes_max);
        Ok(())
    }

    /// Cuts what was a log file, once its old name is gone for good.
    fn cut(&mut self, bytes_max: u64) -> Result<()> {
        self.files.sync_dir(&self.dir)?;
        let file = self.files.open(&self.path(), OpenMode::Write)?;
        if file.len()? > bytes_max {
            file.set_len(bytes_max)?;
        }
        self.bytes = file.len()?;
        Ok(())
    }
}

/// A log file that is being made.
#[derive(Debug)]
pub(crate) struct NewFile {
    environment: Environment,
    dir: PathBuf,
    /// Its path as a log file.
    path: PathBuf,
    pub file: Arc<dyn File>,
    /// Up to where it has space.
    pub reserved: u64,
    /// The space that it must have behind its frames, if any.
    tail: Option<u64>,
    /// Whether it still is the reserve file.
    is_reserve: bool,
}

impl NewFile {
    /// A file of its own.
    pub fn create(
        environment: &Environment,
        dir: &Path,
        number: u64,
        tail: Option<u64>,
    ) -> Result<Self> {
        let path = log_file::path(dir, number);
        let file = environment.files.open(&path, OpenMode::CreateNew)?;
        let (environment, dir) = (environment.clone(), dir.to_owned());
        Ok(Self { environment, dir, path, file, reserved: 0, tail, is_reserve: false })
    }

    /// The reserve file, full of zeros: it takes no space from the disk.
    pub fn from_reserve(
        environment: &Environment,
        reserve: &ReserveFile,
        number: u64,
    ) -> Result<Self> {
        // The name that it may have had as a log file must not come back with other bytes.
        log_file::sync_dir(environment, &reserve.dir)?;
        let file = environment.files.open(&reserve.path(), OpenMode::Write)?;
        if let (_, Some(full)) = write_zeros(file.as_ref(), 0, reserve.bytes)? {
            return Err(full);
        }
        Ok(Self {
            environment: environment.clone(),
            dir: reserve.dir.clone(),
            path: log_file::path(&reserve.dir, number),
            file,
            reserved: reserve.bytes,
            tail: None,
            is_reserve: true,
        })
    }

    pub fn write_header(&self, header: &FileHeader) -> Result<()> {
        Ok(self.file.write_all_at(&header.encode(), 0)?)
    }

    /// Reserves space behind `end`.
    ///
    /// # Errors
    /// `NoSpace` when there is less.
    pub fn reserve_behind(&mut self, end: u64) -> Result<()> {
        let Some(tail) = self.tail else { return Ok(()) };
        let needed = end + tail;
        let space = reserve_space(self.file.as_ref(), end, end, tail)?;
        self.reserved = space.reserved;
        match space.full.filter(|_| space.reserved < needed) {
            Some(full) => Err(full),
            None => Ok(()),
        }
    }

    /// Makes what was written durable, with the name of the log file.
    pub fn publish(&mut self, reserve: &mut ReserveFile) -> Result<()> {
        log_file::sync(self.file.as_ref())?;
        if self.is_reserve {
            self.environment.files.rename(&reserve.path(), &self.path)?;
            (self.is_reserve, reserve.bytes) = (false, 0);
        }
        log_file::sync_dir(&self.environment, &self.dir)
    }

    /// Takes it back. Only to be tidy: whole or not, it is superseded by the next start.
    pub fn abandon(&self) {
        if !self.is_reserve {
            let _ = self.environment.files.remove(&self.path);
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// Writes zeros to a file from `at` up to `end`; on a full disk as far as there is space. Returns
/// up to where, and why it is less.
pub(crate) fn write_zeros(file: &dyn File, mut at: u64, end: u64) -> Result<(u64, Option<Error>)> {
    let mut most = ZEROS.len();
    while at < end {
        // default: what does not fit is more than is written at once.
        let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(most);
        let (zeros, _) = ZEROS.split_at(len);
        match file.write_all_at(zeros, at) {
            Ok(()) => at += zeros.len() as u64,
            Err(e) if e.kind() != VfsErrorKind::NoSpace => return Err(e.into()),
            Err(e) if len <= LEAST_BYTES => return Ok((at, Some(e.into()))),
            Err(_) => most = (len / 2).max(LEAST_BYTES),
        }
    }
    Ok((at, None))
}
