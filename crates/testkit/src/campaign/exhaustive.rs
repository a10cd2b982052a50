//! Small scope: every workload of up to three operations, a crash after every I/O, every subset
//! of what is pending. Images that are equal, and must hold the same, are checked once a workload.

use std::collections::BTreeSet;

use esker_vfs::sim::{CrashChoice, JournalCursor};

use super::{Checker, Expected, Report, quietly};
use crate::workload::{self, Config, Life, Plan, Tiny};

/// Pending changes of which every subset is tried. Where there are more, those before the last
/// ten are kept.
const SUBSET_BITS: usize = 10;

/// How many workloads there are.
pub const WORKLOADS: u64 = KINDS + KINDS * KINDS + KINDS * KINDS * KINDS;

const KINDS: u64 = Tiny::ALL.len() as u64;

/// The operations of a workload.
fn script(mut number: u64) -> Vec<Tiny> {
    let mut len = 1;
    let mut count = KINDS;
    while number >= count {
        number -= count;
        count *= KINDS;
        len += 1;
    }
    let mut script = Vec::new();
    for _ in 0..len {
        let at = usize::try_from(number % KINDS).unwrap_or_default();
        script.extend(Tiny::ALL.get(at));
        number /= KINDS;
    }
    script.reverse();
    script
}

/// Crashes one workload everywhere in its last operation.
#[must_use]
pub fn exhaust(number: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let script = script(number);
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let config = Config::exhaustive();
        let plan = Plan { lives: 1, script: Some(script.clone()), ..Plan::default() };
        let lives = workload::run(1, &config, &plan).map_err(|failure| {
            operations = failure.operations;
            format!("while it ran: {}", failure.why)
        })?;
        let checker = Checker { config, crash_again: 0, lied: false };
        for life in &lives {
            operations = life.operations_until(u64::MAX);
            exhaust_life(&checker, life, &mut report)?;
        }
        Ok(())
    });
    if let Err(why) = outcome {
        let arguments = format!("--exhaustive-workload {number}");
        report.fail(format!("{script:?}: {why}"), arguments, operations);
    }
    report
}

fn exhaust_life(checker: &Checker, life: &Life, report: &mut Report) -> Result<(), String> {
    let Some(journal) = &life.journal else { return Ok(()) };
    let mut cursor = journal.cursor();
    let mut seen = BTreeSet::new();
    loop {
        if cursor.changed() {
            exhaust_position(checker, life, &cursor, &mut seen, report)?;
        }
        if !cursor.advance() {
            return Ok(());
        }
    }
}

fn exhaust_position(
    checker: &Checker,
    life: &Life,
    cursor: &JournalCursor,
    seen: &mut BTreeSet<(u64, u64)>,
    report: &mut Report,
) -> Result<(), String> {
    let promised = life.promised(cursor.position());
    let expected = Expected { history: &life.history, ..Expected::after(life, cursor.position()) };
    let pending = cursor.pending_count().min(64);
    let older = pending.saturating_sub(SUBSET_BITS);
    let subsets = (0..1u64 << (pending - older)).map(|subset| {
        let kept = (1u64 << older) - 1;
        CrashChoice::Subset(
            kept | subset.checked_shl(u32::try_from(older).unwrap_or(63)).unwrap_or(0),
        )
    });
    let torn = (0..4).map(|seed| CrashChoice::TornSubset { mask: u64::MAX, seed });
    for choice in subsets.chain(torn).chain([CrashChoice::KeepNone]) {
        let image = cursor.crash_image(choice);
        if seen.insert((image.fingerprint(), promised)) {
            checker
                .check(&image, expected, 1, 0, report)
                .map_err(|why| format!("crash after {} ({choice:?}): {why}", cursor.describe()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_number() {
        let all: BTreeSet<String> =
            (0..WORKLOADS).map(|number| format!("{:?}", script(number))).collect();
        assert_eq!(all.len() as u64, WORKLOADS);
        assert_eq!(script(WORKLOADS - 1).len(), 3);
    }
}
