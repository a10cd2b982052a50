//! What a query answers for each combination of values of the query around it.
//!
//! ```text
//! rows ─► distinct values, numbered ─► the query beside them, once (see `unnest`) ─► answers,
//!                                  └─► the query for each of them, one by one ─────► numbered
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use esker_format::{Batch, Column, DataType, Field, FieldId, KeyTable, Schema, Values};

use super::Context;
use super::named::NamedQuery;
use super::names::Names;
use super::outer::Outer;
use crate::bind::bind_query;
use crate::bind::columns::{ColumnType, show_as};
use crate::evaluate::Selection;
use crate::evaluate::gather::gather;
use crate::evaluate::key_codec::encode;
use crate::exec::collect;
use crate::exec::output::materialised::slice;
use crate::exec::output::{Materialised, RowBatches, even};
use crate::model::{Expr, Relation, RowCount, SelectItem, SubqueryForm};
use crate::{Error, ExplainedInput, Explanation, Query, Result, Source, Unnesting, ZONE_ROWS};

/// The number of a row that asks nothing.
pub(super) const NONE: u32 = u32::MAX;

/// Different combinations of values.
pub(super) struct Domain {
    /// Each once, with its number behind it.
    pub(super) rows: Arc<Materialised>,
    /// By row: the number of its values.
    pub(super) numbers: Vec<u32>,
}

/// What was answered.
pub(super) struct Answers {
    /// The columns of the query, then the number of the values that a row was answered for.
    pub(super) rows: Materialised,
    pub(super) input: Option<ExplainedInput>,
    /// How it came about, where that is to be shown.
    pub(super) plan: Option<Explanation>,
    /// Whether the query ran for each combination of values by itself.
    pub(super) is_loop: bool,
    pub(super) elapsed_ns: u64,
}

impl Answers {
    /// How it came about.
    pub(super) fn explained(
        &self,
        name: &str,
        query: Option<&Query>,
        runs: bool,
    ) -> ExplainedInput {
        let kind = if self.is_loop { "memoised loop" } else { "unnested query" };
        let inputs = self.input.clone().into_iter().collect();
        let count = self.rows.row_count() as u64;
        let told = ExplainedInput::combined(kind, inputs, count, self.elapsed_ns);
        let told = told.with_plan(self.plan.clone());
        let query = query.map_or(String::new(), |query| format!(": {query}"));
        let told = ExplainedInput { what: format!("{name}{query}"), ..told };
        if runs { told } else { told.not_run() }
    }

    /// How the rows of a function came about.
    pub(super) fn explained_call(&self, relation: &Relation, runs: bool) -> ExplainedInput {
        let inputs = self.input.clone().into_iter().collect();
        let count = self.rows.row_count() as u64;
        let told = ExplainedInput::combined("function", inputs, count, self.elapsed_ns);
        let told = ExplainedInput { what: relation.to_string(), ..told };
        if runs { told } else { told.not_run() }
    }

    /// The number of values by row.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        numbers_of(&self.rows)
    }
}

/// The numbers in the last column.
pub(super) fn numbers_of(rows: &Materialised) -> impl Iterator<Item = u32> {
    let columns = rows.batches().iter().filter_map(|batch| batch.columns.last());
    let numbers = columns.flat_map(|column| match &column.values {
        Values::I64(numbers) => numbers.as_slice(),
        _ => &[],
    });
    // default: no number is that great
    numbers.map(|number| u32::try_from(*number).unwrap_or(NONE))
}

impl Context<'_, '_> {
    /// The combinations of the values that a query names, among those rows of which `guard` holds.
    pub(super) fn domain(
        &self,
        rows: &Materialised,
        outer: &Outer,
        names: &Names,
        guard: Option<&Expr>,
    ) -> Result<Domain> {
        let field = |number: &usize| names.field(*number).map(|field| Expr::Field(field.name));
        let exprs = outer.fields.iter().filter_map(|(number, _)| field(number)).collect();
        let (rows, numbers) = self.combinations(rows, exprs, guard, None)?;
        Ok(Domain { rows: Arc::new(rows.with_schema(outer.schema())), numbers })
    }

