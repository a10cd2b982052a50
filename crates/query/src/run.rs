//! Running queries.

use std::ops::ControlFlow;

use esker_format::{Batch, DataType, Value};

use crate::bind::typing::assign_literal;
use crate::bind::{Program, bind_constant, bind_query};
use crate::bound::{Bound, Node};
use crate::evaluate::{Rows, Selection, evaluate};
use crate::explain::description::describe;
use crate::model::{Expr, SelectItem};
use crate::options::without_values;
use crate::{
    AnswerSink, Error, Explanation, Inputs, Options, Query, QueryResult, Result, ResultColumn,
    Source, Statistics, exec,
};

/// Runs a query and returns its whole answer.
///
/// # Errors
/// `InvalidQuery` when it does not fit the schema, `OutOfRange` when a computation fails,
/// `OverBudget` when it needs more memory than it may have, `Cancelled` and `TimedOut` when it was
/// ended, and what reading the source fails with.
pub fn execute(query: &Query, source: &dyn Source, options: &Options) -> Result<QueryResult> {
    let program = bind_query(query, source.schema(), &options.inputs)?;
    let (batches, profile) = collected(options, |sink| exec::run(&program, source, options, sink))?;
    Ok(QueryResult { columns: columns(&program), batches, statistics: profile.statistics() })
}

/// The batches of an answer, within its budget, and what else `run` returns.
pub(crate) fn collected<T>(
    options: &Options,
    run: impl FnOnce(exec::Sink<'_>) -> Result<T>,
) -> Result<(Vec<Batch>, T)> {
    let mut batches = Vec::new();
    let mut bytes = 0usize;
    let limit = options.memory().left();
    let done = run(&mut |batch| {
        bytes += crate::result::batch_bytes(&batch);
        if bytes > limit {
            return Err(Error::new(
                crate::ErrorKind::OverBudget,
                format!(
                    "the answer needs more than {bytes} bytes of memory; its budget is {limit}: \
                     take it in parts, as a stream or page by page"
                ),
            ));
        }
        batches.push(batch);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((batches, done))
}

/// Runs a query and hands its columns and rows to `sink`, some thousands at a time, until the sink
/// breaks. Unordered rows are handed over as they are found, so that an answer of any size takes
/// little memory.
///
/// # Errors
/// As [`execute`], and what the sink fails with.
pub fn stream(
    query: &Query,
    source: &dyn Source,
    options: &Options,
    sink: &mut dyn AnswerSink,
) -> Result<Statistics> {
    let program = bind_query(query, source.schema(), &options.inputs)?;
    if sink.columns(&columns(&program)).is_break() {
        return Ok(Statistics::default());
    }
    let profile = exec::run(&program, source, options, &mut |batch| sink.rows(batch))?;
    Ok(profile.statistics())
}

/// Checks a query against a source and returns the columns of its answer, without running it.
///
/// # Errors
/// `InvalidQuery` naming the clause, the expression and what was expected there.
pub fn check(query: &Query, source: &dyn Source, inputs: &Inputs) -> Result<Vec<ResultColumn>> {
    bind_query(query, source.schema(), &without_values(inputs)).map(|program| columns(&program))
}

/// Runs a query, drops its rows, and returns its steps with what they met and took.
///
/// # Errors
/// As [`execute`].
pub fn explain(query: &Query, source: &dyn Source, options: &Options) -> Result<Explanation> {
    explain_over(query, source, options, None)
}

/// The same over a source that has about so many rows, as was thought before it was made ready.
pub(crate) fn explain_over(
    query: &Query,
    source: &dyn Source,
    options: &Options,
    given: Option<u64>,
) -> Result<Explanation> {
    let program = bind_query(query, source.schema(), &without_values(&options.inputs))?;
    let parts = describe(&program, source, options, given)?;
    let profile = exec::run(&program, source, options, &mut |_| Ok(ControlFlow::Continue(())))?;
    Ok(crate::explain::explained(query, &program, parts, Some(&profile)))
}

/// The steps of a query, and how it would read its table. It is not run: no row is read.
///
/// # Errors
/// `InvalidQuery` as for [`check`], and what reading an index fails with.
pub fn plan(query: &Query, source: &dyn Source, options: &Options) -> Result<Explanation> {
    plan_over(query, source, options, None)
}

/// The same over a source that was not made ready, and would have about so many rows.
pub(crate) fn plan_over(
    query: &Query,
    source: &dyn Source,
    options: &Options,
    given: Option<u64>,
) -> Result<Explanation> {
    let program = bind_query(query, source.schema(), &without_values(&options.inputs))?;
    let parts = describe(&program, source, options, given)?;
    Ok(crate::explain::explained(query, &program, parts, None))
}

/// Hands the visible rows that pass `filter` to `sink`, batch by batch, with the values of
/// `projection` (every field when it is empty), until the sink breaks.
///
/// # Errors
/// As [`stream`].
pub fn scan(
    source: &dyn Source,
    filter: Option<&Expr>,
    projection: &[Expr],
    options: &Options,
    sink: &mut dyn FnMut(Batch) -> Result<ControlFlow<()>>,
) -> Result<Statistics> {
    let select = projection.iter().map(|expr| SelectItem { expr: expr.clone(), alias: None });
    let query = Query { select: select.collect(), filter: filter.cloned(), ..Query::default() };
    let program = bind_query(&query, source.schema(), &options.inputs)?;
    Ok(exec::run(&program, source, options, sink)?.statistics())
}

/// The value of an expression that reads no row.
///
/// ```
/// use esker_query::Inputs;
/// use esker_query::model::{Expr, Operator};
///
/// let inputs = Inputs::default();
/// let sum = Expr::literal(1i64).binary(Operator::Add, Expr::literal(2i64));
/// assert_eq!(esker_query::constant(&sum, &inputs)?, esker_format::Value::Int(3));
/// let error = esker_query::constant(&Expr::field("a"), &inputs).unwrap_err();
/// assert_eq!(error.to_string(), "\"a\": expected a constant, found a name");
/// # Ok::<(), esker_query::Error>(())
/// ```
///
/// # Errors
/// `InvalidQuery` when it names a field or does not type, `OutOfRange` when it cannot be computed.
pub fn constant(expr: &Expr, inputs: &Inputs) -> Result<Value> {
    let bound = bind_constant(expr, inputs)?;
    if bound.is_random() {
        let value = evaluate(&bound, &Rows::constant(&inputs.limits), Selection::All(1))?;
        return Ok(value.value(0).to_owned());
    }
    match bound.node {
        Node::Literal(value) => Ok(value),
        _ => Err(Error::invalid(format!("{expr}: expected a constant"))),
    }
}

/// A value as a field of type `to` takes it from a statement: as [`ValueRef::coerce`] does, and a
/// text for what is written as text (a date, a UUID, …) where it is one.
///
/// [`ValueRef::coerce`]: esker_format::ValueRef::coerce
///
/// # Errors
/// `InvalidQuery` saying what was expected.
pub fn assign(value: Value, to: DataType) -> Result<Value> {
    assign_literal(value, to)
}

pub(crate) fn columns(program: &Program) -> Vec<ResultColumn> {
    let projection = &program.projection;
    let types = projection.outputs.iter().map(Bound::data_type);
    let named = projection.names.iter().zip(types);
    named.map(|(name, data_type)| ResultColumn { name: name.clone(), data_type }).collect()
}
