//! The first rows of an order, out of a run that is in this order, or its reverse.
//!
//! ```text
//! ORDER BY age, name LIMIT 3        run (age)     frames, the top one first
//!   entry  0  1  2  3  4  5  6                    NULLs        ← NULL comes first in this order
//!   age    5  5  5  7  8  9  NULL                 values: blocks of whole ties, 5 5 5 | 7 8 | 9
//! ```
//!
//! A *block* is some entries next to each other whose leading keys all come before those of later
//! blocks. Its rows are taken in the order of the rows, tested, and given to a sorter with the keys
//! of the whole order; the walk ends after the block in which enough rows have passed. Where order
//! and run end with the same field, a block of ties ends early, too: its rows are ascending, and
//! rows that are equal keep the order of the rows.
//!
//! An order that ends with the row id is that of ties themselves where a part has rising row ids.
//! One that goes on after some row begins at the entry after it, found by binary search.
//!
//! Whatever the run is in the order of, the sorter decides: a walk only leaves out rows.

use std::ops::{Bound as End, Range};

use esker_format::json::Json;
use esker_format::order_key::key;
use esker_format::{Room, Value, ValueRef};

use crate::access_path::{Access, DocumentPath, Lookup};
use crate::bind::Projection;
use crate::bind::keyset::Keyset;
use crate::bound::{Bound, Node};
use crate::evaluate::mask::Mask;
use crate::evaluate::rows::Rows;
use crate::evaluate::{Selection, evaluate};
use crate::exec::scan::{Scan, ScanCounts};
use crate::exec::sort::row_keys::{add_key, add_keys};
use crate::exec::sort::row_order::{is_row_id, row_id_of};
use crate::exec::sort::sorter::{Location, Sorter};
use crate::filter::{keep, passes};
use crate::options::IndexUse;
use crate::predicate::Predicate;
use crate::source::{Fragment, KeyRange, SortedRun};
use crate::{ErrorKind, Limits, Result};

/// The fewest and the most entries of a block, but for ties.
pub(crate) const BLOCK_ENTRIES: (usize, usize) = (16, 512);

/// How far from an entry its ties are looked for at first.
const NEAR_ENTRIES: usize = 16;

/// Fewer rows than these are read one by one.
const DENSE_ROWS: usize = 8;

/// Reading, testing and sorting a row that lies anywhere, in nanoseconds.
const ROW_NS: f64 = 300.0;

/// The same of a row of a scan.
const SCANNED_ROW_NS: f64 = 2.0;

/// The same of a candidate: in the order of rows, so that some lie in one batch.
const CANDIDATE_NS: f64 = 50.0;

/// The share of rows that pass a filter of which nothing is known.
const PASSING: f64 = 0.125;

/// A way through a run of a part.
pub(crate) struct IndexOrderScan<'s, 'a> {
    pub(super) scan: &'s Scan<'a>,
    pub(super) projection: &'a Projection,
    pub(super) part: &'a dyn Fragment,
    part_index: usize,
    pub(crate) run: &'a dyn SortedRun,
    /// Entries outside of these do not pass.
    pub(super) entries: Range<usize>,
    /// Whether all of these do.
    pub(super) is_answered: bool,
    /// Which fields of the run are keys of the order, from its first.
    pub(super) levels: Range<usize>,
    pub(super) is_backward: bool,
    /// Where the key after them is the row id, and ties are in its order: whether the greatest
    /// comes first.
    pub(super) row_order: Option<bool>,
    /// The entries of a block, but for ties.
    block_entries: usize,
    /// After how many entries a scan would have been cheaper.
    pub(super) entries_max: f64,
}

/// Entries that are equal in all fields before `level`.
struct Frame {
    entries: Range<usize>,
    level: usize,
    /// True when none of them is NULL at this level.
    has_values_only: bool,
}

/// How far a walk has come.
pub(crate) struct Position {
    /// What lies ahead, the next ones last.
    frames: Vec<Frame>,
    /// What is left of the block at hand, and how many entries of it are taken at a time.
    rest: Range<usize>,
    step: usize,
    /// The entries of a block, but for ties.
    block_entries: usize,
    /// Entries that were looked at.
    scanned: usize,
}

/// What came of a step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Taken,
    /// There are no more entries.
    Ended,
    /// So many rows were looked at that a scan would have been cheaper.
    TooMany,
}

/// What a walk found.
pub(crate) struct IndexOrderRows {
    pub(crate) sorter: Sorter,
    pub(crate) counts: ScanCounts,
    /// Rows that were given to the sorter.
    pub(crate) added: usize,
}

