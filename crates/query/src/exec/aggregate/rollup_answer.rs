//! Groupings that are answered by what parts keep of a rollup.
//!
//! ```text
//! SELECT date_trunc('day', t), sum(cost) … WHERE model = 'x' AND t >= '2026-01-01' GROUP BY 1
//!        └── of the key date_trunc('hour', t)      └── a key   └── on a step of that key
//! ```
//!
//! A step is answered when its keys, its filter and its operands are functions of the keys of the
//! rollup, or operands of it. That is decided for each part anew, since parts have what they keep
//! or have not; the others are scanned. Answers are the same either way:
//!
//! 1. What is kept is of all rows of a part. Those that the reader does not see are read and taken
//!    away; where there are many, or a least value is among them, the part is scanned.
//! 2. Only exact aggregates are kept: counts, sums of integers and decimals, extremes.
//! 3. A group none of whose rows is seen is none.
//! 4. Groups come in the order of their first rows, as in a scan; where the reader does not see the
//!    first row of a group, or reads the rows at an end of a span, in about that order.
//!
//! A span of time that begins or ends within a step is cut: whole steps are taken from what is
//! kept, and the rows of the steps at its ends are read.
//!
//! ```text
//! t >= 10:20 and t < 14:40    10:00  [10:20 rows | 11:00  12:00  13:00  kept | 14:00 rows  14:40)
//! ```

use std::ops::Range;

use esker_format::{DataType, Room, Value};
use esker_vfs::sabotage::Bug;

use super::group_range;
use super::partials::{Feed, Feeds, PartialGroups, misfit};
use super::rollup_tail;
use crate::access_path::Access;
use crate::bind::Stage;
use crate::bound::{Bound, BoundAggregate, Comparison, Node};
use crate::budget::Charge;
use crate::evaluate::{Mask, Rows, Selection, evaluate};
use crate::exec::aggregate::group::{Groups, keys_of_rows};
use crate::exec::scan::Scan;
use crate::filter::{CodeTables, keep};
use crate::limits::Limits;
use crate::model::date_unit::Unit;
use crate::model::{Aggregate, Function};
use crate::options::{IndexUse, Options};
use crate::predicate::{Predicate, Verdict};
use crate::source::rollup_layout::OperandColumns;
use crate::source::{Fragment, RollupRun, RollupShape};
use crate::{Error, ErrorKind, Result, ZONE_ROWS};

/// Where more of the rows of a part than one of so many are not visible, it is scanned.
const HIDDEN_SHARE: usize = 8;

/// How a step is answered by what is kept of a rollup.
pub(super) struct RollupAnswer {
    /// What makes the keys of the step.
    keys: Vec<Bound>,
    /// What each of its aggregates gets.
    feeds: Vec<Feed>,
    weights: Bound,
    first: Bound,
    /// Which groups are wanted.
    filter: Predicate,
    /// The same, of which all have to hold.
    conditions: Vec<Bound>,
    /// How many keys the rollup has: the first columns of what is kept.
    key_count: usize,
    /// The steps at the ends of a span of time, whose rows are read.
    ends: Vec<Bound>,
}

/// What a filter is over the keys of a rollup.
#[derive(Default)]
struct KeyFilter {
    conditions: Vec<Bound>,
    ends: Vec<Bound>,
}

/// The groups of a part, where what it keeps of a rollup tells them; `charge` gets what they take.
///
/// # Errors
/// When what is kept cannot be read; when the query is to end.
pub(crate) fn known<'s>(
    scan: &Scan<'s>,
    stage: &'s Stage,
    part_index: usize,
    charge: &mut Charge<'_>,
    options: &Options,
) -> Result<Option<Groups<'s>>> {
    if let Some(run) = scan.source.part(part_index).history() {
        return of_history((stage, run), charge, options).map(Some);
    }
    let Some((run, answer)) = choose(scan, stage, part_index, options)? else {
        return rollup_tail::known(scan, stage, part_index, charge, options);
    };
    let part = scan.source.part(part_index);
    let found = hidden(scan, part, options).and_then(|hidden| match hidden {
        Some(hidden) => {
            answer.answer(scan, (stage, part), (run.entries(), &hidden), charge, options)
        }
        None => Ok(None),
    });
    match found {
        // It may be one of a row that the reader does not see, or for want of memory.
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::OutOfRange | ErrorKind::InvalidQuery | ErrorKind::OverBudget
            ) =>
        {
            charge.set(0)?;
            Ok(None)
        }
        found => found,
    }
}

