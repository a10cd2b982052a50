//! Aggregates of the rows of each frame.
//!
//! | an aggregate | is found by |
//! |---|---|
//! | counts, sums and means of integers and decimals | differences of sums up to each row |
//! | the least and the greatest, of frames without gaps | the rows that may still be it, in order |
//! | others, of frames that begin with their partition | adding rows |
//! | others | a tree of the aggregates of 16, 256, … rows ([`Tree`]) |

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use esker_format::key::one_spelling;
use esker_format::value::compare_floats;
use esker_format::{Column, Values};

use super::arrangement::Chunk;
use super::columns::{at, vector_of};
use super::frames::Frames;
use super::tree::Tree;
use crate::Result;
use crate::bind::window::{Call, Edge};
use crate::bound::BoundAggregate;
use crate::evaluate::{Lanes, Vector};
use crate::exec::aggregate::{Accumulator, Prefixes};

/// The aggregate of the frame of each row.
///
/// # Errors
/// `OutOfRange` when a sum does not fit its type; when the query is to end.
pub(super) fn column(
    chunk: &Chunk<'_>,
    call: &Call<usize>,
    (aggregate, operand): (&BoundAggregate, Option<usize>),
    frames: &Frames,
) -> Result<Column> {
    let column = operand.map(|operand| chunk.column(operand)).transpose()?;
    let vector = column.as_ref().map(vector_of).transpose()?;
    let mut accumulator = Accumulator::new(aggregate);
    if let Some(prefixes) = accumulator.prefixes(vector.as_ref()) {
        return differences(chunk, call, &prefixes, frames);
    }
    let has_gaps = frames.has_gaps();
    if let (Some(is_greatest), Some(column), Some(vector), false) =
        (accumulator.wants_greatest(), &column, &vector, has_gaps)
    {
        return extremes(chunk, (column, vector), frames, is_greatest);
    }
    let mut found = Found::new(call, chunk.len());
    if call.frame.start == Edge::First && !has_gaps {
        let mut sum = 0..0;
        for row in 0..chunk.len() {
            let frame = frames.whole(row);
            if row > 0 && frame == frames.whole(row - 1) {
                found.again();
                continue;
            }
            if row == 0 || frame.start != sum.start || frame.end < sum.end {
                accumulator.clear();
                sum = frame.start..frame.start;
            }
            chunk.meter.work(frame.end - sum.end + 1)?;
            if sum.end < frame.end {
                accumulator.add_range(vector.as_ref(), sum.end..frame.end);
            }
            sum = frame;
            found.push(&accumulator)?;
        }
        return found.finish();
    }
    let tree = Tree::of(aggregate, vector.as_ref(), chunk.len(), &chunk.meter)?;
    for row in 0..chunk.len() {
        chunk.meter.work(1)?;
        let ranges = frames.ranges(row);
        if row > 0 && ranges == frames.ranges(row - 1) {
            found.again();
            continue;
        }
        accumulator.clear();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            tree.add_to(&mut accumulator, range, &chunk.meter)?;
        }
        found.push(&accumulator)?;
    }
    found.finish()
}

/// Aggregates that several rows may share.
struct Found {
    values: Column,
    /// Of each row, the place of its value.
    places: Vec<(u32, u32)>,
}

impl Found {
    fn new(call: &Call<usize>, rows: usize) -> Self {
        Self { values: Column::empty(call.data_type), places: Vec::with_capacity(rows) }
    }

    /// The value of the next row.
    fn push(&mut self, accumulator: &Accumulator) -> Result<()> {
        accumulator.push_value(0, &mut self.values)?;
        // default: chunks have fewer rows
        let last = u32::try_from(self.values.len()).unwrap_or(u32::MAX).saturating_sub(1);
        self.places.push((0, last));
        Ok(())
    }

    /// The next row has the value of that before it.
    fn again(&mut self) {
        // default: the first row has a value of its own
        self.places.push(self.places.last().copied().unwrap_or_default());
    }

    fn finish(self) -> Result<Column> {
        if self.values.len() == self.places.len() {
            return Ok(self.values);
        }
        at(self.values.data_type, &[&self.values], &self.places, false)
    }
}

fn differences(
    chunk: &Chunk<'_>,
    call: &Call<usize>,
    prefixes: &Prefixes<'_>,
    frames: &Frames,
) -> Result<Column> {
    let mut values = Column::empty(call.data_type);
    if frames.has_gaps() {
        for row in 0..chunk.len() {
            chunk.meter.work(1)?;
            prefixes.push(&frames.ranges(row), &mut values)?;
        }
        return Ok(values);
    }
    for row in 0..chunk.len() {
        chunk.meter.work(1)?;
        prefixes.push(std::slice::from_ref(&frames.whole(row)), &mut values)?;
    }
    Ok(values)
}

/// The least or greatest values.
fn extremes(
    chunk: &Chunk<'_>,
    (column, vector): (&Column, &Vector<'_>),
    frames: &Frames,
    is_greatest: bool,
) -> Result<Column> {
    let wanted = if is_greatest { Ordering::Greater } else { Ordering::Less };
    let best = |compare: &dyn Fn(usize, usize) -> Ordering| {
        best(chunk, column, frames, &|a, b| compare(a, b) == wanted)
    };
    macro_rules! by {
        ($values:expr, $compare:expr) => {
            best(&|a, b| match ($values.get(a), $values.get(b)) {
                (Some(a), Some(b)) => $compare(a, b),
                _ => Ordering::Equal,
            })
        };
    }
    let places = match &vector.lanes {
        Lanes::Ints(v) => by!(v, Ord::cmp),
        Lanes::Uints(v) => by!(v, Ord::cmp),
        Lanes::Wides(v) => by!(v, Ord::cmp),
        Lanes::Bools(v) => by!(v, Ord::cmp),
        Lanes::Bytes(v) => by!(v, Ord::cmp),
        Lanes::Floats(v) => by!(v, |a: &f64, b: &f64| compare_floats(*a, *b)),
    }?;
    let mut found = at(column.data_type, &[column], &places, true)?;
    // Of two zeros either may have been first: show one.
    match &mut found.values {
        Values::F64(values) => values.iter_mut().for_each(|v| *v = one_spelling(*v)),
        Values::F32(values) => values.iter_mut().for_each(|v| {
            *v = if v.is_nan() { f32::NAN.abs() } else { *v + 0.0 };
        }),
        _ => {}
    }
    Ok(found)
}

/// The row of each frame that is better than all others.
fn best(
    chunk: &Chunk<'_>,
    column: &Column,
    frames: &Frames,
    is_better: &dyn Fn(usize, usize) -> bool,
) -> Result<Vec<(u32, u32)>> {
    let mut places = Vec::with_capacity(chunk.len());
    // Rows of the frame that no later one is better than: the first is the best.
    let mut rows: VecDeque<usize> = VecDeque::new();
    for partition in chunk.partitions() {
        rows.clear();
        let mut met = partition.start;
        for row in partition {
            let Range { start, end } = frames.whole(row);
            chunk.meter.work(1)?;
            for next in met..end {
                if column.is_null(next) {
                    continue;
                }
                while rows.back().is_some_and(|last| is_better(next, *last)) {
                    rows.pop_back();
                }
                rows.push_back(next);
            }
            met = met.max(end);
            while rows.front().is_some_and(|first| *first < start) {
                rows.pop_front();
            }
            let found = rows.front().and_then(|row| u32::try_from(*row).ok());
            places.push(found.map_or((u32::MAX, 0), |row| (0, row)));
        }
    }
    Ok(places)
}
