//! Functions that make rows, read in place of tables.
//!
//! ```text
//! FROM generate_series(1, 9) AS g           operands are known: its rows are a source
//! FROM t, generate_series(1, t.n) AS g      LATERAL: the operands of all combinations of values,
//!                                           computed at once, then the rows of each, numbered
//! ```

use std::sync::Arc;

use esker_format::{DataType, Field, FieldId, Schema, Value, ValueRef};

use super::answers::{Answers, Domain};
use super::names::{Names, without_twins};
use super::outer::Outer;
use super::{Answered, Context, Ready};
use crate::bind::table_function::BoundCall;
use crate::bind::{Program, Projection, bind_constant, refuse_deep};
use crate::bound::Bound;
use crate::evaluate::{Rows, Selection, evaluate};
use crate::exec::output::Materialised;
use crate::exec::table_function::{Call, MadeRows};
use crate::model::{Expr, Relation, SelectItem, TableCall};
use crate::options::without_values;
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Query, Result, Source};

/// About how many rows a call makes of which nothing is known.
const ROWS_GUESSED: u64 = 1_000;

/// The rows of a call.
pub(super) struct CalledRows<'a> {
    pub(super) source: SourceRef<'a>,
    /// Its columns by their names.
    pub(super) schema: Schema,
    pub(super) input: ExplainedInput,
}

