//! The command line of the `crash` program.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use esker_vfs::sim::Generator;

use super::rollup_history::rollup_workload;
use super::watchdog::Watchdog;
use super::{
    Report, WORKLOADS, bucket_rot_workload, bucket_workload, crash_busy_workload, crash_workload,
    directed, exhaust, invariants, lying_bucket_workload, lying_workload, rot_workload, sabotage,
    same_twice, sweep_workload,
};
use crate::streams::stream_workload;

const USAGE: &str = "\
usage: crash [MODE] [--seed N] [--threads N]

  --images N        random workloads, crashed after every I/O, until N images are checked (default)
  --busy N          the same with many clients, seals, merges and checkpoints at once
  --buckets N       the same of buckets: entries that expire, ranges, batches, a clock set back
  --streams N       the same of streams: late events, loads, retention by class and window
  --rollups N       the same of rollups that outlive their events
  --sweep [N]       N short workloads, in which each call fails, once and for ever, in each way
  --exhaustive [N]  every workload of up to 3 operations, every I/O, every subset; or a sample of N
  --directed        scenarios that chance finds too seldom
  --determinism N   N seeds, each run twice
  --rot N           closed databases, until N damaged images are read
  --bucket-rot N    the same of buckets
  --bucket-lies N   buckets on disks whose syncs lie
  --lying-fsync N   disks that lie, until N images are checked
  --sabotage [NAME] each planted bug, or one; needs the cargo feature `sabotage`
  --invariants [NAME]
                    each planted bug that breaks an invariant, or one: an assertion catches it

one workload of a campaign, with all its images:
  --workload N, --busy-workload N, --bucket-workload N, --stream-workload N, --rollup-workload N,
  --sweep-workload N, --exhaustive-workload N,
  --rot-workload N, --bucket-rot-workload N, --lying-workload N,
  --lying-bucket-workload N
";

/// Failures after which a campaign ends.
const FAILURES_MAX: usize = 3;
/// A campaign hangs when no workload ends while its workers use a processor for so long each, or
/// while they want none for so long.
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

impl Arguments {
    /// Runs the mode; nothing when it has printed all there is to say.
    fn report(&self) -> Result<Option<Report>, String> {
        let (number, seed, threads) = (self.number, self.seed, self.threads);
        let first = first_seed(seed);
        let images = |usual: u64| Goal::Images(if number == 0 { usual } else { number });
        let report = match self.mode.as_str() {
            "--images" => gather(threads, images(20_000), |n| crash_workload(first + n)),
            "--rot" => gather(threads, images(20_000), |n| rot_workload(first + n)),
            "--lying-fsync" => gather(threads, images(20_000), |n| lying_workload(first + n)),
            "--sweep" => {
                gather(threads, Goal::Workloads(number.max(1)), |n| sweep_workload(first + n, 1))
            }
            "--determinism" => {
                gather(threads, Goal::Workloads(number.max(1)), |n| same_twice(seed + n))
            }
            "--exhaustive" if number > 0 => {
                let mut generator = Generator::new(seed, 70);
                let chosen: Vec<u64> = (0..number).map(|_| generator.below(WORKLOADS)).collect();
                let pick = |n: u64| chosen.get(usize::try_from(n).unwrap_or_default()).copied();
                gather(threads, Goal::Workloads(number), |n| exhaust(pick(n).unwrap_or_default()))
            }
            "--exhaustive" => gather(threads, Goal::Workloads(WORKLOADS), exhaust),
            "--directed" => directed(seed),
            "--busy" => gather(threads, images(20_000), |n| crash_busy_workload(first + n)),
            "--buckets" => gather(threads, images(20_000), |n| bucket_workload(first + n)),
            "--streams" => gather(threads, images(20_000), |n| stream_workload(first + n)),
            "--rollups" => gather(threads, images(20_000), |n| rollup_workload(first + n)),
            "--bucket-rot" => gather(threads, images(20_000), |n| bucket_rot_workload(first + n)),
            "--bucket-lies" => {
                gather(threads, images(20_000), |n| lying_bucket_workload(first + n))
            }
            "--workload" => crash_workload(number),
            "--bucket-workload" => bucket_workload(number),
            "--stream-workload" => stream_workload(number),
            "--rollup-workload" => rollup_workload(number),
            "--busy-workload" => crash_busy_workload(number),
            "--sweep-workload" => sweep_workload(number, 1),
            "--exhaustive-workload" => exhaust(number),
            "--rot-workload" => rot_workload(number),
            "--bucket-rot-workload" => bucket_rot_workload(number),
            "--lying-workload" => lying_workload(number),
            "--lying-bucket-workload" => lying_bucket_workload(number),
            "--planted" => return Ok(shown(sabotage::run_planted(seed))),
            "--broken" => return Ok(shown(invariants::run_planted(seed))),
            "--sabotage" => return all_caught(sabotage::run_all(self.name.as_deref(), seed)?),
            "--invariants" => return all_caught(invariants::run_all(self.name.as_deref(), seed)?),
            other => return Err(format!("unknown mode {other}\n{USAGE}")),
        };
        Ok(Some(report))
    }
}

/// Prints what found a planted bug; there is no more to report.
fn shown(caught: Option<String>) -> Option<Report> {
    if let Some(caught) = caught {
        println!("{caught}");
    }
    None
}

/// There is no more to report, if no planted bug was missed.
fn all_caught(missed: usize) -> Result<Option<Report>, String> {
    match missed {
        0 => Ok(None),
        missed => Err(format!("{missed} planted bugs were missed")),
    }
}

/// When a campaign ends.
#[derive(Clone, Copy)]
enum Goal {
    Images(u64),
    Workloads(u64),
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
    let report = match arguments.report() {
        Ok(Some(report)) => report,
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
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

/// Runs jobs 0, 1, … on several threads until the goal is reached.
#[allow(clippy::disallowed_methods, reason = "each thread has its own simulated machines")]
fn gather(threads: u64, goal: Goal, job: impl Fn(u64) -> Report + Sync) -> Report {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Report::default());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if matches!(goal, Goal::Workloads(count) if number >= count) {
                            break;
                        }
                        let report = job(number);
                        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                        total.add(report);
                        let enough = matches!(goal, Goal::Images(n) if total.images >= n);
                        if enough || total.failures.len() >= FAILURES_MAX {
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let finished = || workers.iter().all(std::thread::ScopedJoinHandle::is_finished);
        watch(&total, &next, workers.len(), finished);
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Prints progress; ends the program when there is none.
#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn watch(total: &Mutex<Report>, next: &AtomicU64, workers: usize, finished: impl Fn() -> bool) {
    let mut printed = now();
    let mut workloads = 0;
    // The watchdog adds up what all threads use.
    let patience = PATIENCE.saturating_mul(u32::try_from(workers).unwrap_or(u32::MAX));
    let mut watchdog = Watchdog::of_this_process(patience);
    while !finished() {
        std::thread::sleep(Duration::from_millis(20));
        let total = total.lock().unwrap_or_else(PoisonError::into_inner);
        if total.workloads != workloads {
            workloads = total.workloads;
            watchdog.progress();
        }
        if printed.elapsed() > Duration::from_secs(10) {
            printed = now();
            let images = total.images;
            eprintln!("  {workloads} workloads, {images} images");
        }
        if watchdog.hangs() {
            let started = next.load(Ordering::Relaxed);
            println!("{total}\nHANG: no workload ends; {started} have been started");
            std::process::exit(3);
        }
    }
}
