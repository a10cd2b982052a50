use super::*;
use crate::isolation::Anomaly;

fn assert_keeps(place: Place, level: Level, transactions: u64) -> Verdict {
    let mut seen = Verdict::default();
    for workload in Workload::ALL {
        let drive = Drive { workload, place, level, transactions, threads: 3, seed: 5 };
        let judged = drive.judge();
        assert_eq!(judged.failures, "", "{drive:?}");
        let [committed, _, unknown] = judged.outcomes;
        assert!(committed > transactions / 4, "{drive:?}: {:?}", judged.outcomes);
        assert_eq!(unknown, 0, "{drive:?}");
        assert_eq!(judged.crashes > 0, place == Place::Crashing, "{drive:?}");
        seen.absorb(&judged.verdict);
    }
    seen
}

#[test]
fn snapshots_in_memory_show_what_they_allow() {
    let seen = assert_keeps(Place::Memory, Level::Snapshot, 1_500);
    for allowed in [Anomaly::WriteSkew, Anomaly::G2, Anomaly::G2Item, Anomaly::ReadOnly] {
        assert!(seen.count(allowed) > 0, "{allowed} was not seen: {}", seen.summary());
    }
}

#[test]
fn serializable_transactions_show_nothing() {
    for place in [Place::Memory, Place::Merging] {
        let seen = assert_keeps(place, Level::Serializable, 600);
        assert_eq!(seen.summary(), "no anomaly");
    }
}

#[test]
fn what_committed_before_a_crash_is_there() {
    assert_keeps(Place::Crashing, Level::Snapshot, 400);
    let seen = assert_keeps(Place::Crashing, Level::Serializable, 200);
    assert_eq!(seen.summary(), "no anomaly");
}

/// After an opening a key can have entries of several dead versions in the index; the newest tells
/// whether it was changed since a transaction began. An older one hid a deletion here.
#[test]
fn the_newest_of_several_dead_versions_counts() {
    let (workload, place, level) = (Workload::Register, Place::Crashing, Level::Serializable);
    let judged =
        Drive { workload, place, level, transactions: 2_500, threads: 1, seed: 7_002 }.judge();
    assert_eq!(judged.failures, "");
}

/// A row that is gone after a crash tells of a transaction of unknown outcome only if it was there
/// when that committed, whatever the transaction had read. Another one had deleted it since
/// (12,002), or it had put the row itself, over one that was there (11,002).
#[test]
fn a_row_that_was_gone_before_tells_nothing_of_who_deletes_it() {
    let (workload, place) = (Workload::Register, Place::Crashing);
    for (level, seed) in [(Level::Snapshot, 12_002), (Level::Serializable, 11_002)] {
        let drive = Drive { workload, place, level, transactions: 11_250, threads: 8, seed };
        let judged = drive.judge();
        assert_eq!(judged.failures, "", "{drive:?}");
    }
}

/// Nobody's increment is lost, in a row or in a bucket, however often the others are quicker.
#[test]
#[allow(clippy::disallowed_methods)]
fn increments_by_transact_are_all_there() {
    let db = esker::Options::new().memory().unwrap();
    let bucket = db.bucket("counters").unwrap();
    store::create(&db).unwrap();
    let key = crate::isolation::Key::new(1, 1);
    let increment = |transaction: &esker::Transaction| {
        let held = store::read(transaction, key)?;
        let (stamp, value) = held.map_or((0, 0), |cell| (cell.stamp, cell.value));
        std::thread::yield_now();
        let cell = crate::isolation::Cell { stamp: stamp + 1, value: value + 1 };
        store::write(transaction, key, cell)?;
        transaction.bucket("counters")?.increment(b"hits", 1)
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    db.transact(increment).unwrap();
                }
            });
        }
    });
    let reader = db.begin().unwrap();
    assert_eq!(store::read(&reader, key).unwrap().map(|cell| cell.value), Some(800));
    assert_eq!(reader.bucket("counters").unwrap().increment(b"hits", 1).unwrap(), 801);
    drop(reader);
    assert_eq!(bucket.len().unwrap(), 1);
}
