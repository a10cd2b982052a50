//! The task that keeps the promise of [`Durability::Async`]: at most so long until durable.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use esker_vfs::{Step, Task};

use crate::Durability;
use crate::engine::Engine;

struct Flusher {
    engine: Weak<Engine>,
    delay: Duration,
    waiting: bool,
}

/// Starts the flusher, when commits are asynchronous.
pub(super) fn start(engine: &Arc<Engine>) {
    let Durability::Async { at_most } = engine.options.durability else { return };
    if !engine.is_durable() || engine.options.read_only {
        return;
    }
    // Half of the window is left for the flush itself.
    let task = Flusher { engine: Arc::downgrade(engine), delay: at_most / 2, waiting: false };
    let handle = engine.environment.tasks.spawn("flusher", Box::new(task));
    let _ = engine.flusher_task.set(handle);
}

impl Task for Flusher {
    fn step(&mut self) -> Step {
        let Some(engine) = self.engine.upgrade() else { return Step::Done };
        if engine.stopping.load(Ordering::Acquire) {
            return Step::Done;
        }
        if !engine.dirty.load(Ordering::Acquire) {
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
