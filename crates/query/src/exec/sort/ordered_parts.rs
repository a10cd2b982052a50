//! The parts of a source, each read in the way that gives the first rows of an order soonest.
//!
//! | a part | is read |
//! |---|---|
//! | with a run in the order | by a [`IndexOrderScan`], several of them side by side |
//! | with its rows in the order | from where it begins ([`row_order`]) |
//! | with zone maps of the first key | zone by zone ([`ZoneOrder`]), after all others |
//! | any other | from first to last |
//!
//! Whatever the way, one sorter decides: a way only leaves out rows that come too late.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::bind::Projection;
use crate::budget::Charge;
use crate::exec::scan::{Morsel, Scan, ScanCounts, WAVE_MAX, in_growing_waves};
use crate::exec::sort::index_order_scan::{IndexOrderRows, IndexOrderScan};
use crate::exec::sort::row_keys::{add_keys, location_part};
use crate::exec::sort::zone_order::{LastWanted, ZoneOrder};
use crate::exec::sort::{Location, Sorter, index_order_merge, offset_skip, row_order, zone_order};
use crate::{Result, ZONE_ROWS};
use esker_format::Room;

/// Locations of rows in their order, with what they take of the budget, and what was met.
pub(crate) type FirstRows<'b> = (Vec<Location>, Charge<'b>, ScanCounts);

/// How each part is read for an order.
pub(crate) struct OrderedParts<'s, 'a> {
    scan: &'s Scan<'a>,
    projection: &'a Projection,
    /// By part, the walk through a run.
    walks: Vec<Option<IndexOrderScan<'s, 'a>>>,
    /// Whether a part has its rows in the order.
    in_row_order: Vec<bool>,
    /// The zones of the parts that are read by them.
    zones: ZoneOrder<'a>,
    /// The other parts, and those that are read in one.
    morsels: Vec<Morsel>,
    /// How many rows before the offset are passed over.
    skipped: usize,
}

