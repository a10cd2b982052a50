//! Aggregates: what is kept per group while rows go by.

mod bits;
mod extremes;
mod float_sum;
pub(crate) mod group;
mod group_pairs;
mod group_range;
mod grouped;
pub(crate) mod index_aggregates;
mod kept_sums;
mod kernels;
pub(crate) mod limit_pushdown;
mod listed;
mod mean;
mod pairs;
pub(crate) mod partials;
mod ranges;
pub(crate) mod rollup_answer;
mod rollup_tail;
mod sketch;
mod spans;
mod spread;
pub(crate) mod stage;
mod taken;
mod update;
mod word_set;

use esker_format::decimal::{DIGITS_MAX, limit};
use esker_format::{Column, DataType, Decimal, Value, Values};

use crate::bind::Shown;
use crate::bound::{Bound, BoundAggregate};
use crate::evaluate::Selection;
use crate::evaluate::gather::gather;
use crate::evaluate::key_codec::decode_into;
use crate::exec::output::materialised::slice;
use crate::model::Aggregate;
use crate::{Error, Result, ZONE_ROWS};
use bits::Bits;
use extremes::Extremes;
use float_sum::{FloatLanes, FloatSum};
use group::{GroupIds, KeyTable};
use group_pairs::each;
use listed::Listed;
use mean::mean;
use pairs::Pairs;
pub(crate) use ranges::Prefixes;
use sketch::Sketch;
use spans::Span;
use spread::Moments;
use taken::Taken;
use word_set::WordSet;

/// One aggregate, for every group of a part of the rows.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    function: Aggregate,
    data_type: DataType,
    /// What it aggregates.
    operand: Option<DataType>,
    /// How many of what is summed make 1: more than one where that is mantissas.
    unit: u128,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// How many rows.
    Rows(Vec<u64>),
    /// How many values that are not NULL.
    Values(Vec<u64>),
    /// The distinct values of all groups: keys are the group's number and the value.
    Distinct(KeyTable),
    /// The same of words that are only counted.
    Words(WordSet),
    /// Exact sums of integers and how many values each has.
    Integers {
        sums: Vec<i128>,
        counts: Vec<u64>,
    },
    /// Exact sums of decimals of more than 18 digits, in halves: no order of the terms overflows.
    Wides {
        high: Vec<i128>,
        low: Vec<i128>,
        counts: Vec<u64>,
    },
    /// Sums of floats and how many values each has. `lanes` holds the rows of group 0 of a
    /// query without keys until they are merged.
    Floats {
        sums: Vec<FloatSum>,
        counts: Vec<u64>,
        lanes: Option<Box<FloatLanes>>,
    },
    Extremes(Extremes),
    /// What variances are made of.
    Moments(Vec<Moments>),
    /// First or last values.
    Taken(Taken),
    /// Every value, for quantiles.
    Numbers(Vec<Vec<f64>>),
    /// Every value with what it is ordered by.
    Listed(Listed),
    /// What correlations are made of.
    Pairs(Vec<Pairs>),
    Bits(Bits),
    /// Products.
    Products(Vec<Option<f64>>),
    /// About how many different values.
    Sketches(Vec<Sketch>),
    /// Sums of intervals.
    Spans(Vec<Span>),
}

