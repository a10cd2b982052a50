//! The shape of emdb's `concurrent_reads`: few entries, which caches hold, read in the order in
//! which they were put, by threads whose start and end are within the time.

use super::{Run, thousandth, timed};
use crate::data::Data;
use crate::store::{Result, Store};

/// Entries of a store of their own.
const ENTRIES: usize = 20_000;
/// Reads of each thread.
const READS: usize = 5_000;
/// Of so many tries the median counts.
const TRIES: usize = 11;

const ROWS: [(&str, usize); 4] = [
    ("concurrent reads, 1 × 5,000", 1),
    ("concurrent reads, 2 × 5,000", 2),
    ("concurrent reads, 4 × 5,000", 4),
    ("concurrent reads, 8 × 5,000", 8),
];

impl Run<'_> {
    pub fn concurrent(&mut self) -> Result<()> {
        let data = Data::numbered(ENTRIES);
        let dir = self.dir.join("concurrent");
        std::fs::create_dir_all(&dir)?;
        let store = (self.kind.open)(&dir, &data)?;
        store.load(&data, 0..ENTRIES)?;
        store.settle()?;
        for (row, threads) in ROWS {
            let mut times = Vec::new();
            for _ in 0..TRIES {
                times.push(timed(|| reads(&*store, &data, threads))?);
            }
            let reads = (threads * READS) as f64;
            self.note(row, reads / thousandth(&mut times, 500) * 1e6);
        }
        drop(store);
        Ok(std::fs::remove_dir_all(&dir)?)
    }
}

fn reads(store: &dyn Store, data: &Data, threads: usize) -> Result<()> {
    let read = |first: usize| -> Result<()> {
        let reader = store.reader()?;
        for at in (first..first + READS).map(|at| at % ENTRIES) {
            if !reader.has(data.key(at), data.value(at))? {
                return Err(format!("entry {at} is wrong").into());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || read(thread * READS))).collect();
        handles.into_iter().try_for_each(|handle| handle.join().map_err(|_| "a reader panicked")?)
    })
}
