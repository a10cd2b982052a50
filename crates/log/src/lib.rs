//! The log: one order for all commits, made durable a batch at a time, recovered after any crash.
//!
//! | module | what it defines |
//! |---|---|
//! | [`LogFiles`] | the log files in memory, each read and verified once |
//! | [`scan()`], [`Scan`], [`Frames`] | what a database's log files still hold |
//! | `recovery` | [`Scan::start`]: a new epoch, in a new file; [`create_after`] |
//! | [`Log`], [`Ticket`] | numbering, group commit, rotation |
//! | `flusher` | which thread writes and syncs a batch, and which it wakes |
//! | `log_file` | names of log files, and what is done with one as a whole |
//! | `reserve` | disk space kept for opening and for commits that free space |
//! | `file_run` | the valid frames of one file |
//! | [`sabotage`] | planted bugs, to test the tests |
#![forbid(unsafe_code)]

mod error;
mod file_run;
mod flusher;
mod frames;
mod log;
mod log_file;
mod log_files;
mod recovery;
mod reserve;
mod scan;
#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind, Result};
pub use esker_vfs::sabotage;
pub use frames::{Frames, RecoveredFrame};
pub use log::{Log, OnDurable, Options, Ticket};
pub use log_file::unused;
pub use log_files::LogFiles;
pub use recovery::create_after;
pub use reserve::{Purpose, RESERVE_FILE};
pub use scan::{Scan, TornTail, scan};
