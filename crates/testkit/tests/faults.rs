//! The campaigns meet every kind of fault that the simulated disk knows.

#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Workloads of each campaign, in this order: the short ones that meet most kinds come first.
const CAMPAIGNS: [(Range<u64>, Campaign); 6] = [
    (0..20, lying_workload),
    (0..3, rot_workload),
    (0..2, |seed| sweep_workload(seed, 7)),
    (0..40, crash_workload),
    (20..60, lying_workload),
    (0..2, crash_busy_workload),
];

/// What has struck so far.
#[derive(Default)]
struct Struck(Mutex<BTreeMap<FaultKind, u64>>);

impl Struck {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FaultKind, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, report: Report) {
        let mut struck = self.lock();
        for (kind, count) in report.faults {
            *struck.entry(kind).or_default() += count;
        }
    }

    fn missing(&self) -> Vec<FaultKind> {
        let struck = self.lock();
        let kinds = FaultKind::ALL.iter().filter(|kind| !NOWHERE.contains(kind));
        kinds.filter(|kind| !struck.contains_key(kind)).copied().collect()
    }
}

/// On all cores, until every kind has struck.
#[test]
#[allow(clippy::disallowed_methods, reason = "the campaigns run on the real machine")]
fn every_kind_of_fault_strikes_in_some_campaign() {
    let all =
        CAMPAIGNS.into_iter().flat_map(|(seeds, campaign)| seeds.map(move |seed| (seed, campaign)));
    let (next, struck) = (Mutex::new(all), Struck::default());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !struck.missing().is_empty() {
                    let Some((seed, campaign)) = next.lock().unwrap().next() else { return };
                    let report = campaign(seed);
                    assert!(report.failures.is_empty(), "{report}");
                    struck.add(report);
                }
            });
        }
    });
    assert_eq!(struck.missing(), [], "never struck; struck: {:?}", struck.lock());
}
