//! Aggregates of a part that its runs answer: the least and the greatest value lie at the ends of
//! a run, and how many values there are is where its NULLs begin. Without a run, the least and the
//! greatest value lie in the zone of which zone maps say so, unless that row is gone.

use std::cmp::Ordering;
use std::ops::Range;

use esker_format::{DataType, Room, ValueRef};

use super::Accumulator;
use crate::bind::Stage;
use crate::bound::{Bound, BoundAggregate, Node};
use crate::evaluate::mask::Mask;
use crate::evaluate::rows::Rows;
use crate::exec::aggregate::group::Groups;
use crate::exec::scan::Scan;
use crate::exec::sort::index_order_scan::ties;
use crate::limits::Limits;
use crate::model::Aggregate;
use crate::options::{IndexUse, Options};
use crate::predicate::Predicate;
use crate::source::{Fragment, KeyRange, SortedRun};
use crate::{Result, ZONE_ROWS};

/// After so many entries whose rows no one sees, a part is scanned.
const ENTRIES_MAX: usize = 1_024;

/// The most values of a part that are looked up one by one.
const DISTINCT_MAX: usize = 1_024;

/// The most zones that are looked at for the least or the greatest value.
const ZONES_MAX: usize = 4;

/// How many entries are looked at together.
const BLOCK_ENTRIES: usize = 16;

/// What a run says of an aggregate.
enum Answer {
    Count(usize),
    /// The row that has the value, if any has one.
    Row(Option<usize>),
    /// A row of each value.
    Rows(Vec<usize>),
}

/// The only group of a part, where runs know all of its aggregates.
///
/// # Errors
/// When a run or a column cannot be read.
pub(crate) fn known<'s>(
    scan: &Scan<'s>,
    stage: &'s Stage,
    part_index: usize,
    options: &Options,
) -> Result<Option<Groups<'s>>> {
    let part = scan.source.part(part_index);
    let may_be_known = stage.keys.is_empty()
        && *scan.predicate == Predicate::Constant(true)
        && options.indexes != IndexUse::Never
        && stage.aggregates.iter().all(is_for_edges);
    if !may_be_known {
        return Ok(None);
    }
    let mut answers = Vec::with_capacity(stage.aggregates.len());
    for aggregate in &stage.aggregates {
        match answer(aggregate, part)? {
            Some(answer) => answers.push(answer),
            None => return Ok(None),
        }
    }
    let mut groups = Groups::new(stage);
    let each = groups.accumulators().zip(&stage.aggregates).zip(answers);
    for ((accumulator, aggregate), answer) in each {
        apply(accumulator, aggregate, &answer, part, options.limits())?;
    }
    Ok(Some(groups))
}

/// True for an aggregate that runs or zone maps may answer.
fn is_for_edges(aggregate: &BoundAggregate) -> bool {
    match &aggregate.operand {
        None => true,
        Some(operand) => {
            let of_edges =
                matches!(aggregate.function, Aggregate::Count | Aggregate::Min | Aggregate::Max);
            of_edges && matches!(operand.node, Node::Field(_))
        }
    }
}

fn apply(
    accumulator: &mut Accumulator,
    aggregate: &BoundAggregate,
    answer: &Answer,
    part: &dyn Fragment,
    limits: &Limits,
) -> Result<()> {
    match answer {
        Answer::Count(count) => accumulator.add_rows(*count as u64),
        Answer::Row(row) => return add_rows(accumulator, aggregate, row.as_slice(), part, limits),
        Answer::Rows(rows) => return add_rows(accumulator, aggregate, rows, part, limits),
    }
    Ok(())
}

fn add_rows<'a>(
    accumulator: &mut Accumulator,
    aggregate: &'a BoundAggregate,
    rows: &[usize],
    part: &'a dyn Fragment,
    limits: &'a Limits,
) -> Result<()> {
    for row in rows {
        let room = Room::default();
        let rows = Rows::new(part, *row..*row + 1, limits, &room);
        accumulator.update_all(aggregate.operand.as_ref(), &rows, &Mask::all(1))?;
    }
    Ok(())
}

