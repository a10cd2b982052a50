//! Joins and subqueries: what a query reads becomes one source, over which the rest of it runs.
//!
//! ```text
//! FROM a JOIN b ON … WHERE … AND EXISTS (…) GROUP BY … ORDER BY …
//! └─ members ─┘      └─ conditions ───────┘ └─ the rest ────────┘
//!       │                     │                     │
//!       │    one member: its scan. Equal: a key.    │
//!       │    Two or more: pairs. Else: the rest ──► │
//!       └──► join ──► join ──► semi join ──► source ┘
//! ```
//!
//! * Names become full (`a.field`), and the joined source has fields of these names, so that the
//!   rest is an ordinary query over it. A query of one table keeps its plain names and its table as
//!   the source, indexes included.
//! * A subquery that names nothing of the query around it runs first, and what it answers stands in
//!   its place: a value, a truth, or a list. One that does, as a condition of WHERE, is a semi join
//!   or an anti join where it is a plain selection of rows; anything else becomes a column of the
//!   joined rows ([`column`]), answered once for all combinations of the values that it names
//!   ([`unnest`]), or for each of them ([`answers`]).
//! * Inner joins, one after another, run in the order that is thought to be the cheapest: see
//!   [`block`]. Rows come in the order that is written, where the rest depends on it
//!   ([`row_order`]).
//! * A condition is tested as early as its fields are there, unless that changes the answer: on the
//!   right of a LEFT JOIN only ON is tested early, and a condition that may fail is tested last, on
//!   rows that pass all others. A key that may fail is tried; where it does fail, it becomes a
//!   condition that is tested last.

mod answers;
mod arrange;
mod band;
mod block;
mod column;
mod compared;
mod condition;
mod context;
mod dependent;
mod equality;
mod factor;
mod flat;
mod free_names;
mod grouped;
mod grouping;
mod join_order;
mod joining;
mod lateral;
mod member;
mod named;
mod names;
mod outer;
mod product;
mod pushdown;
mod reading;
mod recursive;
mod row_order;
mod set;
mod streamed;
mod subquery;
mod table_call;
mod unnest;
mod view;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Field, FieldId, Schema};

use super::{Error, Result};
use crate::bind::scope::named;
use crate::bind::{Program, bind_query};
use crate::bound::Bound;
use crate::exec::output::{Materialised, RowBatches};
use crate::explain::description::{Description, describe};
use crate::model::{Expr, Function};
use crate::options::without_values;
use crate::source::SourceRef;
use crate::{
    AnswerSink, ExplainedInput, ExplainedSubquery, Explanation, OneRow, Options, Query,
    QueryResult, ResultColumn, Source, Statistics,
};
use arrange::arrange;
pub(crate) use context::Context;
pub use context::Tables;
use context::{Answered, Ready};
use joining::Needed;
use lateral::Opened;
pub(crate) use names::Names;
use reading::Reading;
use row_order::RowsRead;
use streamed::Streamed;
use subquery::Settled;

/// What is wanted of a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Execute,
    /// To be run and shown.
    Analyze,
    Look,
    /// To see whether it is right.
    Check,
}

/// Where the names of tables lead, for languages that need the types of fields.
pub(crate) struct Scope<'a> {
    tables: Option<(&'a dyn Tables, &'a Options)>,
}

impl<'a> Scope<'a> {
    /// Nowhere.
    pub(crate) fn none() -> Self {
        Self { tables: None }
    }

    pub(crate) fn of(tables: &'a dyn Tables, options: &'a Options) -> Self {
        Self { tables: Some((tables, options)) }
    }

    /// The names of what a query reads.
    ///
    /// # Errors
    /// As [`Resolved::look`].
    pub(crate) fn names(&self, query: &Query) -> Result<Names> {
        let Some((tables, options)) = self.tables else {
            return Err(Error::invalid("a query within another has no place here"));
        };
        Context::new(tables, options, false, None).look_names(query)
    }
}

