//! Starting an epoch: the first file of a new database, and recovery of an existing one.
//!
//! ```text
//!  before   file 5 ├ 40 … 58 │ 59 │ 60 │ ╳        59 and 60 may be in the page cache only
//!  after    file 6 ├ 59 │ 60 │ 61: epoch 3 starts, epoch 2 ended at 60
//! ```
//!
//! Every read-write open starts an epoch in a new file. The file begins with a copy of every
//! surviving frame that is not settled (known to be durable in the file it stands in), then comes
//! the frame that starts the epoch; then the file and its directory are synced; only then are the
//! files removed that the new one supersedes. While little is needed, everything above the
//! checkpoint is copied, so that all older files go.
//!
//! What a crash leaves:
//! * before the sync: a file in any state. As long as one frame of it is missing it does not
//!   count, and the older files are all there. When it happens to be whole it counts, but nothing
//!   in it is settled, so the next recovery copies it again.
//! * after the sync: a file that counts. Older files are void from its first commit on, so it does
//!   not matter which of them are removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::frame::{
    EpochStart, FILE_HEADER_BYTES, FileHeader, FrameHeader, append_frame, kind, seal_frame,
};
use esker_vfs::{Environment, File};

use crate::frames::Frames;
use crate::log::{Log, LogFile, Options, Start};
use crate::log_file;
use crate::sabotage::planted;
use crate::scan::Scan;
use crate::{Error, ErrorKind, Result};

/// How much is copied with one write.
const WRITE_BYTES: usize = 1 << 20;

