//! Value files: texts, byte strings and JSON documents that are too long to be copied from the log
//! to a group, from there to a segment, and from segment to segment.
//!
//! ```text
//! 0        64    512                      1,536
//! ├────────┼─────┼─────────────────┼──────┼──────────────────────┼ ─ ─ ─
//! │ header │  –  │ value           │  –   │ value                │
//! └────────┴─────┴─────────────────┴──────┴──────────────────────┴ ─ ─ ─
//!                 each value starts at a multiple of 512
//! ```
//!
//! Values are appended while the file is the current one of an opening; afterwards it is never
//! written again. What refers to a value (a row of the log or of a checkpoint, a segment) has a
//! [`ValueReference`]: file, offset, length, and the checksum over the bytes and their place.
//! Nothing in the file says where values are; what nothing refers to is garbage.
//!
//! # Invariants
//!
//! 1. A value has been synced, and so has the name of its file, before anything refers to it: the
//!    commit, the load or the rewrite waits for it (`StoredValue::sync` of `esker_table`).
//! 2. Two values share no sector: writing one cannot tear another that is durable. `ValueFile`
//!    gives out places at multiples of 512; asserted of each reference that is read,
//!    `ValueReference::from_words`.
//! 3. A value lies in the file that its reference names, behind the header and before the end, with
//!    the checksum of the reference: asserted at its first use, `ValueFile::ensure`.
//! 4. A file is there as long as something refers to it: asserted when the segment, or the row of
//!    the log, that names it is opened, `ValueFiles::open`.

mod header;
mod heap_word;
mod reference;

pub use header::{HEADER_BYTES, MAGIC, VERSION, ValueFileHeader};
pub use heap_word::HeapWord;
pub use reference::{REFERENCE_BYTES, ValueReference};

#[cfg(test)]
mod tests;

/// Values start at multiples of this many bytes.
pub const ALIGN_BYTES: u64 = 512;

/// Values longer than this many bytes go to value files: as much as a key may have, so that keys
/// never do, and enough to be worth a sync of a second file.
pub const LONG_BYTES: usize = crate::row::KEY_BYTES_MAX;

/// The tag of value files in checksums.
const FILE_TAG: u64 = 5 << 56;
