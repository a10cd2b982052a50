//! A small thread pool that steps tasks.
//!
//! ```text
//!            wake / Again                 a worker takes it
//!   Idle ───────────────────► Queued ───────────────────────► Running ──► Done
//!    ▲  Sleeping ──timer────►   ▲                              │  │
//!    │     ▲                    └───── Woken (a wake came) ◄───┘  │
//!    └─────┴──────────────── Step::Idle, Step::After ─────────────┘
//! ```
//!
//! Invariants:
//! * A task is in the ready queue exactly when its phase is `Queued`; only the worker that took
//!   it off moves it from `Running` or `Woken`.
//! * A wake is one compare-and-swap; the queue's lock is taken only when the phase was `Idle` or
//!   `Sleeping`. All moves of the phase but the last are read-modify-writes, so a step sees
//!   whatever was written before any wake that it answers.
//! * A worker that blocks inside a step does not count: while work is ready, as many threads run
//!   as the pool was made for. So tasks that wait for one another cannot use up the pool.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::own_thread::OwnThread;
use super::{futex, parallel};
use crate::{Event, Step, Task, TaskHandle, Tasks};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const WOKEN: u8 = 3;
const SLEEPING: u8 = 4;
const DONE: u8 = 5;

/// How long a thread without work stays.
const LINGER: Duration = Duration::from_secs(10);

thread_local! {
    static POOL_OF_THIS_THREAD: RefCell<Weak<Pool>> = const { RefCell::new(Weak::new()) };
}

/// Tasks on threads, started when first needed.
pub(crate) struct ThreadPool(Arc<Pool>);

struct Pool {
    /// How many threads step tasks at once.
    size: usize,
    queue: Mutex<Queue>,
    /// Moves when an idle thread should look at the queue.
    work: Event,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<Job>>,
    timers: BTreeMap<(Instant, u64), Arc<Job>>,
    threads: usize,
    idle: usize,
    blocked: usize,
}

/// A spawned task.
struct Job {
    id: u64,
    name: String,
    pool: Arc<Pool>,
    phase: AtomicU8,
    task: Mutex<Option<Box<dyn Task>>>,
    /// The key of this job among the timers; changed under the queue's lock only.
    timer: Mutex<Option<Instant>>,
    done: Event,
}

impl ThreadPool {
    pub(crate) fn new(size: usize) -> Self {
        let queue = Mutex::new(Queue::default());
        Self(Arc::new(Pool { size, queue, work: Event::new() }))
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadPool({} threads)", self.0.size)
    }
}

impl Tasks for ThreadPool {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let job = Arc::new(Job {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            pool: Arc::clone(&self.0),
            phase: AtomicU8::new(QUEUED),
            task: Mutex::new(Some(task)),
            timer: Mutex::new(None),
            done: Event::new(),
        });
        self.0.push(Arc::clone(&job));
        Arc::new(JobHandle(job))
    }

    fn spawn_thread(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Option<Arc<dyn TaskHandle>> {
        Some(Arc::new(OwnThread::start(name, job)?))
    }

    fn wait(&self, event: &Event, seen: u32) {
        blocking(|| futex::wait(event, seen, None));
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        blocking(|| futex::wait(event, seen, Some(timeout)));
    }

    fn signal(&self, event: &Event, count: usize) {
        futex::signal(event, count);
    }

    fn pause(&self) {}

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        parallel::run(count, parallel::parallelism(), job);
    }

    fn parallelism(&self) -> usize {
        parallel::parallelism()
    }
}

