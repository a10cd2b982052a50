//! The index checkpoint: the entries of one primary index that name sealed segments.
//!
//! ```text
//! header (64 B): magic, version, table, database, number, segment count, entry count, checksum
//! segment numbers (8 B each) and their checksum (8 B)
//! entries in pieces of at most 8,192: 8 B each, then the piece's checksum (8 B)
//! ```
//!
//! An entry is the upper half of the key's hash (32 bits), then a segment's position in the list
//! above (10 bits) and a row (22 bits): 8.001 bytes a key.
//!
//! # Invariants
//!
//! `write_index_file` of `esker` upholds them; nothing refers to a file before it is synced.
//! 1. A file has the length that its header says: asserted when it is opened (`IndexFile`).
//! 2. It is of the database and the table that name it: asserted by recovery.
//! 3. A segment is listed once: [`IndexHeader::decode`].
//! 4. An entry is of a segment of the list, and of a row of it: asserted of each when the index is
//!    filled. Entries rise by their tags: asserted by the import.

use std::collections::BTreeSet;

use crate::checksum::{Place, checksum};
use crate::codec::{Reader, Writer};
use crate::{Error, ErrorKind, Result, TableId, invariant};

/// The first bytes of every index file.
pub const MAGIC: [u8; 8] = *b"ESKERIDX";
/// The version of the layout.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Entries under one checksum.
pub const PIECE_ENTRIES: usize = 8_192;
/// The most segments an index file can name.
pub const SEGMENTS_MAX: usize = 1 << 10;
/// The tag of index files in checksums.
const FILE_TAG: u64 = 4 << 56;
const ROW_BITS: u32 = 22;

/// What an index file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHeader {
    /// The database's random identity.
    pub database: u128,
    /// The file's own number.
    pub number: u64,
    /// The table.
    pub table: TableId,
    /// The segments whose rows are entered, by position.
    pub segments: Vec<u64>,
    /// How many entries follow.
    pub entries: u64,
}

/// One entry: the upper half of the hash, the segment's position, the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The upper half of the key's hash.
    pub tag: u32,
    /// The segment's position in [`IndexHeader::segments`].
    pub segment: u16,
    /// The row.
    pub row: u32,
}

impl IndexEntry {
    fn packed(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.segment) << ROW_BITS | u64::from(self.row)
    }

    #[allow(clippy::cast_possible_truncation, reason = "each part is masked to its bits")]
    fn unpacked(word: u64) -> Self {
        let row = (word & ((1 << ROW_BITS) - 1)) as u32;
        Self { tag: (word >> 32) as u32, segment: (word >> ROW_BITS & 0x3ff) as u16, row }
    }
}

impl IndexHeader {
    fn place(&self, position: u64) -> Place {
        Place { database: self.database, file: FILE_TAG | self.number, position }
    }

