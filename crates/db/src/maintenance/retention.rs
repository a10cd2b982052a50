//! Ending events that are older than they are to be kept.
//!
//! ```text
//!             │ ended before this: the beginning of a window
//!   ├─ segment ─┤├─ segment ─┤        the first has ended as a whole: one word of memory each,
//!             │                       and its number in the frame
//!   ├──── stragglers ────┤            rows of both sides: those before the bound are deleted
//! ```
//!
//! One commit ends whole segments, and deletes the old rows of others and of groups; where these
//! are many, further commits delete the rest. Readers at older commits see all of them. Nothing is
//! read of a segment that ends, and its file goes as that of any segment without living rows does:
//! by a merge that has no output, once no snapshot is older.
//!
//! The date of the database decides what is old. After a sudden move of the clock forward, the date
//! without that move decides, until the new one is confirmed (`clock`).
//!
//! Events that come are refused where they would have ended (`catalog/event_times.rs`), so that the
//! work is done once for each window.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use esker_format::schema::Stream;
use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::table::Existing;
use esker_table::view::RowGroup;
use esker_table::{Location, Table as TableCore};

use super::TableJob;
use super::compaction::window_span::{ClassOf, EndBounds};
use super::ended_groups::{History, SegmentGroups};
use crate::commit::conflict::conflict;
use crate::commit::ended_segments::EndedEvents;
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Rows that are deleted in one commit.
const BATCH_ROWS: usize = 16 << 10;
/// How often it is looked whether a window has passed.
const LOOK_MAX_US: i64 = 60_000_000;
/// The shortest time until the next look.
const LOOK_MIN_US: i64 = 10_000;

/// A stream whose events end.
#[derive(Clone, Copy)]
struct Ending<'a> {
    core: &'a Arc<TableCore>,
    schema: &'a Arc<Schema>,
    /// The histories of rollups that get what they came to; `None` where a program ends them.
    histories: Option<&'a [History]>,
}

/// Old events of a stream.
#[derive(Default)]
struct Old {
    segments: BTreeSet<u64>,
    rows: Vec<Location>,
    /// A load is under way, which may have some.
    has_loading: bool,
}

