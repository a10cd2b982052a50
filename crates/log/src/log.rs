//! The running log: numbering frames and making them durable.
//!
//! Appending copies a frame into a queue and gives it the next commit number; nothing is written.
//! A thread that waits and finds no leader becomes one: it takes all that is
//! queued as one batch, writes it with one call and syncs the file. Meanwhile the next batch
//! gathers, so the running sync is the batching window. See `flusher` for how threads take turns.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::frame::{FileHeader, FrameHeader, append_frame, frame_bytes, kind};
use esker_vfs::sync::{AtomicU64, Mutex, MutexGuard};
use esker_vfs::{DurationCounts, Durations, Environment, Event, File};

use crate::flusher::Flusher;
use crate::reserve::{Purpose, ReserveFile, write_zeros};
use crate::sabotage::Bug;
use crate::{Error, ErrorKind, Result};

/// What is called when commits up to a number have become durable, before anybody who waits for
/// them goes on. Calls come one at a time with rising numbers, and must not wait or append.
pub type OnDurable = Arc<dyn Fn(u64, &[u8]) + Send + Sync>;

/// How a log runs.
#[derive(Clone, Default)]
pub struct Options {
    /// Called on progress, if set.
    pub on_durable: Option<OnDurable>,
    /// The size of the reserve in bytes, see `reserve`; none by default.
    pub reserve_bytes: u64,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("on_durable", &self.on_durable.is_some())
            .field("reserve_bytes", &self.reserve_bytes)
            .finish()
    }
}

/// An appended frame: what to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its commit number.
    pub commit: u64,
    /// The batch that will carry it.
    pub(crate) batch: u64,
}

/// A log file that belongs to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub number: u64,
    /// The first commit it is needed for.
    pub first_commit: u64,
    pub bytes: u64,
}

/// Where a log begins to run.
pub(crate) struct Start {
    pub environment: Environment,
    pub dir: PathBuf,
    /// The header of the current file, which starts the epoch.
    pub header: FileHeader,
    pub file: Arc<dyn File>,
    /// Where the next frame goes.
    pub end: u64,
    pub last_checksum: u64,
    /// Up to where the current file has space on the disk.
    pub reserved: u64,
    pub older: Vec<LogFile>,
    pub reserve: ReserveFile,
    pub options: Options,
}

/// A log that is open for appending. Shared by all threads.
pub struct Log {
    pub(crate) environment: Environment,
    pub(crate) dir: PathBuf,
    pub(crate) database: u128,
    pub(crate) epoch: u64,
    pub(crate) epoch_start: u64,
    pub(crate) on_durable: Option<OnDurable>,
    /// Every commit up to this one is durable.
    pub(crate) durable: AtomicU64,
    /// How long the syncs of batches took.
    pub(crate) syncs: Durations,
    /// Where those wait whose batch has an even number, and an odd one.
    pub(crate) batch_events: [Event; 2],
    /// Where threads wait that want a new file.
    pub(crate) rotation_event: Event,
    /// Where those wait who found another thread reserving space.
    space_event: Event,
    /// Taken before `state` where both are.
    pub(crate) reserve: Mutex<ReserveFile>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub next_commit: u64,
    /// Frames that no leader has taken yet.
    pub queue: Vec<u8>,
    /// The number of the batch that the queue will be.
    pub open_batch: u64,
    /// Present while no thread flushes.
    pub flusher: Option<Box<Flusher>>,
    /// The current file, its number, and where the queue will end in it.
    pub file: Arc<dyn File>,
    pub number: u64,
    pub end: u64,
    /// Up to where the current file has space on the disk.
    pub reserved: u64,
    /// True while a thread reserves more.
    pub reserving: bool,
    /// The size that the reserve should have.
    pub reserve_bytes: u64,
    /// Every file of the log, oldest first; the last is the current one.
    pub files: Vec<LogFile>,
    pub rotation: Rotation,
    /// Why nothing is taken any more.
    pub poison: Option<String>,
}

