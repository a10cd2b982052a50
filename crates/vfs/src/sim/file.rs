//! Open files of the simulated machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::{Contents, MAX_LEN};
use super::disk::{Change, NodeId, View};
use super::effect::{Effect, SyncLoss};
use super::faults::{CallKind, FaultKind, SyncReport};
use super::trace::fold;
use super::world::{State, World, error};
use crate::{ErrorKind, File, Mapping, Result};

/// An open file.
#[derive(Debug)]
pub(crate) struct SimFile {
    world: Arc<World>,
    node: NodeId,
    path: PathBuf,
    writable: bool,
    /// How many failed syncs of the file this handle has heard of.
    errors_seen: AtomicU64,
}

impl SimFile {
    /// A handle to a file, counted in `state`.
    pub(crate) fn new(
        world: &Arc<World>,
        state: &mut State,
        node: NodeId,
        path: &Path,
        writable: bool,
    ) -> Self {
        *state.handles.entry(node).or_default() += 1;
        let seen = state.sync_errors.get(&node).map_or(0, |errors| errors.count);
        Self {
            world: Arc::clone(world),
            node,
            path: path.to_owned(),
            writable,
            errors_seen: AtomicU64::new(seen),
        }
    }

    fn current(&self, state: &State) -> Arc<Contents> {
        state.disk.file(self.node).map(|file| Arc::clone(&file.current)).unwrap_or_default()
    }

    fn check_writable(&self, call: CallKind, end: Option<u64>) -> Result<()> {
        if !self.writable {
            let words = "the file was opened for reading";
            return Err(error(ErrorKind::PermissionDenied, call, &self.path, words));
        }
        if end.is_none_or(|end| end > MAX_LEN) {
            return Err(error(ErrorKind::NoSpace, call, &self.path, "the file would be too large"));
        }
        Ok(())
    }

    fn modify(&self, state: &mut State, change: Change, cache: bool, disk: bool) {
        state.apply(Effect::Modify { node: self.node, change, cache, disk });
    }

    fn write(&self, state: &mut State, bytes: &[u8], offset: u64) {
        self.modify(state, Change::Write { offset, bytes: bytes.into() }, true, true);
    }

    /// A write that the page cache has and the disk does not get; the growth of the file, being
    /// metadata, it does get.
    fn write_to_cache(&self, state: &mut State, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        if end > self.current(state).len() {
            self.modify(state, Change::SetLen { len: end }, false, true);
        }
        self.modify(state, Change::Write { offset, bytes: bytes.into() }, true, false);
    }

    /// Sends a write to another place; false when there is none that could take it.
    fn misdirect(&self, state: &mut State, bytes: &[u8], offset: u64) -> bool {
        let len = bytes.len() as u64;
        let files = state.disk.paths(View::Current);
        let chosen = state.faults.generator.index(files.len() + 1);
        let node = files.get(chosen).map_or(self.node, |(_, node)| *node);
        let room = state.disk.file(node).map_or(0, |file| file.current.len());
        let Some(room) = room.checked_sub(len) else { return false };
        let place = state.faults.generator.below(room / 512 + 1) * 512;
        if node == self.node && place == offset {
            return false;
        }
        self.write_to_cache(state, bytes, offset);
        let change = Change::Write { offset: place, bytes: bytes.into() };
        state.apply(Effect::Modify { node, change, cache: false, disk: true });
        true
    }

    /// What a failed sync does to what is pending.
    fn draw_loss(&self, state: &mut State, fault: FaultKind) -> SyncLoss {
        let count = state.disk.file(self.node).map_or(0, |file| file.pending.len());
        let generator = &mut state.faults.generator;
        let mut lost: Vec<bool> = (0..count).map(|_| generator.chance(500_000)).collect();
        let surely = generator.index(count);
        if let Some(lost) = lost.get_mut(surely) {
            *lost = true;
        }
        let reverted = fault == FaultKind::SyncErrorBtrfs;
        if reverted {
            lost.fill(true); // one transaction, which was aborted
        }
        let length_kept =
            matches!(fault, FaultKind::SyncErrorExt4Ordered | FaultKind::SyncErrorExt4Data);
        SyncLoss { lost, length_kept, reverted }
    }

