//! Loads, single writes, batches and removals.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Instant;

use super::{Run, bytes_of, thousandth, timed};
use crate::data::{BATCHED, Data, GROUPED, SINGLES, UNSYNCED};
use crate::store::{Result, Store};

/// Threads, and writes of all of them.
const GROUPS: [(&str, usize, usize); 3] = [
    ("durable writes, 8 threads", 8, GROUPED),
    ("durable writes, 64 threads", 64, GROUPED),
    ("group commit, 8 × 200", 8, 1_600),
];

impl Run<'_> {
    pub fn load(&mut self) -> Result<()> {
        let count = self.data.records;
        let seconds = timed(|| self.store.load(self.data, 0..count))?;
        self.note("bulk load, durable", count as f64 / seconds);
        let seconds = timed(|| self.store.settle())?;
        self.note("work left after the load", seconds);
        if let Some(bytes) = self.store.memory_bytes() {
            self.note("memory, bytes a key", bytes as f64 / count as f64);
        }
        self.next = count;
        Ok(())
    }

    pub fn singles(&mut self) -> Result<()> {
        // In turn, since the disk is another from one second to the next.
        let raw = RawFile::create(self.dir)?;
        let (mut times, mut raw_times) = (Vec::new(), Vec::new());
        for (round, at) in (self.next..self.next + SINGLES).enumerate() {
            raw_times.push(timed(|| raw.append(round))?);
            times.push(timed(|| self.store.put(self.data.key(at), self.data.value(at)))?);
        }
        raw.remove()?;
        self.next += SINGLES;
        let median = thousandth(&mut times, 500);
        self.note("single durable writes", 1e6 / median);
        let raw = thousandth(&mut raw_times, 500);
        self.note("raw append and sync", 1e6 / raw);
        self.note("single writes, more than raw", median - raw);
        // As emdb's write_through does it.
        let value = [b'x'; 150];
        let seconds = timed(|| {
            (0..SINGLES).try_for_each(|i| self.store.put(format!("k{i:09}").as_bytes(), &value))
        })?;
        self.note("write through, rising keys", SINGLES as f64 / seconds);
        Ok(())
    }

    pub fn groups(&mut self) -> Result<()> {
        for (row, threads, count) in GROUPS {
            let seconds = grouped(&*self.store, self.data, self.next, (threads, count))?;
            self.note(row, count as f64 / seconds);
            self.next += count;
        }
        Ok(())
    }

    pub fn batches(&mut self) -> Result<()> {
        let (data, next, size) = (self.data, self.next, BATCHED / 100);
        let batches = timed(|| {
            (0..100).try_for_each(|batch| {
                self.store.put_batch(data, next + batch * size..next + (batch + 1) * size)
            })
        })?;
        self.note("batches of 1,000, durable", BATCHED as f64 / batches);
        self.next += BATCHED;
        let next = self.next;
        let unsynced = timed(|| self.store.put_unsynced(data, next..next + UNSYNCED))?;
        self.note("single writes, not synced", UNSYNCED as f64 / unsynced);
        self.next += UNSYNCED;
        Ok(())
    }

    /// Removes half of the entries, and gives their space back.
    pub fn removals(&mut self) -> Result<()> {
        let (removed, kept) = (self.next / 2, self.next - self.next / 2);
        let seconds = timed(|| self.store.remove(self.data, 0..removed))?;
        self.note("removals, durable", removed as f64 / seconds);
        let raw = self.data.raw_bytes(kept) as f64;
        self.note("size before compaction", bytes_of(self.dir)? as f64 / raw);
        let seconds = timed(|| self.store.compact())?;
        self.note("compaction", self.data.raw_bytes(self.next) as f64 / 1e6 / seconds);
        self.reopen()?;
        let size = bytes_of(self.dir)?.saturating_sub(self.store.derived_bytes(self.dir));
        self.note("size compacted", size as f64 / raw);
        if self.store.reader()?.has(self.data.key(0), self.data.value(0))? {
            return Err("a removed entry came back".into());
        }
        Ok(())
    }
}

/// Durable writes of several threads.
fn grouped(
    store: &dyn Store,
    data: &Data,
    first: usize,
    (threads, count): (usize, usize),
) -> Result<f64> {
    let barrier = Barrier::new(threads + 1);
    let part = count / threads;
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

/// A file of a megabyte, written by the next 256 bytes and synced.
struct RawFile {
    path: PathBuf,
    file: File,
}

impl RawFile {
    fn create(dir: &Path) -> Result<Self> {
        let path = dir.join("raw");
        let file = File::create(&path)?;
        file.set_len(1 << 20)?;
        file.sync_all()?;
        Ok(Self { path, file })
    }

    fn append(&self, round: usize) -> Result<()> {
        self.file.write_all_at(&[1; 256], round as u64 * 256)?;
        Ok(self.file.sync_data()?)
    }

    fn remove(self) -> Result<()> {
        Ok(std::fs::remove_file(self.path)?)
    }
}
