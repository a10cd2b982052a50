//! Buckets: what they promise, on memory and on disk, sealed or not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    Bucket, BucketOptions, Database, Entries, ErrorKind, Options, PutOptions, Result, Swapped, Ttl,
};

fn memory() -> Database {
    Options::new().memory().unwrap()
}

fn pairs(entries: Entries) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries.map(|entry| entry.unwrap().to_pair()).collect()
}

fn number(n: u64) -> Vec<u8> {
    n.swap_bytes().to_le_bytes().to_vec()
}

#[test]
fn a_bucket_is_made_on_demand_and_is_no_table() {
    let db = memory();
    assert!(db.buckets().is_empty());
    db.bucket("b").unwrap().put("k", "v").unwrap();
    assert_eq!(db.bucket("b").unwrap().get("k").unwrap().unwrap(), b"v"[..]);
    db.rename_bucket("b", "c").unwrap();
    assert_eq!(db.buckets(), ["c"]);
    let schema = esker::Schema::builder().field("n", esker::DataType::I64).build().unwrap();
    db.create_table("t", schema).unwrap();
    assert_eq!(db.buckets(), ["c"]);
    assert_eq!(db.bucket("t").err().unwrap().kind(), ErrorKind::InvalidInput);
    assert_eq!(db.drop_bucket("t").unwrap_err().kind(), ErrorKind::InvalidInput);
    db.drop_bucket("c").unwrap();
    assert!(db.buckets().is_empty());
}

#[test]
fn keys_and_values_may_be_empty() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    bucket.put("", "").unwrap();
    bucket.put("a", "").unwrap();
    assert_eq!(bucket.get("").unwrap().unwrap(), b""[..]);
    assert_eq!(pairs(bucket.iter().unwrap()).len(), 2);
    assert_eq!(bucket.first().unwrap().unwrap().key(), b"");
    assert!(bucket.remove("").unwrap());
    assert!(!bucket.remove("").unwrap());
    let long = vec![1; (64 << 10) + 1];
    assert_eq!(bucket.put(&long, "").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_value_that_is_held_stays() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    bucket.put("k", "old").unwrap();
    let held = bucket.get("k").unwrap().unwrap();
    for n in 0..50_000u64 {
        bucket.put_with(number(n), "x", PutOptions::new()).unwrap();
    }
    bucket.put("k", "new").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(held, b"old"[..]);
    bucket.clear().unwrap();
    assert_eq!(held, b"old"[..]);
    assert!(bucket.is_empty().unwrap());
}

#[test]
fn conditional_changes() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    assert_eq!(bucket.put_if_absent("k", "1", Ttl::Default).unwrap(), None);
    assert_eq!(bucket.put_if_absent("k", "2", Ttl::Default).unwrap(), Some(b"1".to_vec()));
    assert_eq!(bucket.compare_and_swap("k", Some(b"1"), Some(b"3")).unwrap(), Swapped::Done);
    let found = bucket.compare_and_swap("k", Some(b"1"), None).unwrap();
    assert_eq!(found, Swapped::Found(Some(b"3".to_vec())));
    assert_eq!(bucket.take("k").unwrap(), Some(b"3".to_vec()));
    assert_eq!(bucket.take("k").unwrap(), None);
    assert_eq!(bucket.increment("n", 5).unwrap(), 5);
    assert_eq!(bucket.increment("n", -7).unwrap(), -2);
    assert_eq!(bucket.typed::<Vec<u8>, i64>().get(&b"n".to_vec()).unwrap(), Some(-2));
    assert_eq!(bucket.append("t", "ab").unwrap(), 2);
    assert_eq!(bucket.append("t", "c").unwrap(), 3);
    assert_eq!(bucket.increment("t", 1).unwrap_err().kind(), ErrorKind::InvalidInput);
    bucket.increment("max", i64::MAX).unwrap();
    assert_eq!(bucket.increment("max", 1).unwrap_err().kind(), ErrorKind::InvalidInput);
    let gone = bucket.update("t", |value| value.filter(|v| v.len() > 3).map(<[u8]>::to_vec));
    assert_eq!(gone.unwrap(), None);
    assert!(!bucket.contains("t").unwrap());
}

