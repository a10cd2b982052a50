//! Aggregates of any range of rows, out of those of 16, 256, 4,096, … rows.
//!
//! ```text
//! rows     ·················|················|················|···
//! level 0  [    node 0     ] [    node 1    ] [    node 2    ] …     16 rows each
//! level 1  [                        node 0                     …     256 rows each
//! ```
//!
//! A range is some rows, some nodes, and some rows again, from the first to the last: aggregates
//! that mind the order of rows get them in order.

use std::ops::Range;

use crate::Result;
use crate::bound::BoundAggregate;
use crate::evaluate::Vector;
use crate::exec::aggregate::Accumulator;
use crate::exec::aggregate::group::GroupIds;
use crate::meter::Meter;

/// How many rows, or nodes, a node has.
const FAN: usize = 16;

/// The aggregates of rows that lie together.
pub(super) struct Tree<'v> {
    vector: Option<&'v Vector<'v>>,
    /// The nodes of each level are groups.
    levels: Vec<Accumulator>,
}

impl<'v> Tree<'v> {
    /// Of so many rows.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn of(
        aggregate: &BoundAggregate,
        vector: Option<&'v Vector<'v>>,
        rows: usize,
        meter: &Meter<'_>,
    ) -> Result<Self> {
        let mut levels: Vec<Accumulator> = Vec::new();
        let mut below = rows;
        while below > 2 * FAN {
            meter.work(below)?;
            let nodes = below.div_ceil(FAN);
            let mut level = Accumulator::new(aggregate);
            level.resize(nodes);
            let numbers = (0..below).map(|i| number(i / FAN));
            match levels.last() {
                None => level.update(&GroupIds::from_numbers(numbers.collect(), nodes), vector),
                Some(last) => {
                    let pairs: Vec<(u32, u32)> = (0u32..).zip(numbers).collect();
                    level.merge(last, &pairs);
                }
            }
            levels.push(level);
            below = nodes;
        }
        Ok(Self { vector, levels })
    }

    /// Adds a range of rows to the one group of an accumulator.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn add_to(
        &self,
        to: &mut Accumulator,
        range: Range<usize>,
        meter: &Meter<'_>,
    ) -> Result<()> {
        self.add(to, 0, range, meter)
    }

    /// Adds what lies below some level: rows for the first, else nodes of the one before.
    fn add(
        &self,
        to: &mut Accumulator,
        level: usize,
        range: Range<usize>,
        meter: &Meter<'_>,
    ) -> Result<()> {
        let (first, last) = (range.start.div_ceil(FAN), range.end / FAN);
        if level >= self.levels.len() || last <= first {
            return self.add_below(to, level, range, meter);
        }
        self.add_below(to, level, range.start..first * FAN, meter)?;
        self.add(to, level + 1, first..last, meter)?;
        self.add_below(to, level, last * FAN..range.end, meter)
    }

    fn add_below(
        &self,
        to: &mut Accumulator,
        level: usize,
        range: Range<usize>,
        meter: &Meter<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        meter.work(range.len())?;
        match level.checked_sub(1).and_then(|below| self.levels.get(below)) {
            None => to.add_range(self.vector, range),
            Some(nodes) => {
                let pairs: Vec<(u32, u32)> = range.map(|node| (number(node), 0)).collect();
                to.merge(nodes, &pairs);
            }
        }
        Ok(())
    }
}

/// Chunks have less than 2^32 rows.
fn number(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(u32::MAX)
}
