//! A grouping step: a scan becomes groups, morsel by morsel, merged in order.

use std::ops::ControlFlow;

use super::budget::{Budget, Charge};
use super::group::Groups;
use super::materialised::Materialised;
use super::scan::{Scan, ScanCounts, WAVE_MAX, in_waves};
use crate::Result;
use crate::bind::Stage;
use crate::options::Options;
use crate::predicate::Predicate;

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
    let counts_rows = stage.keys.is_empty() && stage.aggregates.iter().all(|a| a.operand.is_none());
    let counts_all = counts_rows && *scan.predicate == Predicate::Constant(true);
    if counts_all {
        for part in 0..scan.source.part_count() {
            let visible = scan.source.part(part).visible_count().unwrap_or_default();
            groups.add_rows(visible as u64);
            counts.rows_passed += visible as u64;
        }
    }
    let morsels = scan.morsels(|part| !counts_all || part.visible_count().is_none());
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
