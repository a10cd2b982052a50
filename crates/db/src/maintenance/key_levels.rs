//! Merging segments whose rows lie in the order of the key.
//!
//! ```text
//!   base      ├──── a ────┤├──── b ────┤├──── c ────┤     disjoint ranges of keys
//!   overlays      ├─────────── d ───────────┤             at most four; each is searched, too
//!                      ├──── e ────┤
//! ```
//!
//! Sealed groups come as overlays; several segments that one merge wrote are one of them. Past four
//! they become one, or, once they have a quarter of the rows of the base segments that they
//! overlap, they are merged with these. Overlays that have as many rows as the base, such as the
//! segments of a load, are merged with it at once: a row is rewritten a few times in all, once for
//! each time that the table doubles, and a range of keys is looked for in few places.

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
    holds_through: u64,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

impl Ranged {
    fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.greatest && other.least <= self.greatest
    }

    /// Keys of the one lie between keys of the other: more than that one ends where the other
    /// begins, as the outputs of one merge may, with versions of one key.
    fn lies_among(&self, other: &Self) -> bool {
        self.least < other.greatest && other.least < self.greatest
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
        let holds_through = match unit {
            Unit::Segment(segment) => segment.holds_through(),
            Unit::Group(_) => unit.id(),
        };
        ranged.push(Ranged { unit: unit.clone(), holds_through, least, greatest });
    }
    Ok(ranged)
}

/// True when two segments of a table ordered by key may have the same keys.
pub(super) fn overlap(table: &TableCore, units: &[Unit]) -> Result<bool> {
    let mut ranged = ranged(table, units)?;
    ranged.sort_by(|a, b| a.least.cmp(&b.least));
    Ok(ranged.windows(2).any(|pair| matches!(pair, [a, b] if a.overlaps(b))))
}

/// In how many places a key is looked for at the most, among segments with the newest commit that
/// each holds and its range of keys. What one merge wrote holds one commit and is disjoint: it is
/// one place, however many segments its size took, so that merging it alone is never due again.
fn places(mut segments: Vec<(u64, &[u8], &[u8])>) -> usize {
    segments.sort_unstable();
    let by_merge = segments.chunk_by(|a, b| a.0 == b.0);
    let count = by_merge.map(|own| {
        // Versions of one key may end one segment and begin the next.
        let overlaps = own.windows(2).any(|pair| matches!(pair, [a, b] if a.2 > b.1));
        if overlaps { own.len() } else { 1 }
    });
    count.sum()
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
    let ranges = overlays.iter().map(|segment| {
        (segment.holds_through, segment.least.as_slice(), segment.greatest.as_slice())
    });
    let is_many = places(ranges.collect()) > OVERLAYS_MAX;
    if !is_many {
        overlays.retain(|overlay| base.iter().any(|segment| overlay.lies_among(segment)));
    }
    base.retain(|segment| overlays.iter().any(|overlay| overlay.overlaps(segment)));
    let sum = |segments: &[Ranged]| segments.iter().map(Ranged::rows).sum::<u64>();
    let (of_base, of_overlays) = (sum(&base), sum(&overlays));
    let fits = of_base + of_overlays <= MERGED_ROWS_MAX;
    let is_due = is_many || fits && of_overlays >= of_base;
    if overlays.is_empty() || !is_due {
        return Ok(Vec::new());
    }
    if fits && of_overlays * BASE_SHARE >= of_base {
        overlays.extend(base);
    }
    let mut picked: Vec<Unit> = overlays.into_iter().map(|segment| segment.unit).collect();
    picked.sort_by_key(Unit::id);
    Ok(picked)
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn what_one_merge_wrote_is_one_place() {
        let merged = [(7, "a", "c"), (7, "d", "f"), (7, "g", "k")];
        let loaded = [(9, "a", "f"), (9, "b", "k")];
        let bytes = |all: &[(u64, &'static str, &'static str)]| {
            places(all.iter().map(|(at, a, b)| (*at, a.as_bytes(), b.as_bytes())).collect())
        };
        assert_eq!(bytes(&merged), 1);
        let versions = [(7, "a", "k"), (7, "k", "k"), (7, "k", "k"), (7, "k", "z")];
        assert_eq!(bytes(&versions), 1, "versions of one key");
        assert_eq!(bytes(&loaded), 2, "they have keys of one range");
        assert_eq!(bytes(&[&merged[..], &loaded].concat()), 3);
    }
}
