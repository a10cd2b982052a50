//! Values of fields that are computed from the others of a row before it is stored.

use std::collections::BTreeSet;
use std::ops::Range;

use esker_format::{Column, DataType, Field, Room, Schema, Value, ValueRef};

use crate::bind::{bind_row, typing};
use crate::bound::Bound;
use crate::evaluate::{Rows, Selection, Vector, evaluate};
use crate::model::Expr;
use crate::row_expression::{self, RowsAtHand, changing};
use crate::{Error, Inputs, Limits, Result, ZONE_ROWS};

/// What computes the values of one field.
///
/// ```
/// use esker_format::{Batch, DataType, Schema, Value};
/// use esker_query::model::{Expr, Operator};
/// use esker_query::{GeneratedValue, Limits};
///
/// let schema = Schema::builder().field("n", DataType::I64).field("twice", DataType::I64).build()?;
/// let twice = Expr::field("n").binary(Operator::Multiply, Expr::literal(2i64));
/// let twice = GeneratedValue::new(&schema.fields()[1], &twice, &schema)?;
/// let mut batch = Batch::empty(&schema);
/// batch.push_row(&schema, &[Value::Int(21), Value::Int(0)])?;
/// let column = twice.of(&batch.columns, 1, &Limits::default()).map_err(|failed| failed.error)?;
/// assert_eq!(column.value(0).to_owned(), Value::Int(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeneratedValue {
    field: Field,
    value: Bound,
    reads: Vec<(usize, DataType)>,
}

/// A row of which a value cannot be computed.
#[derive(Debug)]
pub struct FailedRow {
    /// The row.
    pub row: usize,
    /// Why not.
    pub error: Error,
}

impl GeneratedValue {
    /// Resolves the expression of a field.
    ///
    /// # Errors
    /// `InvalidQuery` when it does not fit the schema, does not depend on the row alone, or reads a
    /// field that is generated itself.
    pub fn new(field: &Field, expr: &Expr, schema: &Schema) -> Result<Self> {
        let refused = |part: &Expr, found: &str| {
            Error::invalid(format!("{part}: expected a value of the row alone, found {found}"))
        };
        if let Some(part) = changing(expr) {
            return Err(refused(part, "what changes"));
        }
        for (is_within, found) in [
            (expr.has_subquery(), "a query"),
            (expr.has_aggregate(), "an aggregate"),
            (expr.has_window(), "a window function"),
        ] {
            if is_within {
                return Err(refused(expr, found));
            }
        }
        let value = bind_row(expr, schema, &Inputs::default())?;
        let mut reads = BTreeSet::new();
        value.collect_fields(&mut reads);
        let mut read = reads.iter().filter_map(|position| schema.fields().get(*position));
        if let Some(other) = read.find(|other| other.generated.is_some()) {
            let name = &other.name;
            let message = format!("it reads field {name:?}, which is generated, too");
            return Err(Error::invalid(message));
        }
        expect_assignable(expr, &value, field)?;
        let typed = |position: usize| Some((position, schema.fields().get(position)?.data_type));
        let reads = reads.into_iter().filter_map(typed).collect();
        Ok(Self { field: field.clone(), value, reads })
    }

    /// The positions and the types of the fields that it reads.
    #[must_use]
    pub fn reads(&self) -> &[(usize, DataType)] {
        &self.reads
    }

    /// The values of some rows, as the field keeps them. `columns` are those of the schema, each of
    /// so many rows; the ones that are not read may be empty.
    ///
    /// # Errors
    /// `OutOfRange` when a value cannot be computed or is not one of the field; `OverBudget`,
    /// `Cancelled` and `TimedOut` as the limits have it. That it may not be NULL is left to the
    /// caller.
    pub fn of(
        &self,
        columns: &[Column],
        rows: usize,
        limits: &Limits,
    ) -> std::result::Result<Column, FailedRow> {
        let part = RowsAtHand { columns, rows };
        let mut made = Column::empty(self.field.data_type);
        let mut start = 0;
        while start < rows {
            let end = rows.min(start + ZONE_ROWS);
            let before = made.len();
            if self.append(&part, start..end, limits, &mut made).is_err() {
                // Which one it is.
                made.truncate(before);
                for row in start..end {
                    self.append(&part, row..row + 1, limits, &mut made)
                        .map_err(|error| FailedRow { row, error })?;
                }
            }
            start = end;
        }
        Ok(made)
    }

    fn append(
        &self,
        part: &RowsAtHand<'_>,
        range: Range<usize>,
        limits: &Limits,
        made: &mut Column,
    ) -> Result<()> {
        let count = range.len();
        let room = Room::default();
        let rows = Rows::new(part, range, limits, &room);
        let vector = evaluate(&self.value, &rows, Selection::All(count))?;
        let as_it_is = self.is_kept_as_computed(&vector);
        for row in 0..count {
            match vector.value(row) {
                ValueRef::Null => made.push_null(),
                value if as_it_is => made.push(value)?,
                value => made.push(self.fitted(value)?.as_ref())?,
            }
        }
        Ok(())
    }

    /// Whether any value of the type that is computed is one that the field keeps.
    fn is_kept_as_computed(&self, vector: &Vector<'_>) -> bool {
        let field = &self.field;
        vector.data_type == field.data_type
            && field.length_max.is_none()
            && field.labels.is_none()
            && !field.data_type.may_be_long()
    }

    fn fitted(&self, value: ValueRef<'_>) -> Result<Value> {
        let assigned = typing::assign_literal(value.to_owned(), self.field.data_type)?;
        Ok(self.field.fit(&assigned)?)
    }

    /// The stored form of an expression that computes values of a field.
    ///
    /// # Errors
    /// `InvalidQuery` when it has none: it nests too deep, or a number in it is not finite.
    pub fn encode(expr: &Expr) -> Result<String> {
        row_expression::encode("the expression", expr)
    }

    /// Reads the stored form of an expression.
    ///
    /// # Errors
    /// `Corrupt` when the text is not one.
    pub fn decode(text: &str) -> Result<Expr> {
        row_expression::decode(text)
    }
}

/// Refuses an expression of a type of which no value is one of the field.
fn expect_assignable(expr: &Expr, value: &Bound, field: &Field) -> Result<()> {
    let (Some(from), to) = (value.data_type, field.data_type) else { return Ok(()) };
    let is_one = match from {
        _ if from == to => true,
        DataType::Text => to == DataType::Enum || typing::is_written_as_text(to),
        DataType::Date => to == DataType::Timestamp,
        _ if from.is_float() => to.is_float(),
        _ => from.is_numeric() && to.is_numeric(),
    };
    match is_one {
        true => Ok(()),
        false => Err(Error::invalid(format!("{expr}: expected {to}, found {from}"))),
    }
}
