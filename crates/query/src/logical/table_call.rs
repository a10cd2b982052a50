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
pub(super) const ROWS_GUESSED: u64 = 1_000;

/// Where calls make more rows for each combination of values, the query that reads them is asked
/// for one combination after another: it may stop at the first row, and no memory holds them.
const ROWS_UNNESTED_MAX: u128 = 1 << 14;

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
            // Too many are refused before the first is made.
            let rows = self.row_count(&bound, &found)?;
            let bytes = rows.saturating_mul(8 * schema.fields().len() as u128);
            // default: more than any budget
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.options.memory().charge().set(bytes)?;
            self.each_call(&bound, &found, &mut |call, number| {
                made.begin(number);
                call.add_rows(&mut made)
            })?;
        }
        let rows = Materialised::of(schema, made.finish()?);
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        Ok(Answers { rows, input: None, plan: None, is_loop: false, elapsed_ns })
    }

    /// Does something with the call of each combination of values and its number.
    fn each_call(
        &self,
        bound: &BoundCall,
        found: &Materialised,
        visit: &mut dyn FnMut(&Call<'_>, i64) -> Result<()>,
    ) -> Result<()> {
        let last = found.schema().fields().len().saturating_sub(1);
        let number = Bound::field(last, DataType::I64);
        let outputs = bound.operands.iter().cloned().chain([number]).collect();
        let projection = Projection { outputs, ..Projection::of_fields(&[], None) };
        let program = Program { stages: Vec::new(), windows: None, projection };
        crate::exec::run(&program, found, self.options, &mut |batch| {
            let mut operands = Vec::with_capacity(bound.operands.len());
            for row in 0..batch.len() {
                operands.clear();
                operands.extend(batch.columns.iter().map(|column| column.value(row)));
                if let Some(ValueRef::Int(number)) = operands.pop() {
                    visit(&Call { call: bound, operands: &operands }, number)?;
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// How many rows the calls of all combinations make, of those that can tell.
    fn row_count(&self, bound: &BoundCall, found: &Materialised) -> Result<u128> {
        let mut rows = 0u128;
        self.each_call(bound, found, &mut |call, _| {
            // default: what has to be made to be counted
            rows = rows.saturating_add(call.row_count()?.unwrap_or(0));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Whether calls in FROM make so many rows that the query is better asked for one combination
    /// of values after another.
    pub(super) fn makes_many_rows(
        &self,
        query: &Query,
        outer: &Outer,
        domain: &Domain,
    ) -> Result<bool> {
        let combinations = domain.rows.row_count() as u128;
        if !self.runs || combinations == 0 {
            return Ok(false);
        }
        let mut calls = Vec::new();
        collect_calls(query, outer, &mut calls);
        for call in calls {
            let Answered { rows: found, .. } = self.operands_of(&call, outer, domain)?;
            let bound = self.bound_over(&call, outer, found.schema())?;
            if self.row_count(&bound, &found)? / combinations > ROWS_UNNESTED_MAX {
                return Ok(true);
            }
        }
        Ok(false)
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

/// Adds the calls that a query reads whose operands name values of the query around it alone.
fn collect_calls(query: &Query, outer: &Outer, calls: &mut Vec<TableCall>) {
    let is_of_outer = |operand: &Expr| {
        let mut names = Vec::new();
        operand.collect_names(&mut names);
        let is_outer = |name: &&str| outer.is_in_expr(&Expr::field(*name));
        !operand.has_subquery() && names.iter().all(is_outer)
    };
    let is_dependent = |call: &TableCall| call.operands.iter().any(|o| outer.is_in_expr(o));
    if let Some(call) = &query.call
        && call.operands.iter().all(is_of_outer)
        && is_dependent(call)
    {
        calls.push(call.clone());
    }
    let relations = query.relations();
    let within = relations.iter().flat_map(|relation| &relation.joins);
    let all = relations.iter().chain(within.map(|join| &join.relation));
    all.filter_map(|relation| relation.query.as_deref()).for_each(|query| {
        collect_calls(query, outer, calls);
    });
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
