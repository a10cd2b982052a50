//! The checksum: CRC-64/NVME over the place and the bytes.
//!
//! The place (a file's identity and the position in it) is hashed in front of the bytes, so that
//! a block which is whole but stands in the wrong file or at the wrong offset does not verify.

use crc_fast::{CrcAlgorithm, Digest};

/// Where checksummed bytes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database's random identity.
    pub database: u128,
    /// What kind of file, and which one.
    pub file: u64,
    /// The position in the file, in bytes or blocks.
    pub position: u64,
}

/// The checksum of `bytes` standing at `place`.
#[must_use]
pub fn checksum(place: Place, bytes: &[u8]) -> u64 {
    let mut sum = Checksum::new(place);
    sum.update(bytes);
    sum.finish()
}

/// A checksum of bytes that come piece by piece.
#[derive(Debug)]
pub struct Checksum(Digest);

impl Checksum {
    /// Of no bytes yet, which lie at `place`.
    #[must_use]
    pub fn new(place: Place) -> Self {
        let mut header = [0u8; 32];
        let (database, rest) = header.split_at_mut(16);
        let (file, position) = rest.split_at_mut(8);
        database.copy_from_slice(&place.database.to_le_bytes());
        file.copy_from_slice(&place.file.to_le_bytes());
        position.copy_from_slice(&place.position.to_le_bytes());
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(&header);
        Self(digest)
    }

    /// Goes on with the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all of them.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0.finalize()
    }
}