#[test]
fn updates_of_many_threads_are_all_there() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    bucket.increment("n", 1).unwrap();
                    bucket
                        .update("u", |value| {
                            let n: u64 = value.map_or(0, |v| v.len() as u64);
                            Some(vec![b'x'; n as usize + 1])
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(bucket.increment("n", 0).unwrap(), 2_000);
    assert_eq!(bucket.get("u").unwrap().unwrap().len(), 2_000);
}

/// Walks every range from both ends and compares with a map.
fn expect(bucket: &Bucket, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let all: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(pairs(bucket.iter().unwrap()), all);
    let mut back: Vec<_> = bucket.iter().unwrap().rev().map(|e| e.unwrap().to_pair()).collect();
    back.reverse();
    assert_eq!(back, all);
    assert_eq!(bucket.len().unwrap(), model.len() as u64);
    let bound = |n: usize, included: bool| {
        let key = all.get(n).map_or_else(|| vec![0xff; 9], |(key, _)| key.clone());
        if included { Bound::Included(key) } else { Bound::Excluded(key) }
    };
    let count = all.len();
    for (from, to) in [(0, count / 2), (count / 3, count / 3 + 10), (count / 2, count + 5)] {
        for (a, b) in [(true, true), (false, true), (true, false), (false, false)] {
            let range = (bound(from, a), bound(to, b));
            let wanted: Vec<_> =
                model.range(range.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
            assert_eq!(pairs(bucket.range::<Vec<u8>, _>(range.clone()).unwrap()), wanted);
            assert_eq!(
                bucket.count_range::<Vec<u8>, _>(range.clone()).unwrap(),
                wanted.len() as u64
            );
            // From both ends at once.
            let mut entries = bucket.range::<Vec<u8>, _>(range).unwrap();
            let mut met = Vec::new();
            let mut late = Vec::new();
            loop {
                let Some(entry) = entries.next() else { break };
                met.push(entry.unwrap().to_pair());
                let Some(entry) = entries.next_back() else { break };
                late.push(entry.unwrap().to_pair());
            }
            met.extend(late.into_iter().rev());
            assert_eq!(met, wanted);
        }
    }
    for (key, value) in all.iter().step_by(7) {
        assert_eq!(bucket.get(key).unwrap().unwrap(), value[..]);
    }
}

#[test]
fn ranges_over_open_groups_segments_and_merges() {
    let dir = Directory::new("bucket-1");
    let options = || Options::new().group_limit(700, 1 << 20);
    let mut model = BTreeMap::new();
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    for round in 0..4 {
        let db = options().open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        expect(&bucket, &model);
        for _ in 0..1_500 {
            let key = number(random() % 2_000);
            match random() % 5 {
                0 => {
                    let was = model.remove(&key);
                    assert_eq!(bucket.remove(&key).unwrap(), was.is_some());
                }
                _ => {
                    let value = format!("{round} {}", random()).into_bytes();
                    bucket.put_with(&key, &value, PutOptions::new().sync(false)).unwrap();
                    model.insert(key, value);
                }
            }
        }
        expect(&bucket, &model);
        let held = bucket.iter().unwrap();
        let before = model.clone();
        bucket.remove_prefix(number(0).get(..7).unwrap()).unwrap();
        model.retain(|key, _| key[..7] != number(0)[..7]);
        db.wait_idle().unwrap();
        if round == 2 {
            db.compact(false, &mut |_, _| {}).unwrap();
        }
        assert_eq!(pairs(held), before.into_iter().collect::<Vec<_>>());
        expect(&bucket, &model);
        assert!(db.check().unwrap().problems.is_empty());
        db.close().unwrap();
    }
}

#[test]
fn a_bulk_load_is_in_order_too() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    let mut model = BTreeMap::new();
    let mut load = bucket.as_table().load().unwrap();
    for n in 0..100_000u64 {
        let key = number(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let row = [key.clone().into(), number(n).into(), esker::Value::Null];
        load.push_row(&row).unwrap();
        model.insert(key, number(n));
    }
    load.finish().unwrap();
    expect(&bucket, &model);
    db.compact(false, &mut |_, _| {}).unwrap();
    expect(&bucket, &model);
}

#[test]
fn a_batch_is_one_commit() {
    let db = memory();
    let (a, b) = (db.bucket("a").unwrap(), db.bucket("b").unwrap());
    let schema = esker::Schema::builder().field("id", esker::DataType::I64);
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    a.put("gone", "x").unwrap();
    let before = db.snapshot().unwrap();
    let mut batch = db.batch();
    batch.put(&a, "k", "1").unwrap().remove(&a, "gone").unwrap();
    batch.put(&b, "k", "2").unwrap().insert(&table, &[1i64.into()]).unwrap();
    assert_eq!(batch.len(), 4);
    batch.commit().unwrap();
    assert_eq!(pairs(a.iter().unwrap()), [(b"k".to_vec(), b"1".to_vec())]);
    assert_eq!((b.len().unwrap(), table.count().unwrap()), (1, 1));
    assert!(before.bucket("a").unwrap().get("k").unwrap().is_none());
    assert!(before.bucket("a").unwrap().get("gone").unwrap().is_some());
    // All or none.
    let mut batch = db.batch();
    batch.put(&a, "k", "9").unwrap().insert(&table, &[1i64.into()]).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(a.get("k").unwrap().unwrap(), b"1"[..]);
    let other = memory();
    let error = db.batch().put(&other.bucket("a").unwrap(), "k", "v").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn batches_of_several_buckets_survive_reopening() {
    let dir = Directory::new("bucket-2");
    {
        let db = Database::open(&dir.0).unwrap();
        let (a, b) = (db.bucket("a").unwrap(), db.bucket("b").unwrap());
        for n in 0..100u64 {
            let mut batch = db.batch();
            batch.put(&a, number(n), "a").unwrap().put(&b, number(n), "b").unwrap();
            if n > 0 {
                batch.remove(&a, number(n - 1)).unwrap();
            }
            batch.commit().unwrap();
        }
    }
    let db = Database::open(&dir.0).unwrap();
    assert_eq!(db.bucket("a").unwrap().len().unwrap(), 1);
    assert_eq!(db.bucket("b").unwrap().len().unwrap(), 100);
}

#[test]
fn typed_keys_sort_as_their_values() {
    let db = memory();
    let bucket = db.bucket("b").unwrap().typed::<(String, i32), String>();
    let keys = [("a", 1), ("a", -1), ("", 7), ("a\0", 0), ("ab", i32::MIN), ("b", i32::MAX)];
    for (text, n) in keys {
        bucket.put(&(text.to_owned(), n), &format!("{text}{n}")).unwrap();
    }
    let mut wanted = keys.map(|(text, n)| (text.to_owned(), n)).to_vec();
    wanted.sort();
    let found: Vec<_> = bucket.iter().unwrap().map(|e| e.unwrap().0).collect();
    assert_eq!(found, wanted);
    let range = ("a".to_owned(), 0)..("b".to_owned(), 0);
    assert_eq!(bucket.range(range).unwrap().count(), 3);
    assert_eq!(bucket.last().unwrap().unwrap().0, ("b".to_owned(), i32::MAX));
}

mod expiry {
    use super::*;
    use esker_vfs::Environment;

    fn at(db: &Simulated, seconds: i64) {
        db.clock.set(seconds * 1_000_000);
    }

    struct Simulated {
        db: Database,
        clock: Arc<HandClock>,
    }

    /// A wall clock that is set by hand.
    #[derive(Debug, Default)]
    struct HandClock(std::sync::atomic::AtomicI64);

    impl HandClock {
        fn set(&self, us: i64) {
            self.0.store(us, std::sync::atomic::Ordering::SeqCst);
        }
    }

    impl esker_vfs::Clock for HandClock {
        fn wall_us(&self) -> i64 {
            self.0.load(std::sync::atomic::Ordering::SeqCst)
        }

        fn monotonic_ns(&self) -> u64 {
            Environment::os().clock.monotonic_ns()
        }

        fn boottime_us(&self) -> i64 {
            self.wall_us()
        }

        fn boot_id(&self) -> Option<u128> {
            Some(1)
        }
    }

    fn open(options: Options, dir: Option<&std::path::Path>) -> Simulated {
        let clock = Arc::new(HandClock::default());
        clock.set(1_000_000_000_000);
        let environment = Environment { clock: Arc::clone(&clock) as _, ..Environment::os() };
        let options = options.environment(environment);
        let db = match dir {
            None => options.memory().unwrap(),
            Some(dir) => options.open(dir).unwrap(),
        };
        Simulated { db, clock }
    }

    const START: i64 = 1_000_000;

    #[test]
    fn expired_entries_are_absent_on_every_path() {
        for sealed in [false, true] {
            let db =
                open(Options::new().group_limit(if sealed { 2 } else { 1 << 20 }, 1 << 20), None);
            let bucket = db.db.create_bucket("b", &BucketOptions::new()).unwrap();
            at(&db, START);
            bucket.put("stays", "1").unwrap();
            bucket.put_with("a", "2", Ttl::After(Duration::from_secs(10))).unwrap();
            bucket.put_with("b", "3", Ttl::At((START + 20) * 1_000_000)).unwrap();
            bucket.put_with("c", "4", Ttl::After(Duration::from_secs(30))).unwrap();
            db.db.wait_idle().unwrap();
            let snapshot = db.db.snapshot().unwrap();
            let count = |expected: u64| {
                assert_eq!(bucket.len().unwrap(), expected);
                assert_eq!(bucket.iter().unwrap().count() as u64, expected);
                assert_eq!(bucket.iter().unwrap().rev().count() as u64, expected);
                let query = |text: &str| esker_count(&db.db, text);
                assert_eq!(query("b"), expected);
            };
            count(4);
            at(&db, START + 10);
            count(3);
            assert!(bucket.get("a").unwrap().is_none());
            assert!(!bucket.contains("a").unwrap());
            assert!(!bucket.remove("a").unwrap(), "an expired entry is not removed");
            assert_eq!(bucket.take("a").unwrap(), None);
            assert!(!bucket.touch("a", Ttl::Never).unwrap(), "an expired entry stays so");
            assert_eq!(bucket.remaining("b").unwrap(), Some(Some(Duration::from_secs(10))));
            assert_eq!(bucket.remaining("stays").unwrap(), Some(None));
            assert!(bucket.touch("b", Ttl::After(Duration::from_secs(100))).unwrap());
            assert!(bucket.persist("c").unwrap());
            assert!(!bucket.persist("stays").unwrap());
            assert_eq!(bucket.put_if_absent("a", "5", Ttl::Default).unwrap(), None);
            assert_eq!(bucket.get("a").unwrap().unwrap(), b"5"[..]);
            at(&db, START + 50);
            count(4);
            at(&db, START + 200);
            count(3);
            assert!(snapshot.bucket("b").unwrap().get("a").unwrap().is_some(), "its time is fixed");
            assert_eq!(snapshot.bucket("b").unwrap().iter().count(), 4);
        }
    }

    fn esker_count(db: &Database, table: &str) -> u64 {
        let text = format!(r#"{{"table": "{table}", "aggregates": [{{"fn": "count"}}]}}"#);
        let answer = db.query_json(&text).unwrap();
        match answer.rows().next().unwrap().first() {
            Some(esker::ValueRef::Int(count)) => u64::try_from(*count).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_version_that_never_lived_leads_to_the_one_before() {
        let dir = Directory::new("bucket-chain");
        let options = || Options::new().group_limit(16, 1 << 20).small_group_limit(0);
        for db in [open(options(), None), open(options(), Some(&dir.0))] {
            at(&db, START);
            let bucket = db.db.bucket("b").unwrap();
            bucket.put("k", "old").unwrap();
            let snapshot = db.db.snapshot().unwrap();
            bucket.put_with("k", "new", Ttl::At(START * 1_000_000)).unwrap();
            bucket.put_many((0..64u64).map(|n| (number(n), "x"))).unwrap();
            db.db.wait_idle().unwrap();
            assert_eq!(snapshot.bucket("b").unwrap().get("k").unwrap().unwrap(), b"old"[..]);
            assert_eq!(bucket.get("k").unwrap(), None);
            drop(snapshot);
            db.db.compact(false, &mut |_, _| {}).unwrap();
            assert_eq!((bucket.len().unwrap(), bucket.iter().unwrap().count()), (64, 64));
        }
    }

    #[test]
    fn the_default_of_a_bucket_counts() {
        let db = open(Options::new(), None);
        at(&db, START);
        let options = BucketOptions::new().ttl(Duration::from_secs(5));
        let bucket = db.db.create_bucket("b", &options).unwrap();
        assert_eq!(bucket.default_ttl(), Some(Duration::from_secs(5)));
        bucket.put("a", "").unwrap();
        bucket.put_with("b", "", Ttl::Never).unwrap();
        bucket.put_many([("c", "")]).unwrap();
        at(&db, START + 5);
        assert_eq!(bucket.len().unwrap(), 1);
        db.db.set_bucket_ttl("b", None).unwrap();
        bucket.put("d", "").unwrap();
        at(&db, START + 5_000);
        assert_eq!(bucket.len().unwrap(), 2);
    }

    #[test]
    fn expired_rows_are_purged_and_do_not_come_back() {
        let dir = Directory::new("bucket-3");
        {
            let db = open(Options::new().group_limit(1_000, 1 << 20), Some(dir.0.as_path()));
            at(&db, START);
            let bucket = db.db.bucket("b").unwrap();
            for n in 0..5_000u64 {
                let ttl = if n % 2 == 0 { Ttl::After(Duration::from_secs(60)) } else { Ttl::Never };
                let options = PutOptions::new().ttl(ttl).sync(false);
                bucket.put_with(number(n), vec![b'x'; 100], options).unwrap();
            }
            at(&db, START + 60);
            let before = db.db.snapshot().unwrap();
            assert_eq!(before.bucket("b").unwrap().iter().count(), 2_500);
            drop(before);
            db.db.compact(false, &mut |_, _| {}).unwrap();
            let rows = db.db.info().tables.iter().map(|t| t.live_rows).sum::<u64>();
            assert_eq!(rows, 2_500, "what has expired is gone");
            // The clock goes back: they do not come back.
            at(&db, START + 1);
            assert_eq!(bucket.len().unwrap(), 2_500);
            bucket.put(number(0), "new").unwrap();
            assert!(db.db.check().unwrap().problems.is_empty());
            db.db.close().unwrap();
        }
        let db = open(Options::new(), Some(dir.0.as_path()));
        at(&db, START + 1);
        let bucket = db.db.bucket("b").unwrap();
        assert_eq!(bucket.len().unwrap(), 2_501);
        assert_eq!(bucket.get(number(0)).unwrap().unwrap(), b"new"[..]);
    }
}

#[test]
fn damage_is_reported_and_nothing_is_skipped() -> Result<()> {
    let dir = Directory::new("bucket-4");
    {
        let db = Options::new().group_limit(5_000, 1 << 20).open(&dir.0)?;
        let bucket = db.bucket("b")?;
        for n in 0..20_000u64 {
            let value = number(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(6);
            bucket.put_with(number(n), value, PutOptions::new().sync(false))?;
        }
        db.compact(false, &mut |_, _| {})?;
        db.close()?;
    }
    let segment = std::fs::read_dir(&dir.0)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment-"))
        .unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let inside = bytes.len() * 3 / 4;
    bytes[inside] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let db = Database::open(&dir.0)?;
    let bucket = db.bucket("b")?;
    let mut entries = bucket.iter()?;
    let mut count = 0;
    let error = loop {
        match entries.next() {
            Some(Ok(_)) => count += 1,
            Some(Err(e)) => break Some(e),
            None => break None,
        }
    };
    assert_eq!(error.expect("the damage is told").kind(), ErrorKind::Corrupt);
    assert!(count < 20_000);
    assert!(entries.next().is_none());
    Ok(())
}

/// Fills a bucket in sealed pieces; returns the number of segments once nothing is left to do.
fn segments_after(name: &str, pieces: u64, key: impl Fn(u64) -> u64) -> usize {
    let dir = Directory::new(name);
    let db = Options::new().group_limit(100, 1 << 20).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    for n in 0..pieces * 100 {
        bucket.put_with(number(key(n)), number(n), PutOptions::new().sync(false)).unwrap();
        if n % 100 == 99 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    assert_eq!(bucket.iter().unwrap().count() as u64, pieces * 100);
    db.info().tables.first().unwrap().segments
}

#[test]
fn rising_keys_are_never_merged() {
    let segments = segments_after("bucket-rising", 20, |n| n);
    assert!(segments >= 19, "{segments} disjoint segments");
}

#[test]
fn scattered_keys_lie_in_few_places() {
    let scattered = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let segments = segments_after("bucket-scattered", 40, scattered);
    assert!(segments <= 6, "{segments} segments");
}

#[test]
fn a_put_beside_a_load_over_an_expired_entry_is_in_conflict() {
    let dir = Directory::new("bucket-load-expired");
    let db = Options::new().segment_limit(1_000).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.put_with(number(5), "old", Ttl::At(1)).unwrap();
    let mut load = bucket.as_table().load().unwrap();
    for n in 0..3_000u64 {
        load.push_row(&[number(n).into(), number(n).into(), esker::Value::Null]).unwrap();
    }
    load.wait().unwrap();
    assert_eq!(bucket.put(number(5), "new").unwrap_err().kind(), ErrorKind::Conflict);
    load.finish().unwrap();
    assert_eq!(bucket.iter().unwrap().count(), 3_000);
    assert_eq!(bucket.get(number(5)).unwrap().unwrap(), number(5)[..]);
    assert!(bucket.remove(number(5)).unwrap());
    assert!(!bucket.contains(number(5)).unwrap());
    assert!(db.check().unwrap().problems.is_empty());
}

#[test]
fn a_batch_filled_on_both_sides_of_a_clear_writes_a_key_once() {
    let db = memory();
    let bucket = db.bucket("b").unwrap();
    let mut batch = db.batch();
    batch.put(&bucket, "a", "1").unwrap().put(&bucket, "b", "1").unwrap();
    bucket.clear().unwrap();
    batch.put(&bucket, "a", "2").unwrap();
    batch.commit().unwrap();
    assert_eq!(
        pairs(bucket.iter().unwrap()),
        [(b"a".to_vec(), b"2".to_vec()), (b"b".to_vec(), b"1".to_vec())]
    );
    let mut batch = db.batch();
    batch.put(&bucket, "c", "3").unwrap();
    bucket.clear().unwrap();
    batch.commit().unwrap();
    assert_eq!(bucket.len().unwrap(), 1);
}

#[test]
fn a_handle_of_a_dropped_bucket_clears_no_other() {
    let db = memory();
    let old = db.bucket("b").unwrap();
    db.drop_bucket("b").unwrap();
    let new = db.bucket("b").unwrap();
    new.put("k", "v").unwrap();
    assert_eq!(old.clear().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(new.len().unwrap(), 1);
    db.rename_bucket("b", "c").unwrap();
    new.clear().unwrap();
    assert!(db.bucket("c").unwrap().is_empty().unwrap());
}

#[test]
fn an_insert_after_a_delete_of_one_batch_is_a_new_row() {
    let db = memory();
    let schema = esker::Schema::builder().field("id", esker::DataType::I64);
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    table.insert(&[1i64.into()]).unwrap();
    let mut batch = db.batch();
    batch.delete(&table, &[1i64.into()]).unwrap().insert(&table, &[1i64.into()]).unwrap();
    batch.commit().unwrap();
    let mut batch = db.batch();
    batch.insert(&table, &[1i64.into()]).unwrap().upsert(&table, &[1i64.into()]).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn rows_of_an_appender_expire() {
    let db = memory();
    let schema = esker::Schema::builder()
        .field("n", esker::DataType::I64)
        .nullable("until", esker::DataType::Timestamp)
        .expires_by("until");
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    let mut appender = table.appender();
    appender.append(&[3i64.into(), esker::Value::Timestamp(1)]).unwrap();
    appender.append(&[4i64.into(), esker::Value::Null]).unwrap();
    appender.finish().unwrap();
    assert_eq!(table.count().unwrap(), 1);
}
