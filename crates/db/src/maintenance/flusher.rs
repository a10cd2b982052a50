//! The task that keeps the promise of [`Durability::Async`]: at most so long until durable.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use esker_log::sabotage::Bug;
use esker_vfs::{Step, Task, TaskHandle};

use crate::Durability;
use crate::engine::Engine;

/// How long single asynchronous commits take until they are durable, at most, where the database
/// does not say.
const AT_MOST: Duration = Duration::from_millis(10);

struct Flusher {
    engine: Weak<Engine>,
    delay: Duration,
    waiting: bool,
}

/// Starts the flusher, when commits are asynchronous. Where they are not, one that is starts it.
pub(super) fn start(engine: &Arc<Engine>) {
    let is_asynchronous = matches!(engine.options.durability, Durability::Async { .. });
    if is_asynchronous && engine.is_durable() && !engine.options.read_only {
        flusher_of(engine);
    }
}

/// How long asynchronous commits take until they are durable, at most.
pub(crate) fn flush_window(engine: &Engine) -> Duration {
    match engine.options.durability {
        Durability::Async { at_most } => at_most,
        Durability::Sync => AT_MOST,
    }
}

/// The flusher of a durable database.
pub(crate) fn flusher_of(engine: &Arc<Engine>) -> &Arc<dyn TaskHandle> {
    engine.flusher_task.get_or_init(|| {
        let at_most = flush_window(engine);
        // Half of the window is left for the flush itself.
        let task = Flusher { engine: Arc::downgrade(engine), delay: at_most / 2, waiting: false };
        engine.environment.tasks.spawn("flusher", Box::new(task))
    })
}

impl Task for Flusher {
    fn step(&mut self) -> Step {
        let Some(engine) = self.engine.upgrade() else { return Step::Done };
        if engine.stopping.load(Ordering::Acquire) {
            return Step::Done;
        }
        if !engine.dirty.load(Ordering::Acquire) || Bug::AsyncWindowIgnored.is_planted() {
            self.waiting = false;
            return Step::Idle;
        }
        if !self.waiting {
            self.waiting = true;
            return Step::After(self.delay);
        }
        self.waiting = false;
        engine.dirty.store(false, Ordering::Release);
        if let Err(e) = engine.sync() {
            engine.note_error(&e);
            return Step::Idle;
        }
        Step::Again
    }
}
