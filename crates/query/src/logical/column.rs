//! Subqueries that name fields of the query around them, as columns of what that reads.
//!
//! | form | the column |
//! |---|---|
//! | scalar | the one value; NULL without a row |
//! | `EXISTS` | whether there is a row |
//! | `IN`, `ANY`, `ALL` | true, false, or NULL where a comparison that decides is |

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Batch, Column, DataType, Field, FieldId, Labels, Schema, ValueRef};

use super::answers::{Answers, Domain, NONE, numbers_of};
use super::compared::one_value;
use super::condition;
use super::dependent::{Dependent, Dependents};
use super::lateral::shown;
use super::names::Names;
use super::subquery::several_columns;
use super::{Context, Ready};
use crate::bind::bind_query;
use crate::exec::output::Materialised;
use crate::exec::output::copy::collect_column;
use crate::explain::estimates::Estimates;
use crate::model::{Aggregate, Expr, Join, Operator, Relation, SelectItem, SubqueryForm};
use crate::predicate::Predicate;
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Query, Result, Source};

/// What the rows are called that are compared, and the answers.
const PAIRS: &str = "compared";
const ANSWERS: &str = "answers";

/// A column: its values by row, and their type.
struct Values {
    column: Column,
    labels: Option<Arc<Labels>>,
}

