use std::collections::BTreeMap;

use crate::maintenance::compaction::leveled::tests::{depth, many_segments, scattered};
use crate::{Bucket, Database, ErrorKind};

fn compact(db: &Database) -> u64 {
    db.compact(false, &mut |_, _| {}).unwrap().rewritten
}

fn segments(bucket: &Bucket) -> Vec<u64> {
    bucket.as_table().core().view().segments().map(|segment| segment.id()).collect()
}

fn assert_is(bucket: &Bucket, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    assert!(bucket.iter().unwrap().map(|entry| entry.unwrap().to_pair()).eq(model.clone()));
}

/// Segments of a bucket were merged by their age, as many as made a full one: those of different
/// merges overlapped, and each further compaction wrote all of them again.
#[test]
fn a_large_bucket_is_compacted_once() {
    let (db, bucket) = many_segments(6_000);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> =
        (0..6_000u64).map(|n| (scattered(n).to_vec(), n.to_le_bytes().to_vec())).collect();
    let (before, old) = (bucket.snapshot().unwrap(), model.clone());
    for n in (0..6_000).step_by(7) {
        bucket.put(scattered(n), b"new").unwrap();
        model.insert(scattered(n).to_vec(), b"new".to_vec());
    }
    for n in (0..6_000).step_by(11) {
        bucket.remove(scattered(n)).unwrap();
        model.remove(&scattered(n)[..]);
    }
    bucket.load((6_000..6_500u64).map(|n| (scattered(n), b"loaded"))).unwrap();
    model.extend((6_000..6_500u64).map(|n| (scattered(n).to_vec(), b"loaded".to_vec())));
    let dry = db.compact(true, &mut |_, _| {}).unwrap().rewritten;
    assert!(dry >= 60, "{dry}");
    assert!(compact(&db) >= 60);
    assert_eq!(depth(&bucket), 1);
    assert_is(&bucket, &model);
    assert!(before.iter().map(|entry| entry.unwrap().to_pair()).eq(old));
    assert_eq!(before.get(scattered(7)).unwrap().unwrap(), 7u64.to_le_bytes()[..]);
    assert_eq!(db.compact(true, &mut |_, _| {}).unwrap().rewritten, 0);
    assert_eq!(compact(&db), 0);
    drop(before);
    // What only the snapshot saw goes with it.
    assert!(compact(&db) >= 30);
    assert!(bucket.as_table().core().view().segments().all(|segment| segment.dead_count() == 0));
    assert_eq!((depth(&bucket), compact(&db)), (1, 0));
    assert_is(&bucket, &model);
    assert!(db.check().unwrap().problems.is_empty());
}

#[test]
fn small_segments_side_by_side_become_one() {
    let (db, bucket) = many_segments(0);
    let id = bucket.as_table().core().id();
    // In the order of keys: many, few, many, few, few.
    for (begin, rows) in [(0, 90), (1_000, 20), (2_000, 90), (3_000, 20), (4_000, 20)] {
        for n in begin..begin + rows {
            bucket.put(format!("{n:05}"), "v").unwrap();
        }
        db.engine().lock().tables.get_mut(&id).unwrap().writer.freeze();
        db.wait_idle().unwrap();
    }
    let before = segments(&bucket);
    assert_eq!(compact(&db), 2);
    let after = segments(&bucket);
    assert_eq!((after.len(), &after[..3]), (4, &before[..3]));
    assert_eq!((depth(&bucket), compact(&db)), (1, 0));
}

#[test]
fn progress_is_told_in_rows() {
    let (db, bucket) = many_segments(6_000);
    let other = db.bucket("other").unwrap();
    other.load((0..500u64).map(|n| (scattered(n), "v"))).unwrap();
    let alone = segments(&other);
    assert!(alone.len() > 1);
    let mut told = Vec::new();
    let report = bucket.compact(&mut |done, all| told.push((done, all))).unwrap();
    assert!(report.rewritten >= 60 && report.bytes_after > 0 && report.bytes_before > 0);
    assert_eq!(depth(&bucket), 1);
    assert_eq!(segments(&other), alone, "another bucket stays as it is");
    assert_eq!((told.first(), told.last()), (Some(&(0, 6_000)), Some(&(6_000, 6_000))));
    assert!(told.is_sorted() && told.iter().all(|(_, all)| *all == 6_000));
    let steps: std::collections::BTreeSet<u64> = told.iter().map(|(done, _)| *done).collect();
    assert!(steps.len() >= 60, "{steps:?}");
    let mut told = Vec::new();
    db.compact(false, &mut |done, all| told.push((done, all))).unwrap();
    assert_eq!((told.first(), told.last()), (Some(&(0, 6_500)), Some(&(6_500, 6_500))));
    // Nothing is left to do with one of them, and the other is written.
    assert!(told.is_sorted() && told.iter().any(|(done, _)| (6_100..6_400).contains(done)));
    db.drop_bucket("other").unwrap();
    assert_eq!(other.compact(&mut |_, _| {}).unwrap_err().kind(), ErrorKind::NotFound);
}
