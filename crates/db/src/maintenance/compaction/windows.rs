//! Merging segments of a stream: those of one class and one window of time.
//!
//! ```text
//!   window 5      ├── base ──┤ ├─ later ─┤          at most four of a window, then fewer
//!   window 6          ├── base ──┤                  closed: no event is to come
//!   several   ├───────── stragglers ─────────┤      at most four, then one, less what is a base
//! ```
//!
//! * Segments of one window are merged past four of them, the smallest first, as many as make their
//!   number fall. Those of a closed window are merged once the smaller ones have a quarter of the
//!   rows of the largest, so that a late event does not have a window written again.
//! * Segments of several windows, and of rows as they came, are merged past four. Windows that have
//!   many of their rows become segments of their own.
//! * What is left of a closed window is written once more, by itself, if it has not been merged:
//!   with its heaps compressed.
//! * Segments of several classes, which were written before the classes changed, are the same.
//!
//! Invariant: each merge leaves fewer segments of the window, or fewer of several windows and
//! classes, or fewer that are not compressed. So it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Stream;
use esker_log::sabotage::Bug;
use esker_table::rewrite::variable_fields;
use esker_table::segment::Segment;
use esker_table::view::RowGroup;

use super::pick::smallest;
use super::window_span::{ClassOf, WindowSpan};
use crate::Result;
use crate::engine::Engine;

/// Segments of one window, or of several, before they are merged.
const SEGMENTS_MAX: usize = 4;
/// Segments of a closed window are merged when they have one row for this many of the largest.
const BASE_SHARE: u64 = 4;

impl Engine {
    /// Which windows a segment has rows of.
    pub(crate) fn window_span(
        &self,
        segment: &Segment,
        schema: &Schema,
    ) -> Result<Option<WindowSpan>> {
        let known = self.maintenance_state().window_spans.get(&segment.id()).copied();
        if known.is_some() {
            return Ok(known);
        }
        let span = WindowSpan::of(segment, schema)?;
        self.maintenance_state().window_spans.extend(span.map(|span| (segment.id(), span)));
        Ok(span)
    }

    /// Of which classes the rows of a segment are.
    pub(crate) fn class_of(&self, segment: &Segment, schema: &Schema) -> Result<ClassOf> {
        let Some((stream, classes)) =
            schema.stream().and_then(|stream| Some((stream, stream.retention.classes.as_ref()?)))
        else {
            return Ok(ClassOf::One(0));
        };
        let known = self.maintenance_state().segment_classes.get(&segment.id()).cloned();
        let is_known = |(by, _): &(_, _)| by == classes || Bug::AlteredClassesIgnored.is_planted();
        if let Some((_, class)) = known.filter(is_known) {
            return Ok(class);
        }
        let class = ClassOf::of(segment, schema, stream)?;
        let known = (classes.clone(), class);
        self.maintenance_state().segment_classes.insert(segment.id(), known);
        Ok(class)
    }

    /// The segments of a stream to merge next, by age; none when nothing is due.
    pub(super) fn pick_of_windows(
        &self,
        schema: &Schema,
        segments: &[Arc<Segment>],
    ) -> Result<Vec<RowGroup>> {
        let Some(stream) = schema.stream() else { return Ok(Vec::new()) };
        let parts = self.by_window(schema, stream, segments)?;
        let texts = variable_fields(schema.fields());
        let limits = (self.options.merged_rows_max, self.options.column_bytes_max);
        let open_from = self.first_open_window(stream);
        let mut unpacked = None;
        for (part, own) in parts {
            if matches!(part, Part::Window(_, window) if window < open_from) {
                unpacked = unpacked.or_else(|| own.iter().find(|own| !is_packed(own)).cloned());
            }
            let is_due = match part {
                _ if own.len() > SEGMENTS_MAX => true,
                Part::Window(_, window) if window < open_from => has_quarter(&own),
                _ => false,
            };
            if !is_due {
                continue;
            }
            let picked = smallest(own, &texts, limits)?;
            if picked.len() > 1 {
                return Ok(picked);
            }
        }
        // In memory there is nothing to gain.
        Ok(unpacked.filter(|_| self.is_durable()).into_iter().collect())
    }

    /// Segments in parts that are merged apart from each other: by class and window.
    pub(super) fn by_window(
        &self,
        schema: &Schema,
        stream: &Stream,
        segments: &[Arc<Segment>],
    ) -> Result<BTreeMap<Part, Vec<RowGroup>>> {
        let mut parts: BTreeMap<Part, Vec<RowGroup>> = BTreeMap::new();
        for segment in segments {
            let Some(span) = self.window_span(segment, schema)? else { continue };
            // One that has ended goes by itself.
            if segment.ended_at().is_some() {
                continue;
            }
            let part = match (self.class_of(segment, schema)?, span.window(stream)) {
                (ClassOf::One(class), Some(window)) => Part::Window(class, window),
                (ClassOf::One(class), None) => Part::Several(Some(class)),
                (ClassOf::Several, _) => Part::Several(None),
            };
            parts.entry(part).or_default().push(RowGroup::Segment(Arc::clone(segment)));
        }
        Ok(parts)
    }

    /// How many segments each window and class has, and how many there are of several of either.
    pub(crate) fn count_by_window(
        &self,
        schema: &Schema,
        stream: &Stream,
        segments: &[Arc<Segment>],
    ) -> Result<(Vec<u64>, u64)> {
        let (mut of_windows, mut mixed) = (Vec::new(), 0);
        for (part, own) in self.by_window(schema, stream, segments)? {
            match part {
                Part::Window(..) => of_windows.push(own.len() as u64),
                Part::Several(_) => mixed += own.len() as u64,
            }
        }
        Ok((of_windows, mixed))
    }

    /// Events of windows before this one come no more, but for late ones.
    fn first_open_window(&self, stream: &Stream) -> i64 {
        let window_us = stream.window_us();
        // default: where any event may be late, most come within a window
        let late_us = stream.late_us.unwrap_or(window_us).min(window_us);
        let late_us = i64::try_from(late_us).unwrap_or(i64::MAX); // default: no time is so late
        stream.window_of(self.now().date_us.saturating_sub(late_us))
    }
}

/// Segments that may be merged with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Of a class and a window.
    Window(usize, i64),
    /// Of several windows; of several classes, where that is `None`.
    Several(Option<usize>),
}

fn is_packed(row_group: &RowGroup) -> bool {
    match row_group {
        RowGroup::Group(_) => true,
        RowGroup::Segment(segment) => segment.is_packed_whole(),
    }
}

/// The smaller ones have a quarter of the rows of the largest.
fn has_quarter(segments: &[RowGroup]) -> bool {
    let rows = || segments.iter().map(|segment| segment.row_count() as u64);
    // default: of none the largest has none
    let largest = rows().max().unwrap_or(0);
    segments.len() > 1 && (rows().sum::<u64>() - largest) * BASE_SHARE >= largest
}