    /// The header and the segment list.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(&MAGIC);
        out.u32(VERSION);
        out.u32(self.table.0);
        out.raw(&self.database.to_le_bytes());
        out.u64(self.number);
        out.u64(self.segments.len() as u64);
        out.u64(self.entries);
        let sum = checksum(self.place(0), out.as_bytes());
        out.u64(sum);
        let mut list = Writer::new();
        self.segments.iter().for_each(|id| list.u64(*id));
        let sum = checksum(self.place(out.len() as u64), list.as_bytes());
        out.raw(list.as_bytes());
        out.u64(sum);
        out.into_bytes()
    }

    /// Appends the piece of entries that lies at `position` in the file.
    pub fn encode_piece(&self, out: &mut Vec<u8>, position: u64, entries: &[IndexEntry]) {
        let start = out.len();
        for entry in entries {
            out.extend_from_slice(&entry.packed().to_le_bytes());
        }
        let (_, piece) = out.split_at(start);
        let sum = checksum(self.place(position), piece);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Reads header and segment list from the start of a file that is known to be number
    /// `number`; returns where the entries start.
    ///
    /// # Errors
    /// `Corrupt` when a checksum does not fit, `UnknownVersion` for a newer layout.
    pub fn decode(bytes: &[u8], number: u64) -> Result<(Self, usize)> {
        let mut input = Reader::new(bytes);
        if input.raw(8)? != MAGIC {
            return Err(Error::corrupt("offset 0: not an index file"));
        }
        let version = input.u32()?;
        let table = TableId(input.u32()?);
        let mut database = [0; 16];
        database.copy_from_slice(input.raw(16)?);
        let database = u128::from_le_bytes(database);
        let own_number = input.u64()?;
        let (count, entries) = (input.u64()?, input.u64()?);
        let mut header = Self { database, number, table, segments: Vec::new(), entries };
        let covered = input.read_since(0)?;
        if input.u64()? != checksum(header.place(0), covered) || own_number != number {
            return Err(Error::corrupt("offset 0: the index header's checksum does not fit"));
        }
        if version != VERSION {
            let message = format!("index file version {version}, this program knows {VERSION}");
            return Err(Error::new(ErrorKind::UnknownVersion, message));
        }
        if count > SEGMENTS_MAX as u64 {
            return Err(Error::corrupt(format!("{count} segments, at most {SEGMENTS_MAX}")));
        }
        let start = input.position();
        for _ in 0..count {
            header.segments.push(input.u64()?);
        }
        let list = input.read_since(start)?;
        if input.u64()? != checksum(header.place(start as u64), list) {
            return Err(Error::corrupt(format!("offset {start}: checksum does not fit")));
        }
        let mut seen = BTreeSet::new();
        for id in &header.segments {
            let place = format_args!("index file {number}");
            invariant!(seen.insert(*id), place, "segment {id} is listed twice");
        }
        Ok((header, input.position()))
    }

    /// Reads the piece at `position`, whose bytes (checksum included) these are.
    ///
    /// # Errors
    /// `Corrupt` naming the offset.
    pub fn decode_piece(
        &self,
        position: u64,
        bytes: &[u8],
        mut visit: impl FnMut(IndexEntry),
    ) -> Result<()> {
        let split = bytes.len().checked_sub(8).and_then(|at| bytes.split_at_checked(at));
        let Some((entries, sum)) = split else {
            return Err(Error::corrupt(format!("offset {position}: the file ends early")));
        };
        if Reader::new(sum).u64()? != checksum(self.place(position), entries) {
            return Err(Error::corrupt(format!("offset {position}: checksum does not fit")));
        }
        for word in entries.as_chunks::<8>().0 {
            visit(IndexEntry::unpacked(u64::from_le_bytes(*word)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_is_listed_twice_is_a_broken_invariant() {
        let segments = vec![5, 9, 5];
        let header =
            IndexHeader { database: 7, number: 3, table: TableId(2), segments, entries: 0 };
        let message = IndexHeader::decode(&header.encode(), 3).unwrap_err().to_string();
        assert_eq!(message, "index file 3: broken invariant: segment 5 is listed twice");
    }

    #[test]
    fn header_and_pieces_survive_a_round_trip_and_refuse_damage() {
        let header = IndexHeader {
            database: 7,
            number: 3,
            table: TableId(2),
            segments: vec![5, 9],
            entries: 100,
        };
        let mut bytes = header.encode();
        let start = bytes.len();
        let entry = |i: u32| IndexEntry { tag: i.wrapping_mul(0x9e37_79b9), segment: 1, row: i };
        let entries: Vec<IndexEntry> = (0..100).map(entry).collect();
        header.encode_piece(&mut bytes, start as u64, &entries);
        let read = |bytes: &[u8]| -> Result<(IndexHeader, Vec<IndexEntry>)> {
            let (header, start) = IndexHeader::decode(bytes, 3)?;
            let mut entries = Vec::new();
            header.decode_piece(start as u64, &bytes[start..], |e| entries.push(e))?;
            Ok((header, entries))
        };
        assert_eq!(read(&bytes).unwrap(), (header, entries));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
