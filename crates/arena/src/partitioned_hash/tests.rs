#![allow(clippy::unwrap_used, reason = "a test's helpers")]

use super::{PartitionedHash, tag_of};
use crate::{Arena, ArenaErrorKind, ArenaOptions, Category};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn arena() -> Arc<Arena> {
    Arena::new(ArenaOptions { reserve_bytes: 4 << 30, limit_bytes: u64::MAX }).unwrap()
}

fn index() -> PartitionedHash {
    PartitionedHash::new(&arena(), Category::Index).unwrap()
}

/// A well-mixed hash of a number.
fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

fn all(index: &PartitionedHash, hash: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let _ = index.candidates(hash, |value| {
        found.push(value);
        ControlFlow::<()>::Continue(())
    });
    found.sort_unstable();
    found
}

fn holds(index: &PartitionedHash, hash: u64, value: u64) -> bool {
    index
        .candidates(hash, |found| {
            if found == value { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .is_break()
}

fn sorted(count: u64) -> Vec<(u64, u64)> {
    let mut entries: Vec<_> = (1..=count).map(|value| (mix(value), value)).collect();
    entries.sort_unstable();
    entries
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u64, u64),
    Remove(u64, u64),
    Replace(u64, u64, u64),
    InsertMany(Vec<(u64, u64)>),
}

/// Hashes from a small set, some with equal tags, some alike in their leading bits.
fn hashes() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0u64..2_000).prop_map(mix),
        (0u64..20).prop_map(|number| mix(number / 5) & !0xffff_ffff | number),
        (0u64..500).prop_map(|number| mix(number) >> 24),
    ]
}

fn changes() -> impl Strategy<Value = Change> {
    let many = prop::collection::vec((hashes(), 1u64..9), 0..900);
    prop_oneof![
        8 => (hashes(), 1u64..9).prop_map(|(hash, value)| Change::Insert(hash, value)),
        4 => (hashes(), 1u64..9).prop_map(|(hash, value)| Change::Remove(hash, value)),
        4 => (hashes(), 1u64..9, 1u64..9)
            .prop_map(|(hash, old, new)| Change::Replace(hash, old, new)),
        1 => many.prop_map(Change::InsertMany),
    ]
}

/// Values by tag, which is all of a hash that an index keeps.
type Model = BTreeMap<u32, Vec<u64>>;

fn take(model: &mut Model, hash: u64, value: u64) -> bool {
    let values = model.entry(tag_of(hash)).or_default();
    let found = values.iter().position(|found| *found == value);
    found.map(|position| values.swap_remove(position)).is_some()
}

fn apply(index: &PartitionedHash, model: &mut Model, change: &Change) {
    match change {
        Change::Insert(hash, value) => {
            index.insert(*hash, *value).unwrap();
            model.entry(tag_of(*hash)).or_default().push(*value);
        }
        Change::Remove(hash, value) => {
            assert_eq!(index.remove(*hash, *value), take(model, *hash, *value));
        }
        Change::Replace(hash, old, new) => {
            let replaced = index.replace(*hash, *old, *new);
            assert_eq!(replaced, take(model, *hash, *old));
            if replaced {
                model.entry(tag_of(*hash)).or_default().push(*new);
            }
        }
        Change::InsertMany(entries) => {
            let mut entries = entries.clone();
            entries.sort_unstable();
            index.insert_many(&entries).unwrap();
            for (hash, value) in entries {
                model.entry(tag_of(hash)).or_default().push(value);
            }
        }
    }
}

