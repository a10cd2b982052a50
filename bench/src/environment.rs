//! The real machine, and the same machine with one core for queries.

use std::sync::Arc;
use std::time::Duration;

use esker_vfs::{Environment, Event, Task, TaskHandle, Tasks};

/// Runs parallel parts one after another on the thread that asks; all else as before.
#[derive(Debug)]
struct OneCore(Arc<dyn Tasks>);

impl Tasks for OneCore {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        self.0.spawn(name, task)
    }

    fn wait(&self, event: &Event, seen: u32) {
        self.0.wait(event, seen);
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        self.0.wait_timeout(event, seen, timeout);
    }

    fn signal(&self, event: &Event, count: usize) {
        self.0.signal(event, count);
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// The real machine, where a query runs on one core.
pub(crate) fn one_core() -> Environment {
    let environment = Environment::os();
    let tasks = Arc::new(OneCore(Arc::clone(&environment.tasks)));
    Environment { tasks, ..environment }
}
