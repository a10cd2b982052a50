use std::collections::BTreeMap;
use std::time::Duration;

use esker_vfs::sim::{Options as SimOptions, Simulation};

use super::{OVERLAYS_MAX, Ranged, places, ranged};
use crate::maintenance::compaction::ready_segments;
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
    let options = Options::new().background(false).segment_limit(100).merge_limit(700, 100);
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
        places(all.iter().map(|(at, a, b)| (*at, a.as_bytes(), b.as_bytes())).collect())
    };
    assert_eq!(bytes(&merged), 1);
    let versions = [(7, "a", "k"), (7, "k", "k"), (7, "k", "k"), (7, "k", "z")];
    assert_eq!(bytes(&versions), 1, "versions of one key");
    assert_eq!(bytes(&loaded), 2, "they have keys of one range");
    assert_eq!(bytes(&[&merged[..], &loaded].concat()), 3);
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
