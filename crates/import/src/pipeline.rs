//! Jobs in parallel, answers in order.
//!
//! ```text
//!   push ──► queue ──► worker tasks (one job a step) ──► done, by number ──► next, in order
//! ```
//!
//! The caller decides how many jobs are in flight; that bounds the memory. A worker is a task of
//! the seam, so that a simulator can run it. Workers start with the second job in flight: a job
//! without others is done by the caller, which waits for it anyway.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker_vfs::{Event, Step, Task, TaskHandle, Tasks};

/// How many jobs are kept in flight for so many workers.
pub(crate) fn depth(workers: usize) -> usize {
    workers.max(1) * 2 + 1
}

/// Runs jobs of type `I` that answer `O`, and hands the answers out in the order of the jobs.
pub struct Pipeline<I: Send + 'static, O: Send + 'static> {
    shared: Arc<Shared<I, O>>,
    tasks: Arc<dyn Tasks>,
    name: &'static str,
    /// None until two jobs are in flight.
    workers: Vec<Arc<dyn TaskHandle>>,
    pushed: u64,
    taken: u64,
}

struct Shared<I, O> {
    state: Mutex<State<I, O>>,
    moved: Event,
    job: Box<dyn Fn(I) -> O + Send + Sync>,
}

struct State<I, O> {
    queue: VecDeque<(u64, I)>,
    done: BTreeMap<u64, O>,
    closed: bool,
    /// A job has panicked; its answer never comes.
    lost: bool,
}

impl<I, O> Shared<I, O> {
    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Send + 'static, O: Send + 'static> Pipeline<I, O> {
    /// Workers for all cores, which do `job` under a name.
    pub fn new(
        tasks: &Arc<dyn Tasks>,
        name: &'static str,
        job: impl Fn(I) -> O + Send + Sync + 'static,
    ) -> Self {
        let state =
            State { queue: VecDeque::new(), done: BTreeMap::new(), closed: false, lost: false };
        let state = Mutex::new(state);
        let shared = Arc::new(Shared { state, moved: Event::new(), job: Box::new(job) });
        let (tasks, workers) = (Arc::clone(tasks), Vec::new());
        Self { shared, tasks, name, workers, pushed: 0, taken: 0 }
    }

    fn start_workers(&mut self) {
        let workers = (0..self.tasks.parallelism().max(1)).map(|_| {
            let (shared, wakeup) = (Arc::clone(&self.shared), Arc::clone(&self.tasks));
            let worker = Worker { shared, wakeup, at_work: false };
            self.tasks.spawn(self.name, Box::new(worker))
        });
        self.workers = workers.collect();
    }

    /// How many jobs to keep in flight so that no worker waits.
    #[must_use]
    pub fn depth(&self) -> usize {
        depth(self.tasks.parallelism())
    }

    /// How many jobs have been pushed and not answered by [`Pipeline::next`].
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::try_from(self.pushed - self.taken).unwrap_or(usize::MAX)
    }

    /// Adds a job. How many are in flight is the caller's to limit.
    pub fn push(&mut self, input: I) {
        self.shared.lock().queue.push_back((self.pushed, input));
        self.pushed += 1;
        if self.workers.is_empty() && self.in_flight() > 1 {
            self.start_workers();
        }
        self.workers.iter().for_each(|w| w.wake());
    }

    /// Waits for the answer of the oldest job; `None` when none is in flight, or when a worker has
    /// panicked.
    #[allow(clippy::should_implement_trait, reason = "a pipeline that is empty may go on")]
    pub fn next(&mut self) -> Option<O> {
        if self.in_flight() == 0 {
            return None;
        }
        if self.workers.is_empty() {
            let alone = self.shared.lock().queue.pop_front();
            self.taken += 1;
            return alone.map(|(_, input)| (self.shared.job)(input));
        }
        loop {
            let seen = self.shared.moved.generation();
            let mut state = self.shared.lock();
            if let Some(output) = state.done.remove(&self.taken) {
                self.taken += 1;
                return Some(output);
            }
            if state.lost {
                return None;
            }
            drop(state);
            self.tasks.wait(&self.shared.moved, seen);
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Drop for Pipeline<I, O> {
    /// Jobs not begun are dropped; those under way are waited for.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let unused = std::mem::take(&mut state.queue);
        drop(state);
        drop(unused);
        for worker in &self.workers {
            worker.wake();
            worker.join();
        }
    }
}

struct Worker<I, O> {
    shared: Arc<Shared<I, O>>,
    wakeup: Arc<dyn Tasks>,
    at_work: bool,
}

impl<I: Send, O: Send> Task for Worker<I, O> {
    fn step(&mut self) -> Step {
        let mut state = self.shared.lock();
        let Some((number, input)) = state.queue.pop_front() else {
            return if state.closed { Step::Done } else { Step::Idle };
        };
        drop(state);
        self.at_work = true;
        let output = (self.shared.job)(input);
        self.at_work = false;
        self.shared.lock().done.insert(number, output);
        self.wakeup.signal(&self.shared.moved, usize::MAX);
        Step::Again
    }
}

impl<I, O> Drop for Worker<I, O> {
    fn drop(&mut self) {
        if self.at_work {
            self.shared.lock().lost = true;
            self.wakeup.signal(&self.shared.moved, usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
