//! A date beside a constant moment. It compares as the day that it is: that cannot fail, as its
//! midnight may, and ranges of an index and of zones answer it.
//!
//! ```text
//!            floor(m)         ceil(m) = floor(m) + 1
//!   ────────────┼────── m ───────┼────────────        d < m, d <= m   d <= floor(m)
//!                                                     d > m, d >= m   d > floor(m)
//! ```

use esker_format::calendar::DAY_US;
use esker_format::{DataType, Value};

use crate::bound::{Bound, Comparison, Node};

/// The day of a constant moment.
pub(super) struct Day {
    /// The day that it lies in.
    floor: Value,
    /// True at the beginning of the day.
    is_midnight: bool,
}

impl Day {
    /// The day of a constant timestamp; none of anything else.
    pub(super) fn of(moment: &Bound) -> Option<Self> {
        match moment.as_literal()? {
            Value::Timestamp(us) => Self::of_us(*us),
            _ => None,
        }
    }

    fn of_us(us: i64) -> Option<Self> {
        let floor = Value::Date(i32::try_from(us.div_euclid(DAY_US)).ok()?);
        Some(Self { floor, is_midnight: us.rem_euclid(DAY_US) == 0 })
    }

    /// The date that equals it, if one does.
    pub(super) fn date(self) -> Option<Value> {
        self.is_midnight.then_some(self.floor)
    }

    /// What holds of a date where a comparison of its midnight with the moment does.
    pub(super) fn compare(self, comparison: Comparison, date: Bound) -> Bound {
        let test = |comparison, date| {
            let day = Bound::literal(self.floor.clone());
            Bound::new(Node::Compare(comparison, Box::new(date), Box::new(day)), DataType::Bool)
        };
        match comparison {
            same if self.is_midnight => test(same, date),
            Comparison::Lt | Comparison::Lte => test(Comparison::Lte, date),
            Comparison::Gt | Comparison::Gte => test(Comparison::Gt, date),
            // One answer for every date, but NULL of NULL. The date is looked at once, since it may
            // be another one each time.
            Comparison::Eq | Comparison::Neq => {
                let is_null = Bound::new(Node::IsNull(Box::new(date)), DataType::Bool);
                let null = Bound::new(Node::Literal(Value::Null), DataType::Bool);
                let answer = Bound::literal(Value::Bool(comparison == Comparison::Neq));
                Bound::new(Node::Case(vec![(is_null, null)], Box::new(answer)), DataType::Bool)
            }
        }
    }
}

/// Whether an operand is a date that is not constant.
pub(super) fn is_date(operand: &Bound) -> bool {
    operand.data_type == Some(DataType::Date) && operand.as_literal().is_none()
}

/// The dates that equal moments at midnight, and NULLs; none where not one of them does.
pub(super) fn dates_of(moments: &[Value]) -> Option<Vec<Value>> {
    let date = |moment: &Value| match moment {
        Value::Timestamp(us) => Day::of_us(*us).map(Day::date),
        null => Some(Some(null.clone())),
    };
    let dates: Option<Vec<Option<Value>>> = moments.iter().map(date).collect();
    let dates: Vec<Value> = dates?.into_iter().flatten().collect();
    dates.iter().any(|date| !date.is_null()).then_some(dates)
}
