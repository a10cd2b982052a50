//! Expressions bound once and computed for rows that are at hand.

use std::ops::ControlFlow;

use esker_format::{Batch, Room, Schema, Value};

use crate::bind::{bind_row, literal_of};
use crate::bound::Bound;
use crate::evaluate::{Rows, Selection, evaluate};
use crate::exec::output::Materialised;
use crate::exec::run;
use crate::model::{Expr, SelectItem};
use crate::{Error, Inputs, Limits, Options, Query, QueryResult, Result};

/// Expressions over the fields of a schema.
#[derive(Clone, Debug)]
pub struct Computed {
    schema: Schema,
    bounds: Vec<Bound>,
    limits: Limits,
}

impl Computed {
    /// Resolves expressions.
    ///
    /// # Errors
    /// `InvalidQuery` when one names an unknown field or does not type.
    pub fn new(exprs: &[Expr], schema: &Schema, inputs: &Inputs) -> Result<Self> {
        exprs.iter().try_for_each(Expr::refuse_event_id)?;
        let bounds = exprs.iter().map(|expr| bind_row(expr, schema, inputs));
        let bounds = bounds.collect::<Result<_>>()?;
        Ok(Self { bounds, schema: schema.clone(), limits: inputs.limits.clone() })
    }

    /// The values of the expressions for one row.
    ///
    /// # Errors
    /// `OutOfRange` when one cannot be computed; `OverBudget`, `Cancelled` and `TimedOut` as the
    /// limits of the inputs have it.
    pub fn of(&self, row: &[Value]) -> Result<Vec<Value>> {
        let literals: Option<Vec<Value>> = self.bounds.iter().map(literal_of).collect();
        if let Some(literals) = literals {
            return Ok(literals);
        }
        let rows = source(&self.schema, std::iter::once(row))?;
        let part = crate::Source::part(&rows, 0);
        let room = Room::default();
        let rows = Rows::new(part, 0..1, &self.limits, &room);
        let value = |bound| {
            let vector = evaluate(bound, &rows, Selection::All(1))?;
            Ok(vector.value(0).to_owned())
        };
        self.bounds.iter().map(value).collect()
    }
}

/// Answers a list of select items (every field when it is empty) for rows that are at hand.
///
/// # Errors
/// As [`crate::execute`].
pub fn select<'r>(
    items: &[SelectItem],
    schema: &Schema,
    rows: impl Iterator<Item = &'r [Value]>,
    options: &Options,
) -> Result<QueryResult> {
    let query = Query { select: items.to_vec(), ..Query::default() };
    if query.is_grouped() {
        return Err(Error::invalid("an aggregate has no place here"));
    }
    if query.has_windows() {
        return Err(Error::invalid("a window function has no place here"));
    }
    items.iter().try_for_each(|item| item.expr.refuse_event_id())?;
    let source = source(schema, rows)?;
    let program = crate::bind::bind_query(&query, schema, &options.inputs)?;
    let mut batches = Vec::new();
    let profile = run(&program, &source, options, &mut |batch| {
        batches.push(batch);
        Ok(ControlFlow::Continue(()))
    })?;
    let columns = crate::run::columns(&program);
    Ok(QueryResult { columns, batches, statistics: profile.statistics() })
}

/// Rows as a source. Their values are such as the fields hold.
fn source<'r>(schema: &Schema, rows: impl Iterator<Item = &'r [Value]>) -> Result<Materialised> {
    let mut batches: Vec<Batch> = Vec::new();
    for row in rows {
        if batches.last().is_none_or(|batch| batch.len() == crate::ZONE_ROWS) {
            batches.push(Batch::empty(schema));
        }
        let Some(batch) = batches.last_mut() else { continue };
        for (column, value) in batch.columns.iter_mut().zip(row) {
            column.push(value.as_ref())?;
        }
    }
    Ok(Materialised::of(schema.clone(), batches))
}
