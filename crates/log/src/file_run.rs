//! The valid frames of one log file.
//!
//! A file's *run* is the longest row of frames from its header on that are whole, belong to the
//! file's epoch, have dense commit numbers and repeat the checksum of the frame before. Whatever
//! stands behind the run is searched at every 8 bytes for further valid frames: they are of no
//! use as commits, but what they claim to be durable proves that the run was once longer.

use std::fmt;
use std::path::{Path, PathBuf};

use esker_format::frame::{
    EpochStart, FILE_HEADER_BYTES, FileHeader, Frame, decode_frame, decode_unchecked, kind,
    may_be_frame,
};
use esker_format::invariant;

use crate::log_file;
use crate::sabotage::Bug;
use crate::{Error, ErrorKind, Result};

/// How far apart the frames are that are found without passing over those before them.
const MARK_BYTES: u64 = 256 << 10;

/// What a log file holds.
#[derive(Clone, Debug)]
pub(crate) struct FileRun {
    pub number: u64,
    /// The length of the file in bytes.
    pub len: u64,
    /// `None` when the header is torn.
    pub header: Option<FileHeader>,
    /// True when the file's frames count: its header is whole and, in the first file of an epoch,
    /// so is everything up to the frame that starts the epoch.
    pub counts: bool,
    /// The last commit of the run that counts; below the header's first when there is none.
    pub last: u64,
    /// The checksum of `last`; 0 when unknown.
    pub last_checksum: u64,
    /// The offset behind `last`.
    pub end: u64,
    /// The offset behind the whole run, void frames included.
    pub run_end: u64,
    /// The offset behind the last byte that is not zero, to within 8 bytes; at least `run_end`.
    pub tail_end: u64,
    /// The highest `durable_through` of any valid frame or header in the file.
    pub claim: u64,
    /// The highest `durable_through` that speaks of this epoch's own files.
    pub vouched: u64,
    /// The highest epoch that any valid frame or header names.
    pub epoch: u64,
}

/// A commit and where its frame starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub commit: u64,
    pub offset: u64,
    /// The checksum of the frame before it.
    pub previous: u64,
}

impl FileRun {
    /// True when commits above this one count in the file.
    pub fn holds_above(&self, commit: u64) -> bool {
        let has_own = self.header.is_some_and(|header| self.last >= header.first_commit);
        self.counts && has_own && self.last > commit
    }
}

/// A log file in memory. Nothing writes to the bytes, so a frame is verified once.
pub(crate) struct FileBytes {
    path: PathBuf,
    number: u64,
    bytes: Vec<u8>,
    pub header: Option<FileHeader>,
    /// Where the run begins, and a frame of it every [`MARK_BYTES`] or so.
    marks: Vec<Position>,
    /// The catalogue edits of the run: few, and wanted without the rows between them.
    edits: Vec<Position>,
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileBytes({}, {} bytes)", self.path.display(), self.bytes.len())
    }
}

impl FileBytes {
    /// Takes the bytes of a file and reads the header.
    ///
    /// # Errors
    /// `NotOurs`, `UnknownVersion`, or `Corrupt` when the file stands under a wrong name.
    pub fn new(path: &Path, number: u64, database: u128, bytes: Vec<u8>) -> Result<Self> {
        let header = match FileHeader::decode(&bytes) {
            Ok(header) => Some(header),
            Err(e) if e.kind() == esker_format::ErrorKind::UnknownVersion => {
                return Err(Error::from(e.at(path.display())));
            }
            Err(_) => None,
        };
        if let Some(header) = header {
            if header.database != database {
                let message = format!(
                    "{}: belongs to database {:032x}, expected {database:032x}",
                    path.display(),
                    header.database
                );
                return Err(Error::new(ErrorKind::NotOurs, message));
            }
            if header.number != number {
                let message = format!(
                    "{}: offset 32: is log file {:016x} under another name",
                    path.display(),
                    header.number
                );
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
        }
        let (marks, edits) = (Vec::new(), Vec::new());
        Ok(Self { path: path.to_owned(), number, bytes, header, marks, edits })
    }

    /// The frame of `commit` at `offset`, which [`FileBytes::run`] has verified.
    ///
    /// # Errors
    /// `Corrupt` when there is another or none: the memory is damaged, or the caller mistaken.
    pub fn verified(&self, offset: u64, commit: u64) -> Result<Frame<'_>> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.bytes.get(start..));
        let frame = bytes.and_then(|bytes| decode_unchecked(bytes).ok());
        frame.filter(|frame| frame.header.commit == commit).ok_or_else(|| {
            let message = format!(
                "{}: offset {offset}: the frame of commit {commit} changed since it was verified",
                self.path.display()
            );
            Error::new(ErrorKind::Corrupt, message)
        })
    }

    /// Where the first commit above `commit` starts, in a run that goes beyond it.
    ///
    /// # Errors
    /// Those of [`FileBytes::verified`].
    pub fn behind(&self, commit: u64) -> Result<Position> {
        let mark = self.marks.partition_point(|mark| mark.commit <= commit).saturating_sub(1);
        let mut next = self.marks.get(mark).copied().ok_or_else(|| {
            let message = format!("{}: no run goes beyond commit {commit}", self.path.display());
            Error::new(ErrorKind::Corrupt, message)
        })?;
        while next.commit <= commit {
            let frame = self.verified(next.offset, next.commit)?;
            next = Position {
                commit: next.commit + 1,
                offset: next.offset + frame.bytes as u64,
                previous: frame.checksum,
            };
        }
        Ok(next)
    }

