//! Conditions that rows are tested for before they are stored.

use esker_format::{Batch, Room, Schema};

use crate::bind::bind_condition;
use crate::bound::Bound;
use crate::evaluate::{Lanes, Rows, Selection, evaluate};
use crate::model::Expr;
use crate::row_expression::{self, RowsAtHand, changing};
use crate::{Error, Limits, Result};

/// A condition on the rows of one schema.
///
/// ```
/// use esker_format::{Batch, DataType, Schema, Value};
/// use esker_query::{Constraint, Limits};
/// use esker_query::model::{Expr, Operator};
///
/// let schema = Schema::builder().nullable("n", DataType::I64).build()?;
/// let positive = Expr::field("n").binary(Operator::Gt, Expr::literal(0i64));
/// let positive = Constraint::new(&positive, &schema)?;
/// let mut batch = Batch::empty(&schema);
/// for n in [Value::Int(1), Value::Null, Value::Int(0)] {
///     batch.push_row(&schema, &[n])?;
/// }
/// assert_eq!(positive.first_failing(&batch, &Limits::default())?, Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Constraint {
    condition: Bound,
}

impl Constraint {
    /// Resolves a condition.
    ///
    /// # Errors
    /// `InvalidQuery` when it does not fit the schema, or does not depend on the row alone.
    pub fn new(condition: &Expr, schema: &Schema) -> Result<Self> {
        if let Some(changing) = changing(condition) {
            return Err(Error::invalid(format!(
                "CHECK: {changing}: expected a condition on the row alone, found what changes"
            )));
        }
        Ok(Self { condition: bind_condition("CHECK", condition, schema)? })
    }

    /// The first row of a batch of the schema's columns for which the condition is false. NULL is
    /// not false.
    ///
    /// # Errors
    /// `OutOfRange` when it cannot be computed for a row; `OverBudget`, `Cancelled` and `TimedOut`
    /// as the limits have it.
    pub fn first_failing(&self, batch: &Batch, limits: &Limits) -> Result<Option<usize>> {
        let part =
            RowsAtHand { columns: &batch.columns, rows: batch.len(), behind: (usize::MAX, &[]) };
        let room = Room::default();
        let rows = Rows::new(&part, 0..batch.len(), limits, &room);
        let vector = evaluate(&self.condition, &rows, Selection::All(batch.len()))?;
        let Lanes::Bools(values) = &vector.lanes else { return Ok(None) };
        Ok((0..batch.len()).find(|row| values.get(*row) == Some(&false) && !vector.is_null(*row)))
    }

    /// The most levels of a condition: its stored form nests three times as deep.
    pub const DEPTH_MAX: usize = row_expression::DEPTH_MAX;

    /// The stored form of a condition.
    ///
    /// # Errors
    /// `InvalidQuery` when it has none: it nests too deep, or a number in it is not finite.
    pub fn encode(condition: &Expr) -> Result<String> {
        row_expression::encode("CHECK: the condition", condition)
    }

    /// Reads the stored form of a condition.
    ///
    /// # Errors
    /// `Corrupt` when the text is not one.
    pub fn decode(text: &str) -> Result<Expr> {
        row_expression::decode(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Operator;

    #[test]
    fn a_float_in_a_condition_is_the_same_when_it_is_read_again() {
        for number in [4.102478431849291e299, 0.1, 5e-324, f64::MAX] {
            let condition = Expr::field("x").binary(Operator::Lt, Expr::literal(number));
            let text = Constraint::encode(&condition).unwrap();
            assert_eq!(Constraint::decode(&text).unwrap(), condition);
        }
    }
}