impl Accumulator {
    pub(crate) fn new(aggregate: &BoundAggregate) -> Self {
        let operand = aggregate.operand.as_ref().map(Bound::data_type);
        let state = match (aggregate.function, operand) {
            (Aggregate::Count, Some(t))
                if aggregate.distinct && !t.is_variable() && !t.is_wide() =>
            {
                State::Words(WordSet::default())
            }
            // It keeps its rows, whose order counts.
            _ if aggregate.distinct
                && !matches!(
                    aggregate.function,
                    Aggregate::StringAgg | Aggregate::ArrayConcatAgg
                ) =>
            {
                State::Distinct(KeyTable::default())
            }
            (_, None) => State::Rows(Vec::new()),
            (Aggregate::Count, _) => State::Values(Vec::new()),
            (Aggregate::Sum | Aggregate::Avg, Some(t)) if t.is_float() => {
                State::Floats { sums: Vec::new(), counts: Vec::new(), lanes: None }
            }
            (Aggregate::Sum | Aggregate::Avg, Some(DataType::Interval)) => State::Spans(Vec::new()),
            (Aggregate::Sum | Aggregate::Avg, Some(t)) if t.is_wide() => {
                State::Wides { high: Vec::new(), low: Vec::new(), counts: Vec::new() }
            }
            (Aggregate::Sum | Aggregate::Avg, _) => {
                State::Integers { sums: Vec::new(), counts: Vec::new() }
            }
            (Aggregate::Min, Some(t)) => State::Extremes(Extremes::new(t, false)),
            (Aggregate::Max, Some(t)) => State::Extremes(Extremes::new(t, true)),
            (Aggregate::First, _) => State::Taken(Taken::new(false)),
            (Aggregate::Last, _) => State::Taken(Taken::new(true)),
            (Aggregate::Quantile { .. }, _) => State::Numbers(Vec::new()),
            (function, Some(_)) => Self::later_state(function, aggregate.distinct),
        };
        let unit = match operand {
            Some(DataType::Decimal { scale, .. }) => limit(scale).unsigned_abs(),
            _ => 1,
        };
        let BoundAggregate { function, data_type, .. } = *aggregate;
        Self { function, data_type, operand, unit, state }
    }

    fn later_state(function: Aggregate, is_distinct: bool) -> State {
        use Aggregate as A;
        match function {
            A::Mode | A::StringAgg | A::ArrayConcatAgg | A::PercentileDisc { .. } => {
                State::Listed(Listed::new(function, is_distinct))
            }
            A::BitAnd | A::BitOr | A::BitXor => State::Bits(Bits::new(function)),
            A::Product => State::Products(Vec::new()),
            A::ApproxCountDistinct => State::Sketches(Vec::new()),
            function if function.takes_pairs() => State::Pairs(Vec::new()),
            _ => State::Moments(Vec::new()),
        }
    }

    /// Makes room for `groups` groups.
    pub(crate) fn resize(&mut self, groups: usize) {
        match &mut self.state {
            State::Rows(counts) | State::Values(counts) => counts.resize(groups, 0),
            State::Distinct(_) | State::Words(_) => {}
            State::Integers { sums, counts } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            State::Wides { high, low, counts } => {
                high.resize(groups, 0);
                low.resize(groups, 0);
                counts.resize(groups, 0);
            }
            State::Floats { sums, counts, .. } => {
                sums.resize(groups, FloatSum::default());
                counts.resize(groups, 0);
            }
            State::Extremes(extremes) => extremes.resize(groups),
            State::Taken(taken) => taken.resize(groups),
            State::Moments(all) => all.resize(groups, Moments::default()),
            State::Numbers(all) => all.resize(groups, Vec::new()),
            State::Listed(listed) => listed.resize(groups),
            State::Pairs(all) => all.resize(groups, Pairs::default()),
            State::Bits(bits) => bits.resize(groups),
            State::Products(all) => all.resize(groups, None),
            State::Sketches(all) => all.resize(groups, Sketch::default()),
            State::Spans(all) => all.resize(groups, Span::default()),
        }
    }

    /// True when some groups can be merged apart from others.
    pub(crate) fn is_divisible(&self) -> bool {
        !matches!(self.state, State::Distinct(_) | State::Words(_))
    }

    /// True when groups have nothing of their own elsewhere.
    pub(crate) fn is_flat(&self) -> bool {
        match &self.state {
            State::Rows(_)
            | State::Values(_)
            | State::Distinct(_)
            | State::Words(_)
            | State::Integers { .. }
            | State::Wides { .. }
            | State::Floats { .. }
            | State::Moments(_)
            | State::Pairs(_)
            | State::Bits(_)
            | State::Products(_)
            | State::Spans(_) => true,
            State::Extremes(extremes) => extremes.is_flat(),
            State::Taken(_) | State::Numbers(_) | State::Listed(_) | State::Sketches(_) => false,
        }
    }

