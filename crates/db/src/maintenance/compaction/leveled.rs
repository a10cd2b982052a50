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
//! Writers do not wait for it. What they seal meanwhile are overlays that are none of the sweep's;
//! past three they are merged with each other, in turn with the pieces of the sweep, and the next
//! sweep takes them in.
//!
//! Invariants
//! 1. What a piece writes is disjoint, and lies within the keys that its inputs, which overlap,
//!    cover without a gap: nowhere do more segments overlap than before, and somewhere fewer. A
//!    sweep has the segments that it began with and what its merges wrote, and every other merge
//!    beside it is one of its own. So it ends, whatever fits and whatever comes.
//! 2. Overlays that are merged with each other, the smallest first, as many as fit, become fewer by
//!    one at least: after one of their merges they are no more than may be, or no two of them fit
//!    one, so that all but one have more than half of the rows of a merge. Those of a sweep are
//!    gathered before its first piece: to one where they fit one merge.
//! 3. So a key is looked for in 1 + 4 places while sweeps take in and let come as many rows as fit
//!    one merge, and in one more for each half as many beyond that; besides what is sealed while
//!    two merges run, one of overlays and a piece.
//! 4. A sweep begins once overlays have a quarter of the rows of the base, or more than two merges
//!    take. The rows of a piece beyond the least key of the next are written again by that one: of
//!    a base and one overlay about three rows in ten, where eight segments fit a merge.

use std::collections::BTreeSet;

use esker_table::Table as TableCore;
use esker_table::key_order::KeyForm;
use esker_table::view::RowGroup;

use crate::Result;

/// Overlays that a table may have before they are merged.
const OVERLAYS_MAX: usize = 4;
/// How many of them may be of those that come while a sweep is under way, which has one.
const LATER_MAX: usize = OVERLAYS_MAX - 1;
/// Overlays are merged with the base when they have one row for this many of it.
const BASE_SHARE: u64 = 4;

/// Base and overlays that are merged piece by piece: the segments that were there when it began,
/// and what merges have made of them.
#[derive(Debug)]
pub(crate) struct CompactionCursor {
    own: BTreeSet<u64>,
    /// Those of its overlays that are still to become fewer before the first piece.
    gathered: BTreeSet<u64>,
    /// What came meanwhile has just had its turn.
    is_own_turn: bool,
}

impl CompactionCursor {
    fn of(segments: &[&Ranged], overlays: &[&Ranged]) -> Self {
        let ids = |of: &[&Ranged]| of.iter().map(|segment| segment.row_group.id()).collect();
        Self { own: ids(segments), gathered: ids(overlays), is_own_turn: false }
    }

    /// A merge has written segments that have the rows of others.
    pub(crate) fn follow(&mut self, inputs: &[u64], written: &[u64]) {
        for ids in [&mut self.own, &mut self.gathered] {
            if inputs.iter().any(|id| ids.contains(id)) {
                ids.extend(written);
            }
        }
    }

    /// What to merge next; nothing once its own segments are disjoint.
    fn next(&mut self, all: &[&Ranged], rows_max: u64) -> Vec<RowGroup> {
        let is_of = |ids: &BTreeSet<u64>, segment: &Ranged| ids.contains(&segment.row_group.id());
        let (own, later): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(|segment| is_of(&self.own, segment));
        if !std::mem::take(&mut self.is_own_turn) {
            let others = |a: &Ranged| {
                all.iter().any(|b| a.overlaps(b) && a.row_group.id() != b.row_group.id())
            };
            let later = runs_of(later.into_iter().filter(|segment| others(segment)));
            let picked = match later.len() > LATER_MAX {
                true => smallest(later, rows_max),
                false => Vec::new(),
            };
            if !picked.is_empty() {
                self.is_own_turn = true;
                return picked;
            }
        }
        let gathered = own.iter().copied().filter(|segment| is_of(&self.gathered, segment));
        let picked = smallest(runs_of(gathered), rows_max);
        if !picked.is_empty() {
            return picked;
        }
        self.gathered.clear();
        by_age(piece(&own, rows_max))
    }
}