/// The groups of rows that are gone, of which a rollup has kept what they came to.
///
/// # Errors
/// `InvalidQuery` for a step that is not of the groups of that rollup.
fn of_history<'s>(
    (stage, run): (&'s Stage, &dyn RollupRun),
    charge: &mut Charge<'_>,
    options: &Options,
) -> Result<Groups<'s>> {
    let answer = match run.shape() {
        Some(shape) => RollupAnswer::of_history(stage, shape, options.limits())?,
        None => None,
    };
    let Some(answer) = answer.filter(|answer| answer.ends.is_empty()) else {
        let name = run.name();
        let message = format!("the history of materialized view {name:?} has other groups");
        return Err(Error::invalid(message));
    };
    // They lie in the order in which events ended.
    let range = 0..run.entries().row_count();
    let mut groups = PartialGroups::new(Groups::new(stage));
    answer.add_range(&mut groups, (run.entries(), range, 0), charge, options)?;
    let groups = groups.finish();
    charge.set(groups.bytes())?;
    Ok(groups)
}

/// The rollup that answers a step for a part, by its name, and how many groups are kept of it.
///
/// # Errors
/// As for [`known`].
pub(crate) fn chosen(
    scan: &Scan<'_>,
    stage: &Stage,
    part_index: usize,
    options: &Options,
) -> Result<Option<(String, usize)>> {
    if let Some(run) = scan.source.part(part_index).history() {
        return Ok(Some((run.name().to_owned(), run.entries().row_count())));
    }
    let Some((run, _)) = choose(scan, stage, part_index, options)? else {
        return rollup_tail::chosen(scan, stage, part_index, options);
    };
    let is_seen = hidden(scan, scan.source.part(part_index), options)?.is_some();
    Ok(is_seen.then(|| (run.name().to_owned(), run.entries().row_count())))
}

/// The rollup with the fewest groups that answers a step, where that takes less than to look at
/// the rows.
fn choose<'s>(
    scan: &Scan<'s>,
    stage: &Stage,
    part_index: usize,
    options: &Options,
) -> Result<Option<(&'s dyn RollupRun, RollupAnswer)>> {
    let part = scan.source.part(part_index);
    if !options.uses_rollups() || part.run_count() == 0 {
        return Ok(None);
    }
    let mut best: Option<(&dyn RollupRun, RollupAnswer)> = None;
    for run in part.rollup_runs() {
        let (len, Some(shape)) = (run.entries().row_count(), run.shape()) else { continue };
        if best.as_ref().is_some_and(|(best, _)| best.entries().row_count() <= len) {
            continue;
        }
        let answer = RollupAnswer::of(stage, shape, options.limits())?;
        let is_less = |answer: &RollupAnswer| {
            let ends = RowsAtEnds::of(answer, stage);
            ends.is_none_or(|ends| !ends.are_most_of(part))
        };
        best = answer.filter(is_less).map(|answer| (run, answer)).or(best);
    }
    let Some((run, answer)) = best else { return Ok(None) };
    let is_dearer = match &scan.plan.part(part_index).access {
        Access::Nothing => true,
        Access::Lookup(candidates) if options.indexes != IndexUse::Always => {
            candidates.estimate(part.row_count()) < run.entries().row_count() as f64
        }
        Access::Lookup(_) | Access::Scan => false,
    };
    Ok((!is_dearer).then_some((run, answer)))
}

