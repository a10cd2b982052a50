//! Prepared statements.
//!
//! Two kinds of statement go straight to the table: `INSERT INTO t VALUES (…)` of one row of
//! constants and parameters, where what is left out is generated, NULL or a constant, and
//! `SELECT fields FROM t WHERE key = …` with the whole primary key. What they need of the schema is
//! worked out when the statement is prepared; where the schema is another when it runs, it is
//! worked out again. Names mean what they mean in the scope in which it runs: the database, or the
//! transaction of a session.

use std::borrow::Cow;
use std::sync::Arc;

use esker::{
    Batch, ChangeOptions, Column, Database, DefaultValue, Error, ErrorKind, Field, FromRow,
    QueryResult, Result, Row, Rows, Schema, Scope, ScopedTable, Semantics, Value,
};
use esker_query::model::{Change, Expr, InsertRows, OnConflict, Operator, Query, RowCount};
use esker_query::{ResultColumn, Statistics};

use crate::expression::ParameterNames;
use crate::parameters::Parameters;
use crate::run::{Outcome, Sql, expect_rows, first_of, run, with_parameters};
use crate::statement::{Statement, parse_with_parameters};

/// A statement that has been read once, and is run with values for its parameters: on its database,
/// which it keeps open, or within a transaction by [`Sql::run_prepared`](crate::Sql::run_prepared)
/// and [`Session::run_prepared`](crate::Session::run_prepared).
#[derive(Clone, Debug)]
pub struct Prepared {
    /// None where it was prepared within a transaction.
    database: Option<Database>,
    statement: Statement,
    parameters: ParameterNames,
    plan: Option<Plan>,
    /// What its session chose when it was prepared.
    semantics: Semantics,
}

/// What goes straight to the table, for one schema.
#[derive(Clone, Debug)]
struct Plan {
    table: Arc<str>,
    schema: Arc<Schema>,
    step: Step,
}

impl Plan {
    /// The positions of the fields that are answered.
    fn shown(&self) -> &[usize] {
        match &self.step {
            Step::Get { shown, .. } => shown,
            Step::Insert { .. } => &[],
        }
    }

    /// The table's schema may have other indexes, and the table may be another one of this name.
    fn fits(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(schema, &self.schema)
            || (schema.has_same_rows_as(&self.schema)
                && schema.fields() == self.schema.fields()
                && schema.primary_key() == self.schema.primary_key())
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A row: where the value of each field comes from.
    Insert { values: Vec<Source>, replace: bool },
    /// The row of a key: where the value of each key field comes from, and what is shown.
    Get { key: Vec<Source>, shown: Vec<usize> },
}

/// Where a value comes from.
#[derive(Clone, Debug)]
enum Source {
    Parameter(usize),
    Constant(Value),
}

impl Source {
    fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Parameter(parameter) => Some(Self::Parameter(parameter.position as usize)),
            Expr::Literal(value) => Some(Self::Constant(value.clone())),
            _ => None,
        }
    }

    fn value(&self, parameters: &[Value]) -> Value {
        match self {
            Self::Parameter(position) => parameters.get(*position).cloned().unwrap_or_default(),
            Self::Constant(value) => value.clone(),
        }
    }
}

/// Where the value of each field of a row comes from that gives some of them; `None` where only the
/// general way knows: what is computed when the row is written, or refused.
fn sources_of(schema: &Schema, names: &[String], row: &[Expr]) -> Option<Vec<Source>> {
    let fields = schema.fields();
    let given = if names.is_empty() { fields.len() } else { names.len() };
    if row.len() != given {
        return None;
    }
    let mut values: Vec<Option<Source>> = vec![None; fields.len()];
    for (i, expr) in row.iter().enumerate() {
        let place = match names.get(i) {
            Some(name) => schema.resolve(name).ok()?,
            None => i,
        };
        fields.get(place)?.refuse_given().ok()?;
        let slot = values.get_mut(place)?;
        if slot.replace(Source::of(expr)?).is_some() {
            return None;
        }
    }
    let left_out = |field: &Field| match (&field.generated, &field.default) {
        // The table computes it of the others.
        (Some(_), _) => Some(Source::Constant(Value::Null)),
        (None, Some(DefaultValue::Literal(value))) => Some(Source::Constant(value.clone())),
        (None, None) if field.nullable => Some(Source::Constant(Value::Null)),
        _ => None,
    };
    values.into_iter().zip(fields).map(|(value, field)| value.or_else(|| left_out(field))).collect()
}

