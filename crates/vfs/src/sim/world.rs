//! All of a simulated machine but its tasks, behind one lock.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Options;
use super::clock::Time;
use super::disk::{Disk, NodeId};
use super::effect::Effect;
use super::faults::{CallKind, FaultKind, Faults};
use super::journal::{Entry, Journal, Mark};
use super::random::Generator;
use super::scheduler::Scheduler;
use super::trace::Trace;
use crate::{Error, ErrorKind, Result};

/// A simulated machine.
pub(crate) struct World {
    state: Mutex<State>,
    pub(crate) scheduler: Mutex<Scheduler>,
}

/// What the lock of a [`World`] protects.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) disk: Disk,
    pub(crate) time: Time,
    pub(crate) random: Generator,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) locks: BTreeMap<NodeId, Locks>,
    /// Failed syncs by file, for handles that have not heard of them.
    pub(crate) sync_errors: BTreeMap<NodeId, SyncErrors>,
    /// Open handles by file.
    pub(crate) handles: BTreeMap<NodeId, usize>,
    /// Files that lost a name and may have become garbage.
    pub(crate) nameless: Vec<NodeId>,
    pub(crate) capacity: u64,
    pub(crate) calls: u64,
    pub(crate) ios: u64,
    /// The disk is filled once there have been this many calls.
    pub(crate) fill_after: Option<u64>,
    crash_after: Option<u64>,
    pub(crate) crashed: bool,
    latency: Generator,
    latency_ns: u64,
    recording: Option<Recording>,
    pub(crate) marks: Vec<Mark>,
}

/// Who holds the locks on a file.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    pub(crate) exclusive: Option<String>,
    pub(crate) shared: usize,
}

/// Failed syncs of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SyncErrors {
    pub(crate) count: u64,
    pub(crate) unreported: bool,
}

#[derive(Debug)]
struct Recording {
    base: Disk,
    entries: Vec<Entry>,
}

impl fmt::Debug for World {
    /// Short, since every open file has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl World {
    pub(crate) fn new(disk: Disk, seed: u64, options: Options) -> Arc<Self> {
        let scheduler = Mutex::new(Scheduler::new(seed, &options));
        let recording =
            options.record.then(|| Recording { base: disk.clone(), entries: Vec::new() });
        let state = State {
            disk,
            time: Time::new(seed),
            random: Generator::new(seed, 1),
            faults: Faults::new(seed, options.faults),
            trace: Trace::new(seed, options.trace_lines),
            locks: BTreeMap::new(),
            sync_errors: BTreeMap::new(),
            handles: BTreeMap::new(),
            nameless: Vec::new(),
            capacity: options.capacity_bytes,
            calls: 0,
            ios: 0,
            fill_after: None,
            crash_after: options.crash_after_io,
            crashed: false,
            latency: Generator::new(seed, 3),
            latency_ns: options.latency_ns,
            recording,
            marks: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), scheduler })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The start of every call: counts it, takes its time, and decides whether a fault strikes.
    ///
    /// # Errors
    /// When the machine has crashed.
    pub(crate) fn begin(&mut self, call: CallKind, path: &Path) -> Result<Option<FaultKind>> {
        if self.crash_after.is_some_and(|limit| self.ios >= limit) {
            self.crashed = true;
        }
        if self.crashed {
            self.faults.fired.count(FaultKind::Crash);
            let message = format!("{call:?} {}: the simulated machine has crashed", path.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
        if self.fill_after.take_if(|calls| self.calls >= *calls).is_some() {
            self.capacity = self.disk.used_bytes();
        }
        self.calls += 1;
        if call.is_io() {
            self.ios += 1;
        }
        self.take_time();
        let place = path.to_string_lossy();
        let fault = self.faults.decide(call, &place);
        let number = fault.map_or(u64::MAX, |fault| fault as u64);
        self.trace.record_at(call.name(), &place, &[number]);
        Ok(fault)
    }

    fn take_time(&mut self) {
        if self.latency_ns > 0 {
            self.time.advance(1 + self.latency.below(self.latency_ns));
        }
        if self.faults.strikes(FaultKind::Latency) {
            self.time.advance(1_000_000 + self.faults.generator.below(5_000_000_000));
        }
    }

    /// Counts a fault that is being carried out, and makes the error that reports it.
    pub(crate) fn fail(&mut self, fault: FaultKind, call: CallKind, path: &Path) -> Error {
        self.faults.fired.count(fault);
        let (kind, words) = match fault {
            FaultKind::NoSpaceOnWrite | FaultKind::NoSpaceOnSetLen | FaultKind::NoSpaceOnCreate => {
                (ErrorKind::NoSpace, "no space left on the device")
            }
            FaultKind::Interrupted => (ErrorKind::Interrupted, "interrupted"),
            _ => (ErrorKind::Io, "input/output error"),
        };
        error(kind, call, path, words)
    }

    /// Changes the disk, and records how.
    pub(crate) fn apply(&mut self, effect: Effect) {
        self.disk.apply(&effect);
        if let Some(recording) = &mut self.recording {
            recording.entries.push(Entry { io: self.ios, effect });
        }
    }

    /// Forgets files that nothing leads to any more.
    pub(crate) fn forget_nameless(&mut self) {
        if self.nameless.iter().all(|node| self.handles.contains_key(node)) {
            return;
        }
        let named = self.disk.named_nodes();
        for node in std::mem::take(&mut self.nameless) {
            if self.handles.contains_key(&node) || named.contains(&node) {
                self.nameless.push(node);
            } else {
                self.apply(Effect::Forget { node });
            }
        }
    }

    /// True when the disk has no room for a file to grow this much.
    pub(crate) fn is_full(&self, growth: u64) -> bool {
        self.capacity < u64::MAX && self.disk.used_bytes().saturating_add(growth) > self.capacity
    }

    pub(crate) fn set_crash_after(&mut self, ios: Option<u64>) {
        self.crash_after = ios;
        self.crashed &= ios.is_some();
    }

    /// What was recorded so far; nothing unless [`Options::record`] was set.
    pub(crate) fn journal(&self) -> Option<Journal> {
        let recording = self.recording.as_ref()?;
        Some(Journal {
            base: recording.base.clone(),
            entries: recording.entries.clone().into(),
            marks: self.marks.clone(),
            ios: self.ios,
        })
    }
}

/// An error that says it is simulated.
pub(crate) fn error(kind: ErrorKind, call: CallKind, path: &Path, words: &str) -> Error {
    Error::new(kind, format!("{} {}: {words} (simulated)", call.name(), path.display()))
}

impl CallKind {
    /// The call in words, for messages and traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::SetLen => "set the length of",
            Self::Sync => "sync",
            Self::Create => "create",
            Self::Rename => "rename to",
            Self::Remove => "remove",
            Self::SyncDirectory => "sync the directory",
            Self::MakeDirectory => "create the directory",
            Self::Open => "open",
            Self::Look => "look at",
            Self::Lock => "lock",
            Self::Length => "read the length of",
            Self::Map => "map",
        }
    }
}
