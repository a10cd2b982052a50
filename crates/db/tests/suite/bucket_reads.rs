//! Reading buckets: by key and in order, whatever form keys and values have where they lie.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::fixture::Directory;
use esker::{Bucket, BucketSnapshot, Entry, ErrorKind, Options, PutOptions, Ttl};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn expect_reads(bucket: &Bucket, snapshot: &BucketSnapshot, model: &Model) {
    for (key, value) in model {
        assert_eq!(bucket.get(key).unwrap().as_deref(), Some(value.as_slice()));
        assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(value.as_slice()));
        assert_eq!(snapshot.read(key, <[u8]>::to_vec).unwrap().as_ref(), Some(value));
        assert_eq!(bucket.read(key, |found| found == value).unwrap(), Some(true));
        let mut beyond = key.clone();
        beyond.push(0);
        if !model.contains_key(&beyond) {
            assert_eq!(snapshot.read(&beyond, <[u8]>::len).unwrap(), None);
            assert!(bucket.get(&beyond).unwrap().is_none());
        }
    }
    let entries = snapshot.iter().map(|entry| entry.unwrap().to_pair());
    assert!(entries.eq(model.clone()));
    expect_neighbours(bucket, snapshot, model);
    let keys: Vec<Vec<u8>> =
        model.keys().flat_map(|k| [k.clone(), [k, &[0][..]].concat()]).collect();
    for values in [snapshot.get_many(&keys).unwrap(), bucket.get_many(&keys).unwrap()] {
        let found = keys.iter().zip(&values);
        assert!(found.len() == keys.len());
        for (key, value) in found {
            assert_eq!(value.as_deref(), model.get(key).map(Vec::as_slice));
        }
    }
    let asked: Vec<&[u8]> = model.keys().map(Vec::as_slice).chain([&b"none"[..]]).collect();
    let found = bucket.get_many(&asked).unwrap();
    let found: Vec<_> = found.iter().map(Option::as_deref).collect();
    let wanted: Vec<_> = asked.iter().map(|key| model.get(*key).map(Vec::as_slice)).collect();
    assert!(found == wanted, "many at once");
    let held: Vec<_> = snapshot.iter().map(|entry| entry.unwrap().into_value()).collect();
    assert!(held.iter().eq(model.values()), "values that outlive their entries");
}

/// The entries beside some keys, which are there or are not, and those at the ends.
fn expect_neighbours(bucket: &Bucket, snapshot: &BucketSnapshot, model: &Model) {
    fn pair<'a>(entry: Option<(&'a Vec<u8>, &'a Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
        entry.map(|(key, value)| (key.clone(), value.clone()))
    }
    let found = |entry: esker::Result<Option<Entry>>| entry.unwrap().map(|entry| entry.to_pair());
    let is_found = |entry, wanted| assert!(found(entry) == pair(wanted));
    let beyond = |key: &Vec<u8>| [key.as_slice(), &[0]].concat();
    let some = model.keys().step_by(97).chain(model.keys().next_back());
    for key in some.flat_map(|key| [key.clone(), beyond(key)]).chain([Vec::new(), vec![255]]) {
        let after = model.range((Bound::Excluded(key.clone()), Bound::Unbounded)).next();
        is_found(bucket.next_after(&key), after);
        is_found(snapshot.next_after(&key), after);
        let before = model.range(..key.clone()).next_back();
        is_found(bucket.last_before(&key), before);
        is_found(snapshot.last_before(&key), before);
    }
    is_found(bucket.first(), model.first_key_value());
    is_found(bucket.last(), model.last_key_value());
}

#[test]
fn a_read_only_open_reads_buckets_and_makes_none() {
    let dir = Directory::new("bucket-reads-read-only");
    let db = Options::new().open(&dir.0).unwrap();
    db.bucket("b").unwrap().put_many([("a", "1"), ("b", "2")]).unwrap();
    db.close().unwrap();
    let db = Options::new().read_only(true).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let model: Model = [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())].into();
    expect_reads(&bucket, &bucket.snapshot().unwrap(), &model);
    assert_eq!(bucket.put("a", "3").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(bucket.remove("a").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.bucket("missing").err().unwrap().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.buckets(), ["b"]);
}

