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
    let mut header = [0u8; 32];
    let (database, rest) = header.split_at_mut(16);
    let (file, position) = rest.split_at_mut(8);
    database.copy_from_slice(&place.database.to_le_bytes());
    file.copy_from_slice(&place.file.to_le_bytes());
    position.copy_from_slice(&place.position.to_le_bytes());
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&header);
    digest.update(bytes);
    digest.finalize()
}
