//! Values of fields that are computed from the others of a row before it is stored.

use std::collections::BTreeSet;
use std::ops::Range;

use esker_format::{Column, DataType, Field, Room, Schema, Value, ValueRef};

use crate::bind::scope::{RowScope, Scope};
use crate::bind::{bind, refuse_deep, typing};
use crate::bound::Bound;
use crate::evaluate::{Rows, Selection, Vector, evaluate};
use crate::looked_up::{FindRows, LookedUp};
use crate::model::{Expr, Lookup};
use crate::row_expression::{self, FailedRow, RowsAtHand, changing, for_each_part};
use crate::{Error, Inputs, Limits, Result};

/// What computes the values of one field.
///
/// ```
/// use esker_format::{Batch, DataType, Schema, Value};
/// use esker_query::model::{Expr, Operator};
/// use esker_query::{GeneratedValue, Limits, NoOtherRows};
///
/// let schema = Schema::builder().field("n", DataType::I64).field("twice", DataType::I64).build()?;
/// let twice = Expr::field("n").binary(Operator::Multiply, Expr::literal(2i64));
/// let twice = GeneratedValue::new(&schema.fields()[1], &twice, &schema)?;
/// let mut batch = Batch::empty(&schema);
/// batch.push_row(&schema, &[Value::Int(21), Value::Int(0)])?;
/// let column = twice.of((&batch.columns, 1), &NoOtherRows, &Limits::default());
/// let column = column.map_err(|failed| failed.error)?;
/// assert_eq!(column.value(0).to_owned(), Value::Int(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeneratedValue {
    field: Field,
    value: Bound,
    reads: Vec<(usize, DataType)>,
    /// The rows of other tables that are looked up. What is found are columns behind the fields.
    looked_up: Vec<LookedUp>,
    fields: usize,
}

impl GeneratedValue {
    /// Resolves the expression of a field.
    ///
    /// # Errors
    /// `InvalidQuery` when it does not fit the schema, does not depend on the row alone and on rows
    /// that it looks up, or reads a field that is generated itself.
    pub fn new(field: &Field, expr: &Expr, schema: &Schema) -> Result<Self> {
        let refused = |part: &Expr, found: &str| {
            Error::invalid(format!("{part}: expected a value of the row alone, found {found}"))
        };
        if let Some(part) = changing(expr) {
            return Err(refused(part, "what changes"));
        }
        for (is_within, found) in [
            (has_query(expr), "a query"),
            (expr.has_aggregate(), "an aggregate"),
            (expr.has_window(), "a window function"),
        ] {
            if is_within {
                return Err(refused(expr, found));
            }
        }
        if let Some(lookup) = expr.lookups().first()
            && field.generated.as_ref().is_none_or(|generated| generated.is_virtual)
        {
            return Err(Error::invalid(format!(
                "{lookup}: a field for which rows of other tables are looked up is evaluated when \
                 its row is written, and kept: expected STORED behind it"
            )));
        }
        let inputs = Inputs::default();
        let (row, found) = (RowScope { schema, inputs: &inputs }, Vec::new());
        let mut scope = RowAndOthers { row, found };
        refuse_deep(expr)?;
        let value = bind(expr, &mut scope)?;
        let (looked_up, fields) = (scope.found, schema.fields().len());
        let mut reads = BTreeSet::new();
        value.collect_fields(&mut reads);
        reads.retain(|position| *position < fields);
        looked_up.iter().for_each(|lookup| lookup.collect_fields(&mut reads));
        let mut read = reads.iter().filter_map(|position| schema.fields().get(*position));
        if let Some(other) = read.find(|other| other.generated.is_some()) {
            let name = &other.name;
            let message = format!("it reads field {name:?}, which is generated, too");
            return Err(Error::invalid(message));
        }
        expect_assignable(expr, &value, field)?;
        let typed = |position: usize| Some((position, schema.fields().get(position)?.data_type));
        let reads = reads.into_iter().filter_map(typed).collect();
        Ok(Self { field: field.clone(), value, reads, looked_up, fields })
    }

    /// The positions and the types of the fields that it reads.
    #[must_use]
    pub fn reads(&self) -> &[(usize, DataType)] {
        &self.reads
    }

    /// The rows of other tables that it looks up, with the types of what they are found by.
    pub fn lookups(&self) -> impl Iterator<Item = (&Lookup, Vec<Option<DataType>>)> {
        self.looked_up.iter().map(|one| (&one.lookup, one.key_types()))
    }

    /// The values of some rows, as the field keeps them. `columns` are those of the schema, each of
    /// so many rows; the ones that are not read may be empty. Rows of other tables are found by
    /// `others`.
    ///
    /// # Errors
    /// `OutOfRange` when a value cannot be computed or is not one of the field; `OverBudget`,
    /// `Cancelled` and `TimedOut` as the limits have it. That it may not be NULL is left to the
    /// caller.
    pub fn of(
        &self,
        (columns, rows): (&[Column], usize),
        others: &dyn FindRows,
        limits: &Limits,
    ) -> std::result::Result<Column, FailedRow> {
        let part = RowsAtHand { columns, rows, behind: (self.fields, &[]) };
        let mut found = Vec::with_capacity(self.looked_up.len());
        for lookup in &self.looked_up {
            found.push(lookup.of(&part, others, limits)?);
        }
        let part = RowsAtHand { behind: (self.fields, &found), ..part };
        let mut made = Column::empty(self.field.data_type);
        for_each_part(rows, &mut made, |range, made| self.append(&part, range, limits, made))?;
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

fn has_query(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery { .. }) || expr.operands().into_iter().any(has_query)
}

/// The fields of a row, and what is looked up by them.
struct RowAndOthers<'a> {
    row: RowScope<'a>,
    found: Vec<LookedUp>,
}

impl Scope for RowAndOthers<'_> {
    fn resolve(&mut self, expr: &Expr) -> Result<Option<Bound>> {
        let Expr::Lookup(lookup) = expr else { return self.row.resolve(expr) };
        let looked_up = LookedUp::new(lookup, &mut self.row)?;
        let known = self.found.iter().position(|one| one.lookup == **lookup);
        // default: a row that is looked up for the first time
        let at = known.unwrap_or(self.found.len());
        let field = Bound::field(self.row.schema.fields().len() + at, looked_up.data_type);
        if known.is_none() {
            self.found.push(looked_up);
        }
        Ok(Some(field))
    }

    fn unknown_field(&self, name: &str) -> Error {
        self.row.unknown_field(name)
    }

    fn inputs(&self) -> &Inputs {
        self.row.inputs
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
