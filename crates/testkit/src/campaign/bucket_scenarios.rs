//! Scenarios of buckets that chance finds too seldom.

use std::ops::Bound;
use std::time::Duration;

use esker::{Bucket, Database, Options, Ttl, Value};
use esker_vfs::sim::CrashChoice;

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("ranges among keys that begin alike", keys_that_begin_alike),
    ("a version that is dead at birth hides an older one", dead_at_birth),
    ("an entry that has expired, and a clock that is set back", expired_before_a_crash),
];

/// Entries of a bulk load: several zones of a segment.
const LOADED: u64 = 20_000;

/// Keys whose first 40 bytes are the same, and whose last ones rise.
fn long_key(number: u64) -> Vec<u8> {
    let mut key = vec![b'p'; 40];
    key.extend_from_slice(&number.swap_bytes().to_le_bytes());
    key
}

fn keys_that_begin_alike() -> Outcome {
    let machine = machine();
    let rows = usize::try_from(LOADED).unwrap_or_default();
    let db = open(Options::new().segment_limit(rows), &machine)?;
    let bucket = db.bucket("b").map_err(said)?;
    let mut load = bucket.as_table().load().map_err(said)?;
    for number in 0..LOADED {
        // Not in the order of the keys.
        let key = long_key(number * 7_919 % LOADED);
        let row = [Value::Bytes(key), Value::Bytes(Vec::new()), Value::Null];
        load.push_row(&row).map_err(said)?;
    }
    load.finish().map_err(said)?;
    let segments: usize = db.info().tables.iter().map(|table| table.segments).sum();
    expect("segments", segments as u64, 1)?;
    for least in (0..LOADED).step_by(997) {
        let bounds = (Bound::Included(long_key(least)), Bound::Excluded(long_key(least + 10)));
        let mut entries = bucket.range::<Vec<u8>, _>(bounds.clone()).map_err(said)?;
        let first = entries.next().transpose().map_err(said)?;
        if first.is_none_or(|entry| entry.key() != long_key(least)) {
            return Err(format!("a range from {least} on begins elsewhere"));
        }
        let count = bucket.count_range::<Vec<u8>, _>(bounds).map_err(said)?;
        expect(&format!("entries from {least} on"), count, (LOADED - least).min(10))?;
    }
    Ok(())
}

fn in_a_segment(db: &Database, bucket: &Bucket) -> Outcome {
    let filler = (0..64u64).map(|n| (format!("filler {n}"), "x"));
    bucket.put_many(filler).map_err(said)?;
    db.compact(false, &mut |_, _| {}).map(drop).map_err(said)
}

/// A merge drops what has expired, and what a snapshot can still see is found without it.
fn dead_at_birth() -> Outcome {
    let machine = machine();
    let options = Options::new().group_limit(16, 1 << 20).small_group_limit(0);
    let db = open(options, &machine)?;
    let bucket = db.bucket("b").map_err(said)?;
    bucket.put("k", "old").map_err(said)?;
    let snapshot = db.snapshot().map_err(said)?;
    bucket.put_with("k", "new", Ttl::At(1)).map_err(said)?;
    in_a_segment(&db, &bucket)?;
    let found = snapshot.bucket("b").and_then(|bucket| bucket.get("k")).map_err(said)?;
    match found.as_deref() {
        Some(b"old") if !bucket.contains("k").map_err(said)? => Ok(()),
        other => Err(format!("the snapshot has {other:?}")),
    }
}

/// The log is told the time with the next commit, at most a second late.
fn expired_before_a_crash() -> Outcome {
    let machine = machine();
    let db = open(Options::new(), &machine)?;
    let bucket = db.bucket("b").map_err(said)?;
    bucket.put_with("k", "v", Ttl::After(Duration::from_secs(60))).map_err(said)?;
    machine.advance_clock(Duration::from_secs(61));
    expect("entries after a minute", bucket.len().map_err(said)?, 0)?;
    machine.advance_clock(Duration::from_secs(2));
    bucket.put("other", "v").map_err(said)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        // Its clock begins anew, before the entry ended.
        let db = open(Options::new(), &revived(&machine.crash_image(choice)))?;
        let bucket = db.bucket("b").map_err(said)?;
        expect("entries after a crash", bucket.len().map_err(said)?, 1)?;
        if bucket.contains("k").map_err(said)? {
            return Err("an entry that had expired is there again".to_owned());
        }
        if bucket.put_if_absent("k", "new", Ttl::Never).map_err(said)?.is_some() {
            return Err("an entry that had expired is in the way".to_owned());
        }
    }
    Ok(())
}
