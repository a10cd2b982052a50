//! The phases of a run.

mod concurrent;
mod keys;
mod opens;
mod reads;
mod writes;

use std::path::Path;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::data::Data;
use crate::report::Report;
use crate::store::{Kind, Result, Store};
pub use opens::die;

/// The phases by name, in the order in which they are done. A load comes before all others.
pub const PHASES: [&str; 10] = [
    "reads",
    "concurrent",
    "ranges",
    "mixed",
    "singles",
    "groups",
    "batches",
    "opens",
    "removals",
    "keys",
];

/// What a run of one store is about.
struct Run<'a> {
    kind: &'a Kind,
    dir: &'a Path,
    data: &'a Data,
    store: Box<dyn Store>,
    /// The entry that is put next.
    next: usize,
    report: &'a mut Report,
}

impl Run<'_> {
    fn note(&mut self, row: &'static str, value: f64) {
        self.report.note(row, self.kind.name, value);
    }

    fn reopen(&mut self) -> Result<f64> {
        self.store = Box::new(Closed);
        let (kind, dir, data) = (self.kind, self.dir, self.data);
        let mut opened = None;
        let seconds = timed(|| {
            let store = (kind.open)(dir, data)?;
            let newest = self.next - 1;
            if !store.reader()?.has(data.key(newest), data.value(newest))? {
                return Err("an entry is lost".into());
            }
            opened = Some(store);
            Ok(())
        })?;
        self.store = opened.ok_or("no store")?;
        Ok(seconds)
    }
}

/// What stands in a store's place while it is closed.
struct Closed;

/// Bytes of a directory's files with certain names.
pub fn bytes_of_files(dir: &Path, is_meant: impl Fn(&str) -> bool) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if is_meant(&entry.file_name().to_string_lossy()) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Bytes of a directory.
fn bytes_of(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => bytes_of(&entry.path())?,
            false => std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
        };
    }
    Ok(bytes)
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The part of sorted times below which so many thousandths of them are, in microseconds.
fn thousandth(times: &mut [f64], thousandths: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() * thousandths / 1_000).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default() * 1e6
}

/// Bytes that this process has given to be written to a device.
fn written_bytes() -> Option<u64> {
    let figures = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = figures.lines().find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.parse().ok()
}

/// Bytes of this process's memory that no file backs.
fn anonymous_bytes() -> Option<u64> {
    let figures = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = figures.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1_024)
}

/// Does all phases that are asked for with one store.
pub fn run(
    kind: &Kind,
    dir: &Path,
    data: &Data,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let (written, anonymous) = (written_bytes(), anonymous_bytes());
    let store = (kind.open)(dir, data)?;
    let mut run = Run { kind, dir, data, store, next: 0, report };
    run.load()?;
    if let (Some(before), Some(after)) = (anonymous, anonymous_bytes()) {
        let bytes = after.saturating_sub(before) as f64;
        run.note("anonymous memory, bytes a key", bytes / data.records as f64);
    }
    for phase in PHASES.into_iter().filter(|phase| arguments.wants_phase(phase)) {
        match phase {
            "reads" => run.reads()?,
            "concurrent" => run.concurrent()?,
            "ranges" => run.ranges()?,
            "mixed" => run.mixed()?,
            "singles" => run.singles()?,
            "groups" => run.groups()?,
            "batches" => {
                run.batches()?;
                if let (Some(before), Some(after)) = (written, written_bytes()) {
                    let raw = data.raw_bytes(run.next) as f64;
                    run.note("written, of the raw bytes", (after - before) as f64 / raw);
                }
            }
            "opens" => run.opens()?,
            "removals" => run.removals()?,
            _ => {
                run.store = Box::new(Closed);
                let (puts, reads) = keys::worst(kind, dir)?;
                run.note("puts of adversarial keys", puts);
                run.note("reads of adversarial keys", reads);
            }
        }
    }
    Ok(())
}
