//! What reading costs, in nanoseconds on one core, to choose between plans of equal answers.
//!
//! These are rounded orders of magnitude, not yet measured side by side: what matters is their
//! ratio. A weight of 1 is a range of numbers; see `Predicate::weight`.

use crate::ZONE_ROWS;

/// Testing one row for a condition of weight 1, as part of a whole batch.
const TEST_NS: f64 = 0.15;

/// Testing one row out of many that are not looked at.
const TEST_ALONE_NS: f64 = 2.0;

/// Reading an entry of a run and noting its row.
const ENTRY_NS: f64 = 1.5;

/// Starting on a batch: its columns, its visible rows.
const BATCH_NS: f64 = 250.0;

/// Looking up a key, where nothing of its row is in the caches.
const KEY_NS: f64 = 400.0;

/// Looking up some keys, and testing the rows that have them.
pub(super) fn keys_ns(keys: usize, weight: u32) -> f64 {
    let each = KEY_NS + BATCH_NS + TEST_ALONE_NS * f64::from(weight);
    keys as f64 * each
}

/// Testing all of some rows.
pub(super) fn scan_ns(rows: usize, weight: u32) -> f64 {
    let batches = rows.div_ceil(ZONE_ROWS) as f64;
    rows as f64 * TEST_NS * f64::from(weight) + batches * BATCH_NS
}

/// Reading some entries of runs, and testing the candidates that they leave out of `rows` rows.
pub(super) fn lookup_ns(entries: usize, candidates: f64, rows: usize, weight: u32) -> f64 {
    entries as f64 * ENTRY_NS + tests_ns(candidates, rows, weight)
}

/// Testing some of `rows` rows that lie anywhere.
pub(super) fn tests_ns(candidates: f64, rows: usize, weight: u32) -> f64 {
    let batches = candidates.min(rows.div_ceil(ZONE_ROWS) as f64);
    let alone = candidates * TEST_ALONE_NS;
    let together = rows as f64 * TEST_NS;
    batches * BATCH_NS + alone.min(together) * f64::from(weight)
}
