//! From names to positions: a [`Query`] and a schema become a [`Program`].
//!
//! A program is a chain. Each [`Stage`] filters the rows of the one before it and turns them into
//! groups, one row per group; the [`Projection`] at the end filters, orders, cuts and shows. A
//! query without groups has no stage; `SELECT DISTINCT` is grouping by everything shown. Window
//! functions are computed once, of rows or of groups, and before `DISTINCT`.

mod aggregate;
pub(crate) mod columns;
mod day;
mod decimal;
mod distinct_on;
mod expression;
mod function;
mod grouping;
pub(crate) mod interval;
pub(crate) mod keyset;
mod list;
mod list_pattern;
pub(crate) mod parameter;
pub(crate) mod scope;
pub(crate) mod sort_key;
pub(crate) mod table_function;
#[cfg(test)]
mod tests;
pub(crate) mod typing;
pub(crate) mod window;

use std::borrow::Cow;
use std::collections::BTreeSet;

use esker_format::{DataType, Schema, Value};

use crate::bound::{Bound, BoundAggregate, Node, OrderKey};
use crate::model::{Aggregate, EXPR_DEPTH_MAX, Expr, OrderBy, SelectItem};
use crate::{Error, Inputs, Query, Result};
pub(crate) use expression::bind;
pub(crate) use scope::named;
use scope::position;
pub(crate) use scope::replace_aliases;
use scope::{GroupScope, NoScope, RowScope, Scope};

use interval::{by_length, grouped_by_length, without_length};
use keyset::Keyset;
use window::{WindowScope, WindowStage};

/// A query ready to be planned.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) stages: Vec<Stage>,
    pub(crate) windows: Option<WindowStage>,
    pub(crate) projection: Projection,
}

/// The step that reads the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstStep<'p> {
    Groups(&'p Stage),
    Rows(&'p Projection),
}

impl Program {
    pub(crate) fn first_step(&self) -> FirstStep<'_> {
        match (&self.windows, self.stages.first()) {
            (Some(windows), _) if windows.after == 0 => FirstStep::Rows(&windows.rows),
            (_, Some(stage)) => FirstStep::Groups(stage),
            (_, None) => FirstStep::Rows(&self.projection),
        }
    }
}

impl FirstStep<'_> {
    /// What the rows of the table have to pass.
    pub(crate) fn filter(&self) -> Option<&Bound> {
        match self {
            Self::Groups(stage) => stage.filter.as_ref(),
            Self::Rows(projection) => projection.filter.as_ref(),
        }
    }
}

/// Rows become groups: one row per distinct tuple of keys, with the keys and then the aggregates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) filter: Option<Bound>,
    pub(crate) keys: Vec<Bound>,
    /// Where there are any: rows are grouped once for each set, by those of the keys that it has,
    /// while the others are NULL. The number of the set is then the last of the keys.
    pub(crate) sets: Vec<Vec<usize>>,
    pub(crate) aggregates: Vec<BoundAggregate>,
    /// Where there are any: the keys as they are shown, of those above, which are kept.
    pub(crate) shown_keys: Vec<Bound>,
    /// Where there are any: what is shown of the aggregates above, which are kept.
    pub(crate) shown: Vec<Shown>,
}

/// An aggregate as it is shown, of one that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    /// Which of the aggregates of the step keeps it.
    pub(crate) aggregate: usize,
    pub(crate) function: Aggregate,
    pub(crate) data_type: DataType,
    /// What is added to each value that is kept, in units of its last digit.
    pub(crate) added: i64,
}

/// The last step.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    pub(crate) filter: Option<Bound>,
    pub(crate) outputs: Vec<Bound>,
    pub(crate) names: Vec<String>,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
    /// Only rows that come later in the order, where it goes on.
    pub(crate) after: Option<Keyset>,
}

impl Projection {
    /// True when it shows some fields of all rows, each field once, and in no order.
    pub(crate) fn shows_fields_only(&self) -> bool {
        let mut positions = BTreeSet::new();
        let is_new = |output: &Bound| match output.node {
            Node::Field(position) => positions.insert(position),
            _ => false,
        };
        self.filter.is_none()
            && self.order.is_empty()
            && self.after.is_none()
            && self.limit.is_none()
            && self.offset == 0
            && !self.outputs.is_empty()
            && self.outputs.iter().all(is_new)
    }
}