/// What a statement that goes straight to the table came to.
enum Done<'p> {
    /// A row was added.
    Added,
    /// The row of a key, if there is one.
    Found(Option<Row>, Cow<'p, Plan>),
}

impl Prepared {
    pub(crate) fn new(
        database: Option<&Database>,
        scope: &dyn Scope,
        text: &str,
        semantics: Semantics,
    ) -> Result<Self> {
        let read = parse_with_parameters(text)?;
        Self::of(database, scope, read, semantics)
    }

    /// The same of a statement that has been read.
    pub(crate) fn of(
        database: Option<&Database>,
        scope: &dyn Scope,
        (statement, parameters): (Statement, ParameterNames),
        semantics: Semantics,
    ) -> Result<Self> {
        let (database, plan) = (database.cloned(), None);
        let mut prepared = Self { database, statement, parameters, plan, semantics };
        if let Statement::Query(query) | Statement::QueryForUpdate(query) = &prepared.statement {
            let mut names = std::collections::BTreeSet::new();
            query.collect_tables(&mut names);
            let tables = names.iter().filter(|name| !esker::is_made_table(name));
            tables.into_iter().try_for_each(|name| match scope.has_view(name)? {
                true => Ok(()),
                false => scope.table(name).map(drop),
            })?;
        }
        if let Some(table) = prepared.table_name().filter(|name| !esker::is_made_table(name))
            && !scope.has_view(table)?
        {
            prepared.plan = prepared.plan_for(Arc::from(table), scope.table(table)?.schema());
        }
        Ok(prepared)
    }

    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// What it is run with for some parameters.
    pub(crate) fn options(&self, parameters: &[Value]) -> ChangeOptions {
        ChangeOptions { semantics: self.semantics, ..with_parameters(parameters) }
    }

    /// The names of its parameters, in the order of their values.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Runs it with values for its parameters: see [`Parameters`].
    ///
    /// # Errors
    /// `InvalidInput` when the values do not fit the parameters; else as [`crate::Sql::sql`].
    pub fn run(&self, parameters: impl Parameters) -> Result<Outcome> {
        self.database()?.run_prepared(self, parameters)
    }

    fn database(&self) -> Result<&Database> {
        self.database.as_ref().ok_or_else(|| {
            self.unfit("prepared within a transaction: expected run_prepared of the transaction")
        })
    }

    /// Runs it where it goes straight to a table of a scope.
    pub(crate) fn run_straight(
        &self,
        scope: &dyn Scope,
        parameters: &[Value],
    ) -> Result<Option<Outcome>> {
        Ok(match self.go_straight(scope, parameters)? {
            None => None,
            Some(Done::Added) => Some(Outcome::Added(esker::Changed { rows: 1, returning: None })),
            Some(Done::Found(row, plan)) => Some(Outcome::Rows(self.answer(&plan, row)?)),
        })
    }