/// A query over any tables, with what it reads made ready: its joins and subqueries have run.
///
/// ```
/// use esker_format::Value;
/// use esker_query::model::{Expr, Join, JoinKind, Operator, Query, Relation};
/// use esker_query::{Error, OneRow, Options, Resolved, Source, Tables};
///
/// struct One(OneRow);
///
/// impl Tables for One {
///     fn table(&self, name: &str) -> esker_query::Result<&dyn Source> {
///         match name {
///             "one" => Ok(&self.0),
///             _ => Err(Error::invalid(format!("no table {name:?}"))),
///         }
///     }
/// }
///
/// let relation = |id: i64, name: &str| {
///     let mut query = Query::table("one");
///     query.select_as(Expr::literal(id), "id");
///     Relation::query(query, name)
/// };
/// let next = Expr::field("a.id").binary(Operator::Lt, Expr::field("b.id"));
/// let mut query = Query::from(relation(1, "a"));
/// query.joins.push(Join::on(JoinKind::Inner, relation(2, "b"), next));
/// query.select(Expr::field("a.id")).select(Expr::field("b.id"));
/// let options = Options::new(&esker_vfs::Environment::os());
/// let answer = Resolved::run(&query, &One(OneRow::new()), &options)?.execute()?;
/// assert_eq!(answer.to_rows(), [[Value::Int(1), Value::Int(2)]]);
/// # Ok::<(), Error>(())
/// ```
pub struct Resolved<'a> {
    /// That of the caller, where nothing had to run first.
    query: Cow<'a, Query>,
    source: SourceRef<'a>,
    /// With the memory that is left.
    options: Cow<'a, Options>,
    /// How long it took to make ready what is read.
    ready_ns: u64,
    input: Option<ExplainedInput>,
    subqueries: Vec<ExplainedSubquery>,
    /// Rows of several queries that are handed over as they are found.
    streamed: Option<Streamed<'a>>,
    /// Whether it may read rows in any order.
    in_any_order: bool,
}

impl<'a> Resolved<'a> {
    /// Runs the joins and subqueries of a query.
    ///
    /// # Errors
    /// As [`super::execute`], and `InvalidQuery` for a name that is unknown or may mean several
    /// fields, and for a subquery that has no place where it stands.
    pub fn run(query: &'a Query, tables: &'a dyn Tables, options: &'a Options) -> Result<Self> {
        Self::new(query, tables, None, options, Purpose::Execute)
    }

    /// The same, to be shown by [`Resolved::explain`]: how subqueries are answered is noted.
    ///
    /// # Errors
    /// As [`Resolved::run`].
    pub fn analyze(query: &'a Query, tables: &'a dyn Tables, options: &'a Options) -> Result<Self> {
        Self::new(query, tables, None, options, Purpose::Analyze)
    }

    /// The same with a source for the table that the query reads first.
    ///
    /// # Errors
    /// As [`Resolved::run`].
    pub fn run_on(
        query: &'a Query,
        first: &'a dyn Source,
        tables: &'a dyn Tables,
        options: &'a Options,
    ) -> Result<Self> {
        Self::new(query, tables, Some(first), options, Purpose::Execute)
    }

    /// Checks a query without reading a row: enough to tell its columns and its plan.
    ///
    /// # Errors
    /// `InvalidQuery` as [`Resolved::run`].
    pub fn look(query: &'a Query, tables: &'a dyn Tables, options: &'a Options) -> Result<Self> {
        Self::new(query, tables, None, options, Purpose::Look)
    }

    fn new(
        query: &'a Query,
        tables: &'a dyn Tables,
        first: Option<&'a dyn Source>,
        options: &'a Options,
        purpose: Purpose,
    ) -> Result<Self> {
        if query.is_plain() && (first.is_some() || tables.view(&query.table).is_none()) {
            return Self::plain(query, tables, first, options);
        }
        if query.looks_up() {
            let meant = meant(query, tables)?;
            return Self::new_within(&meant, tables, (first, None), options, purpose);
        }
        let streamed = (purpose == Purpose::Execute).then(|| Streamed::of(query, tables)).flatten();
        Self::new_within(query, tables, (first, streamed), options, purpose)
    }

    fn new_within(
        query: &Query,
        tables: &'a dyn Tables,
        (first, streamed): (Option<&'a dyn Source>, Option<Streamed<'a>>),
        options: &'a Options,
        purpose: Purpose,
    ) -> Result<Self> {
        let runs = matches!(purpose, Purpose::Execute | Purpose::Analyze);
        let started_ns = options.clock.monotonic_ns();
        let mut in_any_order = false;
        if runs && (query.runs_queries_first() || tables.has_views()) {
            // What cannot be answered is refused before any of it runs.
            let look = Resolved::new_within(query, tables, (first, None), options, Purpose::Check)?;
            look.columns()?;
            in_any_order = look.in_any_order;
        }
        let options = options.with_memory_left();
        let told = (purpose != Purpose::Execute).then(RefCell::default);
        let mut context = Context::new(tables, &options, runs && streamed.is_none(), told);
        context.shows_plans = matches!(purpose, Purpose::Analyze | Purpose::Look);
        context.any_order.outermost = in_any_order;
        let (query, source, input) = context.resolve(query, first)?;
        let in_any_order = context.any_order.found.get();
        let subqueries = context.told.map(RefCell::into_inner).unwrap_or_default();
        let ready_ns = options.clock.monotonic_ns() - started_ns;
        let (query, options) = (Cow::Owned(query), Cow::Owned(options));
        Ok(Self { query, source, options, ready_ns, input, subqueries, streamed, in_any_order })
    }

