//! The rows of a snapshot in the order in which they arrived, that of their row ids.
//!
//! Row groups overlap in row ids where rows were updated: the newest version of a row lies behind
//! those that came after its insert. So the walk merges sequences of rising row ids, a run of a
//! group or the rest of a segment each. A sequence is looked into only when no other one has a
//! lesser row id: for a reader near the end, segments that end before its place cost a comparison,
//! and the others, but for the last, nothing more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::{SnapshotPart, Table, TableSnapshot};
use crate::Result;
use crate::segment::{ArrivedRows, Segment};
use crate::view::RowGroup;

/// A row that is visible: its row id, and where it is.
#[derive(Clone, Copy)]
pub struct ArrivedRow<'s> {
    /// The row id.
    pub row_id: u64,
    /// The part.
    pub part: &'s SnapshotPart,
    /// The row within it.
    pub row: usize,
}

/// The visible rows with greater row ids than one, by rising row id.
pub struct Arrivals<'s> {
    parts: &'s [Arc<SnapshotPart>],
    after: u64,
    /// It ends before the first row that a later commit has made or changed.
    through: Option<u64>,
    /// It ends before this row id: a later commit has ended the segment that may have it.
    before: u64,
    /// Sequences by the least row id that each may have, which is exact once it is open.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    sequences: Vec<Sequence>,
}

/// Rows of one part by rising row id.
struct Sequence {
    part: usize,
    rows: SequenceRows,
}

enum SequenceRows {
    /// Of a segment that was not looked into.
    Closed,
    Segment(ArrivedRows),
    /// Of a group: row ids are consecutive.
    Run(Range<usize>),
}

impl TableSnapshot {
    /// The visible rows with greater row ids than one, by rising row id, in whatever order they
    /// lie; with a commit, those before the first one that a later commit has made, changed or
    /// deleted.
    #[must_use]
    pub fn rows_after_id(&self, row_id: u64, through: Option<u64>) -> Arrivals<'_> {
        let parts = self.parts();
        let (waiting, sequences) = (BinaryHeap::new(), Vec::new());
        let ends_later = |segment: &&Arc<Segment>| {
            let ended_at = segment.ended_at();
            ended_at.is_some_and(|ended| through.is_some_and(|through| ended > through))
                && segment.row_id_bounds().1 > row_id
        };
        let ending = self.view.segments().filter(ends_later);
        let before = ending.map(|segment| segment.row_id_bounds().0.max(row_id + 1)).min();
        // default: none ends later
        let before = before.unwrap_or(u64::MAX);
        let mut arrivals = Arrivals { parts, after: row_id, through, before, waiting, sequences };
        for (at, part) in parts.iter().enumerate() {
            match part.row_group() {
                RowGroup::Group(group) => {
                    for (rows, id) in group.runs_after_id(row_id, part.row_count()) {
                        arrivals.add(id, at, SequenceRows::Run(rows));
                    }
                }
                RowGroup::Segment(segment) => {
                    let (least, greatest) = segment.row_id_bounds();
                    if part.row_count() > 0 && greatest > row_id {
                        arrivals.add(least.max(row_id + 1), at, SequenceRows::Closed);
                    }
                }
            }
        }
        arrivals
    }
}

impl Table {
    /// Whether there may be rows with greater row ids than one, visible or not; false is sure.
    #[must_use]
    pub fn may_have_rows_after(&self, row_id: u64) -> bool {
        let view = self.view();
        view.row_groups.iter().rev().any(|row_group| match row_group {
            RowGroup::Group(group) => group.may_have_ids_after(row_id),
            RowGroup::Segment(segment) => segment.row_id_bounds().1 > row_id,
        })
    }
}

impl<'s> Arrivals<'s> {
    fn add(&mut self, row_id: u64, part: usize, rows: SequenceRows) {
        self.waiting.push(Reverse((row_id, self.sequences.len())));
        self.sequences.push(Sequence { part, rows });
    }

    /// The next one.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn step(&mut self) -> Result<Option<ArrivedRow<'s>>> {
        while let Some(Reverse((row_id, number))) = self.waiting.pop() {
            let Some(sequence) = self.sequences.get_mut(number) else { continue };
            let Some(part) = self.parts.get(sequence.part) else { continue };
            let row = match &mut sequence.rows {
                SequenceRows::Closed => {
                    let RowGroup::Segment(segment) = part.row_group() else { continue };
                    let rows = segment.rows_after_id(self.after)?;
                    if let Some(first) = rows.first() {
                        let first = segment.row_id(first)?;
                        self.waiting.push(Reverse((first, number)));
                    }
                    sequence.rows = SequenceRows::Segment(rows);
                    continue;
                }
                SequenceRows::Segment(rows) => {
                    let Some(row) = rows.first() else { continue };
                    rows.advance();
                    if let Some(next) = rows.first() {
                        self.waiting.push(Reverse((part.row_group().row_id(next)?, number)));
                    }
                    row
                }
                SequenceRows::Run(rows) => {
                    let Some(row) = rows.next() else { continue };
                    if rows.start < rows.end {
                        self.waiting.push(Reverse((row_id + 1, number)));
                    }
                    row
                }
            };
            let is_later = |through| is_changed_after(part, row, through);
            if row_id >= self.before || self.through.is_some_and(is_later) {
                self.waiting.clear();
                return Ok(None);
            }
            if part.is_visible(row) {
                return Ok(Some(ArrivedRow { row_id, part, row }));
            }
        }
        Ok(None)
    }
}

/// Whether a version of a row is not as it was at a commit.
fn is_changed_after(part: &SnapshotPart, row: usize, commit: u64) -> bool {
    let row_group = part.row_group();
    row_group.created(row) > commit || row_group.deleted(row) > commit
}
