//! The rows of a chunk that each row looks at.
//!
//! Bounds of a frame never go back from one row of a partition to the next, so that they are found
//! by going along, each row being passed once.

use std::cmp::Ordering;
use std::ops::Range;

use esker_format::calendar::DAY_US;
use esker_format::decimal::limit;
use esker_format::value::compare_floats;
use esker_format::{Column, DataType};

use super::arrangement::Chunk;
use super::columns::vector_of;
use crate::bind::window::{Call, Distance, Edge};
use crate::evaluate::{Lanes, Vector, moved};
use crate::model::{FrameExclusion, FrameUnits};
use crate::{Error, Result};

/// The frame of each row of a chunk.
pub(super) struct Frames {
    starts: Vec<usize>,
    ends: Vec<usize>,
    exclude: FrameExclusion,
    /// Where the peers of each row begin and end, where some rows are left out.
    peers: Vec<(usize, usize)>,
}

impl Frames {
    /// The frames of a call.
    ///
    /// # Errors
    /// `InvalidQuery` for keys that have no distances; when the query is to end.
    pub(super) fn of(chunk: &Chunk<'_>, call: &Call<usize>) -> Result<Self> {
        let frame = &call.frame;
        let starts = edges(chunk, call, &frame.start, true)?;
        let mut ends = edges(chunk, call, &frame.end, false)?;
        ends.iter_mut().zip(&starts).for_each(|(end, start)| *end = (*end).max(*start));
        let exclude = frame.exclude;
        let mut peers = Vec::new();
        if exclude != FrameExclusion::NoOthers {
            for partition in chunk.partitions() {
                for group in chunk.peers(partition) {
                    peers.extend(std::iter::repeat_n((group.start, group.end), group.len()));
                }
            }
        }
        Ok(Self { starts, ends, exclude, peers })
    }

    /// From the first to the last row, those that are left out included.
    pub(super) fn whole(&self, row: usize) -> Range<usize> {
        match (self.starts.get(row), self.ends.get(row)) {
            (Some(start), Some(end)) => *start..*end,
            _ => 0..0,
        }
    }

    /// Whether rows are left out.
    pub(super) fn has_gaps(&self) -> bool {
        self.exclude != FrameExclusion::NoOthers
    }

    /// The rows, in order; some of the ranges may be empty.
    pub(super) fn ranges(&self, row: usize) -> [Range<usize>; 3] {
        let whole = self.whole(row);
        if !self.has_gaps() {
            return [whole, 0..0, 0..0];
        }
        let clipped = |range: Range<usize>| {
            let start = range.start.max(whole.start);
            start..range.end.min(whole.end).max(start)
        };
        // default: each row has peers
        let (first, end) = self.peers.get(row).copied().unwrap_or((row, row + 1));
        match self.exclude {
            FrameExclusion::NoOthers => [whole, 0..0, 0..0],
            FrameExclusion::CurrentRow => {
                [clipped(whole.start..row), clipped(row + 1..whole.end), 0..0]
            }
            FrameExclusion::Group => [clipped(whole.start..first), clipped(end..whole.end), 0..0],
            FrameExclusion::Ties => {
                [clipped(whole.start..first), clipped(row..row + 1), clipped(end..whole.end)]
            }
        }
    }
}

/// Where the frame of each row begins, or ends.
fn edges(chunk: &Chunk<'_>, call: &Call<usize>, edge: &Edge, is_start: bool) -> Result<Vec<usize>> {
    let mut edges = Vec::with_capacity(chunk.len());
    let side = |range: &Range<usize>| if is_start { range.start } else { range.end };
    let units = call.frame.units;
    let distance = match edge {
        Edge::First | Edge::Last => {
            for partition in chunk.partitions() {
                chunk.meter.work(partition.len())?;
                let at = if *edge == Edge::First { partition.start } else { partition.end };
                edges.extend(std::iter::repeat_n(at, partition.len()));
            }
            return Ok(edges);
        }
        Edge::Current if units == FrameUnits::Rows => {
            chunk.meter.work(chunk.len())?;
            edges.extend((0..chunk.len()).map(|row| row + usize::from(!is_start)));
            return Ok(edges);
        }
        Edge::Current => {
            for partition in chunk.partitions() {
                chunk.meter.work(partition.len())?;
                for peers in chunk.peers(partition) {
                    edges.extend(std::iter::repeat_n(side(&peers), peers.len()));
                }
            }
            return Ok(edges);
        }
        Edge::Before(distance) | Edge::After(distance) => distance,
    };
    let is_back = matches!(edge, Edge::Before(_));
    let Distance::Count(count) = distance else {
        let [key] = call.order.as_slice() else {
            return Err(Error::invalid("RANGE with an offset: expected one key in ORDER BY"));
        };
        let how = Towards { is_back, is_start, descending: key.descending };
        return by_keys(chunk, key.value, distance, how);
    };
    // default: more than there are rows
    let count = usize::try_from(*count).unwrap_or(usize::MAX);
    by_count(chunk, (units, count), is_back, is_start)
}

