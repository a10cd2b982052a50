//! Group commit: which thread writes and syncs a batch, and which it wakes.
//!
//! All that a flush needs is in one [`Flusher`]. It lies in the log's state while no thread works
//! with it; the thread that takes it is the leader. So there is one leader at most, and no thread
//! holds the mutex while it writes, syncs, calls the hook or pauses.
//!
//! ```text
//!  append ─► queue (open batch b+1)          events[(b+1) % 2]: its followers
//!                │ taken when b is done
//!            batch b: sealed ─► written ─► synced ─► published     events[b % 2]: its followers
//! ```
//!
//! * The leader takes the whole queue as one batch, so that batch numbers alternate between the
//!   two events, and waking the followers of `b` disturbs none of those of `b + 1`.
//! * After its own batch a leader does up to two more when there is work, so that they need no
//!   thread switch. Then it lies the flusher down and wakes *one* follower of the open batch.
//! * At every pause point the flusher lies in the state, with the stage it is in. In production a
//!   pause does nothing. In simulation another task may run there, on the same stack, and must be
//!   able to finish the batch itself, since the leader below it cannot.
//!
//! **No wake-up is lost.** A waiter reads the generation of its event, then looks at the state
//! under the mutex, and sleeps only while the generation is unchanged. What it waits for is one of
//! two things, and each is followed by a signal of its event:
//! * its batch is published, or the log poisoned: `durable` (or `poison`) is stored first, then
//!   the event is signalled for all. A waiter that read the old value read the generation before
//!   the signal, so it does not sleep, or is asleep and woken.
//! * the flusher lies free while its batch is still open: the leader lays it down under the mutex,
//!   and when the queue is not empty signals the event of the open batch after that. A waiter of
//!   the open batch that saw no flusher did so under the mutex before, and wakes, too. One is
//!   enough: it leads, unless another took the flusher first; and the leader takes the
//!   queue, or does as the leader before did. When the queue is empty no one waits for the open
//!   batch; a later one finds the flusher itself.
//!
//! A sleeper on the event of the open batch never waits for an older batch of the same parity:
//! that one was published, with a signal for all, before the open one could be filled.
//!
//! A failed write is repeated at the same offset, never beyond it. A failed sync is never
//! repeated: the log is poisoned, and each waiter whose frame is not durable gets an error: its
//! outcome is unknown.
//!
//! # Invariants
//!
//! 1. One thread leads at most: the flusher is there once.
//! 2. `durable` never falls, since batches are published in the order in which they were taken: by
//!    `publish`, which poisons the log instead.
//! 3. A batch is published once it is synced: `step` goes from stage to stage.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::frame::{FILE_HEADER_BYTES, FileHeader, decode_unchecked, seal_frame};
use esker_format::invariant;
use esker_vfs::File;

use crate::log::{Log, LogFile, State, Ticket, reserve_space};
use crate::log_file;
use crate::reserve::NewFile;
use crate::sabotage::Bug;
use crate::{Error, ErrorKind, Result};

/// How many batches a leader does after the first before another thread leads.
const FURTHER_BATCHES: u32 = 2;

/// How often a batch is written before the log gives up.
const WRITES_MAX: u32 = 4;

/// Buffers above this size are given back after use.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// The work of the leader.
#[derive(Debug)]
pub(crate) struct Flusher {
    file: Arc<dyn File>,
    number: u64,
    /// Where the batch goes.
    offset: u64,
    /// The checksum of the last frame of the batch before.
    checksum: u64,
    /// The last commit handed to a batch.
    last_commit: u64,
    batch: Vec<u8>,
    batch_number: u64,
    /// The number of the next file: one for each attempt.
    next_number: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No batch is in hand.
    Idle,
    /// The batch is to be sealed and written.
    Write,
    /// The batch is to be synced.
    Sync,
    /// The batch is durable; its waiters do not know yet.
    Publish,
}

impl Flusher {
    pub fn new(file: Arc<dyn File>, number: u64, offset: u64, checksum: u64) -> Self {
        Self {
            file,
            number,
            offset,
            checksum,
            last_commit: 0,
            batch: Vec::new(),
            batch_number: 0,
            next_number: number + 1,
            stage: Stage::Idle,
        }
    }
}