impl<'a> Context<'a, '_> {
    /// Gives the rows that a query reads a column for each subquery that names fields of it.
    pub(super) fn with_columns(
        &self,
        (mut query, source, input): Ready<'a>,
        dependents: Dependents,
        names: &Names,
        needed: &BTreeSet<usize>,
    ) -> Result<Ready<'a>> {
        if dependents.is_empty() {
            return Ok((query, source, input));
        }
        let Dependents { all, of_filter, filter: late } = dependents;
        let fields = needed.iter().filter_map(|number| names.field(*number));
        let mut select: Vec<SelectItem> = fields.map(shown).collect();
        // default: a table has no input of its own
        let mut input = input.unwrap_or_else(|| ExplainedInput::table(&query.table));
        let mut filter = query.filter.take();
        let (mut late, mut source) = (Some(late), source);
        let mut rows: Option<Materialised> = None;
        for (i, one) in all.iter().enumerate() {
            if i == of_filter {
                filter = condition::all(
                    filter.into_iter().chain(late.take().into_iter().flatten()).collect(),
                );
            }
            let before = match (rows.take(), &filter) {
                (Some(rows), None) => rows,
                (found, _) => {
                    if let Some(found) = found {
                        source = SourceRef::Shared(Arc::new(found) as Arc<_>);
                    }
                    let given = (input.kind != "table").then_some(input.rows_estimated);
                    let passed = self.passing(&source, &select, filter.take(), &query)?;
                    input = self.passed_input((input, given), &source, &passed)?;
                    passed.0
                }
            };
            let (grown, told) = self.grown(before, one, names, input)?;
            input = told;
            select.push(SelectItem { expr: Expr::field(&one.column), alias: None });
            rows = Some(grown);
        }
        let rest = filter.into_iter().chain(late.into_iter().flatten()).collect();
        query.filter = condition::all(rest);
        if let Some(rows) = rows {
            source = SourceRef::Shared(Arc::new(rows) as Arc<_>);
        }
        Ok((query, source, Some(input)))
    }

    /// The rows that pass a filter, and that as text.
    fn passing(
        &self,
        source: &SourceRef<'a>,
        select: &[SelectItem],
        filter: Option<Expr>,
        query: &Query,
    ) -> Result<(Materialised, Query)> {
        let select = Query { select: select.to_vec(), filter, ..Query::default() };
        let what = query.table.clone();
        let rows = self.rows_of(&[(select.clone(), source.clone())], &what)?;
        Ok((rows, select))
    }

    /// What was read, with the filter that its rows have passed.
    fn passed_input(
        &self,
        (input, given): (ExplainedInput, Option<u64>),
        source: &SourceRef<'a>,
        (rows, query): &(Materialised, Query),
    ) -> Result<ExplainedInput> {
        let filter = query.filter.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut estimated = input.rows_estimated;
        if self.shows_plans {
            let program = bind_query(query, source.get().schema(), &self.options.inputs)?;
            let predicate = Predicate::compile(program.first_step().filter());
            estimated = Estimates::of(&program, (&predicate, source.get()), given)?.read;
        }
        let found = self.runs.then(|| rows.row_count() as u64);
        Ok(ExplainedInput { rows: found, ..input.filtered(&filter, estimated) })
    }

    /// The rows with a column for a subquery.
    fn grown(
        &self,
        rows: Materialised,
        one: &Dependent,
        names: &Names,
        left: ExplainedInput,
    ) -> Result<(Materialised, ExplainedInput)> {
        let domain = self.domain(&rows, &one.outer, names, one.guard())?;
        let form = (one.form == SubqueryForm::Exists).then_some(one.form);
        let answers = self.answers(&one.query, &one.outer, &domain, form)?;
        let Values { column, labels } = match one.form {
            SubqueryForm::Scalar => self.only_values(one, &answers, &domain.numbers)?,
            SubqueryForm::Exists => has_rows(&answers, &domain.numbers)?,
            SubqueryForm::In => self.decided(&rows, one, (&answers, &domain), Operator::Eq)?,
            SubqueryForm::Any(operator) | SubqueryForm::All(operator) => {
                self.decided(&rows, one, (&answers, &domain), operator)?
            }
        };
        let field =
            Field { labels, ..Field::new(FieldId(1), one.column.clone(), column.data_type, true) };
        let mut charge = self.options.memory().charge();
        charge.set(crate::result::batch_bytes(&Batch { columns: vec![column.clone()] }))?;
        charge.keep();
        let columns = in_batches(&column, rows.batches())?;
        let right = answers.explained(&one.column, Some(&one.written), self.runs);
        let count = rows.row_count() as u64;
        let rows_estimated = left.rows_estimated;
        let told = ExplainedInput::combined("subquery join", vec![left, right], count, 0);
        let (what, elapsed_ms) = (one.column.clone(), None);
        let told = ExplainedInput { what, elapsed_ms, rows_estimated, ..told };
        let told = if self.runs { told } else { told.not_run() };
        Ok((rows.with_column(field, columns)?, told))
    }

    /// The value of the one row for each number.
    fn only_values(&self, one: &Dependent, answers: &Answers, numbers: &[u32]) -> Result<Values> {
        let fields = answers.rows.schema().fields();
        let [field, _] = fields else {
            return Err(several_columns(1, fields.len().saturating_sub(1), &one.written));
        };
        let mut counts = Counts::default();
        answers.rows().for_each(|(place, number)| counts.add(place, number));
        let several = numbers.iter().map(|number| counts.of(*number)).find(|(_, count)| *count > 1);
        if let Some((_, count)) = several {
            return Err(Error::invalid(format!(
                "expected one row at most of the subquery, found {count}: ({})",
                one.written
            )));
        }
        let sources = answers.rows.batches().iter().map(|batch| batch.columns.first());
        let sources: Option<Vec<&Column>> = sources.collect();
        let places = numbers.iter().map(|number| match counts.of(*number) {
            ((batch, row), 1..) => (batch, row),
            _ => (usize::MAX, 0),
        });
        let (data_type, labels) = (field.data_type, field.labels.clone());
        let column = collect_column(data_type, &sources.unwrap_or_default(), places, true)?;
        Ok(Values { column, labels })
    }

    /// Whether a comparison of each row's operand holds with any row that was answered for it, or
    /// with all of them.
    fn decided(
        &self,
        rows: &Materialised,
        one: &Dependent,
        (answers, domain): (&Answers, &Domain),
        operator: Operator,
    ) -> Result<Values> {
        let is_any = !matches!(one.form, SubqueryForm::All(_));
        let operands = one.operand.clone().map(Expr::into_row).unwrap_or_default();
        let width = answers.rows.schema().fields().len().saturating_sub(1);
        if operands.len() != width {
            return Err(several_columns(operands.len(), width, &one.written));
        }
        if operands.len() > 1 && one.form != SubqueryForm::In {
            return Err(one_value(operator, &one.written));
        }
        // Constants compare as they are written.
        let is_constant = |operand: &Expr| {
            let mut fields = Vec::new();
            operand.collect_names(&mut fields);
            fields.is_empty()
        };
        let exprs: Vec<Expr> = operands.iter().filter(|o| !is_constant(o)).cloned().collect();
        let beside = Some(domain.numbers.as_slice());
        let (pairs, pair_numbers) = self.combinations(rows, exprs, None, beside)?;
        let mut next = 0;
        let left = operands.into_iter().map(|operand| {
            if is_constant(&operand) {
                return operand;
            }
            next += 1;
            Expr::Field(format!("{PAIRS}.{next}"))
        });
        let left: Vec<Expr> = left.collect();
        let right = (0..width).map(|at| Expr::Field(format!("{ANSWERS}.a{at}"))).collect();
        let holds = Expr::compare_rows(operator, left, right)?;
        let count = pairs.row_count();
        let answers = Arc::new(called_answers(answers.again()));
        let verdicts = self.with_named_rows(PAIRS, &Arc::new(pairs), || {
            self.with_named_rows(ANSWERS, &answers, || self.answer(&comparison(holds, is_any)))
        })?;
        let mut known = vec![(!is_any, false); count];
        let truths = [0, 1].map(|at| verdicts.rows.values(at));
        let [decided, unknown] = &truths;
        for (number, (decided, unknown)) in
            numbers_of(&verdicts.rows).zip(decided.iter().zip(unknown))
        {
            if let Some(slot) = known.get_mut(number as usize) {
                let is_decided = decided.as_ref() == ValueRef::Bool(is_any);
                let has_unknown = unknown.as_ref() != ValueRef::Int(0);
                *slot = (is_decided == is_any, !is_decided && has_unknown);
            }
        }
        let mut column = Column::empty(DataType::Bool);
        for number in &pair_numbers {
            column.push(match known.get(*number as usize) {
                Some((truth, false)) => ValueRef::Bool(*truth),
                _ => ValueRef::Null,
            })?;
        }
        Ok(Values { column, labels: None })
    }
}

