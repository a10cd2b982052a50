//! A table as of one commit, for scanning.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use esker_format::segment::{FieldSketch, ZONE_ROWS};
use esker_format::{ColumnSlice, Field, Moment, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;

use super::{Found, Table};
use crate::expiry;
use crate::group::Group;
use crate::pinned_locations::{PinnedLocations, ResolvedLocations};
use crate::segment::Segment;
use crate::view::{RowGroup, View};
use crate::visibility::Visibility;
use crate::{Error, Result};

/// Bytes of long values that a query reads at once, about.
const LONG_BYTES_AT_ONCE: u64 = 16 << 20;

/// A table as of one commit. The caller keeps the commit registered for as long as this lives, so
/// that no merge drops what it may see.
pub struct TableSnapshot {
    table: Arc<Table>,
    schema: Arc<Schema>,
    at: u64,
    parts: Vec<Arc<SnapshotPart>>,
    pub(super) view: Arc<View>,
    /// How many of the parts are row groups of the view; a transaction's own come behind them.
    shared_parts: usize,
    /// True when a transaction has rows of its own, or hides some.
    has_changes: bool,
    may_have_expired: bool,
}

/// The rows of one row group that had been created at the snapshot's commit.
pub struct SnapshotPart {
    row_group: RowGroup,
    schema: Arc<Schema>,
    rows: usize,
    at: u64,
    all_created: bool,
    /// Where rows may have expired: the field that says so, and the time.
    expiry: Option<(Field, i64)>,
    /// Rows that are hidden from this reader alone, rising.
    hidden: Option<Arc<[usize]>>,
}

/// Rows of a part; `None` where it may have others.
pub type PartRows = Option<Vec<u32>>;

/// What a transaction has changed of a table, which no other reader sees.
#[derive(Clone, Default)]
pub struct Overlay {
    /// The versions that it has replaced or deleted, as of its snapshot: their numbers among its
    /// places.
    pub hidden: Vec<usize>,
    /// Where they are.
    pub places: Option<Arc<PinnedLocations>>,
    /// The versions that it has made, in groups of its own.
    pub groups: Vec<Arc<Group>>,
    /// Those that lie in segments of its own, with the rows that it has replaced or removed since,
    /// rising.
    pub segments: Vec<(Arc<Segment>, Arc<[usize]>)>,
    /// Its number of changes: versions of the groups are created and killed by such numbers.
    pub version: u64,
    /// The moment at which its versions have expired.
    pub now: Moment,
}

impl Overlay {
    fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.groups.is_empty() && self.segments.is_empty()
    }
}

impl Table {
    /// The table as of commit `at`, which the caller has registered, and of a moment, which the
    /// caller has registered where rows expire.
    ///
    /// # Errors
    /// `Corrupt` when the times at which rows expire cannot be read.
    pub fn snapshot(self: &Arc<Self>, at: u64, now: Moment) -> Result<TableSnapshot> {
        self.snapshot_with(at, now, &Overlay::default())
    }

    /// The same as a transaction sees it that has changed rows.
    ///
    /// # Errors
    /// As for [`Table::snapshot`].
    pub fn snapshot_with(
        self: &Arc<Self>,
        at: u64,
        now: Moment,
        overlay: &Overlay,
    ) -> Result<TableSnapshot> {
        // The view goes with the places: it knows where all of them lead.
        let located = overlay.places.as_ref().map(|places| places.locate());
        let view = match &located {
            Some(located) => Arc::clone(located.view()),
            None => self.view(),
        };
        // The commit is registered, so its schema is known.
        let forgotten = || {
            let (name, since) = (self.name(), view.known_since());
            Error::corrupt(format!("table {name:?}: no schema of commit {at}, before {since}"))
        };
        let schema = Arc::clone(view.schema_at(at).ok_or_else(forgotten)?);
        let now = now.first(view.as_of_until(at));
        let mut hidden = hidden_rows(located.as_ref(), &overlay.hidden)?;
        drop(located);
        let part = |row_group: &RowGroup| {
            let part = SnapshotPart::new(row_group, &schema, at, now);
            let hidden = hidden.remove(&row_group.id()).map(Arc::from);
            Arc::new(SnapshotPart { hidden, ..part })
        };
        let mut parts: Vec<Arc<SnapshotPart>> = view.row_groups.iter().map(part).collect();
        let own = |row_group: RowGroup, hidden: Option<Arc<[usize]>>| {
            let part = SnapshotPart::new(&row_group, &schema, overlay.version, overlay.now);
            SnapshotPart { hidden, ..part }
        };
        let groups =
            overlay.groups.iter().map(|group| own(RowGroup::Group(Arc::clone(group)), None));
        let segments = overlay.segments.iter().map(|(segment, gone)| {
            let hidden = (!gone.is_empty()).then(|| Arc::clone(gone));
            own(RowGroup::Segment(Arc::clone(segment)), hidden)
        });
        let own = groups.chain(segments);
        parts.retain(|part| part.rows > 0);
        let shared_parts = parts.len();
        parts.extend(own.map(Arc::new).filter(|part| part.rows > 0));
        parts.iter().try_for_each(|part| part.verify_expiry())?;
        let may_have_expired = parts.iter().any(|part| part.expiry.is_some());
        let (table, has_changes) = (Arc::clone(self), !overlay.is_empty());
        Ok(TableSnapshot {
            table,
            schema,
            at,
            parts,
            view,
            shared_parts,
            has_changes,
            may_have_expired,
        })
    }
}

