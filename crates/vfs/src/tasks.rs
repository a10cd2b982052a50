//! Background work and waiting, in a form that a simulator can run on one thread.
//!
//! A [`Task`] is a state machine: each [`Task::step`] does a bounded piece of work and says when it
//! wants to go on. In production a small thread pool calls `step`; in simulation one thread does,
//! in an order drawn from the seed, whenever somebody waits or reaches a [`Tasks::pause`].
//!
//! Rules that keep the simulator free of deadlock:
//!
//! 1. No task holds a lock across [`Tasks::wait`] or [`Tasks::pause`].
//! 2. A task that is on the stack is not entered again.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Event;

/// What a task wants after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More work is at hand: call again soon.
    Again,
    /// Nothing to do until [`TaskHandle::wake`].
    Idle,
    /// Nothing to do until the time has passed or [`TaskHandle::wake`].
    After(Duration),
    /// Finished: never call again, drop the task.
    Done,
}

/// A resumable piece of background work.
pub trait Task: Send {
    /// Does a bounded piece of work.
    fn step(&mut self) -> Step;
}

/// A handle to a spawned task.
pub trait TaskHandle: Send + Sync + Debug {
    /// Makes an idle or sleeping task runnable. A wake during a step is not lost: the task is
    /// stepped once more.
    fn wake(&self);

    /// Waits until the task has returned [`Step::Done`]. The caller has made it finish.
    fn join(&self);
}

/// Runs tasks and lets threads wait.
pub trait Tasks: Send + Sync + Debug {
    /// Starts a task. Its first step happens soon, never inside this call.
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle>;

    /// Starts a job that may run for long, and wait for the caller, on a thread of its own; `None`
    /// where there is none to be had, and in simulation, which has one thread: the caller then does
    /// the work itself. To wake the handle does nothing.
    fn spawn_thread(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Option<Arc<dyn TaskHandle>> {
        let _ = (name, job);
        None
    }

    /// Sleeps until `event` has moved from generation `seen`. May return early.
    fn wait(&self, event: &Event, seen: u32);

    /// Like [`Tasks::wait`], but gives up after `timeout`.
    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration);

    /// Moves `event` and wakes up to `count` of its waiters (`usize::MAX` for all).
    fn signal(&self, event: &Event, count: usize);

    /// A point at which the simulator may run other tasks. Does nothing in production.
    fn pause(&self);

    /// Runs `job(0)`, …, `job(count - 1)`, each once, on as many threads as are useful, and
    /// returns when all are done. In simulation: one after another, in seeded order.
    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync));

    /// How many threads [`Tasks::parallel`] can use at once.
    fn parallelism(&self) -> usize;
}

/// Runs a job for every item, as [`Tasks::parallel`] does; the outcomes, in the order of the items.
///
/// ```
/// let tasks = esker_vfs::Environment::os().tasks;
/// assert_eq!(esker_vfs::parallel_map(&*tasks, &[1, 2, 3], |n| n * n), [1, 4, 9]);
/// ```
pub fn parallel_map<T: Sync, R: Send>(
    tasks: &dyn Tasks,
    items: &[T],
    job: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let outcomes: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    tasks.parallel(items.len(), &|i| {
        if let (Some(item), Some(outcome)) = (items.get(i), outcomes.get(i)) {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(job(item));
        }
    });
    let outcomes = outcomes.into_iter();
    outcomes.filter_map(|o| o.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