impl Log {
    /// Waits until a frame is durable; leads when no other thread does.
    pub(crate) fn drive(&self, ticket: Ticket) -> Result<()> {
        let event = self.event(ticket.batch);
        while self.durable() < ticket.commit {
            let seen = event.generation();
            let mut state = self.state();
            if self.durable() >= ticket.commit {
                break;
            }
            if let Some(cause) = &state.poison {
                let message = format!(
                    "whether commit {} survives is unknown until the database is opened again: \
                     {cause}",
                    ticket.commit
                );
                return Err(Error::new(ErrorKind::OutcomeUnknown, message));
            }
            let flusher = state.flusher.take();
            drop(state);
            match flusher {
                Some(flusher) => self.lead(flusher),
                None => self.environment.tasks.wait(event, seen),
            }
        }
        Ok(())
    }

    /// Waits until the rotation with this number is done; leads when no other thread does.
    pub(crate) fn drive_rotation(&self, wanted: u64) -> Result<()> {
        loop {
            let seen = self.rotation_event.generation();
            let mut state = self.state();
            if state.rotation.done >= wanted {
                return match &state.rotation.error {
                    Some(error) => Err(error.clone()),
                    None => Ok(()),
                };
            }
            state.check_poison()?;
            let flusher = state.flusher.take();
            drop(state);
            match flusher {
                Some(flusher) => self.lead(flusher),
                None => self.environment.tasks.wait(&self.rotation_event, seen),
            }
        }
    }

    fn event(&self, batch: u64) -> &esker_vfs::Event {
        let [even, odd] = &self.batch_events;
        if batch.is_multiple_of(2) { even } else { odd }
    }

    /// Leads: flushes batches until there is no work, or others should lead.
    fn lead(&self, flusher: Box<Flusher>) {
        let mut leader = Leader { log: self, flusher: Some(flusher) };
        let mut batches = 0;
        while let Some(flusher) = &mut leader.flusher {
            match self.step(flusher, batches <= FURTHER_BATCHES) {
                Ok(true) if flusher.stage == Stage::Idle => batches += 1,
                Ok(true) => leader.pause(),
                Ok(false) => return leader.release(),
                Err(cause) => return leader.poison(&cause),
            }
        }
    }

    /// Goes on to the next stage; false when the leader is done. Fails when nothing can go on.
    fn step(&self, flusher: &mut Flusher, may_take_batch: bool) -> Result<bool> {
        match flusher.stage {
            Stage::Idle if self.rotation_wanted() => self.rotate_now(flusher)?,
            Stage::Idle if !may_take_batch => return Ok(false),
            Stage::Idle => return Ok(self.take_batch(flusher)),
            Stage::Write => {
                self.seal(flusher)?;
                self.write(flusher)?;
            }
            Stage::Sync => self.sync(flusher)?,
            Stage::Publish => self.publish(flusher)?,
        }
        Ok(true)
    }

    /// Takes all that is queued as the next batch; false when there is nothing.
    fn take_batch(&self, flusher: &mut Flusher) -> bool {
        let mut state = self.state();
        if state.queue.is_empty() {
            return false;
        }
        std::mem::swap(&mut state.queue, &mut flusher.batch);
        flusher.batch_number = state.open_batch;
        flusher.last_commit = state.next_commit - 1;
        flusher.stage = Stage::Write;
        state.open_batch += 1;
        true
    }

    /// Completes the frames of the batch, now that their places are known.
    fn seal(&self, flusher: &mut Flusher) -> Result<()> {
        let mut next = self.durable() + 1;
        let durable_through = if Bug::DurableThroughTooHigh.is_planted() {
            flusher.last_commit
        } else if Bug::FrameClaimsItself.is_planted() {
            next
        } else {
            next - 1
        };
        let mut rest = flusher.batch.as_mut_slice();
        let mut offset = flusher.offset;
        while !rest.is_empty() {
            let place = log_file::place(self.database, flusher.number, offset);
            let commit = decode_unchecked(rest)?.header.commit;
            let path = || log_file::path(&self.dir, flusher.number);
            invariant!(
                commit == next,
                format_args!("{}: offset {offset}", path().display()),
                "the frame of commit {commit} in the place of commit {next}"
            );
            next += 1;
            let (checksum, bytes) = seal_frame(rest, place, flusher.checksum, durable_through)?;
            flusher.checksum = checksum;
            offset += bytes as u64;
            rest = rest.get_mut(bytes..).ok_or_else(|| {
                let message = format!("the frame up to offset {offset} is longer than its batch");
                Error::new(ErrorKind::Corrupt, message)
            })?;
        }
        Ok(())
    }

