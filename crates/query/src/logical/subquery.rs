//! Queries inside expressions.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{DataType, Field, Labels, Value};

use super::arrange::arrange;
use super::condition::{self, Condition};
use super::dependent::{Dependents, Place};
use super::joining::{SideState, Wanted};
use super::member;
use super::names::Names;
use super::reading::Reading;
use super::{Answered, Context};
use crate::bind::bind_row;
use crate::model::{
    Answer, Expr, JoinKind, Operator, OrderBy, Relation, RowCount, SelectItem, SubqueryForm,
};
use crate::{Error, Query, Result, Source, Unnesting, bind};

/// As many rows are compared with one after another.
const ROWS_MAX: usize = 1_000;

/// A condition of WHERE on a query that names fields of the query around it.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    is_negated: bool,
    operand: Option<Expr>,
    query: Query,
}

/// The same, ready to be joined.
pub(super) struct SemiJoin<'a, 'o> {
    kind: JoinKind,
    right: SideState<'a, 'o>,
    /// The names of both queries.
    names: Names,
    conditions: Vec<Condition>,
}

/// What is left to do for the subqueries of a query once those that stand alone are answered.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Conditions that are joins.
    pub(super) semis: Vec<Correlated>,
    pub(super) dependents: Dependents,
}

impl<'a, 'o> Context<'a, 'o> {
    /// Runs the subqueries of a query and puts what they answer in their places. What is asked for
    /// each row is taken out and returned.
    pub(super) fn settle(&self, query: &mut Query, names: &Names) -> Result<Settled> {
        let mut settled = Settled::default();
        // A column is named after what was written, whatever that answers.
        for item in query.select.iter_mut().filter(|item| item.expr.has_subquery()) {
            item.alias = Some(item.name());
        }
        let (mut conjuncts, mut kept) = (Vec::new(), Vec::new());
        let filter = query.filter.take_if(|filter| filter.has_subquery());
        filter.into_iter().for_each(|filter| condition::flatten(filter, &mut conjuncts));
        let has_filter = !conjuncts.is_empty();
        conjuncts.extend(self.take_dependent_on(&mut query.joins, names)?);
        for mut conjunct in conjuncts {
            if let Some(one) = self.as_correlated(&conjunct, names)? {
                settled.semis.push(one);
                continue;
            }
            let (before, place) = (settled.dependents.all.len(), Place::default());
            self.replace_in(&mut conjunct, names, &place, &mut Some(&mut settled.dependents))?;
            match settled.dependents.all.len() > before || reads_any(&conjunct, &settled) {
                true => settled.dependents.filter.push(conjunct),
                false => kept.push(conjunct),
            }
        }
        if has_filter {
            query.filter = condition::all(kept);
        }
        settled.dependents.of_filter = settled.dependents.all.len();
        for on in query.joins.iter_mut().filter_map(|join| join.on.as_mut()) {
            self.replace_in(on, names, &Place::default(), &mut None).map_err(|e| e.at("ON"))?;
        }
        let of_groups = Place::of_groups_of(query);
        let dependents = &mut Some(&mut settled.dependents);
        for expr in query.group_by.iter_mut().chain(&mut query.distinct_on) {
            self.replace_in(expr, names, &Place::default(), dependents)?;
        }
        let items = query.select.iter_mut().map(|item| &mut item.expr);
        let keys = query.order_by.iter_mut().map(|key| &mut key.expr);
        for expr in items.chain(&mut query.having).chain(&mut query.qualify).chain(keys) {
            self.replace_in(expr, names, &of_groups, dependents)?;
        }
        Ok(settled)
    }

