//! What a log was told and what it promised, so that a crash at any I/O can be judged.

use std::sync::{Arc, Mutex};

use esker_vfs::sim::{Generator, Simulation};

use super::*;
use crate::{Purpose, Ticket};

/// One thing that happened to a log, and how many I/Os there had been.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub io: u64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A frame got the next number.
    Append(Frame),
    /// Recovery found commits up to this one; those above are gone for good.
    Recovered(u64),
    /// Every commit up to this one was promised to be durable.
    Promised(u64),
    /// A durable checkpoint holds every commit up to this one.
    Checkpoint(u64),
}

/// A frame, by what it must read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: u16,
    pub payload: Vec<u8>,
}

/// What must and may be found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// The frame of commit `i + 1`.
    pub frames: Vec<Frame>,
    pub promised: u64,
    pub checkpoint: u64,
}

impl Model {
    pub fn apply(&mut self, what: &What) {
        match what {
            What::Append(frame) => self.frames.push(frame.clone()),
            What::Recovered(last) => {
                assert!(*last >= self.promised);
                self.frames.truncate(usize::try_from(*last).unwrap());
            }
            What::Promised(commit) => self.promised = self.promised.max(*commit),
            What::Checkpoint(commit) => self.checkpoint = *commit,
        }
    }

    /// Scans, and holds what is found against the promises. Returns the last commit found.
    pub fn check(&self, environment: &Environment, context: &dyn Fn() -> String) -> u64 {
        let scan = scan(environment, Path::new("db"), DATABASE, self.checkpoint);
        scan.and_then(|scan| self.check_scan(&scan, context)).unwrap_or_else(|e| {
            let checkpoint = self.checkpoint;
            panic!("{}: checkpoint {checkpoint}: expected a prefix, found {e}", context())
        })
    }

    /// Holds a scan against the promises. Fails where reading does.
    pub fn check_scan(&self, scan: &Scan, context: &dyn Fn() -> String) -> crate::Result<u64> {
        let mut commit = self.checkpoint;
        for frame in scan.frames() {
            let frame = frame?;
            commit += 1;
            assert_eq!(frame.commit, commit, "{}: dense", context());
            let index = usize::try_from(commit - 1).unwrap();
            let found = Frame { kind: frame.kind, payload: frame.payload.to_vec() };
            assert_eq!(self.frames.get(index), Some(&found), "{}: commit {commit}", context());
        }
        let promised = self.promised;
        assert!(commit >= promised, "{}: found {commit}, promised {promised}", context());
        assert_eq!(commit, scan.last_commit());
        assert!(scan.proven() <= commit && scan.settled() <= scan.proven());
        Ok(commit)
    }
}

/// What happened, in order, and what it adds up to.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub events: Vec<Event>,
    pub model: Model,
}

impl History {
    pub fn happened(&mut self, io: u64, what: What) {
        self.model.apply(&what);
        self.events.push(Event { io, what });
    }
}

/// A log on a simulated machine that keeps its history.
pub(crate) struct Driver {
    pub machine: Simulation,
    pub environment: Environment,
    pub generator: Generator,
    pub log: Option<Arc<Log>>,
    pub history: Arc<Mutex<History>>,
    pub last: Option<Ticket>,
    /// The size of the log's reserve: every second seed has one.
    pub reserve_bytes: u64,
}

impl Driver {
    /// A driver without a log yet. `model` is what the machine's disk holds.
    pub fn new(machine: Simulation, seed: u64, model: Model) -> Self {
        let environment = machine.environment();
        let generator = Generator::new(seed, 77);
        let history = Arc::new(Mutex::new(History { events: Vec::new(), model }));
        let reserve_bytes = if seed.is_multiple_of(2) { 0 } else { 16 << 10 };
        Self { machine, environment, generator, log: None, history, last: None, reserve_bytes }
    }

    pub fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    pub fn model(&self) -> Model {
        self.history.lock().unwrap().model.clone()
    }

    pub fn happened(&self, what: What) {
        self.history.lock().unwrap().happened(self.machine.io_count(), what);
    }

    /// What the hook is told is promised: readers may see it from then on.
    fn options(&self) -> Options {
        let (history, machine) = (Arc::clone(&self.history), self.machine.clone());
        let on_durable = move |commit, _: &[u8]| {
            history.lock().unwrap().happened(machine.io_count(), What::Promised(commit));
        };
        Options { on_durable: Some(Arc::new(on_durable)), reserve_bytes: self.reserve_bytes }
    }

    fn epoch_start(&self, previous_epoch: u64) -> What {
        let ended_at_commit = self.model().frames.len() as u64;
        let payload = EpochStart { previous_epoch, ended_at_commit }.encode();
        What::Append(Frame { kind: kind::EPOCH_START, payload })
    }

