//! Changes of a transaction that took too much memory: rows in segments of its own, and versions of
//! its snapshot that these replace, or that it has removed.
//!
//! ```text
//! by_key ──spill──► segments: rows, found by the hash of their key
//!                   hidden:   versions of the snapshot that are replaced, or gone
//! ```
//!
//! Eight bytes of a row that is new stay in memory, and some fifty of a version that is replaced or
//! removed, whatever the row takes.
//!
//! # Invariants
//!
//! 1. Of a key that is in memory, too, what is in memory decides; its row here counts as dead:
//!    `take`.
//! 2. A row that replaces a version of the snapshot has its row id, and `hidden` has the version:
//!    `add`. `restore` asserts that it is there.
//! 3. A key whose version is hidden as gone has no living row here: `take` and `restore`.
//! 4. The rows of a segment have rising row ids, unless they lie by key: `add` sorts them, and
//!    `SegmentWriter` asserts it.
//! 5. Segments number their rows one after the other, and each row has a place: `add`; asserted
//!    before a commit names the segments, `to_commit`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_arena::{Category, Reservation};
use esker_format::key::primary_key;
use esker_format::{Batch, Room, Schema, Value, ValueRef, invariant};
use esker_log::sabotage::Bug;
use esker_table::segment::Segment;
use esker_table::{KeyHasher, Table as TableCore};

use crate::commit::private_rows::{PrivateRows, key_of, linked_bytes, row_of};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::transaction::write_buffer::{
    BaseVersion, Change, PendingVersion, SpilledRow, UndoRecord, VersionRef,
};
use crate::{Error, ErrorKind, Result};

/// Bytes that a hidden version takes, about.
const HIDDEN_BYTES: usize = 48;
/// Bytes that a dead row takes, about.
const DEAD_BYTES: usize = 18;
/// How far from its guessed place a search looks first.
const NEAR_PLACES: usize = 8;
/// Bytes of values of a segment, about, at the most.
const SEGMENT_BYTES: usize = 256 << 20;

/// A row: its row id, the bytes of its key, its values.
type NewRow<'r> = (u64, &'r [u8], &'r [Value]);

/// What became of a version of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    Replaced,
    Tombstone,
}

/// Changes of one table.
#[derive(Clone, Default)]
pub(super) struct Spilled {
    segments: Vec<OwnSegment>,
    /// By rising leading half of the hash of a row's key, its number among all rows: one place to
    /// look in, however many segments there are.
    places: Arc<Vec<(u32, u32)>>,
    /// By their row ids, with the numbers of their places.
    hidden: BTreeMap<u64, (Hidden, usize)>,
    /// What was met when a row was to be taken back.
    failure: Option<(ErrorKind, String)>,
}

#[derive(Clone)]
struct OwnSegment {
    segment: Arc<Segment>,
    /// The number of its first row among all.
    first: usize,
    /// Rows that were changed again.
    dead: BTreeSet<usize>,
}

/// The leading half of the hash of a key.
fn place_of(hasher: &KeyHasher, key: &[u8]) -> u32 {
    // default: 32 bits, which fit
    u32::try_from(hasher.hash_bytes(key) >> 32).unwrap_or_default()
}

