//! Records of ten kilobytes in memory and on disk, of which every byte is compared: written, read,
//! scanned, rolled back, read as of a snapshot, removed by range, and by several threads at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::fixture::Directory;
use esker::{Bucket, Database, ErrorKind, Options};

const RECORDS: u32 = 2_000;
const RECORD_BYTES: usize = 10_000;
/// Records of one prefix.
const GROUP: u32 = 100;

fn key(number: u32) -> String {
    format!("record/{:02}/{:02}", number / GROUP, number % GROUP)
}

/// A record that has its version in front, and no two records or versions alike.
fn record(number: u32, version: u64) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    let mut state = (u64::from(number) << 32) ^ version;
    while bytes.len() < RECORD_BYTES {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
    }
    bytes.truncate(RECORD_BYTES);
    bytes
}

/// The version of a record, all bytes of which are those of that version.
fn version_of(number: u32, bytes: &[u8]) -> u64 {
    let version = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == record(number, version), "record {number} of version {version}");
    version
}

fn get(bucket: &Bucket, number: u32) -> Option<u64> {
    bucket.get(key(number)).unwrap().map(|bytes| version_of(number, &bytes))
}

/// The versions of all records that there are, by number.
fn scan(entries: esker::Entries) -> BTreeMap<u32, u64> {
    let mut found = BTreeMap::new();
    let mut last = Vec::new();
    for entry in entries {
        let entry = entry.unwrap();
        assert!(last.as_slice() < entry.key(), "in the order of the keys");
        last = entry.key().to_vec();
        let text = std::str::from_utf8(entry.key()).unwrap();
        let parts: Vec<u32> = text.split('/').skip(1).map(|part| part.parse().unwrap()).collect();
        let number = parts[0] * GROUP + parts[1];
        found.insert(number, version_of(number, entry.value()));
    }
    found
}

fn put_all(bucket: &Bucket, numbers: std::ops::Range<u32>, version: u64) {
    let numbers: Vec<u32> = numbers.collect();
    for some in numbers.chunks(200) {
        bucket.put_many(some.iter().map(|n| (key(*n), record(*n, version)))).unwrap();
    }
}

fn expect(bucket: &Bucket, wanted: impl Fn(u32) -> Option<u64>) {
    for number in 0..RECORDS {
        assert_eq!(get(bucket, number), wanted(number), "record {number}");
    }
    let wanted: BTreeMap<u32, u64> =
        (0..RECORDS).filter_map(|number| Some((number, wanted(number)?))).collect();
    assert_eq!(scan(bucket.iter().unwrap()), wanted);
}

/// What one thread does with the records after another.
fn alone(db: &Database, bucket: &Bucket) {
    put_all(bucket, 0..RECORDS, 1);
    expect(bucket, |_| Some(1));
    let of_group = scan(bucket.prefix("record/07/").unwrap());
    assert_eq!(of_group, (700..800).map(|number| (number, 1)).collect());

    let transaction = db.begin().unwrap();
    let within = transaction.bucket("records").unwrap();
    for number in 0..100 {
        within.put(key(number), record(number, 9)).unwrap();
    }
    within.remove_prefix("record/05/").unwrap();
    let seen = scan(within.iter().unwrap());
    assert_eq!(seen.len(), 1_900);
    assert!((0..100).all(|number| seen[&number] == 9));
    transaction.rollback();
    expect(bucket, |_| Some(1));

    let before = bucket.snapshot().unwrap();
    put_all(bucket, 0..RECORDS / 2, 2);
    assert_eq!(bucket.remove_range(key(500)..key(1_500)).unwrap(), 1_000);
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(scan(before.iter()), (0..RECORDS).map(|number| (number, 1)).collect());
    expect(bucket, |number| match number {
        0..500 => Some(2),
        500..1_500 => None,
        _ => Some(1),
    });
    drop(before);
    put_all(bucket, 0..RECORDS, 3);
}