    /// Adds what another accumulator of the same aggregate holds of some groups: of each pair, the
    /// first group there is the second here. There is room for them. Where an accumulator is not
    /// divisible, the pairs have all groups there, in order.
    pub(crate) fn merge(&mut self, other: &Self, pairs: &[(u32, u32)]) {
        match (&mut self.state, &other.state) {
            (State::Rows(a), State::Rows(b)) | (State::Values(a), State::Values(b)) => {
                add_counts(a, b, pairs);
            }
            (State::Distinct(a), State::Distinct(b)) => add_distinct(a, b, pairs),
            (State::Words(a), State::Words(b)) => a.merge(b, pairs),
            (State::Integers { sums, counts }, State::Integers { sums: b, counts: c }) => {
                add_sums(sums, b, pairs);
                add_counts(counts, c, pairs);
            }
            (State::Wides { high, low, counts }, State::Wides { high: b, low: c, counts: d }) => {
                add_sums(high, b, pairs);
                add_sums(low, c, pairs);
                add_counts(counts, d, pairs);
            }
            (State::Floats { sums, counts, .. }, State::Floats { sums: b, counts: c, lanes }) => {
                each(sums, b, pairs, |into, sum| into.merge(*sum));
                if let (Some(lanes), Some((0, first))) = (lanes, pairs.first())
                    && let Some(into) = sums.get_mut(*first as usize)
                {
                    into.merge(lanes.total());
                }
                add_counts(counts, c, pairs);
            }
            (State::Extremes(a), State::Extremes(b)) => a.merge(b, pairs),
            (State::Taken(a), State::Taken(b)) => a.merge(b, pairs),
            (State::Moments(a), State::Moments(b)) => {
                each(a, b, pairs, |into, moments| into.merge(*moments));
            }
            (State::Numbers(a), State::Numbers(b)) => {
                each(a, b, pairs, |into, values| into.extend_from_slice(values));
            }
            (State::Listed(a), State::Listed(b)) => a.merge(b, pairs),
            (State::Pairs(a), State::Pairs(b)) => each(a, b, pairs, |into, p| into.merge(*p)),
            (State::Bits(a), State::Bits(b)) => a.merge(b, pairs),
            (State::Products(a), State::Products(b)) => each(a, b, pairs, |into, product| {
                *into = into.map_or(*product, |own| Some(own * product.unwrap_or(1.0)));
            }),
            (State::Sketches(a), State::Sketches(b)) => each(a, b, pairs, Sketch::merge),
            (State::Spans(a), State::Spans(b)) => each(a, b, pairs, |into, span| into.merge(*span)),
            _ => {}
        }
    }

    /// Nothing is added any more: what is counted is counted, and of distinct values the aggregate
    /// is made.
    ///
    /// # Errors
    /// `OutOfRange` when the texts of a batch would pass 4 GiB.
    pub(crate) fn settle(&mut self, groups: usize) -> Result<()> {
        self.resize(groups);
        if let State::Words(words) = &self.state {
            let mut counts = vec![0u64; groups];
            words.count(&mut counts);
            self.state = State::Values(counts);
            return Ok(());
        }
        let State::Distinct(table) = &self.state else { return Ok(()) };
        if let (true, Some(operand)) = (self.function != Aggregate::Count, self.operand) {
            self.state = self.of_distinct(table, operand, groups)?;
            return Ok(());
        }
        let mut counts = vec![0u64; groups];
        for i in 0..table.len() {
            let group = table.key(i).first_chunk::<4>().map(|g| u32::from_le_bytes(*g));
            let count = group.and_then(|group| counts.get_mut(group as usize));
            count.into_iter().for_each(|count| *count += 1);
        }
        self.state = State::Values(counts);
        Ok(())
    }

    /// The same aggregate of distinct values, each once, in the order in which they were met.
    fn of_distinct(&self, table: &KeyTable, operand: DataType, groups: usize) -> Result<State> {
        let aggregate = BoundAggregate {
            function: self.function,
            operand: Some(Bound::field(0, operand)),
            distinct: false,
            data_type: self.data_type,
        };
        let mut all = Self::new(&aggregate);
        all.resize(groups);
        for start in (0..table.len()).step_by(ZONE_ROWS) {
            let keys = start..table.len().min(start + ZONE_ROWS);
            let (mut values, mut numbers) =
                (Column::empty(operand), Vec::with_capacity(keys.len()));
            for i in keys {
                let Some((group, mut value)) = table.key(i).split_first_chunk::<4>() else {
                    return Err(Error::invalid("a distinct value without its group"));
                };
                numbers.push(u32::from_le_bytes(*group));
                decode_into(&mut values, &mut value)?;
            }
            let count = numbers.len();
            let column = slice(&values, 0..count)
                .ok_or_else(|| Error::invalid("fewer distinct values than groups of them"))?;
            let vector = gather(&column, Selection::All(count));
            all.update(&GroupIds::from_numbers(numbers, groups), Some(&vector));
        }
        Ok(all.state)
    }

