//! The first bytes of a value file.

use super::FILE_TAG;
use crate::checksum::{Place, checksum};
use crate::codec::{Reader, Writer};
use crate::{Error, ErrorKind, Result};

/// The first bytes of every value file.
pub const MAGIC: [u8; 8] = *b"ESKERVAL";
/// The version of the layout.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;

/// What a value file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFileHeader {
    /// The database's random identity.
    pub database: u128,
    /// The file's own number.
    pub number: u64,
    /// Random: tells files of one number apart, of a database and of what went on from its backup.
    pub salt: u64,
}

impl ValueFileHeader {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(&MAGIC);
        out.u32(VERSION);
        out.u32(0);
        out.raw(&self.database.to_le_bytes());
        out.u64(self.number);
        out.u64(self.salt);
        out.u64(0);
        let place = Place { database: self.database, file: FILE_TAG | self.number, position: 0 };
        out.u64(checksum(place, out.as_bytes()));
        out.into_bytes()
    }

    /// Reads the header of a file that is known to be number `number`.
    ///
    /// # Errors
    /// `Corrupt` when the checksum does not fit, `UnknownVersion` for a newer layout.
    pub fn decode(bytes: &[u8], number: u64) -> Result<Self> {
        let mut input = Reader::new(bytes);
        if input.raw(8)? != MAGIC {
            return Err(Error::corrupt("offset 0: not a value file"));
        }
        let version = input.u32()?;
        let _reserved = input.u32()?;
        let mut database = [0; 16];
        database.copy_from_slice(input.raw(16)?);
        let database = u128::from_le_bytes(database);
        let header = Self { database, number: input.u64()?, salt: input.u64()? };
        let _reserved = input.u64()?;
        let covered = input.read_since(0)?;
        let place = Place { database, file: FILE_TAG | number, position: 0 };
        if input.u64()? != checksum(place, covered) || header.number != number {
            return Err(Error::corrupt("offset 0: the header's checksum does not fit"));
        }
        if version != VERSION {
            let message = format!("value file version {version}, this program knows {VERSION}");
            return Err(Error::new(ErrorKind::UnknownVersion, message));
        }
        Ok(header)
    }
}