/// Rows of a part, batch by batch.
pub(super) type Hidden = Vec<(Range<usize>, Mask)>;

/// The rows of a part that the reader does not see and that may pass, batch by batch; `None` where
/// there are many.
fn hidden(scan: &Scan<'_>, part: &dyn Fragment, options: &Options) -> Result<Option<Hidden>> {
    let rows = part.row_count();
    if part.visible_count() == Some(rows) {
        return Ok(Some(Vec::new()));
    }
    let (mut hidden, mut count) = (Vec::new(), 0);
    for zone in 0..rows.div_ceil(ZONE_ROWS) {
        options.expect_time_left()?;
        if scan.predicate.verdict(part, zone) == Verdict::Never {
            continue;
        }
        for range in batches(part, zone) {
            let Some(words) = part.visible(range.clone()) else { continue };
            let mut mask = Mask::all(range.len());
            mask.and_not(&Mask::from_words(&words, range.len()));
            count += mask.count();
            if count > rows / HIDDEN_SHARE {
                return Ok(None);
            }
            if !mask.is_empty() {
                hidden.push((range, mask));
            }
        }
    }
    Ok(Some(hidden))
}

/// The batches of a zone, as small as the part wants them.
fn batches(part: &dyn Fragment, zone: usize) -> Vec<Range<usize>> {
    batches_of(part, zone * ZONE_ROWS..part.row_count().min((zone + 1) * ZONE_ROWS))
}

/// The batches of some rows.
pub(super) fn batches_of(part: &dyn Fragment, rows: Range<usize>) -> Vec<Range<usize>> {
    let (mut start, mut batches) = (rows.start, Vec::new());
    let most = part.rows_at_once().max(1);
    while start < rows.end {
        let end = part.batch_end(start, most.min(rows.end - start)).clamp(start + 1, rows.end);
        batches.push(start..end);
        start = end;
    }
    batches
}

/// The groups of rows that are not seen.
pub(super) fn gone<'s>(
    scan: &Scan<'s>,
    (stage, ends): (&'s Stage, Option<&RowsAtEnds>),
    (part, hidden): (&dyn Fragment, &[(Range<usize>, Mask)]),
    options: &Options,
) -> Result<PartialGroups<'s>> {
    let mut gone = PartialGroups::new(Groups::new(stage));
    for (range, mask) in hidden {
        options.expect_time_left()?;
        let (room, mut mask) = (Room::default(), mask.clone());
        let rows = Rows::new(part, range.clone(), options.limits(), &room);
        keep(scan.predicate, &rows, &mut mask, scan.tables)?;
        if let Some(ends) = ends {
            let mut at_ends = mask.clone();
            keep(&ends.steps, &rows, &mut at_ends, &CodeTables::default())?;
            mask.and_not(&at_ends);
        }
        if !mask.is_empty() {
            gone.add_rows(keys_of_rows(stage), &rows, &mask)?;
        }
    }
    Ok(gone)
}

/// The rows in the steps at the ends of a span of time.
pub(super) struct RowsAtEnds {
    steps: Predicate,
    /// Those of them that pass the filter.
    wanted: Predicate,
}

impl RowsAtEnds {
    pub(super) fn of(answer: &RollupAnswer, stage: &Stage) -> Option<Self> {
        let steps = match answer.ends.as_slice() {
            [] => return None,
            [one] => one.clone(),
            several => Bound::new(Node::Or(several.to_vec()), DataType::Bool),
        };
        let all: Vec<Bound> = stage.filter.iter().cloned().chain([steps.clone()]).collect();
        let wanted = Bound::new(Node::And(all), DataType::Bool);
        let compile = |bound: &Bound| Predicate::compile(Some(bound));
        Some(Self { steps: compile(&steps), wanted: compile(&wanted) })
    }

    /// The zones of a part that may have such rows.
    fn zones<'z>(&'z self, part: &'z dyn Fragment) -> impl Iterator<Item = usize> + 'z {
        let zones = 0..part.row_count().div_ceil(ZONE_ROWS);
        zones.filter(|zone| self.wanted.verdict(part, *zone) != Verdict::Never)
    }