/// Requests for a new file, by number: coalesced when several ask at once.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    pub wanted: u64,
    pub done: u64,
    /// How the last one done ended.
    pub error: Option<Error>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Log")
            .field("dir", &self.dir)
            .field("epoch", &self.epoch)
            .field("next_commit", &state.next_commit)
            .field("durable", &self.durable())
            .field("files", &state.files)
            .field("poison", &state.poison)
            .finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(start: Start) -> Self {
        let Start { environment, dir, header, file, end, last_checksum, .. } = start;
        let Start { reserved, older, reserve, options, .. } = start;
        let mut files = older;
        let first_commit = header.first_commit;
        files.push(LogFile { number: header.number, first_commit, bytes: end });
        let flusher = Flusher::new(Arc::clone(&file), header.number, end, last_checksum);
        Self {
            environment,
            dir,
            database: header.database,
            epoch: header.epoch,
            epoch_start: header.epoch_start,
            on_durable: options.on_durable,
            durable: AtomicU64::new(header.epoch_start),
            syncs: Durations::default(),
            batch_events: [Event::new(), Event::new()],
            rotation_event: Event::new(),
            space_event: Event::new(),
            reserve: Mutex::new(reserve),
            state: Mutex::new(State {
                next_commit: header.epoch_start + 1,
                queue: Vec::new(),
                open_batch: 1,
                flusher: Some(Box::new(flusher)),
                file,
                number: header.number,
                end,
                reserved: reserved.max(end),
                reserving: false,
                reserve_bytes: options.reserve_bytes,
                files,
                rotation: Rotation::default(),
                poison: None,
            }),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        #[cfg(test)]
        crate::tests::interleavings::switch();
        // default: no code that may panic runs under this lock between two related changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reserve(&self) -> MutexGuard<'_, ReserveFile> {
        // default: what a panic may leave wrong is its length, which the next open measures.
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a frame the next commit number and queues it; [`Log::wait_durable`] makes it durable.
    /// `kind` is one of [`esker_format::frame::kind`] that belongs to the caller.
    ///
    /// # Errors
    /// Nothing has a number then: `NoSpace` when the disk has no room for the frame and the
    /// reserve, `InvalidInput` when the payload is too long, `Poisoned` after a failed write or
    /// sync.
    pub fn append(&self, kind: u16, payload: &[u8]) -> Result<Ticket> {
        self.append_for(Purpose::Adds, kind, payload)
    }

    /// As [`Log::append`]; a frame that frees space may use the reserve on a full disk.
    ///
    /// # Errors
    /// As for [`Log::append`]; `NoSpace` when the frame is larger than what is left of the reserve.
    pub fn append_for(&self, purpose: Purpose, kind: u16, payload: &[u8]) -> Result<Ticket> {
        let bytes = frame_bytes(payload.len()) as u64;
        let mut full = None;
        loop {
            let mut state = self.state();
            state.check_poison()?;
            let end = state.end + bytes;
            let wanted = end + state.tail_bytes();
            let needed = if purpose.may_use_reserve() { end } else { wanted };
            if state.reserved >= if full.is_some() { needed } else { wanted } {
                let commit = state.next_commit;
                let skipped = u64::from(commit > 9 && Bug::FrameNumberSkipped.is_planted());
                let (epoch, number) = (self.epoch, commit + skipped);
                let header = FrameHeader { epoch, commit: number, kind, ..Default::default() };
                append_frame(&mut state.queue, &header, payload)?;
                state.next_commit += 1;
                state.end = end;
                return Ok(Ticket { commit, batch: state.open_batch });
            }
            if let Some(full) = full {
                return Err(state.refusal(purpose, bytes, &full));
            }
            full = self.reserve_ahead(state, end)?;
        }
    }

    /// Reserves space in the current file up to `end`, for the tail and some more. Returns why
    /// there is less when the disk is full.
    fn reserve_ahead(&self, mut state: MutexGuard<'_, State>, end: u64) -> Result<Option<Error>> {
        if state.reserving {
            // Seldom: two threads append at once and both need space.
            let seen = self.space_event.generation();
            drop(state);
            self.environment.tasks.wait(&self.space_event, seen);
            return Ok(None);
        }
        state.reserving = true;
        let (file, number, reserved) = (Arc::clone(&state.file), state.number, state.reserved);
        let tail = state.tail_bytes();
        drop(state);
        let result = reserve_space(file.as_ref(), reserved, end, tail);
        let mut state = self.state();
        state.reserving = false;
        if let Ok(space) = &result
            && state.number == number
        {
            state.reserved = space.reserved;
        }
        drop(state);
        self.environment.tasks.signal(&self.space_event, usize::MAX);
        Ok(result?.full)
    }

    /// Gives the reserve a size, and fills it as far as the disk has space. True when it is whole.
    ///
    /// # Errors
    /// `Io`.
    pub fn fill_reserve(&self, bytes: u64) -> Result<bool> {
        let mut state = self.state();
        state.reserve_bytes = bytes;
        let end = state.end;
        if !state.has_tail() {
            self.reserve_ahead(state, end)?;
        } else {
            drop(state);
        }
        let mut reserve = self.reserve();
        match reserve.fill(bytes) {
            Err(e) if e.kind() != ErrorKind::NoSpace => return Err(e),
            _ => {}
        }
        Ok(reserve.bytes() >= bytes && self.state().has_tail())
    }

    /// Gives the space of the reserve file back, for what frees more than it takes;
    /// [`Log::fill_reserve`] fills it again. False when there is none.
    ///
    /// # Errors
    /// `Io`.
    pub fn release_reserve(&self) -> Result<bool> {
        self.reserve().release()
    }

    /// Overwrites the reserve file, which may have been a log file, with zeros: of what was removed
    /// by [`Log::remove_through`] nothing is left in the directory then.
    ///
    /// # Errors
    /// `Io`.
    pub fn clear_reserve(&self) -> Result<()> {
        self.reserve().clear()
    }

    /// The commit number that the next frame will get.
    #[must_use]
    pub fn next_commit(&self) -> u64 {
        self.state().next_commit
    }

    /// Every commit up to this one is durable. Never runs backwards.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The epoch of this log: higher by at least one at every open.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// True when a write or sync failed: nothing more is taken.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.state().poison.is_some()
    }

    /// Returns once the frame is durable. Hold no lock: this may do the writing for everybody.
    ///
    /// # Errors
    /// `OutcomeUnknown` when its write or sync, or an earlier one, failed.
    pub fn wait_durable(&self, ticket: Ticket) -> Result<()> {
        self.drive(ticket)
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// As for [`Log::wait_durable`].
    pub fn flush(&self) -> Result<()> {
        let state = self.state();
        let batch = if state.queue.is_empty() { state.open_batch - 1 } else { state.open_batch };
        let ticket = Ticket { commit: state.next_commit - 1, batch };
        drop(state);
        self.wait_durable(ticket)
    }

    /// Appends the frame that proves every commit before it durable, and makes it durable too.
    /// Nothing may be appended after it.
    ///
    /// # Errors
    /// As for [`Log::append`] and [`Log::wait_durable`]. The log is then recovered like after a
    /// crash.
    pub fn close(&self) -> Result<()> {
        self.flush()?;
        match self.append_for(Purpose::Frees, kind::CLOSE, &[]) {
            Ok(ticket) => self.wait_durable(ticket),
            // Everything is durable; the next open only has to copy more.
            Err(e) if e.kind() == ErrorKind::NoSpace => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Goes on in a new file: the next batch is its first. Does nothing when the current file has
    /// no frame yet. Hold no lock.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the log goes on in the file it has. `Poisoned` when a sync failed.
    pub fn rotate(&self) -> Result<()> {
        let mut state = self.state();
        let rotation = &mut state.rotation;
        let wanted = rotation.wanted.max(rotation.done + 1);
        rotation.wanted = wanted;
        drop(state);
        self.drive_rotation(wanted)
    }

    /// Removes every file whose commits are all at most `commit`, oldest first, never the current
    /// one. A durable checkpoint must hold them.
    ///
    /// # Errors
    /// `Io`; the files that are left are still part of the log. `Poisoned`.
    pub fn remove_through(&self, commit: u64) -> Result<()> {
        self.environment.tasks.pause();
        loop {
            let state = self.state();
            state.check_poison()?;
            let Some(number) = state.oldest_through(commit) else { return Ok(()) };
            let reserve_bytes = state.reserve_bytes;
            drop(state);
            let mut reserve = self.reserve();
            reserve.retire(number, reserve_bytes)?;
            self.state().files.retain(|file| file.number != number);
        }
    }

    /// The size of all files of the log, from the oldest one that has not been removed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let state = self.state();
        let older = state.files.iter().rev().skip(1).map(|file| file.bytes);
        older.sum::<u64>() + state.end
    }

    /// How often the log was synced for commits, and how long that took.
    #[must_use]
    pub fn syncs(&self) -> DurationCounts {
        self.syncs.counts()
    }

    /// The bytes that wait to be written: the caller's measure for holding back writers.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.state().queue.len() as u64
    }

    /// The directory of the log files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl State {
    pub fn check_poison(&self) -> Result<()> {
        match &self.poison {
            Some(cause) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("the log takes nothing more since an earlier failure: {cause}"),
            )),
            None => Ok(()),
        }
    }

    /// What frames that add data leave free at the end of the current file.
    pub fn tail_bytes(&self) -> u64 {
        self.reserve_bytes / 2
    }

    fn has_tail(&self) -> bool {
        self.end + self.tail_bytes() <= self.reserved
    }

    /// Why a frame gets no space.
    fn refusal(&self, purpose: Purpose, bytes: u64, full: &Error) -> Error {
        let mut message = full.to_string();
        if purpose == Purpose::Frees {
            let left = self.reserved.saturating_sub(self.end);
            message.push_str(&format!(
                "; a commit of {bytes} bytes that frees space needs no more than the {left} bytes \
                 that are left of the log's reserve: delete fewer rows at once, or truncate or \
                 drop the table"
            ));
        }
        Error::new(full.kind(), message)
    }

    /// The oldest file, when it is not the current one and holds no commit above this one.
    fn oldest_through(&self, commit: u64) -> Option<u64> {
        let [oldest, next, ..] = self.files.as_slice() else { return None };
        (next.first_commit <= commit.saturating_add(1)).then_some(oldest.number)
    }
}