impl<'s, 'a> OrderedParts<'s, 'a> {
    /// Chooses.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn choose(scan: &'s Scan<'a>, projection: &'a Projection) -> Result<Self> {
        let parts = || 0..scan.source.part_count();
        let choose = |part| IndexOrderScan::choose(scan, projection, part);
        let mut walks = parts().map(choose).collect::<Result<Vec<_>>>()?;
        // default: more than there are is all of them
        let offset = usize::try_from(projection.offset).unwrap_or(usize::MAX);
        let is_other = |part: &usize| walks.get(*part).is_some_and(Option::is_none);
        let other_rows = parts().filter(is_other).map(|part| scan.source.part(part).row_count());
        let other_rows: usize = other_rows.sum();
        let skipped = offset_skip::skip(&mut walks, offset, other_rows)?;
        let in_row_order: Vec<_> =
            parts().map(|part| row_order::is_order_of(scan, projection, part)).collect();
        let is_one = |part: usize| {
            walks.get(part).is_some_and(Option::is_some) || in_row_order.get(part) == Some(&true)
        };
        let by_zone = |part: &usize| !is_one(*part) && zone_order::is_for(scan, projection, *part);
        let zoned: BTreeSet<usize> = parts().filter(by_zone).collect();
        let zones = ZoneOrder::new(scan, &projection.order, &zoned);
        let mut morsels = Vec::new();
        for part in parts().filter(|part| !zoned.contains(part)) {
            if is_one(part) {
                morsels.push(Morsel { part, rows: 0..scan.source.part(part).row_count() });
            } else {
                morsels.extend(scan.morsels(|of| of == part));
            }
        }
        Ok(Self { scan, projection, walks, in_row_order, zones, morsels, skipped })
    }

    /// Sorts the keys and locations of the rows that are wanted, in memory.
    ///
    /// # Errors
    /// `OverBudget` when they do not fit, and what reading fails with.
    pub(crate) fn first_rows(&self) -> Result<FirstRows<'a>> {
        let (projection, options) = (self.projection, self.scan.options);
        let wanted = self.wanted();
        let mut sorter = Sorter::of(wanted, &projection.order);
        let (mut held, mut counts) = (options.memory().charge(), ScanCounts::default());
        let (together, rest) = side_by_side(&self.walks, wanted, &self.morsels)?;
        if let Some(walked) = together {
            counts += walked.counts;
            sorter.take(walked.sorter);
        }
        let few = options.tasks.parallelism().max(1);
        let wave_max = if wanted <= ZONE_ROWS { WAVE_MAX } else { few * 4 };
        let is_walked = self.walks.iter().any(Option::is_some);
        let waves = (if is_walked { few } else { wave_max }, wave_max);
        let mut add = |sorter: &mut Sorter, (other, more, _charge): Sorted<'_>| {
            counts += more;
            sorter.take(other);
            held.set(sorter.bytes())
        };
        let whole = |morsel: &Morsel| self.sorted(morsel, None);
        in_growing_waves(options, &rest, waves, whole, |found| {
            add(&mut sorter, found).map(ControlFlow::Continue)
        })?;
        let zone = |morsel: &Morsel, last: Option<&LastWanted>| self.sorted(morsel, last);
        let left_out = self.zones.read(self.scan, &mut sorter, zone, add)?;
        counts += left_out;
        let skipped = usize::try_from(projection.offset).unwrap_or(usize::MAX);
        let locations = sorter.finish(skipped - self.skipped, options)?;
        held.set(locations.len() * size_of::<Location>())?;
        Ok((locations, held, counts))
    }

    /// How many rows are wanted, those before the offset included that are not passed over.
    fn wanted(&self) -> usize {
        match self.projection.rows_wanted() {
            usize::MAX => usize::MAX,
            wanted => wanted - self.skipped,
        }
    }

    /// Sorts the keys of a morsel, but for rows behind the last that is wanted.
    fn sorted(&self, morsel: &Morsel, last: Option<&LastWanted>) -> Result<Sorted<'a>> {
        let (scan, projection) = (self.scan, self.projection);
        let part = location_part(morsel)?;
        let mut charge = scan.options.memory().charge();
        let walked = match self.walks.get(morsel.part) {
            Some(Some(walk)) => walk.rows(self.wanted())?,
            _ if self.in_row_order.get(morsel.part) == Some(&true) => {
                row_order::rows(scan, projection, morsel.part)?
            }
            _ => None,
        };
        if let Some(walked) = walked {
            charge.set(walked.sorter.bytes())?;
            return Ok((walked.sorter, walked.counts, charge));
        }
        let sorter = Sorter::of(self.wanted(), &projection.order);
        let mut sorter = sorter.up_to(last.map(|last| &last.bar));
        let room = Room::default();
        let counts = scan.run((morsel, &room), |rows, mut mask| {
            if let Some(last) = last {
                let range = rows.start()..rows.start() + rows.len();
                last.keep(scan.source.part(morsel.part), range, &mut mask)?;
            }
            add_keys(&mut sorter, projection, rows, &mask.rows(), part)?;
            charge.set(sorter.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        sorter.prune();
        Ok((sorter, counts, charge))
    }
}

/// Keys of a morsel, what was met, and what they take of the budget.
type Sorted<'b> = (Sorter, ScanCounts, Charge<'b>);

/// What walks through several parts find side by side, and the morsels that are left to be read.
fn side_by_side(
    walks: &[Option<IndexOrderScan<'_, '_>>],
    wanted: usize,
    morsels: &[Morsel],
) -> Result<(Option<IndexOrderRows>, Vec<Morsel>)> {
    let is_walked = |morsel: &&Morsel| walks.get(morsel.part).is_some_and(Option::is_some);
    let other: Vec<_> = morsels.iter().filter(|m| !is_walked(m)).cloned().collect();
    // An open group may lie beside segments.
    let together = if other.len() > 1 { None } else { index_order_merge::rows(walks, wanted)? };
    let rest = if together.is_some() { other } else { morsels.to_vec() };
    Ok((together, rest))
}
