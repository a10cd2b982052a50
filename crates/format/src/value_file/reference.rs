//! Where a value lies.

use std::fmt;

use super::{ALIGN_BYTES, FILE_TAG};
use crate::checksum::{Checksum, Place};
use crate::codec::{Reader, Writer};
use crate::row::VALUE_BYTES_MAX;
use crate::{Result, invariant};

/// Bytes of a stored reference.
pub const REFERENCE_BYTES: usize = 32;

/// A value in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueReference {
    /// The number of the file.
    pub file: u64,
    /// Where the value starts.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The checksum of its bytes, at their place.
    pub checksum: u64,
}

impl ValueReference {
    /// Of a value that stands in a file of a database at an offset.
    #[must_use]
    pub fn new(database: u128, file: u64, offset: u64, value: &[u8]) -> Self {
        let mut reference = Self { file, offset, len: value.len() as u64, checksum: 0 };
        let mut sum = reference.start_checksum(database);
        sum.update(value);
        reference.checksum = sum.finish();
        reference
    }

    /// A checksum that fits once it has been updated with all bytes of the value.
    #[must_use]
    pub fn start_checksum(&self, database: u128) -> Checksum {
        Checksum::new(Place { database, file: FILE_TAG | self.file, position: self.offset })
    }

    /// Where the value ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Bytes of the file that the value takes: up to where the next may begin.
    #[must_use]
    pub fn space(&self) -> u64 {
        self.len.next_multiple_of(ALIGN_BYTES)
    }

    /// As four numbers, which is how segments and groups hold it.
    #[must_use]
    pub fn words(&self) -> [u64; 4] {
        [self.file, self.offset, self.len, self.checksum]
    }

    /// The reference of four numbers.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn from_words([file, offset, len, checksum]: [u64; 4]) -> Result<Self> {
        let reference = Self { file, offset, len, checksum };
        let is_first = offset < ALIGN_BYTES;
        let is_place = !is_first && offset.is_multiple_of(ALIGN_BYTES);
        invariant!(
            is_place && len <= VALUE_BYTES_MAX as u64,
            reference,
            "there is no place for a value there"
        );
        Ok(reference)
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Writer) {
        self.words().iter().for_each(|word| out.u64(*word));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a reference.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Self::from_words([input.u64()?, input.u64()?, input.u64()?, input.u64()?])
    }
}

impl fmt::Display for ValueReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, len, .. } = self;
        write!(f, "{len} bytes at {offset} of value file {file}")
    }
}