    /// The result of a group, once it has settled, as one that is made of the same is shown.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type.
    fn value(&self, group: usize, shown: &Shown) -> Result<Value> {
        fn of<T: Copy + Default>(values: &[T], group: usize) -> T {
            values.get(group).copied().unwrap_or_default()
        }
        match &self.state {
            State::Rows(counts) | State::Values(counts) => {
                Ok(Value::Int(i64::try_from(of(counts, group)).unwrap_or(i64::MAX)))
            }
            State::Integers { counts, .. }
            | State::Wides { counts, .. }
            | State::Floats { counts, .. }
                if shown.function == Aggregate::Count =>
            {
                Ok(Value::Int(i64::try_from(of(counts, group)).unwrap_or(i64::MAX)))
            }
            State::Distinct(_) | State::Words(_) => Ok(Value::Null),
            State::Integers { sums, counts } => {
                self.finish_integers(of(sums, group), of(counts, group), shown)
            }
            State::Wides { high, low, counts } => {
                self.finish_wides(of(high, group), of(low, group), of(counts, group), shown)
            }
            State::Floats { sums, counts, .. } => {
                Ok(finish_floats(of(sums, group).value(), of(counts, group), shown.function))
            }
            State::Extremes(extremes) => Ok(extremes.value(group, self.data_type)),
            State::Taken(taken) => Ok(taken.value(group, self.data_type)),
            State::Moments(all) => {
                let of_sample = matches!(self.function, Aggregate::VarSamp | Aggregate::StddevSamp);
                let is_root = matches!(self.function, Aggregate::StddevPop | Aggregate::StddevSamp);
                let variance = of(all, group).variance(of_sample);
                Ok(variance.map(|v| if is_root { v.sqrt() } else { v }).into())
            }
            State::Numbers(all) => Ok(match (self.function, all.get(group)) {
                (Aggregate::Quantile { millionths }, Some(values)) => {
                    spread::quantile(values, millionths).into()
                }
                _ => Value::Null,
            }),
            State::Listed(listed) => listed.value(group, self.data_type),
            State::Bits(bits) => Ok(bits.value(group, self.data_type)),
            State::Products(all) => Ok(of(all, group).into()),
            State::Pairs(all) if self.function == Aggregate::RegrCount => {
                Ok(Value::Int(i64::try_from(of(all, group).count()).unwrap_or(i64::MAX)))
            }
            State::Pairs(all) => Ok(of(all, group).value(self.function).into()),
            State::Sketches(all) => {
                let count = all.get(group).map_or(0, Sketch::count);
                Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
            }
            State::Spans(all) => of(all, group).value(shown.function),
        }
    }

    /// Appends the result of a group to a column of its type, once it has settled.
    ///
    /// # Errors
    /// As [`Accumulator::push_shown`].
    pub(crate) fn push_value(&self, group: usize, column: &mut Column) -> Result<()> {
        self.push_shown(group, &self.own(), column)
    }

    /// What it is itself.
    fn own(&self) -> Shown {
        let Self { function, data_type, .. } = *self;
        Shown { aggregate: 0, function, data_type, added: 0 }
    }

    /// The same of an aggregate that is made of what this one keeps.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type.
    pub(crate) fn push_shown(
        &self,
        group: usize,
        shown: &Shown,
        column: &mut Column,
    ) -> Result<()> {
        match (&self.state, &mut column.values) {
            (State::Rows(counts) | State::Values(counts), Values::I64(to))
                if column.nulls.is_none() =>
            {
                let count = counts.get(group).copied().unwrap_or_default();
                to.push(i64::try_from(count).unwrap_or(i64::MAX));
                Ok(())
            }
            _ => Ok(column.push((&self.value(group, shown)?).into())?),
        }
    }