    /// The combinations of values of expressions, and of numbers that rows have already: columns
    /// called `1`, `2`, …, the numbers, and the number of the combination.
    pub(super) fn combinations(
        &self,
        rows: &Materialised,
        exprs: Vec<Expr>,
        guard: Option<&Expr>,
        beside: Option<&[u32]>,
    ) -> Result<(Materialised, Vec<u32>)> {
        let asks = guard.cloned().unwrap_or_else(|| Expr::literal(true));
        let asks = Expr::call(crate::model::Function::Coalesce, [asks, Expr::literal(false)]);
        let item = |(i, expr)| SelectItem { expr, alias: Some(format!("{i}")) };
        let select = [asks].into_iter().chain(exprs).enumerate().map(item).collect();
        let query = Query { select, ..Query::default() };
        let program = bind_query(&query, rows.schema(), &self.options.inputs)?;
        let schema = super::schema_of(&program);
        let mut known = Combinations {
            known: KeyTable::default(),
            numbers: Vec::with_capacity(rows.row_count()),
            first: Vec::new(),
            batches: Vec::new(),
            beside,
        };
        let (mut bytes, mut charge) = (0, self.options.memory().charge());
        if self.runs {
            crate::exec::run(&program, rows, self.options, &mut |batch| {
                bytes += crate::result::batch_bytes(&batch);
                known.add(batch)?;
                charge.set(bytes + known.bytes())?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let (rows, numbers) = known.finish(&schema)?;
        let mut kept = self.options.memory().charge();
        kept.set(rows.byte_count() + 4 * numbers.len())?;
        kept.keep();
        Ok((rows, numbers))
    }

    /// The rows with the numbers of their values behind them.
    pub(super) fn numbered(
        &self,
        rows: Materialised,
        outer: &Outer,
        domain: &Domain,
    ) -> Result<Materialised> {
        let mut numbers = domain.numbers.iter();
        let columns = rows.batches().iter().map(|batch| {
            let numbers = numbers.by_ref().take(batch.len()).map(|number| i64::from(*number));
            number_column(numbers)
        });
        let columns = columns.collect();
        let mut charge = self.options.memory().charge();
        charge.set(8 * rows.row_count())?;
        charge.keep();
        rows.with_column(outer.number_field(), columns)
    }

    /// Does something where a name means some rows.
    pub(super) fn with_named_rows<R>(
        &self,
        name: &str,
        rows: &Arc<Materialised>,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let before = self.names_known.borrow().clone();
        let named = NamedQuery::of_shared(name, Arc::clone(rows), before.clone());
        self.names_known.replace(Some(std::rc::Rc::new(named)));
        let done = run();
        self.names_known.replace(before);
        done
    }

    /// What a query answers for each combination of values. Where no more than whether there is a
    /// row is wanted, `form` says so.
    pub(super) fn answers(
        &self,
        query: &Query,
        outer: &Outer,
        domain: &Domain,
        form: Option<SubqueryForm>,
    ) -> Result<Answers> {
        let started_ns = self.options.clock.monotonic_ns();
        let clock = || self.options.clock.monotonic_ns() - started_ns;
        // A wrong query is an error even where no row asks it.
        let looked = self.looking().answer(&outer.looked_at(query))?.rows;
        let schema = looked.schema().clone();
        let unnested = match self.options.unnesting {
            Unnesting::Never => None,
            Unnesting::WherePossible if self.makes_many_rows(query, outer, domain)? => None,
            Unnesting::WherePossible => self.unnested(query, outer, form)?,
        };
        let Some(unnested) = unnested else {
            let rows = self.looped(query, outer, domain, &schema, form)?;
            let elapsed_ns = clock();
            return Ok(Answers { rows, input: None, plan: None, is_loop: true, elapsed_ns });
        };
        let answered =
            self.with_named_rows(&outer.relation, &domain.rows, || self.answer(&unnested))?;
        let own = schema.fields().iter().map(|field| field.name.clone());
        let names: Vec<String> = own.chain([outer.relation.clone()]).collect();
        let found = answered.rows.schema().clone();
        let rows = match found.fields().len() == names.len() {
            true => answered.rows.with_schema(super::names::called(found, &names, "a query")?),
            // Only the numbers were wanted.
            false => answered.rows,
        };
        let (input, plan) = (answered.input, answered.plan);
        Ok(Answers { rows, input, plan, is_loop: false, elapsed_ns: clock() })
    }

    /// Runs a query for each combination of values.
    fn looped(
        &self,
        query: &Query,
        outer: &Outer,
        domain: &Domain,
        schema: &Schema,
        form: Option<SubqueryForm>,
    ) -> Result<Materialised> {
        let columns = schema.fields().iter();
        let types: Vec<ColumnType> = columns
            .map(|field| ColumnType { data_type: field.data_type, labels: field.labels.clone() })
            .collect();
        let mut one = query.clone();
        if form == Some(SubqueryForm::Exists) && one.limit.is_none() {
            one.limit = Some(RowCount::Number(1));
        }
        let fields = schema.fields().iter().cloned().chain([outer.number_field()]);
        let schema = Schema::of_fields(fields.collect());
        let mut batches = RowBatches::new(self.options);
        let count = if self.runs { domain.rows.row_count() } else { 0 };
        let width = outer.fields.len();
        let values: Vec<_> = (0..width).map(|at| domain.rows.values(at)).collect();
        for number in 0..count {
            self.options.expect_time_left()?;
            let values: Vec<_> =
                values.iter().filter_map(|column| column.get(number)).cloned().collect();
            let options = self.options.with_memory_left();
            let context = self.silent(&options);
            let (rest, source, _) = context.resolve(&outer.with_values(&one, &values), None)?;
            let mut program = bind_query(&rest, source.get().schema(), &options.inputs)?;
            show_as(&mut program, &types)?;
            // default: there are fewer rows
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            crate::exec::run(&program, source.get(), &options, &mut |mut batch| {
                let numbers = std::iter::repeat_n(number, batch.len());
                batch.columns.push(number_column(numbers));
                batches.push(batch)
            })?;
        }
        Ok(Materialised::of(schema, batches.finish()?))
    }
}

/// Combinations that have been met.
struct Combinations<'b> {
    known: KeyTable,
    numbers: Vec<u32>,
    /// Where each was met first.
    first: Vec<(u32, u32)>,
    batches: Vec<Batch>,
    /// Numbers of rows that are a part of it; rows without one ask nothing.
    beside: Option<&'b [u32]>,
}

impl Combinations<'_> {
    fn bytes(&self) -> usize {
        self.known.bytes() + 4 * self.numbers.len() + 8 * self.first.len()
    }

    /// Adds rows: whether each asks, then the values.
    fn add(&mut self, batch: Batch) -> Result<()> {
        let len = batch.len();
        let slices: Option<Vec<_>> =
            batch.columns.iter().map(|column| slice(column, 0..len)).collect();
        let other = || Error::invalid("a batch of columns of other lengths");
        let slices = slices.ok_or_else(other)?;
        let vectors: Vec<_> =
            slices.iter().map(|column| gather(column, Selection::All(len))).collect();
        let (asks, values) = vectors.split_first().ok_or_else(other)?;
        // default: there are fewer batches, and rows in one
        let at = u32::try_from(self.batches.len()).unwrap_or(NONE);
        let mut key = Vec::new();
        for row in 0..len {
            let beside = self.beside.map(|beside| beside.get(self.numbers.len()).copied());
            let is_asked = asks.value(row) == esker_format::ValueRef::Bool(true);
            let beside = match beside {
                _ if !is_asked => Some(NONE),
                None => None,
                Some(number) => Some(number.unwrap_or(NONE)),
            };
            if beside == Some(NONE) {
                self.numbers.push(NONE);
                continue;
            }
            key.clear();
            beside.iter().for_each(|number| key.extend_from_slice(&number.to_le_bytes()));
            values.iter().for_each(|vector| encode(&mut key, vector, row));
            let count = self.known.len();
            let number = self.known.number(&key);
            if number as usize == count {
                self.first.push((at, u32::try_from(row).unwrap_or(NONE)));
            }
            self.numbers.push(number);
        }
        drop(vectors);
        drop(slices);
        self.batches.push(batch);
        Ok(())
    }

    fn finish(self, schema: &Schema) -> Result<(Materialised, Vec<u32>)> {
        let Self { known, numbers, first, mut batches, beside } = self;
        drop(known);
        let own = schema.fields().get(1..).unwrap_or_default();
        let mut fields: Vec<Field> = own.to_vec();
        batches.iter_mut().for_each(|batch| drop(batch.columns.drain(..1)));
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type).collect();
        let number_field =
            |name: &str| Field::new(FieldId(1), name.to_owned(), DataType::I64, false);
        fields.extend(beside.map(|_| number_field("outer")));
        fields.push(number_field("number"));
        let firsts = match beside {
            Some(beside) => first_numbers(&numbers, beside, first.len()),
            None => Vec::new(),
        };
        let mut rows = Vec::new();
        let (mut start, mut number) = (0usize, 0i64);
        for places in first.chunks(ZONE_ROWS) {
            let mut batch = collect(&types, &batches, places)?;
            if beside.is_some() {
                let numbers = firsts.iter().skip(start).take(places.len());
                batch.columns.push(number_column(numbers.map(|number| i64::from(*number))));
            }
            start += places.len();
            let end = number + i64::try_from(places.len()).unwrap_or(0);
            batch.columns.push(number_column(number..end));
            number = end;
            rows.push(batch);
        }
        Ok((Materialised::of(Schema::of_fields(fields), even(rows)?), numbers))
    }
}

/// What the first row of each combination has beside it.
fn first_numbers(numbers: &[u32], beside: &[u32], count: usize) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(count);
    for (number, beside) in numbers.iter().zip(beside) {
        if *number as usize == firsts.len() && *number != NONE {
            firsts.push(*beside);
        }
    }
    firsts
}

fn number_column(numbers: impl Iterator<Item = i64>) -> Column {
    Column { data_type: DataType::I64, values: Values::I64(numbers.collect()), nulls: None }
}