fn answer(aggregate: &BoundAggregate, part: &dyn Fragment) -> Result<Option<Answer>> {
    let Some(operand) = &aggregate.operand else {
        return Ok(part.visible_count().map(Answer::Count));
    };
    let Node::Field(field) = operand.node else { return Ok(None) };
    let runs = part.whole_runs();
    // Equal floats may be spelled differently: the first row of them counts, and it comes first in
    // a run of no other field.
    let fields_max = if operand.data_type().is_float() { 1 } else { usize::MAX };
    let leads = |run: &&dyn SortedRun| {
        let fields = run.fields();
        fields.len() <= fields_max && fields.first().is_some_and(|(first, _)| *first == field)
    };
    let Some(run) = runs.filter(leads).max_by_key(|run| run.is_sorted_exactly()) else {
        return match aggregate.function {
            Aggregate::Min => edge_of_zones(part, operand, field, false),
            Aggregate::Max => edge_of_zones(part, operand, field, true),
            _ => Ok(None),
        };
    };
    match aggregate.function {
        Aggregate::Count if !aggregate.distinct => {
            let values = run.find(0..run.len(), 0, &KeyRange::NotNull)?;
            Ok(if values.exact { Some(run.count_visible(values.range)?) } else { None }
                .map(Answer::Count))
        }
        Aggregate::Count if run.is_sorted_exactly() => distinct(run, part),
        Aggregate::Min if run.is_sorted_exactly() => edge(run, part, false),
        Aggregate::Max if run.is_sorted_exactly() => edge(run, part, true),
        _ => Ok(None),
    }
}

/// A visible row of each value, where there are few values.
fn distinct(run: &dyn SortedRun, part: &dyn Fragment) -> Result<Option<Answer>> {
    let values = run.find(0..run.len(), 0, &KeyRange::NotNull)?.range;
    let (mut rest, mut found) = (values.clone(), Vec::new());
    let (mut steps, mut left) = (0usize, ENTRIES_MAX);
    while !rest.is_empty() {
        steps += 1;
        let done = (rest.start - values.start).max(1);
        if steps > DISTINCT_MAX || (steps > 64 && values.len() / done * steps > 4 * DISTINCT_MAX) {
            return Ok(None);
        }
        let same = ties(part, run, &rest, rest.start, 0)?;
        rest.start = same.end.max(rest.start + 1);
        let same = if same.len() > BLOCK_ENTRIES { run.shown(same)? } else { same };
        let mut seen = None;
        for row in run.rows(same.start..same.end.min(same.start + BLOCK_ENTRIES))?.iter() {
            let row = *row as usize;
            let visible = part.visible(row..row + 1);
            if visible.is_none_or(|words| words.first().is_some_and(|word| word & 1 == 1)) {
                seen = Some(row);
                break;
            }
            left = left.saturating_sub(1);
        }
        match seen {
            Some(row) => found.push(row),
            // No one may see a row of this value: only all of them tell.
            None if left == 0 || same.len() > BLOCK_ENTRIES => return Ok(None),
            None => {}
        }
    }
    Ok(Some(Answer::Rows(found)))
}

/// The first row, in the order of rows, that has the least or greatest value of those visible.
fn edge(run: &dyn SortedRun, part: &dyn Fragment, greatest: bool) -> Result<Option<Answer>> {
    let is_descending = run.fields().first().is_some_and(|(_, descending)| *descending);
    let nulls = run.find(0..run.len(), 0, &KeyRange::Null)?.range;
    let mut entries = 0..run.len() - nulls.len();
    let mut left = ENTRIES_MAX;
    loop {
        entries = run.shown(entries)?;
        if entries.is_empty() {
            return Ok(Some(Answer::Row(None)));
        }
        let here = if greatest == is_descending {
            entries.start..entries.end.min(entries.start + left.min(BLOCK_ENTRIES))
        } else {
            ties(part, run, &entries, entries.end - 1, 0)?
        };
        let seen = here.start..here.end.min(here.start + left);
        if seen.is_empty() {
            return Ok(None);
        }
        left -= seen.len();
        let is_whole = seen.end == here.end;
        for row in run.rows(seen)?.iter().map(|row| *row as usize) {
            let visible = part.visible(row..row + 1);
            if visible.is_none_or(|words| words.first().is_some_and(|word| word & 1 == 1)) {
                return Ok(Some(Answer::Row(Some(row))));
            }
        }
        if !is_whole {
            return Ok(None);
        }
        entries = if greatest == is_descending {
            here.end..entries.end
        } else {
            entries.start..here.start
        };
    }
}

