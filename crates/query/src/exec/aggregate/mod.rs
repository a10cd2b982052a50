//! Aggregates: what is kept per group while rows go by.

mod extremes;
mod float_sum;
mod grouped;
mod kernels;
mod spread;
mod update;

use std::ops::Range;

use esker_format::decimal::{DIGITS_MAX, limit};
use esker_format::{DataType, Decimal, Value};

use super::group::KeyTable;
use crate::bind::BoundAggregate;
use crate::model::Aggregate;
use crate::{Error, Result};
use extremes::Extremes;
use float_sum::{FloatLanes, FloatSum};
use spread::Moments;

/// One aggregate, for every group of a part of the rows.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    function: Aggregate,
    data_type: DataType,
    /// How many of what is summed make 1: more than one where that is mantissas.
    unit: f64,
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
    /// Every value, for quantiles.
    Numbers(Vec<Vec<f64>>),
}

impl Accumulator {
    pub(crate) fn new(aggregate: &BoundAggregate) -> Self {
        let operand = aggregate.operand.as_ref().map(crate::bind::Bound::data_type);
        let state = match (aggregate.function, operand) {
            (Aggregate::Count, _) if aggregate.distinct => State::Distinct(KeyTable::default()),
            (_, None) => State::Rows(Vec::new()),
            (Aggregate::Count, _) => State::Values(Vec::new()),
            (Aggregate::Sum | Aggregate::Avg, Some(t)) if t.is_float() => {
                State::Floats { sums: Vec::new(), counts: Vec::new(), lanes: None }
            }
            (Aggregate::Sum | Aggregate::Avg, Some(t)) if t.is_wide() => {
                State::Wides { high: Vec::new(), low: Vec::new(), counts: Vec::new() }
            }
            (Aggregate::Sum | Aggregate::Avg, _) => {
                State::Integers { sums: Vec::new(), counts: Vec::new() }
            }
            (Aggregate::Min, Some(t)) => State::Extremes(Extremes::new(t, false)),
            (Aggregate::Max, Some(t)) => State::Extremes(Extremes::new(t, true)),
            (Aggregate::Quantile { .. }, _) => State::Numbers(Vec::new()),
            (_, Some(_)) => State::Moments(Vec::new()),
        };
        let unit = match operand {
            Some(DataType::Decimal { scale, .. }) => limit(scale) as f64,
            _ => 1.0,
        };
        Self { function: aggregate.function, data_type: aggregate.data_type, unit, state }
    }

    /// Makes room for `groups` groups.
    pub(crate) fn resize(&mut self, groups: usize) {
        match &mut self.state {
            State::Rows(counts) | State::Values(counts) => counts.resize(groups, 0),
            State::Distinct(_) => {}
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
            State::Moments(all) => all.resize(groups, Moments::default()),
            State::Numbers(all) => all.resize(groups, Vec::new()),
        }
    }

    /// Adds what another accumulator of the same aggregate holds: its group `i` is group
    /// `numbers[i]` here. There is room for them.
    pub(crate) fn merge(&mut self, other: Self, numbers: &[u32]) {
        match (&mut self.state, other.state) {
            (State::Rows(a), State::Rows(b)) | (State::Values(a), State::Values(b)) => {
                add_counts(a, &b, numbers);
            }
            (State::Distinct(a), State::Distinct(b)) => {
                let mut moved = Vec::new();
                for i in 0..b.len() {
                    if let Some((group, value)) = b.key(i).split_first_chunk::<4>() {
                        let group = numbers.get(u32::from_le_bytes(*group) as usize);
                        moved.clear();
                        moved.extend_from_slice(&group.copied().unwrap_or_default().to_le_bytes());
                        moved.extend_from_slice(value);
                        a.number(&moved);
                    }
                }
            }
            (State::Integers { sums, counts }, State::Integers { sums: b, counts: c }) => {
                add_sums(sums, &b, numbers);
                add_counts(counts, &c, numbers);
            }
            (State::Wides { high, low, counts }, State::Wides { high: b, low: c, counts: d }) => {
                add_sums(high, &b, numbers);
                add_sums(low, &c, numbers);
                add_counts(counts, &d, numbers);
            }
            (
                State::Floats { sums, counts, .. },
                State::Floats { sums: mut b, counts: c, lanes },
            ) => {
                if let (Some(lanes), Some(first)) = (lanes, b.first_mut()) {
                    first.merge(lanes.total());
                }
                for (sum, number) in b.iter().zip(numbers) {
                    if let Some(into) = sums.get_mut(*number as usize) {
                        into.merge(*sum);
                    }
                }
                add_counts(counts, &c, numbers);
            }
            (State::Extremes(a), State::Extremes(b)) => a.merge(&b, numbers),
            (State::Moments(a), State::Moments(b)) => {
                for (moments, number) in b.into_iter().zip(numbers) {
                    a.get_mut(*number as usize).into_iter().for_each(|a| a.merge(moments));
                }
            }
            (State::Numbers(a), State::Numbers(b)) => {
                for (mut values, number) in b.into_iter().zip(numbers) {
                    a.get_mut(*number as usize).into_iter().for_each(|a| a.append(&mut values));
                }
            }
            _ => {}
        }
    }

    /// Nothing is added any more: what is counted is counted.
    pub(crate) fn settle(&mut self, groups: usize) {
        self.resize(groups);
        let State::Distinct(table) = &self.state else { return };
        let mut counts = vec![0u64; groups];
        for i in 0..table.len() {
            let group = table.key(i).first_chunk::<4>().map(|g| u32::from_le_bytes(*g));
            let count = group.and_then(|group| counts.get_mut(group as usize));
            count.into_iter().for_each(|count| *count += 1);
        }
        self.state = State::Values(counts);
    }

