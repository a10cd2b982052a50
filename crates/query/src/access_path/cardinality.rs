//! About how many rows pass a filter, and how many different values a field has: what joins are
//! ordered by. An estimate decides how long a query takes, never its answer.
//!
//! What is known of a field is what lies there: bounds and NULLs by zone, sketches of the values of
//! segments, dictionaries, bitmaps, unique keys and indexes; else a sample of rows, from which the
//! number of values is extrapolated (the estimator GEE of Charikar et al., 2000). Shares of what
//! nothing is known of are those of System R. Conditions are taken to have nothing to do with each
//! other.

use std::ops::Bound as End;

use esker_format::segment::FieldSketch;
use esker_format::{ColumnSlice, Data, DataType, Room};

use crate::bound::{Bound, Comparison, Node};
use crate::predicate::{Condition, Key, Predicate, Test, float_of};
use crate::source::{Fragment, IndexRun, Source};
use crate::{Result, ZONE_ROWS};
use esker_format::order_key::{bounds, key};

/// The share of rows that pass an equality, a range, a pattern, anything else.
const EQUAL_SHARE: f64 = 0.1;
const RANGE_SHARE: f64 = 1.0 / 3.0;
const PATTERN_SHARE: f64 = 0.1;
const OTHER_SHARE: f64 = 1.0 / 3.0;

/// As many zones are looked at, and rows sampled, whatever the size of the table.
const ZONES_MAX: usize = 128;
const SAMPLE_ROWS: usize = 512;

/// Of values as different as that, each row more has a new one.
const ALL_DIFFERENT: f64 = 0.999;
/// After as many steps an equation is solved as well as numbers tell.
const HALVINGS: usize = 50;

/// About how many values a field has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distinct {
    pub(crate) count: f64,
    /// True where no two rows have the same.
    pub(crate) is_unique: bool,
}

/// What is known of the values of a field.
#[derive(Debug)]
struct FieldValues {
    data_type: DataType,
    least: Option<Key>,
    greatest: Option<Key>,
    null_share: f64,
}

/// About how many rows there are.
pub(crate) fn row_count(source: &dyn Source) -> f64 {
    estimated_rows(source) as f64
}

/// The same as a whole number.
pub(crate) fn estimated_rows(source: &dyn Source) -> u64 {
    let rows = |part: &dyn Fragment| part.visible_count().unwrap_or_else(|| part.row_count());
    (0..source.part_count()).map(|part| rows(source.part(part)) as u64).sum()
}

/// About which share of the rows passes.
///
/// # Errors
/// When a column cannot be read.
pub(crate) fn selectivity(predicate: &Predicate, source: &dyn Source) -> Result<f64> {
    Ok(match predicate {
        Predicate::Constant(passes) => f64::from(u8::from(*passes)),
        Predicate::Test(test) => share_of_test(test, source)?,
        Predicate::Value(bound, wanted) => {
            let share = share_of_value(bound);
            if *wanted { share } else { 1.0 - share }
        }
        Predicate::All(members) => {
            let shares = members.iter().map(|member| selectivity(member, source));
            shares.product::<Result<f64>>()?
        }
        Predicate::Any(members) => {
            let others = members.iter().map(|member| Ok(1.0 - selectivity(member, source)?));
            1.0 - others.product::<Result<f64>>()?
        }
    })
}

/// The share of pairs, or of rows, that pass a condition of which nothing else is known.
pub(crate) fn share_of_value(bound: &Bound) -> f64 {
    match &bound.node {
        Node::Compare(Comparison::Eq, ..) | Node::In(..) => EQUAL_SHARE,
        Node::Compare(Comparison::Neq, ..) => 1.0 - EQUAL_SHARE,
        Node::Compare(..) => RANGE_SHARE,
        Node::Match(..) => PATTERN_SHARE,
        Node::Not(operand) => 1.0 - share_of_value(operand),
        Node::And(members) => members.iter().map(share_of_value).product(),
        Node::Or(members) => {
            1.0 - members.iter().map(|member| 1.0 - share_of_value(member)).product::<f64>()
        }
        _ => OTHER_SHARE,
    }
}

