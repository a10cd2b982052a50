//! Merging segments whose rows lie in the order of the key.
//!
//! ```text
//!   base      ├──── a ────┤├──── b ────┤├──── c ────┤     disjoint ranges of keys
//!   overlays      ├─────────── d ───────────┤             at most four; each is searched, too
//!                      ├──── e ────┤
//! ```
//!
//! Sealed groups come as overlays. Past four they become one, or, once they have a quarter of the
//! rows of the base segments that they overlap, they are merged with these: a row is rewritten a
//! few times in all, and a range of keys is looked for in few places.

use esker_table::Table as TableCore;
use esker_table::key_order::KeyForm;
use esker_table::view::Unit;

use crate::Result;

/// Overlays that a table may have before they are merged.
const OVERLAYS_MAX: usize = 4;
/// Overlays are merged with the base when they have one row for this many of it.
const BASE_SHARE: u64 = 4;
/// Rows that are merged at once, at the most: their order is made in memory.
const MERGED_ROWS_MAX: u64 = 32 << 20;

/// A segment and its range of keys.
struct Ranged {
    unit: Unit,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

impl Ranged {
    fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.greatest && other.least <= self.greatest
    }

    fn rows(&self) -> u64 {
        self.unit.row_count() as u64
    }
}

fn ranged(table: &TableCore, units: &[Unit]) -> Result<Vec<Ranged>> {
    let form = KeyForm::of(&table.schema());
    let mut ranged = Vec::with_capacity(units.len());
    for unit in units.iter().filter(|unit| unit.row_count() > 0) {
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        form.read(unit, 0, &mut least)?;
        form.read(unit, unit.row_count() - 1, &mut greatest)?;
        ranged.push(Ranged { unit: unit.clone(), least, greatest });
    }
    Ok(ranged)
}

/// True when two segments of a table ordered by key may have the same keys.
pub(super) fn overlap(table: &TableCore, units: &[Unit]) -> Result<bool> {
    let mut ranged = ranged(table, units)?;
    ranged.sort_by(|a, b| a.least.cmp(&b.least));
    Ok(ranged.windows(2).any(|pair| matches!(pair, [a, b] if a.overlaps(b))))
}

/// The segments to merge next, by age; none while there are few.
pub(super) fn pick(table: &TableCore, units: &[Unit]) -> Result<Vec<Unit>> {
    let mut all = ranged(table, units)?;
    all.sort_by_key(|segment| std::cmp::Reverse(segment.rows()));
    let (mut base, mut overlays): (Vec<Ranged>, Vec<Ranged>) = Default::default();
    for segment in all {
        match base.iter().any(|other| other.overlaps(&segment)) {
            true => overlays.push(segment),
            false => base.push(segment),
        }
    }
    if overlays.len() <= OVERLAYS_MAX {
        return Ok(Vec::new());
    }
    base.retain(|segment| overlays.iter().any(|overlay| overlay.overlaps(segment)));
    let sum = |segments: &[Ranged]| segments.iter().map(Ranged::rows).sum::<u64>();
    let (of_base, of_overlays) = (sum(&base), sum(&overlays));
    let fits = of_base + of_overlays <= MERGED_ROWS_MAX;
    if fits && of_overlays * BASE_SHARE >= of_base {
        overlays.extend(base);
    }
    let mut picked: Vec<Unit> = overlays.into_iter().map(|segment| segment.unit).collect();
    picked.sort_by_key(Unit::id);
    Ok(picked)
}