    /// Whether it takes no less to read them than all rows of a part.
    fn are_most_of(&self, part: &dyn Fragment) -> bool {
        let all = part.row_count().div_ceil(ZONE_ROWS);
        self.zones(part).count() > (all / 2).max(2)
    }

    /// Adds those of a part that the reader sees, of some batches.
    pub(super) fn add(
        &self,
        groups: &mut Groups<'_>,
        part: &dyn Fragment,
        is_wanted: &dyn Fn(&Range<usize>) -> bool,
        options: &Options,
    ) -> Result<()> {
        let tables = CodeTables::default();
        for zone in self.zones(part) {
            options.expect_time_left()?;
            for range in batches(part, zone).into_iter().filter(is_wanted) {
                let mut mask = match part.visible(range.clone()) {
                    Some(words) => Mask::from_words(&words, range.len()),
                    None => Mask::all(range.len()),
                };
                let room = Room::default();
                let rows = Rows::new(part, range, options.limits(), &room);
                keep(&self.wanted, &rows, &mut mask, &tables)?;
                if !mask.is_empty() {
                    groups.update(&rows, &mask)?;
                }
            }
        }
        Ok(())
    }
}

impl RollupAnswer {
    /// How a step is answered; `None` where it is not.
    pub(super) fn of(stage: &Stage, shape: &RollupShape, limits: &Limits) -> Result<Option<Self>> {
        let over = OverKeys { shape, limits };
        match over.filter(stage.filter.as_ref())? {
            Some(filter) => Ok(Self::with(stage, &over, filter)),
            None => Ok(None),
        }
    }

    /// The same of the query of the rollup itself: what its keys do not tell of the filter is its
    /// own condition, which all rows of its groups have met. Other conditions that are tested
    /// below a grouping are on keys.
    fn of_history(stage: &Stage, shape: &RollupShape, limits: &Limits) -> Result<Option<Self>> {
        let over = OverKeys { shape, limits };
        let mut wanted: Vec<&Bound> = Vec::new();
        stage.filter.iter().for_each(|filter| conditions(filter, &mut wanted));
        let told = wanted.iter().filter_map(|condition| over.bound(condition));
        let filter = KeyFilter { conditions: told.collect(), ends: Vec::new() };
        Ok(Self::with(stage, &over, filter))
    }

