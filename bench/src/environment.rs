//! The real machine, and the same machine with some of its cores for queries.

use std::sync::Arc;
use std::time::Duration;

use esker_vfs::{Environment, Event, Task, TaskHandle, Tasks};

/// Parallel parts are for so many cores; for one they run one after another on the thread that
/// asks. All else as before.
#[derive(Debug)]
struct Cores {
    tasks: Arc<dyn Tasks>,
    count: usize,
}

impl Tasks for Cores {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        self.tasks.spawn(name, task)
    }

    fn wait(&self, event: &Event, seen: u32) {
        self.tasks.wait(event, seen);
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        self.tasks.wait_timeout(event, seen, timeout);
    }

    fn signal(&self, event: &Event, count: usize) {
        self.tasks.signal(event, count);
    }

    fn pause(&self) {
        self.tasks.pause();
    }

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        match self.parallelism() {
            1 => (0..count).for_each(job),
            _ => self.tasks.parallel(count, job),
        }
    }

    fn parallelism(&self) -> usize {
        self.tasks.parallelism().min(self.count)
    }
}

/// The real machine, where a query runs on so many cores at the most.
pub(crate) fn cores(count: usize) -> Environment {
    let environment = Environment::os();
    let tasks = Arc::new(Cores { tasks: Arc::clone(&environment.tasks), count });
    Environment { tasks, ..environment }
}
