//! The log files of a database in memory, each read and verified once.
//!
//! ```text
//!            checkpoint 1                     checkpoint 2
//!  file 5 ├ 30 … 40 │ 41 … 60 ┤   file 6 ├ 61 … 70 │ 71 … 80 ┤
//!                   └───────── scan(40) ──────────────────────┤
//!                                                  └ scan(70) ┤
//! ```
//!
//! [`LogFiles::read`] is the only place of recovery that reads log files and computes checksums,
//! and it does so file by file, into memory that nothing writes to afterwards. What is kept is
//! what a chain can need: files with commits above the oldest checkpoint that may be needed.
//! Each [`Scan`] made from them shares the files of its own chain; the others are freed with the
//! `LogFiles`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_vfs::Environment;

use crate::file_run::{FileBytes, FileRun};
use crate::log_file;
use crate::sabotage::Bug;
use crate::scan::Scan;
use crate::{Error, ErrorKind, Result};

/// The log files of a database, read and verified, to be scanned from any checkpoint at or above
/// the one they were read for.
#[derive(Clone, Debug)]
pub struct LogFiles {
    pub(crate) environment: Environment,
    pub(crate) dir: PathBuf,
    pub(crate) database: u128,
    oldest_checkpoint: u64,
    /// By number.
    pub(crate) files: Vec<ReadFile>,
}

/// A log file that was read.
#[derive(Clone, Debug)]
pub(crate) struct ReadFile {
    pub run: FileRun,
    /// Its bytes, when it holds commits that count above the oldest checkpoint.
    pub bytes: Option<Arc<FileBytes>>,
}

impl LogFiles {
    /// Reads and verifies the log files in `dir`, for scans from `oldest_checkpoint`, a commit
    /// number, or above. Modifies nothing.
    ///
    /// # Errors
    /// `Corrupt` names file and offset when epochs run backwards, a file has another's name, or a
    /// frame says what cannot be;
    /// `NotOurs` and `UnknownVersion` when a log file is of another database or of a newer
    /// version; `Io` when a file cannot be read.
    pub fn read(
        environment: &Environment,
        dir: &Path,
        database: u128,
        oldest_checkpoint: u64,
    ) -> Result<Self> {
        let mut files = Vec::new();
        let mut bound = VoidBound::default();
        for number in log_file::numbers(environment.files.as_ref(), dir)?.into_iter().rev() {
            let path = log_file::path(dir, number);
            let bytes = log_file::read(environment.files.as_ref(), &path)?;
            let mut bytes = FileBytes::new(&path, number, database, bytes)?;
            // default: a file with a torn header has no frames that could be void.
            let epoch = bytes.header.map_or(0, |h| h.epoch);
            let run = bytes.run(database, bound.before(epoch))?;
            if let Some(header) = run.header.filter(|_| run.counts) {
                bound.add(header.epoch, header.first_commit).map_err(|newer| {
                    let message = format!(
                        "{}: offset 40: epoch is {}, expected at most {newer} as in newer files",
                        path.display(),
                        header.epoch
                    );
                    Error::new(ErrorKind::Corrupt, message)
                })?;
            }
            let bytes = run.holds_above(oldest_checkpoint).then(|| Arc::new(bytes));
            files.push(ReadFile { run, bytes });
        }
        files.reverse();
        let (environment, dir) = (environment.clone(), dir.to_owned());
        Ok(Self { environment, dir, database, oldest_checkpoint, files })
    }

    /// Finds every commit above `checkpoint_commit` that survived. Reads no file.
    ///
    /// # Errors
    /// `Corrupt` names file and offset when a commit that was durable is missing, and when there
    /// is no log at all; `InvalidInput` when the files were read for a later checkpoint.
    pub fn scan(&self, checkpoint_commit: u64) -> Result<Scan> {
        if checkpoint_commit < self.oldest_checkpoint {
            let message = format!(
                "scan of the log from commit {checkpoint_commit}, expected at least {} as its \
                 files were read for",
                self.oldest_checkpoint
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Scan::link(self, checkpoint_commit)
    }
}

/// From which commit on frames of an epoch are void, going from the newest file to the oldest.
#[derive(Debug, Default)]
struct VoidBound {
    epoch: u64,
    /// The first commit of that epoch in the files seen.
    first: Option<u64>,
    /// The first commit of all higher epochs.
    above: Option<u64>,
}

impl VoidBound {
    fn before(&self, epoch: u64) -> u64 {
        if Bug::VoidFrameResurrected.is_planted() {
            return u64::MAX;
        }
        let own = if epoch < self.epoch { self.first } else { None };
        // default: where no newer file counts, nothing is void.
        own.into_iter().chain(self.above).min().unwrap_or(u64::MAX)
    }

    /// Takes in a file that counts. Fails with the epoch seen when that is lower.
    fn add(&mut self, epoch: u64, first_commit: u64) -> std::result::Result<(), u64> {
        match self.first {
            Some(_) if epoch > self.epoch => return Err(self.epoch),
            Some(first) if epoch == self.epoch => self.first = Some(first.min(first_commit)),
            first => {
                self.above = first.into_iter().chain(self.above).min();
                (self.epoch, self.first) = (epoch, Some(first_commit));
            }
        }
        Ok(())
    }
}