fn share_of_test(test: &Test, source: &dyn Source) -> Result<f64> {
    let values = FieldValues::of(source, test.field, test.data_type);
    let of_equal = |count: usize| -> Result<f64> {
        let distinct = distinct(source, test.field)?.count.max(1.0);
        Ok((count as f64 / distinct).min(1.0))
    };
    let (share, is_negated) = match &test.condition {
        Condition::Null { negated: true } => return Ok(1.0 - values.null_share),
        Condition::Null { negated: false } => return Ok(values.null_share),
        Condition::Range { least, greatest, negated } if least > greatest => (0.0, *negated),
        Condition::Range { least, greatest, negated } if least == greatest => {
            let is_beyond = values.least.is_some_and(|first| *least < first)
                || values.greatest.is_some_and(|last| *greatest > last);
            (if is_beyond { 0.0 } else { of_equal(1)? }, *negated)
        }
        Condition::Range { least, greatest, negated } => {
            (values.share_between(*least, *greatest), *negated)
        }
        Condition::Set { keys, negated } => (of_equal(keys.len())?, *negated),
        Condition::TextSet { values, negated } => (of_equal(values.len())?, *negated),
        Condition::TextRange { least: End::Included(a), greatest: End::Included(b), negated }
            if a == b =>
        {
            (of_equal(1)?, *negated)
        }
        Condition::TextRange { negated, .. } => (RANGE_SHARE, *negated),
        Condition::Match { negated, .. } => (PATTERN_SHARE, *negated),
        Condition::Length { negated, .. } => (RANGE_SHARE, *negated),
    };
    let share = if is_negated { 1.0 - share } else { share };
    Ok(share * (1.0 - values.null_share))
}

impl FieldValues {
    fn of(source: &dyn Source, position: usize, data_type: DataType) -> Self {
        let mut known = Self { data_type, least: None, greatest: None, null_share: 0.0 };
        let zones_of = |part: &dyn Fragment| part.row_count().div_ceil(ZONE_ROWS);
        let all: usize = (0..source.part_count()).map(|part| zones_of(source.part(part))).sum();
        let step = all.div_ceil(ZONES_MAX).max(1);
        let (mut rows, mut nulls, mut before, mut is_whole) = (0usize, 0usize, 0usize, true);
        for part in (0..source.part_count()).map(|part| source.part(part)) {
            let zones = zones_of(part);
            let looked_at = (before.next_multiple_of(step) - before..zones).step_by(step);
            before += zones;
            // The last ones are often those with the greatest values.
            let is_last = before == all && !(all.saturating_sub(1)).is_multiple_of(step);
            let last = zones.checked_sub(1).filter(|_| is_last);
            for zone in looked_at.chain(last) {
                let Some(bounds) = part.zone(position, zone) else {
                    is_whole = false;
                    continue;
                };
                let rows_here = part.row_count().saturating_sub(zone * ZONE_ROWS).min(ZONE_ROWS);
                (rows, nulls) = (rows + rows_here, nulls + bounds.null_count.min(rows_here));
                if bounds.least.is_null() {
                    continue;
                }
                let least = key(bounds.least);
                known.least = Some(known.least.map_or(least, |first| first.min(least)));
                let greatest = bounds.greatest.map(key);
                let greatest = greatest.map(|g| known.greatest.map_or(g, |last| last.max(g)));
                known.greatest = greatest.or(known.greatest);
            }
        }
        if rows > 0 {
            known.null_share = nulls as f64 / rows as f64;
        }
        let (first, last) = bounds(data_type);
        // Texts have no keys.
        if !is_whole || first == last {
            (known.least, known.greatest) = (None, None);
        }
        known
    }

    /// The share of values in a range of keys, if they lie evenly between the bounds.
    fn share_between(&self, least: Key, greatest: Key) -> f64 {
        let (Some(first), Some(last)) = (self.least, self.greatest) else { return RANGE_SHARE };
        if greatest < first || least > last {
            return 0.0;
        }
        let (from, until) = (least.max(first), greatest.min(last));
        if self.data_type.is_float() {
            let width = float_of(last) - float_of(first);
            let within = float_of(until) - float_of(from);
            let share = within / width;
            return if share.is_finite() { share.clamp(0.0, 1.0) } else { RANGE_SHARE };
        }
        let count = |from: Key, until: Key| (until - from) as f64 + 1.0;
        (count(from, until) / count(first, last)).clamp(0.0, 1.0)
    }

    /// The most values that there can be, where their bounds tell.
    fn span(&self) -> Option<f64> {
        let (first, last) = (self.least?, self.greatest?);
        (!self.data_type.is_float()).then_some((last - first) as f64 + 1.0)
    }
}

