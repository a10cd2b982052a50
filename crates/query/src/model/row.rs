//! Several values side by side, compared one after another.

use super::{Aggregate, Expr, Function, Operator, OrderBy};
use crate::{Error, Result};

impl Expr {
    /// A comparison of rows, `(a, b) = (c, d)`, as one of their values: they are equal where all
    /// are, and the first two that differ give their order.
    ///
    /// ```
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let row = |names: [&str; 2]| names.map(Expr::field).to_vec();
    /// let less = Expr::compare_rows(Operator::Lt, row(["a", "b"]), row(["c", "d"]))?;
    /// assert_eq!(less.to_string(), "a < c OR a = c AND b < d");
    /// # Ok::<(), esker_query::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidQuery` for rows of different lengths, and for what is no comparison.
    pub fn compare_rows(operator: Operator, left: Vec<Self>, right: Vec<Self>) -> Result<Self> {
        use Operator::{Eq, Gt, Gte, Lt, Lte, Neq};
        let (symbol, lengths) = (operator.entry().symbol, (left.len(), right.len()));
        if lengths.0 != lengths.1 || lengths.0 == 0 {
            return Err(Error::invalid(format!(
                "{symbol}: expected rows of one length, found {} and {} values",
                lengths.0, lengths.1
            )));
        }
        let strict = match operator {
            Eq | Neq => {
                let pairs = left.into_iter().zip(right);
                let same = pairs.map(|(left, right)| left.binary(operator, right)).collect();
                return Ok(joined(if operator == Eq { Operator::And } else { Operator::Or }, same));
            }
            Lt | Lte => Lt,
            Gt | Gte => Gt,
            _ => return Err(Error::invalid(format!("{symbol}: expected values, found rows"))),
        };
        let (mut equal, mut any) = (Vec::new(), Vec::with_capacity(left.len()));
        let count = left.len();
        for (i, (left, right)) in left.into_iter().zip(right).enumerate() {
            let last = if i + 1 == count { operator } else { strict };
            let mut all: Vec<Self> = equal.clone();
            all.push(left.clone().binary(last, right.clone()));
            any.push(joined(Operator::And, all));
            equal.push(left.binary(Eq, right));
        }
        Ok(joined(Operator::Or, any))
    }

    /// Its values, where it is a row, or itself.
    #[must_use]
    pub fn into_row(self) -> Vec<Self> {
        match self {
            Self::Row(values) => values,
            value => vec![value],
        }
    }

    /// The same aggregate over the rows of which a condition is true; anything else as it is.
    ///
    /// ```
    /// use esker_query::model::Expr;
    ///
    /// let late = Expr::field("delay").gt(10i64);
    /// let count = Expr::count().filtered(late);
    /// assert_eq!(count.to_string(), "count(CASE WHEN delay > 10 THEN true END)");
    /// ```
    #[must_use]
    pub fn filtered(self, condition: Self) -> Self {
        let Self::Aggregate { function, operand, distinct, mut order } = self else { return self };
        if matches!(function, Aggregate::First | Aggregate::Last) {
            // A row that does not pass stands behind those that do, and has NULL.
            let fails = condition.clone().when(Self::literal(0i64), Some(Self::literal(1i64)));
            let descending = function == Aggregate::Last;
            order.insert(0, OrderBy { expr: fails, descending, nulls_first: None });
        }
        if matches!(function, Aggregate::ArgMin | Aggregate::ArgMax) {
            // What is least or greatest is looked for among the rows that pass.
            if let Some(second) = order.first_mut() {
                second.expr = condition.when(second.expr.clone(), None);
            }
            return Self::Aggregate { function, operand, distinct, order };
        }
        let operand = operand.map_or(Self::literal(true), |operand| *operand);
        let (function, operand) = match function {
            // NULL is a value of it: lists of one item each are none where they are NULL.
            Aggregate::ArrayAgg => {
                (Aggregate::ArrayConcatAgg, Self::call(Function::ListValue, [operand]))
            }
            _ => (function, operand),
        };
        let operand = Some(Box::new(condition.when(operand, None)));
        Self::Aggregate { function, operand, distinct, order }
    }

    /// A value where the condition is true, else another.
    fn when(self, then: Self, otherwise: Option<Self>) -> Self {
        Self::Apply(Operator::Case, [self, then].into_iter().chain(otherwise).collect())
    }
}

/// Several conditions as one.
fn joined(operator: Operator, mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => Expr::Apply(operator, conditions),
    }
}
