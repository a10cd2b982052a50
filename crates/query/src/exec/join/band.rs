//! Pairs of which a number of the right lies between two of the left: those alone are pairs of the
//! product.
//!
//! ```text
//! left from..until   2..4  9..9  3..7       right, in the order of its number   1 3 3 5 8
//!                                           rows of it for each of the left     1..3 –  1..4
//! ```
//!
//! The conditions are tested of these pairs all the same: some ends are left out by `<`.

use std::ops::ControlFlow;

use esker_format::order_key::{Key, key};
use esker_format::{Batch, Room};

use super::Input;
use super::build::{push_locations, vectors};
use super::fetched::Fetched;
use crate::access_path::{Goal, ScanPlan};
use crate::bound::Bound;
use crate::evaluate::Picked;
use crate::exec::scan::{Morsel, Scan, in_waves};
use crate::exec::sort::Location;
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::{Options, Result, ZONE_ROWS};

/// What the number of the right lies between; all three compare as they are.
pub(crate) struct Band {
    /// A field of the right.
    pub(crate) number: Bound,
    /// What of the left is least, and greatest.
    pub(crate) ends: [Bound; 2],
}

/// Which rows of the right belong to each row of the left.
#[derive(Debug)]
pub(super) struct Bands {
    /// The number of the first pair of each row of the left, and of what would come after the last.
    pub(super) starts: Vec<usize>,
    /// The first row of the right of each.
    pub(super) firsts: Vec<u32>,
}

/// Rows of one side, and numbers of theirs.
struct Numbered {
    locations: Vec<Location>,
    /// For each expression, the number of each row.
    numbers: Vec<Vec<Option<Key>>>,
}

impl Bands {
    /// The rows of the left that have a pair, the rows of the right in order, and what belongs
    /// together. `rights` are the columns of the right.
    ///
    /// # Errors
    /// `OverBudget`, and what reading fails with.
    pub(super) fn new(
        band: &Band,
        (left, right): (&Input<'_>, &Input<'_>),
        rights: &Fetched,
        options: &Options,
    ) -> Result<(Vec<Location>, Vec<Batch>, Self)> {
        let mut charge = options.memory().charge();
        let built = Numbered::new(right, std::slice::from_ref(&band.number), options)?;
        charge.set(built.bytes() * 2)?;
        let numbers = built.numbers.into_iter().flatten();
        let mut order: Vec<(Key, u32)> =
            (0u32..).zip(numbers).filter_map(|(row, number)| Some((number?, row))).collect();
        order.sort_unstable();
        options.expect_time_left()?;
        let probed = Numbered::new(left, &band.ends, options)?;
        charge.set(built.locations.len() * size_of::<(Key, u32)>() + probed.bytes() * 2)?;
        let mut bands = Self { starts: vec![0], firsts: Vec::new() };
        let mut lefts = Vec::new();
        let [least, greatest] = probed.numbers.as_slice() else {
            return Err(crate::Error::invalid("a band has two ends"));
        };
        let mut pairs = 0usize;
        for (location, (least, greatest)) in
            probed.locations.into_iter().zip(least.iter().zip(greatest))
        {
            let (Some(least), Some(greatest)) = (least, greatest) else { continue };
            let first = order.partition_point(|(number, _)| number < least);
            let end = order.partition_point(|(number, _)| number <= greatest);
            if first < end {
                pairs = pairs.saturating_add(end - first);
                lefts.push(location);
                bands.firsts.push(u32::try_from(first).unwrap_or(u32::MAX));
                bands.starts.push(pairs);
            }
        }
        let rows: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
        let batches = rows.chunks(ZONE_ROWS).map(|rows| rights.take(rows));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        Ok((lefts, batches, bands))
    }

    pub(super) fn pair_count(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.firsts.capacity() * 4
    }
}

impl Numbered {
    /// Reads the rows that pass the filter of a side.
    fn new(input: &Input<'_>, exprs: &[Bound], options: &Options) -> Result<Self> {
        let predicate = Predicate::compile(input.filter.as_ref());
        let plan = ScanPlan::new(&predicate, input.source, Goal::ALL, options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(input.source, &predicate, &tables, &plan, options);
        let none = || Self { locations: Vec::new(), numbers: vec![Vec::new(); exprs.len()] };
        let as_they_are = vec![false; exprs.len()];
        let job = |morsel: &Morsel| {
            let mut found = none();
            let room = Room::default();
            scan.run((morsel, &room), |rows, mask| {
                let picked = Picked::of(&mask);
                let selection = picked.selection();
                push_locations(&mut found.locations, morsel.part, rows, selection);
                let vectors = vectors(exprs, &as_they_are, rows, selection)?;
                for (numbers, vector) in found.numbers.iter_mut().zip(&vectors) {
                    let number = |i| (!vector.is_null(i)).then(|| key(vector.value(i)));
                    numbers.extend((0..selection.len()).map(number));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        };
        let few = options.tasks.parallelism().max(1) * 4;
        let (mut all, mut charge) = (none(), options.memory().charge());
        in_waves(options, &scan.morsels(|_| true), few, job, |found: Self| {
            all.locations.extend(found.locations);
            for (numbers, more) in all.numbers.iter_mut().zip(found.numbers) {
                numbers.extend(more);
            }
            charge.set(all.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    fn bytes(&self) -> usize {
        let numbers = self.numbers.iter().map(Vec::capacity).sum::<usize>();
        self.locations.capacity() * size_of::<Location>() + numbers * size_of::<Option<Key>>()
    }
}
