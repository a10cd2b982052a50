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

use esker_format::frame::{
    EpochStart, FILE_HEADER_BYTES, FileHeader, FrameHeader, append_frame, kind, seal_frame,
};
use esker_vfs::{Environment, OpenMode};

use crate::file_run::FileRun;
use crate::frames::Frames;
use crate::log::{Log, LogFile, Options, Start};
use crate::log_file;
use crate::reserve::{NewFile, ReserveFile};
use crate::sabotage::Bug;
use crate::scan::Scan;
use crate::{Error, ErrorKind, Result};

/// How much is copied with one write.
const WRITE_BYTES: usize = 1 << 20;

impl Log {
    /// Makes the first log file of a new database, durable with its name. The first commit number
    /// is taken by the frame that starts the epoch.
    ///
    /// Create the log before the file by which a directory is known to be a database, and call
    /// [`Log::fill_reserve`] after that: until then the log file has nothing behind its first
    /// frame, by which [`unused`](crate::unused) knows it. Leftovers of a creation that got no
    /// further are replaced.
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
        let mut reserve = ReserveFile::find(environment, dir);
        let new = NewFile::create(environment, dir, header.number, None)?;
        let begun = begin_epoch(new, header, start, 0, Frames::none(), &mut reserve)?;
        Ok(begun.into_log(environment.clone(), dir.to_owned(), Vec::new(), reserve, options))
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
    let mut reserve = ReserveFile::find(environment, dir);
    let new = NewFile::create(environment, dir, header.number, None)?;
    begin_epoch(new, header, start, commit, Frames::none(), &mut reserve).map(drop)
}

impl Scan {
    /// Starts the next epoch, in a new file that is durable with everything above
    /// [`Scan::settled`] when this returns, and removes the files it supersedes.
    ///
    /// On a full disk the new file is the reserve file, or takes the space that the log files have
    /// behind their frames; then only what is not settled may be copied.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the log is as it was, and may be scanned again.
    pub fn start(self, options: Options) -> Result<Log> {
        let (number, reserve_bytes) = (self.next_number(), options.reserve_bytes);
        let own = |tail| NewFile::create(&self.environment, &self.dir, number, tail);
        let mut reserve = ReserveFile::find(&self.environment, &self.dir);
        let mut settled = self.copied_from(self.copied_bytes_max);
        // Without a reserve file any space will do.
        let tail = (reserve.bytes() > 0).then_some(reserve_bytes / 2);
        let mut begun = own(tail).and_then(|new| self.begin(new, settled, &mut reserve));
        let is_full =
            |begun: &Result<Begun>| begun.as_ref().is_err_and(|e| e.kind() == ErrorKind::NoSpace);
        if is_full(&begun) && reserve.bytes() > 0 {
            // The other half is for commits that free space.
            settled = self.copied_from(reserve.bytes() / 2);
            let new = NewFile::from_reserve(&self.environment, &reserve, number);
            begun = new.and_then(|new| self.begin(new, settled, &mut reserve));
        }
        if is_full(&begun) {
            self.runs.iter().for_each(|run| drop(self.cut_tail(run)));
            settled = self.copied_from(0);
            begun = own(None).and_then(|new| self.begin(new, settled, &mut reserve));
        }
        let begun = begun.map_err(|e| self.named(&e, settled, &reserve))?;
        let older = self.remove_superseded(settled, &mut reserve, reserve_bytes);
        let log = begun.into_log(self.environment, self.dir, older, reserve, options);
        if reserve_bytes > 0 {
            // What fails here is tried again.
            let _ = log.fill_reserve(reserve_bytes);
        }
        Ok(log)
    }

    /// What opening needs when the disk is full.
    fn named(&self, error: &Error, settled: u64, reserve: &ReserveFile) -> Error {
        if error.kind() != ErrorKind::NoSpace {
            return error.clone();
        }
        let above = self.chain.iter().filter(|part| part.last_commit > settled);
        let needed: u64 = above.map(|part| part.end - part.start).sum();
        let has = reserve.bytes();
        let message = format!(
            "{error}; opening copies up to {needed} bytes of the log, whose reserve has {has}: \
             free some space and try again"
        );
        Error::new(error.kind(), message)
    }

