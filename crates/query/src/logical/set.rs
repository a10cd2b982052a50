//! Rows of several queries as one, and rows that are written out.
//!
//! ```text
//! a UNION ALL b UNION c EXCEPT d
//! └─ rows of a, b and c on the left, rows of d on the right ─► one grouping: see `exec::set`
//! ```
//!
//! What a union of distinct rows makes is not made first where its rows are grouped again. Each
//! query runs when its rows are wanted, and what it holds goes when they have been taken.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use esker_format::{Batch, Column, DataType, Field, FieldId, Schema, Value};

use super::names::{Names, without_twins};
use super::{Context, Ready};
use crate::bind::columns::{ColumnType, as_one_column, common_columns, show_as};
use crate::bind::{Program, Stage, bind_constant, bind_query};
use crate::bound::{Bound, Node};
use crate::evaluate::{Rows, Selection, evaluate};
use crate::exec::Profile;
use crate::exec::output::{Materialised, RowBatches, Sink};
use crate::exec::set::{Add, Combination};
use crate::model::{Expr, SelectItem, SetOperation, SetOperator};
use crate::options::without_values;
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Options, Query, Result, Source, Statistics, ZONE_ROWS};

/// What the rows of queries go through.
enum Plan<'q> {
    Query(&'q Query),
    /// All rows, one query after another.
    All(Vec<Self>),
    Grouped {
        operator: SetOperator,
        all: bool,
        left: Vec<Self>,
        right: Vec<Self>,
    },
}

/// A set operation that runs.
pub(super) struct SetRun<'c, 'a, 'o> {
    context: &'c Context<'a, 'o>,
    columns: Vec<ColumnType>,
    inputs: RefCell<Vec<ExplainedInput>>,
    scanned: Cell<u64>,
}

impl<'q> Plan<'q> {
    fn of(query: &'q Query) -> Self {
        match &query.set {
            Some(set) if query.is_only_rows() => Self::folded(set),
            _ => Self::Query(query),
        }
    }

    fn folded(set: &'q SetOperation) -> Self {
        let mut left = Self::of(&set.first);
        for branch in &set.rest {
            let right = Self::of(&branch.query);
            let (operator, all) = (branch.operator, branch.all);
            left = match (operator, all) {
                (SetOperator::Union, true) => {
                    let mut plans = left.inputs(false);
                    plans.extend(right.inputs(false));
                    Self::All(plans)
                }
                (SetOperator::Union, false) => {
                    let mut plans = left.inputs(true);
                    plans.extend(right.inputs(true));
                    Self::Grouped { operator, all, left: plans, right: Vec::new() }
                }
                _ => {
                    let (left, right) = (left.inputs(!all), right.inputs(!all));
                    Self::Grouped { operator, all, left, right }
                }
            };
        }
        left
    }

    /// The plans whose rows together are those of this one, but for how often there are equal ones
    /// where they `are_grouped`.
    fn inputs(self, are_grouped: bool) -> Vec<Self> {
        match self {
            Self::All(plans) => plans,
            Self::Grouped { operator: SetOperator::Union, left, .. } if are_grouped => left,
            other => vec![other],
        }
    }
}

/// The queries of which the rows become one, in order.
fn leaves<'q>(set: &'q SetOperation, into: &mut Vec<&'q Query>) {
    for query in set.queries() {
        match &query.set {
            Some(set) if query.is_only_rows() => leaves(set, into),
            _ => into.push(query),
        }
    }
}

/// What brings the rows together, in words.
pub(super) fn title(set: &SetOperation) -> String {
    let mut titles: Vec<String> = set.rest.iter().map(crate::model::SetBranch::title).collect();
    titles.dedup();
    titles.join(", ")
}