    fn with(stage: &Stage, over: &OverKeys<'_>, filter: KeyFilter) -> Option<Self> {
        let shape = over.shape;
        let rows = Bound::field(shape.layout.rows(), DataType::U32);
        let keys: Option<Vec<Bound>> =
            keys_of_rows(stage).iter().map(|key| over.bound(key)).collect();
        let feed = |aggregate: &BoundAggregate| over.feed(aggregate, &rows);
        let feeds: Option<Vec<Feed>> = stage.aggregates.iter().map(feed).collect();
        let (Some(keys), Some(feeds)) = (keys, feeds) else { return None };
        let KeyFilter { conditions, ends } = filter;
        let filter = match conditions.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(Bound::new(Node::And(several.to_vec()), DataType::Bool)),
        };
        let filter = Predicate::compile(filter.as_ref());
        let first = Bound::field(shape.layout.first(), DataType::U32);
        let key_count = shape.layout.rows();
        Some(Self { keys, feeds, weights: rows, first, filter, conditions, key_count, ends })
    }

    /// The groups of a part; `None` where its rows have to be looked at.
    fn answer<'s>(
        &self,
        scan: &Scan<'s>,
        (stage, part): (&'s Stage, &dyn Fragment),
        (entries, hidden): (&dyn Fragment, &[(Range<usize>, Mask)]),
        charge: &mut Charge<'_>,
        options: &Options,
    ) -> Result<Option<Groups<'s>>> {
        let ends = RowsAtEnds::of(self, stage);
        let takes_away = !hidden.is_empty() && !Bug::DeadRowsLeftInRollup.is_planted();
        if takes_away && !PartialGroups::new(Groups::new(stage)).can_lose_rows() {
            return Ok(None);
        }
        let range = group_range::of(&self.conditions, self.key_count, entries)?;
        let mut groups = PartialGroups::new(Groups::new(stage));
        self.add_range(&mut groups, (entries, range, 0), charge, options)?;
        let groups = match takes_away {
            false => Some(groups.finish()),
            true => groups.without(gone(scan, (stage, ends.as_ref()), (part, hidden), options)?)?,
        };
        let Some(mut groups) = groups else { return Ok(None) };
        if let Some(ends) = ends {
            ends.add(&mut groups, part, &|_| true, options)?;
        }
        charge.set(groups.bytes())?;
        Ok(Some(groups))
    }

    /// Adds what is kept of a block whose first row has this number.
    pub(super) fn add_groups(
        &self,
        groups: &mut PartialGroups<'_>,
        (entries, first_row): (&dyn Fragment, usize),
        charge: &mut Charge<'_>,
        options: &Options,
    ) -> Result<()> {
        let range = group_range::of(&self.conditions, self.key_count, entries)?;
        self.add_range(groups, (entries, range, first_row), charge, options)
    }

    /// Adds groups of what is kept, the rows that are not seen among them.
    fn add_range(
        &self,
        groups: &mut PartialGroups<'_>,
        (entries, range, first_row): (&dyn Fragment, Range<usize>, usize),
        charge: &mut Charge<'_>,
        options: &Options,
    ) -> Result<()> {
        let feeds = Feeds {
            keys: &self.keys,
            aggregates: &self.feeds,
            rows: &self.weights,
            first: &self.first,
            first_row: i64::try_from(first_row).map_err(|_| misfit())?,
        };
        let tables = CodeTables::default();
        let Range { mut start, end: len } = range;
        while start < len {
            options.expect_time_left()?;
            let zone = start / ZONE_ROWS;
            let zone_end = len.min((zone + 1) * ZONE_ROWS);
            if self.filter.verdict(entries, zone) == Verdict::Never {
                start = zone_end;
                continue;
            }
            let end = entries.batch_end(start, zone_end - start).clamp(start + 1, zone_end);
            let (room, mut mask) = (Room::default(), Mask::all(end - start));
            if let Some(words) = entries.visible(start..end) {
                mask = Mask::from_words(&words, end - start);
            }
            let rows = Rows::new(entries, start..end, options.limits(), &room);
            keep(&self.filter, &rows, &mut mask, &tables)?;
            if !mask.is_empty() {
                groups.add(feeds, &rows, &mask)?;
                charge.set(groups.bytes())?;
            }
            start = end;
        }
        Ok(())
    }
}

/// Expressions over the rows of a table, as expressions over the keys of a rollup.
struct OverKeys<'a> {
    shape: &'a RollupShape,
    limits: &'a Limits,
}