    /// What reads one table at most: nothing has to run first.
    fn plain(
        query: &'a Query,
        tables: &'a dyn Tables,
        first: Option<&'a dyn Source>,
        options: &'a Options,
    ) -> Result<Self> {
        let source = match first {
            Some(first) => SourceRef::Borrowed(first),
            None if !query.table.is_empty() => SourceRef::Borrowed(tables.table(&query.table)?),
            None if query.select.is_empty() => {
                return Err(Error::invalid("SELECT * without a table: expected FROM"));
            }
            None => SourceRef::Shared(Arc::new(OneRow::new())),
        };
        let (query, options) = (Cow::Borrowed(query), Cow::Borrowed(options));
        let (input, subqueries, streamed) = (None, Vec::new(), None);
        let in_any_order = false;
        Ok(Self { query, source, options, ready_ns: 0, input, subqueries, streamed, in_any_order })
    }

    /// Runs the rest and returns the whole answer.
    ///
    /// # Errors
    /// As [`super::execute`].
    pub fn execute(&self) -> Result<QueryResult> {
        if let Some(streamed) = &self.streamed {
            let run = |sink: crate::exec::Sink<'_>| streamed.run(&self.options, sink);
            let (batches, statistics) = crate::run::collected(&self.options, run)?;
            let statistics = statistics.after(self.ready_ns);
            return Ok(QueryResult { columns: self.columns()?, batches, statistics });
        }
        let answer = super::execute(&self.query, self.source.get(), &self.options)?;
        Ok(QueryResult { statistics: answer.statistics.after(self.ready_ns), ..answer })
    }

    /// Runs the rest, some thousand rows at a time.
    ///
    /// # Errors
    /// As [`super::stream`].
    pub fn stream(&self, sink: &mut dyn AnswerSink) -> Result<Statistics> {
        if let Some(streamed) = &self.streamed {
            if sink.columns(&self.columns()?).is_break() {
                return Ok(Statistics::default());
            }
            let statistics = streamed.run(&self.options, &mut |batch| sink.rows(batch))?;
            return Ok(statistics.after(self.ready_ns));
        }
        let statistics = super::stream(&self.query, self.source.get(), &self.options, sink)?;
        Ok(statistics.after(self.ready_ns))
    }

    /// The columns of the answer as fields of a table that takes its rows: each may be NULL.
    ///
    /// # Errors
    /// As [`super::check`].
    pub fn fields(&self) -> Result<Vec<Field>> {
        let inputs = without_values(&self.options.inputs);
        let program = bind_query(&self.query, self.source.get().schema(), &inputs)?;
        Ok(schema_of(&program).fields().to_vec())
    }

    /// The columns of the answer.
    ///
    /// # Errors
    /// As [`super::check`].
    pub fn columns(&self) -> Result<Vec<ResultColumn>> {
        super::check(&self.query, self.source.get(), &self.options.inputs)
    }

    /// Runs the rest and tells its steps, and those that made ready what it reads.
    ///
    /// # Errors
    /// As [`crate::explain`].
    pub fn explain(&self) -> Result<Explanation> {
        let (source, given) = (self.source.get(), self.given());
        let explanation = crate::run::explain_over(&self.query, source, &self.options, given)?;
        Ok(self.with_what_runs_first(explanation.after(self.ready_ns)))
    }

    fn with_what_runs_first(&self, explanation: Explanation) -> Explanation {
        explanation.reading(self.input.clone(), self.subqueries.clone())
    }

    /// About how many rows there are of what is made ready.
    fn given(&self) -> Option<u64> {
        self.input.as_ref().map(|input| input.rows_estimated)
    }

    /// The steps, without running the rest.
    ///
    /// # Errors
    /// As [`crate::plan`].
    pub fn plan(&self) -> Result<Explanation> {
        let (source, given) = (self.source.get(), self.given());
        let explanation = crate::run::plan_over(&self.query, source, &self.options, given)?;
        Ok(self.with_what_runs_first(explanation))
    }
}