impl Projection {
    /// The fields of rows, as they are, of those that pass a filter.
    pub(crate) fn of_fields(types: &[DataType], filter: Option<Bound>) -> Self {
        let outputs = types.iter().enumerate().map(|(i, data_type)| Bound::field(i, *data_type));
        Self {
            filter,
            outputs: outputs.collect(),
            names: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: 0,
            after: None,
        }
    }
}

impl Stage {
    /// True when it asks for nothing but the number of rows.
    pub(crate) fn counts_rows(&self) -> bool {
        self.keys.is_empty() && self.aggregates.iter().all(|a| a.operand.is_none())
    }

    /// True when its answer depends in the last digits on which rows are added up together.
    pub(crate) fn rounds(&self) -> bool {
        self.aggregates.iter().any(|a| match a.function {
            Aggregate::Sum | Aggregate::Avg => {
                a.operand.as_ref().is_some_and(|operand| operand.data_type().is_float())
            }
            Aggregate::StddevSamp
            | Aggregate::StddevPop
            | Aggregate::VarSamp
            | Aggregate::VarPop
            | Aggregate::Product => true,
            Aggregate::Count
            | Aggregate::Min
            | Aggregate::Max
            | Aggregate::First
            | Aggregate::Last
            | Aggregate::Quantile { .. }
            | Aggregate::RegrCount => false,
            other => other.takes_pairs(),
        })
    }

    /// The types of the rows it makes.
    pub(crate) fn types(&self) -> Vec<DataType> {
        let keys = if self.shown_keys.is_empty() { &self.keys } else { &self.shown_keys };
        let keys = keys.iter().map(Bound::data_type);
        match self.shown.is_empty() {
            true => keys.chain(self.aggregates.iter().map(|a| a.data_type)).collect(),
            false => keys.chain(self.shown.iter().map(|shown| shown.data_type)).collect(),
        }
    }
}

impl Projection {
    /// How many rows, from the first, decide the answer.
    pub(crate) fn rows_wanted(&self) -> usize {
        let wanted = self.limit.map(|limit| limit.saturating_add(self.offset));
        wanted.map_or(usize::MAX, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX))
    }

    /// How many rows are shown, at the most.
    pub(crate) fn rows_shown(&self) -> usize {
        self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// How many rows that pass the filter are read: all, unless a limit ends the scan.
    pub(crate) fn rows_read(&self) -> usize {
        if self.order.is_empty() { self.rows_wanted() } else { usize::MAX }
    }
}

/// Resolves and checks a query.
///
/// # Errors
/// `InvalidQuery` naming the clause, the expression and what was expected there.
pub(crate) fn bind_query(query: &Query, schema: &Schema, inputs: &Inputs) -> Result<Program> {
    let mut row = RowScope { schema, inputs };
    query.exprs().try_for_each(refuse_deep)?;
    let mut query = expand(query, schema);
    if query.has_all_items() {
        query.to_mut().expand_all_items()?;
    }
    if !query.distinct_on.is_empty() {
        query = Cow::Owned(distinct_on::as_groups(query.into_owned(), schema)?);
    }
    let filter = query.filter.as_ref().map(|f| condition("WHERE", f, &mut row));
    let filter = filter.transpose()?;
    let has_windows = query.has_windows();
    if query.qualify.is_some() && !has_windows {
        return Err(Error::invalid(
            "QUALIFY: expected a window function in it or in SELECT; rows are chosen by WHERE, \
             groups by HAVING",
        ));
    }
    let mut distinct = query.distinct;
    if distinct && !has_windows && !query.is_grouped() {
        let keys = query.select.iter().map(|item| item.expr.clone()).collect();
        query.to_mut().group_by = keys;
        distinct = false;
    }
    if !query.is_grouped() {
        let (mut projection, windows) = show(&query, filter, &mut row, (schema, 0))?;
        let stages = match distinct {
            true => vec![distinct_stage(&mut projection)?],
            false => Vec::new(),
        };
        return Ok(grouped_by_length(Program { stages, windows, projection }));
    }
    let (key_exprs, sets) = grouping::bind_keys(&query, row)?;
    let mut scope = GroupScope { row, key_exprs, sets, aggregates: Vec::new() };
    let having = match &query.having {
        Some(having) => {
            let having = replace_aliases(having, schema, &query.select);
            let having = having.map_err(|e| e.at("HAVING"))?;
            let bound = condition("HAVING", &having, &mut scope);
            Some(bound.map_err(|e| shadowed(e, "HAVING", &[having], &query, schema))?)
        }
        None => None,
    };
    let (mut projection, windows) = show(&query, having, &mut scope, (schema, 1))
        .map_err(|e| shadowed(e, "GROUP BY", &query.group_by, &query, schema))?;
    let GroupScope { key_exprs: keys, sets, aggregates, .. } = scope;
    let stage = Stage { filter, keys, sets, aggregates, ..Stage::default() };
    let mut stages = vec![stage];
    if distinct {
        stages.push(distinct_stage(&mut projection)?);
    }
    Ok(grouped_by_length(Program { stages, windows, projection }))
}

