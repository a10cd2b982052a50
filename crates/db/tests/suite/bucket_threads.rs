//! Buckets read and written by several threads, beside seals and merges.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and its threads are real"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::fixture::Directory;
use esker::{Bucket, BucketSnapshot, Database, Durability, Entry, Options, PutOptions};

/// Keys that a writer puts in one commit.
const KEYS: usize = 40;
/// Rounds at the least, and at the most where maintenance does not get its turn.
const ROUNDS: std::ops::Range<u64> = 60..6_000;

/// How many rounds each of the two writers knows to be committed.
type Rounds = [AtomicU64; 2];

fn key(writer: usize, n: usize) -> String {
    format!("{}{n:02}", ["a", "z"][writer])
}

/// Puts the same value for all its keys in each round: its number, and how far the other one is.
fn write((db, bucket): (&Database, &Bucket), rounds: &Rounds, writer: usize) {
    let unsynced = PutOptions::new().sync(false);
    for round in 1..=ROUNDS.end {
        if round > ROUNDS.start && has_merged(db) {
            break;
        }
        let value = format!("{round} {}", rounds[1 - writer].load(Ordering::Acquire));
        bucket.put_many((0..KEYS).map(|n| (key(writer, n), &value))).unwrap();
        rounds[writer].store(round, Ordering::Release);
        for n in 0..8 {
            let between = format!("m{}", (round * 8 + n) * 7_919 % 500);
            bucket.put_with(&between, &value, unsynced).unwrap();
        }
        bucket.remove(format!("m{}", round * 31 % 500)).unwrap();
    }
}

/// True once groups have been sealed, and segments merged.
fn has_merged(db: &Database) -> bool {
    let info = db.info();
    info.seals.durations.count > 0 && info.merges.durations.count > 0
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The round of a writer that a snapshot shows, and the one of the other that it has seen. Each
/// way to read finds the same.
fn shown(snapshot: &BucketSnapshot, writer: usize) -> (u64, u64) {
    let keys: Vec<String> = (0..KEYS).map(|n| key(writer, n)).collect();
    let many = snapshot.get_many(&keys).unwrap();
    let many: Vec<String> = many.iter().flatten().map(|value| text(value)).collect();
    let one = |key: &String| snapshot.get(key).unwrap().map(|value| text(&value));
    let ones: Vec<String> = keys.iter().filter_map(one).collect();
    let value = |entry: esker::Result<Entry>| text(entry.unwrap().value());
    let up: Vec<String> = snapshot.prefix(["a", "z"][writer]).map(value).collect();
    let mut down: Vec<String> = snapshot.prefix(["a", "z"][writer]).rev().map(value).collect();
    down.reverse();
    assert_eq!(many, ones);
    assert_eq!((&many, &many), (&up, &down));
    let Some(first) = many.first() else { return (0, 0) };
    assert!(many.len() == KEYS && many.iter().all(|value| value == first), "{many:?}");
    let (round, seen) = first.split_once(' ').unwrap();
    (round.parse().unwrap(), seen.parse().unwrap())
}

fn keys_of(entries: impl Iterator<Item = esker::Result<Entry>>) -> Vec<Vec<u8>> {
    entries.map(|entry| entry.unwrap().key().to_vec()).collect()
}

fn read(bucket: &Bucket, rounds: &Rounds, is_done: &AtomicBool) -> u64 {
    let mut count = 0;
    let mut held: Option<(BucketSnapshot, [(u64, u64); 2])> = None;
    while !is_done.load(Ordering::Acquire) || count == 0 {
        let committed = [0, 1].map(|writer| rounds[writer].load(Ordering::Acquire));
        let snapshot = bucket.snapshot().unwrap();
        let both = [0, 1].map(|writer| shown(&snapshot, writer));
        for writer in [0, 1] {
            assert!(both[writer].0 >= committed[writer], "a commit that has returned is seen");
            assert!(both[writer].1 <= both[1 - writer].0, "what a commit had seen is seen");
        }
        let up = keys_of(snapshot.iter());
        let mut down = keys_of(snapshot.iter().rev());
        down.reverse();
        assert!(up.is_sorted() && up == down);
        assert_eq!(snapshot.len().unwrap(), up.len() as u64);
        if let Some((older, before)) = &held {
            assert_eq!([0, 1].map(|writer| shown(older, writer)), *before);
        }
        if count % 4 == 0 {
            held = Some((snapshot, both));
        }
        count += 1;
    }
    count
}

/// Waits for merges, and compacts, all the time.
fn tidy(db: &Database, is_done: &AtomicBool) {
    while !is_done.load(Ordering::Acquire) {
        db.wait_idle().unwrap();
        db.bucket("b").unwrap().compact(&mut |_, _| {}).unwrap();
    }
}

#[test]
fn a_snapshot_is_one_prefix_beside_writers_seals_and_merges() {
    let dir = Directory::new("bucket-threads");
    let options = Options::new().group_limit(150, 1 << 20).small_group_limit(0);
    let options = options.durability(Durability::Async { at_most: Duration::from_millis(5) });
    let options = options.merge_share(100).merge_limit(400, 100);
    let db = options.open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let (rounds, is_done) = (Rounds::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let readers = [0, 1].map(|_| scope.spawn(|| read(&bucket, &rounds, &is_done)));
        scope.spawn(|| tidy(&db, &is_done));
        let writers = [0, 1].map(|writer| {
            let (to, rounds) = ((&db, &bucket), &rounds);
            scope.spawn(move || write(to, rounds, writer))
        });
        let written = writers.map(|writer| writer.join());
        is_done.store(true, Ordering::Release);
        assert!(written.iter().all(Result::is_ok));
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    let snapshot = bucket.snapshot().unwrap();
    let written = rounds.map(AtomicU64::into_inner);
    assert_eq!([0, 1].map(|writer| shown(&snapshot, writer).0), written);
    assert!(has_merged(&db), "{:?}", db.info());
    assert!(db.check().unwrap().problems.is_empty());
}