    fn next_number(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.number) + 1 // default: files are numbered from 1.
    }

    /// Starts the epoch in a file, with copies of the commits above `settled`.
    fn begin(&self, new: NewFile, settled: u64, reserve: &mut ReserveFile) -> Result<Begun> {
        let epoch = self.runs.iter().map(|run| run.epoch).fold(0, u64::max);
        let previous_epoch = self.counted_epoch();
        let header = FileHeader {
            database: self.database,
            number: self.next_number(),
            epoch: epoch + 1,
            first_commit: settled + 1,
            epoch_start: self.last_commit + 1,
            previous: self.checksum_of(settled),
        };
        let start = EpochStart { previous_epoch, ended_at_commit: self.last_commit };
        let frames = Frames::new(self, settled, false);
        begin_epoch(new, header, start, self.proven, frames, reserve)
    }

    /// The last commit that stays where it is. Of the newest files, settled commits of so many
    /// bytes are copied.
    fn copied_from(&self, copied_bytes_max: u64) -> u64 {
        if Bug::RecoveryTrustsPageCache.is_planted() {
            return self.last_commit;
        }
        let (mut from, mut bytes) = (self.settled, 0);
        for part in self.chain.iter().rev() {
            bytes += part.end - part.start;
            if bytes > copied_bytes_max {
                break;
            }
            from = from.min(part.first_commit.saturating_sub(1));
        }
        from
    }

    /// The checksum of the frame of a commit at the start of a part of the chain; 0 when unknown.
    fn checksum_of(&self, commit: u64) -> u64 {
        let follower = self.chain.iter().find(|part| part.first_commit == commit + 1);
        follower.map_or(0, |part| part.previous) // default: 0 is a checksum that is not known.
    }

    /// Removes every file without a settled commit above the checkpoint; returns the others. A
    /// file that cannot be removed does no harm: the next start tries again.
    fn remove_superseded(
        &self,
        settled: u64,
        reserve: &mut ReserveFile,
        reserve_bytes: u64,
    ) -> Vec<LogFile> {
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
                    let _ = reserve.retire(run.number, reserve_bytes);
                }
            }
        }
        if reserve.bytes() < reserve_bytes {
            for file in &mut kept {
                let run = self.runs.iter().find(|run| run.number == file.number);
                if let Some(Ok(bytes)) = run.map(|run| self.cut_tail(run)) {
                    file.bytes = bytes;
                }
            }
        }
        kept
    }

    /// Cuts the zeros behind what a file has: no more frames come there. Returns its length.
    fn cut_tail(&self, run: &FileRun) -> Result<u64> {
        if run.tail_end < run.len {
            let path = log_file::path(&self.dir, run.number);
            self.environment.files.open(&path, OpenMode::Write)?.set_len(run.tail_end)?;
        }
        Ok(run.tail_end)
    }
}

/// The first file of an epoch, durable.
struct Begun {
    header: FileHeader,
    new: NewFile,
    end: End,
}

impl Begun {
    /// The log that runs from here on.
    fn into_log(
        self,
        environment: Environment,
        dir: PathBuf,
        older: Vec<LogFile>,
        reserve: ReserveFile,
        options: Options,
    ) -> Log {
        let Self { header, new: NewFile { file, reserved, .. }, end } = self;
        let (end, last_checksum) = (end.offset, end.checksum);
        Log::new(Start {
            environment,
            dir,
            header,
            file,
            end,
            last_checksum,
            reserved,
            older,
            reserve,
            options,
        })
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
    new: NewFile,
    header: FileHeader,
    start: EpochStart,
    durable_through: u64,
    frames: Frames<'_>,
    reserve: &mut ReserveFile,
) -> Result<Begun> {
    let mut writer = EpochWriter::new(new, header);
    let write = || {
        writer.new.write_header(&header)?;
        for frame in frames {
            let frame = frame?;
            writer.frame(frame.commit, frame.kind, frame.payload, durable_through)?;
        }
        writer.frame(header.epoch_start, kind::EPOCH_START, &start.encode(), durable_through)?;
        writer.finish(reserve)
    };
    match write() {
        Ok(()) => Ok(Begun { header, new: writer.new, end: writer.end }),
        Err(e) => {
            writer.new.abandon();
            Err(e)
        }
    }
}

/// Writes the first file of an epoch.
struct EpochWriter {
    new: NewFile,
    header: FileHeader,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    at: u64,
    end: End,
}

impl EpochWriter {
    fn new(new: NewFile, header: FileHeader) -> Self {
        let offset = FILE_HEADER_BYTES as u64;
        let end = End { offset, checksum: header.previous };
        Self { new, header, buffer: Vec::new(), at: offset, end }
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
        let (_, frame) = self.buffer.split_at_mut(start);
        let place = log_file::place(self.header.database, self.header.number, self.end.offset);
        let (checksum, bytes) = seal_frame(frame, place, self.end.checksum, durable_through)?;
        self.end = End { offset: self.end.offset + bytes as u64, checksum };
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.new.file.write_all_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self, reserve: &mut ReserveFile) -> Result<()> {
        self.write()?;
        self.new.reserve_behind(self.at)?;
        self.new.environment().tasks.pause();
        self.new.publish(reserve).map_err(|e| self.named(&e))?;
        self.new.environment().tasks.pause();
        Ok(())
    }

    fn named(&self, error: &Error) -> Error {
        let message = format!("start an epoch in {}: {error}", self.new.path().display());
        Error::new(error.kind(), message)
    }
}