impl Spilled {
    /// True when nothing was spilled.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.hidden.is_empty()
    }

    /// True when nothing of it is left.
    pub fn is_without_effect(&self) -> bool {
        self.hidden.is_empty() && self.segments.iter().all(|own| own.living() == 0)
    }

    /// Bytes of memory that its rows will take once they are committed, about.
    pub fn linked_bytes(&self, core: &TableCore) -> u64 {
        let rows = self.segments.iter().map(OwnSegment::living).sum();
        linked_bytes(core, rows, self.hidden.len())
    }

    /// Bytes of memory that it takes, about.
    pub fn byte_count(&self) -> usize {
        let dead: usize = self.segments.iter().map(|own| own.dead.len()).sum();
        let places = self.places.len() * size_of::<(u32, u32)>();
        self.hidden.len() * HIDDEN_BYTES + dead * DEAD_BYTES + places
    }

    /// Refuses to go on when something could not be taken back.
    pub fn expect_whole(&self) -> Result<()> {
        let Some((kind, failure)) = &self.failure else { return Ok(()) };
        let message = format!("a change of the transaction could not be taken back: {failure}");
        Err(Error::new(*kind, message))
    }

    /// The living row that a key has.
    fn find(&self, current: &TableVersion, key: &[u8]) -> Result<Option<SpilledRow>> {
        self.expect_whole()?;
        let place = place_of(current.core.hasher(), key);
        // default: behind the last there is none
        let same = self.places.get(first_at(&self.places, place)..).unwrap_or_default();
        for (_, number) in same.iter().take_while(|(other, _)| *other == place) {
            let number = *number as usize;
            let after = self.segments.partition_point(|own| own.first <= number);
            let Some(segment) = after.checked_sub(1) else { continue };
            let Some(own) = self.segments.get(segment) else { continue };
            let row = number - own.first;
            if !own.dead.contains(&row) && own.key(&current.schema, row)? == key {
                return Ok(Some(SpilledRow { segment, row }));
            }
        }
        Ok(None)
    }

    /// What the transaction has made of a key that is not changed in memory, with what its snapshot
    /// has under it.
    pub fn change_of(
        &self,
        current: &TableVersion,
        (bytes, key): (&[u8], &[ValueRef<'_>]),
        base: BaseVersion,
    ) -> Result<Option<Change>> {
        let hidden = match base {
            BaseVersion::At(_, row_id) => self.hidden.get(&row_id).map(|(hidden, _)| *hidden),
            BaseVersion::Unknown | BaseVersion::Absent => None,
        };
        match (base, hidden) {
            (BaseVersion::At(..), None) => return Ok(None),
            (_, Some(Hidden::Tombstone)) => {
                let key = key.iter().map(|value| ValueRef::to_owned(*value)).collect();
                return Ok(Some(Change {
                    base,
                    now: PendingVersion::Tombstone(key),
                    new_row_id: 0,
                }));
            }
            _ => {}
        }
        let Some(place) = self.find(current, bytes)? else { return Ok(None) };
        self.row_change(current, place, base).map(Some)
    }

    fn row_change(
        &self,
        current: &TableVersion,
        SpilledRow { segment, row }: SpilledRow,
        base: BaseVersion,
    ) -> Result<Change> {
        let own = self.segments.get(segment).ok_or_else(|| Error::corrupt("no such segment"))?;
        let now = PendingVersion::Row(row_of(&own.segment, &current.schema, row)?);
        let new_row_id = match base {
            BaseVersion::At(..) => 0,
            BaseVersion::Unknown | BaseVersion::Absent => own.segment.row_id(row)?,
        };
        Ok(Change { base, now, new_row_id })
    }

    /// A key is about to be changed in memory: returns what it was changed to so far.
    pub fn take(
        &mut self,
        current: &TableVersion,
        bytes: &[u8],
        base: BaseVersion,
    ) -> Result<UndoRecord> {
        if let BaseVersion::At(_, row_id) = base {
            match self.hidden.get(&row_id) {
                None => return Ok(UndoRecord::Nothing),
                Some((Hidden::Tombstone, _)) => return Ok(UndoRecord::Tombstone),
                Some((Hidden::Replaced, _)) => {}
            }
        }
        let Some(place) = self.find(current, bytes)? else { return Ok(UndoRecord::Nothing) };
        self.mark_deleted(place);
        Ok(UndoRecord::Spilled(place))
    }

    /// A key is again what it was changed to before: to a row, or it was removed.
    pub fn restore(&mut self, place: Option<SpilledRow>, base: BaseVersion) {
        let hidden = if place.is_some() { Hidden::Replaced } else { Hidden::Tombstone };
        if let BaseVersion::At(_, row_id) = base {
            // It has been here since it was written to a file, or removed.
            match self.hidden.get_mut(&row_id) {
                Some((now, _)) => *now = hidden,
                None => {
                    let message = format!("row {row_id} is not known to be hidden");
                    self.failure = Some((ErrorKind::Corrupt, message));
                }
            }
        }
        if let Some(SpilledRow { segment, row }) = place
            && let Some(own) = self.segments.get_mut(segment)
        {
            own.dead.remove(&row);
        }
    }

    fn mark_deleted(&mut self, place: SpilledRow) {
        if let Some(own) = self.segments.get_mut(place.segment) {
            own.dead.insert(place.row);
        }
    }

    /// The row of a key is as if it had not been put. What cannot be read is an error of the next
    /// look-up next.
    pub fn forget(&mut self, current: &TableVersion, bytes: &[u8]) {
        match self.find(current, bytes) {
            Ok(Some(place)) => self.mark_deleted(place),
            Ok(None) => {}
            Err(e) => self.failure = Some((e.kind(), e.to_string())),
        }
    }

    /// The version of the snapshot with a row id shows again.
    pub fn show(&mut self, row_id: u64) {
        self.hidden.remove(&row_id);
    }

    /// The numbers of the places of the versions of the snapshot that do not show.
    pub fn hidden(&self) -> impl Iterator<Item = usize> {
        self.hidden.values().map(|(_, place)| *place)
    }

    /// The segments, each with its dead rows, rising.
    pub fn parts(&self) -> impl Iterator<Item = (Arc<Segment>, Arc<[usize]>)> {
        let part =
            |own: &OwnSegment| (Arc::clone(&own.segment), own.dead.iter().copied().collect());
        self.segments.iter().map(part)
    }

    /// Writes changes whose `base` is known, with its place, and whose rows have row ids into
    /// segments. Either all of them are taken up, or none.
    pub fn add(
        &mut self,
        engine: &Arc<Engine>,
        current: &TableVersion,
        changes: &[(&Vec<u8>, &Change)],
    ) -> Result<()> {
        let mut rows: Vec<NewRow<'_>> = Vec::new();
        for (key, change) in changes {
            if let Some(row) = change.row() {
                rows.push((change.row_id(), key, row));
            }
        }
        // They come in the order of their keys.
        if !current.schema.is_ordered_by_key() {
            rows.sort_by_key(|(row_id, ..)| *row_id);
            if Bug::SpilledRowsUnsorted.is_planted() {
                rows.reverse();
            }
        }
        let count: usize = self.segments.iter().map(|own| own.segment.row_count()).sum();
        if u32::try_from(count + rows.len()).is_err() {
            let message = "a transaction that puts more than 2^32 rows: commit in parts";
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        let (mut segments, mut first) = (Vec::new(), count);
        // New rows of a stream, which get other row ids by the commit, lie apart from others.
        let replaced = changes.iter().filter(|(_, change)| {
            matches!(change.base, BaseVersion::At(..)) && change.row().is_some()
        });
        let apart = if current.schema.stream().is_some() { replaced.count() } else { 0 };
        let (replacing, new) = rows.split_at_checked(apart).ok_or_else(|| {
            Error::corrupt(format!(
                "{apart} of {} rows of a transaction replace others",
                rows.len()
            ))
        })?;
        let rows_max = engine.options.segment_rows_max;
        for rows in [replacing, new].into_iter().flat_map(|rows| pieces(rows, rows_max)) {
            segments.push(OwnSegment::write(engine, current, (first, rows))?);
            first += rows.len();
        }
        let hasher = current.core.hasher();
        // default: fewer rows than a segment may have
        let number = |at: usize| u32::try_from(count + at).unwrap_or(u32::MAX);
        let places = rows.iter().enumerate();
        let mut places: Vec<(u32, u32)> =
            places.map(|(at, (_, key, _))| (place_of(hasher, key), number(at))).collect();
        places.sort_unstable();
        self.places = Arc::new(merged(&self.places, &places));
        self.segments.extend(segments);
        for (_, change) in changes {
            if let BaseVersion::At(VersionRef::Pinned(place), row_id) = change.base {
                let hidden =
                    if change.row().is_some() { Hidden::Replaced } else { Hidden::Tombstone };
                self.hidden.insert(row_id, (hidden, place));
            }
        }
        Ok(())
    }

    /// What a commit needs of it, without what was changed again. `changed` has the row ids of
    /// the versions of the snapshot that changes in memory replace, or remove.
    pub fn to_commit(
        &self,
        engine: &Arc<Engine>,
        current: &TableVersion,
        (read_at, changed): (u64, &BTreeSet<u64>),
    ) -> Result<PrivateRows> {
        self.expect_whole()?;
        let mut first = 0;
        for own in &self.segments {
            let (id, begins) = (own.segment.id(), own.first);
            let place = format_args!("segment {id} of a transaction");
            invariant!(begins == first, place, "its rows begin at {begins}, not at {first}");
            first += own.segment.row_count();
        }
        let places = self.places.len();
        invariant!(places == first, "a transaction", "{first} rows of files have {places} places");
        let mut rows = PrivateRows::at(read_at);
        for own in &self.segments {
            match (own.living(), own.dead.is_empty()) {
                (0, _) => {}
                (_, true) => rows.written.push(Arc::clone(&own.segment)),
                (_, false) => rows.written.push(own.without_dead(engine, current)?),
            }
        }
        let gone = self.hidden.iter().filter(|(row_id, (hidden, _))| {
            *hidden == Hidden::Tombstone && !changed.contains(row_id)
        });
        rows.removed = gone.map(|(_, (_, place))| *place).collect();
        Ok(rows)
    }
}

/// Two sorted lists as one.
fn merged(one: &[(u32, u32)], other: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one, other);
    while let (Some(a), Some(b)) = (one.first(), other.first()) {
        let (next, rest) = if a <= b { (a, &mut one) } else { (b, &mut other) };
        all.push(*next);
        // default: behind the last there is none
        *rest = rest.get(1..).unwrap_or_default();
    }
    all.extend_from_slice(one);
    all.extend_from_slice(other);
    all
}

/// The first of sorted places that is not less: near where it would be if all were as far apart.
fn first_at(places: &[(u32, u32)], place: u32) -> usize {
    let guess = (u64::from(place) * places.len() as u64) >> 32;
    // default: 32 bits, which fit
    let guess = usize::try_from(guess).unwrap_or_default();
    let is_less = |at: usize| places.get(at).is_some_and(|(other, _)| *other < place);
    let (mut low, mut high, mut step) = (guess, guess, NEAR_PLACES);
    while is_less(high) {
        low = high;
        high += step;
        step *= 2;
    }
    while low > 0 && !is_less(low) {
        high = low;
        low = low.saturating_sub(step);
        step *= 2;
    }
    // default: behind the last there is none
    let between = places.get(low..high.min(places.len())).unwrap_or_default();
    low + between.partition_point(|(other, _)| *other < place)
}

/// Rows of one segment each.
fn pieces<'p, 'r>(
    rows: &'p [NewRow<'r>],
    rows_max: usize,
) -> impl Iterator<Item = &'p [NewRow<'r>]> {
    // default: what is no bytes is a word
    let len = |value: &Value| value.as_ref().as_bytes().map_or(8, <[u8]>::len);
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |(_, _, row): &&NewRow<'_>| {
            bytes += row.iter().map(len).sum::<usize>();
            bytes <= SEGMENT_BYTES
        };
        let count = rest.iter().take(rows_max).take_while(fits).count();
        let (piece, more) = rest.split_at_checked(count.max(1))?;
        rest = more;
        Some(piece)
    })
}