/// A query with look-ups as what they mean.
pub(crate) fn meant(query: &Query, tables: &dyn Tables) -> Result<Query> {
    let mut query = query.clone();
    query.replace_lookups(&mut |lookup| {
        let schema = tables.table(&lookup.table)?.schema();
        let key: Vec<&str> = schema.key_fields().map(|field| field.name.as_str()).collect();
        if key.is_empty() || key.len() != lookup.keys.len() {
            let (key, found) = (key.join(", "), lookup.keys.len());
            let message = format!("{lookup}: expected a value for each field of the key ({key})");
            return Err(Error::invalid(format!("{message}, found {found}")));
        }
        Ok(lookup.as_query(&key, schema.is_key_by_time()))
    })?;
    Ok(query)
}

impl<'a, 'o> Context<'a, 'o> {
    /// Makes ready what a query reads; the query that is left reads that alone, and has no
    /// subqueries.
    fn resolve(&self, query: &Query, first: Option<&'a dyn Source>) -> Result<Ready<'a>> {
        self.nested(|| self.beside(query, || self.resolve_here(query, first)))
    }

    fn resolve_here(&self, query: &Query, first: Option<&'a dyn Source>) -> Result<Ready<'a>> {
        if let Some(over_groups) = grouping::over_groups(query) {
            return self.resolve_here(&over_groups, None);
        }
        let shows_any_order = self.any_order.next.take();
        query.exprs().try_for_each(crate::bind::refuse_deep)?;
        if query.set.is_some() || !query.values.is_empty() {
            return self.resolve_rows(query);
        }
        if let Some(call) = &query.call {
            return self.resolve_call(query, call);
        }
        let mut arranged = arrange(query);
        self.with_lateral_on(query, &mut arranged)?;
        let reading = Reading::of(query, &arranged.joins, self.most_rows(query)?);
        let mut opened = self.opened(arranged, first, &reading, query.filter.as_ref())?;
        let (names, using) = opened.names()?;
        let Opened { members, joins, is_filtered, .. } = opened;
        let name = query.first_relation().map(|first| first.to_string()).unwrap_or_default();
        let with = Vec::new();
        let mut query = Query { joins, with, columns: Vec::new(), ..query.clone() };
        if is_filtered {
            query.filter = None;
        }
        let Settled { semis, mut dependents } = self.settle(&mut query, &names)?;
        if members.is_empty() {
            if query.select.is_empty() {
                return Err(Error::invalid("SELECT * without a table: expected FROM"));
            }
            return Ok((query, SourceRef::Shared(Arc::new(OneRow::new())), None));
        }
        if !dependents.is_empty() {
            query.select = names.expanded(&query.select)?;
        }
        let mut needed = BTreeSet::new();
        let on = member::on_clauses(&mut query, using, &names)?;
        let is_flat = members.iter().any(|member| member.flat.is_some());
        let filter = qualify(&mut query, (&names, is_flat), &mut needed)?;
        dependents.qualify(&names, &mut query, &mut needed)?;
        query = Query { table: name, derived: None, alias: None, ..query };
        let (schema, inputs) = (&names.schema(), &self.options.inputs);
        let in_any_order = RowsRead { schema, inputs }.in_any_order(&query, shows_any_order);
        if self.depth.get() == 1 {
            self.any_order.found.set(in_any_order);
        }
        if members.len() == 1 && semis.is_empty() {
            let member = members.into_iter().next();
            let member = member.ok_or_else(|| Error::invalid("expected FROM"))?;
            let own = member.flat.into_iter().flat_map(|rows| rows.filter);
            query.filter = condition::all(own.map(|c| c.expr).chain(filter).collect());
            let ready = (query, member.source, member.input);
            return self.with_columns(ready, dependents, &names, &needed);
        }
        let semis = semis.into_iter().map(|one| self.prepare(one, &names, &mut needed));
        let semis = semis.collect::<Result<Vec<_>>>()?;
        let wanted = Needed { fields: &needed, in_any_order };
        let (mut side, rest) = self.join_needed(members, &names, on, filter, wanted)?;
        for semi in semis {
            side = self.semi_join(side, semi)?;
        }
        let (source, input, mut filter) = self.finish(side);
        filter.extend(rest);
        query.filter = condition::all(filter);
        self.with_columns((query, source, Some(input)), dependents, &names, &needed)
    }

    /// The answer of a query within another, as a source, and how it came about.
    fn answer(&self, query: &Query) -> Result<Answered> {
        let before = self.told.as_ref().map(RefCell::take);
        let started_ns = self.options.clock.monotonic_ns();
        let are_rows = query.set.is_some() || !query.values.is_empty();
        if are_rows && self.told.is_none() && query.order_by.is_empty() && !query.is_cut() {
            let rows = || self.beside(query, || self.rows(query));
            let (rows, input) = self.nested(rows)?;
            let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
            return Ok(Answered { rows, input: Some(input), elapsed_ns, plan: None });
        }
        let (rest, source, input) = self.resolve(query, None)?;
        let options = self.options;
        let inputs =
            if self.runs { options.inputs.clone() } else { without_values(&options.inputs) };
        let program = bind_query(&rest, source.get().schema(), &inputs)?;
        let schema = schema_of(&program);
        let described = self.described(&program, source.get(), input.as_ref())?;
        let (mut batches, mut profile) = (RowBatches::new(options), None);
        if self.runs {
            let sink: crate::exec::Sink<'_> = &mut |batch| batches.push(batch);
            profile = Some(crate::exec::run(&program, source.get(), options, sink)?);
        }
        let rows = Materialised::of(schema, batches.finish()?);
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        let ready_ns = elapsed_ns - profile.as_ref().map_or(0, |profile| profile.elapsed_ns);
        let subqueries = match (&self.told, before) {
            (Some(told), Some(before)) => told.replace(before),
            _ => Vec::new(),
        };
        let plan = described.map(|described| {
            let told = crate::explain::explained(&rest, &program, described, profile.as_ref());
            told.after(ready_ns).reading(input.clone(), subqueries)
        });
        Ok(Answered { rows, input, elapsed_ns, plan })
    }

    /// What EXPLAIN shows of a program, where that is wanted.
    fn described(
        &self,
        program: &Program,
        source: &dyn Source,
        input: Option<&ExplainedInput>,
    ) -> Result<Option<Description>> {
        let given = input.map(|input| input.rows_estimated);
        let described = || describe(program, source, self.options, given);
        self.shows_plans.then(described).transpose()
    }
}

/// Makes all expressions of a query but its conditions of joins name fields in full, and takes its
/// filter out.
fn qualify(
    query: &mut Query,
    (names, is_flat): (&Names, bool),
    needed: &mut BTreeSet<usize>,
) -> Result<Option<Expr>> {
    let mut filter = query.filter.take();
    // What the filter reads is noted when it is known where it is tested.
    let is_alone = names.is_of_one_table() && !names.has_twins();
    if let Some(filter) = &mut filter {
        names.qualify(filter, None, &mut BTreeSet::new()).map_err(|e| e.at("WHERE"))?;
    }
    // Where a table is read in place of a query, it has fields that are not shown.
    if !(query.select.is_empty() && is_alone && !is_flat) {
        query.select = names.expanded(&query.select)?;
    }
    if !query.select.is_empty() {
        query.expand_all_items()?;
    }
    for item in &mut query.select {
        let name = item.name();
        names.qualify(&mut item.expr, None, needed).map_err(|e| e.at("SELECT"))?;
        if item.alias.is_none() && !is_alone {
            item.alias = Some(match &item.expr {
                Expr::Field(_) => names.shown(&name)?,
                _ => name,
            });
        }
    }
    // A name of the answer goes before a field in ORDER BY; elsewhere, where no one field has it.
    let selected = query.select.clone();
    let item = |expr: &Expr| match expr {
        Expr::Field(name) => named(name, &selected),
        _ => Ok(None),
    };
    let mut each = |clause: &str, expr: &mut Expr, prefers_item: bool| {
        if prefers_item && item(expr).map_err(|e| e.at(clause))?.is_some() {
            return Ok(());
        }
        match names.qualify(expr, None, needed) {
            Err(_) if matches!(item(expr), Ok(Some(_))) => Ok(()),
            outcome => outcome.map_err(|e| e.at(clause)),
        }
    };
    for key in &mut query.distinct_on {
        each("DISTINCT ON", key, true)?;
    }
    for key in &mut query.group_by {
        each("GROUP BY", key, false)?;
    }
    if let Some(having) = &mut query.having {
        each("HAVING", having, false)?;
    }
    if let Some(qualify) = &mut query.qualify {
        each("QUALIFY", qualify, false)?;
    }
    for key in &mut query.order_by {
        let is_item = matches!(item(&key.expr), Ok(Some(_)));
        each("ORDER BY", &mut key.expr, true)?;
        if !is_item && !matches!(item(&key.expr), Ok(None)) {
            // It was named with its table: a field, which no item may take the place of.
            key.expr = Expr::call(Function::Coalesce, [key.expr.clone()]);
        }
    }
    Ok(filter)
}

/// The columns of an answer as fields.
fn schema_of(program: &Program) -> Schema {
    let projection = &program.projection;
    let field = |(name, output): (&String, &Bound)| Field {
        labels: output.labels.clone(),
        ..Field::new(FieldId(1), name.clone(), output.data_type(), true)
    };
    Schema::of_fields(projection.names.iter().zip(&projection.outputs).map(field).collect())
}