    /// The results of some groups, once it has settled.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type.
    pub(crate) fn finish(&self, groups: Range<usize>) -> Result<Vec<Value>> {
        fn of<'v, T>(values: &'v [T], groups: &Range<usize>) -> std::slice::Iter<'v, T> {
            values.get(groups.clone()).unwrap_or_default().iter()
        }
        match &self.state {
            State::Rows(counts) | State::Values(counts) => {
                Ok(of(counts, &groups).map(|n| count(Some(*n))).collect())
            }
            State::Distinct(_) => Ok(groups.map(|_| Value::Null).collect()),
            State::Integers { sums, counts } => {
                let each = of(sums, &groups).zip(of(counts, &groups));
                each.map(|(sum, count)| self.finish_integers(*sum, *count)).collect()
            }
            State::Wides { high, low, counts } => {
                let sums = of(high, &groups).zip(of(low, &groups));
                let each = sums.zip(of(counts, &groups));
                each.map(|((high, low), count)| self.finish_wides(*high, *low, *count)).collect()
            }
            State::Floats { sums, counts, .. } => {
                let each = of(sums, &groups).zip(of(counts, &groups));
                Ok(each.map(|(sum, count)| self.finish_floats(sum.value(), *count)).collect())
            }
            State::Extremes(extremes) => {
                Ok(groups.map(|g| extremes.value(g, self.data_type)).collect())
            }
            State::Moments(all) => {
                let of_sample = matches!(self.function, Aggregate::VarSamp | Aggregate::StddevSamp);
                let is_root = matches!(self.function, Aggregate::StddevPop | Aggregate::StddevSamp);
                let value = |moments: &Moments| {
                    let variance = moments.variance(of_sample);
                    variance.map(|v| if is_root { v.sqrt() } else { v }).into()
                };
                Ok(of(all, &groups).map(value).collect())
            }
            State::Numbers(all) => {
                let Aggregate::Quantile { millionths } = self.function else {
                    return Ok(Vec::new());
                };
                let value = |values: &Vec<f64>| spread::quantile(values, millionths).into();
                Ok(of(all, &groups).map(value).collect())
            }
        }
    }

    fn finish_integers(&self, sum: i128, count: u64) -> Result<Value> {
        if count == 0 {
            return Ok(Value::Null);
        }
        if self.function == Aggregate::Avg {
            return Ok(Value::Float(mean(sum, count) / self.unit));
        }
        let value = match self.data_type {
            DataType::U64 => u64::try_from(sum).ok().map(Value::Uint),
            DataType::Decimal { scale, .. } => Decimal::new(sum, scale).map(Value::Decimal),
            _ => i64::try_from(sum).ok().map(Value::Int),
        };
        let overflow = || format!("sum {sum} does not fit {}", self.data_type);
        value.ok_or_else(|| Error::out_of_range(overflow()))
    }

    fn finish_wides(&self, high: i128, low: i128, count: u64) -> Result<Value> {
        // The low half may have grown past 64 bits, and is then part of the high one.
        let high = high + (low >> 64);
        let rest = low & i128::from(u64::MAX);
        match high.checked_mul(1 << 64).and_then(|high| high.checked_add(rest)) {
            Some(sum) => self.finish_integers(sum, count),
            None if self.function == Aggregate::Avg => {
                let sum = high as f64 * 2f64.powi(64) + rest as f64;
                Ok(Value::Float(sum / count as f64 / self.unit))
            }
            None => {
                let digits = DIGITS_MAX;
                Err(Error::out_of_range(format!("a sum of decimals has more than {digits} digits")))
            }
        }
    }

    fn finish_floats(&self, sum: f64, count: u64) -> Value {
        match (count, self.function) {
            (0, _) => Value::Null,
            (_, Aggregate::Avg) => Value::Float(sum / count as f64),
            _ => Value::Float(sum),
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        match &self.state {
            State::Rows(counts) | State::Values(counts) => counts.capacity() * 8,
            State::Distinct(table) => table.bytes(),
            State::Integers { sums, .. } => sums.capacity() * 24,
            State::Wides { high, .. } => high.capacity() * 40,
            State::Floats { sums, .. } => sums.capacity() * 24,
            State::Extremes(extremes) => extremes.bytes(),
            State::Moments(all) => all.capacity() * size_of::<Moments>(),
            State::Numbers(all) => {
                let values = all.iter().map(|values| values.capacity() * 8).sum::<usize>();
                all.capacity() * size_of::<Vec<f64>>() + values
            }
        }
    }
}

fn add_counts(into: &mut [u64], counts: &[u64], numbers: &[u32]) {
    for (count, number) in counts.iter().zip(numbers) {
        if let Some(into) = into.get_mut(*number as usize) {
            *into += count;
        }
    }
}

fn add_sums(into: &mut [i128], sums: &[i128], numbers: &[u32]) {
    for (sum, number) in sums.iter().zip(numbers) {
        if let Some(into) = into.get_mut(*number as usize) {
            *into += sum;
        }
    }
}

fn count(n: Option<u64>) -> Value {
    Value::Int(i64::try_from(n.unwrap_or_default()).unwrap_or(i64::MAX))
}

/// The mean of integers: the whole part exact, then the fraction.
fn mean(sum: i128, count: u64) -> f64 {
    let count = i128::from(count);
    let (whole, rest) = (sum / count, sum % count);
    whole as f64 + rest as f64 / count as f64
}

#[cfg(test)]
mod tests;