impl OwnSegment {
    fn write(
        engine: &Arc<Engine>,
        current: &TableVersion,
        (first, rows): (usize, &[NewRow<'_>]),
    ) -> Result<Self> {
        let mut batch = Batch::empty(&current.schema);
        for (_, _, row) in rows {
            batch.push_row(&current.schema, row)?;
        }
        let row_ids: Vec<u64> = rows.iter().map(|(row_id, ..)| *row_id).collect();
        let segment = engine.write_private(current, &batch, &row_ids)?;
        Ok(Self { segment, first, dead: BTreeSet::new() })
    }

    fn living(&self) -> usize {
        self.segment.row_count() - self.dead.len()
    }

    fn key(&self, schema: &Schema, row: usize) -> Result<Vec<u8>> {
        let room = Room::default();
        let key = key_of(&self.segment, schema, (row, &room))?;
        Ok(primary_key(schema, key.iter().copied()))
    }

    /// The rows that are left, as a segment.
    fn without_dead(&self, engine: &Arc<Engine>, current: &TableVersion) -> Result<Arc<Segment>> {
        let mut held = Reservation::new(&engine.arena, Category::Load);
        let needed = 2 * self.segment.file_bytes();
        if !engine.seal_for_load(&mut held, needed)? {
            return Err(engine.refuse_load(&held, needed));
        }
        let (mut batch, mut row_ids) = (Batch::empty(&current.schema), Vec::new());
        for row in (0..self.segment.row_count()).filter(|row| !self.dead.contains(row)) {
            batch.push_row(&current.schema, &row_of(&self.segment, &current.schema, row)?)?;
            row_ids.push(self.segment.row_id(row)?);
        }
        engine.write_private(current, &batch, &row_ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_wherever_they_are() {
        let spreads: [fn(u32) -> u32; 3] =
            [|n| n, |n| u32::MAX - n, |n| n.wrapping_mul(2_654_435_761)];
        for spread in spreads {
            let mut all = Vec::new();
            for part in 0..5u32 {
                let part = part * 97..(part + 1) * 97;
                let mut more: Vec<_> = part.map(|n| (spread(n / 3), n)).collect();
                more.sort_unstable();
                all = merged(&all, &more);
                assert!(all.is_sorted());
                for n in 0..600 {
                    for place in [spread(n), spread(n).wrapping_add(1), 0, u32::MAX] {
                        let wanted = all.partition_point(|(other, _)| *other < place);
                        assert_eq!(first_at(&all, place), wanted, "{place}");
                    }
                }
            }
            assert_eq!(first_at(&[], 7), 0);
        }
    }
}
