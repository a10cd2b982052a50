//! The header of a log file.

use super::place;
use crate::checksum::checksum;
use crate::codec::{Reader, Writer};
use crate::{Error, ErrorKind, Result};

/// The size of a stored [`FileHeader`].
pub const FILE_HEADER_BYTES: usize = 80;

/// The version of the log format that this code writes.
pub const FORMAT_VERSION: u32 = 18;
/// The oldest that it reads.
pub const FORMAT_VERSION_MIN: u32 = 8;

const MAGIC: &[u8; 8] = b"ESKERLOG";
const CHECKSUM_AT: usize = FILE_HEADER_BYTES - 8;

/// The header of a log file. Every later version keeps this layout and its checksum, so that an
/// old program can tell a newer file from a damaged one.
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | `"ESKERLOG"` |
/// | 8..12 | version of the format |
/// | 12..16 | zero |
/// | 16..32 | database |
/// | 32..40 | file number |
/// | 40..48 | epoch |
/// | 48..56 | first commit |
/// | 56..64 | epoch start |
/// | 64..72 | checksum of the frame before the first commit, 0 when there is none |
/// | 72..80 | checksum of the header |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The database's random identity.
    pub database: u128,
    /// The number in the file's name.
    pub number: u64,
    /// The epoch of every frame in the file.
    pub epoch: u64,
    /// The commit number of the first frame. All lower ones were durable when this was written.
    pub first_commit: u64,
    /// The commit number of the frame that starts the epoch.
    pub epoch_start: u64,
    /// The checksum of the frame before `first_commit`; 0 when there is none.
    pub previous: u64,
}

impl FileHeader {
    /// True for the first file of an epoch: the one that carries frames over and starts it.
    #[must_use]
    pub fn starts_epoch(&self) -> bool {
        self.first_commit <= self.epoch_start
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.u32(FORMAT_VERSION);
        out.u32(0);
        out.raw(&self.database.to_le_bytes());
        out.u64(self.number);
        out.u64(self.epoch);
        out.u64(self.first_commit);
        out.u64(self.epoch_start);
        out.u64(self.previous);
        let sum = checksum(place(self.database, self.number, 0), out.as_bytes());
        out.u64(sum);
        out.into_bytes()
    }

    /// Reads the header at the start of `bytes`, of whatever database it is.
    ///
    /// # Errors
    /// `UnknownVersion` when the file is of a newer version, `Corrupt` when it is no whole header.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Reader::new(bytes);
        if input.raw(MAGIC.len())? != MAGIC {
            return Err(Error::corrupt("expected a log file to start with \"ESKERLOG\""));
        }
        let version = input.u32()?;
        let reserved = input.u32()?;
        let mut database = [0; 16];
        database.copy_from_slice(input.raw(16)?);
        let header = Self {
            database: u128::from_le_bytes(database),
            number: input.u64()?,
            epoch: input.u64()?,
            first_commit: input.u64()?,
            epoch_start: input.u64()?,
            previous: input.u64()?,
        };
        // The checksum comes first: a header torn in its version must not look like a newer one.
        let covered = Reader::new(bytes).raw(CHECKSUM_AT)?;
        if input.u64()? != checksum(place(header.database, header.number, 0), covered) {
            return Err(Error::corrupt("checksum of the log file header does not match"));
        }
        match version {
            FORMAT_VERSION_MIN..=FORMAT_VERSION if reserved == 0 => Ok(header),
            FORMAT_VERSION_MIN..=FORMAT_VERSION => {
                Err(Error::corrupt("reserved bytes of the header are not zero"))
            }
            _ => {
                let known = format!("{FORMAT_VERSION_MIN} to {FORMAT_VERSION}");
                let message = format!("log format version is {version}, expected {known}");
                Err(Error::new(ErrorKind::UnknownVersion, message))
            }
        }
    }
}
