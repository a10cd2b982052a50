use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use esker_vfs::sim::{Options as SimOptions, Simulation};

use super::{OVERLAYS_MAX, Ranged, ranged, runs};
use crate::maintenance::compaction::table::ready_segments;
use crate::{Bucket, Database, Durability, Options};

/// How many segments of a bucket have keys around one key, at the most.
pub(in crate::maintenance) fn depth(bucket: &Bucket) -> usize {
    let core = bucket.as_table().core();
    let segments = ranged(core, &ready_segments(core)).unwrap();
    let begins =
        |at: &Ranged, other: &&Ranged| other.least <= at.least && at.least < other.greatest;
    let of = |at: &Ranged| segments.iter().filter(|other| begins(at, other)).count();
    segments.iter().map(of).max().unwrap_or_default()
}

pub(in crate::maintenance) fn scattered(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// A bucket of overlapping segments of a hundred rows, of which few fit a merge.
pub(in crate::maintenance) fn many_segments(rows: u64) -> (Database, Bucket) {
    segments_of(rows, 700)
}

/// The same, of which so many rows fit a merge.
fn segments_of(rows: u64, merge_rows: u64) -> (Database, Bucket) {
    let options = Options::new().background(false).segment_limit(100).merge_limit(merge_rows, 100);
    let machine = Simulation::new(7, SimOptions::default());
    let options = options.durability(Durability::Async { at_most: Duration::from_secs(1) });
    let options = options.group_limit(100, 1 << 20).small_group_limit(0);
    let db = options.environment(machine.environment()).open("db").unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.load((0..rows).map(|n| (scattered(n), n.to_le_bytes()))).unwrap();
    (db, bucket)
}

fn contents(bucket: &Bucket) -> Vec<(Vec<u8>, Vec<u8>)> {
    bucket.iter().unwrap().map(|entry| entry.unwrap().to_pair()).collect()
}

#[test]
fn what_one_merge_wrote_is_one_place() {
    let merged = [(7, "a", "c"), (7, "d", "f"), (7, "g", "k")];
    let loaded = [(9, "a", "f"), (9, "b", "k")];
    let bytes = |all: &[(u64, &'static str, &'static str)]| {
        runs(all.iter().map(|(at, a, b)| (*at, a.as_bytes(), b.as_bytes(), ())).collect()).len()
    };
    assert_eq!(bytes(&merged), 1);
    let versions = [(7, "a", "k"), (7, "k", "k"), (7, "k", "k"), (7, "k", "z")];
    assert_eq!(bytes(&versions), 1, "versions of one key");
    assert_eq!(bytes(&loaded), 2, "they have keys of one range");
    assert_eq!(bytes(&[&merged[..], &loaded].concat()), 3);
    let two_merges = [(7, "a", "c"), (7, "b", "d"), (7, "c", "f"), (7, "d", "k"), (7, "f", "l")];
    assert_eq!(bytes(&two_merges), 2, "of one commit");
}

/// Overlays that did not fit a merge with the base were merged with each other only.
#[test]
fn what_fits_no_merge_is_merged_piece_by_piece() {
    let (db, bucket) = many_segments(6_000);
    assert!(depth(&bucket) > 50);
    let before = contents(&bucket);
    let snapshot = bucket.snapshot().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(depth(&bucket), 1);
    assert_eq!(contents(&bucket), before);
    assert!(snapshot.iter().map(|entry| entry.unwrap().to_pair()).eq(before));
    assert!(bucket.get(scattered(5)).unwrap().is_some());
}

#[test]
fn a_large_base_has_few_overlays() {
    let (db, bucket) = many_segments(6_000);
    db.wait_idle().unwrap();
    let mut model: BTreeMap<_, _> = contents(&bucket).into_iter().collect();
    let mut held = Vec::new();
    for round in 0..30u64 {
        let loaded = (round * 100..(round + 1) * 100).map(|n| scattered(10_000 + n));
        bucket.load(loaded.clone().map(|key| (key, b"later"))).unwrap();
        model.extend(loaded.map(|key| (key.to_vec(), b"later".to_vec())));
        for n in (round..6_000).step_by(300) {
            bucket.put(scattered(n), round.to_le_bytes()).unwrap();
            model.insert(scattered(n).to_vec(), round.to_le_bytes().to_vec());
        }
        if round % 10 == 0 {
            held.push((bucket.snapshot().unwrap(), model.clone()));
        }
        db.wait_idle().unwrap();
        let depth = depth(&bucket);
        assert!(depth <= 1 + OVERLAYS_MAX, "{depth} in round {round}");
    }
    assert_eq!(contents(&bucket), model.into_iter().collect::<Vec<_>>());
    for (snapshot, model) in held {
        assert!(snapshot.iter().map(|entry| entry.unwrap().to_pair()).eq(model));
    }
}

/// What a bucket went through while it was written to.
#[derive(Debug)]
struct Written {
    /// Most segments around one key, before and after each merge.
    depth_max: usize,
    /// Most merges while one sweep was under way.
    merges_max: usize,
    /// Rows that merges wrote, for each row that came.
    factor: f64,
    compaction_cursors: usize,
}

/// Seals groups of new keys, a hundred rows each, with so many merges after each.
fn write_on(db: &Database, bucket: &Bucket, groups: u64, merges: usize) -> Written {
    let (engine, core) = (db.engine(), bucket.as_table().core());
    let segments = || -> BTreeMap<u64, usize> {
        ready_segments(core)
            .iter()
            .map(|row_group| (row_group.id(), row_group.row_count()))
            .collect()
    };
    let compaction_cursor = || -> Option<BTreeSet<u64>> {
        engine
            .maintenance_state()
            .compaction_cursors
            .get(&core.id())
            .map(|compaction_cursor| compaction_cursor.own.clone())
    };
    let mut seen = Written { depth_max: 0, merges_max: 0, factor: 0.0, compaction_cursors: 0 };
    let (mut rows, mut under_way, mut of_sweep) = (0, compaction_cursor(), 0);
    for n in (0..groups * 100).map(|n| 100_000 + n) {
        bucket.put(scattered(n), n.to_le_bytes()).unwrap();
        if n % 100 < 99 {
            continue;
        }
        engine.lock().tables.get_mut(&core.id()).unwrap().writer.freeze();
        while engine.seal_frozen().unwrap() {}
        for _ in 0..merges {
            seen.depth_max = seen.depth_max.max(depth(bucket));
            let before = segments();
            engine.finish_moving().unwrap();
            if !engine.merge_one(false).unwrap() {
                break;
            }
            let after = segments();
            rows +=
                after.iter().filter(|(id, _)| !before.contains_key(id)).map(|s| s.1).sum::<usize>();
            let now = compaction_cursor();
            // What was there but not of the sweep is never taken in by it.
            let is_same = under_way
                .as_ref()
                .zip(now.as_ref())
                .is_some_and(|(own, now)| !now.difference(own).any(|id| before.contains_key(id)));
            seen.compaction_cursors += usize::from(now.is_some() && !is_same);
            of_sweep = if is_same { of_sweep + 1 } else { 1 };
            if now.is_some() {
                seen.merges_max = seen.merges_max.max(of_sweep);
            }
            under_way = now;
        }
    }
    let (rows, came) = (u32::try_from(rows).unwrap(), u32::try_from(groups * 100).unwrap());
    seen.factor = f64::from(rows) / f64::from(came);
    seen
}

/// A sweep began anew with each group that was sealed meanwhile.
#[test]
fn sweeps_end_and_overlays_stay_few_while_writes_go_on() {
    for merges in [8, 4, 2] {
        let (db, bucket) = segments_of(9_000, 3_200);
        db.wait_idle().unwrap();
        let seen = write_on(&db, &bucket, 60, merges);
        assert!(seen.compaction_cursors > 1 && seen.merges_max < 20, "{merges}: {seen:?}");
        // One group has just been sealed.
        assert!(seen.depth_max <= 1 + OVERLAYS_MAX + 1, "{merges}: {seen:?}");
        // Sweeps 5 x 1.4, gathering 1, overlays that come one by one 3,200 / (2 x 3 x 100).
        assert!(seen.factor < 13.0, "{merges}: {seen:?}");
        db.wait_idle().unwrap();
        assert!(depth(&bucket) <= 1 + OVERLAYS_MAX);
        assert_eq!(contents(&bucket).len(), 15_000);
        assert!(db.check().unwrap().problems.is_empty());
    }
}

/// Upper ranges gained an overlay for each group that came: more than seventy here.
#[test]
fn sweeps_end_however_few_rows_fit_a_merge() {
    for merges in [8, 2, 1] {
        let (db, bucket) = many_segments(6_000);
        db.wait_idle().unwrap();
        let seen = write_on(&db, &bucket, 120, merges);
        assert!(seen.compaction_cursors > 1 && seen.merges_max < 80, "{merges}: {seen:?}");
        // Overlays have a quarter of up to 18,000 rows, and 700 fit a merge.
        assert!(seen.depth_max <= 1 + 13 + OVERLAYS_MAX, "{merges}: {seen:?}");
        assert!(seen.factor < 13.0, "{merges}: {seen:?}");
        db.wait_idle().unwrap();
        assert!(depth(&bucket) <= 1 + OVERLAYS_MAX);
        assert_eq!(contents(&bucket).len(), 18_000);
        assert!(db.check().unwrap().problems.is_empty());
    }
}
