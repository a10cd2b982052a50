//! The log on disk: a file header, then frames, one for each commit number.
//!
//! ```text
//! log file   ┌──────────────┬────────┬────────┬────────┬─ ─ ─ ─ ─ ─ ─ ─ ─
//!            │ file header  │ frame  │ frame  │ frame  │ torn tail, zeros …
//!            └──────────────┴────────┴────────┴────────┴─ ─ ─ ─ ─ ─ ─ ─ ─
//! frame      ┌──────────────┬─────────────┬─────────┐
//!            │ frame header │ payload     │ padding │   a multiple of 8 bytes
//!            └──────────────┴─────────────┴─────────┘
//! ```
//!
//! Numbers are little-endian. The checksum of a frame stands in front of it, so that what it
//! covers is one run of bytes: the rest of the header, the payload and the padding, all bound to
//! the database, the file and the offset. A frame repeats the checksum of the one before it, so
//! the frames of a file form a chain.
//!
//! # Invariants
//!
//! 1. The checksum of a frame is over all its bytes, at their place: `seal_frame` writes it,
//!    `decode_frame` compares it. So is that of the file header: `FileHeader`.
//! 2. A payload has at most 16 MiB, and reserved bytes and padding are zero: `append_frame` sees to
//!    it, `decode_unchecked` refuses others.
//! 3. A frame claims no commit durable from its own on, or, where recovery has copied it, from the
//!    start of the epoch on: the log's flusher and `EpochWriter` see to it; asserted where a log
//!    file is read, for each frame (`FileRun`).
//! 4. A frame is of a kind that is known: asserted where it is replayed.
//!
//! What holds from frame to frame is in the head of `esker_log`'s `scan`.

mod file_header;
mod header;
#[cfg(test)]
mod tests;

pub use file_header::{FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader};
pub use header::{
    EpochStart, FRAME_HEADER_BYTES, Frame, FrameHeader, PAYLOAD_BYTES_MAX, append_frame,
    decode_frame, decode_unchecked, frame_bytes, may_be_frame, seal_frame,
};

use crate::checksum::Place;

/// Frame kinds. Those from [`kind::FIRST_EDIT`] up are catalogue edits of the layers above.
pub mod kind {
    /// Rows; the payload belongs to the layers above.
    pub const ROWS: u16 = 0;
    /// The first frame of an epoch that its writer did not carry over: [`super::EpochStart`].
    pub const EPOCH_START: u16 = 1;
    /// A clean close: proves every frame before it durable. No payload.
    pub const CLOSE: u16 = 2;
    /// The lowest kind of a catalogue edit; the payload belongs to the layers above.
    pub const FIRST_EDIT: u16 = 16;
}

/// What marks the file identities of log files among all files of a database (`"log"`).
const LOG_FILE: u64 = 0x0067_6f6c << 40;

/// The place of bytes in the log file with this number.
#[must_use]
pub fn place(database: u128, file_number: u64, offset: u64) -> Place {
    Place { database, file: LOG_FILE ^ file_number, position: offset }
}
