//! What each step of a query met and took.

use esker_vfs::Clock;

use super::scan::ScanCounts;
use crate::Options;
use crate::Statistics;
use crate::bind::{Projection, Stage};

/// The steps of a query that has run.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) steps: Vec<Step>,
    pub(crate) elapsed_ns: u64,
    started_ns: u64,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) counts: ScanCounts,
    pub(crate) rows_out: u64,
    pub(crate) elapsed_ns: u64,
    /// Bytes that it wrote to temporary files.
    pub(crate) spilled_bytes: u64,
}

/// When a step began, and what had been written to temporary files by then.
pub(super) struct StepStart {
    ns: u64,
    spilled_bytes: u64,
}

impl StepStart {
    pub(super) fn now(options: &Options) -> Self {
        Self { ns: options.clock.monotonic_ns(), spilled_bytes: options.spilled_bytes() }
    }

    /// The step that has ended.
    pub(super) fn ended(self, counts: ScanCounts, rows_out: u64, options: &Options) -> Step {
        let elapsed_ns = options.clock.monotonic_ns() - self.ns;
        let spilled_bytes = options.spilled_bytes() - self.spilled_bytes;
        Step { counts, rows_out, elapsed_ns, spilled_bytes }
    }
}

impl Profile {
    pub(super) fn start(clock: &dyn Clock) -> Self {
        Self { steps: Vec::new(), elapsed_ns: 0, started_ns: clock.monotonic_ns() }
    }

    /// That of rows that were only read, by what another step does with them.
    pub(crate) fn of_scan(counts: ScanCounts) -> Self {
        let (rows_out, elapsed_ns, spilled_bytes) = (counts.rows_passed, 0, 0);
        let steps = vec![Step { counts, rows_out, elapsed_ns, spilled_bytes }];
        Self { steps, elapsed_ns: 0, started_ns: 0 }
    }

    /// How many rows came out.
    pub(crate) fn rows_out(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.rows_out)
    }

    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(super) fn finish(&mut self, clock: &dyn Clock) {
        self.elapsed_ns = clock.monotonic_ns() - self.started_ns;
    }

    /// The figures of the first step, which reads the table, and the whole time.
    pub(crate) fn statistics(&self) -> Statistics {
        let counts = self.steps.first().map(|step| step.counts).unwrap_or_default();
        Statistics {
            rows_scanned: counts.rows_scanned,
            zones: counts.zones,
            zones_pruned: counts.zones_pruned,
            elapsed_ns: self.elapsed_ns,
        }
    }
}

/// What a grouping step is called.
pub(crate) fn stage_name(stage: &Stage) -> &'static str {
    if stage.keys.is_empty() { "aggregate" } else { "group" }
}

/// What the last step is called.
pub(crate) fn projection_name(projection: &Projection) -> &'static str {
    match (projection.order.is_empty(), projection.limit) {
        (true, None) => "project",
        (true, Some(_)) => "limit",
        (false, None) => "sort",
        (false, Some(_)) => "top",
    }
}
