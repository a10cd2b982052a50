//! Half a million values of ten kilobytes in a bucket, on disk and in memory, written and read as
//! the other database's own stress test does it. Its times on a machine of this kind are asked for.
//! What is timed looks at the length of a value and at the number in its first eight bytes, as
//! theirs does; every byte is compared beside the clock.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker::{Bucket, Database, Durability, Options};

use crate::Result;
use crate::bench::Bench;
use crate::data::mix;
use crate::outcome::Goal::AtMost;
use crate::outcome::Unit::Seconds;
use crate::outcome::{Asked, Outcome};
use crate::rows::ask;

pub(super) const ON_DISK: &[Asked] = &[
    ask("write", AtMost(24.679), Seconds, "(disk, bare)"),
    ask("read all", AtMost(5.128), Seconds, ""),
    ask("walk all", AtMost(2.217), Seconds, ""),
];
pub(super) const IN_MEMORY: &[Asked] = &[
    ask("write", AtMost(17.689), Seconds, ""),
    ask("read all", AtMost(0.914), Seconds, ""),
    ask("walk all", AtMost(0.308), Seconds, ""),
];

/// The values for which the times are asked.
const WANTED: f64 = 500_000.0;
const VALUE_BYTES: usize = 10_000;
const BATCH: u64 = 1_000;
const READERS: u64 = 4;
/// Values that readers and a writer share, what each reader reads, and what the writer writes.
const SHARED: u64 = 10_000;
const READS: u64 = 50_000;
const WRITES: u64 = 1_000;
/// What the database in memory may take.
const MEMORY_BYTES: u64 = 8 << 30;
const LATE: Duration = Duration::from_secs(1);

fn key(id: u64) -> String {
    format!("d:rec:{id:08}")
}

/// The value of a record that was written so often: its number, then bytes of no pattern.
fn value(id: u64, version: u64) -> Vec<u8> {
    let words = (1..VALUE_BYTES as u64 / 8).map(|at| mix(id ^ (version << 32) ^ (at << 44)));
    std::iter::once(id).chain(words).flat_map(u64::to_le_bytes).collect()
}

/// True of a value of the right length that is stamped with this number.
fn is_stamped(found: &[u8], id: u64) -> bool {
    found.len() == VALUE_BYTES && found.starts_with(&id.to_le_bytes())
}

pub(super) fn on_disk(bench: &mut Bench) -> Result<Outcome> {
    let options = Options::new().durability(Durability::Async { at_most: LATE });
    let database = options.open(bench.place("slate-store")?)?;
    let outcome = run(bench, &database)?;
    database.close()?;
    bench.place("slate-store")?;
    Ok(outcome)
}

pub(super) fn in_memory(bench: &mut Bench) -> Result<Outcome> {
    run(bench, &Options::new().memory_limit(MEMORY_BYTES).memory()?)
}

fn run(bench: &Bench, database: &Database) -> Result<Outcome> {
    let values = bench.rows;
    let bucket = database.bucket("data")?;
    let write = write(&bucket, values)?;
    let (read, walk) = (read(&bucket, values)?, walk(&bucket, values)?);
    roll_back(database)?;
    isolate(database)?;
    remove_range(database)?;
    let shared = shared(database)?;
    let share = values as f64 / WANTED;
    let per = |seconds: f64| seconds / share;
    let written = values as f64 * VALUE_BYTES as f64 / bench.machine.disk_rate;
    Ok(Outcome::default()
        .and(per(write), Some(per(written)))
        .and(per(read), None)
        .and(per(walk), None)
        .note(format!("{shared:.0} reads a second beside a writer")))
}

/// In transactions of a thousand; the values are made within the time.
fn write(bucket: &Bucket, values: u64) -> Result<f64> {
    let start = Instant::now();
    for first in (0..values).step_by(usize::try_from(BATCH)?) {
        let ids = first..values.min(first + BATCH);
        bucket.put_many(ids.map(|id| (key(id), value(id, 0))))?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// A thousand within one snapshot, until all are read.
fn read(bucket: &Bucket, values: u64) -> Result<f64> {
    let mut elapsed = Duration::ZERO;
    for is_timed in [true, false] {
        for first in (0..values).step_by(usize::try_from(BATCH)?) {
            let ids = first..values.min(first + BATCH);
            let start = Instant::now();
            let snapshot = bucket.snapshot()?;
            for id in ids {
                let is_right = |found: &[u8]| match is_timed {
                    true => is_stamped(found, id),
                    false => found == value(id, 0),
                };
                if snapshot.read(key(id), is_right)? != Some(true) {
                    return Err(format!("value {id} is lost or another").into());
                }
            }
            elapsed += if is_timed { start.elapsed() } else { Duration::ZERO };
        }
    }
    Ok(elapsed.as_secs_f64())
}

/// All that begin with the prefix, in order.
fn walk(bucket: &Bucket, values: u64) -> Result<f64> {
    let start = Instant::now();
    let mut count = 0u64;
    for entry in bucket.prefix("d:rec:")? {
        count += u64::from(entry?.value().len() == VALUE_BYTES);
    }
    let elapsed = start.elapsed().as_secs_f64();
    if count != values {
        return Err(format!("walked over {count} values, not {values}").into());
    }
    for (id, entry) in (0..values).zip(bucket.prefix("d:rec:")?) {
        let entry = entry?;
        if entry.key() != key(id).as_bytes() || entry.value() != value(id, 0) {
            return Err(format!("value {id} is another in a walk").into());
        }
    }
    Ok(elapsed)
}

/// What has these keys has these values, and nothing else is there.
fn expect(bucket: &Bucket, wanted: &BTreeMap<String, Vec<u8>>, after: &str) -> Result<()> {
    let found: esker::Result<Vec<_>> =
        bucket.iter()?.map(|entry| entry.map(|entry| entry.to_pair())).collect();
    let wanted: Vec<_> = wanted.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone())).collect();
    match found? == wanted {
        true => Ok(()),
        false => Err(format!("other values than expected after {after}").into()),
    }
}

