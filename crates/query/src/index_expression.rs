//! What an index computes of rows: its parts that are expressions, and which rows it has.
//!
//! ```text
//! lower(email)   as it is written ─ settle ─► lower(#2), reads #2      as a table keeps it
//!                                             │
//!                                             ├─ with_names ─► text, for who reads it
//!                                             └─ resolved over the fields that it reads: values of
//!                                                rows, or an expression of a part of a source
//! ```
//!
//! A table calls fields by their numbers, which outlive other names; the types of fields that an
//! index reads stay while it is there. So what computes its values is the same for every version of
//! the schema.

use std::collections::BTreeSet;
use std::ops::Range;

use esker_format::schema::{Index, RowExpression};
use esker_format::{Column, ColumnSlice, DataType, FieldId, Room, Schema, ValueRef};

use crate::access_path;
use crate::bind::{bind_condition, bind_row};
use crate::bound::Bound;
use crate::evaluate::{Lanes, Rows, Selection, evaluate};
use crate::model::Expr;
use crate::predicate::Predicate;
use crate::row_expression::{self, changing};
use crate::source::RunExpression;
use crate::source::slices_at_hand::SlicesAtHand;
use crate::{Error, ErrorKind, FailedRow, Inputs, Limits, Result, ZONE_ROWS};

/// An expression over the fields of a row as a table keeps it: what an index orders rows by.
///
/// ```
/// use esker_format::{DataType, Schema};
/// use esker_query::model::{Expr, Function};
/// use esker_query::index_expression;
///
/// let schema = Schema::builder().field("email", DataType::Text).build()?;
/// let lower = Expr::call(Function::Lower, [Expr::field("EMAIL")]);
/// let kept = index_expression::settle(&lower, &schema)?;
/// assert_eq!((kept.data_type, kept.reads.len()), (DataType::Text, 1));
/// assert_eq!(index_expression::with_names(&kept, &schema)?.to_string(), "lower(email)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `InvalidQuery` when it does not fit the schema, does not depend on the row alone, reads no
/// field, or has values of a type that has no order.
pub fn settle(expr: &Expr, schema: &Schema) -> Result<RowExpression> {
    refuse_unsteady(expr)?;
    let bound = bind_row(expr, schema, &Inputs::default())?;
    let Some(data_type) = bound.data_type else {
        return Err(Error::invalid(format!("{expr}: expected a value of some type, found NULL")));
    };
    if matches!(data_type, DataType::Json | DataType::Interval) {
        let message = format!("{expr}: expected a value that has an order, found {data_type}");
        return Err(Error::invalid(message));
    }
    kept(expr, schema, data_type)
}

/// A condition on a row as a table keeps it: which rows an index has.
///
/// # Errors
/// `InvalidQuery` when it does not fit the schema, does not depend on the row alone, or reads no
/// field.
pub fn settle_condition(condition: &Expr, schema: &Schema) -> Result<RowExpression> {
    refuse_unsteady(condition)?;
    bind_condition("WHERE of an index", condition, schema)?;
    kept(condition, schema, DataType::Bool)
}

/// The form of an expression, with fields by their names, that no table has taken yet.
///
/// # Errors
/// `InvalidQuery` when it has none: it nests too deep, or a number in it is not finite.
pub fn by_names(expr: &Expr) -> Result<RowExpression> {
    Ok(RowExpression::by_names(row_expression::encode("the expression", expr)?))
}

/// The expression, with the fields by the names that a schema gives them.
///
/// # Errors
/// `Corrupt` when it cannot be read, or reads a field that is not there.
pub fn with_names(kept: &RowExpression, schema: &Schema) -> Result<Expr> {
    let mut expr = row_expression::decode(&kept.expression)?;
    if kept.is_settled() {
        rename(&mut expr, &mut |name| {
            let (number, path) = match name.split_once('.') {
                Some((number, path)) => (number, Some(path)),
                None => (name, None),
            };
            let id = number.strip_prefix('#').and_then(|number| number.parse().ok());
            let field = id.and_then(|id| schema.field_of(FieldId(id)));
            let missing = || {
                let kind = ErrorKind::Corrupt;
                Error::new(kind, format!("an index reads field {number}, which is not there"))
            };
            let field = &field.ok_or_else(missing)?.name;
            Ok(path.map_or_else(|| field.clone(), |path| format!("{field}.{path}")))
        })?;
    }
    Ok(expr)
}

/// Whether a condition lets only rows pass that an index with a filter has.
///
/// # Errors
/// `InvalidQuery` when the condition does not fit the schema, or does not depend on the row alone.
pub fn implies(condition: &Expr, filter: &RowExpression, schema: &Schema) -> Result<bool> {
    refuse_unsteady(condition)?;
    let filter = with_names(filter, schema)?;
    let [condition, filter] = [condition, &filter]
        .map(|expr| bind_condition("WHERE of ON CONFLICT", expr, schema))
        .map(|bound| bound.map(|bound| Predicate::compile(Some(&bound))));
    Ok(access_path::implies(&condition?, &filter?))
}