impl<'a, 'o> Context<'a, 'o> {
    /// Makes ready a query of rows that are written out, or those of several queries: what is left
    /// orders and cuts them.
    pub(super) fn resolve_rows(&self, query: &Query) -> Result<Ready<'a>> {
        let (rows, input) = self.rows(query)?;
        let (rest, schema) = self.rest_over(query, rows.schema())?;
        let rows = rows.with_schema(schema);
        Ok((rest, SourceRef::Shared(std::sync::Arc::new(rows)), Some(input)))
    }

    /// What is left of a query over its rows, its subqueries answered: see [`over`].
    pub(super) fn rest_over(&self, query: &Query, columns: &Schema) -> Result<(Query, Schema)> {
        let (mut rest, schema) = over(query, columns);
        let names = Names::new(vec![(String::new(), schema.clone(), true)])?;
        for key in &mut rest.order_by {
            self.replace(&mut key.expr, &names)?;
        }
        Ok((rest, schema))
    }

    /// The rows, and how they came about.
    pub(super) fn rows(&self, query: &Query) -> Result<(Materialised, ExplainedInput)> {
        refuse_clauses(query)?;
        let started_ns = self.options.clock.monotonic_ns();
        let asked_ns = self.subqueries_ns();
        let (rows, name, inputs) = match &query.set {
            None => (self.written_rows(&query.values)?, "values".to_owned(), Vec::new()),
            Some(set) => {
                let (run, schema) = self.set_run(set)?;
                let mut batches = RowBatches::new(self.options);
                if self.runs {
                    run.rows(&Plan::folded(set), &mut |batch| batches.push(batch)).map(drop)?;
                } else {
                    run.look(set)?;
                }
                let rows = Materialised::of(schema, batches.finish()?);
                (rows, title(set).to_lowercase(), run.inputs.take())
            }
        };
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        let elapsed_ns = elapsed_ns.saturating_sub(self.subqueries_ns().saturating_sub(asked_ns));
        let count = rows.row_count() as u64;
        let input = ExplainedInput::combined(&name, inputs, count, elapsed_ns);
        let input = match query.values.len() as u64 {
            0 => input,
            rows_estimated => ExplainedInput { rows_estimated, ..input },
        };
        Ok((rows, if self.runs { input } else { input.not_run() }))
    }

    /// A set operation that can run, and the columns of its rows.
    pub(super) fn set_run<'c>(
        &'c self,
        set: &SetOperation,
    ) -> Result<(SetRun<'c, 'a, 'o>, Schema)> {
        let look = self.looking();
        let mut queries = Vec::new();
        leaves(set, &mut queries);
        let inputs = without_values(&self.options.inputs);
        let program = |query: &&Query| {
            let (rest, source, _) = look.resolve(query, None)?;
            bind_query(&rest, source.get().schema(), &inputs)
        };
        let programs = queries.iter().map(program).collect::<Result<Vec<_>>>()?;
        let columns = common_columns(&programs, &title(set))?;
        let names = programs.first().map(|program| &program.projection.names);
        let fields = names.into_iter().flatten().zip(&columns).map(|(name, column)| Field {
            labels: column.labels.clone(),
            ..Field::new(FieldId(1), name.clone(), column.data_type, true)
        });
        let schema = Schema::of_fields(fields.collect());
        let (inputs, scanned) = (RefCell::default(), Cell::new(0));
        Ok((SetRun { context: self, columns, inputs, scanned }, schema))
    }

    /// The rows of queries, each over a source, one after another; `what` brings them together.
    pub(super) fn rows_of(
        &self,
        queries: &[(Query, SourceRef<'a>)],
        what: &str,
    ) -> Result<Materialised> {
        let program = |(query, source): &(Query, SourceRef<'_>)| {
            bind_query(query, source.get().schema(), &self.options.inputs)
        };
        let mut programs = queries.iter().map(program).collect::<Result<Vec<_>>>()?;
        let columns = common_columns(&programs, what)?;
        programs.iter_mut().try_for_each(|program| show_as(program, &columns))?;
        let schema = programs.first().map(super::schema_of);
        let schema = schema.ok_or_else(|| Error::invalid(format!("{what}: expected a query")))?;
        let mut batches = RowBatches::new(self.options);
        for (program, (_, source)) in programs.iter().zip(queries).filter(|_| self.runs) {
            crate::exec::run(program, source.get(), self.options, &mut |batch| {
                batches.push(batch)
            })?;
        }
        Ok(Materialised::of(schema, batches.finish()?))
    }

    /// Rows that are written out.
    fn written_rows(&self, written: &[Vec<Expr>]) -> Result<Materialised> {
        let width = written.first().map_or(0, Vec::len);
        if let Some(at) = written.iter().position(|row| row.len() != width || width == 0) {
            let found = written.get(at).map_or(0, Vec::len);
            return Err(Error::invalid(format!(
                "VALUES: expected {width} values in each row, found {found} in row {}",
                at + 1
            )));
        }
        let none = Names::new(Vec::new())?;
        let mut columns: Vec<Vec<Bound>> = vec![Vec::with_capacity(written.len()); width];
        for row in written {
            self.options.expect_time_left()?;
            for (column, expr) in columns.iter_mut().zip(row) {
                let mut expr = expr.clone();
                self.replace(&mut expr, &none)?;
                let bound = bind_constant(&expr, &self.options.inputs);
                column.push(bound.map_err(|e| e.at("VALUES"))?);
            }
        }
        let (mut fields, mut values) = (Vec::with_capacity(width), Vec::with_capacity(width));
        for (i, column) in columns.into_iter().enumerate() {
            let column = as_one_column(column);
            let (column, ColumnType { data_type, labels }) =
                column.map_err(|e| e.at(format_args!("VALUES: column {}", i + 1)))?;
            let name = format!("column{}", i + 1);
            fields.push(Field { labels, ..Field::new(FieldId(1), name, data_type, true) });
            values.push(column);
        }
        let mut batches = RowBatches::new(self.options);
        if self.runs {
            self.fill(&values, written.len(), &mut batches)?;
        }
        Ok(Materialised::of(Schema::of_fields(fields), batches.finish()?))
    }

    /// Adds rows by the values of each column.
    fn fill(&self, columns: &[Vec<Bound>], rows: usize, to: &mut RowBatches<'_>) -> Result<()> {
        let empty = |column: &Vec<Bound>| {
            Column::empty(column.first().map_or(DataType::Text, Bound::data_type))
        };
        for start in (0..rows).step_by(ZONE_ROWS) {
            let mut batch = Batch { columns: columns.iter().map(empty).collect() };
            for (to, values) in batch.columns.iter_mut().zip(columns) {
                for value in values.iter().skip(start).take(ZONE_ROWS) {
                    to.push(self.computed(value)?.as_ref())?;
                }
            }
            let _more = to.push(batch)?;
        }
        Ok(())
    }

    fn computed(&self, value: &Bound) -> Result<Value> {
        match &value.node {
            Node::Literal(value) => Ok(value.clone()),
            _ => {
                let rows = Rows::constant(self.options.limits());
                Ok(evaluate(value, &rows, Selection::All(1))?.value(0).to_owned())
            }
        }
    }
}

impl SetRun<'_, '_, '_> {
    /// Hands over the rows of a set operation.
    pub(super) fn stream(&self, set: &SetOperation, sink: Sink<'_>) -> Result<Statistics> {
        self.rows(&Plan::folded(set), sink).map(drop)?;
        Ok(Statistics { rows_scanned: self.scanned.get(), ..Statistics::default() })
    }

    fn rows(&self, plan: &Plan<'_>, sink: Sink<'_>) -> Result<ControlFlow<()>> {
        match plan {
            Plan::All(plans) => {
                for plan in plans {
                    if self.rows(plan, sink)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Plan::Query(query) => {
                let mut flow = ControlFlow::Continue(());
                self.branch(query, |program, source, options| {
                    let rows: Sink<'_> = &mut |batch: Batch| {
                        flow = sink(batch)?;
                        Ok(flow)
                    };
                    crate::exec::run(program, source, options, rows)
                })?;
                Ok(flow)
            }
            Plan::Grouped { operator, all, left, right } => {
                let types = self.columns.iter().map(|column| column.data_type).collect();
                let combination = Combination::new(*operator, *all, types);
                let mut flow = ControlFlow::Continue(());
                let told = self.inputs.borrow().len();
                let feed: &mut dyn FnMut(Add<'_>) -> Result<()> = &mut |add| {
                    // It begins again where memory did not hold the groups.
                    self.inputs.borrow_mut().truncate(told);
                    for (is_left, plans) in [(true, left), (false, right)] {
                        for plan in plans {
                            self.feed(plan, &combination, is_left, &mut *add)?;
                        }
                    }
                    Ok(())
                };
                let rows: Sink<'_> = &mut |batch: Batch| {
                    flow = sink(batch)?;
                    Ok(flow)
                };
                combination.run(self.context.options, feed, rows)?;
                Ok(flow)
            }
        }
    }

    /// Adds the rows of a plan to groups.
    fn feed(&self, plan: &Plan<'_>, to: &Combination, is_left: bool, add: Add<'_>) -> Result<()> {
        let fields = to.stage_of_fields(is_left);
        let types: Vec<DataType> = self.columns.iter().map(|column| column.data_type).collect();
        let Plan::Query(query) = plan else {
            let rows: Sink<'_> = &mut |batch| add_batch((&fields, &types), batch, &mut *add);
            return self.rows(plan, rows).map(drop);
        };
        self.branch(query, |program, source, options| {
            let projection = &program.projection;
            let is_scan = program.stages.is_empty()
                && program.windows.is_none()
                && projection.order.is_empty()
                && projection.limit.is_none()
                && projection.offset == 0;
            if is_scan {
                let keys = projection.outputs.clone();
                let counts = add(&to.stage(keys, projection.filter.clone(), is_left), source)?;
                return Ok(Profile::of_scan(counts));
            }
            let rows: Sink<'_> = &mut |batch| add_batch((&fields, &types), batch, &mut *add);
            crate::exec::run(program, source, options, rows)
        })
    }

    /// Makes a query ready, with what memory is left, and runs it.
    fn branch(
        &self,
        query: &Query,
        run: impl FnOnce(&Program, &dyn Source, &Options) -> Result<Profile>,
    ) -> Result<()> {
        let started_ns = self.context.options.clock.monotonic_ns();
        let options = self.context.options.with_memory_left();
        let context = self.context.with_options(&options);
        let (rest, source, input) = context.resolve(query, None)?;
        let mut program = bind_query(&rest, source.get().schema(), &options.inputs)?;
        show_as(&mut program, &self.columns)?;
        let described = context.described(&program, source.get(), input.as_ref())?;
        let profile = run(&program, source.get(), &options)?;
        self.scanned.set(self.scanned.get() + profile.statistics().rows_scanned);
        if self.context.told.is_some() {
            let elapsed_ns = options.clock.monotonic_ns() - started_ns;
            let elapsed_ns = elapsed_ns.saturating_sub(context.subqueries_ns());
            let plan = described.map(|described| {
                let told = crate::explain::explained(&rest, &program, described, Some(&profile));
                told.reading(input.clone(), Vec::new())
            });
            let count = profile.rows_out();
            let told = ExplainedInput::query(&query.to_string(), input, count, elapsed_ns);
            self.inputs.borrow_mut().push(told.with_plan(plan));
        }
        self.context.take_told(context);
        Ok(())
    }

    /// Notes the queries without running them.
    fn look(&self, set: &SetOperation) -> Result<()> {
        let mut queries = Vec::new();
        leaves(set, &mut queries);
        for query in queries {
            let (rest, source, input) = self.context.resolve(query, None)?;
            let mut plan = None;
            if self.context.shows_plans {
                let inputs = without_values(&self.context.options.inputs);
                let program = bind_query(&rest, source.get().schema(), &inputs)?;
                let described = self.context.described(&program, source.get(), input.as_ref())?;
                plan = described.map(|described| {
                    let told = crate::explain::explained(&rest, &program, described, None);
                    told.reading(input.clone(), Vec::new())
                });
            }
            let told = ExplainedInput::query(&query.to_string(), input, 0, 0).not_run();
            self.inputs.borrow_mut().push(told.with_plan(plan));
        }
        Ok(())
    }
}