/// A segment and its range of keys.
struct Ranged {
    row_group: RowGroup,
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
        self.row_group.row_count() as u64
    }
}

/// Segments that have rows, by their least key.
fn ranged(table: &TableCore, row_groups: &[RowGroup]) -> Result<Vec<Ranged>> {
    let form = KeyForm::of(&table.schema());
    let mut ranged = Vec::with_capacity(row_groups.len());
    for row_group in row_groups.iter().filter(|row_group| row_group.row_count() > 0) {
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        form.read(row_group, 0, &mut least)?;
        form.read(row_group, row_group.row_count() - 1, &mut greatest)?;
        let holds_through = match row_group {
            RowGroup::Segment(segment) => segment.holds_through(),
            RowGroup::Group(_) => row_group.id(),
        };
        ranged.push(Ranged { row_group: row_group.clone(), holds_through, least, greatest });
    }
    ranged.sort_by(|a, b| (&a.least, &a.greatest).cmp(&(&b.least, &b.greatest)));
    Ok(ranged)
}

/// Segments by their least key, in parts that share no key with each other: each segment of a part
/// but the first overlaps one before it.
fn clusters<'s, 'a>(segments: &'s [&'a Ranged]) -> Vec<&'s [&'a Ranged]> {
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
fn piece<'a>(segments: &[&'a Ranged], rows_max: u64) -> Vec<&'a Ranged> {
    let several = clusters(segments).into_iter().find(|cluster| cluster.len() > 1);
    // default: no cluster has several
    let cluster = several.unwrap_or_default();
    let fitting = fitting(cluster.iter().map(|segment| segment.rows()), rows_max);
    cluster.iter().copied().take(fitting.max(2)).collect()
}

/// How many of the first fit one merge.
fn fitting(rows: impl Iterator<Item = u64>, rows_max: u64) -> usize {
    let mut sum = 0u64;
    let fits = |rows: &u64| {
        sum = sum.saturating_add(*rows);
        sum <= rows_max
    };
    rows.take_while(fits).count()
}

fn rows(segments: &[&Ranged]) -> u64 {
    segments.iter().map(|segment| segment.rows()).sum()
}

/// The disjoint segments that have the most rows together, and the others, which overlap them.
fn levels<'a>(segments: &[&'a Ranged]) -> (Vec<&'a Ranged>, Vec<&'a Ranged>) {
    let mut by_end = segments.to_vec();
    by_end.sort_by(|a, b| (&a.greatest, &a.least).cmp(&(&b.greatest, &b.least)));
    // The most rows among the first segments; and how many of these end before each begins.
    let (mut most, mut ending) = (vec![0u64], Vec::new());
    // default: before the first the greatest is 0
    let most_of = |most: &[u64], count: usize| most.get(count).copied().unwrap_or_default();
    for (count, segment) in by_end.iter().enumerate() {
        // default: before the first there is none
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

/// The places in which a key is looked for at the most, among segments with the newest commit that
/// each holds and its range of keys. What one merge wrote holds one commit and is disjoint: it is
/// one place, however many segments its size took, so that merging it alone is never due again.
fn runs<T: Copy>(mut segments: Vec<(u64, &[u8], &[u8], T)>) -> Vec<Vec<T>> {
    segments.sort_unstable_by_key(|(holds_through, least, greatest, _)| {
        (*holds_through, *least, *greatest)
    });
    let mut runs = Vec::new();
    for by_merge in segments.chunk_by(|a, b| a.0 == b.0) {
        // Those of several merges or of a load overlap. Each run with the key that it ends with.
        let mut own: Vec<(&[u8], Vec<T>)> = Vec::new();
        for (_, least, greatest, segment) in by_merge {
            // Versions of one key may end one segment and begin the next.
            match own.iter_mut().find(|(end, _)| end <= least) {
                Some((end, run)) => {
                    *end = greatest;
                    run.push(*segment);
                }
                None => own.push((greatest, vec![*segment])),
            }
        }
        runs.extend(own.into_iter().map(|(_, run)| run));
    }
    runs
}

fn runs_of<'a>(segments: impl Iterator<Item = &'a Ranged>) -> Vec<Vec<&'a Ranged>> {
    let with_range = |segment: &'a Ranged| {
        (segment.holds_through, segment.least.as_slice(), segment.greatest.as_slice(), segment)
    };
    runs(segments.map(with_range).collect())
}