impl Engine {
    /// Ends the old events of a stream that has some. True when there were some. One that fails is
    /// left alone for a while, and holds back no other.
    pub(super) fn end_old_events(self: &Arc<Self>) -> Result<bool> {
        for core in self.streams_that_end() {
            if self.is_backing_off(core.id(), TableJob::EndEvents) {
                continue;
            }
            let ended = self.end_old_events_of(&core);
            // Its schema has changed since: the next look goes by the new one.
            let is_outdated = ended.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict);
            self.back_off(core.id(), TableJob::EndEvents, ended.is_err() && !is_outdated);
            match ended {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                Err(_) if is_outdated => {}
                Err(e) => self.note_error(&e),
            }
        }
        Ok(false)
    }

    fn end_old_events_of(self: &Arc<Self>, core: &Arc<TableCore>) -> Result<bool> {
        let schema = core.schema();
        let Some(stream) = schema.stream() else { return Ok(false) };
        let bounds = bounds(stream, self.destroying_us(&schema));
        let known = self.maintenance_state().retained.get(&core.id()).cloned();
        if known.is_some_and(|known| known == (schema.version(), bounds.clone())) {
            return Ok(false);
        }
        let old = self.old_events(core, &schema, &bounds)?;
        let has_loading = old.has_loading;
        let (histories, schema_now) = (&*self.histories_of(&schema)?, &schema);
        if !histories.is_empty() && self.is_durable() && self.is_short_of_memory() {
            // What the groups take is made room for, as writers make it.
            self.freeze_largest(&mut *self.lock_for_change()?);
            self.seal_frozen()?;
        }
        let histories = Some(histories);
        if self.end_all(Ending { core, schema: schema_now, histories }, &old)? > 0 {
            return Ok(true);
        }
        // Nothing is left: it is looked again when the next window passes.
        if !has_loading {
            self.maintenance_state().retained.insert(core.id(), (schema.version(), bounds));
        }
        Ok(false)
    }

    /// How long until a window passes, or until it is looked again whether one has.
    pub(super) fn until_events_end(&self) -> Option<Duration> {
        let next = self.streams_that_end().into_iter().filter_map(|core| {
            let schema = core.schema();
            let (stream, date_us) = (schema.stream()?, self.destroying_us(&schema));
            (0..stream.class_count()).filter_map(|class| next_end(stream, class, date_us)).min()
        });
        let wait_us = next.min()?.clamp(LOOK_MIN_US, LOOK_MAX_US);
        Some(Duration::from_micros(wait_us.unsigned_abs()))
    }

    fn streams_that_end(&self) -> Vec<Arc<TableCore>> {
        let catalogue = self.lock();
        let cores = catalogue.tables.values().map(|entry| entry.writer.table());
        let ends = |core: &&Arc<TableCore>| core.schema().stream().is_some_and(Stream::ends_events);
        cores.filter(ends).cloned().collect()
    }

    /// Ends the events of a stream whose times are before the bound of their class; says how many.
    /// In a job of maintenance, or in its place: neither a seal nor a merge moves rows meanwhile.
    pub(crate) fn end_events_before(
        self: &Arc<Self>,
        core: &Arc<TableCore>,
        schema: &Arc<Schema>,
        bounds: &EndBounds,
    ) -> Result<u64> {
        let old = self.old_events(core, schema, bounds)?;
        self.end_all(Ending { core, schema, histories: None }, &old)
    }

    fn end_all(
        self: &Arc<Self>,
        ending: Ending<'_>,
        Old { segments, rows, .. }: &Old,
    ) -> Result<u64> {
        let mut ended = 0;
        let mut batches = rows.chunks(BATCH_ROWS);
        if ending.histories.is_none_or(<[_]>::is_empty) {
            // default: no rows beside those of segments
            let first = batches.next().unwrap_or_default();
            if !segments.is_empty() || !first.is_empty() {
                ended += self.end_batch(ending, segments, first)?;
            }
        } else {
            // A frame has the groups of one segment.
            for segment in segments {
                ended += self.end_segment(ending, *segment)?;
            }
        }
        for rows in batches {
            ended += self.end_batch(ending, &BTreeSet::new(), rows)?;
        }
        if ended > 0 {
            // Then readers to come see that they are gone.
            self.wait_for_published()?;
        }
        Ok(ended)
    }

    /// One commit; where there is no room for it, segments alone, whose frame is small, and half of
    /// the rows at a time.
    fn end_batch(
        &self,
        ending: Ending<'_>,
        segments: &BTreeSet<u64>,
        rows: &[Location],
    ) -> Result<u64> {
        match self.commit_ends(ending, segments, rows) {
            Err(e) if is_for_want_of_room(&e) && !segments.is_empty() && !rows.is_empty() => {
                let ended = self.commit_ends(ending, segments, &[])?;
                Ok(ended + self.end_batch(ending, &BTreeSet::new(), rows)?)
            }
            Err(e) if is_for_want_of_room(&e) && rows.len() > 1 => {
                let (first, rest) = rows.split_at(rows.len() / 2);
                let ended = self.end_batch(ending, segments, first)?;
                Ok(ended + self.end_batch(ending, segments, rest)?)
            }
            ended => ended,
        }
    }

    /// A segment with the groups of its events; some events at a time where they have too many
    /// groups for a frame.
    fn end_segment(&self, ending: Ending<'_>, segment: u64) -> Result<u64> {
        match self.commit_ends(ending, &BTreeSet::from([segment]), &[]) {
            Err(e) if is_for_want_of_room(&e) => {}
            ended => return ended,
        }
        let view = ending.core.view();
        let rows = view.segments().find(|found| found.id() == segment).map(|s| s.row_count());
        let Some(rows) = rows else { return Ok(0) };
        let rows: Vec<Location> = (0..rows).map(|row| Location::new(segment, row)).collect();
        let mut ended = 0;
        for rows in rows.chunks(BATCH_ROWS) {
            ended += self.end_batch(ending, &BTreeSet::new(), rows)?;
        }
        Ok(ended)
    }

    fn commit_ends(
        &self,
        Ending { core, schema, histories: kept }: Ending<'_>,
        segments: &BTreeSet<u64>,
        rows: &[Location],
    ) -> Result<u64> {
        // default: none get them
        let histories = kept.unwrap_or_default();
        let mut groups = BTreeMap::new();
        for segment in core.view().segments().filter(|s| segments.contains(&s.id())) {
            let of_segment = match histories.is_empty() {
                true => None,
                false => Some(SegmentGroups::of(histories, segment, schema)?),
            };
            groups.insert(segment.id(), of_segment);
        }
        let mut catalogue = self.lock_for_change()?;
        if core.schema().version() != schema.version() {
            return Err(conflict(format!("the schema of stream {:?} was changed", core.name())));
        }
        if kept.is_some() && !self.are_histories_of(schema, histories) {
            let name = core.name();
            return Err(conflict(format!("a view of stream {name:?} has got a history")));
        }
        catalogue.entry(core.id())?;
        let view = core.view();
        let there = view.segments().filter(|segment| segment.ended_at().is_none());
        let there = there.map(|segment| segment.id()).filter(|id| segments.contains(id));
        let segments: BTreeSet<u64> = there.collect();
        let mut deletes = Vec::new();
        for location in rows {
            let Some((row_group, row)) = view.row(*location) else { continue };
            if !segments.contains(&row_group.id()) && row_group.is_alive(row) {
                deletes.push(Existing::at(row_group, row, row_group.row_id(row)?));
            }
        }
        groups.retain(|segment, _| segments.contains(segment));
        let groups = self.ended_groups((histories, schema), (&view, &groups, &deletes))?;
        self.commit_ended_events(&mut catalogue, core, EndedEvents { segments, deletes, groups })
    }

    /// Whole segments, and rows of others.
    fn old_events(
        &self,
        core: &Arc<TableCore>,
        schema: &Arc<Schema>,
        bounds: &EndBounds,
    ) -> Result<Old> {
        let mut old = Old::default();
        let Some(latest) = bounds.iter().flatten().max().copied() else { return Ok(old) };
        let bound_of = |class: usize| bounds.get(class).copied().flatten();
        for row_group in &core.view().row_groups {
            if row_group.is_loading() {
                old.has_loading = true;
                continue;
            }
            if let RowGroup::Segment(segment) = row_group {
                let Some(span) = self.window_span(segment, schema)? else { continue };
                if segment.ended_at().is_some() || span.least_us >= latest {
                    continue;
                }
                let class = self.class_of(segment, schema)?;
                let bound = match class {
                    ClassOf::One(class) => bound_of(class),
                    ClassOf::Several => bounds.iter().min().copied().flatten(),
                };
                let newest = match Bug::RetentionEndsNewerRows.is_planted() {
                    true => span.least_us,
                    false => span.greatest_us,
                };
                if bound.is_some_and(|bound| newest < bound) {
                    old.segments.insert(segment.id());
                    continue;
                }
                let is_young = match class {
                    ClassOf::One(_) => bound.is_none_or(|bound| span.least_us >= bound),
                    ClassOf::Several => false,
                };
                if is_young || Bug::StragglerLeftBehind.is_planted() {
                    continue;
                }
            }
            find_in(row_group, schema, bounds, latest, &mut old.rows)?;
        }
        Ok(old)
    }
}