/// Bounds by so many rows, or groups of peers.
fn by_count(
    chunk: &Chunk<'_>,
    (units, count): (FrameUnits, usize),
    is_back: bool,
    is_start: bool,
) -> Result<Vec<usize>> {
    let mut edges = Vec::with_capacity(chunk.len());
    let side = |range: &Range<usize>| if is_start { range.start } else { range.end };
    let mut groups: Vec<Range<usize>> = Vec::new();
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        let moved = |at: usize| match is_back {
            true => at.checked_sub(count).filter(|at| *at >= partition.start),
            false => at.checked_add(count).filter(|at| *at < partition.end),
        };
        let beyond = if is_back { partition.start } else { partition.end };
        if units == FrameUnits::Rows {
            let at = |row| moved(row).map_or(beyond, |row| row + usize::from(!is_start));
            edges.extend(partition.clone().map(at));
            continue;
        }
        groups.clear();
        groups.extend(chunk.peers(partition.clone()));
        for (number, group) in groups.iter().enumerate() {
            let other = match is_back {
                true => number.checked_sub(count),
                false => number.checked_add(count),
            };
            let other = other.and_then(|other| groups.get(other));
            edges.extend(std::iter::repeat_n(other.map_or(beyond, side), group.len()));
        }
    }
    Ok(edges)
}

/// Which end of a frame is looked for, and in which direction.
#[derive(Clone, Copy)]
struct Towards {
    is_back: bool,
    is_start: bool,
    descending: bool,
}

/// Bounds by how far keys are apart.
fn by_keys(chunk: &Chunk<'_>, key: usize, distance: &Distance, how: Towards) -> Result<Vec<usize>> {
    // Less than the key of the row, or more.
    let is_less = how.is_back != how.descending;
    match distance {
        Distance::Count(_) => Err(Error::invalid("expected a distance of keys")),
        Distance::Exact { amount, factor } => {
            let column = chunk.column(key)?;
            let keys = exact(&vector_of(&column)?, *factor)?;
            let amount = if is_less { -*amount } else { *amount };
            let targets: Vec<i128> = keys.iter().map(|key| key.saturating_add(amount)).collect();
            along(chunk, &column, (&keys, &targets), how, Ord::cmp)
        }
        Distance::Float(amount) => {
            let column = chunk.column(key)?;
            let keys = floats(&vector_of(&column)?)?;
            let target = |key: &f64| {
                let target = if is_less { key - amount } else { key + amount };
                // Infinitely far from the other infinity lies everything.
                match target.is_nan() && !key.is_nan() {
                    true if is_less => f64::NEG_INFINITY,
                    true => f64::INFINITY,
                    false => target,
                }
            };
            let targets: Vec<f64> = keys.iter().map(target).collect();
            along(chunk, &column, (&keys, &targets), how, |a, b| compare_floats(*a, *b))
        }
        Distance::Span { months, us } => {
            let column = chunk.column(key)?;
            let vector = vector_of(&column)?;
            let unit_us = if vector.data_type == DataType::Date { DAY_US } else { 1 };
            let keys = exact(&vector, unit_us.into())?;
            let sign = if is_less { -1 } else { 1 };
            let (months, us) = (sign * i128::from(*months), sign * i128::from(*us));
            // Beyond the calendar is past all keys.
            let beyond = if is_less { i128::MIN } else { i128::MAX };
            let target = |key: &i128| moved(*key, months, us).unwrap_or(beyond);
            let targets: Vec<i128> = keys.iter().map(target).collect();
            along(chunk, &column, (&keys, &targets), how, Ord::cmp)
        }
    }
}

/// Whole keys, each so many times.
fn exact(vector: &Vector<'_>, factor: i128) -> Result<Vec<i128>> {
    let times = |value: i128| value.saturating_mul(factor);
    Ok(match &vector.lanes {
        Lanes::Ints(values) => values.iter().map(|v| times((*v).into())).collect(),
        Lanes::Uints(values) => values.iter().map(|v| times((*v).into())).collect(),
        Lanes::Wides(values) => values.iter().map(|v| times(*v)).collect(),
        _ => return Err(without_distance(vector.data_type)),
    })
}

fn floats(vector: &Vector<'_>) -> Result<Vec<f64>> {
    let unit = match vector.data_type {
        DataType::Decimal { scale, .. } => limit(scale) as f64,
        _ => 1.0,
    };
    Ok(match &vector.lanes {
        Lanes::Ints(values) => values.iter().map(|v| *v as f64 / unit).collect(),
        Lanes::Uints(values) => values.iter().map(|v| *v as f64).collect(),
        Lanes::Wides(values) => values.iter().map(|v| *v as f64 / unit).collect(),
        Lanes::Floats(values) => values.to_vec(),
        _ => return Err(without_distance(vector.data_type)),
    })
}

fn without_distance(data_type: DataType) -> Error {
    Error::invalid(format!("RANGE with an offset: values of {data_type} have no distance"))
}

/// For each row the first row whose key has come to its target, or, of an end, is past it. Rows
/// whose key is NULL look at each other.
fn along<K>(
    chunk: &Chunk<'_>,
    column: &Column,
    (keys, targets): (&[K], &[K]),
    how: Towards,
    compare: impl Fn(&K, &K) -> Ordering,
) -> Result<Vec<usize>> {
    let mut edges = Vec::with_capacity(chunk.len());
    let is_before = |row: usize, target: &K| {
        let Some(key) = keys.get(row) else { return false };
        let order = compare(key, target);
        let order = if how.descending { order.reverse() } else { order };
        if how.is_start { order.is_lt() } else { order.is_le() }
    };
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        let is_null = |row: &usize| column.is_null(*row);
        let first_nulls = partition.clone().take_while(is_null).count();
        let start = partition.start + first_nulls;
        let known = (start..partition.end).take_while(|row| !is_null(row)).count();
        let end = start + known;
        let mut at = start;
        for row in partition.clone() {
            if row < start || row >= end {
                let nulls = if row < start { partition.start..start } else { end..partition.end };
                edges.push(if how.is_start { nulls.start } else { nulls.end });
                continue;
            }
            let Some(target) = targets.get(row) else { continue };
            while at < end && is_before(at, target) {
                at += 1;
            }
            edges.push(at);
        }
    }
    Ok(edges)
}