    fn finish_integers(&self, sum: i128, count: u64, shown: &Shown) -> Result<Value> {
        if count == 0 {
            return Ok(Value::Null);
        }
        let added = i128::from(shown.added).checked_mul(count.into());
        let sum = added.and_then(|added| sum.checked_add(added)).ok_or_else(too_many_digits)?;
        if shown.function == Aggregate::Avg {
            return Ok(Value::Float(mean(sum, count, self.unit)));
        }
        let value = match shown.data_type {
            DataType::U64 => u64::try_from(sum).ok().map(Value::Uint),
            DataType::Decimal { scale, .. } => Decimal::new(sum, scale).map(Value::Decimal),
            _ => i64::try_from(sum).ok().map(Value::Int),
        };
        value.ok_or_else(|| match shown.data_type {
            DataType::Decimal { .. } => too_many_digits(),
            other => Error::out_of_range(format!("sum {sum} does not fit {other}")),
        })
    }

    fn finish_wides(&self, high: i128, low: i128, count: u64, shown: &Shown) -> Result<Value> {
        let added = i128::from(shown.added).checked_mul(count.into());
        let low = added.and_then(|added| low.checked_add(added)).ok_or_else(too_many_digits)?;
        // The low half may have grown past 64 bits, and is then part of the high one.
        let high = high + (low >> 64);
        let rest = low & i128::from(u64::MAX);
        match high.checked_mul(1 << 64).and_then(|high| high.checked_add(rest)) {
            Some(sum) => self.finish_integers(sum, count, &Shown { added: 0, ..*shown }),
            None if shown.function == Aggregate::Avg => {
                let sum = high as f64 * 2f64.powi(64) + rest as f64;
                Ok(Value::Float(sum / count as f64 / self.unit as f64))
            }
            None => Err(too_many_digits()),
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        match &self.state {
            State::Rows(counts) | State::Values(counts) => counts.capacity() * 8,
            State::Distinct(table) => table.bytes(),
            State::Words(words) => words.bytes(),
            State::Integers { sums, .. } => sums.capacity() * 24,
            State::Wides { high, .. } => high.capacity() * 40,
            State::Floats { sums, .. } => sums.capacity() * 24,
            State::Extremes(extremes) => extremes.bytes(),
            State::Taken(taken) => taken.bytes(),
            State::Moments(all) => all.capacity() * size_of::<Moments>(),
            State::Numbers(all) => {
                let values = all.iter().map(|values| values.capacity() * 8).sum::<usize>();
                all.capacity() * size_of::<Vec<f64>>() + values
            }
            State::Listed(listed) => listed.bytes(),
            State::Pairs(all) => all.capacity() * size_of::<Pairs>(),
            State::Bits(bits) => bits.bytes(),
            State::Products(all) => all.capacity() * size_of::<Option<f64>>(),
            State::Spans(all) => all.capacity() * size_of::<Span>(),
            State::Sketches(all) => {
                let own = all.iter().map(Sketch::bytes).sum::<usize>();
                all.capacity() * size_of::<Sketch>() + own
            }
        }
    }
}

fn finish_floats(sum: f64, count: u64, function: Aggregate) -> Value {
    match (count, function) {
        (0, _) => Value::Null,
        (_, Aggregate::Avg) => Value::Float(sum / count as f64),
        _ => Value::Float(sum),
    }
}

fn too_many_digits() -> Error {
    Error::out_of_range(format!("a sum of decimals has more than {DIGITS_MAX} digits"))
}

fn add_counts(into: &mut [u64], counts: &[u64], pairs: &[(u32, u32)]) {
    each(into, counts, pairs, |into, count| *into += count);
}

fn add_sums(into: &mut [i128], sums: &[i128], pairs: &[(u32, u32)]) {
    each(into, sums, pairs, |into, sum| *into += sum);
}

/// The pairs have all groups there, in order.
fn add_distinct(into: &mut KeyTable, from: &KeyTable, pairs: &[(u32, u32)]) {
    let mut moved = Vec::new();
    for i in 0..from.len() {
        if let Some((group, value)) = from.key(i).split_first_chunk::<4>() {
            let pair = pairs.get(u32::from_le_bytes(*group) as usize);
            moved.clear();
            moved.extend_from_slice(&pair.map_or(0, |pair| pair.1).to_le_bytes());
            moved.extend_from_slice(value);
            into.number(&moved);
        }
    }
}

#[cfg(test)]
mod tests;