impl Answers {
    /// The same rows once more.
    fn again(&self) -> Materialised {
        Materialised::of(self.rows.schema().clone(), self.rows.batches().to_vec())
    }

    /// Where each row is, and the number of the values that it is for.
    fn rows(&self) -> impl Iterator<Item = ((usize, usize), u32)> {
        let batches = self.rows.batches().iter().enumerate();
        let places = batches.flat_map(|(at, batch)| (0..batch.len()).map(move |row| (at, row)));
        places.zip(self.numbers())
    }
}

/// By number: the place of a row, and how many there are.
#[derive(Default)]
struct Counts(Vec<((usize, usize), u64)>);

impl Counts {
    fn add(&mut self, place: (usize, usize), number: u32) {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, ((usize::MAX, 0), 0));
        }
        if let Some(slot) = self.0.get_mut(at) {
            *slot = (place, slot.1 + 1);
        }
    }

    fn of(&self, number: u32) -> ((usize, usize), u64) {
        // default: there is no row
        self.0.get(number as usize).copied().unwrap_or(((usize::MAX, 0), 0))
    }
}

/// Whether there is a row for each number.
fn has_rows(answers: &Answers, numbers: &[u32]) -> Result<Values> {
    let mut found = Counts::default();
    answers.rows().for_each(|(place, number)| found.add(place, number));
    let mut column = Column::empty(DataType::Bool);
    for number in numbers {
        column.push(match *number {
            NONE => ValueRef::Null,
            number => ValueRef::Bool(found.of(number).1 > 0),
        })?;
    }
    Ok(Values { column, labels: None })
}

/// The answers with columns called `a0`, `a1`, … and `outer`.
fn called_answers(answers: Materialised) -> Materialised {
    let fields = answers.schema().fields();
    let last = fields.len().saturating_sub(1);
    let name = |(at, field): (usize, &Field)| {
        let name = if at == last { "outer".to_owned() } else { format!("a{at}") };
        Field { name, ..field.clone() }
    };
    let schema = Schema::of_fields(fields.iter().enumerate().map(name).collect());
    answers.with_schema(schema)
}

/// For each pair of a row and the values it asks for: what decides of the comparisons, how many are
/// unknown, and the number of the pair.
fn comparison(holds: Expr, is_any: bool) -> Query {
    let field = |table: &str, name: &str| Expr::Field(format!("{table}.{name}"));
    let same = field(PAIRS, "outer").binary(Operator::Eq, field(ANSWERS, "outer"));
    let mut query = Query::table(PAIRS);
    query.joins.push(Join { on: Some(same), ..Join::cross(Relation::table(ANSWERS)) });
    let decides = if is_any { Aggregate::BoolOr } else { Aggregate::BoolAnd };
    query.select(Expr::aggregate(decides, holds.clone()));
    let is_unknown = Expr::Apply(Operator::IsNull, vec![holds]);
    query.select(Expr::aggregate(Aggregate::CountIf, is_unknown));
    query.select(field(PAIRS, "number"));
    query.group_by = vec![field(PAIRS, "number")];
    query
}

/// A column cut as some batches are.
fn in_batches(column: &Column, batches: &[Batch]) -> Result<Vec<Column>> {
    let mut start = 0;
    let part = |batch: &Batch| {
        let rows = start..start + batch.len();
        start = rows.end;
        let places = rows.map(|row| (0, row));
        collect_column(column.data_type, &[column], places, false)
    };
    batches.iter().map(part).collect()
}