fn check(index: &PartitionedHash, model: &Model) {
    let mut expected = Vec::new();
    for (tag, values) in model {
        let mut values = values.clone();
        values.sort_unstable();
        assert_eq!(all(index, u64::from(*tag) << 32), values);
        expected.extend(values.into_iter().map(|value| (*tag, value)));
    }
    let mut exported: Vec<_> = index.export(0..=u32::MAX).collect();
    assert!(exported.is_sorted_by_key(|entry| entry.0));
    exported.sort_unstable();
    assert_eq!(exported, expected);
    assert_eq!(index.len(), expected.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn holds_what_a_multimap_holds(changes in prop::collection::vec(changes(), 1..200)) {
        let (index, mut model) = (index(), Model::new());
        for change in &changes {
            apply(&index, &mut model, change);
        }
        check(&index, &model);
        // An import of the export holds the same, and goes on from there.
        let exported: Vec<_> = index.export(0..=u32::MAX).collect();
        let imported = self::index();
        import(&imported, &exported, model.len() as u64).unwrap();
        for change in &changes {
            apply(&imported, &mut model, change);
        }
        check(&imported, &model);
    }

    #[test]
    fn an_export_of_a_range_is_that_part(bounds in any::<(u32, u32)>()) {
        let index = index();
        index.insert_many(&sorted(3_000)).unwrap();
        let exported = index.export(bounds.0..=bounds.1).count();
        let expected = index
            .export(0..=u32::MAX)
            .filter(|entry| bounds.0 <= entry.0 && entry.0 <= bounds.1)
            .count();
        prop_assert_eq!(exported, expected);
    }
}

/// Builds the parts from the last to the first.
fn import(
    index: &PartitionedHash,
    entries: &[(u32, u64)],
    expected: u64,
) -> Result<(), crate::ArenaError> {
    let import = index.start_import(expected)?;
    for part in (0..import.parts()).rev() {
        let start = entries.partition_point(|entry| import.part_of(entry.0) < part);
        let end = entries.partition_point(|entry| import.part_of(entry.0) <= part);
        import.build(part, &entries[start..end])?;
    }
    import.finish()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "threads that race for real")]
fn an_import_takes_each_part_once_and_by_any_thread() {
    let entries: Vec<(u32, u64)> =
        sorted(50_000).iter().map(|entry| (tag_of(entry.0), entry.1)).collect();
    let index = index();
    let before = index.memory_bytes();
    let import = index.start_import(50_000).unwrap();
    let parts: Vec<&[(u32, u64)]> =
        entries.chunk_by(|a, b| import.part_of(a.0) == import.part_of(b.0)).collect();
    assert!(parts.len() as u64 == import.parts() && parts.len() > 4);
    std::thread::scope(|scope| {
        for half in [0, 1] {
            let (import, parts) = (&import, &parts);
            scope.spawn(move || {
                for (number, part) in (0..).zip(parts).filter(|(number, _)| number % 2 == half) {
                    import.build(number, part).unwrap();
                }
            });
        }
    });
    assert!(index.is_empty(), "nothing shows before the end");
    let kind = |result: Result<(), crate::ArenaError>| result.unwrap_err().kind();
    assert_eq!(kind(import.build(0, parts[1])), ArenaErrorKind::InvalidInput);
    assert_eq!(kind(import.build(0, parts[0])), ArenaErrorKind::InvalidInput);
    import.finish().unwrap();
    assert_eq!(index.len(), entries.len(), "a part that was refused is not counted");
    let index = self::index();
    let import = index.start_import(50_000).unwrap();
    (0..).zip(&parts).for_each(|(number, part)| import.build(number, part).unwrap());
    drop(import);
    assert!(index.is_empty() && index.memory_bytes() > before);
    // The memory of the import that was given up serves the next one.
    let taken = index.memory_bytes();
    super::tests::import(&index, &entries, 50_000).unwrap();
    assert!(index.memory_bytes() <= taken + 4096);
    assert_eq!(index.export(0..=u32::MAX).collect::<Vec<_>>().len(), entries.len());
    // A part that is missing.
    let other = self::index();
    let import = other.start_import(50_000).unwrap();
    import.build(3, parts[3]).unwrap();
    assert_eq!(kind(import.finish()), ArenaErrorKind::InvalidInput);
    assert!(other.is_empty());
}

