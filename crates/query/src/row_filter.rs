//! Which of some rows at hand a condition is true of.

use esker_format::{Batch, Room, Schema};

use crate::bind::bind_condition;
use crate::bound::Bound;
use crate::evaluate::{Lanes, Rows, Selection, evaluate};
use crate::model::Expr;
use crate::row_expression::{RowsAtHand, changing};
use crate::{Error, Limits, Result};

/// A condition on the rows of one schema, for who reads them without a query.
///
/// ```
/// use esker_format::{Batch, DataType, Schema, Value};
/// use esker_query::{Limits, RowFilter};
/// use esker_query::model::Expr;
///
/// let schema = Schema::builder().nullable("n", DataType::I64).build()?;
/// let filter = RowFilter::new(&Expr::field("n").gt(0i64), &schema)?;
/// let mut batch = Batch::empty(&schema);
/// for n in [Value::Int(1), Value::Null, Value::Int(0)] {
///     batch.push_row(&schema, &[n])?;
/// }
/// assert_eq!(filter.passing(&batch, &Limits::default())?, [true, false, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowFilter {
    condition: Bound,
}

impl RowFilter {
    /// Resolves a condition.
    ///
    /// # Errors
    /// `InvalidQuery` when it does not fit the schema, or does not depend on the row alone.
    pub fn new(condition: &Expr, schema: &Schema) -> Result<Self> {
        if let Some(changing) = changing(condition) {
            return Err(Error::invalid(format!(
                "WHERE: {changing}: expected a condition on the row alone, found what changes"
            )));
        }
        if condition.has_subquery() {
            let message = "WHERE: expected a condition on the row alone, found a subquery";
            return Err(Error::invalid(message));
        }
        Ok(Self { condition: bind_condition("WHERE", condition, schema)? })
    }

    /// For each row of a batch of the schema's columns whether the condition is true.
    ///
    /// # Errors
    /// `OutOfRange` when it cannot be computed for a row; `OverBudget`, `Cancelled` and `TimedOut`
    /// as the limits have it.
    pub fn passing(&self, batch: &Batch, limits: &Limits) -> Result<Vec<bool>> {
        let part =
            RowsAtHand { columns: &batch.columns, rows: batch.len(), behind: (usize::MAX, &[]) };
        let room = Room::default();
        let rows = Rows::new(&part, 0..batch.len(), limits, &room);
        let vector = evaluate(&self.condition, &rows, Selection::All(batch.len()))?;
        let Lanes::Bools(values) = &vector.lanes else { return Ok(vec![false; batch.len()]) };
        let passes = |row: usize| values.get(row) == Some(&true) && !vector.is_null(row);
        Ok((0..batch.len()).map(passes).collect())
    }
}