impl OverKeys<'_> {
    /// The same value, of the keys; `None` where they do not tell it.
    fn bound(&self, bound: &Bound) -> Option<Bound> {
        if bound.is_random() || bound.is_unanswered() {
            return None;
        }
        if let Some(found) = self.key(bound).or_else(|| self.coarser(bound)) {
            return Some(found);
        }
        match &bound.node {
            Node::Field(_) => None,
            Node::Literal(_) => Some(bound.clone()),
            _ => {
                let mut found = bound.clone();
                found.replace_operands(&|operand| self.bound(operand)).then_some(found)
            }
        }
    }

    /// A key as it is kept.
    fn key(&self, bound: &Bound) -> Option<Bound> {
        let place = self.shape.keys.iter().position(|key| is_same(key, bound))?;
        Some(Bound { node: Node::Field(place), ..bound.clone() })
    }

    /// A time that is cut to longer steps than a key is.
    fn coarser(&self, bound: &Bound) -> Option<Bound> {
        let (wanted, of) = truncated(bound)?;
        let is_finer = |key: &&Bound| {
            truncated(key).is_some_and(|(unit, key)| is_same(key, of) && wanted.has_steps(unit))
        };
        let key = self.key(self.shape.keys.iter().find(is_finer)?)?;
        if key.data_type != of.data_type {
            return None;
        }
        let mut found = bound.clone();
        let replaced = found.replace_operands(&|operand| match operand.node {
            Node::Literal(_) => Some(operand.clone()),
            _ => Some(key.clone()),
        });
        replaced.then_some(found)
    }

    /// What an aggregate gets of the columns that are kept.
    fn feed(&self, aggregate: &BoundAggregate, rows: &Bound) -> Option<Feed> {
        let Some(operand) = &aggregate.operand else { return Some(Feed::Counts(rows.clone())) };
        // Others depend on the order in which values are met, or on how often.
        let is_of_set = match aggregate.function {
            Aggregate::Min | Aggregate::Max => true,
            Aggregate::Count => aggregate.distinct,
            _ => false,
        };
        if let Some(columns) = self.operand(operand).filter(|_| !aggregate.distinct) {
            let field = |column: usize, like: Option<&Bound>| {
                let data_type = self.shape.layout.type_of(column)?;
                let labels = like.and_then(|like| like.labels.as_ref());
                Some(Bound::field(column, data_type).with_labels(labels))
            };
            let counts = field(columns.count, None)?;
            let found = match aggregate.function {
                Aggregate::Count => Some(Feed::Counts(counts)),
                Aggregate::Sum | Aggregate::Avg => match columns.sum {
                    Some(sum) => Some(Feed::Sums(field(sum, None)?, counts)),
                    None => None,
                },
                Aggregate::Min => {
                    columns.least.and_then(|c| field(c, Some(operand)).map(Feed::Values))
                }
                Aggregate::Max => {
                    columns.greatest.and_then(|c| field(c, Some(operand)).map(Feed::Values))
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        let of_keys = self.bound(operand)?;
        match aggregate.function {
            Aggregate::Count if !aggregate.distinct => Some(Feed::CountsOf(rows.clone(), of_keys)),
            _ if is_of_set => Some(Feed::Values(of_keys)),
            _ => None,
        }
    }

    fn operand(&self, bound: &Bound) -> Option<OperandColumns> {
        let Node::Field(position) = bound.node else { return None };
        let place = self.shape.operands.iter().position(|field| *field == position)?;
        self.shape.layout.operands().get(place).copied()
    }

    /// A filter over the keys; `None` where they do not tell it, or leave rows out that it wants.
    fn filter(&self, filter: Option<&Bound>) -> Result<Option<KeyFilter>> {
        let mut wanted: Vec<&Bound> = Vec::new();
        filter.into_iter().for_each(|filter| conditions(filter, &mut wanted));
        let mut own = Vec::new();
        self.shape.filter.iter().for_each(|filter| conditions(filter, &mut own));
        if !own.iter().all(|own| wanted.iter().any(|wanted| is_same(own, wanted))) {
            return Ok(None);
        }
        wanted.retain(|wanted| !own.iter().any(|own| is_same(own, wanted)));
        let mut found = KeyFilter::default();
        for condition in wanted {
            match self.bound(condition) {
                Some(condition) => found.conditions.push(condition),
                None if self.cut(condition, &mut found)? => {}
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// A bound of a time that a key cuts to steps: the steps that lie on the wanted side of it
    /// whole, and the step in which it lies. False for another condition.
    fn cut(&self, condition: &Bound, to: &mut KeyFilter) -> Result<bool> {
        let Node::Compare(comparison, a, b) = &condition.node else { return Ok(false) };
        let (comparison, of, limit) = match (a.as_literal(), b.as_literal()) {
            (None, Some(limit)) => (*comparison, a, limit),
            (Some(limit), None) => (comparison.mirrored(), b, limit),
            _ => return Ok(false),
        };
        let is_of = |key: &&Bound| truncated(key).is_some_and(|(_, time)| is_same(time, of));
        let (Value::Timestamp(limit), Some(key)) = (limit, self.shape.keys.iter().find(is_of))
        else {
            return Ok(false);
        };
        let is_time = |bound: &Bound| bound.data_type == Some(DataType::Timestamp);
        let (Some((unit, _)), true) = (truncated(key), is_time(key) && is_time(of)) else {
            return Ok(false);
        };
        let Some(step) = self.step(key, *limit)? else { return Ok(false) };
        let Some(next) = step.checked_add(unit.longest_us()) else { return Ok(false) };
        let Some(next) = self.step(key, next)? else { return Ok(false) };
        let Some(kept) = self.key(key) else { return Ok(false) };
        let compare = |comparison, of: &Bound, with: i64| {
            let with = Bound::literal(Value::Timestamp(with));
            let node = Node::Compare(comparison, Box::new(of.clone()), Box::new(with));
            Bound::new(node, DataType::Bool)
        };
        let is_on_step = step == *limit;
        let whole = match comparison {
            Comparison::Gte if is_on_step => (Comparison::Gte, false),
            Comparison::Lt if is_on_step => (Comparison::Lt, false),
            Comparison::Gt | Comparison::Gte => (Comparison::Gt, true),
            Comparison::Lt | Comparison::Lte => (Comparison::Lt, true),
            Comparison::Eq | Comparison::Neq => return Ok(false),
        };
        to.conditions.push(compare(whole.0, &kept, step));
        if whole.1 {
            let both = [compare(Comparison::Gte, of, step), compare(Comparison::Lt, of, next)];
            to.ends.push(Bound::new(Node::And(both.to_vec()), DataType::Bool));
        }
        Ok(true)
    }

    /// The step of a time.
    fn step(&self, key: &Bound, time_us: i64) -> Result<Option<i64>> {
        let mut step = key.clone();
        step.replace_operands(&|operand| match operand.node {
            Node::Literal(_) => Some(operand.clone()),
            _ => Some(Bound::literal(Value::Timestamp(time_us))),
        });
        Ok(match self.constant(&step)? {
            Some(Value::Timestamp(step)) => Some(step),
            _ => None,
        })
    }

    /// The value of an expression that reads no field; `None` where it has none.
    fn constant(&self, bound: &Bound) -> Result<Option<Value>> {
        let rows = Rows::constant(self.limits);
        match evaluate(bound, &rows, Selection::All(1)) {
            Ok(vector) => Ok(Some(vector.value(0).to_owned())),
            Err(e) if e.kind() == ErrorKind::OutOfRange => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// The conditions that all have to hold.
fn conditions<'b>(bound: &'b Bound, to: &mut Vec<&'b Bound>) {
    match &bound.node {
        Node::And(all) => all.iter().for_each(|bound| conditions(bound, to)),
        _ => to.push(bound),
    }
}

/// Whether two expressions have the same value, of the same type, for each row.
fn is_same(a: &Bound, b: &Bound) -> bool {
    // The two zeros are equal, and `atan2(0, x)` tells them apart.
    let is_zero = |bound: &Bound| match bound.as_literal() {
        Some(Value::Float(value)) => *value == 0.0,
        Some(Value::Float32(value)) => *value == 0.0,
        _ => false,
    };
    a.node == b.node && a.data_type == b.data_type && !a.any(&is_zero)
}

/// The unit to which a time is cut, in UTC, and the time.
fn truncated(bound: &Bound) -> Option<(Unit, &Bound)> {
    let Node::Call(Function::DateTrunc, operands) = &bound.node else { return None };
    let [unit, of] = operands.as_slice() else { return None };
    let Some(Value::Text(unit)) = unit.as_literal() else { return None };
    matches!(of.node, Node::Field(_)).then_some((Unit::from_name(unit)?, of))
}