/// The same out of the zones of which zone maps say that they have it; `None` where they say
/// nothing, and where too many have to be looked at, as their rows are gone.
fn edge_of_zones(
    part: &dyn Fragment,
    operand: &Bound,
    field: usize,
    greatest: bool,
) -> Result<Option<Answer>> {
    if matches!(operand.data_type(), DataType::Json | DataType::Enum) {
        return Ok(None);
    }
    let mut zones = Vec::new();
    for zone in 0..part.row_count().div_ceil(ZONE_ROWS) {
        let rows = zone * ZONE_ROWS..part.row_count().min((zone + 1) * ZONE_ROWS);
        if part.first_shown(rows.clone()) == rows.end {
            continue;
        }
        let Some(known) = part.zone(field, zone) else { return Ok(None) };
        if known.least.is_null() {
            continue;
        }
        let bound = if greatest { known.greatest } else { Some(known.least) };
        let Some(bound) = bound else { return Ok(None) };
        zones.push((bound, zone * ZONE_ROWS));
    }
    let comes_first = |a: ValueRef<'_>, b: ValueRef<'_>| match greatest {
        true => b.compare(a),
        false => a.compare(b),
    };
    zones.sort_by(|(a, _), (b, _)| comes_first(*a, *b));
    let room = Room::default();
    let mut best: Option<(ValueRef<'_>, usize)> = None;
    for (number, (bound, start)) in zones.into_iter().enumerate() {
        if let Some((value, row)) = best
            && comes_first(value, bound).then(row.cmp(&start)).is_lt()
        {
            break;
        }
        if number == ZONES_MAX {
            return Ok(None);
        }
        let end = part.row_count().min(start + ZONE_ROWS);
        let found = edge_of_rows((part, &room), field, start..end, &comes_first)?;
        let order = |a: &(ValueRef<'_>, usize), b: &(ValueRef<'_>, usize)| {
            comes_first(a.0, b.0).then(a.1.cmp(&b.1))
        };
        best = best.into_iter().chain(found).min_by(order);
    }
    Ok(Some(Answer::Row(best.map(|(_, row)| row))))
}

/// The visible row of a zone whose value comes first, and the value.
fn edge_of_rows<'a>(
    (part, room): (&'a dyn Fragment, &'a Room),
    field: usize,
    zone: Range<usize>,
    comes_first: &impl Fn(ValueRef<'_>, ValueRef<'_>) -> Ordering,
) -> Result<Option<(ValueRef<'a>, usize)>> {
    let mut best: Option<(ValueRef<'a>, usize)> = None;
    let mut start = zone.start;
    while start < zone.end {
        let end = part.batch_end(start, zone.end - start).clamp(start + 1, zone.end);
        let mask = match part.visible(start..end) {
            Some(words) => Mask::from_words(&words, end - start),
            None => Mask::all(end - start),
        };
        if !mask.is_empty() {
            let column = part.column(field, start..end, room)?;
            mask.for_each(|i| {
                let value = column.value(i);
                let is_first = |best: &(ValueRef<'_>, usize)| comes_first(value, best.0).is_lt();
                if !value.is_null() && best.as_ref().is_none_or(is_first) {
                    best = Some((value, start + i));
                }
            });
        }
        start = end;
    }
    Ok(best)
}
