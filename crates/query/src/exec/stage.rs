//! A grouping step: a scan becomes groups, morsel by morsel, merged in order.

use std::ops::ControlFlow;

use super::budget::{Budget, Charge};
use super::group::Groups;
use super::materialised::Materialised;
use super::scan::{Scan, ScanCounts, WAVE_MAX, in_waves};
use crate::Result;
use crate::bind::Stage;
use crate::options::Options;

/// Runs a grouping step.
pub(crate) fn run<'a>(
    scan: &Scan<'a>,
    stage: &'a Stage,
    options: &Options,
    budget: &Budget,
) -> Result<(Materialised, ScanCounts)> {
    let mut groups = Groups::new(stage);
    let mut held: Charge<'_> = budget.charge();
    let mut counts = ScanCounts::default();
    let counts_rows = stage.counts_rows();
    let mut is_counted = vec![false; scan.source.part_count()];
    if counts_rows {
        for (index, is_counted) in is_counted.iter_mut().enumerate() {
            let part = scan.source.part(index);
            if let Some(passed) = scan.plan.part(index).count(scan.predicate, part)? {
                groups.add_rows(passed as u64);
                counts.rows_passed += passed as u64;
                *is_counted = true;
            }
        }
    }
    let morsels = scan.morsels(|part| is_counted.get(part) != Some(&true));
    // Groups of a morsel may be as large as the morsel: hold few of them at once.
    let few = options.tasks.parallelism().max(1) * 4;
    let wave_max = if stage.keys.is_empty() { WAVE_MAX } else { few };
    let job = |morsel: &_| {
        let (mut groups, mut charge) = (Groups::new(stage), budget.charge());
        if counts_rows {
            let counts = scan.count(morsel)?;
            groups.add_rows(counts.rows_passed);
            return Ok((groups, counts, charge));
        }
        let counts = scan.run(morsel, |rows, mask| {
            groups.update(rows, &mask)?;
            charge.set(groups.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((groups, counts, charge))
    };
    in_waves(options, &morsels, wave_max, job, |(other, more, _charge)| {
        counts += more;
        groups.merge(other);
        held.set(groups.bytes())?;
        Ok(ControlFlow::Continue(()))
    })?;
    let batches = groups.finish()?;
    Ok((Materialised::new(&stage.types(), batches)?, counts))
}
