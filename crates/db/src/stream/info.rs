//! Figures about a stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, Room, Schema, ValueRef};
use esker_table::Table as TableCore;
use esker_table::segment::Segment;
use esker_table::view::RowGroup;
use serde::{Deserialize, Serialize};

use super::Stream;
use super::condition::time_field;
use crate::engine::Engine;
use crate::maintenance::retention::next_end_us;
use crate::{Error, Result};

/// Figures about a stream, of this moment.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamInfo {
    /// The field that has the times.
    pub time: String,
    /// What was declared, by the names of the options: `late`, `ahead`, `rest`, `retention`,
    /// `retention_by` and `window`.
    pub options: BTreeMap<String, String>,
    /// The length of a window in microseconds, declared or not.
    pub window_us: u64,
    /// Events that are there.
    pub events: u64,
    /// The least and the greatest of their times, in microseconds since 1970.
    pub oldest_us: Option<i64>,
    /// See there.
    pub newest_us: Option<i64>,
    /// Windows that have segments of their own, those of each class for themselves.
    pub windows: u64,
    /// The most segments of one of them.
    pub window_segments_max: u64,
    /// Segments of events of several windows, or of several classes.
    pub mixed_segments: u64,
    /// Bytes of events that wait for their commit.
    pub waiting_bytes: u64,
    /// The greatest row id that was given; 0 for none.
    pub given_row_id: u64,
    /// The greatest row id of an event that ended for its age; 0 for none.
    pub ended_row_id: u64,
    /// When the next window ends, if its events are not kept for ever, in microseconds since 1970.
    pub next_end_us: Option<i64>,
}

impl Stream {
    /// Figures about the stream, of this moment.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let events = db.stream("events")?;
    /// for t in [7, 3, 5] {
    ///     events.append(&[Value::Timestamp(t)])?;
    /// }
    /// let info = events.info()?;
    /// assert_eq!((info.events, info.oldest_us, info.newest_us), (3, Some(3), Some(7)));
    /// assert_eq!((info.time.as_str(), info.given_row_id), ("t", 3));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn info(&self) -> Result<StreamInfo> {
        self.table.engine.stream_info(self.table.core(), &self.schema())
    }
}

impl Engine {
    /// Figures about a stream, of this moment.
    pub(crate) fn stream_info(&self, core: &TableCore, schema: &Schema) -> Result<StreamInfo> {
        let time = time_field(schema)?;
        let stream = schema.stream().ok_or_else(|| Error::corrupt("figures of no stream"))?;
        let options = schema.stream_options()?.into_iter().filter(|(name, _)| *name != "stream");
        let view = core.view();
        let field = schema.field_of(stream.time);
        let times = field.map(|field| times_of(&view.row_groups, field)).transpose()?.flatten();
        let there = view.segments().filter(|segment| segment.ended_at().is_none());
        let segments: Vec<Arc<Segment>> = there.cloned().collect();
        let (of_windows, mixed_segments) = self.count_by_window(schema, stream, &segments)?;
        Ok(StreamInfo {
            time: time.to_owned(),
            options: options.map(|(name, value)| (name.to_owned(), value)).collect(),
            window_us: stream.window_us(),
            events: core.live_rows(),
            oldest_us: times.map(|(oldest, _)| oldest),
            newest_us: times.map(|(_, newest)| newest),
            windows: of_windows.len() as u64,
            // default: there are none
            window_segments_max: of_windows.into_iter().max().unwrap_or_default(),
            mixed_segments,
            waiting_bytes: self.gathered_events(core.id()).backlog().0,
            given_row_id: core.given_row_id(),
            ended_row_id: core.ended_row_id(),
            next_end_us: next_end_us(stream, self.destroying_us(schema)),
        })
    }
}

/// The least and the greatest time of the living events of row groups.
fn times_of(row_groups: &[RowGroup], time: &Field) -> Result<Option<(i64, i64)>> {
    let mut found: Option<(i64, i64)> = None;
    for row_group in row_groups.iter().filter(|row_group| !row_group.is_loading()) {
        if matches!(row_group, RowGroup::Segment(segment) if segment.ended_at().is_some()) {
            continue;
        }
        let rows = row_group.row_count();
        for start in (0..rows).step_by(ZONE_ROWS) {
            let end = rows.min(start + ZONE_ROWS);
            let bounds = bounds_of(row_group, time, start);
            if let (Some(known), Some(bounds)) = (found, bounds)
                && known.0 <= bounds.0
                && bounds.1 <= known.1
            {
                continue;
            }
            match bounds.filter(|_| row_group.dead_count() == 0) {
                Some(bounds) => widen(&mut found, bounds),
                None => read(row_group, time, start..end, &mut found)?,
            }
        }
        row_group.release();
    }
    Ok(found)
}

fn widen(found: &mut Option<(i64, i64)>, (least, greatest): (i64, i64)) {
    // default: these are the first
    let (known_least, known_greatest) = found.unwrap_or((least, greatest));
    *found = Some((least.min(known_least), greatest.max(known_greatest)));
}

/// The bounds of a zone, where they are known.
fn bounds_of(row_group: &RowGroup, time: &Field, start: usize) -> Option<(i64, i64)> {
    let zone = start / ZONE_ROWS;
    let known = match row_group {
        RowGroup::Segment(segment) => segment.zone(time, zone),
        RowGroup::Group(group) => group.zone(time, zone),
    };
    match known? {
        (ValueRef::Timestamp(least), Some(ValueRef::Timestamp(greatest)), _) => {
            Some((least, greatest))
        }
        _ => None,
    }
}

fn read(
    row_group: &RowGroup,
    time: &Field,
    rows: std::ops::Range<usize>,
    found: &mut Option<(i64, i64)>,
) -> Result<()> {
    for row in rows.filter(|row| row_group.is_alive(*row)) {
        let room = Room::default();
        let ValueRef::Timestamp(at_us) = row_group.value(time, row, &room)? else {
            return Err(Error::corrupt("an event without a time"));
        };
        widen(found, (at_us, at_us));
    }
    Ok(())
}
