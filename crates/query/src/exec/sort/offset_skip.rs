//! Rows before an offset, passed over by their entries in the runs: none of them is read.
//!
//! ```text
//! OFFSET 12, two parts      entry  0 1 2 3 4 5 6 7 …
//! part 0                           1 2 3 4 5 5 7 9
//! part 1                           2 4 6 8 …          12 / 2 = 6: the sixth of part 0 is the least
//! ```
//!
//! Of the entries at one place in all runs one has the least key: fewer rows than that place, times
//! the number of runs, come before it, so those before it in its own run are all skipped. Rows of
//! other parts may come before it, too: they count in full. This goes on until little is left.
//!
//! Invariant: an entry is skipped only together with all that have its key, and only where fewer
//! rows than are skipped in all come before it, in the order of the query.

use std::ops::Range;

use esker_format::{DataType, Room};

use crate::Result;
use crate::bound::{Node, OrderKey};
use crate::exec::sort::index_order_scan::{IndexOrderScan, ties};
use crate::exec::sort::sorter::encode_value;

/// Fewer rows than these are passed over one by one.
pub(crate) const FEW_ROWS: usize = 256;

/// Takes entries off the front of walks, and returns how many visible rows they have. Parts without
/// a walk have `other_rows`.
///
/// # Errors
/// When a run or a column cannot be read.
pub(crate) fn skip(
    walks: &mut [Option<IndexOrderScan<'_, '_>>],
    offset: usize,
    other_rows: usize,
) -> Result<usize> {
    if !walks.iter().flatten().all(IndexOrderScan::can_skip) {
        return Ok(0);
    }
    let count = walks.iter().flatten().count();
    let mut left = offset;
    loop {
        let may_go = left.saturating_sub(other_rows);
        let place = may_go.checked_div(count).filter(|place| may_go >= FEW_ROWS && *place > 0);
        let Some(place) = place else { return Ok(offset - left) };
        let mut least: Option<(Vec<u8>, usize)> = None;
        for (part, walk) in walks.iter().enumerate() {
            let Some(key) = walk.as_ref().map(|walk| walk.key_at(place)).transpose()?.flatten()
            else {
                continue;
            };
            if least.as_ref().is_none_or(|(known, _)| key < *known) {
                least = Some((key, part));
            }
        }
        let Some((_, part)) = least else { return Ok(offset - left) };
        let Some(Some(walk)) = walks.get_mut(part) else { return Ok(offset - left) };
        let before = walk.before(place)?;
        if before.is_empty() {
            return Ok(offset - left);
        }
        left -= walk.pass_over(before)?;
        // A scan in place of a walk would meet what is passed over.
        walks.iter_mut().flatten().for_each(|walk| walk.entries_max = f64::INFINITY);
    }
}

impl IndexOrderScan<'_, '_> {
    /// True where the entries are in the order of the query, all of them pass the filter, and what
    /// comes before an entry is known by its place.
    pub(crate) fn can_skip(&self) -> bool {
        let order = &self.projection.order;
        let fields = self.scan.source.schema().fields();
        let has_no_nulls = |position: usize| fields.get(position).is_some_and(|f| !f.nullable);
        let is_known = |key: &OrderKey| match key.bound.node {
            Node::Field(position) => {
                !matches!(key.bound.data_type(), DataType::Json | DataType::Enum)
                    && has_no_nulls(position)
            }
            _ => false,
        };
        let known = self.levels.len() + usize::from(self.row_order.is_some());
        self.is_answered
            && self.projection.after.is_none()
            && known >= order.len()
            && order.iter().take(self.levels.len()).all(is_known)
    }

    /// The entry at a place in the order of the walk.
    fn entry_at(&self, place: usize) -> Option<usize> {
        let last = self.entries.len().checked_sub(1).filter(|last| place <= *last)?;
        Some(self.entries.start + if self.is_backward { last - place } else { place })
    }

    /// The key of the entry at a place, as far as the run knows the order.
    fn key_at(&self, place: usize) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry_at(place) else { return Ok(None) };
        let Some(row) = self.run.rows(entry..entry + 1)?.first().map(|row| *row as usize) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        for key in self.projection.order.iter().take(self.levels.len()) {
            if let Node::Field(position) = key.bound.node {
                let room = Room::default();
                let value = self.part.value(position, row, &room)?;
                encode_value(&mut bytes, key, key.bound.data_type(), value);
            }
        }
        Ok(Some(bytes))
    }

    /// The entries with lesser keys than the one at a place.
    fn before(&self, place: usize) -> Result<Range<usize>> {
        let Some(entry) = self.entry_at(place) else { return Ok(0..0) };
        let mut same = self.entries.clone();
        for level in self.levels.clone() {
            same = ties(self.part, self.run, &same, entry, level)?;
        }
        Ok(match self.is_backward {
            false => self.entries.start..same.start,
            true => same.end..self.entries.end,
        })
    }

    /// Takes some entries off, and returns how many of their rows are visible.
    fn pass_over(&mut self, before: Range<usize>) -> Result<usize> {
        let rows = match self.part.visible_count() == Some(self.part.row_count()) {
            true => before.len(),
            false => self.run.count_visible(before.clone())?,
        };
        self.entries = match self.is_backward {
            false => before.end..self.entries.end,
            true => self.entries.start..before.start,
        };
        Ok(rows)
    }
}
