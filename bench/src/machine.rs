//! The limits of this machine, by bare loops.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::Result;
use crate::data::mix;
use crate::outcome::{median, percentile};
use crate::process::CpuTime;

const SUM_BYTES: usize = 1 << 30;
const COPY_BYTES: usize = 256 << 20;
const CHASE_BYTES: usize = 256 << 20;
const DISK_BYTES: usize = 512 << 20;
const PAGE_BYTES: usize = 4096;
const SYNCS: usize = 400;
const BUSY_BELOW: f64 = 0.95;

/// What the machine can do at best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Reading memory: a plain sum over 1 GiB by one core, bytes/s.
    pub(crate) read_rate: f64,
    /// Copying memory by one core, bytes/s.
    pub(crate) copy_rate: f64,
    /// Writing memory that the process has never touched, bytes/s.
    pub(crate) fresh_rate: f64,
    /// A load that depends on the one before, in 256 MiB, ns.
    pub(crate) load_ns: f64,
    /// Writing a new file, with one fdatasync at its end, bytes/s.
    pub(crate) disk_rate: f64,
    /// Overwriting 256 bytes and fdatasync: median and 99th percentile, µs.
    pub(crate) sync_us: f64,
    pub(crate) sync_p99_us: f64,
    /// The share of a core that a thread gets that never waits: less than 1 when others run, too.
    pub(crate) share: f64,
}

impl Machine {
    pub(crate) fn measure(dir: &Path) -> Result<Self> {
        eprintln!("measuring the machine …");
        touch(2 * SUM_BYTES);
        let (cpu, start) = (CpuTime::of_thread()?, Instant::now());
        let (read_rate, copy_rate, fresh_rate) = memory();
        let share = cpu.seconds()? / start.elapsed().as_secs_f64();
        let path = dir.join(format!("esker-bench-disk-{}", std::process::id()));
        let disk = disk(&path);
        std::fs::remove_file(&path)?;
        let (disk_rate, sync_us, sync_p99_us) = disk?;
        let load_ns = chase();
        Ok(Self {
            read_rate,
            copy_rate,
            fresh_rate,
            load_ns,
            disk_rate,
            sync_us,
            sync_p99_us,
            share,
        })
    }

    pub(crate) fn print(&self) {
        let gb = |rate: f64| rate / 1e9;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        println!(
            "machine: {cores} cores; one core reads memory at {:.1} GB/s (plain sum over 1 GiB), \
             copies at {:.1} GB/s, writes fresh pages at {:.1} GB/s; dependent load {:.0} ns",
            gb(self.read_rate),
            gb(self.copy_rate),
            gb(self.fresh_rate),
            self.load_ns
        );
        println!(
            "disk: {:.2} GB/s for a new file with one fdatasync; overwrite of 256 B + fdatasync \
             {:.1} µs median, {:.1} µs p99",
            gb(self.disk_rate),
            self.sync_us,
            self.sync_p99_us
        );
        if self.share < BUSY_BELOW {
            let share = self.share * 100.0;
            println!("BUSY: a thread gets {share:.0} % of a core; times and rates prove nothing");
        }
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Rates of reading, copying, and writing fresh pages: medians of three.
fn memory() -> (f64, f64, f64) {
    let (mut read, mut copy, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    let numbers: Vec<u64> = (0..SUM_BYTES as u64 / 8).collect();
    let mut target = vec![1u64; COPY_BYTES / 8];
    for _ in 0..3 {
        let sum = || {
            black_box(black_box(&numbers).iter().fold(0u64, |sum, n| sum.wrapping_add(*n)));
        };
        read.push(SUM_BYTES as f64 / seconds(sum));
        let source = numbers.get(..target.len()).unwrap_or_default();
        copy.push(COPY_BYTES as f64 / seconds(|| target.copy_from_slice(black_box(source))));
        black_box(&target);
        let write = || {
            // Zeroed memory comes untouched from the system; every page is faulted in here.
            let mut page = vec![0u8; COPY_BYTES];
            black_box(&mut page).fill(1);
            black_box(&page);
        };
        fresh.push(COPY_BYTES as f64 / seconds(write));
    }
    (median(&read), median(&copy), median(&fresh))
}

/// How long a load takes whose address comes from the load before.
fn chase() -> f64 {
    let len = CHASE_BYTES / 4;
    let mut next: Vec<u32> = (0..u32::try_from(len).unwrap_or(u32::MAX)).collect();
    // Sattolo's shuffle makes one cycle of all.
    for i in (1..len).rev() {
        let other = usize::try_from(mix(i as u64)).unwrap_or(0) % i;
        next.swap(i, other);
    }
    let steps = 4_000_000;
    let mut at = 0;
    let elapsed = seconds(|| {
        for _ in 0..steps {
            at = next.get(at as usize).copied().unwrap_or(0);
        }
    });
    black_box(at);
    elapsed * 1e9 / f64::from(steps)
}

fn disk(path: &Path) -> Result<(f64, f64, f64)> {
    let block = vec![0x5a_u8; 1 << 20];
    let mut rates = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let file = File::create(path)?;
        for number in 0..DISK_BYTES / block.len() {
            file.write_all_at(&block, (number * block.len()) as u64)?;
        }
        file.sync_data()?;
        rates.push(DISK_BYTES as f64 / start.elapsed().as_secs_f64());
    }
    let mut bare = BareSync::reopen(path)?;
    let mut times = (0..SYNCS).map(|_| bare.turn(256)).collect::<Result<Vec<f64>>>()?;
    let p99 = percentile(&mut times, 99);
    Ok((median(&rates), median(&times), p99))
}

/// Raw writes that are synced one by one, into blocks that the file has already, as the log does.
pub(crate) struct BareSync {
    file: File,
    at: u64,
    len: u64,
}

impl BareSync {
    fn reopen(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, at: 0, len })
    }

    /// A new file of 64 MiB.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)?;
        let zeros = vec![0u8; 64 << 20];
        file.write_all_at(&zeros, 0)?;
        file.sync_all()?;
        Ok(Self { file, at: 0, len: zeros.len() as u64 })
    }

    /// Writes and syncs some bytes; how long it took, in µs.
    pub(crate) fn turn(&mut self, bytes: usize) -> Result<f64> {
        let content = vec![0xa5_u8; bytes.min(PAGE_BYTES * 16)];
        if self.at + content.len() as u64 > self.len {
            self.at = 0;
        }
        let start = Instant::now();
        self.file.write_all_at(&content, self.at)?;
        self.file.sync_data()?;
        let elapsed = start.elapsed().as_secs_f64() * 1e6;
        self.at += content.len() as u64;
        Ok(elapsed)
    }
}

/// Touches memory and gives it back, so that what comes next does not wait for it: a virtual
/// machine may have to ask its host for memory that it has not used for a while.
pub(crate) fn touch(bytes: usize) {
    black_box(vec![1u8; bytes]);
}

/// How fast bytes go into a new file with one fdatasync, right now: bytes/s.
pub(crate) fn disk_rate(path: &Path, bytes: u64) -> Result<f64> {
    let block = vec![0x33_u8; 1 << 20];
    let start = Instant::now();
    let file = File::create(path)?;
    let blocks = bytes.div_ceil(block.len() as u64).max(1);
    for number in 0..blocks {
        file.write_all_at(&block, number * block.len() as u64)?;
    }
    file.sync_data()?;
    let rate = (blocks * block.len() as u64) as f64 / start.elapsed().as_secs_f64();
    drop(file);
    std::fs::remove_file(path)?;
    Ok(rate)
}