/// Many keys at once and each alone: those that are there, in the open group, sealed and merged;
/// that were never there, that are dead, that have expired; twice the same, and none at all.
#[test]
fn many_keys_at_once_have_the_answers_of_each() {
    let dir = Directory::new("bucket-reads-many");
    let db = Options::new().group_limit(400, 1 << 20).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let unsynced = PutOptions::new().sync(false);
    let put = |n: u32, value: &str| bucket.put_with(n.to_string(), value, unsynced).unwrap();
    (0..900).for_each(|n| put(n, "first"));
    db.compact(false, &mut |_, _| {}).unwrap();
    (300..1_300).for_each(|n| put(n, &"second ".repeat(n as usize % 9)));
    for n in (0..1_300u32).step_by(5) {
        bucket.remove(n.to_string()).unwrap();
    }
    for n in (1..1_300u32).step_by(50) {
        bucket.put_with(n.to_string(), "gone", unsynced.ttl(Ttl::At(1))).unwrap();
    }
    let snapshot = bucket.snapshot().unwrap();
    (700..800).for_each(|n| put(n, "unseen"));
    let keys: Vec<String> = (0..1_500u32).rev().map(|n| (n * 7 % 1_499).to_string()).collect();
    for keys in [&keys[..], &keys[..1], &keys[..33], &["5", "6", "6", "x"].map(str::to_owned), &[]]
    {
        let values = snapshot.get_many(keys).unwrap();
        assert_eq!(values.len(), keys.len());
        for (key, value) in keys.iter().zip(&values) {
            assert_eq!(value.as_deref(), snapshot.get(key).unwrap().as_deref(), "{key}");
        }
    }
    let found = snapshot.get_many(&keys).unwrap().iter().flatten().count() as u64;
    assert_eq!(found, snapshot.iter().count() as u64);
    assert!((900..1_100).contains(&found), "{found}");
}

/// Values of one length, of many, of few kinds, all equal, and some of them long: in the open
/// group, sealed, and after a merge.
#[test]
fn every_form_of_a_value_reads_alike() {
    let forms: [fn(usize) -> Vec<u8>; 5] = [
        |n| format!("{n:0>150}").into_bytes(),
        |n| vec![7; n % 200],
        |n| format!("kind {}", n % 9).into_bytes(),
        |_| b"the same".to_vec(),
        |n| vec![3; if n % 300 == 0 { 70_000 } else { 40 }],
    ];
    let dir = Directory::new("bucket-reads-1");
    let options = || Options::new().group_limit(600, 1 << 20);
    let mut models = Vec::new();
    let db = options().open(&dir.0).unwrap();
    for (at, form) in forms.iter().enumerate() {
        let bucket = db.bucket(&format!("b{at}")).unwrap();
        let model: Model = (0..2_000).map(|n| (format!("{n:05}").into_bytes(), form(n))).collect();
        for (key, value) in &model {
            bucket.put_with(key, value, PutOptions::new().sync(false)).unwrap();
        }
        expect_reads(&bucket, &bucket.snapshot().unwrap(), &model);
        models.push(model);
    }
    db.close().unwrap();
    let db = options().open(&dir.0).unwrap();
    for compacts in [false, true] {
        if compacts {
            db.compact(false, &mut |_, _| {}).unwrap();
        }
        for (at, model) in models.iter().enumerate() {
            let bucket = db.bucket(&format!("b{at}")).unwrap();
            expect_reads(&bucket, &bucket.snapshot().unwrap(), model);
        }
    }
}

