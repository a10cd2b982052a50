//! Queries that read their own rows: WITH RECURSIVE.
//!
//! ```text
//! start ─► rows ─► step over the rows found last ─► new rows ─► step … until there are none
//! ```
//!
//! UNION leaves out rows that have been found before, by their columns as keys of groups, so that
//! what goes in a circle ends; UNION ALL ends when the step finds nothing, when enough rows have
//! been found for a LIMIT, or at the memory and time of the statement.

use std::ops::ControlFlow;
use std::rc::Rc;

use esker_format::interval::{INTERVAL_BYTES, INTERVAL_LENGTH_BYTES};
use esker_format::{Batch, DataType, Field, KeyTable, Schema};

use super::named::NamedQuery;
use super::names::called;
use super::table_call::ROWS_GUESSED;
use super::{Answered, Context};
use crate::bind::bind_query;
use crate::bind::columns::{ColumnType, common_columns, show_as};
use crate::bind::parameter::row_count;
use crate::evaluate::Selection;
use crate::evaluate::gather::gather;
use crate::evaluate::key_codec::encode;
use crate::exec::collect;
use crate::exec::output::materialised::slice;
use crate::exec::output::{Materialised, even};
use crate::model::{SetBranch, SetOperation, SetOperator, With};
use crate::options::without_values;
use crate::{Error, ErrorKind, ExplainedInput, Query, Result, Source};

/// How often the types of columns may grow before they are those of all rows.
const ROUNDS_MAX: usize = 4;

/// A query that reads its own rows, taken apart.
struct Recursion<'q> {
    with: &'q With,
    /// The rows that it begins with.
    start: Query,
    /// What finds further rows.
    step: &'q Query,
    /// Whether equal rows are found once.
    is_distinct: bool,
}

/// The rows that have been found.
struct Found {
    batches: Vec<Batch>,
    rows: u64,
    bytes: usize,
    /// Where equal rows are found once.
    known: Option<KeyTable>,
}

impl<'q> Recursion<'q> {
    fn of(with: &'q With) -> Result<Self> {
        let shape = || {
            let name = &with.name;
            Error::invalid(format!(
                "WITH RECURSIVE {name}: expected (rows to begin with UNION [ALL] SELECT … FROM \
                 {name} …), which names {name} once, in FROM of the last SELECT"
            ))
        };
        let query = &with.query;
        let set = query.set.as_deref().filter(|_| query.order_by.is_empty()).ok_or_else(shape)?;
        let Some((last, before)) = set.rest.split_last() else { return Err(shape()) };
        let start = match before {
            [] => set.first.clone(),
            before => {
                let set = SetOperation { first: set.first.clone(), rest: before.to_vec() };
                Query { set: Some(Box::new(set)), ..Query::default() }
            }
        };
        let SetBranch { operator, all, query: step } = last;
        let read = step.relations();
        let direct = read.iter().filter(|read| read.query.is_none() && with.is_called(&read.table));
        let names_itself_once = direct.count() == 1 && step.uses_of(with) == 1;
        let is_shaped = *operator == SetOperator::Union && start.uses_of(with) == 0;
        match is_shaped && names_itself_once && !step.is_grouped() {
            true => Ok(Self { with, start, step, is_distinct: !all }),
            false => Err(shape()),
        }
    }
}

impl Context<'_, '_> {
    /// The rows of a query that reads its own rows, at most so many.
    pub(super) fn recursive(&self, with: &With, most: Option<u64>) -> Result<Answered> {
        let recursion = Recursion::of(with)?;
        let started_ns = self.options.clock.monotonic_ns();
        let answer = || {
            let (columns, schema) = self.columns_of(&recursion)?;
            let mut found = Found::new(recursion.is_distinct);
            if self.runs {
                let most = [most, self.limit_of(&with.query)?].into_iter().flatten().min();
                self.find(&recursion, (&columns, &schema), most, &mut found)?;
            }
            let skipped = row_count("OFFSET", &with.query.offset, &self.options.inputs)?;
            found.finish(schema, skipped, self.limit_of(&with.query)?)
        };
        let rows = self.beside(&with.query, answer)?;
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        let count = rows.row_count() as u64;
        let input = ExplainedInput::combined("recursive union", Vec::new(), count, elapsed_ns);
        let unknown = ExplainedInput { rows_estimated: ROWS_GUESSED, ..input.clone() };
        let input = Some(if self.runs { input } else { unknown.not_run() });
        Ok(Answered { rows, input, elapsed_ns, plan: None })
    }

