//! How fast a log is read when a database is opened: the scan, which reads and verifies the files,
//! then passes over the frames it found.
//!
//! ```text
//! cargo run --release -p esker-log --example recovery [DIRECTORY [FRAMES [PAYLOAD_BYTES]]]
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark: real clocks are what it measures, a panic is its report"
)]

use std::path::PathBuf;
use std::time::Instant;

use esker_format::frame::kind;
use esker_log::{Log, Options, scan};
use esker_vfs::Environment;

const TURNS: usize = 5;
const FLUSHED_BYTES: u64 = 4 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let frames: u64 = arguments.next().map_or(500_000, |text| text.parse().unwrap());
    let payload = vec![0x5a; arguments.next().map_or(144, |text| text.parse().unwrap())];
    let environment = Environment::os();
    let dir = parent.join(format!("esker-recovery-{:016x}", environment.random.next_u64()));
    environment.files.create_dir_all(&dir).unwrap();
    let log = Log::create(&environment, &dir, 7, Options::default()).unwrap();
    for _ in 0..frames {
        log.append(kind::ROWS, &payload).unwrap();
        if log.queued_bytes() >= FLUSHED_BYTES {
            log.flush().unwrap();
        }
    }
    log.close().unwrap();
    for _ in 0..TURNS {
        let start = Instant::now();
        let found = scan(&environment, &dir, 7, 0).unwrap();
        let scanned = start.elapsed();
        let (mut passed, mut bytes) = ([0.0; 2], 0);
        for passed in &mut passed {
            let start = Instant::now();
            for frame in found.frames() {
                bytes += frame.unwrap().payload.len();
            }
            *passed = start.elapsed().as_secs_f64() * 1e3;
        }
        let [first, second] = passed;
        let scanned = scanned.as_secs_f64() * 1e3;
        let mb = found.bytes() / 1_000_000;
        println!("{mb} MB: scan {scanned:.1} ms, frames {first:.1} and {second:.1} ms ({bytes})");
    }
    environment.files.remove_dir_all(&dir).unwrap();
}