/// Refuses a condition behind the fields by which rows conflict that is none of a row.
///
/// # Errors
/// `InvalidQuery` when it does not fit the schema, or does not depend on the row alone.
pub fn expect_conflict_condition(condition: &Expr, schema: &Schema) -> Result<()> {
    refuse_unsteady(condition)?;
    bind_condition("WHERE of ON CONFLICT", condition, schema).map(drop)
}

/// Refuses what is not the same for the same row at any time, and what is not of one row.
pub(crate) fn refuse_unsteady(expr: &Expr) -> Result<()> {
    let refused = |part: &Expr, found: &str| {
        Error::invalid(format!("{part}: expected a value of the row alone, found {found}"))
    };
    if let Some(part) = changing(expr) {
        let found = match part {
            Expr::Parameter(_) => "a parameter",
            _ => "what changes",
        };
        return Err(refused(part, found));
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
    Ok(())
}

fn kept(expr: &Expr, schema: &Schema, data_type: DataType) -> Result<RowExpression> {
    let (mut kept, mut reads) = (expr.clone(), BTreeSet::new());
    rename(&mut kept, &mut |name| {
        let (field, path) = match (schema.resolve(name), name.split_once('.')) {
            // A path into a field.
            (Err(_), Some((field, path))) => (field, Some(path)),
            _ => (name, None),
        };
        let position = schema.resolve(field)?;
        let field = schema.fields().get(position).ok_or_else(|| schema.unknown_field(name))?;
        reads.insert(field.id);
        let number = RowExpression::name_of(field.id);
        Ok(path.map_or_else(|| number.clone(), |path| format!("{number}.{path}")))
    })?;
    if reads.is_empty() {
        let message = format!("{expr}: expected what reads a field, found the same of every row");
        return Err(Error::invalid(message));
    }
    let expression = row_expression::encode("the expression", &kept)?;
    Ok(RowExpression { expression, data_type, reads: reads.into_iter().collect() })
}

/// Gives the fields of an expression other names.
fn rename(expr: &mut Expr, to: &mut dyn FnMut(&str) -> Result<String>) -> Result<()> {
    if let Expr::Field(name) = expr {
        *name = to(name)?;
        return Ok(());
    }
    expr.operands_mut().into_iter().try_for_each(|operand| rename(operand, to))
}

/// What computes the values of one index.
#[derive(Clone, Debug)]
pub struct IndexComputation {
    reads: Vec<FieldId>,
    /// By part, over the fields that are read, by their places among them.
    parts: Vec<Option<Bound>>,
    filter: Option<Bound>,
}

/// What was computed of some rows.
#[derive(Debug, Default)]
pub struct IndexedRows {
    /// Which of the rows the index has; `None` for all.
    pub has: Option<Vec<bool>>,
    /// By part, its values, NULL of rows that the index has not; `None` for a part that is a field.
    pub columns: Vec<Option<Column>>,
}

impl IndexComputation {
    /// What an index of a table computes.
    ///
    /// # Errors
    /// `Corrupt` when an expression cannot be read, `InvalidQuery` when one does not fit the
    /// schema.
    pub fn of(index: &Index, schema: &Schema) -> Result<Self> {
        let reads = index.reads();
        let fields = reads.iter().filter_map(|id| {
            let mut field = schema.field_of(*id)?.clone();
            field.name = RowExpression::name_of(*id);
            Some(field)
        });
        let fields = Schema::of_fields(fields.collect());
        let mut parts = Vec::new();
        for part in &index.fields {
            parts.push(match &part.expression {
                None => None,
                Some(kept) => {
                    let expr = row_expression::decode(&kept.expression)?;
                    Some(bind_row(&expr, &fields, &Inputs::default())?)
                }
            });
        }
        let filter = match &index.filter {
            None => None,
            Some(kept) => {
                let condition = row_expression::decode(&kept.expression)?;
                Some(bind_condition("WHERE of an index", &condition, &fields)?)
            }
        };
        Ok(Self { reads, parts, filter })
    }

    /// The fields that are read, in the order in which [`IndexComputation::compute`] takes them.
    #[must_use]
    pub fn reads(&self) -> &[FieldId] {
        &self.reads
    }

    /// Whether a row can be such that nothing can be computed of it.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.parts.iter().flatten().chain(&self.filter).any(Bound::may_fail)
    }

    /// A part as an expression over the fields of a source, whose positions `to` gives.
    #[must_use]
    pub fn part(&self, number: usize, to: &dyn Fn(FieldId) -> usize) -> Option<RunExpression> {
        self.moved(self.parts.get(number)?.as_ref()?, to)
    }

    /// The same of the condition.
    #[must_use]
    pub fn filter(&self, to: &dyn Fn(FieldId) -> usize) -> Option<RunExpression> {
        self.moved(self.filter.as_ref()?, to)
    }

    fn moved(&self, bound: &Bound, to: &dyn Fn(FieldId) -> usize) -> Option<RunExpression> {
        let positions: Vec<usize> = self.reads.iter().map(|id| to(*id)).collect();
        let mut bound = bound.clone();
        // default: it reads these fields alone
        bound.map_fields(&|read| positions.get(read).copied().unwrap_or(usize::MAX));
        Some(RunExpression::new(bound))
    }

    /// Computes the values of rows, given the columns that it reads. Where `is_strict`, a row of
    /// which a value cannot be computed is an error; else the index has it not, or its values are
    /// NULL.
    ///
    /// # Errors
    /// `OutOfRange` and its like with the row; `OverBudget`, `Cancelled` and `TimedOut` as the
    /// limits have it.
    pub fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        is_strict: bool,
        limits: &Limits,
    ) -> std::result::Result<IndexedRows, FailedRow> {
        let decoded = columns.iter().map(decoded).collect::<Result<Vec<_>>>();
        let decoded = decoded.map_err(|error| FailedRow { row: 0, error })?;
        let plain = columns.iter().zip(&decoded).map(|(column, decoded)| match decoded {
            Some(decoded) => ColumnSlice::from(decoded),
            None => *column,
        });
        let plain: Vec<_> = plain.collect();
        let part = SlicesAtHand { columns: &plain, rows };
        let mut made = IndexedRows {
            has: self.filter.as_ref().map(|_| Vec::with_capacity(rows)),
            columns: self.parts.iter().map(|bound| Some(empty(bound.as_ref()?))).collect(),
        };
        let mut start = 0;
        while start < rows {
            let end = rows.min(start + ZONE_ROWS);
            if self.append(&part, start..end, limits, &mut made).is_err() {
                // Which one it is.
                for row in start..end {
                    match self.append(&part, row..row + 1, limits, &mut made) {
                        Err(error) if is_strict || error.kind() == ErrorKind::Corrupt => {
                            return Err(FailedRow { row, error });
                        }
                        Err(_) => made.leave_out(),
                        Ok(()) => {}
                    }
                }
            }
            start = end;
        }
        Ok(made)
    }

    /// Appends the values of some rows: all of them, or none.
    fn append(
        &self,
        part: &SlicesAtHand<'_>,
        range: Range<usize>,
        limits: &Limits,
        made: &mut IndexedRows,
    ) -> Result<()> {
        let (count, room) = (range.len(), Room::default());
        let rows = Rows::new(part, range, limits, &room);
        let has = match &self.filter {
            None => None,
            Some(filter) => {
                let vector = evaluate(filter, &rows, Selection::All(count))?;
                let is_true = |row: usize| match &vector.lanes {
                    Lanes::Bools(values) => values.get(row) == Some(&true) && !vector.is_null(row),
                    _ => false,
                };
                Some((0..count).map(is_true).collect::<Vec<bool>>())
            }
        };
        // default: a batch has fewer rows
        let numbered = (0..count).map(|row| u32::try_from(row).unwrap_or(u32::MAX));
        let selected: Vec<u32> = match &has {
            None => Vec::new(),
            Some(has) => {
                let with = numbered.zip(has).filter(|(_, has)| **has);
                with.map(|(row, _)| row).collect()
            }
        };
        let selection = match &has {
            None => Selection::All(count),
            Some(_) => Selection::Rows(&selected),
        };
        let mut columns = Vec::new();
        for bound in &self.parts {
            let Some(bound) = bound else {
                columns.push(None);
                continue;
            };
            let vector = match selection.len() {
                0 => None,
                _ => Some(evaluate(bound, &rows, selection)?),
            };
            let mut column = empty(bound);
            let mut next = 0;
            for row in 0..count {
                if has.as_ref().is_some_and(|has| has.get(row) != Some(&true)) {
                    column.push_null();
                    continue;
                }
                let value = vector.as_ref().map_or(ValueRef::Null, |vector| vector.value(next));
                next += 1;
                column.push(value)?;
            }
            columns.push(Some(column));
        }
        made.take(has, columns)
    }
}

