//! The first rows of an order, out of zones of which zone maps know where they begin.
//!
//! ```text
//! ORDER BY id LIMIT 2        least id    rows of the zone
//!   zone 1                       3       3 9 4        read: 3 4 are the best so far
//!   zone 0                       4       8 4 6        read: a 4 may come before that of zone 1
//!   zone 2                       5       7 5 8        not read: 5 comes after 3 4, as do all later
//! ```
//!
//! Zones are read in the order of the least key that their rows may have, in waves that grow, until
//! enough rows come before that of the next zone. Where rows have come in the order of their keys,
//! as with rising ids, that is one zone, or as many as hold what is wanted; where keys are random,
//! each of the first rows lies in a zone of its own.
//!
//! Invariant: `least` of a zone is not greater, as bytes, than the key of any of its rows.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use esker_format::{DataType, Room};
use esker_vfs::sabotage::Bug;

use crate::access_path::Access;
use crate::bind::Projection;
use crate::bind::keyset::side;
use crate::bound::{Node, OrderKey};
use crate::evaluate::{Mask, Rows};
use crate::exec::scan::{Morsel, Scan, ScanCounts, WAVE_MAX, in_growing_waves};
use crate::exec::sort::Sorter;
use crate::exec::sort::sorter::{Bar, encode_value};
use crate::filter::{CodeTables, keep};
use crate::predicate::Predicate;
use crate::{Fragment, IndexUse, Limits, Result, ZONE_ROWS};

/// Zones, those first whose rows may come first.
pub(crate) struct ZoneOrder<'a> {
    order: &'a [OrderKey],
    zones: Vec<BoundedZone>,
    /// How many more there are whose rows no one sees.
    hidden: u64,
}

/// Rows of one zone, and what their keys are not less than.
struct BoundedZone {
    least: Vec<u8>,
    morsel: Morsel,
}

/// True when a part is read zone by zone in the order requested: only some rows are wanted, and
/// zone maps know the first key.
pub(crate) fn is_for(scan: &Scan<'_>, projection: &Projection, part: usize) -> bool {
    let order = projection.order.as_slice();
    // A scan of all zones meets rows that may fail.
    let may_fail = scan.predicate.may_fail() || order.iter().any(|key| key.bound.may_fail());
    !may_fail
        && scan.options.indexes != IndexUse::Never
        && projection.rows_wanted() < usize::MAX
        && matches!(scan.plan.part(part).access, Access::Scan)
        && !least_key(scan.source.part(part), 0, order).is_empty()
}

impl<'a> ZoneOrder<'a> {
    /// The zones of some parts.
    pub(crate) fn new(scan: &Scan<'_>, order: &'a [OrderKey], parts: &BTreeSet<usize>) -> Self {
        let (mut zones, mut hidden) = (Vec::new(), 0);
        for index in parts.iter().copied() {
            let part = scan.source.part(index);
            let step = part.rows_at_once().clamp(1, ZONE_ROWS);
            for zone in 0..part.row_count().div_ceil(ZONE_ROWS) {
                let end = part.row_count().min((zone + 1) * ZONE_ROWS);
                if part.first_shown(zone * ZONE_ROWS..end) == end {
                    hidden += 1;
                    continue;
                }
                let least = least_key(part, zone, order);
                for start in (zone * ZONE_ROWS..end).step_by(step) {
                    let morsel = Morsel { part: index, rows: start..end.min(start + step) };
                    zones.push(BoundedZone { least: least.clone(), morsel });
                }
            }
        }
        if !Bug::KeyOrderIgnoresOverlap.is_planted() {
            zones.sort_by(|a, b| a.least.cmp(&b.least));
        }
        Self { order, zones, hidden }
    }