    pub fn create(&mut self) -> crate::Result<()> {
        self.environment.files.create_dir_all(Path::new("db"))?;
        if self.model().frames.is_empty() {
            self.happened(self.epoch_start(0));
        }
        let log = Log::create(&self.environment, Path::new("db"), DATABASE, self.options())?;
        let _ = log.fill_reserve(self.reserve_bytes);
        self.log = Some(Arc::new(log));
        self.happened(What::Promised(1));
        Ok(())
    }

    /// The process dies, if one was there, and another opens the database.
    pub fn reopen(&mut self) -> crate::Result<()> {
        self.log = None;
        self.last = None;
        let model = self.model();
        let mut found = scan(&self.environment, Path::new("db"), DATABASE, model.checkpoint)?;
        found.copied_bytes_max = [0, 500, 4 << 20][self.generator.index(3)];
        let last = model.check_scan(&found, &|| "reopening".to_owned())?;
        self.happened(What::Recovered(last));
        self.happened(self.epoch_start(found.counted_epoch()));
        self.log = Some(Arc::new(found.start(self.options())?));
        self.happened(What::Promised(last + 1));
        Ok(())
    }

    pub fn frame(&mut self) -> Frame {
        let len = match self.generator.below(12) {
            0 => 0,
            1 => 4_000 + self.generator.below(6_000),
            _ => self.generator.below(150),
        };
        let mut payload = vec![0; usize::try_from(len).unwrap()];
        self.generator.fill(&mut payload);
        let kinds = [kind::ROWS, kind::FIRST_EDIT, 40];
        Frame { kind: kinds[self.generator.index(3)], payload }
    }

    pub fn append(&mut self) -> crate::Result<()> {
        let frame = self.frame();
        self.append_frame(Purpose::Adds, frame)
    }

    pub fn append_frame(&mut self, purpose: Purpose, frame: Frame) -> crate::Result<()> {
        let next = self.log().next_commit();
        let appended = self.log().append_for(purpose, frame.kind, &frame.payload);
        let ticket = appended.inspect_err(|_| {
            assert_eq!(self.log().next_commit(), next, "a refusal takes no number");
        })?;
        self.happened(What::Append(frame));
        assert_eq!(ticket.commit, self.model().frames.len() as u64);
        self.last = Some(ticket);
        Ok(())
    }

    pub fn wait(&mut self) -> crate::Result<()> {
        if let Some(ticket) = self.last {
            self.log().wait_durable(ticket)?;
            assert!(self.log().durable() >= ticket.commit);
            self.happened(What::Promised(ticket.commit));
        }
        Ok(())
    }

    /// Takes a checkpoint somewhere in what is durable, and removes what it supersedes.
    pub fn checkpoint(&mut self) -> crate::Result<()> {
        let checkpoint = self.model().checkpoint;
        let room = self.log().durable() - checkpoint;
        let commit = checkpoint + self.generator.below(room + 1);
        self.happened(What::Checkpoint(commit));
        self.log().remove_through(commit)
    }

    pub fn close(&mut self) -> crate::Result<()> {
        self.log().flush()?;
        self.happened(What::Append(Frame { kind: kind::CLOSE, payload: Vec::new() }));
        self.log().close()
    }

    /// The process is killed in the middle of an operation, and of as many recoveries from that;
    /// then one succeeds. The page cache stays.
    pub fn killed(&mut self, operation: fn(&mut Self) -> crate::Result<()>) {
        let mut result = self.killed_once(operation);
        for _ in 0..3 {
            if result.is_ok() {
                break;
            }
            result = self.killed_once(Self::reopen);
        }
        if result.is_err() || self.log.is_none() {
            self.reopen().unwrap();
        }
    }

    fn killed_once(&mut self, operation: fn(&mut Self) -> crate::Result<()>) -> crate::Result<()> {
        let ios = self.machine.io_count() + self.generator.below(7);
        self.machine.crash_after_io(Some(ios));
        let result = operation(self);
        if result.is_err() {
            self.log = None;
        }
        self.machine.crash_after_io(None);
        result
    }

    /// One random step.
    pub fn step(&mut self) -> crate::Result<()> {
        match self.generator.below(22) {
            0..=8 => self.append(),
            9..=14 => self.wait(),
            15 => self.log().rotate(),
            16 => {
                self.log().rotate()?;
                self.checkpoint()
            }
            17 => self.checkpoint(),
            18 => {
                self.append()?;
                self.log().flush()?;
                self.wait()
            }
            19 => {
                if self.generator.chance(500_000) {
                    self.close()?;
                }
                self.reopen()
            }
            which => {
                self.append()?;
                self.killed(if which == 20 { Self::wait } else { Self::reopen });
                Ok(())
            }
        }
    }
}
