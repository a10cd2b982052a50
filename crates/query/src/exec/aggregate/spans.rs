//! Sums and means of intervals, part by part.

use esker_format::{Interval, Value};

use crate::evaluate::Vector;
use crate::model::Aggregate;
use crate::{Error, Result};

/// The parts of some intervals, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    months: i128,
    days: i128,
    us: i128,
    count: u64,
}

impl Span {
    fn add(&mut self, interval: Interval) {
        self.months += i128::from(interval.months());
        self.days += i128::from(interval.days());
        self.us += i128::from(interval.microseconds());
        self.count += 1;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.months += other.months;
        self.days += other.days;
        self.us += other.us;
        self.count += other.count;
    }

    /// The sum or the mean, NULL of none; or how many there are.
    ///
    /// # Errors
    /// `OutOfRange` when a part of the sum does not fit.
    pub(super) fn value(self, function: Aggregate) -> Result<Value> {
        if function == Aggregate::Count {
            return Ok(Value::Int(i64::try_from(self.count).unwrap_or(i64::MAX)));
        }
        if self.count == 0 {
            return Ok(Value::Null);
        }
        let sum = || {
            let (months, days) = (self.months.try_into().ok()?, self.days.try_into().ok()?);
            Some(Interval::new(months, days, self.us.try_into().ok()?))
        };
        let value = match function {
            Aggregate::Avg => sum().and_then(|sum| sum.checked_div(self.count as f64)),
            _ => sum(),
        };
        let name = function.name();
        let failed = || Error::out_of_range(format!("{name}: the sum does not fit interval"));
        value.map(Value::Interval).ok_or_else(failed)
    }
}

/// Adds rows, row `i` to its group, of which there are enough.
pub(super) fn update(all: &mut [Span], groups: &[u32], vector: &Vector<'_>) {
    for (i, group) in groups.iter().enumerate() {
        if let (Some(span), false) = (all.get_mut(*group as usize), vector.is_null(i)) {
            span.add(Interval::of_bytes(vector.lanes.bytes(i)));
        }
    }
}
