//! Wakes who waits for commits: a tail of a stream, which looks by itself for what is new.
//!
//! It tells nothing but that something is. So one signal serves any number of commits, and one that
//! comes while a tail reads makes it look once more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_vfs::sync::{ArcSwap, AtomicBool, Mutex};
use esker_vfs::{Environment, Event};

use crate::commit::watermarks::Observer;
use crate::engine::Engine;

/// What is called when commits became visible or durable, on the thread that made them so, which
/// may hold the commit lock: it must not wait.
type Call = dyn Fn() + Send + Sync;

/// An observer that wakes threads, and calls who has no thread.
pub(crate) struct CommitWakes {
    environment: Environment,
    /// Moves with each commit.
    pub moved: Event,
    has_calls: AtomicBool,
    calls: ArcSwap<Vec<Arc<Call>>>,
    /// Held while one is added.
    adding: Mutex<()>,
}

impl CommitWakes {
    fn new(environment: &Environment) -> Self {
        let (environment, calls) = (environment.clone(), ArcSwap::new(Arc::new(Vec::new())));
        let (moved, has_calls, adding) = (Event::new(), AtomicBool::new(false), Mutex::new(()));
        Self { environment, moved, has_calls, calls, adding }
    }

    /// From now on calls this, too, for as long as the database is open.
    pub fn call(&self, call: Arc<Call>) {
        // default: nothing panics while it is held
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = (**self.calls.load()).clone();
        all.push(call);
        self.calls.store(Arc::new(all));
        self.has_calls.store(true, Ordering::SeqCst);
    }

    fn wake(&self) {
        self.environment.tasks.signal(&self.moved, usize::MAX);
        if self.has_calls.load(Ordering::SeqCst) {
            self.calls.load().iter().for_each(|call| call());
        }
    }
}

impl Observer for CommitWakes {
    fn after_visible(&self, _commit: u64) {
        self.wake();
    }

    fn after_durable(&self, _commit: u64, _frames: &[u8]) {
        self.wake();
    }
}

impl Engine {
    /// Wakes those that wait for commits. It listens from the first call on.
    pub(crate) fn commit_wakes(&self) -> &Arc<CommitWakes> {
        self.wakes.get_or_init(|| {
            let wakes = Arc::new(CommitWakes::new(&self.environment));
            self.watermarks.observe(Arc::clone(&wakes) as Arc<dyn Observer>);
            wakes
        })
    }
}
