//! Several clients at once: as tasks of the simulator, and as real threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use esker_vfs::sim::{CallKind, FaultKind, Repeat};
use esker_vfs::sim::{FaultPlan, Generator, Options as SimOptions, Script, Simulation};
use esker_vfs::{Step, Task};

use super::crashes::{Recording, crash, events, seeds};
use super::history::{Driver, Frame, History, Model, What};
use super::*;
use crate::ErrorKind;

/// A client that appends and waits, now and then rotates, until it has done its turns or the log
/// takes nothing more.
struct Client {
    machine: Simulation,
    log: Arc<Log>,
    history: Arc<Mutex<History>>,
    generator: Generator,
    turns: u32,
}

impl Client {
    fn turn(&mut self) -> crate::Result<()> {
        if self.generator.below(12) == 0 {
            self.log.rotate()?;
        }
        if self.generator.below(12) == 0 {
            let durable = self.log.durable();
            let io = self.machine.io_count();
            self.history.lock().unwrap().happened(io, What::Checkpoint(durable));
            self.log.remove_through(durable)?;
        }
        let mut tickets = Vec::new();
        for _ in 0..=self.generator.below(3) {
            let mut payload = vec![0; self.generator.index(120)];
            self.generator.fill(&mut payload);
            let mut history = self.history.lock().unwrap();
            tickets.push(self.log.append(kind::ROWS, &payload)?);
            let frame = Frame { kind: kind::ROWS, payload };
            history.happened(self.machine.io_count(), What::Append(frame));
        }
        for ticket in tickets {
            self.log.wait_durable(ticket)?;
            let io = self.machine.io_count();
            let mut history = self.history.lock().unwrap();
            assert!(history.model.promised >= ticket.commit, "the hook is told first");
            history.happened(io, What::Promised(ticket.commit));
        }
        Ok(())
    }
}

impl Task for Client {
    fn step(&mut self) -> Step {
        self.turns -= 1;
        match self.turn() {
            Ok(()) if self.turns > 0 => Step::Again,
            Ok(()) => Step::Done,
            Err(error) => {
                let kinds = [ErrorKind::OutcomeUnknown, ErrorKind::Poisoned, ErrorKind::Io];
                assert!(kinds.contains(&error.kind()), "{error}");
                Step::Done
            }
        }
    }
}

/// Runs clients to the end on a machine of this seed; reopens the log after each round.
fn run(seed: u64, faults: bool) -> Recording {
    let options = SimOptions { record: true, pause_probability: 500_000, ..SimOptions::default() };
    let machine = Simulation::new(seed, options);
    let mut driver = Driver::new(machine.clone(), seed, Model::default());
    driver.create().unwrap();
    for round in 0..3 {
        if faults {
            let skip = driver.generator.below(8);
            let fault = [FaultKind::SyncErrorXfs, FaultKind::SyncErrorBtrfs][round % 2];
            machine.add_script(Script::fault(CallKind::Sync, skip, fault, Repeat::Once));
        }
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let client = Client {
                    machine: machine.clone(),
                    log: Arc::clone(driver.log.as_ref().unwrap()),
                    history: Arc::clone(&driver.history),
                    generator: Generator::new(seed, 1_000 + client),
                    turns: 4,
                };
                driver.environment.tasks.spawn("client", Box::new(client))
            })
            .collect();
        for client in clients {
            client.join();
        }
        machine.set_faults(FaultPlan::none());
        driver.reopen().unwrap();
    }
    Recording { machine, base: Model::default(), events: events(&driver) }
}

#[test]
fn clients_keep_their_promises_through_crashes() {
    let mut images = 0;
    for seed in seeds(25) {
        images += crash(&run(seed, false), seed, 1);
    }
    assert!(images > 1_000, "{images} images");
}

#[test]
fn clients_keep_their_promises_through_failed_syncs() {
    let mut images = 0;
    for seed in seeds(25) {
        images += crash(&run(seed, true), seed, 1);
    }
    assert!(images > 1_000, "{images} images");
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(run(3, true).machine.trace_hash(), run(3, true).machine.trace_hash());
    assert_ne!(run(3, true).machine.trace_hash(), run(4, true).machine.trace_hash());
}

/// Many real threads, more than processors, some that rotate and flush.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads are what is tested")]
fn threads_never_wait_for_ever() {
    let directory = Directory::new();
    let told = Arc::new(AtomicU64::new(0));
    let on_durable = {
        let told = Arc::clone(&told);
        Arc::new(move |commit, _: &[u8]| {
            assert!(told.swap(commit, Ordering::SeqCst) < commit, "calls come in order");
        })
    };
    let options = Options { on_durable: Some(on_durable), ..Options::default() };
    let log = Log::create(&directory.environment, &directory.path, DATABASE, options).unwrap();
    let numbering = Mutex::new(());
    std::thread::scope(|scope| {
        for thread in 0..24 {
            let (log, told, numbering) = (&log, &told, &numbering);
            scope.spawn(move || {
                for turn in 0..200 {
                    let guard = numbering.lock().unwrap();
                    let payload = log.next_commit().to_le_bytes();
                    let ticket = log.append(kind::ROWS, &payload).unwrap();
                    drop(guard);
                    if turn % 50 == thread {
                        log.rotate().unwrap();
                    }
                    if turn % 7 == 3 {
                        log.flush().unwrap();
                    }
                    log.wait_durable(ticket).unwrap();
                    assert!(told.load(Ordering::SeqCst) >= ticket.commit);
                }
            });
        }
    });
    assert_eq!(commits(&directory.scan(0).unwrap()).len(), 24 * 200 + 1);
    log.close().unwrap();
}