impl IndexOrderRows {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { sorter: Sorter::new(wanted), counts: ScanCounts::default(), added: 0 }
    }
}

impl<'s, 'a> IndexOrderScan<'s, 'a> {
    /// The walk through the run that knows most of an order; `None` when there is none, or a scan
    /// is cheaper.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(crate) fn choose(
        scan: &'s Scan<'a>,
        projection: &'a Projection,
        part_index: usize,
    ) -> Result<Option<Self>> {
        let indexes = scan.options.indexes;
        let part = scan.source.part(part_index);
        let access = &scan.plan.part(part_index).access;
        // A scan meets rows that a walk does not: what may fail must fail in both. What an index
        // of all rows has the values of fails for none.
        let is_known = |bound: &Bound| {
            let mut runs = part.whole_runs();
            runs.any(|run| has_expression(run, bound))
        };
        let fails = |bound: &Bound| bound.may_fail() && !is_known(bound);
        let may_fail =
            scan.predicate.may_fail() || projection.order.iter().any(|k| fails(&k.bound));
        let is_forced = indexes == IndexUse::Always;
        let is_bounded = is_forced || projection.limit.is_some();
        let has_runs = part.run_count() > 0 && indexes != IndexUse::Never;
        if may_fail || !is_bounded || !has_runs || matches!(access, Access::Nothing) {
            return Ok(None);
        }
        let mut best: Option<(Self, f64)> = None;
        for run in part.sorted_runs() {
            let Some(mut walk) = Self::through(run, scan, projection, part_index)? else {
                continue;
            };
            let cost_ns = walk.cost_ns(access);
            let other_ns = match access {
                Access::Lookup(candidates) => candidates.estimate(part.row_count()) * CANDIDATE_NS,
                _ => part.row_count() as f64 * SCANNED_ROW_NS,
            };
            if is_forced || cost_ns < other_ns {
                if !is_forced {
                    walk.entries_max = other_ns / ROW_NS;
                }
                if best.as_ref().is_none_or(|(_, best_ns)| cost_ns < *best_ns) {
                    best = Some((walk, cost_ns));
                }
            }
        }
        Ok(best.map(|(walk, _)| walk))
    }

    /// The walk through a run, if it is in the order.
    fn through(
        run: &'a dyn SortedRun,
        scan: &'s Scan<'a>,
        projection: &'a Projection,
        part_index: usize,
    ) -> Result<Option<Self>> {
        if !run.is_sorted_exactly()
            || levels(run, projection, 0).is_none() && run.fields().len() < 2
        {
            return Ok(None);
        }
        let (mut entries, mut equal_fields) = (0..run.len(), 0);
        let mut is_answered = *scan.predicate == Predicate::Constant(true);
        let answered = Lookup::answer(run, scan.predicate)?;
        if answered.is_none() && run.filter().is_some() {
            // It lacks rows that pass.
            return Ok(None);
        }
        if let Some(answered) = answered {
            let members = match scan.predicate {
                Predicate::All(members) => members.len(),
                _ => 1,
            };
            let is_one_range = answered.lookup.ranges.len() <= 1;
            is_answered = is_one_range && answered.exactly.len() == members;
            match answered.lookup.ranges.as_slice() {
                [] => entries = 0..0,
                [only] => {
                    entries = only.clone();
                    equal_fields = answered.equal_fields;
                }
                _ => {}
            }
        }
        let known = levels(run, projection, equal_fields).or_else(|| levels(run, projection, 0));
        let (least, most) = BLOCK_ENTRIES;
        let part = scan.source.part(part_index);
        let row_order = |levels: &Range<usize>| {
            let key = projection.order.get(levels.len()).filter(|key| is_row_id(scan, key))?;
            let ties_rise = levels.end == run.fields().len() && part.has_rising_row_ids();
            ties_rise.then_some(key.descending)
        };
        Ok(known.map(|(levels, is_backward)| Self {
            scan,
            projection,
            part,
            row_order: row_order(&levels),
            is_answered,
            part_index,
            run,
            entries,
            levels,
            is_backward,
            block_entries: projection.rows_wanted().clamp(least, most),
            entries_max: f64::INFINITY,
        }))
    }

    /// About how long it takes until enough rows have passed.
    fn cost_ns(&self, access: &Access<'a>) -> f64 {
        let entries = (self.entries.len() as f64).max(1.0);
        let passing = match access {
            _ if self.is_answered => entries,
            Access::Lookup(candidates) => candidates.estimate(self.part.row_count()),
            _ => entries * PASSING,
        };
        let per_passing = entries / passing.clamp(1.0, entries);
        let wanted = match self.can_skip() {
            true => self.projection.rows_shown(),
            false => self.projection.rows_wanted(),
        };
        (wanted as f64 * per_passing).min(entries) * ROW_NS
    }

    /// So many of the first rows of the order that pass; `None` when too many entries did not.
    ///
    /// # Errors
    /// When the run or a column cannot be read.
    pub(crate) fn rows(&self, wanted: usize) -> Result<Option<IndexOrderRows>> {
        let mut walked = IndexOrderRows::new(wanted);
        let mut at = self.start(self.block_entries)?;
        while walked.added < wanted {
            match self.step(&mut at, &mut walked)? {
                Step::Taken => {}
                Step::Ended => break,
                Step::TooMany => return Ok(None),
            }
        }
        walked.sorter.prune();
        Ok(Some(walked))
    }

    /// Before the first row of the order, or behind the one that the order goes on after.
    ///
    /// # Errors
    /// When the run or a column cannot be read.
    pub(crate) fn start(&self, block_entries: usize) -> Result<Position> {
        let frames = match &self.projection.after {
            None => {
                let (entries, level) = (self.entries.clone(), self.levels.start);
                vec![Frame { entries, level, has_values_only: false }]
            }
            Some(after) => self.frames_after(after)?,
        };
        Ok(Position { frames, rest: 0..0, step: 0, block_entries, scanned: 0 })
    }

    /// Takes some rows, all of which come before those of later steps.
    ///
    /// # Errors
    /// When the run or a column cannot be read.
    pub(crate) fn step(&self, at: &mut Position, walked: &mut IndexOrderRows) -> Result<Step> {
        if at.rest.is_empty() {
            let Some(block) = self.next_block(at)? else { return Ok(Step::Ended) };
            let known_keys =
                block.level - self.levels.start + usize::from(self.row_order.is_some());
            let is_whole_order =
                known_keys >= self.projection.order.len() && block.level >= self.run.fields().len();
            at.step = if is_whole_order { at.block_entries } else { block.entries.len() };
            at.rest = block.entries;
        }
        let rest = self.run.shown(at.rest.clone())?;
        let len = at.step.clamp(1, rest.len().max(1)).min(rest.len());
        let now = match self.row_order {
            Some(true) => rest.end - len..rest.end,
            _ => rest.start..rest.start + len,
        };
        at.rest = match self.row_order {
            Some(true) => rest.start..now.start,
            _ => now.end..rest.end,
        };
        at.scanned += len;
        if at.scanned as f64 > self.entries_max {
            return Ok(Step::TooMany);
        }
        self.take(now, walked)?;
        Ok(Step::Taken)
    }

    /// The entries that come after a row of the order, the next ones last.
    fn frames_after(&self, after: &Keyset) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        let mut entries = self.entries.clone();
        for ((level, key), value) in
            self.levels.clone().zip(&self.projection.order).zip(&after.values)
        {
            let nulls = self.run.find(entries.clone(), level, &KeyRange::Null)?.range;
            let values = entries.start..entries.end - nulls.len();
            let of_values = |entries| Frame { entries, level, has_values_only: true };
            if value.is_null() {
                if key.nulls_first {
                    frames.push(of_values(values));
                }
                entries = nulls;
                continue;
            }
            if !key.nulls_first {
                frames.push(Frame { entries: nulls, level: level + 1, has_values_only: false });
            }
            let ties = self.run.find(values.clone(), level, &point(value.as_ref()))?.range;
            frames.push(of_values(match self.is_backward {
                true => values.start..ties.start,
                false => ties.end..values.end,
            }));
            entries = ties;
        }
        let row_id = after.values.get(self.levels.len());
        if let (Some(descending), Some(Value::Uint(row_id))) = (self.row_order, row_id) {
            entries = self.entries_after(entries, *row_id, descending)?;
        }
        frames.push(Frame { entries, level: self.levels.end, has_values_only: false });
        Ok(frames)
    }

    /// Those of some ties that come after a row id.
    fn entries_after(
        &self,
        ties: Range<usize>,
        row_id: u64,
        descending: bool,
    ) -> Result<Range<usize>> {
        let (mut low, mut high) = (ties.start, ties.end);
        while low < high {
            let middle = low.midpoint(high);
            let row = self.run.rows(middle..middle + 1)?.first().copied().unwrap_or_default();
            let found = row_id_of(self.scan, self.part, row as usize)?;
            let is_before = if descending { found < row_id } else { found <= row_id };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(if descending { ties.start..low } else { low..ties.end })
    }

    /// The next entries in the order of the walk, their level that up to which they are equal.
    fn next_block(&self, at: &mut Position) -> Result<Option<Frame>> {
        let (frames, block_entries) = (&mut at.frames, at.block_entries);
        while let Some(frame) = frames.pop() {
            let Frame { entries, level, has_values_only } = frame;
            let entries = self.run.shown(entries)?;
            if entries.is_empty() {
                continue;
            }
            if level >= self.levels.end {
                return Ok(Some(Frame { entries, level, has_values_only }));
            }
            if !has_values_only {
                let nulls = self.run.find(entries.clone(), level, &KeyRange::Null)?.range;
                let values = Frame {
                    entries: entries.start..entries.end - nulls.len(),
                    level,
                    has_values_only: true,
                };
                let nulls = Frame { entries: nulls, level: level + 1, has_values_only: false };
                let key = self.projection.order.get(level - self.levels.start);
                let nulls_first = key.is_some_and(|key| key.nulls_first);
                let (first, second) = if nulls_first { (nulls, values) } else { (values, nulls) };
                frames.push(second);
                frames.push(first);
                continue;
            }
            let (block, rest) = self.split(entries, level, block_entries)?;
            frames.push(rest);
            if block.level > level {
                frames.push(block);
            } else {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Cuts the first block off some values: many values with all their ties, or, at the next
    /// level, one value of many ties.
    fn split(
        &self,
        entries: Range<usize>,
        level: usize,
        block_entries: usize,
    ) -> Result<(Frame, Frame)> {
        let len = entries.len().min(block_entries);
        let last = if self.is_backward { entries.end - len } else { entries.start + len - 1 };
        let ties = ties(self.part, self.run, &entries, last, level)?;
        let is_one_value =
            if self.is_backward { ties.end >= entries.end } else { ties.start <= entries.start };
        let has_many_ties = ties.len() > block_entries;
        let (block, rest) = match (self.is_backward, has_many_ties && !is_one_value) {
            (false, false) => (entries.start..ties.end, ties.end..entries.end),
            (false, true) => (entries.start..ties.start, ties.start..entries.end),
            (true, false) => (ties.start..entries.end, entries.start..ties.start),
            (true, true) => (ties.end..entries.end, entries.start..ties.end),
        };
        let level_after = if is_one_value { level + 1 } else { level };
        Ok((
            Frame { entries: block, level: level_after, has_values_only: !is_one_value },
            Frame { entries: rest, level, has_values_only: true },
        ))
    }

    /// Tests the rows of some entries and sorts those that pass.
    fn take(&self, entries: Range<usize>, walked: &mut IndexOrderRows) -> Result<()> {
        walked.counts.rows_scanned += entries.len() as u64;
        self.scan.options.expect_time_left()?;
        let mut rows = self.run.rows(entries)?.into_owned();
        rows.sort_unstable();
        let has_fields_only =
            self.projection.order.iter().all(|key| matches!(key.bound.node, Node::Field(_)));
        let all_visible = self.part.visible_count() == Some(self.part.row_count());
        let part = u32::try_from(self.part_index).unwrap_or(u32::MAX);
        let (mut key, mut passing) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            let at = row as usize;
            let is_visible = all_visible
                || self.part.visible(at..at + 1).is_none_or(|bits| bits.first() == Some(&1));
            if is_visible && (self.is_answered || self.passes(at)?) {
                passing.push(row);
            }
        }
        walked.counts.rows_passed += passing.len() as u64;
        if self.take_dense(&passing, walked)? {
            return Ok(());
        }
        for row in passing {
            let at = row as usize;
            walked.added += if has_fields_only {
                let location = Location { part, row };
                add_key(&mut walked.sorter, self.projection, (self.part, location), &mut key)?
            } else {
                let (room, limits) = (Room::default(), self.scan.options.limits());
                let batch = Rows::new(self.part, at..at + 1, limits, &room);
                add_keys(&mut walked.sorter, self.projection, &batch, &[0], part)?
            };
        }
        Ok(())
    }

    /// Sorts rows that lie next to each other, or nearly: their keys are read as columns. False
    /// where they do not.
    fn take_dense(&self, rows: &[u32], walked: &mut IndexOrderRows) -> Result<bool> {
        let span = rows.first().zip(rows.last()).map(|(first, last)| (last - first) as usize + 1);
        if rows.len() < DENSE_ROWS || span.is_none_or(|span| span / 2 > rows.len()) {
            return Ok(false);
        }
        let part = u32::try_from(self.part_index).unwrap_or(u32::MAX);
        let mut rest = rows;
        while let (Some(first), Some(last)) = (rest.first(), rest.last()) {
            let start = *first as usize;
            let end = self.part.batch_end(start, (last - first) as usize + 1).max(start + 1);
            let count = rest.partition_point(|row| (*row as usize) < end);
            let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            let (room, limits) = (Room::default(), self.scan.options.limits());
            let batch = Rows::new(self.part, start..end, limits, &room);
            let picked: Vec<u32> = now.iter().map(|row| row - first).collect();
            walked.added += add_keys(&mut walked.sorter, self.projection, &batch, &picked, part)?;
            rest = later;
        }
        Ok(true)
    }

    /// Whether a row passes the filter.
    fn passes(&self, row: usize) -> Result<bool> {
        if let Some(passes) = passes(self.scan.predicate, self.part, row)? {
            return Ok(passes);
        }
        let mut mask = Mask::all(1);
        let room = Room::default();
        let rows = Rows::new(self.part, row..row + 1, self.scan.options.limits(), &room);
        keep(self.scan.predicate, &rows, &mut mask, self.scan.tables)?;
        Ok(!mask.is_empty())
    }
}

/// Which fields of a run, from field `first`, are the first keys of an order, and whether it has to
/// be read from its end.
fn levels(
    run: &dyn SortedRun,
    projection: &Projection,
    first: usize,
) -> Option<(Range<usize>, bool)> {
    let fields = run.fields().iter().skip(first).zip(&projection.order);
    let mut directions = fields.enumerate().map_while(|(at, ((field, descending), key))| {
        let is_key = match (run.path(first + at), run.expression(first + at)) {
            (_, Some(of)) => key.bound == of.bound,
            (Some(path), _) => DocumentPath::of(&key.bound).is_some_and(|of_key| of_key.is(path)),
            _ => key.bound.node == Node::Field(*field),
        };
        is_key.then_some(*descending != key.descending)
    });
    let is_backward = directions.next()?;
    let count = 1 + directions.take_while(|direction| *direction == is_backward).count();
    Some((first..first + count, is_backward))
}

/// Whether a run has the values of an expression.
fn has_expression(run: &dyn SortedRun, bound: &Bound) -> bool {
    let mut parts = 0..run.fields().len();
    parts.any(|part| run.expression(part).is_some_and(|of| of.bound == *bound))
}

/// Those of some entries that are equal to one of them in field number `level` of a run.
///
/// # Errors
/// When the run or the column cannot be read.
pub(crate) fn ties(
    part: &dyn Fragment,
    run: &dyn SortedRun,
    entries: &Range<usize>,
    entry: usize,
    level: usize,
) -> Result<Range<usize>> {
    let row = run.rows(entry..entry + 1)?.first().copied();
    let (Some((field, _)), Some(row)) = (run.fields().get(level), row) else {
        return Ok(entries.clone());
    };
    let row = row as usize;
    // Most values have few ties, and those lie where the entry does.
    let near = entries.start.max(entry.saturating_sub(NEAR_ENTRIES))
        ..entries.end.min(entry.saturating_add(NEAR_ENTRIES));
    let of_value = |value: ValueRef<'_>| {
        let found = run.find(near.clone(), level, &point(value))?.range;
        let is_all = (found.start > near.start || near.start == entries.start)
            && (found.end < near.end || near.end == entries.end);
        if is_all {
            return Ok(found);
        }
        Ok(run.find(entries.clone(), level, &point(value))?.range)
    };
    let room = Room::default();
    if let Some(expression) = run.expression(level) {
        let limits = Limits::default();
        let rows = Rows::new(part, row..row + 1, &limits, &room);
        // The run has NULL for a row that no reader sees and that has no value.
        let value = match evaluate(&expression.bound, &rows, Selection::All(1)) {
            Ok(vector) => vector.value(0).to_owned(),
            Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Io) => return Err(e),
            Err(_) => Value::Null,
        };
        return of_value(value.as_ref());
    }
    if let Some(path) = run.path(level) {
        let column = part.column(path.field, row..row + 1, &room)?;
        let text = match column.is_null(0) {
            true => None,
            false => Json::document(column.bytes(0)).text_at(path.steps.iter().map(String::as_str)),
        };
        let text = text.map_or(Value::Null, Value::Text);
        return of_value(text.as_ref());
    }
    of_value(part.value(*field, row, &room)?)
}

/// The range of one value.
fn point(value: ValueRef<'_>) -> KeyRange<'_> {
    match value.as_bytes() {
        _ if value.is_null() => KeyRange::Null,
        Some(bytes) => KeyRange::Bytes(End::Included(bytes), End::Included(bytes)),
        None => KeyRange::Keys(key(value), key(value)),
    }
}