    /// Writes the batch, again and again at the same offset when that fails.
    fn write(&self, flusher: &mut Flusher) -> Result<()> {
        let mut writes = 0;
        let mut offset = flusher.offset;
        loop {
            writes += 1;
            match flusher.file.write_all_at(&flusher.batch, offset) {
                Ok(()) => break,
                Err(e) if writes == WRITES_MAX => return Err(e.into()),
                Err(_) if Bug::AppendAfterShortWrite.is_planted() => {
                    offset = flusher.file.len()?.next_multiple_of(8);
                }
                Err(_) => {}
            }
        }
        flusher.offset = offset + flusher.batch.len() as u64;
        flusher.stage = Stage::Sync;
        Ok(())
    }

    fn sync(&self, flusher: &mut Flusher) -> Result<()> {
        if Bug::AckBeforeSync.is_planted() {
            self.publish(flusher)?;
        }
        let clock = &*self.environment.clock;
        match self.syncs.time(clock, || log_file::sync(flusher.file.as_ref())) {
            Err(_) if Bug::PoisonIgnored.is_planted() => {}
            result => result?,
        }
        flusher.stage = Stage::Publish;
        Ok(())
    }

    /// Tells everybody that the batch is durable.
    fn publish(&self, flusher: &mut Flusher) -> Result<()> {
        let before = self.durable();
        let falls = Bug::LogDurableFalls.is_planted() && before > 0;
        let last = if falls { before - 1 } else { flusher.last_commit };
        if last < before {
            let message = format!("log: durable falls from {before} to {last}");
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        // The hook first: a thread that sees `durable` cover its commit goes on at once, and must
        // find that the layer above knows.
        if let Some(on_durable) = &self.on_durable {
            on_durable(last, &flusher.batch);
        }
        self.durable.store(last, Ordering::Release);
        flusher.batch.clear();
        if flusher.batch.capacity() > BUFFER_BYTES_MAX {
            flusher.batch = Vec::new();
        }
        flusher.stage = Stage::Idle;
        self.environment.tasks.signal(self.event(flusher.batch_number), usize::MAX);
        Ok(())
    }

    fn rotation_wanted(&self) -> bool {
        let rotation = &self.state().rotation;
        rotation.wanted > rotation.done
    }

    /// Starts a new file between two batches. Fails only when the log must be poisoned.
    fn rotate_now(&self, flusher: &mut Flusher) -> Result<()> {
        let result = self.next_file(flusher);
        let mut state = self.state();
        state.rotation.done = state.rotation.wanted;
        state.rotation.error = result.as_ref().err().map(|e| e.error.clone());
        drop(state);
        self.environment.tasks.signal(&self.rotation_event, usize::MAX);
        match result {
            Err(RotationError { error, fatal: true }) => Err(error),
            _ => Ok(()),
        }
    }

    fn next_file(&self, flusher: &mut Flusher) -> std::result::Result<(), RotationError> {
        let state = self.state();
        let first_commit = self.durable() + 1;
        let Some(newest) = state.files.last().copied() else { return Ok(()) };
        let mut queued = state.queue.len() as u64;
        let tail = state.tail_bytes();
        drop(state);
        if newest.first_commit >= first_commit {
            return Ok(());
        }
        let number = flusher.next_number;
        flusher.next_number += 1;
        let header = FileHeader {
            database: self.database,
            number,
            epoch: self.epoch,
            first_commit,
            epoch_start: self.epoch_start,
            previous: flusher.checksum,
        };
        let start = FILE_HEADER_BYTES as u64;
        let mut new = self.new_file(&header, start + queued, tail)?;
        let mut reserve = self.reserve();
        new.publish(&mut reserve).map_err(|error| RotationError { error, fatal: true })?;
        let NewFile { file, mut reserved, .. } = new;
        loop {
            let mut state = self.state();
            queued = state.queue.len() as u64;
            if start + queued <= reserved {
                state.switch_file(&file, &header, reserved);
                break;
            }
            drop(state);
            let space = reserve_space(file.as_ref(), reserved, start + queued, tail);
            let full = match space {
                Ok(space) if start + queued <= space.reserved => {
                    reserved = space.reserved;
                    continue;
                }
                Ok(space) => space.full,
                Err(e) => Some(e),
            };
            if let Some(error) = full {
                let _ = reserve.retire(header.number, 2 * tail);
                return Err(RotationError { error, fatal: false });
            }
        }
        (flusher.file, flusher.number, flusher.offset) = (file, header.number, start);
        Ok(())
    }

    /// A file with its header, and space up to `end` and for the tail.
    fn new_file(&self, header: &FileHeader, end: u64, tail: u64) -> Result<NewFile> {
        let needed = end + tail - FILE_HEADER_BYTES as u64;
        let mut new = NewFile::create(&self.environment, &self.dir, header.number, Some(needed))?;
        let reserved = new.reserve_behind(FILE_HEADER_BYTES as u64);
        let written = reserved.and_then(|()| new.write_header(header));
        written.inspect_err(|_| new.abandon()).map(|()| new)
    }
}

/// Why there is no new file.
struct RotationError {
    error: Error,
    /// True when the log must be poisoned.
    fatal: bool,
}

impl From<Error> for RotationError {
    fn from(error: Error) -> Self {
        Self { error, fatal: false }
    }
}

impl State {
    /// Makes `file` the current one; all that is queued goes there.
    fn switch_file(&mut self, file: &Arc<dyn File>, header: &FileHeader, reserved: u64) {
        let queued = self.queue.len() as u64;
        let written = self.end - queued;
        if let Some(last) = self.files.last_mut() {
            last.bytes = written;
        }
        let first_commit = header.first_commit;
        self.files.push(LogFile { number: header.number, first_commit, bytes: 0 });
        self.file = Arc::clone(file);
        self.number = header.number;
        self.end = FILE_HEADER_BYTES as u64 + queued;
        self.reserved = reserved;
    }
}

/// The right to flush. When it is dropped by a panic of the hook, the log is poisoned: no thread
/// could flush any more.
struct Leader<'a> {
    log: &'a Log,
    flusher: Option<Box<Flusher>>,
}