/// The hidden rows of each row group, rising. A transaction's snapshot is registered, so what it
/// sees is there until it ends.
fn hidden_rows(
    located: Option<&ResolvedLocations<'_>>,
    hidden: &[usize],
) -> Result<BTreeMap<u64, Vec<usize>>> {
    let mut rows: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let hidden = if Bug::TransactionSeesReplacedRows.is_planted() { &[] } else { hidden };
    for number in hidden {
        match located.and_then(|located| located.get(*number)) {
            Some((row_group, row)) => rows.entry(row_group.id()).or_default().push(row),
            None => return Err(Error::corrupt("a version that a transaction hides is gone")),
        }
    }
    for rows in rows.values_mut() {
        rows.sort_unstable();
        rows.dedup();
    }
    Ok(rows)
}

impl TableSnapshot {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// How many of the parts are row groups that all readers share: those come first.
    #[must_use]
    pub fn shared_parts(&self) -> usize {
        self.shared_parts
    }

    /// The same rows, as a schema that is made of this one by an alteration shows them.
    #[must_use]
    pub fn with_schema(&self, schema: &Arc<Schema>) -> Self {
        let part = |part: &Arc<SnapshotPart>| {
            Arc::new(SnapshotPart {
                row_group: part.row_group.clone(),
                schema: Arc::clone(schema),
                expiry: part.expiry.clone(),
                hidden: part.hidden.clone(),
                ..**part
            })
        };
        let parts = self.parts.iter().map(part).collect();
        let (table, view) = (Arc::clone(&self.table), Arc::clone(&self.view));
        let (schema, at) = (Arc::clone(schema), self.at);
        Self { table, schema, at, parts, view, ..*self }
    }