const RESERVED_BYTES_MIN: u64 = 16 << 10;
const RESERVED_BYTES_MAX: u64 = 256 << 10;

/// What a file has after space was reserved in it.
pub(crate) struct Space {
    /// Up to where.
    pub reserved: u64,
    /// Why it is less than was wanted.
    pub full: Option<Error>,
}

/// Writes zeros to a file from `reserved` on, at least up to `end` and `tail` bytes behind it, and
/// some more. On a full disk as much as there is.
///
/// That a disk is full then shows before a frame has a number; and syncing a write to blocks that
/// the file has already takes two thirds of the time of one that makes the file grow.
///
/// No other thread writes there meanwhile: frames below `reserved` are all that leaders write.
pub(crate) fn reserve_space(file: &dyn File, reserved: u64, end: u64, tail: u64) -> Result<Space> {
    let ahead = end.clamp(RESERVED_BYTES_MIN, RESERVED_BYTES_MAX);
    let target = end.saturating_add(tail + ahead).next_multiple_of(RESERVED_BYTES_MIN);
    let (mut reached, full) = write_zeros(file, reserved, target)?;
    let enough = end.saturating_add(tail).next_multiple_of(RESERVED_BYTES_MIN).max(reserved);
    // The last of the disk is not for what may come one day.
    if full.is_some() && enough < reached && file.set_len(enough).is_ok() {
        reached = enough;
    }
    Ok(Space { reserved: reached, full })
}