    /// Runs `job` on zones with the last row that is wanted so far, and adds what it finds to
    /// `sorter` by `add`, until no later zone can have a row that is wanted.
    ///
    /// # Errors
    /// What the two fail with; when the query is to end.
    pub(crate) fn read<T: Send>(
        &self,
        scan: &Scan<'_>,
        sorter: &mut Sorter,
        job: impl Fn(&Morsel, Option<&LastWanted>) -> Result<T> + Sync,
        mut add: impl FnMut(&mut Sorter, T) -> Result<()>,
    ) -> Result<ScanCounts> {
        let (mut rest, mut counts) = (self.zones.as_slice(), ScanCounts::default());
        let mut most = 1;
        loop {
            let mut wave = Vec::new();
            while wave.len() < most
                && let Some((next, later)) = rest.split_first()
                && !sorter.has_all_before(&next.least)
            {
                rest = later;
                match scan.left_out(&next.morsel) {
                    Some(met) => counts += met,
                    None => wave.push(next.morsel.clone()),
                }
            }
            if wave.is_empty() {
                break;
            }
            let last =
                sorter.bar().map(|bar| LastWanted::new(bar, scan, self.order)).transpose()?;
            let job = |morsel: &Morsel| job(morsel, last.as_ref());
            in_growing_waves(scan.options, &wave, (most, most), job, |found| {
                add(sorter, found).map(ControlFlow::Continue)
            })?;
            most = (most * 2).min(WAVE_MAX);
        }
        let left = rest.len() as u64 + self.hidden;
        counts += ScanCounts { zones: left, zones_pruned: left, ..ScanCounts::default() };
        Ok(counts)
    }
}

/// The last row that is wanted so far, and what holds of all rows before it.
pub(crate) struct LastWanted {
    pub(crate) bar: Bar,
    condition: Predicate,
    tables: CodeTables,
    limits: Limits,
}

impl LastWanted {
    fn new(bar: &Bar, scan: &Scan<'_>, order: &[OrderKey]) -> Result<Self> {
        let location = bar.1;
        let (part, row) = (scan.source.part(location.part as usize), location.row as usize);
        let condition = match order.first() {
            Some(key) if let Node::Field(position) = key.bound.node => {
                let room = Room::default();
                let value = part.value(position, row, &room)?.to_owned();
                side(key, &value, false)
            }
            _ => None,
        };
        let condition = Predicate::compile(condition.as_ref());
        let (tables, limits) = (CodeTables::default(), scan.options.limits().clone());
        Ok(Self { bar: bar.clone(), condition, tables, limits })
    }

    /// Leaves those rows of a batch that may come before it.
    ///
    /// # Errors
    /// When a column cannot be read.
    pub(crate) fn keep(
        &self,
        part: &dyn Fragment,
        rows: Range<usize>,
        mask: &mut Mask,
    ) -> Result<()> {
        let room = Room::default();
        let rows = Rows::new(part, rows, &self.limits, &room);
        keep(&self.condition, &rows, mask, &self.tables)
    }
}

/// What the keys of the rows of a zone are not less than, as far as zone maps tell.
fn least_key(part: &dyn Fragment, zone: usize, order: &[OrderKey]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in order {
        let data_type = key.bound.data_type();
        let Node::Field(position) = key.bound.node else { break };
        if matches!(data_type, DataType::Json | DataType::Enum) {
            break;
        }
        let Some(known) = part.zone(position, zone) else { break };
        let (has_nulls, has_values) = (known.null_count > 0, !known.least.is_null());
        if has_nulls && (key.nulls_first || !has_values) {
            encode_value(&mut bytes, key, data_type, esker_format::ValueRef::Null);
            if has_values {
                break;
            }
            continue;
        }
        let first = if key.descending { known.greatest } else { Some(known.least) };
        let Some(first) = first else { break };
        encode_value(&mut bytes, key, data_type, first);
        // What comes after a key says something only where all rows have that key.
        let is_one = known.greatest.is_some_and(|greatest| greatest.compare(known.least).is_eq());
        if has_nulls || !is_one {
            break;
        }
    }
    bytes
}