    /// The commit.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[Arc<SnapshotPart>] {
        &self.parts
    }

    /// True when some visible row may have expired at the snapshot's time.
    #[must_use]
    pub fn may_have_expired(&self) -> bool {
        self.may_have_expired
    }

    /// Looks up a row by its key, as [`Table::find`] does, mostly without asking what the table
    /// consists of now.
    ///
    /// # Errors
    /// `Corrupt` when a block that the row lies in does not fit its checksum.
    #[inline]
    pub fn find<R>(
        &self,
        key: &[ValueRef<'_>],
        mut take: impl FnMut(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        if self.has_changes {
            return self.find_among_changes(key, take);
        }
        let by_view = (&*self.view, &self.schema);
        match self.table.find_by_view(by_view, key, self.at, &mut take)? {
            ControlFlow::Break(found) => Ok(found),
            ControlFlow::Continue(()) => self.table.find(key, || self.at, take),
        }
    }

    /// The same where a transaction has changed rows: its own come first, which the key index does
    /// not know, so that each of them is compared; of the others those count that it does not hide.
    #[cold]
    fn find_among_changes<R>(
        &self,
        key: &[ValueRef<'_>],
        mut take: impl FnMut(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let (shared, own) = self.parts.split_at_checked(self.shared_parts).ok_or_else(|| {
            let (shared, all) = (self.shared_parts, self.parts.len());
            Error::corrupt(format!("a snapshot of {all} parts, of which {shared} are shared"))
        })?;
        let until = self.view.as_of_until(self.at);
        if let Some(place) = self.scan_for_key(own, key)? {
            return take(self.table.found(&self.schema, place, until)).map(Some);
        }
        let by_view = (&*self.view, &self.schema);
        let place = |found: Found<'_>| Ok((found.row_group.id(), found.row));
        let place = match self.table.find_by_view(by_view, key, self.at, place)? {
            ControlFlow::Break(None) => None,
            ControlFlow::Break(Some((row_group, row))) => {
                let mut parts = shared.iter();
                let part =
                    parts.find(|part| part.row_group.id() == row_group).ok_or_else(|| {
                        Error::corrupt(format!("row group {row_group} is in no part of a snapshot"))
                    })?;
                (!part.is_hidden(row)).then_some((&part.row_group, row))
            }
            // The view is too old for the index.
            ControlFlow::Continue(()) => self.scan_for_key(shared, key)?,
        };
        place.map(|place| take(self.table.found(&self.schema, place, until))).transpose()
    }

    /// The visible row with a key among some parts, each row compared.
    fn scan_for_key<'p>(
        &self,
        parts: &'p [Arc<SnapshotPart>],
        key: &[ValueRef<'_>],
    ) -> Result<Option<(&'p RowGroup, usize)>> {
        for part in parts {
            for row in (0..part.rows).filter(|row| part.is_visible(*row)) {
                if part.row_group.has_key(row, &self.schema, key)? {
                    return Ok(Some((&part.row_group, row)));
                }
            }
        }
        Ok(None)
    }

    /// Brings near what look-ups of some keys will read, of a table whose key is one field of
    /// bytes: a hint, which changes no answer.
    pub fn prefetch_keys(&self, keys: &[&[u8]]) {
        let hasher = &self.table.hasher;
        let hashes: Vec<u64> = keys.iter().map(|key| hasher.hash_bytes(key)).collect();
        self.table.prefetch_hashes(&self.view, &hashes);
    }

    /// Where the rows with some keys are, as of the commit: by part the rows, rising, with those
    /// that have expired or are hidden. A transaction's own parts, which the key index does not
    /// know, have `None`. `None` in place of all when the view is too old to tell.
    ///
    /// # Errors
    /// As for [`TableSnapshot::find`].
    pub fn rows_of_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> Result<Option<Vec<PartRows>>> {
        let of_part = |part| if part < self.shared_parts { Some(Vec::new()) } else { None };
        let mut rows: Vec<PartRows> = (0..self.parts.len()).map(of_part).collect();
        let most = if Bug::KeyLookupStopsEarly.is_planted() { 1 } else { usize::MAX };
        for key in keys.iter().take(most) {
            let by_view = (&*self.view, &self.schema);
            let place = |found: Found<'_>| Ok((found.row_group.id(), found.row));
            let (row_group, row) = match self.table.find_by_view(by_view, key, self.at, place)? {
                ControlFlow::Break(Some(place)) => place,
                ControlFlow::Break(None) => continue,
                ControlFlow::Continue(()) => return Ok(None),
            };
            let part = self.parts.iter().position(|part| part.row_group.id() == row_group);
            let listed = part.and_then(|part| rows.get_mut(part)?.as_mut());
            match (listed, u32::try_from(row)) {
                (Some(listed), Ok(row)) => listed.push(row),
                _ => return Ok(None),
            }
        }
        rows.iter_mut().flatten().for_each(|rows| rows.sort_unstable());
        Ok(Some(rows))
    }

    /// How many rows are visible.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.count() as u64).sum()
    }
}

impl SnapshotPart {
    fn new(row_group: &RowGroup, schema: &Arc<Schema>, at: u64, now: Moment) -> Self {
        let now_us = now.of(schema);
        let (rows, all_created) = match row_group {
            RowGroup::Group(group) => (group.rows_at(at), true),
            RowGroup::Segment(segment) if segment.is_loading() => (0, true),
            RowGroup::Segment(segment) if segment.has_ended_at(at) => (0, true),
            RowGroup::Segment(segment) => (segment.row_count(), segment.newest_commit() <= at),
        };
        let expiry = schema.expiry_field().filter(|field| row_group.least_expiry(field) <= now_us);
        let expiry = expiry.map(|field| (field.clone(), now_us));
        let (row_group, schema) = (row_group.clone(), Arc::clone(schema));
        Self { row_group, schema, rows, at, all_created, expiry, hidden: None }
    }

    /// How many rows there are, the dead and (in a segment) the invisible included.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The row group.
    #[must_use]
    pub fn row_group(&self) -> &RowGroup {
        &self.row_group
    }

    /// The commit that it is read at.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The schema that it is read by.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// How many rows are visible, when no row has to be looked at.
    #[must_use]
    pub fn known_count(&self) -> Option<usize> {
        let none_expired = self.expiry.is_none() || Bug::CountTakesExpiredRows.is_planted();
        let all = self.all_created && self.row_group.dead_count() == 0 && none_expired;
        (all && self.hidden.is_none()).then_some(self.rows)
    }

    /// How many rows are visible.
    #[must_use]
    pub fn count(&self) -> usize {
        if let Some(count) = self.known_count() {
            return count;
        }
        let mut count = 0;
        for start in (0..self.rows).step_by(ZONE_ROWS) {
            let rows = start..self.rows.min(start + ZONE_ROWS);
            count += match self.visible(rows.clone()) {
                None => rows.len(),
                Some(words) => words.iter().map(|w| w.count_ones() as usize).sum(),
            };
        }
        count
    }

    /// True when rows may have expired, or are hidden, so that [`SnapshotPart::is_visible`] must be
    /// called where delete stamps alone say otherwise.
    #[must_use]
    pub fn hides_rows(&self) -> bool {
        self.expiry.is_some() || self.hidden.is_some()
    }

    fn is_hidden(&self, row: usize) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.binary_search(&row).is_ok())
    }

    /// True when a row is visible.
    #[must_use]
    pub fn is_visible(&self, row: usize) -> bool {
        self.is_visible_by_stamps(row) && !self.has_expired(row) && !self.is_hidden(row)
    }

    #[inline]
    fn is_visible_by_stamps(&self, row: usize) -> bool {
        let is_created = self.all_created || self.row_group.is_created_at(row, self.at);
        Visibility::of(is_created, || self.row_group.deleted(row), self.at).is_visible()
    }

    fn has_expired(&self, row: usize) -> bool {
        // That the values can be read was seen when the part was made.
        let expires = |(field, now_us): &(Field, i64)| {
            let room = Room::default();
            let value = self.row_group.value(field, row, &room);
            value.is_ok_and(|value| expiry::has_expired(value, *now_us))
        };
        self.expiry.as_ref().is_some_and(expires)
    }

    /// Reads the times at which rows expire once, where they will be needed.
    fn verify_expiry(&self) -> Result<()> {
        match (&self.expiry, &self.row_group) {
            (Some((field, _)), RowGroup::Segment(segment)) => segment.verify_expiry(field),
            _ => Ok(()),
        }
    }

    /// The first of some rows that is not in a block whose rows are all dead; their end where all
    /// are.
    #[must_use]
    pub fn first_shown(&self, rows: Range<usize>) -> usize {
        self.row_group.first_shown(rows.start, rows.end, self.at)
    }

    /// The end of the longest batch from `start` of at most `rows_max` rows within one zone whose
    /// columns are contiguous.
    #[must_use]
    pub fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let zone_end = (start / ZONE_ROWS + 1) * ZONE_ROWS;
        let end = self.rows.min(zone_end).min(start + rows_max);
        match &self.row_group {
            RowGroup::Group(group) => end.min(group.chunk_end(start)),
            RowGroup::Segment(_) => end,
        }
    }

    /// How many rows have a moderate amount of long values and of compressed ones, on average, and
    /// are unpacked at once.
    #[must_use]
    pub fn rows_at_once(&self) -> usize {
        let bytes = match &self.row_group {
            RowGroup::Group(group) => group.long_bytes(),
            RowGroup::Segment(segment) => {
                segment.long_bytes().saturating_add(segment.compressed_heap_bytes())
            }
        };
        let rows = LONG_BYTES_AT_ONCE.saturating_mul(self.row_group.row_count() as u64);
        let most = match rows.checked_div(bytes) {
            // default: more than a usize counts is no limit
            Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
            None => usize::MAX,
        };
        match &self.row_group {
            RowGroup::Segment(segment) if segment.is_packed() => most.min(ZONE_ROWS),
            _ => most,
        }
    }

    /// Rows of a column, within what [`SnapshotPart::batch_end`] allows.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let field = self.schema.fields().get(position);
        let missing = || Error::corrupt(format!("no field {position}"));
        self.row_group.column(field.ok_or_else(missing)?, rows, room)
    }

    /// One value of a row.
    ///
    /// # Errors
    /// As for [`SnapshotPart::column`].
    pub fn value<'a>(
        &'a self,
        position: usize,
        row: usize,
        room: &'a Room,
    ) -> Result<ValueRef<'a>> {
        let field = self.schema.fields().get(position);
        let missing = || Error::corrupt(format!("no field {position}"));
        self.row_group.value(field.ok_or_else(missing)?, row, room)
    }

    /// Which rows are visible: `None` for all, else one bit per row.
    #[must_use]
    pub fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        let none_dead = self.row_group.dead_count() == 0;
        if none_dead && self.all_created && !self.hides_rows() {
            return None;
        }
        if let (RowGroup::Segment(segment), true, false) =
            (&self.row_group, self.all_created, self.hides_rows())
        {
            return segment.alive(rows, self.at);
        }
        let first = rows.start;
        let hidden = self.hidden_within(&rows);
        let mut words = vec![0u64; rows.len().div_ceil(64)];
        let mut all = true;
        for (i, row) in rows.enumerate() {
            let seen = (none_dead && self.all_created || self.is_visible_by_stamps(row))
                && !self.has_expired(row);
            all &= seen;
            if let Some(word) = words.get_mut(i / 64) {
                *word |= u64::from(seen) << (i % 64);
            }
        }
        for row in hidden {
            all = false;
            if let Some(word) = words.get_mut((row - first) / 64) {
                *word &= !(1 << ((row - first) % 64));
            }
        }
        (!all).then_some(words)
    }

    /// The hidden rows among some.
    fn hidden_within(&self, rows: &Range<usize>) -> &[usize] {
        // default: without a list no row is hidden
        let hidden = self.hidden.as_deref().unwrap_or_default();
        let start = hidden.partition_point(|row| *row < rows.start);
        let end = hidden.partition_point(|row| *row < rows.end);
        // default: only a range without rows has its end before its start
        hidden.get(start..end).unwrap_or_default()
    }

    /// Bounds on a field within a zone: the least value (NULL when all are), the greatest when it
    /// is known, and how many rows are NULL.
    #[must_use]
    pub fn zone(
        &self,
        position: usize,
        zone: usize,
    ) -> Option<(ValueRef<'_>, Option<ValueRef<'_>>, usize)> {
        let field = self.schema.fields().get(position)?;
        match &self.row_group {
            RowGroup::Segment(segment) => segment.zone(field, zone),
            // Of a zone that is cut, the count of NULLs says nothing.
            RowGroup::Group(_) if (zone + 1) * ZONE_ROWS > self.rows => None,
            RowGroup::Group(group) => group.zone(field, zone),
        }
    }

    /// About which values a field has, invisible rows included, where that is known.
    #[must_use]
    pub fn sketch(&self, position: usize) -> Option<&FieldSketch> {
        let RowGroup::Segment(segment) = &self.row_group else { return None };
        segment.sketch(self.schema.fields().get(position)?)
    }

    /// The least and the greatest length of a field's values in a zone: see
    /// [`lengths`](crate::segment::Segment::lengths).
    #[must_use]
    pub fn lengths(&self, position: usize, zone: usize) -> Option<RangeInclusive<u32>> {
        let RowGroup::Segment(segment) = &self.row_group else { return None };
        segment.lengths(self.schema.fields().get(position)?, zone)
    }

    /// Remembers what [`SnapshotPart::lengths`] tells.
    pub fn learn_lengths(&self, position: usize, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        if let (RowGroup::Segment(segment), Some(field)) =
            (&self.row_group, self.schema.fields().get(position))
        {
            segment.learn_lengths(field, rows, lengths);
        }
    }
}