/// The smallest runs, as many as one merge takes, by age; nothing if no two of them fit.
fn smallest(mut runs: Vec<Vec<&Ranged>>, rows_max: u64) -> Vec<RowGroup> {
    runs.sort_by_key(|run| rows(run));
    match fitting(runs.iter().map(|run| rows(run)), rows_max) {
        0 | 1 => Vec::new(),
        count => by_age(runs.into_iter().take(count).flatten()),
    }
}

fn by_age<'a>(picked: impl IntoIterator<Item = &'a Ranged>) -> Vec<RowGroup> {
    let mut picked: Vec<RowGroup> =
        picked.into_iter().map(|segment| segment.row_group.clone()).collect();
    picked.sort_by_key(RowGroup::id);
    picked
}

/// The segments to merge next, by age, of about `rows_max` rows at the most; none while there are
/// few. `compaction_cursor` is the one that is under way.
pub(crate) fn pick(
    table: &TableCore,
    row_groups: &[RowGroup],
    rows_max: u64,
    compaction_cursor: &mut Option<CompactionCursor>,
) -> Result<Vec<RowGroup>> {
    let all = ranged(table, row_groups)?;
    let all: Vec<&Ranged> = all.iter().collect();
    if let Some(under_way) = compaction_cursor {
        let picked = under_way.next(&all, rows_max);
        if !picked.is_empty() {
            return Ok(picked);
        }
        *compaction_cursor = None;
    }
    let (mut base, overlays) = levels(&all);
    base.retain(|segment| overlays.iter().any(|overlay| overlay.overlaps(segment)));
    let runs = runs_of(overlays.iter().copied());
    let is_many = runs.len() > OVERLAYS_MAX;
    let (of_base, of_overlays) = (rows(&base), rows(&overlays));
    let fits = of_base + of_overlays <= rows_max;
    let is_large = of_overlays * BASE_SHARE >= of_base;
    // What does not fit has so many rows that a quarter of them are as much as several groups.
    let is_due = is_many || if fits { of_overlays >= of_base } else { is_large };
    if overlays.is_empty() || !is_due {
        return Ok(Vec::new());
    }
    if !is_large {
        let picked = smallest(runs, rows_max);
        if !picked.is_empty() {
            return Ok(picked);
        }
    }
    if fits {
        return Ok(by_age(overlays.into_iter().chain(base)));
    }
    Ok(compaction_cursor.insert(CompactionCursor::of(&all, &overlays)).next(&all, rows_max))
}

/// Some segments that overlap, by age, of about `rows_max` rows at the most: none once all are
/// disjoint. Merging these, and then what this gives next, comes to that end.
pub(crate) fn overlapping(
    table: &TableCore,
    row_groups: &[RowGroup],
    rows_max: u64,
) -> Result<Vec<RowGroup>> {
    let ranged = ranged(table, row_groups)?;
    Ok(by_age(piece(&ranged.iter().collect::<Vec<_>>(), rows_max)))
}

/// Segments in the order of their keys, those side by side that overlap.
pub(crate) fn by_key(table: &TableCore, row_groups: &[RowGroup]) -> Result<Vec<Vec<RowGroup>>> {
    let ranged = ranged(table, row_groups)?;
    let of =
        |cluster: &[&Ranged]| cluster.iter().map(|segment| segment.row_group.clone()).collect();
    Ok(clusters(&ranged.iter().collect::<Vec<_>>()).into_iter().map(of).collect())
}

#[cfg(test)]
pub(crate) mod tests;
