//! How versions lead back to each other once those between them are gone.
//!
//! ```text
//!   before    N ──► M3 ──► M2 ──► M1 ──► O       each names the version that it replaced
//!   after     N ────────────────────────► O      no reader sees M1 to M3
//! ```
//!
//! Where N is rewritten, too, it names O from then on. Where N lies elsewhere it goes on naming M3,
//! whose forwarding leads to O, until it is led on to O itself. Nothing names M2 and M1 any more,
//! so that nothing is kept for them.

use esker_log::sabotage::Bug;

use super::RewritePlan;
use crate::forwarding::RowWords;
use crate::location::{Location, row_word};
use crate::view::{Resolved, RowGroup, View};
use crate::{Error, Result};

/// Some row groups on their way to others.
pub(super) struct Lineage<'a> {
    pub plan: &'a RewritePlan,
    /// What has the inputs, and where older ones went.
    pub view: &'a View,
    /// For each row of each input, the word of its new location; 0 when it is dropped.
    pub targets: &'a [Vec<u64>],
}

impl Lineage<'_> {
    /// The version that a row leads back to: the newest older one that is kept.
    pub fn older(&self, row_group: &RowGroup, row: usize) -> Result<Option<Location>> {
        let mut named = row_group.replaced(row);
        loop {
            let Some(location) = named else { return Ok(None) };
            let (found, row) = match self.view.link_previous(location) {
                Resolved::Row(found, row) => (found, row),
                // A reader that comes here reads between a delete and the next insert of the key,
                // or all see what names it.
                Resolved::Gone | Resolved::Unknown => return Ok(None),
            };
            let Some(input) = self.input(found) else {
                return Ok(Some(Location::new(found.id(), row)));
            };
            match self.target(input, row)? {
                0 if Bug::DroppedVersionCutsChain.is_planted() => return Ok(None),
                0 => named = found.replaced(row),
                word => return Ok(Location::from_word(word)),
            }
        }
    }

    /// True when versions are dropped that died after the oldest commit that somebody reads.
    pub fn drops_between(&self) -> Result<bool> {
        for (input, row_group) in self.plan.inputs.iter().enumerate() {
            if row_group.dead_count() == 0 {
                continue;
            }
            for row in 0..row_group.row_count() {
                if self.is_between(input, row_group, row)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What dropped versions of each input lead back to, where others than inputs name them.
    pub fn older_of_dropped(&self) -> Result<Vec<RowWords>> {
        let named = self.named_by_inputs();
        let mut all = Vec::with_capacity(named.len());
        for ((input, row_group), named) in self.plan.inputs.iter().enumerate().zip(&named) {
            let mut words = RowWords::new();
            for row in 0..row_group.row_count() {
                if self.is_between(input, row_group, row)?
                    && !has(named, row)
                    && let Some(older) = self.older(row_group, row)?
                {
                    words.push((row_word(row), older.word()));
                }
            }
            all.push(words);
        }
        Ok(all)
    }

    /// Which rows of each input are named by rows of inputs, one bit each.
    fn named_by_inputs(&self) -> Vec<Vec<u64>> {
        let bits = |row_group: &RowGroup| vec![0u64; row_group.row_count().div_ceil(64)];
        let mut named: Vec<Vec<u64>> = self.plan.inputs.iter().map(bits).collect();
        for row_group in &self.plan.inputs {
            for location in (0..row_group.row_count()).filter_map(|row| row_group.replaced(row)) {
                let Resolved::Row(found, row) = self.view.link_previous(location) else { continue };
                let rows = self.input(found).and_then(|input| named.get_mut(input));
                if let Some(word) = rows.and_then(|rows| rows.get_mut(row / 64)) {
                    *word |= 1 << (row % 64);
                }
            }
        }
        named
    }

    fn is_between(&self, input: usize, row_group: &RowGroup, row: usize) -> Result<bool> {
        Ok(self.target(input, row)? == 0 && row_group.deleted(row) > self.plan.readers.oldest())
    }

    fn input(&self, row_group: &RowGroup) -> Option<usize> {
        self.plan.inputs.iter().position(|input| input.id() == row_group.id())
    }

    fn target(&self, input: usize, row: usize) -> Result<u64> {
        let target = self.targets.get(input).and_then(|targets| targets.get(row));
        target.copied().ok_or_else(|| {
            Error::corrupt(format!("nothing says where row {row} of input {input} goes"))
        })
    }
}

fn has(bits: &[u64], row: usize) -> bool {
    bits.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
}
