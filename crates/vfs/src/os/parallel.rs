//! Running independent jobs on several threads at once.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads the machine runs at once.
pub(crate) fn parallelism() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Runs `job(0)`, …, `job(count - 1)` on up to `threads` threads, the calling one among them.
/// A panic of a job is passed on once all others are done.
pub(crate) fn run(count: usize, threads: usize, job: &(dyn Fn(usize) + Sync)) {
    let helpers = threads.min(count).saturating_sub(1);
    if helpers == 0 {
        (0..count).for_each(job);
        return;
    }
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            job(index);
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            let builder = thread::Builder::new().name("esker-parallel".into());
            if builder.spawn_scoped(scope, work).is_err() {
                break; // no more threads to be had: those there are do the work
            }
        }
        work();
    });
}