/// Whether fewer events at a time may end.
fn is_for_want_of_room(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::OverBudget)
}

/// The bounds of all classes at a date.
pub(crate) fn bounds(stream: &Stream, date_us: i64) -> EndBounds {
    (0..stream.class_count()).map(|class| stream.ended_before(class, date_us)).collect()
}

/// The date at which the next window ends, of whatever class; `None`: events are kept for ever.
pub(crate) fn next_end_us(stream: &Stream, date_us: i64) -> Option<i64> {
    let next = (0..stream.class_count()).filter_map(|class| next_end(stream, class, date_us)).min();
    next.map(|wait_us| date_us.saturating_add(wait_us))
}

/// How long until the next window of a class ends.
fn next_end(stream: &Stream, class: usize, date_us: i64) -> Option<i64> {
    let keep_us = i64::try_from(stream.keep_us_of(class)?).ok()?;
    let window_us = i64::try_from(stream.window_us()).ok()?;
    let ended_us = stream.ended_before(class, date_us)?;
    let next_us = ended_us.checked_add(window_us)?.checked_add(keep_us)?;
    Some(next_us.saturating_sub(date_us))
}

/// Adds the living rows of a row group that are before the bounds of their classes.
fn find_in(
    row_group: &RowGroup,
    schema: &Schema,
    bounds: &EndBounds,
    latest: i64,
    found: &mut Vec<Location>,
) -> Result<()> {
    let Some(stream) = schema.stream() else { return Ok(()) };
    let lost = || Error::corrupt("a stream without a field of times");
    let time = schema.field_of(stream.time).ok_or_else(lost)?;
    let class = schema.class_field();
    for start in (0..row_group.row_count()).step_by(ZONE_ROWS) {
        if least_of(row_group, time, start).is_some_and(|least| least >= latest) {
            continue;
        }
        for row in start..row_group.row_count().min(start + ZONE_ROWS) {
            let room = Room::default();
            let ValueRef::Timestamp(at_us) = row_group.value(time, row, &room)? else {
                return Err(lost());
            };
            if at_us >= latest || !row_group.is_alive(row) {
                continue;
            }
            let class = match class {
                Some(class) => stream.class_of(row_group.value(class, row, &room)?),
                None => 0,
            };
            if bounds.get(class).copied().flatten().is_some_and(|bound| at_us < bound) {
                found.push(Location::new(row_group.id(), row));
            }
        }
    }
    row_group.release();
    Ok(())
}

/// The least time of a zone, where that is known.
fn least_of(row_group: &RowGroup, time: &Field, start: usize) -> Option<i64> {
    let known = match row_group {
        RowGroup::Segment(segment) => segment.zone(time, start / ZONE_ROWS),
        RowGroup::Group(group) if start + ZONE_ROWS <= group.row_count() => {
            group.zone(time, start / ZONE_ROWS)
        }
        RowGroup::Group(_) => None,
    };
    match known {
        Some((ValueRef::Timestamp(least), ..)) => Some(least),
        _ => None,
    }
}
