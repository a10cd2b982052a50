//! What went wrong in another embedded key-value store, bug by bug, and does not here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::Directory;
use esker::{Bucket, Database, ErrorKind, Options, PutOptions, Ttl};

fn number(n: u64) -> Vec<u8> {
    n.swap_bytes().to_le_bytes().to_vec()
}

fn fill(bucket: &Bucket, keys: std::ops::Range<u64>) {
    for n in keys {
        let value = number(n).repeat(8);
        bucket.put_with(number(n), value, PutOptions::new().sync(false)).unwrap();
    }
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("log-");
    let mut logs: Vec<PathBuf> = files.filter(is_log).collect();
    logs.sort();
    logs
}

/// Every file of a directory, by name.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn writes_after_compacting_are_not_lost() {
    let dir = Directory::new("after-compacting");
    {
        let db = Options::new().group_limit(500, 1 << 20).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        fill(&bucket, 0..2_000);
        bucket.remove_range(..number(500)).unwrap();
        for round in 0..2u64 {
            db.compact(false, &mut |_, _| {}).unwrap();
            fill(&bucket, 10_000 + round..10_001 + round);
            assert!(bucket.contains(number(10_000 + round)).unwrap(), "visible at once");
        }
        db.close().unwrap();
    }
    let db = Database::open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    assert_eq!(bucket.len().unwrap(), 1_502);
    assert!(bucket.contains(number(10_001)).unwrap());
}

#[test]
fn what_was_cleared_or_dropped_does_not_come_back() {
    let dir = Directory::new("cleared");
    {
        let db = Database::open(&dir.0).unwrap();
        let (cleared, dropped) = (db.bucket("cleared").unwrap(), db.bucket("dropped").unwrap());
        fill(&cleared, 0..1_000);
        fill(&dropped, 0..1_000);
        cleared.clear().unwrap();
        db.drop_bucket("dropped").unwrap();
        cleared.put("after", "").unwrap();
    }
    let db = Database::open(&dir.0).unwrap();
    assert_eq!(db.buckets(), ["cleared"]);
    assert_eq!(db.bucket("cleared").unwrap().len().unwrap(), 1);
    assert!(db.bucket("dropped").unwrap().is_empty().unwrap(), "a new one");
}