    /// The condition as one that a semi join or an anti join answers.
    fn as_correlated(&self, expr: &Expr, names: &Names) -> Result<Option<Correlated>> {
        match expr {
            Expr::Apply(Operator::Not, operands) => {
                let Some(Expr::Subquery { .. }) = operands.first() else { return Ok(None) };
                let inner = operands.first().map(|inner| self.as_correlated(inner, names));
                let inner = inner.transpose()?.flatten();
                Ok(inner.map(|one| Correlated { is_negated: !one.is_negated, ..one }))
            }
            Expr::Subquery {
                form: form @ (SubqueryForm::Exists | SubqueryForm::In),
                operand,
                query,
            } => {
                if operand.as_ref().is_some_and(|operand| operand.has_subquery()) {
                    return Ok(None);
                }
                // The rows of several columns are no list of values.
                let is_row = matches!(operand.as_deref(), Some(Expr::Row(_)));
                let query = match self.outer_name(query, names)? {
                    Some(_) if self.is_joined(query, *form, names)? => (**query).clone(),
                    Some(_) => return Ok(None),
                    None if is_row => Query::from(Relation::query((**query).clone(), "rows")),
                    None => return Ok(None),
                };
                let operand = operand.as_deref().cloned();
                Ok(Some(Correlated { is_negated: false, operand, query }))
            }
            _ => Ok(None),
        }
    }