/// What a held snapshot reads by key and in order is the same before and after merges, which move
/// what it sees to units that it does not know.
#[test]
fn a_merge_beside_a_held_snapshot_changes_nothing_for_it() {
    let dir = Directory::new("bucket-reads-2");
    let db = Options::new().group_limit(400, 1 << 20).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let unsynced = PutOptions::new().sync(false);
    let (mut model, mut held) = (Model::new(), Vec::new());
    for round in 0..3usize {
        for n in (0..3_000usize).filter(|n| n % (round + 1) == 0) {
            let (key, value) = (format!("{n:04}").into_bytes(), format!("{round}").into_bytes());
            bucket.put_with(&key, &value, unsynced).unwrap();
            model.insert(key, value);
        }
        for n in (round..3_000).step_by(7) {
            let key = format!("{n:04}").into_bytes();
            bucket.remove(&key).unwrap();
            model.remove(&key);
        }
        held.push((bucket.snapshot().unwrap(), model.clone()));
    }
    let guard = held[0].0.get("0001").unwrap().expect("there in the first round");
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(guard, "0");
    for (snapshot, model) in &held {
        for n in 0..3_000 {
            let key = format!("{n:04}").into_bytes();
            let found = snapshot.read(&key, <[u8]>::to_vec).unwrap();
            assert_eq!(found.as_ref(), model.get(&key), "{n}");
        }
        let entries = snapshot.iter().map(|entry| entry.unwrap().to_pair());
        assert!(entries.eq(model.clone()));
    }
}

/// Keys that differ late, early, or not within what samples and zone maps keep of them; more than
/// a zone of them, with overlays and an open group.
#[test]
fn ranges_begin_where_they_should_whatever_keys_have_in_common() {
    let forms: [fn(usize) -> Vec<u8>; 4] = [
        |n| format!("{}{n:07}", "shared ".repeat(40)).into_bytes(),
        |n| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec(),
        |n| vec![b'a'; n % 400].into_iter().chain((n / 400).to_string().into_bytes()).collect(),
        |n| [vec![0; n % 150], vec![1], (n / 150).to_le_bytes().to_vec()].concat(),
    ];
    for (at, form) in forms.into_iter().enumerate() {
        let dir = Directory::new(&format!("bucket-reads-3-{at}"));
        let db = Options::new().group_limit(5_000, 1 << 30).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        let mut model: Model = (0..20_000).map(|n| (form(n * 2), vec![1])).collect();
        bucket.load(model.clone()).unwrap();
        db.wait_idle().unwrap();
        db.compact(false, &mut |_, _| {}).unwrap();
        assert!(db.info().tables.iter().any(|table| table.segments > 0));
        let overlay: Model = (0..1_500).map(|n| (form(n * 21 + 1), vec![2])).collect();
        for part in [0, 1] {
            let entries = overlay.iter().skip(part).step_by(2);
            bucket.put_many(entries.clone()).unwrap();
            model.extend(entries.map(|(key, value)| (key.clone(), value.clone())));
            let snapshot = bucket.snapshot().unwrap();
            assert!(snapshot.sorted_runs().unwrap() > 0);
            for n in (0..45_000).step_by(61) {
                expect_range(&snapshot, &model, &form(n));
            }
            expect_range(&snapshot, &model, b"");
            expect_range(&snapshot, &model, &[255; 9]);
        }
    }
}

fn expect_range(snapshot: &BucketSnapshot, model: &Model, key: &[u8]) {
    for bound in [Bound::Included(key), Bound::Excluded(key)] {
        let up = snapshot.range::<[u8], _>((bound, Bound::Unbounded)).take(3);
        let up: Vec<_> = up.map(|entry| entry.unwrap().key().to_vec()).collect();
        let expected = model.range::<[u8], _>((bound, Bound::Unbounded)).take(3);
        assert!(expected.map(|(key, _)| key).eq(&up), "up from {bound:?}");
        let down = snapshot.range::<[u8], _>((Bound::Unbounded, bound)).rev().take(3);
        let down: Vec<_> = down.map(|entry| entry.unwrap().key().to_vec()).collect();
        let expected = model.range::<[u8], _>((Bound::Unbounded, bound)).rev().take(3);
        assert!(expected.map(|(key, _)| key).eq(&down), "down from {bound:?}");
    }
}