/// The values of a column whose encoding is one of all its rows, which cannot be cut into batches.
pub(crate) fn decoded(column: &ColumnSlice<'_>) -> Result<Option<Column>> {
    if column.can_be_cut() {
        return Ok(None);
    }
    let mut plain = Column::empty(column.data_type);
    plain.append(column)?;
    Ok(Some(plain))
}

fn empty(bound: &Bound) -> Column {
    Column::empty(bound.data_type())
}

impl IndexedRows {
    fn take(&mut self, has: Option<Vec<bool>>, columns: Vec<Option<Column>>) -> Result<()> {
        for (all, more) in self.columns.iter_mut().flatten().zip(columns.iter().flatten()) {
            all.append(&ColumnSlice::from(more))?;
        }
        if let (Some(all), Some(more)) = (&mut self.has, has) {
            all.extend(more);
        }
        Ok(())
    }

    /// Appends a row that the index has not, or NULLs.
    fn leave_out(&mut self) {
        self.columns.iter_mut().flatten().for_each(Column::push_null);
        self.has.iter_mut().for_each(|has| has.push(false));
    }
}

#[cfg(test)]
mod tests {
    use esker_format::schema::{Alteration, NewIndex};
    use esker_format::{Batch, Value};

    use super::*;
    use crate::model::Operator;

