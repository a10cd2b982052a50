//! Waiting, and background tasks, as threads of the scheduler.

use std::sync::Arc;
use std::time::Duration;

use esker_vfs::{Event, Step, Task, TaskHandle, Tasks};
use shuttle::sync::Mutex;
use shuttle::thread::{self, JoinHandle};

/// Tasks are threads. Waiting is yielding until the event has moved: that nobody's wake-up is lost
/// is what the tests of the log check, with sleepers that wake for no other reason, and those of
/// tails, which are patient.
#[derive(Debug)]
pub struct ModelTasks {
    /// Who waits for some time waits until it is woken.
    pub is_patient: bool,
}

impl Tasks for ModelTasks {
    fn spawn(&self, _: &str, mut task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        let thread = thread::spawn(move || {
            while task.step() != Step::Done {
                thread::yield_now();
            }
        });
        Arc::new(ModelTask(Mutex::new(Some(thread))))
    }

    fn wait(&self, event: &Event, seen: u32) {
        while event.generation() == seen {
            thread::yield_now();
        }
    }

    fn wait_timeout(&self, event: &Event, seen: u32, _: Duration) {
        match self.is_patient {
            true => self.wait(event, seen),
            false => thread::yield_now(),
        }
    }

    fn signal(&self, event: &Event, _: usize) {
        event.advance();
    }

    fn pause(&self) {
        esker_vfs::sync::switch();
    }

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }

    fn parallelism(&self) -> usize {
        1
    }
}

struct ModelTask(Mutex<Option<JoinHandle<()>>>);

impl std::fmt::Debug for ModelTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelTask")
    }
}

impl TaskHandle for ModelTask {
    fn wake(&self) {}

    fn join(&self) {
        let thread = self.0.lock().unwrap().take();
        if let Some(thread) = thread {
            thread.join().unwrap();
        }
    }
}