impl Log {
    /// Makes the first log file of a new database, durable with its name. The first commit number
    /// is taken by the frame that starts the epoch.
    ///
    /// Create the log before the file by which a directory is known to be a database. Leftovers of
    /// a creation that got no further are replaced.
    ///
    /// # Errors
    /// `InvalidInput` when there is a log already; `NoSpace`, `Io`.
    pub fn create(
        environment: &Environment,
        dir: &Path,
        database: u128,
        options: Options,
    ) -> Result<Self> {
        if !log_file::unused(environment, dir)? {
            let message = format!("{}: holds the log of a database already", dir.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let files = environment.files.as_ref();
        let leftovers = log_file::numbers(files, dir)?;
        for number in &leftovers {
            files.remove(&log_file::path(dir, *number))?;
        }
        if !leftovers.is_empty() {
            files.sync_dir(dir)?;
        }
        let header = FileHeader {
            database,
            number: 1,
            epoch: 1,
            first_commit: 1,
            epoch_start: 1,
            previous: 0,
        };
        let start = EpochStart { previous_epoch: 0, ended_at_commit: 0 };
        begin_epoch(environment, dir, header, start, 0, Frames::none()).map(|(file, end)| {
            Self::new(Start {
                environment: environment.clone(),
                dir: dir.to_owned(),
                header,
                file,
                end: end.offset,
                last_checksum: end.checksum,
                older: Vec::new(),
                on_durable: options.on_durable,
            })
        })
    }
}

/// Makes the log of a copy of a database, in a directory without one: it holds nothing, and goes on
/// after `commit`, which a checkpoint there holds. Durable with the names in the directory.
///
/// # Errors
/// `NoSpace`, `Io`.
pub fn create_after(
    environment: &Environment,
    dir: &Path,
    database: u128,
    commit: u64,
) -> Result<()> {
    // Number 1 would be the log of a creation that got no further.
    let next = commit + 1;
    let header = FileHeader {
        database,
        number: 2,
        epoch: 1,
        first_commit: next,
        epoch_start: next,
        previous: 0,
    };
    let start = EpochStart { previous_epoch: 0, ended_at_commit: commit };
    begin_epoch(environment, dir, header, start, commit, Frames::none()).map(drop)
}

impl Scan {
    /// Starts the next epoch, in a new file that is durable with everything above
    /// [`Scan::settled`] when this returns, and removes the files it supersedes.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the log is as it was, and may be scanned again.
    pub fn start(self, options: Options) -> Result<Log> {
        let settled = self.copied_from();
        let newest = self.runs.last().map_or(0, |run| run.number);
        let epoch = self.runs.iter().map(|run| run.epoch).max().unwrap_or(0);
        let previous_epoch = self.counted_epoch();
        let header = FileHeader {
            database: self.database,
            number: newest + 1,
            epoch: epoch + 1,
            first_commit: settled + 1,
            epoch_start: self.last_commit + 1,
            previous: self.checksum_of(settled),
        };
        let start = EpochStart { previous_epoch, ended_at_commit: self.last_commit };
        let frames = Frames::new(&self, settled, false);
        let (file, end) =
            begin_epoch(&self.environment, &self.dir, header, start, self.proven, frames)?;
        let older = self.remove_superseded(settled);
        Ok(Log::new(Start {
            environment: self.environment,
            dir: self.dir,
            header,
            file,
            end: end.offset,
            last_checksum: end.checksum,
            older,
            on_durable: options.on_durable,
        }))
    }

    /// The last commit that stays where it is.
    fn copied_from(&self) -> u64 {
        if planted("recovery_trusts_page_cache") {
            self.last_commit
        } else if self.bytes() <= self.copied_bytes_max {
            self.checkpoint_commit
        } else {
            self.settled
        }
    }

    /// The checksum of the frame of a commit at the start of a part of the chain; 0 when unknown.
    fn checksum_of(&self, commit: u64) -> u64 {
        let follower = self.chain.iter().find(|part| part.first_commit == commit + 1);
        follower.map_or(0, |part| part.previous)
    }

    /// Removes every file without a settled commit above the checkpoint; returns the others. A
    /// file that cannot be removed is in nobody's way: the next start tries again.
    fn remove_superseded(&self, settled: u64) -> Vec<LogFile> {
        let mut kept = Vec::new();
        for run in &self.runs {
            let part = self.chain.iter().find(|part| part.number == run.number);
            match part.filter(|part| part.first_commit <= settled) {
                Some(part) => kept.push(LogFile {
                    number: run.number,
                    first_commit: part.first_commit,
                    bytes: run.len,
                }),
                None => {
                    let path = log_file::path(&self.dir, run.number);
                    let _ = self.environment.files.remove(&path);
                }
            }
        }
        kept
    }
}

/// Where a chain ends.
#[derive(Clone, Copy, Debug)]
struct End {
    offset: u64,
    checksum: u64,
}

/// Writes and syncs the first file of an epoch: header, `frames`, the start of the epoch.
fn begin_epoch(
    environment: &Environment,
    dir: &Path,
    header: FileHeader,
    start: EpochStart,
    durable_through: u64,
    frames: Frames<'_>,
) -> Result<(Arc<dyn File>, End)> {
    let path = log_file::path(dir, header.number);
    let mut writer = EpochWriter::new(environment, path.clone(), dir, header)?;
    let write = || {
        for frame in frames {
            let frame = frame?;
            writer.frame(frame.commit, frame.kind, frame.payload, durable_through)?;
        }
        writer.frame(header.epoch_start, kind::EPOCH_START, &start.encode(), durable_through)?;
        writer.finish()
    };
    write().inspect_err(|_| {
        // Only to be tidy: whole or not, it is superseded by the next start.
        let _ = environment.files.remove(&path);
    })
}

/// Writes the first file of an epoch.
struct EpochWriter<'a> {
    environment: &'a Environment,
    dir: &'a Path,
    path: PathBuf,
    header: FileHeader,
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    at: u64,
    end: End,
}

impl<'a> EpochWriter<'a> {
    fn new(
        environment: &'a Environment,
        path: PathBuf,
        dir: &'a Path,
        header: FileHeader,
    ) -> Result<Self> {
        let file = log_file::create(environment, dir, &header)?;
        let offset = FILE_HEADER_BYTES as u64;
        let end = End { offset, checksum: header.previous };
        Ok(Self { environment, dir, path, header, file, buffer: Vec::new(), at: offset, end })
    }

    fn frame(
        &mut self,
        commit: u64,
        kind: u16,
        payload: &[u8],
        durable_through: u64,
    ) -> Result<()> {
        let header = FrameHeader { epoch: self.header.epoch, commit, kind, ..Default::default() };
        let start = self.buffer.len();
        append_frame(&mut self.buffer, &header, payload)?;
        let frame = self.buffer.get_mut(start..).unwrap_or_default();
        let place = log_file::place(self.header.database, self.header.number, self.end.offset);
        let (checksum, bytes) = seal_frame(frame, place, self.end.checksum, durable_through)?;
        self.end = End { offset: self.end.offset + bytes as u64, checksum };
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_all_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<(Arc<dyn File>, End)> {
        self.write()?;
        self.environment.tasks.pause();
        log_file::sync(self.file.as_ref()).map_err(|e| self.named(&e))?;
        log_file::sync_dir(self.environment, self.dir)?;
        self.environment.tasks.pause();
        Ok((Arc::clone(&self.file), self.end))
    }

    fn named(&self, error: &Error) -> Error {
        let message = format!("start an epoch in {}: {error}", self.path.display());
        Error::new(error.kind(), message)
    }
}