    /// Whether the rows of a query, which names fields of the one around it, are as they are the
    /// right side of a join with that.
    fn is_joined(&self, query: &Query, form: SubqueryForm, names: &Names) -> Result<bool> {
        let is_list = form == SubqueryForm::In;
        let is_rewritten = self.options.unnesting == Unnesting::WherePossible;
        if !is_rewritten || has_groups(query, is_list) || !query.with.is_empty() {
            return Ok(false);
        }
        // Of the query around it, what is read in FROM names nothing.
        let bare = Query { select: vec![item(Expr::literal(1i64))], ..Query::default() };
        let from = Query {
            table: query.table.clone(),
            derived: query.derived.clone(),
            alias: query.alias.clone(),
            columns: query.columns.clone(),
            joins: query.joins.clone(),
            ..bare
        };
        if query.joins.iter().any(|join| join.relation.lateral)
            || self.outer_name(&from, names)?.is_some()
        {
            return Ok(false);
        }
        // Nor do the queries that it asks itself, and they name none of its own fields.
        let own = self.look_names(query)?.within(names);
        for expr in query.exprs() {
            if self.is_dependent(expr, &own)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names of a query, without running what it reads.
    pub(super) fn look_names(&self, query: &Query) -> Result<Names> {
        let look = self.looking();
        look.beside(query, || {
            let arranged = arrange(query);
            let opened = look.opened(arranged, None, &Reading::default(), None)?;
            let mut names = member::names(&opened.members, &opened.joins)?.shown_in(opened.star);
            member::merge(&opened.joins, &mut names)?;
            Ok(names)
        })
    }

    /// Puts what subqueries answer in their places, where no row is at hand to ask for.
    pub(super) fn replace(&self, expr: &mut Expr, names: &Names) -> Result<()> {
        self.replace_in(expr, names, &Place::default(), &mut None)
    }

    /// Puts what a subquery that stands alone answers in its place.
    pub(super) fn replace_known(&self, expr: &mut Expr) -> Result<()> {
        let Expr::Subquery { form, operand, query } = expr else { return Ok(()) };
        let mut operand = || operand.take().map_or(Expr::literal(Value::Null), |operand| *operand);
        let new = match form {
            SubqueryForm::Exists => self.exists(query)?,
            SubqueryForm::Scalar => self.scalar(query)?,
            SubqueryForm::In => self.among(operand(), query)?,
            SubqueryForm::Any(operator) => self.compared(operand(), *operator, query, true)?,
            SubqueryForm::All(operator) => self.compared(operand(), *operator, query, false)?,
        };
        *expr = new;
        Ok(())
    }

    fn exists(&self, query: &Query) -> Result<Expr> {
        let mut one = query.clone();
        if one.limit.is_none() {
            one.limit = Some(RowCount::Number(1));
        }
        let Answered { rows, plan, .. } = self.answer(&one)?;
        self.note(query, plan);
        if !self.runs {
            return Ok(unanswered(format!("EXISTS ({query})"), DataType::Bool, None));
        }
        Ok(Expr::literal(rows.row_count() > 0))
    }

    fn scalar(&self, query: &Query) -> Result<Expr> {
        let Answered { rows, plan, .. } = self.answer(query)?;
        self.note(query, plan);
        let column = only_column(&rows, query)?;
        let labels = column.labels.clone();
        if !self.runs {
            return Ok(unanswered(format!("({query})"), column.data_type, labels));
        }
        if rows.row_count() > 1 {
            let count = rows.row_count();
            return Err(Error::invalid(format!(
                "expected one row at most of the subquery, found {count}: ({query})"
            )));
        }
        let value = rows.values(0).into_iter().next().unwrap_or_default();
        Ok(Expr::Answer(Arc::new(Answer::new(vec![value], column.data_type, labels))))
    }

    /// Whether a row is among those of a query, as a list.
    fn among_rows(&self, operands: Vec<Expr>, query: &Query) -> Result<Expr> {
        let Answered { rows, plan, .. } = self.answer(query)?;
        self.note(query, plan);
        let fields = rows.schema().fields();
        if fields.len() != operands.len() {
            return Err(several_columns(operands.len(), fields.len(), query));
        }
        let equal = |values: Vec<Expr>| {
            let pairs = operands.iter().cloned().zip(values);
            let same = pairs.map(|(operand, value)| operand.binary(Operator::Eq, value));
            Expr::Apply(Operator::And, same.collect())
        };
        if !self.runs {
            let value = |field: &Field| {
                unanswered(query.to_string(), field.data_type, field.labels.clone())
            };
            return Ok(equal(fields.iter().map(value).collect()));
        }
        let columns: Vec<Vec<Value>> = (0..fields.len()).map(|at| rows.values(at)).collect();
        let row = |at: usize| columns.iter().filter_map(|c| c.get(at)).cloned().collect();
        let mut all: Vec<Vec<Value>> = (0..rows.row_count()).map(row).collect();
        all.sort();
        all.dedup();
        if all.len() > ROWS_MAX {
            let count = all.len();
            return Err(Error::invalid(format!(
                "a row among those of a subquery: expected at most {ROWS_MAX} of them, found \
                 {count}, unless it is one of the conditions of WHERE that AND joins: {query}"
            )));
        }
        let any = all.into_iter().map(|row| {
            let value = |(value, field): (Value, &Field)| {
                let (data_type, labels) = (field.data_type, field.labels.clone());
                Expr::Answer(Arc::new(Answer::new(vec![value], data_type, labels)))
            };
            equal(row.into_iter().zip(fields).map(value).collect())
        });
        let any: Vec<Expr> = any.collect();
        Ok(if any.is_empty() { Expr::literal(false) } else { Expr::Apply(Operator::Or, any) })
    }

    /// Whether an operand is among the values of a query, as a list.
    pub(super) fn among(&self, operand: Expr, query: &Query) -> Result<Expr> {
        let operand = match operand {
            Expr::Row(operands) => return self.among_rows(operands, query),
            operand => operand,
        };
        let Answered { rows, plan, .. } = self.answer(query)?;
        self.note(query, plan);
        let column = only_column(&rows, query)?;
        let labels = column.labels.clone();
        if !self.runs {
            let values = unanswered(query.to_string(), column.data_type, labels);
            return Ok(Expr::Apply(Operator::In, vec![operand, values]));
        }
        let mut values = rows.values(0);
        values.sort();
        values.dedup();
        let mut charge = self.options.memory().charge();
        // Here, and where they are compared with.
        charge.set(values.len().saturating_mul(2 * size_of::<Value>()))?;
        charge.keep();
        let answer = Answer::new(values, column.data_type, labels);
        Ok(Expr::Apply(Operator::In, vec![operand, Expr::Answer(Arc::new(answer))]))
    }

    /// Makes ready what a correlated subquery reads, and notes which fields of the query around it
    /// are needed.
    pub(super) fn prepare(
        &self,
        one: Correlated,
        outer: &Names,
        needed: &mut BTreeSet<usize>,
    ) -> Result<SemiJoin<'a, 'o>> {
        let with = Query { with: one.query.with.clone(), ..Query::default() };
        self.beside(&with, || self.prepare_here(one, outer, needed))
    }

    fn prepare_here(
        &self,
        one: Correlated,
        outer: &Names,
        needed: &mut BTreeSet<usize>,
    ) -> Result<SemiJoin<'a, 'o>> {
        let mut query = one.query;
        let opened = self.opened(arrange(&query), None, &Reading::default(), None)?;
        let members = opened.members;
        let mut own = member::names(&members, &opened.joins)?.shown_in(opened.star);
        own.make_full();
        query.joins = opened.joins;
        let using = member::merge(&query.joins, &mut own)?;
        let nested = self.settle(&mut query, &own)?;
        if !nested.semis.is_empty() || !nested.dependents.is_empty() {
            return Err(Error::invalid(format!("a semi join with a query that is none: {query}")));
        }
        let clauses = member::on_clauses(&mut query, using, &own)?;
        let names = own.within(outer);
        let [inside, mut across] = split(query.filter.take(), &own, &names)?;
        self.check_shown(&query, &own, &names)?;
        if let Some(mut operand) = one.operand {
            names.qualify_outer(&mut operand)?;
            let operands = operand.into_row();
            let items = items(&query, &own, operands.len())?;
            for (operand, mut item) in operands.into_iter().zip(items) {
                names.qualify(&mut item, None, &mut BTreeSet::new()).map_err(|e| e.at("SELECT"))?;
                let is_null = |e: &Expr| Expr::Apply(Operator::IsNull, vec![e.clone()]);
                let either_null = is_null(&operand).or(is_null(&item));
                let same = operand.binary(Operator::Eq, item);
                // NOT IN keeps a row only where every comparison is false.
                across.push(if one.is_negated { same.or(either_null) } else { same });
            }
        }
        let (schema, inputs) = (names.schema(), &self.options.inputs);
        let bind = |expr| Condition::new("WHERE", expr, &schema, &names, inputs);
        let mut conditions = across.into_iter().map(bind).collect::<Result<Vec<_>>>()?;
        let start = outer.field_count();
        let mut own_fields = BTreeSet::new();
        for field in conditions.iter().flat_map(|c| &c.fields) {
            if *field < start {
                needed.insert(*field)
            } else {
                own_fields.insert(*field - start)
            };
        }
        let filter = condition::all(inside);
        let (mut right, rest) = self.join(members, &own, clauses, filter, &own_fields)?;
        right.move_fields(start);
        for expr in rest {
            let condition = bind(expr)?;
            match condition.is_fallible {
                true => conditions.push(condition),
                false => right.filter.push(condition),
            }
        }
        let kind = if one.is_negated { JoinKind::Anti } else { JoinKind::Semi };
        Ok(SemiJoin { kind, right, names, conditions })
    }

    /// Refuses what a correlated subquery selects, or orders by, and no field has.
    fn check_shown(&self, query: &Query, own: &Names, names: &Names) -> Result<()> {
        let (schema, inputs) = (names.schema(), &self.options.inputs);
        let full = |expr: &Expr| {
            let mut expr = expr.clone();
            names.qualify(&mut expr, None, &mut BTreeSet::new()).map(|()| expr)
        };
        let mut items = Vec::with_capacity(query.select.len());
        if query.select.is_empty() {
            items.extend(own.items("")?);
        }
        for SelectItem { expr, alias } in &query.select {
            if let Expr::AllFields(table) = expr {
                items.extend(own.items(table)?);
                continue;
            }
            let expr = full(expr).map_err(|e| e.at("SELECT"))?;
            bind_row(&expr, &schema, inputs).map_err(|e| e.at("SELECT"))?;
            items.push(SelectItem { expr, alias: alias.clone() });
        }
        let shown = Query { select: items, ..Query::default() };
        for OrderBy { expr, .. } in &query.order_by {
            let is_shown = match expr {
                Expr::Item(place) => shown.item("ORDER BY", *place).is_ok(),
                Expr::Field(name) => {
                    bind::named(name, &shown.select).map_err(|e| e.at("ORDER BY"))?.is_some()
                }
                _ => false,
            };
            if !is_shown {
                let expr = bind::replace_aliases(&full(expr)?, &schema, &shown.select);
                let expr = expr.and_then(|expr| bind_row(&expr, &schema, inputs));
                expr.map_err(|e| e.at("ORDER BY"))?;
            }
        }
        Ok(())
    }

    /// Leaves the rows for which a correlated subquery is true.
    pub(super) fn semi_join(
        &self,
        left: SideState<'a, 'o>,
        semi: SemiJoin<'a, 'o>,
    ) -> Result<SideState<'a, 'o>> {
        let SemiJoin { kind, right, names, conditions } = semi;
        let field = |number| names.field(number);
        let wanted = Wanted { kind, fields: &BTreeSet::new(), field: &field, renames: false };
        self.join_sides(left, right, conditions, &wanted).map(|(side, _)| side)
    }
}

/// The conditions on a subquery's own rows, and those that name fields of the query around it.
fn split(filter: Option<Expr>, own: &Names, names: &Names) -> Result<[Vec<Expr>; 2]> {
    let (mut conjuncts, mut inside, mut across) = (Vec::new(), Vec::new(), Vec::new());
    filter.into_iter().for_each(|filter| condition::flatten(filter, &mut conjuncts));
    for mut conjunct in conjuncts {
        let mut all = Vec::new();
        conjunct.collect_names(&mut all);
        let mut is_inside = true;
        for name in all {
            is_inside &= own.find(name, None)?.is_some();
        }
        let scope = if is_inside { own } else { names };
        scope.qualify(&mut conjunct, None, &mut BTreeSet::new()).map_err(|e| e.at("WHERE"))?;
        if is_inside { inside.push(conjunct) } else { across.push(conjunct) }
    }
    Ok([inside, across])
}

/// What stands for a subquery that has not run.
pub(super) fn unanswered(text: String, data_type: DataType, labels: Option<Arc<Labels>>) -> Expr {
    Expr::Answer(Arc::new(Answer::unanswered(text, data_type, labels)))
}

/// The one column.
pub(super) fn only_column<'r>(rows: &'r dyn Source, query: &Query) -> Result<&'r Field> {
    match rows.schema().fields() {
        [only] => Ok(only),
        fields => Err(several_columns(1, fields.len(), query)),
    }
}