/// Runs something that may block; on a thread of a pool, lets another take its place.
fn blocking(wait: impl FnOnce()) {
    let pool = POOL_OF_THIS_THREAD.with(|pool| pool.borrow().upgrade());
    let Some(pool) = pool else { return wait() };
    let mut queue = pool.lock();
    queue.blocked += 1;
    if queue.idle == 0 && !(queue.ready.is_empty() && queue.timers.is_empty()) {
        pool.start_thread(&mut queue);
    }
    drop(queue);
    wait();
    pool.lock().blocked -= 1;
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job whose phase is `Queued`.
    fn push(self: &Arc<Self>, job: Arc<Job>) {
        let mut queue = self.lock();
        if let Some(at) = job.take_timer() {
            queue.timers.remove(&(at, job.id));
        }
        queue.ready.push_back(job);
        self.call_help(queue);
    }

    /// Sees to it that somebody takes the next ready job. A thread that was woken counts as idle
    /// until it runs, so there is the comparison with the length of the queue. The lock is let go
    /// first, so that the thread does not wake only to wait for it.
    fn call_help(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.ready.len() > queue.idle {
            self.start_thread(&mut queue);
        }
        let idle = queue.idle > 0;
        drop(queue);
        if idle {
            futex::signal(&self.work, 1);
        }
    }

    /// Starts a thread unless enough are running. Should the system refuse, those there are do
    /// the work, or the next push tries again.
    fn start_thread(self: &Arc<Self>, queue: &mut Queue) {
        if queue.threads - queue.blocked >= self.size {
            return;
        }
        let pool = Arc::clone(self);
        let builder = thread::Builder::new().name("esker-task".into());
        if builder.spawn(move || pool.run()).is_ok() {
            queue.threads += 1;
        }
    }

    /// The life of a thread.
    fn run(self: Arc<Self>) {
        POOL_OF_THIS_THREAD.with(|pool| *pool.borrow_mut() = Arc::downgrade(&self));
        while let Some(job) = self.next() {
            job.step();
        }
    }

    /// Waits for the next ready job; nothing when this thread is no longer needed.
    fn next(self: &Arc<Self>) -> Option<Arc<Job>> {
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            queue.fire_timers(now);
            if queue.threads - queue.blocked > self.size {
                queue.threads -= 1; // one that was blocked has come back
                if !queue.ready.is_empty() {
                    self.call_help(queue);
                }
                return None;
            }
            if let Some(job) = queue.ready.pop_front() {
                if !queue.ready.is_empty() {
                    self.call_help(queue);
                }
                return Some(job);
            }
            let deadline = queue.timers.first_key_value().map(|((at, _), _)| *at);
            let patience = deadline.map_or(LINGER, |at| at.saturating_duration_since(now));
            queue.idle += 1;
            // Read under the lock: a job that is queued from here on moves it.
            let seen = self.work.generation();
            drop(queue);
            futex::wait(&self.work, seen, Some(patience));
            queue = self.lock();
            queue.idle -= 1;
            let unused = queue.ready.is_empty() && queue.timers.is_empty();
            if unused && now.elapsed() >= LINGER {
                queue.threads -= 1;
                return None;
            }
        }
    }
}

impl Queue {
    /// Moves sleepers whose time has come to the ready queue.
    fn fire_timers(&mut self, now: Instant) {
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let job = entry.remove();
            job.take_timer();
            if job.moved(SLEEPING, QUEUED) {
                self.ready.push_back(job);
            }
        }
    }
}

impl Job {
    fn moved(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn take_timer(&self) -> Option<Instant> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Steps the task once; the caller took this job off the ready queue.
    fn step(self: Arc<Self>) {
        self.phase.swap(RUNNING, Ordering::AcqRel);
        let mut slot = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // A task that panics has said so on standard error. It cannot go on, but a thread that
        // joins it must.
        let step = slot.as_mut().map_or(Step::Done, |task| {
            catch_unwind(AssertUnwindSafe(|| task.step())).unwrap_or(Step::Done)
        });
        let finished = if step == Step::Done { slot.take() } else { None };
        drop(slot);
        match step {
            Step::Again => self.queue(),
            Step::Idle if self.moved(RUNNING, IDLE) => {}
            Step::Idle => self.queue(),
            Step::After(delay) => self.sleep(delay),
            Step::Done => {
                // What the task held is gone before anybody hears that it is done.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(finished)));
                self.phase.store(DONE, Ordering::Release);
                futex::signal(&self.done, usize::MAX);
            }
        }
    }

    fn queue(self: Arc<Self>) {
        self.phase.swap(QUEUED, Ordering::AcqRel);
        let pool = Arc::clone(&self.pool);
        pool.push(self);
    }

    fn sleep(self: Arc<Self>, delay: Duration) {
        let Some(at) = Instant::now().checked_add(delay) else {
            // Longer than the clock can tell: only a wake ends it.
            if !self.moved(RUNNING, IDLE) {
                self.queue();
            }
            return;
        };
        let pool = Arc::clone(&self.pool);
        let mut queue = pool.lock();
        // A thread that wakes it from here on takes the timer out again, under the lock held here.
        *self.timer.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        if self.moved(RUNNING, SLEEPING) {
            let key = (at, self.id);
            queue.timers.insert(key, self);
            let first = queue.timers.first_key_value().is_some_and(|(first, _)| *first == key);
            let look = first && queue.idle > 0;
            drop(queue);
            if look {
                futex::signal(&pool.work, 1); // somebody may be waiting for a later timer
            }
            return;
        }
        drop(queue);
        self.take_timer();
        self.queue();
    }
}

struct JobHandle(Arc<Job>);

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({})", self.0.name)
    }
}

impl TaskHandle for JobHandle {
    fn wake(&self) {
        let job = &self.0;
        loop {
            match job.phase.load(Ordering::Acquire) {
                phase @ (IDLE | SLEEPING) => {
                    if job.moved(phase, QUEUED) {
                        return job.pool.push(Arc::clone(job));
                    }
                }
                RUNNING => {
                    if job.moved(RUNNING, WOKEN) {
                        return;
                    }
                }
                DONE => return,
                // Written though it stays the same, so that the step to come sees all that this
                // thread did before the wake.
                phase => {
                    if job.moved(phase, phase) {
                        return;
                    }
                }
            }
        }
    }

    fn join(&self) {
        while self.0.phase.load(Ordering::Acquire) != DONE {
            let seen = self.0.done.generation();
            if self.0.phase.load(Ordering::Acquire) != DONE {
                blocking(|| futex::wait(&self.0.done, seen, None));
            }
        }
    }
}
