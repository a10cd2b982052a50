//! Buckets on files that rot: an error or the right entries, never others.

use esker_vfs::sim::{Generator, Simulation};

use super::buckets::{Crash, compare};
use super::damage::{damage_often, open_damaged};
use super::images::says_damaged;
use super::{Report, quietly};
use crate::buckets::{self, Life};
use crate::oracle::{self, said};
use crate::workload::Config;

/// Runs one workload of buckets to a clean close, damages its files, and reads them.
#[must_use]
pub fn bucket_rot_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut generator = Generator::new(seed, 95);
    let config = buckets::config(seed);
    let arguments = || format!("--bucket-rot-workload {seed}");
    let mut operations = Vec::new();
    let closed = quietly(|| {
        buckets::run_to_close(seed, &config).map_err(|failure| {
            operations = failure.operations;
            failure.why
        })
    });
    match closed {
        Ok((life, image)) => {
            let words = || (arguments(), life.operations_until(u64::MAX));
            let read = |machine: &Simulation, wide| read_damaged(&config, machine, &life, wide);
            damage_often(&image, &mut generator, &mut report, (words, read));
        }
        Err(why) => report.fail(why, arguments(), operations),
    }
    report
}

/// Reads the buckets of a damaged database in every way: true when that was refused.
fn read_damaged(
    config: &Config,
    machine: &Simulation,
    life: &Life,
    wide: bool,
) -> Result<bool, String> {
    let Some(db) = open_damaged(config, machine)? else { return Ok(true) };
    let commit = if wide { oracle::recovered_commit(&db, false)? } else { u64::MAX };
    let high = life.high(u64::MAX);
    let crash = Crash { life, ios: u64::MAX, high, found: None, lied: false };
    let mut generator = Generator::new(commit, 96);
    match compare((&db, machine), &crash, commit, &mut generator) {
        Ok(_) => {}
        Err(why) if says_damaged(&why) => return Ok(true),
        Err(why) => return Err(why),
    }
    match db.check() {
        Ok(found) => Ok(!found.problems.is_empty()),
        Err(e) if says_damaged(&said(&e)) => Ok(true),
        Err(e) => Err(format!("check: {}", said(&e))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn buckets_that_rot_are_refused_or_right() {
        let report = super::bucket_rot_workload(3);
        assert!(report.failures.is_empty() && report.refused > 20, "{report}");
    }
}