impl Leader<'_> {
    /// A point at which the simulator may run other tasks, which may take over.
    fn pause(&mut self) {
        self.log.state().flusher = self.flusher.take();
        self.log.environment.tasks.pause();
        self.flusher = self.log.state().flusher.take();
    }

    /// Leaves the work to others, and wakes one of them when there is any.
    fn release(mut self) {
        let mut state = self.log.state();
        state.flusher = self.flusher.take();
        let (open_batch, queued) = (state.open_batch, !state.queue.is_empty());
        let rotation_wanted = state.rotation.wanted > state.rotation.done;
        drop(state);
        if queued {
            self.log.environment.tasks.signal(self.log.event(open_batch), 1);
        }
        if rotation_wanted {
            self.log.environment.tasks.signal(&self.log.rotation_event, 1);
        }
    }

    /// Ends the log: it takes no more frames, and every waiter gets the error.
    fn poison(mut self, cause: &Error) {
        self.flusher = None;
        self.log.poison(cause);
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.flusher.is_some() {
            let message = "a thread panicked while it flushed the log";
            self.log.poison(&Error::new(ErrorKind::Io, message));
        }
    }
}

impl Log {
    fn poison(&self, cause: &Error) {
        let mut state = self.state();
        if state.poison.is_none() {
            state.poison = Some(cause.to_string());
        }
        drop(state);
        let [even, odd] = &self.batch_events;
        for event in [even, odd, &self.rotation_event] {
            self.environment.tasks.signal(event, usize::MAX);
        }
    }
}