    fn schema() -> Schema {
        let schema = Schema::builder().field("id", DataType::I64).nullable("n", DataType::I64);
        schema.build().unwrap()
    }

    /// An index on `id / n` where `n > 0`, or everywhere.
    fn computation(is_filtered: bool) -> (IndexComputation, Schema) {
        let schema = schema();
        let quotient = Expr::call(
            crate::model::Function::Abs,
            [Expr::field("id").binary(Operator::Multiply, Expr::field("N"))],
        );
        let mut new = NewIndex::on(Vec::new());
        new.name = "x".to_owned();
        let mut new = new.expression("abs", settle(&quotient, &schema).unwrap());
        if is_filtered {
            let positive = Expr::field("n").binary(Operator::Gt, Expr::literal(0i64));
            new = new.filter(settle_condition(&positive, &schema).unwrap());
        }
        let schema = schema.alter(&[Alteration::AddIndex(new)]).unwrap();
        (IndexComputation::of(&schema.indexes()[0], &schema).unwrap(), schema)
    }

    fn compute(of: &IndexComputation, rows: &[[Value; 2]], is_strict: bool) -> Option<IndexedRows> {
        let mut batch = Batch::empty(&schema());
        rows.iter().for_each(|row| batch.push_row(&schema(), row).unwrap());
        let slices: Vec<_> = batch.columns.iter().map(ColumnSlice::from).collect();
        of.compute(&slices, rows.len(), is_strict, &Limits::default()).ok()
    }

    #[test]
    fn rows_outside_of_the_condition_are_not_computed() {
        let (of, schema) = computation(true);
        let rows = [
            [Value::Int(7), Value::Int(-3)],
            [Value::Int(i64::MAX), Value::Int(-3)],
            [Value::Int(-2), Value::Int(3)],
            [Value::Int(5), Value::Null],
        ];
        let made = compute(&of, &rows, true).unwrap();
        assert_eq!(made.has, Some(vec![false, false, true, false]));
        let column = made.columns[0].as_ref().unwrap();
        let values: Vec<Value> = (0..4).map(|row| column.value(row).to_owned()).collect();
        assert_eq!(values, [Value::Null, Value::Null, Value::Int(6), Value::Null]);
        let index = &schema.indexes()[0];
        let text = with_names(index.filter.as_deref().unwrap(), &schema).unwrap().to_string();
        assert_eq!(text, "n > 0");
        assert!(of.may_fail());
    }

    #[test]
    fn what_cannot_be_computed_is_refused_or_left_out() {
        let (of, _) = computation(false);
        let rows = [[Value::Int(i64::MAX), Value::Int(2)], [Value::Int(2), Value::Int(2)]];
        assert!(compute(&of, &rows, true).is_none());
        let made = compute(&of, &rows, false).unwrap();
        let column = made.columns[0].as_ref().unwrap();
        assert_eq!(column.value(0), ValueRef::Null);
        assert_eq!(column.value(1), ValueRef::Int(4));
        let (of, _) = computation(true);
        let made = compute(&of, &rows, false).unwrap();
        assert_eq!(made.has, Some(vec![false, true]));
    }

    #[test]
    fn what_changes_is_refused() {
        let schema = schema();
        let of = |expr: &Expr| settle(expr, &schema).unwrap_err().to_string();
        assert_eq!(
            of(&Expr::call(crate::model::Function::Now, [])),
            "now(): expected a value of the row alone, found what changes"
        );
        assert_eq!(
            of(&Expr::literal(5i64)),
            "5: expected what reads a field, found the same of every row"
        );
        let e = settle_condition(&Expr::field("id"), &schema).unwrap_err().to_string();
        assert!(e.contains("WHERE of an index"), "{e}");
    }
}
