//! Programs that run side by side, as many as the machine has processors.
//!
//! What a program writes is kept until it ends and then shown whole, so that the lines of two never
//! mix. After a failure no other starts; those that run come to their end.

use crate::Result;
use crate::program::Program;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program to run for a step.
pub struct Job {
    /// The name of the step.
    pub step: &'static str,
    /// What runs.
    pub program: Program,
}

/// What is shared by the threads that start programs.
struct Shared {
    waiting: VecDeque<Job>,
    /// The time of each program, by its step.
    times: Vec<(&'static str, Duration)>,
    failure: Option<crate::Error>,
}

/// Runs all jobs in order, some at once; returns how long each ran.
///
/// # Errors
/// That of the first program that fails, with its step.
pub fn run(jobs: Vec<Job>) -> Result<Vec<(&'static str, Duration)>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let shared = Shared { waiting: jobs.into(), times: Vec::new(), failure: None };
    let shared = Mutex::new(shared);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&shared));
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.failure {
        Some(failure) => Err(failure),
        None => Ok(shared.times),
    }
}

/// Starts one program after another until none is left, or one has failed.
fn work(shared: &Mutex<Shared>) {
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let job = {
            let mut shared = lock();
            if shared.failure.is_some() { None } else { shared.waiting.pop_front() }
        };
        let Some(Job { step, program }) = job else { return };
        let start = Instant::now();
        let ended = program.captured();
        let mut shared = lock();
        shared.times.push((step, start.elapsed()));
        let outcome = match ended {
            Ok((text, outcome)) => {
                let mut out = std::io::stdout().lock();
                // Output that cannot be written has no reader; the outcome counts all the same.
                out.write_all(&text).and_then(|()| out.flush()).ok();
                outcome
            }
            Err(error) => Err(error),
        };
        if let (Err(error), None) = (outcome, &shared.failure) {
            let message = format!("step {step} failed: {error}");
            shared.failure = Some(crate::Error::new(error.kind(), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn job(step: &'static str, script: &str) -> Job {
        Job { step, program: Program::new("sh").arguments(&["-c", script]) }
    }

    #[test]
    fn every_job_runs_and_is_timed_by_its_step() {
        let jobs = vec![job("a", "true"), job("b", "true"), job("a", "true")];
        let mut steps: Vec<_> = run(jobs).unwrap().into_iter().map(|(step, _)| step).collect();
        steps.sort_unstable();
        assert_eq!(steps, ["a", "a", "b"]);
    }

    #[test]
    fn a_failure_names_its_step_and_ends_the_run() {
        let mut jobs = vec![job("bad", "exit 3")];
        jobs.extend((0..200).map(|_| job("late", "sleep 0.05")));
        let start = Instant::now();
        let error = run(jobs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exited(3));
        assert!(error.to_string().starts_with("step bad failed: "), "{error}");
        assert!(start.elapsed() < Duration::from_secs(4), "others started after the failure");
    }
}