fn roll_back(database: &Database) -> Result<()> {
    let bucket = database.bucket("rolled back")?;
    let before = BTreeMap::from([(key(1), value(1, 0)), (key(2), value(2, 0))]);
    before.iter().try_for_each(|(key, value)| bucket.put(key, value))?;
    let transaction = database.begin()?;
    let within = transaction.bucket("rolled back")?;
    within.put(key(1), value(1, 1))?;
    within.remove(key(2))?;
    within.put(key(3), value(3, 1))?;
    transaction.rollback();
    expect(&bucket, &before, "a rollback")
}

fn isolate(database: &Database) -> Result<()> {
    let bucket = database.bucket("isolated")?;
    bucket.put(key(1), value(1, 0))?;
    let reader = database.begin()?;
    let sees = |id| -> Result<Option<Vec<u8>>> {
        Ok(reader.bucket("isolated")?.get(key(id))?.map(esker::BucketValue::into_vec))
    };
    let before = (sees(1)?, sees(2)?);
    let writer = database.begin()?;
    writer.bucket("isolated")?.put(key(1), value(1, 1))?;
    writer.bucket("isolated")?.put(key(2), value(2, 1))?;
    writer.commit()?;
    if before != (Some(value(1, 0)), None) || (sees(1)?, sees(2)?) != before {
        return Err("a reader sees what was committed after it began".into());
    }
    let after = BTreeMap::from([(key(1), value(1, 1)), (key(2), value(2, 1))]);
    expect(&bucket, &after, "a commit")
}

fn remove_range(database: &Database) -> Result<()> {
    let bucket = database.bucket("removed")?;
    bucket.put_many((0..1_000).map(|id| (key(id), value(id, 0))))?;
    let removed = bucket.remove_range(key(200)..key(800))?;
    if removed != 600 {
        return Err(format!("{removed} values removed, not 600").into());
    }
    let left = (0..200).chain(800..1_000).map(|id| (key(id), value(id, 0))).collect();
    expect(&bucket, &left, "values 200 to 799 were removed")
}

/// Four readers of random values beside a writer of others; reads a second. Each value must be
/// whole: one that was written at some time, and never one that is older than what the same reader
/// has seen.
fn shared(database: &Database) -> Result<f64> {
    let bucket = database.bucket("shared")?;
    for first in (0..SHARED).step_by(usize::try_from(BATCH)?) {
        bucket.put_many((first..first + BATCH).map(|id| (key(id), value(id, 0))))?;
    }
    let (all, failed) = (Barrier::new(usize::try_from(READERS + 1)?), AtomicBool::new(false));
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let (bucket, all, failed) = (&bucket, &all, &failed);
        let write = move || -> Result<()> {
            all.wait();
            (1..=WRITES).try_for_each(|version| {
                let id = mix(version) % SHARED;
                Ok(bucket.put(key(id), value(id, version))?)
            })
        };
        let read = move |reader: u64| -> Result<()> {
            all.wait();
            for turn in 0..READS {
                let id = mix((reader << 32) | turn) % SHARED;
                let found = bucket.get_copy(key(id))?.unwrap_or_default();
                if !is_stamped(&found, id) || (turn % 16 == 0 && !is_whole(&found, id)) {
                    failed.store(true, Ordering::Relaxed);
                }
            }
            Ok(())
        };
        let mut threads = vec![scope.spawn(write)];
        threads.extend((0..READERS).map(|reader| scope.spawn(move || read(reader))));
        threads.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked")?)
    })?;
    if failed.into_inner() {
        return Err("a reader saw a value that nobody wrote".into());
    }
    Ok((READERS * READS) as f64 / start.elapsed().as_secs_f64())
}

/// True of a value that was written, whole.
fn is_whole(found: &[u8], id: u64) -> bool {
    let versions = (1..=WRITES).filter(|version| mix(*version) % SHARED == id);
    std::iter::once(0).chain(versions).any(|version| found == value(id, version))
}