#[test]
fn a_durable_write_after_a_torn_tail_stays() {
    let dir = Directory::new("torn-tail");
    drop(Database::open(&dir.0).unwrap());
    // A killed writer leaves a copy of the files as they were amid a write.
    let torn = Directory::new("torn-tail-copy");
    {
        let db = Database::open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        bucket.put("before", "1").unwrap();
        bucket.put("torn", "2".repeat(1_000)).unwrap();
        std::fs::create_dir_all(&torn.0).unwrap();
        for (path, bytes) in contents(&dir.0) {
            std::fs::write(torn.0.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
    let log = logs(&torn.0).pop().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(&log, &bytes[..end - 200]).unwrap();
    for round in 0..3 {
        let db = Database::open(&torn.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        assert_eq!(bucket.get("before").unwrap().unwrap(), b"1"[..]);
        assert!(!bucket.contains("torn").unwrap());
        assert_eq!(bucket.len().unwrap(), 1 + round);
        bucket.put(format!("after {round}"), "3").unwrap();
    }
}

#[test]
fn a_flipped_bit_is_told_and_drops_nothing() {
    let dir = Directory::new("flipped");
    {
        let db = Database::open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        for n in 0..100 {
            bucket.put(number(n), number(n).repeat(10)).unwrap();
        }
        db.close().unwrap();
    }
    // Wherever the entries are now: in the log, or in a checkpoint.
    let wanted = number(50).repeat(10);
    let (path, mut bytes) = contents(&dir.0)
        .into_iter()
        .find(|(_, bytes)| bytes.windows(wanted.len()).any(|window| window == wanted))
        .unwrap();
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    bytes[at + 3] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let before = contents(&dir.0);
    let error = Database::open(&dir.0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(contents(&dir.0), before, "nothing is changed");
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    let dir = Directory::new("not-ours");
    std::fs::create_dir_all(&dir.0).unwrap();
    std::fs::write(dir.0.join("letter.txt"), "Dear reader").unwrap();
    let before = contents(&dir.0);
    assert!(Database::open(dir.0.join("letter.txt")).is_err());
    assert!(Database::open(&dir.0).is_err());
    assert_eq!(contents(&dir.0), before);
}

#[test]
fn half_a_batch_is_never_there() {
    let dir = Directory::new("half-a-batch");
    let cut = Directory::new("half-a-batch-cut");
    let (files, start) = {
        let db = Database::open(&dir.0).unwrap();
        let (a, b) = (db.bucket("a").unwrap(), db.bucket("b").unwrap());
        a.put("first", "").unwrap();
        let used = |dir: &Path| {
            let bytes = std::fs::read(logs(dir).pop().unwrap()).unwrap();
            bytes.iter().rposition(|byte| *byte != 0).unwrap()
        };
        let start = used(&dir.0);
        let mut batch = db.batch();
        for n in 0..10 {
            batch.put(&a, number(n), "value").unwrap().put(&b, number(n), "value").unwrap();
        }
        batch.commit().unwrap();
        (contents(&dir.0), start)
    };
    let log = logs(&dir.0).len();
    assert!(log > 0);
    let (name, bytes) =
        files.iter().rfind(|(path, _)| path.to_string_lossy().contains("/log-")).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for length in (start.next_multiple_of(8)..=end).step_by(37).chain([end]) {
        let _ = std::fs::remove_dir_all(&cut.0);
        std::fs::create_dir_all(&cut.0).unwrap();
        for (path, bytes) in &files {
            let part = if path == name { &bytes[..length] } else { bytes.as_slice() };
            std::fs::write(cut.0.join(path.file_name().unwrap()), part).unwrap();
        }
        let db = Database::open(&cut.0).unwrap();
        let count = |name: &str| db.bucket(name).unwrap().len().unwrap();
        let counts = (count("a"), count("b"));
        assert!(counts == (1, 0) || counts == (11, 10), "{counts:?} at length {length}");
    }
}

#[test]
fn of_concurrent_removals_one_gets_the_value() {
    let db = Options::new().memory().unwrap();
    let bucket = db.bucket("b").unwrap();
    fill(&bucket, 0..2_000);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..2_000 {
                    let got = bucket.take(number(n)).unwrap().is_some();
                    taken.fetch_add(usize::from(got), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), 2_000);
    assert!(bucket.is_empty().unwrap());
}

#[test]
fn expired_entries_are_hidden_from_walks_and_counts() {
    let db = Options::new().memory().unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.put_with("old", "", Ttl::At(1)).unwrap();
    bucket.put("new", "").unwrap();
    assert_eq!(bucket.iter().unwrap().count(), 1);
    assert_eq!(bucket.len().unwrap(), 1);
    assert!(!bucket.remove("old").unwrap());
    assert!(bucket.remaining("old").unwrap().is_none());
}

/// Rising numbers, long common prefixes and rising prefixes are spread like any other keys: the
/// index takes the memory that random keys take.
#[test]
fn no_shape_of_keys_makes_the_index_crowded() {
    let taken = |key: &dyn Fn(u64) -> Vec<u8>| {
        let db = Options::new().memory().unwrap();
        let bucket = db.bucket("b").unwrap();
        let batch: Vec<_> = (0..50_000).map(|n| (key(n), "")).collect();
        bucket.put_many(batch).unwrap();
        (0..50_000).step_by(97).for_each(|n| assert!(bucket.contains(key(n)).unwrap()));
        db.info().memory.indexes
    };
    let random = taken(&|n| number(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    for (name, key) in [
        ("big-endian", &number as &dyn Fn(u64) -> Vec<u8>),
        ("little-endian", &|n| n.to_le_bytes().to_vec()),
        ("32 bits", &|n| number(n)[4..].to_vec()),
        ("common prefix", &|n| format!("stress-key-{n:08}").into_bytes()),
        ("common suffix", &|n| [number(n), vec![b'x'; 200]].concat()),
    ] {
        let bytes = taken(key);
        assert!(bytes < random * 2, "{name}: {bytes} bytes, random keys take {random}");
    }
}