/// Readers see whole records, of which no version is older than one that they have seen.
fn read_until(bucket: &Bucket, seed: u32, done: &AtomicBool) -> u64 {
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut reads, mut state) = (0, seed);
    while !done.load(Ordering::SeqCst) || reads < 200 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = (state >> 8) % RECORDS;
        let found = match reads % 50 {
            0 => scan(bucket.prefix(&key(number)[..10]).unwrap()),
            _ => get(bucket, number).map(|version| (number, version)).into_iter().collect(),
        };
        assert!(!found.is_empty(), "a record is there whoever writes it");
        for (number, version) in found {
            let last = seen.insert(number, version).unwrap_or_default();
            assert!(last <= version, "record {number}: {version} after {last}");
        }
        reads += 1;
    }
    reads
}

fn beside_readers(bucket: &Bucket, write: impl Fn(u32) + Sync, writers: u32) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn({
                    let done = &done;
                    move || read_until(bucket, seed, done)
                })
            })
            .collect();
        let writers: Vec<_> = (0..writers)
            .map(|number| {
                scope.spawn({
                    let write = &write;
                    move || write(number)
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
        readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() >= 200));
    });
}

fn together(db: &Database, bucket: &Bucket) {
    // One writer: each record gets a version more.
    beside_readers(bucket, |_| put_all(bucket, 0..RECORDS, 4), 1);
    expect(bucket, |_| Some(4));

    // Two that change the same records: no change is lost.
    let add = |writer: u32| {
        for i in 0..150 {
            let number = (i * (2 * writer + 3)) % 40;
            db.transact(|transaction| {
                let within = transaction.bucket("records")?;
                let there = within.get(key(number))?.expect("a record");
                within.put(key(number), record(number, version_of(number, &there) + 1))
            })
            .unwrap();
        }
    };
    beside_readers(bucket, add, 2);
    let sum: u64 = (0..40).map(|number| get(bucket, number).unwrap()).sum();
    assert_eq!(sum, 40 * 4 + 2 * 150);

    // Of two that put one record at a time exactly one succeeds.
    for round in 0..40 {
        let number = 100 + round;
        let barrier = Barrier::new(2);
        let put = |version: u64| {
            let transaction = db.begin().unwrap();
            transaction
                .bucket("records")
                .unwrap()
                .put(key(number), record(number, version))
                .unwrap();
            barrier.wait();
            transaction.commit()
        };
        let outcomes = thread::scope(|scope| {
            let both = [10, 20].map(|version| (version, scope.spawn(move || put(version))));
            both.map(|(version, thread)| (version, thread.join().unwrap()))
        });
        let won: Vec<u64> =
            outcomes.iter().filter(|(_, done)| done.is_ok()).map(|(version, _)| *version).collect();
        let lost = outcomes.iter().find_map(|(_, done)| done.as_ref().err()).unwrap();
        assert_eq!(lost.kind(), ErrorKind::Conflict);
        assert_eq!(won, [get(bucket, number).unwrap()]);
    }
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn every_byte_of_many_records_is_right_in_memory() {
    let db = Options::new().group_limit(1 << 20, 4 << 20).memory().unwrap();
    let bucket = db.bucket("records").unwrap();
    alone(&db, &bucket);
    together(&db, &bucket);
    is_sound(&db);
}

#[test]
fn every_byte_of_many_records_is_right_on_disk() {
    let directory = Directory::new("store-stress");
    let open = || Options::new().group_limit(1 << 20, 4 << 20).open(&directory.0).unwrap();
    let db = open();
    let bucket = db.bucket("records").unwrap();
    alone(&db, &bucket);
    together(&db, &bucket);
    let before = scan(bucket.iter().unwrap());
    is_sound(&db);
    drop((bucket, db));
    let db = open();
    let bucket = db.bucket("records").unwrap();
    assert_eq!(scan(bucket.iter().unwrap()), before);
    assert_eq!(before.len(), 2_000);
    is_sound(&db);
}