/// Segments of keys that follow each other, keys too long for a zone map among them: walks from
/// anywhere, both ways, come to each segment where its keys begin.
#[test]
fn walks_come_to_segments_of_later_keys() {
    let db = Options::new().segment_limit(20).background(false).memory().unwrap();
    let bucket = db.bucket("kv").unwrap();
    let long = "x".repeat(200);
    let keys = (0..400).map(|n| format!("{}{n:03}", if n < 200 { "" } else { &long }));
    let mut model: Model = keys.map(|key| (key.into_bytes(), b"v".to_vec())).collect();
    bucket.load(&model).unwrap();
    let runs = bucket.snapshot().unwrap().sorted_runs().unwrap();
    assert!(runs >= 20, "{runs} runs");
    let keys = |entry: esker::Result<Entry>| entry.unwrap().key().to_vec();
    for step in 0..10 {
        let last = model.last_key_value().unwrap().0.clone();
        bucket.remove(&last).unwrap();
        model.remove(&last);
        let snapshot = bucket.snapshot().unwrap();
        let starts = model.keys().skip(step).step_by(17).cloned().collect::<Vec<_>>();
        for start in starts.iter().chain([&b"".to_vec(), &b"1".to_vec(), &b"z".to_vec()]) {
            let from = (Bound::Included(start.as_slice()), Bound::Unbounded);
            let until = (Bound::Unbounded, Bound::Excluded(start.as_slice()));
            let (above, below) = (model.range::<[u8], _>(from), model.range::<[u8], _>(until));
            let (above, below) = (above.map(|e| e.0.clone()), below.map(|e| e.0.clone()));
            assert!(snapshot.range::<[u8], _>(from).map(keys).eq(above.clone()));
            assert!(snapshot.range::<[u8], _>(until).map(keys).eq(below.clone()));
            assert!(snapshot.range::<[u8], _>(from).rev().map(keys).eq(above.rev()));
            assert!(snapshot.range::<[u8], _>(until).rev().map(keys).eq(below.rev()));
        }
    }
}

#[test]
fn segments_of_a_load_become_one_run() {
    let dir = Directory::new("bucket-reads-load");
    let db = Options::new().segment_limit(1_000).open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    // Fewer than the overlays that are allowed.
    bucket.load((0..3_000u64).map(|n| (key(n), n.to_le_bytes()))).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(bucket.snapshot().unwrap().sorted_runs().unwrap(), 1);
    // Few rows above many stay where they are.
    bucket.load((3_000..4_000u64).map(|n| (key(n), n.to_le_bytes()))).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(bucket.snapshot().unwrap().sorted_runs().unwrap(), 2);
    let model: Model = (0..4_000u64).map(|n| (key(n).to_vec(), n.to_le_bytes().to_vec())).collect();
    expect_reads(&bucket, &bucket.snapshot().unwrap(), &model);
}

#[test]
fn merging_versions_of_one_key_comes_to_an_end() {
    let dir = Directory::new("bucket-reads-versions");
    let options = Options::new().group_limit(50, 1 << 20).segment_limit(50);
    let db = options.open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    let unsynced = PutOptions::new().sync(false);
    let mut snapshots = Vec::new();
    for n in 0..600u64 {
        bucket.put_with("key", n.to_string(), unsynced).unwrap();
        bucket.put_with(n.to_le_bytes(), n.to_string(), unsynced).unwrap();
        snapshots.push((bucket.snapshot().unwrap(), n));
        if n % 100 == 99 {
            db.wait_idle().unwrap();
        }
    }
    for (snapshot, n) in &snapshots {
        let value = snapshot.get("key").unwrap();
        assert_eq!(value.as_deref(), Some(n.to_string().as_bytes()));
        assert_eq!(snapshot.iter().count() as u64, n + 2);
    }
    drop(snapshots);
    db.wait_idle().unwrap();
    assert_eq!(bucket.iter().unwrap().count(), 601);
}
