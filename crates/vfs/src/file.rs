//! Files, directories and locks, as the engine may use them.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, ErrorKind, GrowingMapping, Mapping, Result};

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
}

/// Who else may hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// No process.
    Exclusive,
    /// Other shared holders.
    Shared,
}

/// A held lock, released on drop.
pub trait FileLock: Send + Sync + Debug {
    /// Writes another text about the holder of an exclusive lock, unless the disk is full.
    ///
    /// # Errors
    /// `Io`; then there is none.
    fn describe(&self, holder: &str) -> Result<()>;
}

/// Directories and the names in them. Paths are used as given; every method names its path in
/// the errors it returns.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens or creates a file. A created file's name is durable only after
    /// [`FileSystem::sync_dir`] on its directory.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// Removes a file. An open handle stays readable.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Renames a file, replacing any file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives a file a second name, durable after [`FileSystem::sync_dir`] on its directory. Both
    /// names are of the same bytes: for files that are never written again.
    ///
    /// # Errors
    /// `AlreadyExists` when there is something at `to`; what the machine says where it cannot, such
    /// as between two file systems.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// The names in a directory, sorted; an error of kind `NotFound` when there is no directory.
    /// Names that are not UTF-8 are left out: somebody else gave them.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Creates a directory and its missing parents, and makes their names durable.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;

    /// Removes a directory and everything in it.
    fn remove_dir_all(&self, dir: &Path) -> Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// True when there is a file or directory at `path`.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// The path without symbolic links, and whether a file with bytes is there: no directory, pipe
    /// or device. Where there are no links it is the path itself.
    ///
    /// # Errors
    /// `NotFound` when there is nothing at `path`.
    fn real_path(&self, path: &Path) -> Result<RealPath> {
        match self.exists(path)? {
            true => Ok(RealPath { path: path.to_owned(), is_file: true }),
            false => Err(Error::new(
                ErrorKind::NotFound,
                format!("look for {}: it is not there", path.display()),
            )),
        }
    }

    /// Takes a lock on the file at `path`, creating the file for an exclusive lock, and (for an
    /// exclusive lock) writes `holder` into it, unless the disk is full.
    ///
    /// # Errors
    /// `ErrorKind::Locked` when somebody else holds it; the message repeats what they wrote.
    fn lock(&self, path: &Path, mode: LockMode, holder: &str) -> Result<Box<dyn FileLock>>;
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealPath {
    /// The path, without symbolic links.
    pub path: PathBuf,
    /// Whether a file with bytes is there.
    pub is_file: bool,
}

/// An open file. Positions are bytes from the start.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes; 0 at the end of the file. May be short.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes up to `buf.len()` bytes, at least one. May be short. Extends the file as needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;

    /// The length in bytes.
    fn len(&self) -> Result<u64>;

    /// True for a pipe and the like: it is read once, from start to end, whatever offset
    /// [`File::read_at`] is given, and has no length.
    fn is_stream(&self) -> Result<bool> {
        Ok(false)
    }

    /// True when the file holds no byte.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Makes the contents and the length durable. After an error nothing is known about what is
    /// on the disk, and calling again proves nothing.
    fn sync_data(&self) -> Result<()>;

    /// Starts writing back a range without waiting; a hint that may do nothing.
    fn start_writeback(&self, offset: u64, len: u64);

    /// Maps the first `len` bytes for reading. The file must be at least that long and is never
    /// written again while the mapping lives.
    fn map(&self, len: u64) -> Result<Mapping>;

    /// Maps the first `len` bytes of a file that may still grow up to there. The caller asks the
    /// mapping for bytes has seen them written, and they are never written again. `None` where
    /// files cannot be mapped so.
    fn map_growing(&self, len: u64) -> Result<Option<GrowingMapping>> {
        let _ = len;
        Ok(None)
    }

    /// Fills `buf` from `offset`, through short reads and interruptions.
    ///
    /// # Errors
    /// `ErrorKind::UnexpectedEnd` when the file is shorter.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => {
                    let wanted = buf.len();
                    return Err(Error::new(
                        ErrorKind::UnexpectedEnd,
                        format!("file ends at {offset}, {wanted} more bytes expected"),
                    ));
                }
                Ok(n) => {
                    buf = buf.get_mut(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`, through short writes and interruptions. After an error
    /// any part of it may have been written.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(n) => {
                    debug_assert!(n > 0, "write_at wrote nothing and reported success");
                    buf = buf.get(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
