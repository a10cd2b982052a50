//! The command line of the `crash` program.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Report, crash_workload};

const USAGE: &str = "\
usage: crash [MODE] [--seed N] [--threads N]

  --images N        random workloads, crashed after every I/O, until N images are checked (default)
  --workload N      one workload of that campaign, with all its images
";

/// Failures after which a campaign ends.
const FAILURES_MAX: usize = 3;
/// A campaign that makes no progress for so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the command line says.
#[derive(Clone, Debug)]
struct Arguments {
    mode: String,
    number: u64,
    seed: u64,
    threads: u64,
    name: Option<String>,
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut parsed =
            Self { mode: "--images".to_owned(), number: 20_000, seed: 1, threads: 2, name: None };
        let mut rest = arguments.iter().peekable();
        while let Some(word) = rest.next() {
            let value = rest.next_if(|next| !next.starts_with("--"));
            let number = value.and_then(|value| value.parse().ok());
            match (word.as_str(), number) {
                ("--seed", Some(n)) => parsed.seed = n,
                ("--threads", Some(n)) => parsed.threads = n,
                ("--help", _) => return Err(USAGE.to_owned()),
                (mode, number) if mode.starts_with("--") => {
                    parsed.mode = mode.to_owned();
                    parsed.number = number.unwrap_or(0);
                    parsed.name = value.cloned();
                }
                (word, _) => return Err(format!("unknown word {word:?}\n{USAGE}")),
            }
        }
        Ok(parsed)
    }
}

/// Runs the program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let start = now();
    let report = match arguments.mode.as_str() {
        "--images" => {
            let (seed, target) = (arguments.seed, arguments.number.max(1));
            gather(arguments.threads, target, |n| crash_workload(first_seed(seed) + n))
        }
        "--workload" => crash_workload(arguments.number),
        other => {
            eprintln!("unknown mode {other}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{report}");
    println!("time                    {seconds:.1} s");
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The seed of the first workload of a campaign: campaigns with other seeds share none.
fn first_seed(seed: u64) -> u64 {
    seed.wrapping_mul(1_000_000_007) % (1 << 40)
}

#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn now() -> Instant {
    Instant::now()
}

/// Runs jobs 0, 1, … on several threads until so many images are checked.
#[allow(clippy::disallowed_methods, reason = "each thread has its own simulated machines")]
fn gather(threads: u64, target: u64, job: impl Fn(u64) -> Report + Sync) -> Report {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Report::default());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let report = job(next.fetch_add(1, Ordering::Relaxed));
                        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                        total.add(report);
                        let enough = total.images >= target;
                        if enough || total.failures.len() >= FAILURES_MAX {
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        watch(&total, &next, || workers.iter().all(std::thread::ScopedJoinHandle::is_finished));
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Prints progress; ends the program when there is none.
#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn watch(total: &Mutex<Report>, next: &AtomicU64, finished: impl Fn() -> bool) {
    let mut printed = now();
    let mut moved = (0, now());
    while !finished() {
        std::thread::sleep(Duration::from_millis(20));
        let total = total.lock().unwrap_or_else(PoisonError::into_inner);
        if total.workloads != moved.0 {
            moved = (total.workloads, now());
        }
        if printed.elapsed() > Duration::from_secs(10) {
            printed = now();
            let (workloads, images) = (total.workloads, total.images);
            eprintln!("  {workloads} workloads, {images} images");
        }
        if moved.1.elapsed() > PATIENCE {
            let started = next.load(Ordering::Relaxed);
            println!("{total}\nHANG: no workload ends; {started} have been started");
            std::process::exit(3);
        }
    }
}
