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
//!
//! The order of the rows of a merge is made in memory, so that it takes a limited number of them.
//! Base and overlays of more rows are merged piece by piece, from the least key up, in a *sweep*:
//!
//! ```text
//!   before    ├─ a ─┤├─ b ─┤├─ c ─┤├─ f ─┤
//!              ├──────────── d ───────────┤
//!   a, b, d   ├─ g ─┤├─ h ─┤├─ c ─┤├─ f ─┤                g and h are done
//!                           ├───── i ─────┤
//!   c, i      ├─ g ─┤├─ h ─┤├ k ┤├ l ┤─ f ─┤              and so on
//! ```
//!
//! Invariants
//! 1. What a piece writes is disjoint, and lies within the keys that its inputs, which overlap,
//!    cover without a gap: nowhere do more segments overlap than before, and somewhere fewer. So a
//!    sweep ends, whatever fits.
//! 2. A piece begins no lower than the one before it. What comes meanwhile begins lower, as a rule,
//!    and waits for the next sweep, or each sealed group would begin it anew.

use esker_table::Table as TableCore;
use esker_table::key_order::KeyForm;
use esker_table::view::Unit;

use crate::Result;

/// Overlays that a table may have before they are merged.
const OVERLAYS_MAX: usize = 4;
/// Overlays are merged with the base when they have one row for this many of it.
const BASE_SHARE: u64 = 4;

/// The least key that a sweep has still to look at.
pub(super) type Sweep = Vec<u8>;

/// A segment and its range of keys.
struct Ranged {
    unit: Unit,
    holds_through: u64,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

impl Ranged {
    /// Keys of the one lie between keys of the other: more than that one ends where the other
    /// begins, as the outputs of one merge may, with versions of one key.
    fn overlaps(&self, other: &Self) -> bool {
        self.least < other.greatest && other.least < self.greatest
    }

    fn rows(&self) -> u64 {
        self.unit.row_count() as u64
    }
}

/// Segments that have rows, by their least key.
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
    ranged.sort_by(|a, b| (&a.least, &a.greatest).cmp(&(&b.least, &b.greatest)));
    Ok(ranged)
}

/// Segments by their least key, in parts that share no key with each other: each segment of a part
/// but the first overlaps one before it.
fn clusters(segments: &[Ranged]) -> Vec<&[Ranged]> {
    let (mut clusters, mut rest) = (Vec::new(), segments);
    while let Some(first) = rest.first() {
        let (mut reach, mut len) = (&first.greatest, 1);
        while let Some(next) = rest.get(len).filter(|next| next.least < *reach) {
            reach = reach.max(&next.greatest);
            len += 1;
        }
        let (cluster, later) = rest.split_at(len);
        clusters.push(cluster);
        rest = later;
    }
    clusters
}

/// The segments of the first cluster of several, as many from the least key up as one merge takes.
fn piece(segments: &[Ranged], rows_max: u64) -> &[Ranged] {
    let several = clusters(segments).into_iter().find(|cluster| cluster.len() > 1);
    let cluster = several.unwrap_or_default();
    let mut rows = 0;
    let fits = |segment: &&Ranged| {
        rows += segment.rows();
        rows <= rows_max
    };
    let fitting = cluster.iter().take_while(fits).count();
    cluster.get(..fitting.max(2)).unwrap_or(cluster)
}

/// The disjoint segments that have the most rows together, and the others, which overlap them.
fn levels(segments: &[Ranged]) -> (Vec<&Ranged>, Vec<&Ranged>) {
    let mut by_end: Vec<&Ranged> = segments.iter().collect();
    by_end.sort_by(|a, b| (&a.greatest, &a.least).cmp(&(&b.greatest, &b.least)));
    // The most rows among the first segments; and how many of these end before each begins.
    let (mut most, mut ending) = (vec![0u64], Vec::new());
    let most_of = |most: &[u64], count: usize| most.get(count).copied().unwrap_or_default();
    for (count, segment) in by_end.iter().enumerate() {
        let earlier = by_end.get(..count).unwrap_or_default();
        let before = earlier.partition_point(|other| other.greatest <= segment.least);
        most.push(most_of(&most, count).max(most_of(&most, before) + segment.rows()));
        ending.push(before);
    }
    let (mut base, mut overlays) = (Vec::new(), Vec::new());
    let mut end = by_end.len();
    for (count, (segment, before)) in by_end.into_iter().zip(ending).enumerate().rev() {
        let taken = most_of(&most, before) + segment.rows() >= most_of(&most, count);
        match count < end && taken {
            true => {
                base.push(segment);
                end = before;
            }
            false => overlays.push(segment),
        }
    }
    (base, overlays)
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

fn by_age<'a>(picked: impl IntoIterator<Item = &'a Ranged>) -> Vec<Unit> {
    let mut picked: Vec<Unit> = picked.into_iter().map(|segment| segment.unit.clone()).collect();
    picked.sort_by_key(Unit::id);
    picked
}

/// The segments to merge next, by age, of about `rows_max` rows at the most; none while there are
/// few. `sweep` is the one that is under way.
pub(super) fn pick(
    table: &TableCore,
    units: &[Unit],
    rows_max: u64,
    sweep: &mut Option<Sweep>,
) -> Result<Vec<Unit>> {
    let all = ranged(table, units)?;
    if let Some(from) = sweep.take() {
        let begins = all.partition_point(|segment| segment.least < from);
        let piece = piece(all.get(begins..).unwrap_or_default(), rows_max);
        if let Some(first) = piece.first() {
            *sweep = Some(first.least.clone());
            return Ok(by_age(piece));
        }
    }
    let (mut base, overlays) = levels(&all);
    base.retain(|segment| overlays.iter().any(|overlay| overlay.overlaps(segment)));
    let ranges = overlays.iter().map(|segment| {
        (segment.holds_through, segment.least.as_slice(), segment.greatest.as_slice())
    });
    let is_many = places(ranges.collect()) > OVERLAYS_MAX;
    let sum = |segments: &[&Ranged]| segments.iter().map(|segment| segment.rows()).sum::<u64>();
    let (of_base, of_overlays) = (sum(&base), sum(&overlays));
    let fits = of_base + of_overlays <= rows_max;
    let is_large = of_overlays * BASE_SHARE >= of_base;
    // What does not fit has so many rows that a quarter of them are as much as several groups.
    let is_due = is_many || if fits { of_overlays >= of_base } else { is_large };
    if overlays.is_empty() || !is_due {
        return Ok(Vec::new());
    }
    if !is_large && of_overlays <= rows_max {
        return Ok(by_age(overlays));
    }
    if fits {
        return Ok(by_age(overlays.into_iter().chain(base)));
    }
    let piece = piece(&all, rows_max);
    *sweep = piece.first().map(|first| first.least.clone());
    Ok(by_age(piece))
}

/// Some segments that overlap, by age, of about `rows_max` rows at the most: none once all are
/// disjoint. Merging these, and then what this gives next, comes to that end.
pub(super) fn overlapping(table: &TableCore, units: &[Unit], rows_max: u64) -> Result<Vec<Unit>> {
    Ok(by_age(piece(&ranged(table, units)?, rows_max)))
}

/// Segments in the order of their keys, those side by side that overlap.
pub(super) fn by_key(table: &TableCore, units: &[Unit]) -> Result<Vec<Vec<Unit>>> {
    let ranged = ranged(table, units)?;
    let of = |cluster: &[Ranged]| cluster.iter().map(|segment| segment.unit.clone()).collect();
    Ok(clusters(&ranged).into_iter().map(of).collect())
}

#[cfg(test)]
pub(super) mod tests;