    /// How many rows a query shows or leaves out, where it says so.
    pub(super) fn limit_of(&self, query: &Query) -> Result<Option<u64>> {
        let Some(limit) = &query.limit else { return Ok(None) };
        let inputs = &self.options.inputs;
        let offset = row_count("OFFSET", &query.offset, inputs)?;
        Ok(Some(row_count("LIMIT", limit, inputs)?.saturating_add(offset)))
    }

    /// How many rows a query reads at most of the one that it reads, where that is known: it
    /// shows them as they come.
    pub(super) fn most_rows(&self, query: &Query) -> Result<Option<u64>> {
        let as_they_come = query.joins.is_empty()
            && query.filter.is_none()
            && query.order_by.is_empty()
            && !query.distinct
            && query.distinct_on.is_empty()
            && !query.has_windows()
            && !query.is_grouped();
        if as_they_come { self.limit_of(query) } else { Ok(None) }
    }

    /// The columns of all rows: those that it begins with, in types that those of the step have,
    /// too.
    fn columns_of(&self, recursion: &Recursion<'_>) -> Result<(Vec<ColumnType>, Schema)> {
        let name = &recursion.with.name;
        let at = |e: Error| e.at(format_args!("WITH RECURSIVE {name}"));
        let (look, inputs) = (self.looking(), without_values(&self.options.inputs));
        let program = |query: &Query| {
            let (rest, source, _) = look.resolve(query, None)?;
            bind_query(&rest, source.get().schema(), &inputs)
        };
        let start = program(&recursion.start).map_err(at)?;
        let mut columns = common_columns(std::slice::from_ref(&start), "UNION").map_err(at)?;
        for _ in 0..ROUNDS_MAX {
            let fields = start.projection.names.iter().zip(&columns).map(|(name, column)| Field {
                labels: column.labels.clone(),
                ..Field::new(esker_format::FieldId(1), name.clone(), column.data_type, true)
            });
            let schema = Schema::of_fields(fields.collect());
            let working = Materialised::of(schema.clone(), Vec::new());
            let step = look.with_rows(recursion, working, || program(recursion.step));
            let both = [start.clone(), step.map_err(at)?];
            let common = common_columns(&both, "UNION").map_err(at)?;
            if common == columns {
                return Ok((columns, schema));
            }
            columns = common;
        }
        Err(Error::invalid(format!(
            "WITH RECURSIVE {name}: the types of its columns grow with each step; give them one \
             with CAST"
        )))
    }

    /// Does something where the name of the query means some rows of it.
    fn with_rows<R>(
        &self,
        recursion: &Recursion<'_>,
        rows: Materialised,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let With { name, columns, .. } = recursion.with;
        let schema = called(rows.schema().clone(), columns, name)?;
        let before = self.names_known.borrow().clone();
        let rows = NamedQuery::of_rows(name, rows.with_schema(schema), before.clone());
        self.names_known.replace(Some(Rc::new(rows)));
        let done = run();
        self.names_known.replace(before);
        done
    }