    /// Does what goes straight to a table; `None` where the statement has to be run as others are.
    fn go_straight(&self, scope: &dyn Scope, parameters: &[Value]) -> Result<Option<Done<'_>>> {
        let Some((table, plan)) = self.ready(scope)? else { return Ok(None) };
        match &plan.step {
            Step::Insert { values, replace } => {
                match self.insert(&table, &plan.schema, values, *replace, parameters) {
                    // The general way begins anew by the newest schema.
                    Err(e) if e.kind() == ErrorKind::Conflict => Ok(None),
                    done => done.map(|()| Some(Done::Added)),
                }
            }
            Step::Get { key, .. } => {
                let row = self.get(&table, &plan.schema, key, parameters)?;
                Ok(row.map(|row| Done::Found(row, plan)))
            }
        }
    }

    /// Runs a statement that changes rows; returns how many it added, changed or removed.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn execute(&self, parameters: impl Parameters) -> Result<u64> {
        self.run(parameters).map(|outcome| outcome.rows_changed())
    }

    /// Runs a statement that answers rows: a query, or a change that returns something.
    ///
    /// # Errors
    /// As [`Prepared::run`]; `InvalidInput` when it answers no rows, and it is not run then; the
    /// same below.
    pub fn query(&self, parameters: impl Parameters) -> Result<QueryResult> {
        self.answer_of(parameters)?.answer()
    }

    /// What a statement that answers rows came to.
    fn answer_of(&self, parameters: impl Parameters) -> Result<Outcome> {
        expect_rows(&self.statement)?;
        self.run(parameters)
    }

    /// Runs a statement that answers rows, as structs that derive [`Record`](esker::Record), tuples
    /// or single values: see [`FromRow`].
    ///
    /// # Errors
    /// As [`Prepared::query`]; `InvalidInput` naming the column that is missing or does not fit.
    pub fn query_as<T: FromRow>(&self, parameters: impl Parameters) -> Result<Vec<T>> {
        self.answer_of(parameters)?.records()
    }

    /// Runs a statement that answers rows, row by row: an answer of any size takes little memory.
    /// See [`Rows`], of which [`Rows::records`] makes structs.
    ///
    /// # Errors
    /// As [`crate::Sql::sql_rows`].
    pub fn rows(&self, parameters: impl Parameters) -> Result<Rows> {
        self.database()?.prepared_rows(self, parameters)
    }

    /// The same as structs, tuples or single values.
    ///
    /// # Errors
    /// As [`Prepared::rows`] and [`Prepared::query_as`].
    pub fn rows_as<T: FromRow>(&self, parameters: impl Parameters) -> Result<Rows<T>> {
        self.rows(parameters)?.records()
    }

    /// Runs a statement that answers rows, for the first of them.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn first(&self, parameters: impl Parameters) -> Result<Option<Vec<Value>>> {
        expect_rows(&self.statement)?;
        let database = self.database()?;
        parameters.bind(&self.parameters, |values| match self.go_straight(database, values)? {
            Some(Done::Found(row, plan)) => {
                Ok(row.map(|row| pick(row.into_values(), plan.shown())))
            }
            Some(Done::Added) => Err(self.unfit("the statement answers no rows")),
            None => run(database, &*first_of(&self.statement)?, &self.options(values))?.first(),
        })
    }

    /// The same as a struct, a tuple or a single value.
    ///
    /// # Errors
    /// As [`Prepared::query_as`].
    pub fn first_as<T: FromRow>(&self, parameters: impl Parameters) -> Result<Option<T>> {
        expect_rows(&self.statement)?;
        let database = self.database()?;
        let first = |values: &[Value]| match self.run_straight(database, values)? {
            Some(outcome) => Ok(outcome),
            None => run(database, &*first_of(&self.statement)?, &self.options(values)),
        };
        parameters.bind(&self.parameters, first)?.first()
    }

    fn unfit(&self, message: &str) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }

    fn table_name(&self) -> Option<&str> {
        match &self.statement {
            Statement::Query(query) if query.table.is_empty() || !query.is_plain() => None,
            Statement::Query(query) => Some(&query.table),
            Statement::Change(Change::Insert(insert)) => Some(&insert.table),
            Statement::Change(Change::Update(update)) => Some(&update.table),
            Statement::Change(Change::Delete(delete)) => Some(&delete.table),
            Statement::Change(Change::Merge(merge)) => Some(&merge.table),
            _ => None,
        }
    }

    /// The table of a scope and what to do with it, where the statement goes straight there.
    fn ready<'s>(&self, scope: &'s dyn Scope) -> Result<Option<(ScopedTable<'s>, Cow<'_, Plan>)>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        // A view may have taken the place of the table.
        let table = match scope.table(&plan.table) {
            Err(e) if e.kind() == ErrorKind::InvalidInput => return Ok(None),
            table => table?,
        };
        let schema = table.schema();
        if plan.fits(&schema) {
            return Ok(Some((table, Cow::Borrowed(plan))));
        }
        let plan = self.plan_for(Arc::clone(&plan.table), schema);
        Ok(plan.map(|plan| (table, Cow::Owned(plan))))
    }

    fn plan_for(&self, table: Arc<str>, schema: Arc<Schema>) -> Option<Plan> {
        let step = match &self.statement {
            Statement::Query(query) => get_step(query, &schema)?,
            Statement::Change(Change::Insert(insert)) => {
                let replace = match insert.on_conflict {
                    OnConflict::Fail => false,
                    OnConflict::Replace => true,
                    _ => return None,
                };
                let InsertRows::Values(rows) = &insert.rows else { return None };
                let [row] = rows.as_slice() else { return None };
                if insert.returning.is_some() || insert.overriding.is_some() {
                    return None;
                }
                Step::Insert { values: sources_of(&schema, &insert.fields, row)?, replace }
            }
            _ => return None,
        };
        Some(Plan { table, schema, step })
    }

    fn insert(
        &self,
        table: &ScopedTable<'_>,
        schema: &Arc<Schema>,
        values: &[Source],
        replace: bool,
        parameters: &[Value],
    ) -> Result<()> {
        let mut row = Vec::with_capacity(values.len());
        for (field, source) in schema.fields().iter().zip(values) {
            let value = source.value(parameters);
            let fits = esker_format::batch::check_value(field, value.as_ref()).is_ok();
            row.push(match fits || value.is_null() {
                true => value,
                false => esker_query::assign(value, field.data_type)
                    .map_err(|e| self.naming(source, &field.name, &e.into()))?,
            });
        }
        let done = table.put_for(schema, &row, !replace);
        done.map(drop).map_err(|e| self.blame(schema, values, &row, e))
    }

    /// The error of a row, naming the parameter that does not fit its field.
    fn blame(&self, schema: &Schema, values: &[Source], row: &[Value], error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::ConstraintViolated) {
            return error;
        }
        for ((field, source), value) in schema.fields().iter().zip(values).zip(row) {
            if let Err(e) = esker_format::batch::check_value(field, value.as_ref())
                && let Source::Parameter(position) = source
                && let Some(name) = self.parameters.get(*position)
            {
                let e = Error::from(e);
                return Error::new(e.kind(), format!("parameter {name}: {e}"));
            }
        }
        error
    }

    fn naming(&self, source: &Source, field: &str, error: &Error) -> Error {
        let parameter = match source {
            Source::Parameter(position) => self.parameters.get(*position),
            Source::Constant(_) => None,
        };
        let place = parameter.map_or(String::new(), |name| format!("parameter {name}: "));
        self.unfit(&format!("{place}field {field:?}: {error}"))
    }

    /// The row of a key; `None` where the values are not such as the key fields hold, so that
    /// only a query can tell what they equal, or the row is of another schema.
    #[allow(clippy::option_option, reason = "no answer, or the answer that there is no row")]
    fn get(
        &self,
        table: &ScopedTable<'_>,
        schema: &Arc<Schema>,
        key: &[Source],
        parameters: &[Value],
    ) -> Result<Option<Option<Row>>> {
        let mut values = Vec::with_capacity(key.len());
        for (source, position) in key.iter().zip(schema.key_positions()) {
            let Some(field) = schema.fields().get(*position) else { return Ok(None) };
            let value = source.value(parameters);
            let fits = esker_format::batch::check_value(field, value.as_ref()).is_ok();
            if value.is_null() || !fits || field.data_type.is_float() {
                return Ok(None);
            }
            values.push(value);
        }
        // A row of a schema that is not the plan's, as of a commit before or after: a query places
        // its values.
        let row = table.reader(1)?.get(&values)?;
        Ok(row.as_ref().is_none_or(|row| std::ptr::eq(row.schema(), &**schema)).then_some(row))
    }

    fn answer(&self, plan: &Plan, row: Option<Row>) -> Result<QueryResult> {
        let (schema, shown) = (&plan.schema, plan.shown());
        let fields = shown.iter().filter_map(|at| schema.fields().get(*at));
        let names = match &self.statement {
            Statement::Query(query) => query.select.iter().map(|item| item.name()).collect(),
            _ => Vec::new(),
        };
        let mut columns = Vec::with_capacity(shown.len());
        for (i, field) in fields.enumerate() {
            let name = names.get(i).unwrap_or(&field.name).clone();
            columns.push(ResultColumn { name, data_type: field.data_type });
        }
        let mut batches = Vec::new();
        if let Some(row) = row {
            let mut batch = Batch::default();
            for (at, column) in shown.iter().zip(&columns) {
                let mut values = Column::empty(column.data_type);
                values.push(row.values().get(*at).map_or(esker::ValueRef::Null, Value::as_ref))?;
                batch.columns.push(values);
            }
            batches.push(batch);
        }
        Ok(QueryResult { columns, batches, statistics: Statistics::default() })
    }
}

