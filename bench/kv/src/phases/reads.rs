//! Reads, alone and beside writes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Run, thousandth, timed};
use crate::data::Data;
use crate::store::{Result, Store};

/// Ranges that are read.
const RANGES: usize = 1_000_000;
/// Reads beside writes.
const MIXED: usize = 200_000;
/// Reads by one view of the data, beside writes.
const MIXED_BY_VIEW: usize = 1_000;

const READS: [(&str, usize); 4] = [
    ("random reads, 1 thread", 1),
    ("random reads, 2 threads", 2),
    ("random reads, 4 threads", 4),
    ("random reads, 8 threads", 8),
];

impl Run<'_> {
    pub fn reads(&mut self) -> Result<()> {
        for (row, threads) in READS {
            let seconds = reads(&*self.store, self.data, threads)?;
            self.note(row, self.data.shuffled.len() as f64 / seconds);
        }
        Ok(())
    }

    pub fn ranges(&mut self) -> Result<()> {
        if !self.kind.has_ranges {
            return Ok(());
        }
        let seconds = ranges(&*self.store, self.data)?;
        self.note("range reads of 10", RANGES as f64 / seconds);
        if let Some(runs) = self.store.runs_of_a_range() {
            self.note("runs looked at by a range", runs as f64);
        }
        Ok(())
    }

    /// One thread reads, another puts durably what is there already.
    pub fn mixed(&mut self) -> Result<()> {
        let (store, data, ends) = (&*self.store, self.data, AtomicBool::new(false));
        let (mut reads, mut writes) = std::thread::scope(|scope| -> Result<_> {
            let writer = scope.spawn(|| -> Result<Vec<f64>> {
                let mut times = Vec::new();
                for at in data.shuffled.iter().rev().cycle() {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    let at = *at as usize;
                    times.push(timed(|| store.put(data.key(at), data.value(at)))?);
                }
                Ok(times)
            });
            let reads = timed_reads(store, data);
            ends.store(true, Ordering::Relaxed);
            Ok((reads?, writer.join().map_err(|_| "a writer panicked")??))
        })?;
        self.note("reads beside writes, 99.9 %", thousandth(&mut reads, 999));
        self.note("writes beside reads, 99.9 %", thousandth(&mut writes, 999));
        Ok(())
    }
}

fn timed_reads(store: &dyn Store, data: &Data) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(MIXED);
    let keys: Vec<usize> =
        data.shuffled.iter().cycle().take(MIXED).map(|at| *at as usize).collect();
    for keys in keys.chunks(MIXED_BY_VIEW) {
        let reader = store.reader()?;
        for at in keys {
            let start = Instant::now();
            let is_there = reader.has(data.key(*at), data.value(*at))?;
            times.push(start.elapsed().as_secs_f64());
            if !is_there {
                return Err(format!("entry {at} is wrong").into());
            }
        }
    }
    Ok(times)
}

/// Reads every shuffled entry once; all threads begin at the same time.
fn reads(store: &dyn Store, data: &Data, threads: usize) -> Result<f64> {
    let barrier = Barrier::new(threads + 1);
    let part = data.shuffled.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let read = |keys: &[u32]| -> Result<()> {
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
            data.shuffled.chunks(part).map(|keys| scope.spawn(move || read(keys))).collect();
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
    let least = data.raw_bytes(9) as usize * RANGES.min(data.shuffled.len());
    if bytes < least {
        return Err(format!("ranges have {bytes} bytes, expected {least} at least").into());
    }
    Ok(seconds * RANGES as f64 / RANGES.min(data.shuffled.len()) as f64)
}
