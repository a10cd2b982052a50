//! Which events go to one output: those of one class, and of one window where they are many.
//!
//! ```text
//! window     1  1  2  5  5  5  5  5  5  5  5  6  6  6  6  6  6  6  7     sorted by time
//! outputs    stragglers   base of 5               base of 6       rest
//! ```
//!
//! A window with an eighth of the rows, or with 8 MiB, is a *base*: it ends as a whole, and what is
//! merged with it later is of the same window. Rows of other windows lie together. Those before the
//! newest base are *stragglers*, which came late: when groups are sealed they do not make the rows
//! that came in time span the past. When segments are merged there is one output for all rows
//! outside of a base, so that there are fewer of these segments afterwards.

use esker_format::schema::Stream;
use esker_format::{Field, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;

use super::RewritePlan;
use crate::live_version::LiveVersion;
use crate::view::RowGroup;
use crate::{Error, Result};

/// One row in this many makes a window a base.
const BASE_SHARE: usize = 8;
/// So do these bytes.
const BASE_BYTES: u64 = 8 << 20;

/// What rows of a stream are cut by.
struct Cut<'a> {
    plan: &'a RewritePlan,
    stream: &'a Stream,
    time: &'a Field,
    class: Option<&'a Field>,
    /// About the bytes of a row.
    row_bytes: u64,
}

/// Cuts sorted rows; those of a table that is no stream are one piece.
pub(super) fn pieces(
    plan: &RewritePlan,
    schema: &Schema,
    kept: Vec<LiveVersion>,
) -> Result<Vec<Vec<LiveVersion>>> {
    let Some(stream) = schema.stream() else { return Ok(vec![kept]) };
    let no_time = || Error::corrupt("a stream without a field of times");
    let bytes: u64 = plan.inputs.iter().map(RowGroup::byte_count).sum();
    let rows: usize = plan.inputs.iter().map(RowGroup::row_count).sum();
    let cut = Cut {
        plan,
        stream,
        time: schema.field_of(stream.time).ok_or_else(no_time)?,
        class: schema.class_field(),
        row_bytes: bytes / (rows as u64).max(1),
    };
    let mut pieces = Vec::new();
    for of_class in cut.by_class(kept)? {
        pieces.extend(cut.by_window(of_class)?);
    }
    Ok(pieces)
}

impl Cut<'_> {
    fn by_class(&self, kept: Vec<LiveVersion>) -> Result<Vec<Vec<LiveVersion>>> {
        let Some(field) = self.class else {
            return Ok(vec![kept]);
        };
        let mut classes = vec![Vec::new(); self.stream.class_count()];
        for version in kept {
            let class = self.stream.class_of(self.value(field, &version, &Room::default())?);
            let missing = || Error::corrupt(format!("no class {class} of a stream"));
            classes.get_mut(class).ok_or_else(missing)?.push(version);
        }
        classes.retain(|rows| !rows.is_empty());
        Ok(classes)
    }

    fn by_window(&self, kept: Vec<LiveVersion>) -> Result<Vec<Vec<LiveVersion>>> {
        if Bug::SealIgnoresWindows.is_planted() && self.is_seal() {
            return Ok(vec![kept]);
        }
        let mut windows: Vec<(i64, Vec<LiveVersion>)> = Vec::new();
        let rows = kept.len();
        for version in kept {
            let window = match self.value(self.time, &version, &Room::default())? {
                ValueRef::Timestamp(at_us) => self.stream.window_of(at_us),
                _ => return Err(Error::corrupt("an event without a time")),
            };
            match windows.last_mut().filter(|(last, _)| *last == window) {
                Some((_, rows)) => rows.push(version),
                None => windows.push((window, vec![version])),
            }
        }
        let is_base = |(_, own): &(i64, Vec<LiveVersion>)| {
            let bytes = self.row_bytes.saturating_mul(own.len() as u64);
            let is_share = own.len() * BASE_SHARE >= rows && own.len() >= self.plan.window_rows_min;
            is_share || bytes >= BASE_BYTES
        };
        let is_seal = self.is_seal();
        let newest = windows.iter().filter(|window| is_base(window)).map(|(n, _)| *n).next_back();
        let (mut pieces, mut stragglers, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for window in windows {
            match (is_base(&window), newest) {
                (true, _) => pieces.push(window.1),
                (false, Some(newest)) if is_seal && window.0 < newest => {
                    stragglers.extend(window.1);
                }
                (false, _) => rest.extend(window.1),
            }
        }
        pieces.extend([stragglers, rest].into_iter().filter(|rows| !rows.is_empty()));
        Ok(pieces)
    }

    fn is_seal(&self) -> bool {
        self.plan.inputs.iter().all(|input| matches!(input, RowGroup::Group(_)))
    }

    fn value<'v>(
        &'v self,
        field: &'v Field,
        version: &LiveVersion,
        room: &'v Room,
    ) -> Result<ValueRef<'v>> {
        self.plan.row_group(version)?.value(field, version.row as usize, room)
    }
}