    /// Runs a query for its rows in the types of the columns.
    fn take(
        &self,
        query: &Query,
        columns: &[ColumnType],
        found: &mut Found,
        most: Option<u64>,
    ) -> Result<Vec<Batch>> {
        let options = self.options.with_memory_left();
        let context = self.with_options(&options);
        let (rest, source, _) = context.resolve(query, None)?;
        let mut program = bind_query(&rest, source.get().schema(), &options.inputs)?;
        show_as(&mut program, columns)?;
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
        let (mut fresh, mut charge) = (Vec::new(), options.memory().charge());
        let before = found.memory();
        crate::exec::run(&program, source.get(), &options, &mut |batch| {
            let batch = found.without_known(batch, &types)?;
            found.bytes += crate::result::batch_bytes(&batch);
            found.rows += batch.len() as u64;
            charge.set(found.memory() - before)?;
            fresh.extend((!batch.is_empty()).then_some(batch));
            Ok(match most {
                Some(most) if found.rows >= most => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        Ok(fresh)
    }

    fn find(
        &self,
        recursion: &Recursion<'_>,
        (columns, schema): (&[ColumnType], &Schema),
        most: Option<u64>,
        found: &mut Found,
    ) -> Result<()> {
        let name = &recursion.with.name;
        let mut charge = self.options.memory().charge();
        let mut fresh = self.take(&recursion.start, columns, found, most)?;
        let mut steps = 0u64;
        while !fresh.is_empty() && most.is_none_or(|most| found.rows < most) {
            let at = |e: Error| match e.kind() {
                ErrorKind::OverBudget | ErrorKind::TimedOut => {
                    e.at(format_args!("WITH RECURSIVE {name}, after {steps} steps"))
                }
                _ => e.at(format_args!("WITH RECURSIVE {name}")),
            };
            self.options.expect_time_left().map_err(at)?;
            found.batches.extend(fresh.iter().cloned());
            // The rows found last are there twice while the step reads them.
            let last: usize = fresh.iter().map(crate::result::batch_bytes).sum();
            charge.set(found.memory() + last).map_err(at)?;
            let working = Materialised::of(schema.clone(), even(fresh)?);
            let step = || self.take(recursion.step, columns, found, most);
            fresh = self.with_rows(recursion, working, step).map_err(at)?;
            steps += 1;
        }
        found.batches.extend(fresh);
        charge.set(found.bytes)?;
        charge.keep();
        Ok(())
    }
}

impl Found {
    fn new(is_distinct: bool) -> Self {
        let known = is_distinct.then(KeyTable::default);
        Self { batches: Vec::new(), rows: 0, bytes: 0, known }
    }

    fn memory(&self) -> usize {
        self.bytes + self.known.as_ref().map_or(0, KeyTable::bytes)
    }

    /// The rows that have not been found before.
    fn without_known(&mut self, batch: Batch, types: &[DataType]) -> Result<Batch> {
        let Some(known) = &mut self.known else { return Ok(batch) };
        let len = batch.len();
        let mut fresh = Vec::new();
        {
            let slices = batch.columns.iter().map(|column| slice(column, 0..len));
            let slices: Option<Vec<_>> = slices.collect();
            let other = || Error::invalid("a batch of columns of other lengths");
            let slices = slices.ok_or_else(other)?;
            let vectors: Vec<_> =
                slices.iter().map(|column| gather(column, Selection::All(len))).collect();
            let mut key = Vec::new();
            for row in 0..len {
                key.clear();
                for (vector, data_type) in vectors.iter().zip(types) {
                    encode(&mut key, vector, row);
                    if *data_type == DataType::Interval && !vector.is_null(row) {
                        // Intervals of one length are equal: their other parts come last.
                        key.truncate(
                            key.len().saturating_sub(INTERVAL_BYTES - INTERVAL_LENGTH_BYTES),
                        );
                    }
                }
                let count = known.len();
                if known.number(&key) as usize == count {
                    // default: a batch has fewer rows
                    fresh.push((0, u32::try_from(row).unwrap_or(u32::MAX)));
                }
            }
        }
        match fresh.len() == len {
            true => Ok(batch),
            false => collect(types, std::slice::from_ref(&batch), &fresh),
        }
    }

    /// The rows, without the first ones and those behind a limit.
    fn finish(self, schema: Schema, skipped: u64, end: Option<u64>) -> Result<Materialised> {
        let (skip, end) = (skipped, end.unwrap_or(u64::MAX));
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type).collect();
        let (mut start, mut batches) = (0u64, Vec::with_capacity(self.batches.len()));
        for batch in self.batches {
            let len = batch.len() as u64;
            let is_shown = |row: &u32| (skip..end).contains(&(start + u64::from(*row)));
            let rows = (0u32..).take(batch.len()).filter(is_shown);
            let places: Vec<(u32, u32)> = rows.map(|row| (0, row)).collect();
            match places.len() {
                0 => {}
                shown if shown == batch.len() => batches.push(batch),
                _ => batches.push(collect(&types, std::slice::from_ref(&batch), &places)?),
            }
            start += len;
        }
        Ok(Materialised::of(schema, even(batches)?))
    }
}