/// Some of the values.
fn pick(mut values: Vec<Value>, shown: &[usize]) -> Vec<Value> {
    if shown.iter().copied().eq(0..values.len()) {
        return values;
    }
    let mut one = |(i, at): (usize, &usize)| {
        // The last use of a value takes it.
        let again = shown.iter().skip(i + 1).any(|other| other == at);
        match values.get_mut(*at) {
            Some(value) if again => value.clone(),
            Some(value) => std::mem::take(value),
            None => Value::Null,
        }
    };
    shown.iter().enumerate().map(&mut one).collect()
}

/// The step of a query for fields of the row with a key.
fn get_step(query: &Query, schema: &Schema) -> Option<Step> {
    let is_plain = !query.distinct
        && query.group_by.is_empty()
        && query.grouping_sets.is_empty()
        && query.having.is_none()
        && query.order_by.is_empty()
        && matches!(query.limit, None | Some(RowCount::Number(1..)))
        && query.offset == RowCount::Number(0);
    if !is_plain || schema.key_positions().is_empty() {
        return None;
    }
    let shown = match query.select.as_slice() {
        [] => (0..schema.fields().len()).collect(),
        items => {
            let field = |item: &esker_query::model::SelectItem| match &item.expr {
                Expr::Field(name) => schema.resolve(name).ok(),
                _ => None,
            };
            items.iter().map(field).collect::<Option<Vec<_>>>()?
        }
    };
    let mut key: Vec<Option<Source>> = vec![None; schema.key_positions().len()];
    let conditions = match query.filter.as_ref()? {
        Expr::Apply(Operator::And, all) => all.iter().collect(),
        one => vec![one],
    };
    for condition in conditions {
        let Expr::Apply(Operator::Eq, sides) = condition else { return None };
        let [left, right] = sides.as_slice() else { return None };
        let (name, value) = match (left, right) {
            (Expr::Field(name), value) | (value, Expr::Field(name)) => (name, value),
            _ => return None,
        };
        let position = schema.resolve(name).ok()?;
        let place = schema.key_positions().iter().position(|p| *p == position)?;
        match key.get_mut(place)? {
            slot @ None => *slot = Some(Source::of(value)?),
            Some(_) => return None,
        }
    }
    Some(Step::Get { key: key.into_iter().collect::<Option<_>>()?, shown })
}
