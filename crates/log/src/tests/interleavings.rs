//! Group commit under a scheduler that tries interleavings of threads: nobody waits for ever.
//!
//! Threads switch before every look at shared state (see [`switch`]), in waits, in signals, and
//! at pause points. A signal wakes no more threads than it says, any of them, and a thread wakes
//! for no other reason, so a lost wake-up is a deadlock, which the scheduler reports.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use esker_vfs::sim::{CallKind, FaultKind, Options as SimOptions, Repeat, Script, Simulation};
use esker_vfs::{Event, Task, TaskHandle, Tasks};
use shuttle::rand::Rng;
use shuttle::sync::{Condvar, Mutex};
use shuttle::{check_pct, check_random, thread};

use super::*;
use crate::ErrorKind;

thread_local! {
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// A point at which the scheduler may switch threads; nothing outside these tests.
pub(crate) fn switch() {
    if SCHEDULED.get() {
        thread::yield_now();
    }
}

/// Waiting and waking for threads of the scheduler.
#[derive(Default)]
struct ScheduledTasks {
    /// Who sleeps, on which event.
    sleepers: Mutex<Vec<(usize, thread::ThreadId)>>,
    woken: Condvar,
}

impl std::fmt::Debug for ScheduledTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScheduledTasks")
    }
}

impl Tasks for ScheduledTasks {
    fn spawn(&self, _: &str, _: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        panic!("the log spawns nothing")
    }

    fn wait(&self, event: &Event, seen: u32) {
        switch();
        let me = (std::ptr::from_ref(event).addr(), thread::current().id());
        let mut sleepers = self.sleepers.lock().unwrap();
        if event.generation() != seen {
            return;
        }
        sleepers.push(me);
        while sleepers.contains(&me) {
            sleepers = self.woken.wait(sleepers).unwrap();
        }
    }

    fn wait_timeout(&self, _: &Event, _: u32, _: Duration) {
        panic!("the log waits without a limit")
    }

    fn signal(&self, event: &Event, count: usize) {
        switch();
        event.advance();
        switch();
        let event = std::ptr::from_ref(event).addr();
        let mut sleepers = self.sleepers.lock().unwrap();
        for _ in 0..count {
            let here: Vec<_> = (0..sleepers.len()).filter(|i| sleepers[*i].0 == event).collect();
            if here.is_empty() {
                break;
            }
            let chosen = shuttle::rand::thread_rng().gen_range(0..here.len());
            sleepers.remove(here[chosen]);
        }
        drop(sleepers);
        self.woken.notify_all();
    }

    fn pause(&self) {
        switch();
    }

    fn parallel(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {
        panic!("the log runs nothing in parallel")
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// Some threads append and wait, one rotates, one flushes. `failing_sync` is the sync that fails.
fn scenario(threads: u64, failing_sync: Option<u64>) {
    let machine = Simulation::new(1, SimOptions::default());
    let tasks: Arc<dyn Tasks> = Arc::new(ScheduledTasks::default());
    let environment = Environment { tasks, ..machine.environment() };
    environment.files.create_dir_all(Path::new("db")).unwrap();
    SCHEDULED.set(false);
    let log = Log::create(&environment, Path::new("db"), DATABASE, Options::default()).unwrap();
    if let Some(skip) = failing_sync {
        let fault = FaultKind::SyncErrorXfs;
        machine.add_script(Script::fault(CallKind::Sync, skip, fault, Repeat::Once));
    }
    SCHEDULED.set(true);
    let log = Arc::new(log);
    let check = move |result: crate::Result<()>| {
        if let Err(error) = result {
            assert!(failing_sync.is_some(), "{error}");
            let kinds = [ErrorKind::OutcomeUnknown, ErrorKind::Poisoned, ErrorKind::Io];
            assert!(kinds.contains(&error.kind()), "{error}");
        }
    };
    let clients: Vec<_> = (0..threads)
        .map(|client| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for turn in 0..2 {
                    let ticket = match log.append(kind::ROWS, &[7; 40]) {
                        Ok(ticket) => ticket,
                        Err(error) => return check(Err(error)),
                    };
                    if client == 0 && turn == 1 {
                        check(log.rotate());
                    }
                    if client == 1 && turn == 0 {
                        check(log.flush());
                    }
                    let result = log.wait_durable(ticket);
                    assert!(result.is_err() || log.durable() >= ticket.commit);
                    check(result);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    SCHEDULED.set(false);
    if failing_sync.is_none() {
        assert_eq!(log.durable(), 2 * threads + 1);
        let scan = scan(&environment, Path::new("db"), DATABASE, 0).unwrap();
        assert_eq!(scan.last_commit(), 2 * threads + 1);
    }
}

fn iterations(usual: usize) -> usize {
    std::env::var("ESKER_LOG_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn nobody_waits_for_ever() {
    check_random(|| scenario(3, None), iterations(3_000));
    check_random(|| scenario(5, None), iterations(2_000));
}

#[test]
fn nobody_waits_for_ever_with_few_switches() {
    for depth in 2..5 {
        check_pct(|| scenario(4, None), iterations(1_000), depth);
    }
}

#[test]
fn everybody_hears_of_a_failed_sync() {
    for skip in 0..4 {
        check_random(move || scenario(4, Some(skip)), iterations(300));
        check_pct(move || scenario(4, Some(skip)), iterations(300), 3);
    }
}