impl<'a> Context<'a, '_> {
    /// Makes ready the rows of a call that is a query of its own: what is left orders and cuts
    /// them.
    pub(super) fn resolve_call(&self, query: &Query, call: &TableCall) -> Result<Ready<'a>> {
        super::set::refuse_clauses(query)?;
        let relation = Relation::call(call.clone());
        let most = if query.order_by.is_empty() { self.limit_of(query)? } else { None };
        let CalledRows { source, schema, input } =
            self.called_with_constants(call, &relation, most)?;
        let (rest, _) = self.rest_over(query, &schema)?;
        Ok((rest, source, Some(input)))
    }

    /// The rows of a call whose operands name nothing, of which no more than `most` are read.
    pub(super) fn called_with_constants(
        &self,
        call: &TableCall,
        relation: &Relation,
        most: Option<u64>,
    ) -> Result<CalledRows<'a>> {
        let at = |e: Error| e.at(call.function.name());
        let none = Names::new(Vec::new())?;
        let inputs = without_values(&self.options.inputs);
        let inputs = if self.runs { &self.options.inputs } else { &inputs };
        let mut operands = Vec::with_capacity(call.operands.len());
        for operand in &call.operands {
            refuse_deep(operand)?;
            let mut operand = operand.clone();
            self.replace(&mut operand, &none)?;
            operands.push(bind_constant(&operand, inputs).map_err(at)?);
        }
        let bound = BoundCall::new(call.function, operands)?;
        let schema = columns(call, &bound, relation);
        let told = |rows: Option<u64>| ExplainedInput {
            kind: "function".to_owned(),
            what: relation.to_string(),
            // default: as many as nothing is known of
            rows_estimated: rows.unwrap_or(ROWS_GUESSED),
            ..ExplainedInput::default()
        };
        if bound.operands.iter().any(Bound::is_unanswered) {
            let rows = Materialised::of(schema.clone(), Vec::new());
            let source = SourceRef::Shared(Arc::new(rows) as Arc<_>);
            return Ok(CalledRows { source, schema, input: told(None) });
        }
        let values = bound.operands.iter().map(|operand| self.value_of(operand));
        let values = values.collect::<Result<Vec<_>>>()?;
        let operands: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let made = Call { call: &bound, operands: &operands };
        let count = made.row_count()?;
        let count = count.map(|count| u64::try_from(count).unwrap_or(u64::MAX));
        let source = match self.runs || count.is_some() {
            true => made.source(without_twins(schema.clone()), most, self.options)?,
            false => {
                let rows = Materialised::of(schema.clone(), Vec::new());
                SourceRef::Shared(Arc::new(rows) as Arc<_>)
            }
        };
        Ok(CalledRows { source, schema, input: told(count) })
    }

    /// The value of what names nothing.
    fn value_of(&self, operand: &Bound) -> Result<Value> {
        match operand.as_literal() {
            Some(value) => Ok(value.clone()),
            None => {
                let rows = Rows::constant(self.options.limits());
                Ok(evaluate(operand, &rows, Selection::All(1))?.value(0).to_owned())
            }
        }
    }

    /// The rows of a call for each combination of the values that its operands name.
    pub(super) fn called_for_each(
        &self,
        call: &TableCall,
        relation: &Relation,
        outer: &Outer,
        domain: &Domain,
    ) -> Result<Answers> {
        let started_ns = self.options.clock.monotonic_ns();
        let Answered { rows: found, .. } = self.operands_of(call, outer, domain)?;
        let bound = self.bound_over(call, outer, found.schema())?;
        let shown = columns(call, &bound, relation);
        let fields = shown.fields().iter().cloned().chain([outer.number_field()]);
        let schema = Schema::of_fields(fields.collect());
        let mut made = MadeRows::new(&schema, self.options);
        if self.runs {
            let number = Bound::field(call.operands.len(), DataType::I64);
            let outputs = bound.operands.iter().cloned().chain([number]).collect();
            let projection = Projection { outputs, ..Projection::of_fields(&[], None) };
            let program = Program { stages: Vec::new(), windows: None, projection };
            crate::exec::run(&program, &found, self.options, &mut |batch| {
                let mut operands = Vec::with_capacity(bound.operands.len());
                for row in 0..batch.len() {
                    operands.clear();
                    operands.extend(batch.columns.iter().map(|column| column.value(row)));
                    if let Some(ValueRef::Int(number)) = operands.pop() {
                        made.begin(number);
                        Call { call: &bound, operands: &operands }.add_rows(&mut made)?;
                    }
                }
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        }
        let rows = Materialised::of(schema, made.finish()?);
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        Ok(Answers { rows, input: None, is_loop: false, elapsed_ns })
    }

    /// The operands for each combination of values, and its number behind them.
    fn operands_of(&self, call: &TableCall, outer: &Outer, domain: &Domain) -> Result<Answered> {
        let item = |(i, expr): (usize, &Expr)| SelectItem {
            expr: expr.clone(),
            alias: Some(format!("operand {}", i + 1)),
        };
        let number = SelectItem { expr: outer.number(), alias: None };
        let select = call.operands.iter().enumerate().map(item).chain([number]).collect();
        let query = Query { select, ..Query::table(&outer.relation) };
        self.with_named_rows(&outer.relation, &domain.rows, || self.answer(&query))
    }

    /// The call over its operands: constants stay what they are, so that a text beside an interval
    /// is a timestamp.
    fn bound_over(&self, call: &TableCall, outer: &Outer, schema: &Schema) -> Result<BoundCall> {
        let mut operands = Vec::with_capacity(call.operands.len());
        for (i, (operand, field)) in call.operands.iter().zip(schema.fields()).enumerate() {
            let is_constant = !outer.is_in_expr(operand) && !operand.has_subquery();
            operands.push(match is_constant {
                true => bind_constant(operand, &self.options.inputs)?,
                false => Bound::field(i, field.data_type),
            });
        }
        BoundCall::new(call.function, operands)
    }
}

/// The columns of a call as fields, by the names that they have.
fn columns(call: &TableCall, bound: &BoundCall, relation: &Relation) -> Schema {
    let number = call.ordinality.then_some((DataType::I64, false));
    let types = bound.columns.iter().copied().chain(number);
    let names = call.columns(relation.alias.as_deref());
    let field = |(name, (data_type, nullable)): (String, (DataType, bool))| {
        Field::new(FieldId(1), name, data_type, nullable)
    };
    Schema::of_fields(names.into_iter().zip(types).map(field).collect())
}
