//! The rows of a group in the order in which they arrived, that of their row ids.

use std::ops::Range;

use super::Group;

impl Group {
    /// Whether a row may have a greater row id than one; false is sure. Updated rows have those of
    /// before, so the last run of inserted ones decides; how long it is, the rows behind it bound.
    pub(crate) fn may_have_ids_after(&self, row_id: u64) -> bool {
        let last = self.fresh.len().checked_sub(1).and_then(|last| self.fresh.get(last));
        match last {
            Some([first, id]) => {
                let rows = (self.row_count() as u64).saturating_sub(first);
                id.saturating_add(rows) > row_id.saturating_add(1)
            }
            None => self.row_count() > 0,
        }
    }

    /// Among its first rows the runs of those with greater row ids than one: which rows, and the
    /// row id of the first. Each run has rising row ids; those of updated rows lie between.
    pub(crate) fn runs_after_id(
        &self,
        row_id: u64,
        rows: usize,
    ) -> impl Iterator<Item = (Range<usize>, u64)> {
        let count = self.row_ids.len();
        let end_of = move |at: usize| match self.row_ids.get(at + 1) {
            // default: a first row beyond what a usize counts is beyond these rows
            Some([first, _]) => usize::try_from(first).unwrap_or(rows).min(rows),
            None => rows,
        };
        (0..count).filter_map(move |at| {
            let [first, id] = self.row_ids.get(at)?;
            let (start, end) = (usize::try_from(first).ok()?, end_of(at));
            let skipped = usize::try_from(row_id.saturating_add(1).saturating_sub(id)).ok()?;
            let start = start.checked_add(skipped)?;
            let rows = start..end;
            (row_id < u64::MAX && !rows.is_empty()).then(|| (rows, id + skipped as u64))
        })
    }
}