    /// True when this handle must hear of a failed sync, now that it asks.
    fn hears_of_failure(&self, state: &mut State) -> bool {
        let report = state.faults.report();
        let Some(errors) = state.sync_errors.get_mut(&self.node) else { return false };
        let unreported = std::mem::take(&mut errors.unreported);
        let seen = self.errors_seen.swap(errors.count, Ordering::Relaxed);
        match report {
            SyncReport::EachHandle => unreported || seen < errors.count,
            SyncReport::Once => unreported,
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut state = self.world.lock();
        let fault = state.begin(CallKind::Read, &self.path)?;
        if let Some(fault @ (FaultKind::ReadError | FaultKind::Interrupted)) = fault {
            return Err(state.fail(fault, CallKind::Read, &self.path));
        }
        let mut count = self.current(&state).read(buf, offset);
        let found = buf.get_mut(..count).unwrap_or_default();
        let fired = match fault {
            Some(FaultKind::ShortRead) if count > 1 => {
                count = 1 + state.faults.generator.index(count - 1);
                true
            }
            Some(FaultKind::ReadFlip) => {
                let at = state.faults.generator.index(count);
                let bit = state.faults.generator.below(8);
                found.get_mut(at).map(|byte| *byte ^= 1 << bit).is_some()
            }
            Some(FaultKind::StaleRead) => read_stale(&state, self.node, found, offset),
            _ => false,
        };
        if fired && let Some(fault) = fault {
            state.faults.fired.count(fault);
        }
        let hash = fold(0, buf.get(..count).unwrap_or_default());
        state.trace.record("read", &[self.node as u64, offset, count as u64, hash]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let mut state = self.world.lock();
        let state = &mut *state;
        let fault = state.begin(CallKind::Write, &self.path)?;
        let end = offset.checked_add(buf.len() as u64);
        self.check_writable(CallKind::Write, end)?;
        let numbers = [self.node as u64, offset, buf.len() as u64, fold(0, buf)];
        state.trace.record("write", &numbers);
        let growth = end.unwrap_or_default().saturating_sub(self.current(state).len());
        if growth > 0 && state.is_full(growth) {
            return Err(state.fail(FaultKind::NoSpaceOnWrite, CallKind::Write, &self.path));
        }
        match fault {
            Some(FaultKind::Interrupted) => {
                return Err(state.fail(FaultKind::Interrupted, CallKind::Write, &self.path));
            }
            Some(fault @ (FaultKind::WriteError | FaultKind::NoSpaceOnWrite)) => {
                if state.faults.generator.chance(500_000) {
                    let count = state.faults.generator.index(buf.len() + 1);
                    self.write(state, buf.get(..count).unwrap_or_default(), offset);
                }
                return Err(state.fail(fault, CallKind::Write, &self.path));
            }
            Some(FaultKind::ShortWrite) if buf.len() > 1 => {
                let count = 1 + state.faults.generator.index(buf.len() - 1);
                state.faults.fired.count(FaultKind::ShortWrite);
                self.write(state, buf.get(..count).unwrap_or_default(), offset);
                return Ok(count);
            }
            Some(FaultKind::PhantomWrite) => {
                state.faults.fired.count(FaultKind::PhantomWrite);
                self.write_to_cache(state, buf, offset);
            }
            Some(FaultKind::MisdirectedWrite) if self.misdirect(state, buf, offset) => {
                state.faults.fired.count(FaultKind::MisdirectedWrite);
            }
            _ => self.write(state, buf, offset),
        }
        Ok(buf.len())
    }

    fn len(&self) -> Result<u64> {
        let mut state = self.world.lock();
        if let Some(fault) = state.begin(CallKind::Length, &self.path)? {
            return Err(state.fail(fault, CallKind::Length, &self.path));
        }
        Ok(self.current(&state).len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.world.lock();
        let state = &mut *state;
        let fault = state.begin(CallKind::SetLen, &self.path)?;
        self.check_writable(CallKind::SetLen, Some(len))?;
        state.trace.record("set length", &[self.node as u64, len]);
        let growth = len.saturating_sub(self.current(state).len());
        let fault = fault.or_else(|| {
            (growth > 0 && state.is_full(growth)).then_some(FaultKind::NoSpaceOnSetLen)
        });
        if let Some(fault) = fault {
            if fault == FaultKind::WriteError && state.faults.generator.chance(500_000) {
                self.modify(state, Change::SetLen { len }, true, true);
            }
            return Err(state.fail(fault, CallKind::SetLen, &self.path));
        }
        self.modify(state, Change::SetLen { len }, true, true);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.world.lock();
        let state = &mut *state;
        let fault = state.begin(CallKind::Sync, &self.path)?;
        let mut reports_late = false;
        match fault {
            Some(FaultKind::LyingSync) => state.faults.fired.count(FaultKind::LyingSync),
            Some(fault) => {
                state.faults.fired.count(fault);
                reports_late = fault == FaultKind::SyncErrorExt4Data;
                let loss = self.draw_loss(state, fault);
                state.apply(Effect::SyncFailed { node: self.node, loss });
                let errors = state.sync_errors.entry(self.node).or_default();
                errors.count += 1;
                errors.unreported = true;
            }
            None => state.apply(Effect::SyncFile { node: self.node }),
        }
        if !reports_late && self.hears_of_failure(state) {
            return Err(error(ErrorKind::Io, CallKind::Sync, &self.path, "input/output error"));
        }
        Ok(())
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {
        // A hint. A crash may keep any pending write, written back early or not.
    }

    fn map(&self, len: u64) -> Result<Mapping> {
        let mut state = self.world.lock();
        if let Some(fault) = state.begin(CallKind::Map, &self.path)? {
            return Err(state.fail(fault, CallKind::Map, &self.path));
        }
        let contents = self.current(&state);
        if contents.len() < len {
            let words = format!("the file has {} bytes, {len} expected", contents.len());
            return Err(error(ErrorKind::UnexpectedEnd, CallKind::Map, &self.path, &words));
        }
        let len = usize::try_from(len).unwrap_or_default();
        Ok(Mapping::filled(len, |target| {
            contents.read(target, 0);
        }))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.world.lock();
        if let Some(count) = state.handles.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                state.handles.remove(&self.node);
                state.forget_nameless();
            }
        }
    }
}

/// Replaces what was read by what was last synced; false when that is the same, or shorter.
fn read_stale(state: &State, node: NodeId, found: &mut [u8], offset: u64) -> bool {
    let Some(file) = state.disk.file(node) else { return false };
    let mut stale = vec![0; found.len()];
    if file.durable.read(&mut stale, offset) < found.len() || stale == *found {
        return false;
    }
    found.copy_from_slice(&stale);
    true
}
