//! The campaigns meet every kind of fault that the simulated disk knows.

#![allow(missing_docs)]

use std::collections::BTreeMap;

use esker_testkit::campaign::{
    Report, crash_busy_workload, crash_workload, lying_workload, rot_workload, sweep_workload,
};
use esker_vfs::sim::FaultKind;

/// Kinds that no campaign of whole databases has: the engine renames files and sets lengths on a
/// full disk alone, reads nothing that it has not synced, and asks for no wall clock; it dies by
/// images, not in mid-call.
const NOWHERE: [FaultKind; 5] = [
    FaultKind::LostRename,
    FaultKind::NoSpaceOnSetLen,
    FaultKind::StaleRead,
    FaultKind::ClockStepBack,
    FaultKind::Crash,
];

type Campaign = fn(u64) -> Report;

/// One workload of each campaign after the other, until every kind has struck.
#[test]
fn every_kind_of_fault_strikes_in_some_campaign() {
    let mut struck: BTreeMap<FaultKind, u64> = BTreeMap::new();
    let campaigns: [(u64, Campaign); 5] = [
        (60, lying_workload),
        (40, crash_workload),
        (3, rot_workload),
        (3, |seed| sweep_workload(seed, 7)),
        (2, crash_busy_workload),
    ];
    let missing = |struck: &BTreeMap<FaultKind, u64>| -> Vec<FaultKind> {
        let kinds = FaultKind::ALL.iter().filter(|kind| !NOWHERE.contains(kind));
        kinds.filter(|kind| !struck.contains_key(kind)).copied().collect()
    };
    for seed in 0..60 {
        for (_, campaign) in campaigns.iter().filter(|(workloads, _)| seed < *workloads) {
            if missing(&struck).is_empty() {
                return;
            }
            let report = campaign(seed);
            assert!(report.failures.is_empty(), "{report}");
            for (kind, count) in report.faults {
                *struck.entry(kind).or_default() += count;
            }
        }
    }
    let missing = missing(&struck);
    assert!(missing.is_empty(), "never struck: {missing:?}; struck: {struck:?}");
}