    /// Where the first catalogue edit of the run from `commit` on starts.
    pub fn edit_from(&self, commit: u64) -> Option<Position> {
        self.edits.get(self.edits.partition_point(|edit| edit.commit < commit)).copied()
    }

    /// The frame at `offset`, if it is whole.
    fn frame(&self, database: u128, offset: usize) -> Option<Frame<'_>> {
        let bytes = self.bytes.get(offset..)?;
        if Bug::TornTailAccepted.is_planted() {
            return decode_unchecked(bytes).ok();
        }
        decode_frame(bytes, log_file::place(database, self.number, offset as u64)).ok()
    }

    /// Verifies the file: finds the run, and what the bytes behind it claim. Commits from `void` on
    /// do not count.
    ///
    /// # Errors
    /// `Corrupt` when a frame of the run says what its writer cannot have meant.
    pub fn run(&mut self, database: u128, void: u64) -> Result<FileRun> {
        let mut run = FileRun {
            number: self.number,
            len: self.bytes.len() as u64,
            header: self.header,
            counts: false,
            last: 0,
            last_checksum: 0,
            end: 0,
            run_end: 0,
            tail_end: 0,
            claim: 0,
            vouched: 0,
            epoch: 0,
        };
        let mut offset = 0;
        if let Some(header) = self.header {
            offset = self.follow(database, void, &header, &mut run)?;
        }
        run.tail_end = offset as u64;
        self.search(database, offset, &mut run);
        Ok(run)
    }

    /// Looks for valid frames from `offset` on, at every 8 bytes.
    fn search(&self, database: u128, mut offset: usize, run: &mut FileRun) {
        while let Some(rest) = self.bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let found = if may_be_frame(rest) { self.frame(database, offset) } else { None };
            if let Some(frame) = found {
                run.claim = run.claim.max(frame.header.durable_through);
                run.epoch = run.epoch.max(frame.header.epoch);
                offset += frame.bytes;
                run.tail_end = offset as u64;
                continue;
            }
            let (word, _) = rest.split_at(rest.len().min(8));
            offset += word.len();
            if word.iter().any(|b| *b != 0) {
                run.tail_end = offset as u64;
            }
        }
    }

    /// Follows the chain from the header on; returns the offset behind it.
    fn follow(
        &mut self,
        database: u128,
        void: u64,
        header: &FileHeader,
        run: &mut FileRun,
    ) -> Result<usize> {
        let start = Position {
            commit: header.first_commit,
            offset: FILE_HEADER_BYTES as u64,
            previous: header.previous,
        };
        let (mut marks, mut edits, mut marked) = (vec![start], Vec::new(), start.offset);
        run.last = header.first_commit.saturating_sub(1);
        run.last_checksum = header.previous;
        run.end = start.offset;
        run.claim = run.last;
        run.vouched = run.last;
        run.epoch = header.epoch;
        run.counts = !header.starts_epoch() || Bug::StaleEpochAccepted.is_planted();

        let mut next = start;
        let mut offset = FILE_HEADER_BYTES;
        while let Some(frame) = self.follower(database, header, &next, offset) {
            self.expect_sound(header, &next, &frame)?;
            offset += frame.bytes;
            let (commit, checksum) = (next.commit, frame.checksum);
            let durable_through = frame.header.durable_through;
            run.claim = run.claim.max(durable_through);
            if durable_through >= header.epoch_start {
                run.vouched = run.vouched.max(durable_through);
            }
            if commit == header.epoch_start && frame.header.kind == kind::EPOCH_START {
                run.counts = true;
            }
            if next.offset - marked >= MARK_BYTES {
                marks.push(next);
                marked = next.offset;
            }
            if frame.header.kind >= kind::FIRST_EDIT {
                edits.push(next);
            }
            let Some(next_commit) = commit.checked_add(1) else { break };
            next = Position { commit: next_commit, offset: offset as u64, previous: checksum };
            if commit < void {
                (run.last, run.last_checksum, run.end) = (commit, checksum, offset as u64);
            }
        }
        run.run_end = offset as u64;
        (self.marks, self.edits) = (marks, edits);
        Ok(offset)
    }

    /// What a frame says of other frames. Copies in the first file of an epoch may say that commits
    /// behind them were durable, which was so in the files that they come from.
    fn expect_sound(&self, header: &FileHeader, at: &Position, frame: &Frame<'_>) -> Result<()> {
        let (commit, claim) = (at.commit, frame.header.durable_through);
        let place = || format!("{}: offset {}", self.path.display(), at.offset);
        invariant!(
            claim < commit.max(header.epoch_start),
            place(),
            "the frame of commit {commit} claims commits up to {claim} durable"
        );
        if commit == header.epoch_start {
            let start = EpochStart::decode(frame.payload);
            let follows = start.is_ok_and(|s| s.ended_at_commit.checked_add(1) == Some(commit));
            invariant!(
                frame.header.kind == kind::EPOCH_START && follows,
                place(),
                "the frame of commit {commit} does not start epoch {} there",
                header.epoch
            );
        }
        Ok(())
    }

    fn follower(
        &self,
        database: u128,
        header: &FileHeader,
        next: &Position,
        offset: usize,
    ) -> Option<Frame<'_>> {
        let frame = self.frame(database, offset)?;
        let follows = frame.header.epoch == header.epoch
            && frame.header.commit == next.commit
            && frame.header.previous == next.previous;
        follows.then_some(frame)
    }
}
