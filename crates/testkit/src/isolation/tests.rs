use super::planted::{self, PLANTED};
use super::simulator::Simulation;
use super::*;
use esker_vfs::sim::Generator;
use proptest::prelude::*;

fn simulated(clients: usize, level: Level, seed: u64, transactions: u32) -> History {
    Simulation { transactions, clients, level, seed }.run()
}

fn assert_keeps(history: &History, level: Level) -> Verdict {
    let verdict = history.judge();
    assert_eq!(history.failures(&verdict, level), "", "forbidden at {level}");
    let replayed = history.replay();
    assert_eq!(history.failures(&replayed, level), "", "by replay at {level}");
    verdict
}

/// Every planted anomaly is named, with no other than those that come with it, and is forbidden
/// from its level on.
#[test]
fn planted_anomalies_are_named() {
    for seed in 0..3 {
        for anomaly in PLANTED {
            let (history, verdict) = planted::verdict(anomaly, 3_000, seed);
            assert!(history.transactions.len() > 3_000);
            let with: &[Anomaly] = match anomaly {
                Anomaly::DirtyUpdate => &[Anomaly::G1a],
                _ => &[],
            };
            for (found, count) in verdict.counts() {
                assert!(found == anomaly || with.contains(&found), "{anomaly}: {found} {count}");
            }
            assert!(verdict.count(anomaly) > 0, "{anomaly} is missed");
            for level in Level::ALL {
                let fails = verdict.forbidden(level).any(|(found, _)| found == anomaly);
                assert_eq!(fails, level >= anomaly.forbidden_from(), "{anomaly} at {level}");
            }
        }
    }
}

#[test]
fn a_cycle_is_shown_with_its_transactions() {
    let (history, verdict) = planted::verdict(Anomaly::WriteSkew, 100, 1);
    let shown: String = verdict.findings().iter().map(|found| found.shown(&history)).collect();
    assert!(shown.starts_with("write skew: a circle of 2 transactions\n  T"), "{shown}");
    assert!(shown.contains("-(rw 900/1)-> T") && shown.contains("-(rw 900/2)-> T"), "{shown}");
    assert!(shown.contains("read 900/1 nothing, write 900/2 10#1"), "{shown}");
}

#[test]
fn snapshot_isolation_shows_what_it_allows() {
    let mut seen = Verdict::default();
    for seed in 0..6 {
        seen.absorb(&assert_keeps(&simulated(6, Level::Snapshot, seed, 4_000), Level::Snapshot));
    }
    for allowed in [Anomaly::WriteSkew, Anomaly::G2, Anomaly::ReadOnly, Anomaly::G2Item] {
        assert!(seen.count(allowed) > 0, "{allowed} is not seen: {}", seen.summary());
    }
}

#[test]
fn a_history_of_100_000_is_judged_in_seconds() {
    let history = simulated(8, Level::Snapshot, 5, 100_000);
    assert_keeps(&history, Level::Snapshot);
}

/// A component of all transactions: each reads what the next one writes.
#[test]
fn a_large_circle_is_named() {
    let count = 50_000;
    let put = |number: u32| Transaction {
        begin: 1,
        end: 2,
        snapshot: None,
        commit: Some(u64::from(number) + 1),
        outcome: Outcome::Committed,
        isolation: Level::Serializable,
        operations: vec![
            Operation::Read { key: Key::new(0, (number + 1) % count), cell: None },
            Operation::Write { key: Key::new(0, number), cell: Some(Cell { stamp: 1, value: 1 }) },
        ],
    };
    let history = History { transactions: (0..count).map(put).collect() };
    let verdict = history.judge();
    assert_eq!(verdict.summary(), "G2-item 1");
}

/// The same, in another order of the list and with all at the same time.
fn shuffled(history: &History, seed: u64) -> History {
    let generator = &mut Generator::new(seed, 3);
    let mut transactions = history.transactions.clone();
    for at in (1..transactions.len()).rev() {
        transactions.swap(at, generator.index(at + 1));
    }
    let last = transactions.iter().map(|made| made.end).max().unwrap_or(0);
    for made in &mut transactions {
        made.begin = generator.below(last);
        made.end = last + generator.below(last);
    }
    History { transactions }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_serial_is_strictly_serializable(seed in 0_u64..1_000_000) {
        let verdict = assert_keeps(
            &simulated(1, Level::StrictSerializable, seed, 600),
            Level::StrictSerializable,
        );
        prop_assert_eq!(verdict.summary(), "no anomaly");
    }

    #[test]
    fn what_validates_its_reads_is_strictly_serializable(
        seed in 0_u64..1_000_000, clients in 2_usize..9,
    ) {
        let history = simulated(clients, Level::Serializable, seed, 600);
        let verdict = assert_keeps(&history, Level::StrictSerializable);
        prop_assert_eq!(verdict.summary(), "no anomaly");
    }

    #[test]
    fn snapshots_keep_what_they_promise(seed in 0_u64..1_000_000, clients in 2_usize..9) {
        assert_keeps(&simulated(clients, Level::Snapshot, seed, 600), Level::Snapshot);
    }

    /// What no real time is needed for is found without it.
    #[test]
    fn real_time_adds_only_what_it_must(seed in 0_u64..1_000_000, at in 0..PLANTED.len()) {
        let honest = simulated(6, Level::Snapshot, seed, 300);
        prop_assert!(shuffled(&honest, seed).judge().forbidden(Level::Snapshot).next().is_none());
        let anomaly = PLANTED[at];
        let needs_time = matches!(anomaly, Anomaly::StaleRead | Anomaly::RealTimeSkew);
        let planted = planted::history(anomaly, 300, seed);
        let verdict = shuffled(&planted, seed).judge();
        prop_assert_eq!(verdict.count(anomaly) > 0, !needs_time, "{}", anomaly);
    }

    /// Whatever is changed in a list that was read, or a register, is noticed.
    #[test]
    fn changed_reads_are_noticed(seed in 0_u64..1_000_000) {
        let mut history = simulated(4, Level::Serializable, seed, 400);
        let generator = &mut Generator::new(seed, 5);
        let is_changed = change_a_read(&mut history, generator);
        prop_assume!(is_changed);
        let replayed = history.replay();
        prop_assert!(replayed.count(Anomaly::Replay) > 0);
    }
}

/// A list that was read loses its last value, or a register is read as absent.
fn change_a_read(history: &mut History, generator: &mut Generator) -> bool {
    let first = generator.index(history.transactions.len());
    for made in history.transactions.iter_mut().skip(first) {
        for operation in &mut made.operations {
            match operation {
                Operation::ReadList { values, .. } if !values.is_empty() => {
                    *values = values[..values.len() - 1].into();
                    return true;
                }
                Operation::Read { cell: cell @ Some(_), .. } => {
                    *cell = None;
                    return true;
                }
                _ => {}
            }
        }
    }
    false
}
