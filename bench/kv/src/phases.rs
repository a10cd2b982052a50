//! The phases of a run.

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use crate::data::{BATCHED, Data, GROUPED, SINGLES, UNSYNCED};
use crate::report::Report;
use crate::store::{Kind, Result, Store};

/// Ranges that are read.
const RANGES: usize = 200_000;

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

/// Does all phases with one store.
pub fn run(kind: &Kind, dir: &Path, data: &Data, report: &mut Report) -> Result<()> {
    let mut store = (kind.open)(dir, data)?;
    let count = data.records;
    let mut note = |row: &'static str, value: f64| report.note(row, kind.name, value);

    note("bulk load, durable", count as f64 / timed(|| store.load(data, 0..count))?);
    if let Some(bytes) = store.memory_bytes() {
        note("memory, bytes a key", bytes as f64 / count as f64);
    }
    for (row, threads) in READS {
        note(row, data.shuffled.len() as f64 / reads(&*store, data, threads)?);
    }
    note("range reads of 10", RANGES as f64 / ranges(&*store, data)?);

    let mut next = count;
    let mut times = Vec::with_capacity(SINGLES);
    for at in next..next + SINGLES {
        times.push(timed(|| store.put(data.key(at), data.value(at)))?);
    }
    times.sort_by(f64::total_cmp);
    next += SINGLES;
    note("single durable writes", 1.0 / times[SINGLES / 2]);
    note("raw append and sync", 1.0 / raw_sync(dir)?);

    for (row, threads) in GROUPS {
        note(row, GROUPED as f64 / grouped(&*store, data, next, threads)?);
        next += GROUPED;
    }
    let batches = timed(|| {
        (0..100).try_for_each(|batch| {
            let size = BATCHED / 100;
            store.put_batch(data, next + batch * size..next + (batch + 1) * size)
        })
    })?;
    note("batches of 1,000, durable", BATCHED as f64 / batches);
    next += BATCHED;
    let unsynced = timed(|| store.put_unsynced(data, next..next + UNSYNCED))?;
    note("single writes, not synced", UNSYNCED as f64 / unsynced);
    next += UNSYNCED;

    let removed = next / 2;
    note("removals, durable", removed as f64 / timed(|| store.remove(data, 0..removed))?);
    note("size before compaction", bytes_of(dir)? as f64 / Data::raw_bytes(next - removed) as f64);
    note("compaction", Data::raw_bytes(next) as f64 / 1e6 / timed(|| store.compact())?);
    drop(store);
    let open = Instant::now();
    let store = (kind.open)(dir, data)?;
    if !store.reader()?.has(data.key(next - 1), data.value(next - 1))? {
        return Err("an entry is lost".into());
    }
    note("opens a second", 1.0 / open.elapsed().as_secs_f64());
    let size = bytes_of(dir)?.saturating_sub(store.derived_bytes(dir));
    note("size compacted", size as f64 / Data::raw_bytes(next - removed) as f64);
    let reader = store.reader()?;
    if reader.has(data.key(0), data.value(0))? {
        return Err("a removed entry came back".into());
    }
    Ok(())
}

const READS: [(&str, usize); 3] =
    [("random reads, 1 thread", 1), ("random reads, 4 threads", 4), ("random reads, 8 threads", 8)];
const GROUPS: [(&str, usize); 2] =
    [("durable writes, 8 threads", 8), ("durable writes, 64 threads", 64)];

/// Reads every shuffled entry once; all threads begin at the same time.
fn reads(store: &dyn Store, data: &Data, threads: usize) -> Result<f64> {
    let barrier = Barrier::new(threads + 1);
    let part = data.shuffled.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let read = |rows: &'static str, keys: &[u32]| -> Result<()> {
            let _ = rows;
            let reader = store.reader()?;
            barrier.wait();
            for at in keys {
                let at = *at as usize;
                if !reader.has(data.key(at), data.value(at))? {
                    return Err(format!("entry {at} is wrong").into());
                }
            }
            Ok(())
        };
        let handles: Vec<_> =
            data.shuffled.chunks(part).map(|keys| scope.spawn(move || read("", keys))).collect();
        barrier.wait();
        let start = Instant::now();
        for handle in handles {
            handle.join().map_err(|_| "a reader panicked")??;
        }
        Ok(start.elapsed().as_secs_f64())
    })
}

fn ranges(store: &dyn Store, data: &Data) -> Result<f64> {
    let reader = store.reader()?;
    let mut bytes = 0;
    let seconds = timed(|| {
        for at in data.shuffled.iter().take(RANGES) {
            bytes += reader.ten_from(data.key(*at as usize))?;
        }
        Ok(())
    })?;
    let least = Data::raw_bytes(9) as usize * RANGES.min(data.shuffled.len());
    if bytes < least {
        return Err(format!("ranges have {bytes} bytes, expected {least} at least").into());
    }
    Ok(seconds * RANGES as f64 / RANGES.min(data.shuffled.len()) as f64)
}

/// Durable writes of several threads.
fn grouped(store: &dyn Store, data: &Data, first: usize, threads: usize) -> Result<f64> {
    let barrier = Barrier::new(threads + 1);
    let part = GROUPED / threads;
    std::thread::scope(|scope| {
        let write = |first: usize| -> Result<()> {
            barrier.wait();
            (first..first + part).try_for_each(|at| store.put(data.key(at), data.value(at)))
        };
        let handles: Vec<_> =
            (0..threads).map(|t| scope.spawn(move || write(first + t * part))).collect();
        barrier.wait();
        let start = Instant::now();
        for handle in handles {
            handle.join().map_err(|_| "a writer panicked")??;
        }
        Ok(start.elapsed().as_secs_f64())
    })
}

/// The median of appending as many bytes to a file and syncing it.
fn raw_sync(dir: &Path) -> Result<f64> {
    let path = dir.join("raw");
    let file = std::fs::File::create(&path)?;
    file.set_len(1 << 20)?;
    file.sync_all()?;
    let mut times = Vec::new();
    for at in 0..SINGLES as u64 {
        times.push(timed(|| {
            std::os::unix::fs::FileExt::write_all_at(&file, &[1; 256], at * 256)?;
            Ok(file.sync_data()?)
        })?);
    }
    std::fs::remove_file(path)?;
    times.sort_by(f64::total_cmp);
    Ok(times[SINGLES / 2])
}
