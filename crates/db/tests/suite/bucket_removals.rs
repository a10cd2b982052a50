//! Removing many entries of a bucket at once.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    reason = "test code: a panic is the report"
)]

use crate::fixture::Directory;
use esker::{Database, ErrorKind, Options};

fn number(n: u64) -> Vec<u8> {
    n.swap_bytes().to_le_bytes().to_vec()
}

#[test]
fn removing_more_than_a_frame_takes_is_one_commit() {
    let dir = Directory::new("bucket-remove");
    {
        let db = Options::new().commit_limit(10_000).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        bucket.load((0..100_000u64).map(|n| (number(n), number(n)))).unwrap();
        let before = bucket.snapshot().unwrap();
        assert_eq!(bucket.remove_range(number(10)..number(90_000)).unwrap(), 89_990);
        assert_eq!(bucket.len().unwrap(), 10_010);
        assert_eq!(before.len().unwrap(), 100_000);
    }
    let db = Database::open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    assert_eq!(bucket.iter().unwrap().count(), 10_010);
    assert!(db.check().unwrap().problems.is_empty());
}

/// The keys of a range were gathered before their entries were removed.
#[test]
fn removing_entries_takes_no_memory_for_their_keys() {
    let dir = Directory::new("bucket-remove-many");
    let db = Options::new().memory_limit(64 << 20).segment_limit(20_000).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let key = |n: u64| [&[b'k'; 500][..], &number(n)].concat();
    for part in 0..5u64 {
        bucket.load((part * 20_000..(part + 1) * 20_000).map(|n| (key(n), "v"))).unwrap();
    }
    let (loads, before) = (db.info().memory.loads, bucket.snapshot().unwrap());
    bucket.put(key(5), "new").unwrap();
    assert_eq!(bucket.remove_range(key(10)..key(20_010)).unwrap(), 20_000);
    assert_eq!(bucket.remove_prefix("k").unwrap(), 80_000);
    assert_eq!((bucket.len().unwrap(), db.info().memory.loads), (0, loads));
    assert_eq!(before.len().unwrap(), 100_000);
    drop((before, bucket, db));
    let db = Database::open(&dir.0).unwrap();
    assert_eq!(db.bucket("b").unwrap().len().unwrap(), 0);
}

#[test]
fn removing_what_takes_too_much_memory_is_refused() {
    let dir = Directory::new("bucket-remove-refused");
    let db = Options::new().memory_limit(64 << 20).segment_limit(200_000).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    for part in 0..5u64 {
        let entries = part * 200_000..(part + 1) * 200_000;
        bucket.load(entries.map(|n| (number(n), "v"))).unwrap();
    }
    let loads = db.info().memory.loads;
    let refused = bucket.remove_range(number(0)..).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OverBudget, "{refused}");
    assert!(refused.to_string().contains("bytes of memory"), "{refused}");
    assert_eq!((bucket.len().unwrap(), db.info().memory.loads), (1_000_000, loads));
    assert_eq!(bucket.remove_range(number(10)..number(20_010)).unwrap(), 20_000);
    assert_eq!(bucket.len().unwrap(), 980_000);
}