/// About how many different values a field has.
///
/// # Errors
/// When a column cannot be read.
pub(crate) fn distinct(source: &dyn Source, position: usize) -> Result<Distinct> {
    let rows = row_count(source).max(1.0);
    let of = |count: f64| Distinct { count: count.clamp(1.0, rows), is_unique: false };
    let schema = source.schema();
    let Some(field) = schema.fields().get(position) else { return Ok(of(rows)) };
    let by_index = schema.indexes().iter().any(|index| {
        let [only] = index.fields.as_slice() else { return false };
        index.unique && index.filter.is_none() && only.is_field() && only.field == field.id
    });
    if by_index || schema.key_positions() == [position] {
        return Ok(Distinct { count: rows, is_unique: true });
    }
    if field.data_type == DataType::Bool {
        return Ok(of(2.0));
    }
    let span = || FieldValues::of(source, position, field.data_type).span();
    if let Some(count) = sketched(source, position) {
        return Ok(of(count.min(span().unwrap_or(count))));
    }
    let parts = || (0..source.part_count()).map(|part| source.part(part));
    for part in parts() {
        for run in part.runs() {
            if let IndexRun::Bitmaps(run) = run
                && run.field() == position
            {
                return Ok(of(run.values()?.len as f64));
            }
        }
    }
    if let Some(span) = span() {
        return Ok(of(span));
    }
    let Some(largest) = parts().max_by_key(|part| part.row_count()) else { return Ok(of(rows)) };
    if largest.row_count() == 0 {
        return Ok(of(rows));
    }
    let room = Room::default();
    let column = largest.column(position, 0..largest.batch_end(0, SAMPLE_ROWS), &room)?;
    if let Data::Dictionary { dictionary, .. } = column.data {
        return Ok(of(dictionary.len() as f64));
    }
    Ok(of(extrapolated(&column, rows)))
}

/// About how many values the sketches of the parts tell of, if most rows lie in parts that have
/// one. Values of rows that are gone are among them.
fn sketched(source: &dyn Source, position: usize) -> Option<f64> {
    let mut all = FieldSketch::default();
    let (mut rows, mut others) = (0, 0);
    for part in (0..source.part_count()).map(|part| source.part(part)) {
        match part.sketch(position) {
            Some(sketch) => {
                all.merge(sketch);
                rows += part.row_count();
            }
            None => others += part.row_count(),
        }
    }
    let count = all.count() as f64;
    (rows > 0 && rows >= others).then(|| of_more_rows(count, rows as f64, others as f64))
}

/// About how many values rows and some more have, of which so many rows have `count`: if each row
/// has any of so many values, all as likely, as make it that.
fn of_more_rows(count: f64, rows: f64, more: f64) -> f64 {
    let share = count / rows;
    if more <= 0.0 || share >= ALL_DIFFERENT {
        return count * (1.0 + more / rows);
    }
    // The share of rows that have a value that none before has, where each of them has `each` rows.
    let share_of = |each: f64| (1.0 - (-each).exp()) / each;
    let (mut few, mut many) = (0.0, 1.0 / share.max(f64::MIN_POSITIVE));
    for _ in 0..HALVINGS {
        let each = f64::midpoint(few, many);
        if share_of(each) > share { few = each } else { many = each }
    }
    let values = rows / many;
    values * (1.0 - (-(rows + more) / values).exp())
}

/// About how many values `rows` rows have, given some of them.
fn extrapolated(sample: &ColumnSlice<'_>, rows: f64) -> f64 {
    let values = (0..sample.len).map(|i| sample.value(i)).filter(|value| !value.is_null());
    // A value of fixed width is as good as its key.
    let mut taken: Vec<(Key, &[u8])> = values
        .map(|value| match value.as_bytes() {
            Some(bytes) => (0, bytes),
            None => (key(value), [].as_slice()),
        })
        .collect();
    taken.sort_unstable();
    let (mut once, mut several) = (0usize, 0usize);
    for same in taken.chunk_by(|a, b| a == b) {
        *if same.len() == 1 { &mut once } else { &mut several } += 1;
    }
    let scale = (rows / (taken.len().max(1) as f64)).max(1.0).sqrt();
    scale * once as f64 + several as f64
}

#[cfg(test)]
mod tests {
    use super::of_more_rows;

    /// What is known of most rows says about how many values all have.
    #[test]
    fn more_rows_have_few_new_values_where_values_come_again() {
        // Values drawn evenly, of 1,000 and of 100,000.
        let drawn = |values: f64, rows: f64| values * (1.0 - (-rows / values).exp());
        for values in [10.0, 1_000.0, 100_000.0] {
            let count = drawn(values, 20_000.0);
            let (found, wanted) =
                (of_more_rows(count, 20_000.0, 10_000.0), drawn(values, 30_000.0));
            assert!((found / wanted - 1.0).abs() < 0.01, "{values}: {found}, wanted {wanted}");
        }
        let all_different = of_more_rows(20_000.0, 20_000.0, 10_000.0);
        assert!((all_different - 30_000.0).abs() < 1.0, "{all_different}");
        // Of 3 % more than there are rows, as a sketch may say.
        assert!(of_more_rows(20_600.0, 20_000.0, 10_000.0) >= 30_000.0);
        let same = [(7.0, 0.0), (7.0, 500.0), (0.0, 500.0)]
            .map(|(count, more)| of_more_rows(count, 1_000.0, more).round());
        assert_eq!(same.map(|count| count.to_string()), ["7", "7", "0"]);
    }
}
