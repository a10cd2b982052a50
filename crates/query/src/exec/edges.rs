//! Aggregates of a part that its runs answer: the least and the greatest value stand at the ends of
//! a run, and how many values there are is where its NULLs begin.

use super::aggregate::Accumulator;
use super::group::Groups;
use super::mask::Mask;
use super::rows::Rows;
use super::scan::Scan;
use super::walk::ties;
use crate::Result;
use crate::bind::{BoundAggregate, Node, Stage};
use crate::model::Aggregate;
use crate::options::{IndexUse, Options};
use crate::predicate::Predicate;
use crate::source::{KeyRange, Part, Run};

/// After so many entries whose rows nobody sees, a part is scanned.
const ENTRIES_MAX: usize = 1_024;

/// The most values of a part that are looked up one by one.
const DISTINCT_MAX: usize = 1_024;

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
pub(super) fn known<'s>(
    scan: &Scan<'s>,
    stage: &'s Stage,
    part_index: usize,
    options: &Options,
) -> Result<Option<Groups<'s>>> {
    let part = scan.source.part(part_index);
    let is_for_runs = stage.keys.is_empty()
        && *scan.predicate == Predicate::Constant(true)
        && options.indexes != IndexUse::Never
        && part.run_count() > 0;
    if !is_for_runs {
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
        apply(accumulator, aggregate, &answer, part)?;
    }
    Ok(Some(groups))
}

fn apply(
    accumulator: &mut Accumulator,
    aggregate: &BoundAggregate,
    answer: &Answer,
    part: &dyn Part,
) -> Result<()> {
    match answer {
        Answer::Count(count) => accumulator.add_rows(*count as u64),
        Answer::Row(row) => return add_rows(accumulator, aggregate, row.as_slice(), part),
        Answer::Rows(rows) => return add_rows(accumulator, aggregate, rows, part),
    }
    Ok(())
}

fn add_rows<'a>(
    accumulator: &mut Accumulator,
    aggregate: &'a BoundAggregate,
    rows: &[usize],
    part: &'a dyn Part,
) -> Result<()> {
    for row in rows {
        let rows = Rows::new(part, *row..*row + 1);
        accumulator.update_all(aggregate.operand.as_ref(), &rows, &Mask::all(1))?;
    }
    Ok(())
}

fn answer(aggregate: &BoundAggregate, part: &dyn Part) -> Result<Option<Answer>> {
    let Some(operand) = &aggregate.operand else {
        return Ok(part.visible_count().map(Answer::Count));
    };
    let Node::Field(field) = operand.node else { return Ok(None) };
    let runs = (0..part.run_count()).filter_map(|i| part.run(i));
    // Equal floats may be spelled differently: the first row of them counts, and it comes first in
    // a run of no other field.
    let fields_max = if operand.data_type().is_float() { 1 } else { usize::MAX };
    let leads = |run: &&dyn Run| {
        let fields = run.fields();
        fields.len() <= fields_max && fields.first().is_some_and(|(first, _)| *first == field)
    };
    let Some(run) = runs.filter(leads).max_by_key(|run| run.is_sorted_exactly()) else {
        return Ok(None);
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
fn distinct(run: &dyn Run, part: &dyn Part) -> Result<Option<Answer>> {
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
            // Nobody may see a row of this value: only all of them tell.
            None if left == 0 || same.len() > BLOCK_ENTRIES => return Ok(None),
            None => {}
        }
    }
    Ok(Some(Answer::Rows(found)))
}

/// The first row, in the order of rows, that has the least or greatest value of those visible.
fn edge(run: &dyn Run, part: &dyn Part, greatest: bool) -> Result<Option<Answer>> {
    let is_descending = run.fields().first().is_some_and(|(_, descending)| *descending);
    let nulls = run.find(0..run.len(), 0, &KeyRange::Null)?.range;
    let mut entries = 0..run.len() - nulls.len();
    let mut left = ENTRIES_MAX;
    while !entries.is_empty() {
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
    Ok(Some(Answer::Row(None)))
}
