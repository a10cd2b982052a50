//! What the log files of a database still hold.
//!
//! ```text
//!  file 5  epoch 2   ├ 40 │ 41 │ 42 │ 43 │ 44 ┊ 45 ┊ 46      45, 46: void, epoch 3 began at 45
//!  file 6  epoch 3                       ├ 45 │ 46 │ 47 │ ╳ torn
//!  file 7  epoch 4                  (unfinished recovery: does not count)
//!
//!  checkpoint at 41  ⇒  the chain is 42 … 44 of file 5, then 45 … 47 of file 6
//! ```
//!
//! # Invariants
//!
//! What the writers uphold ([`Log`](crate::Log), the flusher, and `recovery` for the first file of
//! an epoch):
//! 1. Commit numbers are dense. The flusher asserts it of each frame before the frame is written; a
//!    scan ends its chain at the first gap, and judges it by rule 4.
//! 2. A frame repeats the checksum of the one before; within a file and an epoch: what does not is
//!    no part of the chain.
//! 3. The frame that starts an epoch says that the epoch before ended at the commit before it:
//!    asserted where the file is read (`FileRun`).
//! 4. Files of higher numbers have no lower epochs: asserted by `LogFiles::read`. A file has its
//!    number and its database in its header: asserted by `FileBytes::new`.
//!
//! Rules
//! 1. The first file of an epoch counts only when its header, the frames it carries over and the
//!    frame that starts the epoch are whole. Otherwise it is what a crash left of a recovery.
//! 2. Where a file of a higher epoch counts, frames of lower epochs are void from its first commit
//!    on.
//! 3. The chain starts behind the checkpoint and ends before the first missing commit number.
//! 4. When any valid frame, void or not, in whatever file, says that the missing commit was
//!    durable, there is damage: an error. Otherwise what follows is the torn tail: frames that
//!    were being written when the power went, and were never acknowledged.
//! 5. A database always has a log file that counts: files go only once a newer one is durable.
//!
//! Within an epoch each frame repeats the checksum of the one before, across files too. Between
//! epochs the numbers alone link: an older file may hold the original of a frame that the chain
//! has as a copy.
//!
//! **What is read when.** [`LogFiles`] reads each file once and verifies every frame in it; a scan
//! and its frames are found in that memory, which stays until the scan is dropped.
//!
//! **What needs no rewriting.** `durable_through` proves that a commit survived *somewhere* when
//! the frame was written. For a copy in the first file of an epoch that is worth nothing until
//! that file was synced, which only frames written behind the start of the epoch show. So
//! [`Scan::start`] relies on claims of the newest epoch that reach its start, or else on what
//! stands before the epoch's first commit; see [`Scan::settled`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_vfs::Environment;

use crate::file_run::{FileBytes, FileRun};
use crate::frames::Frames;
use crate::log_file;
use crate::log_files::{LogFiles, ReadFile};
use crate::sabotage::Bug;
use crate::{Error, ErrorKind, Result};

/// Up to this many bytes of log [`Scan::start`] copies although they are settled, to be rid of the
/// files they stand in.
const COPIED_BYTES_MAX: u64 = 4 << 20;

/// What the log files of a database still hold: see [`scan()`].
#[derive(Clone, Debug)]
pub struct Scan {
    pub(crate) environment: Environment,
    pub(crate) dir: PathBuf,
    pub(crate) database: u128,
    pub(crate) checkpoint_commit: u64,
    /// Every log file, by number.
    pub(crate) runs: Vec<FileRun>,
    pub(crate) chain: Vec<ChainPart>,
    pub(crate) last_commit: u64,
    pub(crate) proven: u64,
    pub(crate) settled: u64,
    /// Up to this many bytes of log are copied although they are settled.
    pub(crate) copied_bytes_max: u64,
    torn_tail: Option<TornTail>,
}

/// The part of a log file that belongs to the chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainPart {
    pub number: u64,
    /// The file, whose frames from `first_commit` to `last_commit` were verified.
    pub file: Arc<FileBytes>,
    pub first_commit: u64,
    pub last_commit: u64,
    /// Where the frame of `first_commit` starts.
    pub start: u64,
    /// Where the frame of `last_commit` ends.
    pub end: u64,
    /// The checksum of the frame before `first_commit`.
    pub previous: u64,
}

/// What a crash left behind the last whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file.
    pub path: PathBuf,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// Its length in bytes, in this file.
    pub bytes: u64,
}

/// Reads the log files in `dir` and finds every commit above `checkpoint_commit` that survived.
/// Modifies nothing. Where more than one checkpoint may be needed, see [`LogFiles`].
///
/// # Errors
/// Those of [`LogFiles::read`] and [`LogFiles::scan`].
pub fn scan(
    environment: &Environment,
    dir: &Path,
    database: u128,
    checkpoint_commit: u64,
) -> Result<Scan> {
    LogFiles::read(environment, dir, database, checkpoint_commit)?.scan(checkpoint_commit)
}

impl Scan {
    /// Builds the chain above a checkpoint.
    pub(crate) fn link(files: &LogFiles, checkpoint_commit: u64) -> Result<Self> {
        let mut scan = Self {
            environment: files.environment.clone(),
            dir: files.dir.clone(),
            database: files.database,
            checkpoint_commit,
            runs: files.files.iter().map(|file| file.run.clone()).collect(),
            chain: Vec::new(),
            last_commit: checkpoint_commit,
            proven: checkpoint_commit,
            settled: checkpoint_commit,
            copied_bytes_max: COPIED_BYTES_MAX,
            torn_tail: None,
        };
        let end = scan.follow(&files.files)?;
        scan.judge(end)?;
        Ok(scan)
    }