/// So many select items.
fn items(query: &Query, names: &Names, count: usize) -> Result<Vec<Expr>> {
    let items = names.expanded(&query.select)?;
    match items.len() == count {
        true => Ok(items.into_iter().map(|item| item.expr).collect()),
        false => Err(several_columns(count, items.len(), query)),
    }
}

pub(super) fn several_columns(wanted: usize, found: usize, query: &Query) -> Error {
    let wanted = match wanted {
        1 => "one column".to_owned(),
        wanted => format!("{wanted} columns"),
    };
    Error::invalid(format!("expected {wanted} of the subquery, found {found}: ({query})"))
}

/// Whether a query is more than a selection of rows.
fn has_groups(query: &Query, is_list: bool) -> bool {
    let has_limit = match &query.limit {
        None => false,
        // Which values are left of each row's list is not worked out.
        Some(_) if is_list => true,
        Some(RowCount::Number(count)) => *count == 0,
        Some(RowCount::Parameter(_)) => true,
    };
    !query.values.is_empty()
        || query.call.is_some()
        || query.set.is_some()
        || query.is_grouped()
        || query.has_windows()
        || has_limit
        || query.offset != RowCount::Number(0)
        || !query.distinct_on.is_empty() && is_list
}

fn item(expr: Expr) -> SelectItem {
    SelectItem { expr, alias: None }
}

/// Whether a condition reads a column that a subquery has become.
fn reads_any(condition: &Expr, settled: &Settled) -> bool {
    let mut reads = false;
    condition.each_field(&mut |name| {
        reads |= settled.dependents.all.iter().any(|one| one.column == name);
    });
    reads
}