#[test]
fn small_is_small() {
    let index = index();
    assert_eq!(index.memory_bytes(), 128);
    assert_eq!(all(&index, 7), []);
    for value in 1..=100 {
        index.insert(mix(value), value).unwrap();
    }
    assert!(index.memory_bytes() <= 4096, "{} bytes for 100 entries", index.memory_bytes());
    assert!((1..=100).all(|value| all(&index, mix(value)) == [value]));
}

/// Twenty bytes an entry whenever there are 10,000 or more, however they came.
#[test]
fn memory_is_bounded_at_every_size() {
    let index = index();
    let mut worst = (0.0f64, 0);
    for value in 1..=300_000u64 {
        index.insert(mix(value), value).unwrap();
        if value >= 10_000 && value % 64 == 0 {
            let per_entry = index.memory_bytes() as f64 / value as f64;
            worst = if per_entry > worst.0 { (per_entry, value) } else { worst };
        }
    }
    assert!(worst.0 <= 20.0, "{worst:?}");
    for count in [10_000, 33_000, 70_000, 300_000] {
        let (bulk, imported) = (self::index(), self::index());
        bulk.insert_many(&sorted(count)).unwrap();
        let exported: Vec<_> = bulk.export(0..=u32::MAX).collect();
        import(&imported, &exported, bulk.len() as u64).unwrap();
        for index in [bulk, imported] {
            let per_entry = index.memory_bytes() as f64 / count as f64;
            assert!(per_entry <= 20.0, "{per_entry} at {count}");
        }
    }
}

#[test]
fn equal_hashes_by_the_thousand() {
    let index = index();
    for value in 1..=5_000 {
        index.insert(mix(1), value).unwrap();
    }
    (5_001..=8_000).for_each(|value| index.insert(mix(value), value).unwrap());
    index.insert_many(&vec![(mix(1), 9_000); 3_000]).unwrap();
    assert_eq!(all(&index, mix(1)).len(), 8_000);
    assert!((5_001..=8_000).all(|value| holds(&index, mix(value), value)));
    assert!(index.memory_bytes() < 1 << 20, "{} bytes", index.memory_bytes());
    (1..=5_000).for_each(|value| assert!(index.remove(mix(1), value)));
    assert_eq!(all(&index, mix(1)), vec![9_000; 3_000]);
}

/// Badly mixed hashes cost memory in proportion, never a directory without end.
#[test]
fn skewed_hashes_do_not_blow_the_directory_up() {
    let index = index();
    for value in 1..=30_000u64 {
        index.insert(value << 32, value).unwrap();
    }
    assert!((1..=30_000u64).all(|value| holds(&index, value << 32, value)));
    assert!(index.memory_bytes() < 30_000 * 32, "{} bytes", index.memory_bytes());
}

#[test]
fn churn_keeps_probes_short_and_memory_bounded() {
    let index = index();
    (1..=20_000).for_each(|value| index.insert(mix(value), value).unwrap());
    let before = index.memory_bytes();
    for value in 20_001..=400_000 {
        index.insert(mix(value), value).unwrap();
        assert!(index.remove(mix(value - 20_000), value - 20_000));
    }
    assert!(index.memory_bytes() < before * 5 / 4, "{} after {before}", index.memory_bytes());
    assert!((380_001..=400_000).all(|value| all(&index, mix(value)) == [value]));
    assert!((1..=1_000).all(|value| all(&index, mix(value)).is_empty()));
    assert_eq!(index.len(), 20_000);
}

#[test]
fn batches_find_what_single_look_ups_find() {
    let index = index();
    index.insert_many(&sorted(50_000)).unwrap();
    let hashes: Vec<_> = (1..=60_001).map(mix).collect();
    let mut found = vec![Vec::new(); hashes.len()];
    index.candidates_many(&hashes, |position, value| {
        found[position].push(value);
        ControlFlow::Continue(())
    });
    for (hash, found) in hashes.iter().zip(found) {
        let mut found = found;
        found.sort_unstable();
        assert_eq!(found, all(&index, *hash));
    }
}