/// Adds rows to groups by all their columns.
fn add_batch(
    (fields, types): (&Stage, &[DataType]),
    batch: Batch,
    add: Add<'_>,
) -> Result<ControlFlow<()>> {
    add(fields, &Materialised::new(types, vec![batch])?)?;
    Ok(ControlFlow::Continue(()))
}

/// What is left of a query over its rows, and their fields, each by a name of its own.
pub(super) fn over(query: &Query, columns: &Schema) -> (Query, Schema) {
    let schema = without_twins(columns.clone());
    let item = |(field, written): (&Field, &Field)| SelectItem {
        expr: Expr::Field(field.name.clone()),
        alias: (field.name != written.name).then(|| written.name.clone()),
    };
    let select = schema.fields().iter().zip(columns.fields()).map(item).collect();
    let Query { order_by, limit, offset, .. } = query.clone();
    (Query { select, order_by, limit, offset, ..Query::default() }, schema)
}

/// Refuses what has no meaning beside rows that are there.
pub(super) fn refuse_clauses(query: &Query) -> Result<()> {
    let is_bare = query.select.is_empty()
        && query.first_relation().is_none()
        && query.joins.is_empty()
        && query.filter.is_none()
        && !query.distinct
        && query.distinct_on.is_empty()
        && query.group_by.is_empty()
        && query.grouping_sets.is_empty()
        && query.having.is_none()
        && query.qualify.is_none();
    let kinds = [query.set.is_some(), !query.values.is_empty(), query.call.is_some()];
    if is_bare && kinds.into_iter().filter(|is_there| *is_there).count() <= 1 {
        return Ok(());
    }
    Err(Error::invalid(
        "VALUES, UNION, INTERSECT, EXCEPT and functions that make rows: expected ORDER BY, LIMIT \
         and OFFSET alone beside them; select from (…) what else is wanted",
    ))
}
