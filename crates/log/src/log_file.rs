//! The names of log files, and what is done with one as a whole.

use std::path::{Path, PathBuf};

use esker_format::checksum::Place;
use esker_format::frame::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES, frame_bytes};
use esker_vfs::{Environment, File, FileSystem, OpenMode};

use crate::sabotage::Bug;
use crate::{Error, ErrorKind, Result};

const PREFIX: &str = "log-";

/// The path of the log file with this number.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{number:016x}"))
}

/// The number in the name of a log file; `None` for any other name.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (format!("{number:016x}") == digits).then_some(number)
}

/// The numbers of the log files in a directory, ascending.
pub(crate) fn numbers(files: &dyn FileSystem, dir: &Path) -> Result<Vec<u64>> {
    let mut numbers: Vec<u64> = files.list(dir)?.iter().filter_map(|n| number(n)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Where bytes of a log file stand, for their checksum.
pub(crate) fn place(database: u128, number: u64, offset: u64) -> Place {
    esker_format::frame::place(database, number, offset)
}

/// All bytes of a file.
pub(crate) fn read(files: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = files.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let len = usize::try_from(len).map_err(|_| {
        let message = format!("read {}: {len} bytes do not fit in memory", path.display());
        Error::new(ErrorKind::Io, message)
    })?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)
        .map_err(|e| Error::new(ErrorKind::Io, format!("read {}: {e}", path.display())))?;
    Ok(bytes)
}

/// Makes what was written to a file durable.
pub(crate) fn sync(file: &dyn File) -> Result<()> {
    if Bug::SkipLogFsync.is_planted() { Ok(()) } else { Ok(file.sync_data()?) }
}

/// Makes the names of the log files durable.
pub(crate) fn sync_dir(environment: &Environment, dir: &Path) -> Result<()> {
    if Bug::SkipLogDirFsync.is_planted() { Ok(()) } else { Ok(environment.files.sync_dir(dir)?) }
}

/// The length of a log file that holds nothing but its header and the start of its epoch.
const CREATED_BYTES: usize = FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 16;

/// How much of a file is looked at with one read.
const PIECE_BYTES: usize = 64 << 10;

/// True when the log files in `dir`, if any, are at most the leftovers of a creation that did not
/// get further: no commit can ever have been taken. Then, and only then, [`Log::create`] may
/// replace them.
///
/// # Errors
/// `Io` when a file cannot be read.
///
/// [`Log::create`]: crate::Log::create
pub fn unused(environment: &Environment, dir: &Path) -> Result<bool> {
    let files = environment.files.as_ref();
    for number in numbers(files, dir)? {
        if number != 1 || !is_zero_from(files, &path(dir, number), CREATED_BYTES as u64)? {
            return Ok(false);
        }
    }
    debug_assert_eq!(CREATED_BYTES, FILE_HEADER_BYTES + frame_bytes(16));
    Ok(true)
}

/// True when a file holds nothing but zeros from `offset` on. Reads up to the first other byte:
/// the log of a database in use is long.
fn is_zero_from(files: &dyn FileSystem, path: &Path, mut offset: u64) -> Result<bool> {
    let file = files.open(path, OpenMode::Read)?;
    let mut piece = vec![0; PIECE_BYTES];
    let len = file.len()?;
    while offset < len {
        // default: more than fits is read piece by piece, too.
        let bytes = usize::try_from(len - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let (piece, _) = piece.split_at_mut(bytes);
        file.read_exact_at(piece, offset)
            .map_err(|e| Error::new(ErrorKind::Io, format!("read {}: {e}", path.display())))?;
        if piece.iter().any(|b| *b != 0) {
            return Ok(false);
        }
        offset += bytes as u64;
    }
    Ok(true)
}