#[test]
fn refusals_change_nothing() {
    let index = index();
    let kind = |result: Result<(), crate::ArenaError>| result.unwrap_err().kind();
    assert_eq!(kind(index.insert(1, 0)), ArenaErrorKind::InvalidInput);
    assert_eq!(kind(index.insert_many(&[(1, 1), (2, 0)])), ArenaErrorKind::InvalidInput);
    assert_eq!(kind(index.insert_many(&[(2, 1), (1, 1)])), ArenaErrorKind::InvalidInput);
    assert_eq!(kind(import(&index, &[(2, 1), (1, 1)], 2)), ArenaErrorKind::InvalidInput);
    assert_eq!(kind(import(&index, &[(1, 0)], 1)), ArenaErrorKind::InvalidInput);
    assert!(index.is_empty() && index.export(0..=u32::MAX).next().is_none());
    index.insert(1, 5).unwrap();
    assert!(!index.replace(1, 5, 0) && !index.replace(1, 6, 7) && !index.remove(1, 0));
    assert_eq!(kind(import(&index, &[(1, 1)], 1)), ArenaErrorKind::InvalidInput);
    assert_eq!(all(&index, 1), [5]);
}

#[test]
fn running_out_of_memory_changes_nothing() {
    let options = ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: 1 << 20 };
    let arena = Arena::new(options).unwrap();
    let index = PartitionedHash::new(&arena, Category::Index).unwrap();
    let mut kept = 0;
    while index.insert(mix(kept + 1), kept + 1).is_ok() {
        kept += 1;
    }
    assert!(kept > 50_000, "{kept} entries in 1 MiB");
    let error = index.insert_many(&sorted(200_000)).unwrap_err();
    assert_eq!(error.kind(), ArenaErrorKind::OutOfMemory);
    assert_eq!(index.len() as u64, kept);
    assert!((1..=kept).all(|value| all(&index, mix(value)) == [value]));
    let fresh = PartitionedHash::new(&arena, Category::Index).unwrap();
    assert!(fresh.insert_many(&sorted(100_000)).is_err() && fresh.is_empty());
    drop((index, fresh));
    assert_eq!(arena.used_bytes(), 0);
}

/// Says that the writer ended, even by a failed assertion.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Readers look up entries while the writer inserts, moves, removes and rebuilds.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, so that a race detector sees races")]
fn readers_never_miss_what_is_there() {
    let index = index();
    const STEADY: u64 = 2_000;
    const ROUNDS: u64 = 12;
    // Steady entries are there throughout; only their locations change.
    (1..=STEADY).for_each(|value| index.insert(mix(value), value << 8).unwrap());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ended = Ended(&ended);
            for round in 1..=ROUNDS {
                let base = round * 1_000_000;
                (0..4_000).for_each(|n| index.insert(mix(base + n), base + n).unwrap());
                for value in 1..=STEADY {
                    assert!(index.replace(
                        mix(value),
                        value << 8 | (round - 1),
                        value << 8 | round
                    ));
                }
                let mut many: Vec<_> = (4_000..9_000).map(|n| (mix(base + n), base + n)).collect();
                many.sort_unstable();
                index.insert_many(&many).unwrap();
                (0..6_000).for_each(|n| assert!(index.remove(mix(base + n), base + n)));
            }
        });
        for start in 0..2 {
            let (index, ended) = (&index, &ended);
            scope.spawn(move || {
                let mut value = start * STEADY / 2;
                let mut newest = BTreeMap::new();
                while !ended.load(Ordering::Acquire) {
                    value = value % STEADY + 1;
                    let found = index.candidates(mix(value), |found| {
                        if found >> 8 == value {
                            ControlFlow::Break(found & 0xff)
                        } else {
                            ControlFlow::Continue(())
                        }
                    });
                    let ControlFlow::Break(round) = found else { panic!("{value} was missed") };
                    let before = newest.insert(value, round);
                    assert!(before <= Some(round), "{value} went back in time");
                }
            });
        }
    });
    assert_eq!(index.len() as u64, STEADY + ROUNDS * 3_000);
}
