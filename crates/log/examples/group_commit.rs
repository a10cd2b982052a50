//! How fast commits become durable: one thread beside bare `pwrite` + `fdatasync`, turn about on
//! the same disk, then many threads against the rate of bare syncs.
//!
//! ```text
//! cargo run --release -p esker-log --example group_commit [DIRECTORY [THREADS [SECONDS]]]
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark: real threads and clocks are what it measures, a panic is its report"
)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker_format::frame::{frame_bytes, kind};
use esker_log::{Log, Options};
use esker_vfs::{Environment, File, OpenMode};

/// A commit of a small row or two.
const PAYLOAD: [u8; 144] = [0x5a; 144];
const TURNS: usize = 3_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let threads = arguments.next().map_or(64, |text| text.parse().unwrap());
    let seconds = arguments.next().map_or(3.0, |text| text.parse().unwrap());
    let environment = Environment::os();
    let dir = parent.join(format!("esker-group-commit-{:016x}", environment.random.next_u64()));
    environment.files.create_dir_all(&dir).unwrap();
    one_thread(&environment, &dir);
    many_threads(&environment, &dir, threads, Duration::from_secs_f64(seconds));
    environment.files.remove_dir_all(&dir).unwrap();
}

/// Bare writes and syncs of the same size.
struct Bare {
    file: std::sync::Arc<dyn File>,
    at: u64,
}

impl Bare {
    /// `zeroed`: into blocks that the file has already, as the log does.
    fn new(environment: &Environment, path: &Path, zeroed: bool) -> Self {
        let file = environment.files.open(path, OpenMode::CreateNew).unwrap();
        if zeroed {
            file.write_all_at(&vec![0; 64 << 20], 0).unwrap();
        }
        file.sync_data().unwrap();
        Self { file, at: 0 }
    }

    fn turn(&mut self) -> Duration {
        let bytes = [0x5a; frame_bytes_of_payload()];
        let start = Instant::now();
        self.file.write_all_at(&bytes, self.at).unwrap();
        self.file.sync_data().unwrap();
        self.at += bytes.len() as u64;
        start.elapsed()
    }
}

const fn frame_bytes_of_payload() -> usize {
    56 + PAYLOAD.len()
}

fn one_thread(environment: &Environment, dir: &Path) {
    assert_eq!(frame_bytes(PAYLOAD.len()), frame_bytes_of_payload());
    let log_dir = dir.join("one");
    environment.files.create_dir_all(&log_dir).unwrap();
    let log = Log::create(environment, &log_dir, 1, Options::default()).unwrap();
    let mut growing = Bare::new(environment, &dir.join("growing"), false);
    let mut zeroed = Bare::new(environment, &dir.join("zeroed"), true);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for turn in 0..TURNS {
        // Turn about, in all orders, so that drift of the disk strikes all alike.
        let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]];
        for which in orders[turn % orders.len()] {
            times[which].push(match which {
                0 => growing.turn(),
                1 => zeroed.turn(),
                _ => {
                    let start = Instant::now();
                    let ticket = log.append(kind::ROWS, &PAYLOAD).unwrap();
                    log.wait_durable(ticket).unwrap();
                    start.elapsed()
                }
            });
        }
    }
    println!("1 thread, {} B, {TURNS} turns:          p50        p99", frame_bytes_of_payload());
    let names = ["pwrite + fdatasync, file grows", "pwrite + fdatasync, zeroed file", "log"];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_unstable();
        let us = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
        println!("  {name:34} {:7.1} us {:7.1} us", us(50), us(99));
    }
}

fn many_threads(environment: &Environment, dir: &Path, threads: usize, time: Duration) {
    let mut bare = Bare::new(environment, &dir.join("base"), false);
    let mut base = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time.div_f64(3.0) {
        base.push(bare.turn());
    }
    base.sort_unstable();
    let sync = base[base.len() / 2].as_secs_f64();
    let base_rate = base.len() as f64 / start.elapsed().as_secs_f64();

    let log_dir = dir.join("many");
    environment.files.create_dir_all(&log_dir).unwrap();
    let log = Log::create(environment, &log_dir, 2, Options::default()).unwrap();
    let (stop, all) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    let ticket = log.append(kind::ROWS, &PAYLOAD).unwrap();
                    log.wait_durable(ticket).unwrap();
                    times.push(start.elapsed());
                }
                all.lock().unwrap().append(&mut times);
            });
        }
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
    let rate = log.durable() as f64 / start.elapsed().as_secs_f64();
    let mut times = all.into_inner().unwrap();
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 1_000].as_secs_f64();
    println!(
        "{threads} threads: {rate:.0} commits/s, {:.1} x {base_rate:.0} syncs/s",
        rate / base_rate
    );
    for (name, part) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
        println!("  {name:5} {:8.1} us = {:5.1} syncs", at(part) * 1e6, at(part) / sync);
    }
}
