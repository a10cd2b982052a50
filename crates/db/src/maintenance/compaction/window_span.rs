//! Which windows and classes the rows of a segment of a stream have.

use esker_format::schema::Stream;
use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, Room, Schema, ValueRef};
use esker_table::segment::Segment;

use crate::{Error, Result};

/// By class, events before this time end; `None`: none does.
pub(crate) type EndBounds = Vec<Option<i64>>;

/// Which windows a segment has rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSpan {
    /// The least and the greatest time.
    pub least_us: i64,
    pub greatest_us: i64,
    /// Its rows lie by time.
    is_sorted: bool,
}

impl WindowSpan {
    /// That of the rows of a segment, the dead included.
    pub fn of(segment: &Segment, schema: &Schema) -> Result<Option<Self>> {
        let Some(stream) = schema.stream() else { return Ok(None) };
        let lost = || Error::corrupt("a stream without a field of times");
        let time = schema.field_of(stream.time).ok_or_else(lost)?;
        let (mut least_us, mut greatest_us) = (i64::MAX, i64::MIN);
        for start in (0..segment.row_count()).step_by(ZONE_ROWS) {
            let known = segment.zone(time, start / ZONE_ROWS);
            if let Some((ValueRef::Timestamp(least), Some(ValueRef::Timestamp(greatest)), _)) =
                known
            {
                (least_us, greatest_us) = (least_us.min(least), greatest_us.max(greatest));
                continue;
            }
            let room = Room::default();
            let times = segment.column(time, start..segment.zone_end(start), &room)?;
            for at in 0..times.len {
                let ValueRef::Timestamp(at_us) = times.value(at) else { return Err(lost()) };
                (least_us, greatest_us) = (least_us.min(at_us), greatest_us.max(at_us));
            }
        }
        let span = Self { least_us, greatest_us, is_sorted: segment.is_sorted() };
        Ok((segment.row_count() > 0).then_some(span))
    }

    /// The window of all rows, where there is one.
    pub fn window(&self, stream: &Stream) -> Option<i64> {
        let (first, last) = (stream.window_of(self.least_us), stream.window_of(self.greatest_us));
        (self.is_sorted && first == last).then_some(first)
    }
}

/// Of which classes the rows of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassOf {
    /// All of this one.
    One(usize),
    Several,
}

impl ClassOf {
    fn and(this: &mut Option<Self>, class: usize) {
        *this = Some(match *this {
            None => Self::One(class),
            Some(Self::One(other)) if other == class => Self::One(class),
            Some(_) => Self::Several,
        });
    }

    /// By the zone maps, where these tell: no value is read.
    fn by_zones(segment: &Segment, field: &Field, stream: &Stream) -> Option<Self> {
        let values: Vec<&str> = stream.class_values().collect();
        let mut all = None;
        for zone in 0..segment.row_count().div_ceil(ZONE_ROWS) {
            let (least, greatest, null_count) = segment.zone(field, zone)?;
            let has_class = |least: &str, greatest: &str| {
                values.iter().any(|value| (least..=greatest).contains(value))
            };
            let class = match (least, greatest?) {
                (ValueRef::Null, _) => stream.class_of(ValueRef::Null),
                (least, greatest) if null_count == 0 && least == greatest => stream.class_of(least),
                (ValueRef::Text(least), ValueRef::Text(greatest))
                    if !has_class(least, greatest) =>
                {
                    stream.class_of(ValueRef::Null)
                }
                _ => return None,
            };
            Self::and(&mut all, class);
        }
        all
    }

    /// By the zone maps where these tell, else by the values.
    pub fn of(segment: &Segment, schema: &Schema, stream: &Stream) -> Result<Self> {
        let Some(field) = schema.class_field() else { return Ok(Self::One(0)) };
        if let Some(known) = Self::by_zones(segment, field, stream) {
            return Ok(known);
        }
        let mut all = None;
        for start in (0..segment.row_count()).step_by(ZONE_ROWS) {
            let room = Room::default();
            let values = segment.column(field, start..segment.zone_end(start), &room)?;
            for at in 0..values.len {
                Self::and(&mut all, stream.class_of(values.value(at)));
            }
            if all == Some(Self::Several) {
                break;
            }
        }
        segment.release();
        // default: without rows it is of no class
        Ok(all.unwrap_or(Self::Several))
    }
}