    /// Follows the chain from file to file; returns the file and the offset where it ends.
    fn follow(&mut self, files: &[ReadFile]) -> Result<Option<(u64, u64)>> {
        let mut previous: Option<(u64, u64)> = None; // epoch, checksum of `last_commit`
        let mut end = None;
        for ReadFile { run, bytes } in files {
            let Some(header) = run.header.filter(|_| run.counts) else { continue };
            let expected = self.last_commit.saturating_add(1);
            if run.last.saturating_add(1) == expected && header.first_commit <= run.last {
                previous = Some((header.epoch, run.last_checksum));
            }
            let needed = bytes.as_ref().filter(|_| run.holds_above(self.checkpoint_commit));
            let Some(file) = needed else {
                if self.chain.is_empty() || header.first_commit == expected {
                    end = Some((run.number, run.run_end));
                }
                continue;
            };
            // A run starts at the checkpoint or at its header: above `expected`, there is a gap;
            // below, two files of one epoch disagree.
            let first = file.behind(self.checkpoint_commit)?;
            let chained = match previous {
                Some((epoch, checksum)) => epoch != header.epoch || first.previous == checksum,
                None => true,
            };
            if first.commit != expected || !chained {
                break;
            }
            self.chain.push(ChainPart {
                number: run.number,
                file: Arc::clone(file),
                first_commit: expected,
                last_commit: run.last,
                start: first.offset,
                end: run.end,
                previous: first.previous,
            });
            self.last_commit = run.last;
            previous = Some((header.epoch, run.last_checksum));
            end = Some((run.number, run.run_end));
        }
        Ok(end)
    }

    /// Tells damage from a torn tail at the first missing commit.
    fn judge(&mut self, end: Option<(u64, u64)>) -> Result<()> {
        let missing = self.last_commit.saturating_add(1);
        let Some((number, offset)) = end.or_else(|| self.first_counting()) else {
            let message = format!(
                "{}: expected a log file with a whole header and the start of its epoch, found {}",
                self.dir.display(),
                if self.runs.is_empty() { "no log file" } else { "none in the log files there" }
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        let path = log_file::path(&self.dir, number);
        let claim = self.runs.iter().map(|run| (run.claim, run.number)).max();
        if let Some((claim, witness)) = claim.filter(|(claim, _)| *claim >= missing)
            && !Bug::MidlogRotAsTornTail.is_planted()
        {
            let message = format!(
                "{}: offset {offset}: expected the frame of commit {missing}, which is damaged or \
                 missing although {} proves commits up to {claim} durable",
                path.display(),
                log_file::path(Path::new(""), witness).display(),
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        // default: what no file claims proves nothing more.
        self.proven = self.proven.max(claim.map_or(0, |c| c.0)).min(self.last_commit);
        let vouched =
            if Bug::RecoveryTrustsAnyClaim.is_planted() { self.proven } else { self.vouched() };
        self.settled = vouched.clamp(self.checkpoint_commit, self.last_commit);
        let run = self.runs.iter().find(|run| run.number == number);
        let torn = run.map(|run| run.tail_end).filter(|tail_end| *tail_end > offset);
        self.torn_tail = torn.map(|tail_end| TornTail { path, offset, bytes: tail_end - offset });
        Ok(())
    }

    fn first_counting(&self) -> Option<(u64, u64)> {
        self.runs.iter().find(|run| run.counts).map(|run| (run.number, run.run_end))
    }

    /// What the newest epoch proves of its own files, and of the older ones it goes on from.
    fn vouched(&self) -> u64 {
        let newest = self.counted_epoch();
        let own = self.runs.iter().filter(|run| run.counts && run.epoch_of_header() == newest);
        own.map(|run| run.vouched).fold(0, u64::max)
    }

    /// The newest epoch that counts.
    pub(crate) fn counted_epoch(&self) -> u64 {
        let counting = self.runs.iter().filter(|run| run.counts);
        counting.map(FileRun::epoch_of_header).fold(0, u64::max)
    }

    /// The last commit that survived; the checkpoint's when the log holds none above it.
    #[must_use]
    pub fn last_commit(&self) -> u64 {
        self.last_commit
    }

    /// The highest commit that the log or the checkpoint proves to have been durable.
    #[must_use]
    pub fn proven(&self) -> u64 {
        self.proven
    }

    /// The highest commit that is known to be durable in the very files the chain reads it from.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// What stands behind the last whole frame in its file, when something does.
    #[must_use]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn_tail.as_ref()
    }

    /// The bytes that the commits above the checkpoint take in the log.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chain.iter().map(|part| part.end - part.start).sum()
    }

    /// The surviving frames above the checkpoint, in commit order without a gap, whatever their
    /// kind. They lie in memory since the scan: no file is read.
    #[must_use]
    pub fn frames(&self) -> Frames<'_> {
        Frames::new(self, self.checkpoint_commit, false)
    }

    /// Those of [`Scan::frames`] that are catalogue edits, by their kind (see
    /// [`esker_format::frame::kind`]). The frames between them are not touched.
    #[must_use]
    pub fn edits(&self) -> Frames<'_> {
        Frames::new(self, self.checkpoint_commit, true)
    }
}

impl FileRun {
    fn epoch_of_header(&self) -> u64 {
        self.header.map_or(0, |h| h.epoch) // default: epochs are numbered from 1: it is of none.
    }
}