/// The error with what to write, where a clause reads a field whose name a select item has, too.
fn shadowed(error: Error, clause: &str, exprs: &[Expr], query: &Query, schema: &Schema) -> Error {
    let is_hidden = |name: &str| {
        let at = named(name, &query.select).ok().flatten();
        let item = query.select.get(at.filter(|_| position(schema, name).is_some())?)?;
        (item.expr != Expr::field(name)).then(|| (name.to_owned(), item.expr.clone()))
    };
    let mut names = Vec::new();
    exprs.iter().for_each(|expr| expr.collect_names(&mut names));
    match names.into_iter().find_map(is_hidden) {
        Some((name, item)) => Error::new(
            error.kind(),
            format!("{error}; in {clause}, {name} is the field of that name: write {item}"),
        ),
        None => error,
    }
}

/// Writes out `SELECT *`.
fn expand<'q>(query: &'q Query, schema: &Schema) -> Cow<'q, Query> {
    let every =
        |item: &SelectItem| matches!(&item.expr, Expr::AllFields(table) if table.is_empty());
    if !query.select.is_empty() && !query.select.iter().any(every) {
        return Cow::Borrowed(query);
    }
    let mut query = query.clone();
    let all = || {
        let fields = schema.fields().iter();
        fields.map(|field| SelectItem { expr: Expr::Field(field.name.clone()), alias: None })
    };
    if query.select.is_empty() {
        query.select = all().collect();
    }
    if query.select.iter().any(every) {
        let items = std::mem::take(&mut query.select);
        for item in items {
            match every(&item) {
                true => query.select.extend(all()),
                false => query.select.push(item),
            }
        }
    }
    Cow::Owned(query)
}

fn condition(clause: &str, expr: &Expr, scope: &mut dyn Scope) -> Result<Bound> {
    let bound = bind(expr, scope).map_err(|e| e.at(clause))?;
    match bound.data_type {
        None => Ok(Bound { data_type: Some(DataType::Bool), ..bound }),
        Some(DataType::Bool) => Ok(bound),
        Some(found) => {
            Err(Error::invalid(format!("{clause}: {expr}: expected a condition, found {found}")))
        }
    }
}

/// The last step over rows that pass a filter, and before it the windows over them, which run after
/// so many grouping steps.
fn show(
    query: &Query,
    filter: Option<Bound>,
    scope: &mut dyn Scope,
    (schema, after): (&Schema, usize),
) -> Result<(Projection, Option<WindowStage>)> {
    if !query.has_windows() {
        return Ok((project(query, filter, scope, schema)?, None));
    }
    let mut windows = WindowScope::new(scope);
    let qualify = query.qualify.as_ref().map(|qualify| {
        let qualify = replace_aliases(qualify, schema, &query.select);
        condition("QUALIFY", &qualify.map_err(|e| e.at("QUALIFY"))?, &mut windows)
    });
    let mut projection = project(query, qualify.transpose()?, &mut windows, schema)?;
    let windows = windows.finish(filter, after, &mut projection);
    Ok((projection, Some(windows)))
}

