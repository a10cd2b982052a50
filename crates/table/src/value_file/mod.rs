//! Long values, in files of their own (see [`esker_format::value_file`] for what is in them).
//!
//! ```text
//!  store     a place in the current file, write the bytes there       any thread, side by side
//!  sync      one sync for all that was written before it              a waiter becomes the leader
//!  (number)  the frame, or segment, that refers to the value          the layer above
//!  ensure    first touch: read all of it, compare the checksum        any reader
//!  bytes     from the mapped file, or from the copy that was verified
//! ```
//!
//! The invariants of a file are in the head of [`esker_format::value_file`].
//!
//! A file is in use as long as some group or segment, or a commit or load under way (through its
//! [`StoredValue`]s), holds it. One that has no holder any more, and takes no more values, may
//! be removed once all that was numbered so far is durable: groups and segments let go of a file
//! only after the frame that replaced them is durable, or together with their table.

mod file;
mod list;
mod store;
mod uses;

pub use file::{StoredValue, ValueFile};
pub(crate) use list::FileList;
pub use store::{ValueFiles, ValueLimits};

use std::path::{Path, PathBuf};

/// The file name of a value file.
#[must_use]
pub fn value_file_name(id: u64) -> String {
    format!("values-{id:016x}")
}

/// The number in a value file's name.
#[must_use]
pub fn value_file_id(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("values-").filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The path of a value file.
#[must_use]
pub fn value_file_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(value_file_name(id))
}

#[cfg(test)]
mod tests;
