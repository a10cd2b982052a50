//! A thread for one job, which ends with it.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::TaskHandle;

/// The handle of a thread that runs one job.
pub(crate) struct OwnThread {
    name: String,
    /// Taken by the one that joins it; others wait for the lock.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl OwnThread {
    /// Starts it; `None` when the system gives no thread.
    pub(crate) fn start(name: &str, job: Box<dyn FnOnce() + Send>) -> Option<Self> {
        let thread = Builder::new().name(format!("esker-{name}")).spawn(job).ok()?;
        Some(Self { name: name.to_owned(), thread: Mutex::new(Some(thread)) })
    }
}

impl fmt::Debug for OwnThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thread({})", self.name)
    }
}

impl TaskHandle for OwnThread {
    fn wake(&self) {}

    fn join(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // A job that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}