fn project(
    query: &Query,
    filter: Option<Bound>,
    scope: &mut dyn Scope,
    schema: &Schema,
) -> Result<Projection> {
    let mut outputs = Vec::with_capacity(query.select.len());
    for item in &query.select {
        outputs.push(bind(&item.expr, scope).map_err(|e| e.at("SELECT"))?);
    }
    let mut order = Vec::with_capacity(query.order_by.len());
    let semantics = scope.inputs().semantics;
    for key in &query.order_by {
        let OrderBy { expr, descending, .. } = key;
        let output = match expr {
            Expr::Item(place) => query.item("ORDER BY", *place).map(|_| place.checked_sub(1))?,
            // A column of the answer goes before a field of the same name, as the standard has it.
            Expr::Field(name) => named(name, &query.select).map_err(|e| e.at("ORDER BY"))?,
            _ => None,
        };
        let bound = match output.and_then(|at| outputs.get(at)) {
            Some(output) => output.clone(),
            None => replace_aliases(expr, schema, &query.select)
                .and_then(|expr| bind(&expr, scope))
                .map_err(|e| e.at("ORDER BY"))?,
        };
        let nulls_first = semantics.nulls_first(key);
        let bound = by_length(bound);
        order.push(OrderKey { bound, descending: *descending, nulls_first });
    }
    let names = query.select.iter().map(SelectItem::name).collect();
    let count = |clause, count| parameter::row_count(clause, count, scope.inputs());
    let limit = query.limit.as_ref().map(|limit| count("LIMIT", limit)).transpose()?;
    let offset = count("OFFSET", &query.offset)?;
    Ok(Projection { filter, outputs, names, order, limit, offset, after: None })
}

/// Resolves a condition on rows, with what a statement is given.
///
/// # Errors
/// `InvalidQuery` naming the expression and what was expected there.
pub(crate) fn bind_filter(
    clause: &str,
    expr: &Expr,
    schema: &Schema,
    inputs: &Inputs,
) -> Result<Bound> {
    condition(clause, expr, &mut RowScope { schema, inputs })
}

/// Resolves a condition on rows.
///
/// # Errors
/// `InvalidQuery` naming the expression and what was expected there.
pub(crate) fn bind_condition(clause: &str, expr: &Expr, schema: &Schema) -> Result<Bound> {
    refuse_deep(expr)?;
    condition(clause, expr, &mut RowScope { schema, inputs: &Inputs::default() })
}

pub(crate) fn refuse_deep(expr: &Expr) -> Result<()> {
    match expr.depth() {
        0..=EXPR_DEPTH_MAX => Ok(()),
        depth => Err(Error::invalid(format!(
            "an expression nests too deep: {depth} levels, at most {EXPR_DEPTH_MAX}"
        ))),
    }
}

/// Resolves an expression that names nothing.
pub(crate) fn bind_constant(expr: &Expr, inputs: &Inputs) -> Result<Bound> {
    bind(expr, &mut NoScope(inputs))
}

/// Resolves an expression over the fields of a row.
pub(crate) fn bind_row(expr: &Expr, schema: &Schema, inputs: &Inputs) -> Result<Bound> {
    refuse_deep(expr)?;
    bind(expr, &mut RowScope { schema, inputs })
}

/// The value of an expression that is constant.
pub(crate) fn literal_of(bound: &Bound) -> Option<Value> {
    bound.as_literal().cloned()
}

/// Groups what a projection over groups shows, and makes the projection show the groups.
fn distinct_stage(projection: &mut Projection) -> Result<Stage> {
    let keys = projection.outputs.clone();
    let place = |bound: &Bound| {
        let position = keys.iter().position(|key| key == bound)?;
        Some(Bound::field(position, bound.data_type()).with_labels(bound.labels.as_ref()))
    };
    for key in &mut projection.order {
        let found = place(without_length(&key.bound)).ok_or_else(|| {
            Error::invalid("ORDER BY: with SELECT DISTINCT, only what is selected has an order")
        })?;
        key.bound = by_length(found);
    }
    projection.outputs = keys.iter().filter_map(place).collect();
    Ok(Stage { filter: projection.filter.take(), keys, ..Stage::default() })
}
