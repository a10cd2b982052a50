//! A query that names values of the query around it, as one that is asked once for all of them.
//!
//! The values are a relation, each combination with a number (see [`Outer`]), and go down to where
//! they are named: what comes of it has the number as its last column.
//!
//! | the query | becomes |
//! |---|---|
//! | rows of tables | the values beside the tables |
//! | `GROUP BY`, `DISTINCT` | the same by the number, too |
//! | aggregates without `GROUP BY` | groups by the number, left-joined to the values |
//! | `UNION`, `INTERSECT`, `EXCEPT`, `VALUES` | the same of what its queries become |
//! | a query in `FROM` that names them | what that becomes, equal in the number |
//! | `ORDER BY … LIMIT 1` | the first row by the number |
//!
//! Of values without a row, counts are 0 and other aggregates NULL.
//!
//! What has another LIMIT or window functions, names them in WITH, or below a join in parentheses,
//! stays as it is.

use super::Context;
use super::outer::Outer;
use crate::bind::named;
use crate::model::{
    Aggregate, Expr, Function, Join, JoinKind, Operator, Relation, RowCount, SelectItem,
    SetOperation, SetOperator, SubqueryForm, TableCall,
};
use crate::{Query, Result};

/// How much of a query is shown.
enum Cut {
    All,
    /// The first row only.
    First,
    /// What is not worked out for each combination of values.
    Other,
}

impl Context<'_, '_> {
    /// A query with the number of the values that each row is for as its last column; `None` where
    /// there is no such rewrite.
    pub(super) fn unnested(
        &self,
        query: &Query,
        outer: &Outer,
        form: Option<SubqueryForm>,
    ) -> Result<Option<Query>> {
        let is_test = form == Some(SubqueryForm::Exists);
        let cut = match Cut::of(query) {
            // One row is as good as several.
            Cut::First if is_test => Cut::All,
            cut => cut,
        };
        if query.with.iter().any(|with| outer.is_in(&with.query)) {
            return Ok(None);
        }
        let with = query.with.clone();
        let query = Query { limit: None, with: Vec::new(), ..query.clone() };
        let shell = Query { with: with.clone(), ..Query::default() };
        let unnested = self.beside(&shell, || match cut {
            Cut::Other => Ok(None),
            Cut::All if query.set.is_some() => self.unnested_set(&query, outer),
            Cut::All if !query.values.is_empty() => Ok(Some(written(&query, outer))),
            Cut::All if let Some(call) = &query.call => Ok(Some(called(call, outer))),
            Cut::All if is_test && is_plain(&query) => {
                let numbers = Query { select: Vec::new(), order_by: Vec::new(), ..query.clone() };
                let numbers = self.beside_values(numbers, outer)?;
                Ok(numbers.map(|numbers| Query { distinct: true, ..numbers }))
            }
            Cut::All if is_one_group(&query) => self.unnested_group(query.clone(), outer),
            Cut::First if is_one_group(&query) => self.unnested_group(query.clone(), outer),
            Cut::First if is_plain(&query) && !query.distinct => {
                let query = self.with_items(&query, outer)?;
                let first = self.beside_values(query, outer)?;
                Ok(first.map(|first| Query { distinct_on: vec![outer.number()], ..first }))
            }
            Cut::First => Ok(None),
            Cut::All => {
                let query = Query { order_by: Vec::new(), ..self.with_items(&query, outer)? };
                self.beside_values(query, outer)
            }
        })?;
        Ok(unnested.map(|unnested| Query { with, ..unnested }))
    }

    /// The same with its select items written out.
    fn with_items(&self, query: &Query, outer: &Outer) -> Result<Query> {
        let is_star = |item: &SelectItem| matches!(item.expr, Expr::AllFields(_));
        if !query.select.is_empty() && !query.select.iter().any(is_star) {
            return Ok(query.clone());
        }
        let mut names = self.look_names(&outer.looked_at(query))?;
        names.make_full();
        Ok(Query { select: names.expanded(&query.select)?, ..query.clone() })
    }

    fn unnested_set(&self, query: &Query, outer: &Outer) -> Result<Option<Query>> {
        let Some(mut set) = query.set.clone() else { return Ok(None) };
        for branch in set.queries_mut() {
            let Some(unnested) = self.unnested(branch, outer, None)? else { return Ok(None) };
            *branch = unnested;
        }
        Ok(Some(Query { set: Some(set), ..Query::default() }))
    }

    /// A query that reads the values beside what it reads, and shows their number last.
    fn beside_values(&self, query: Query, outer: &Outer) -> Result<Option<Query>> {
        let Some(mut query) = self.over_values(query, outer)? else { return Ok(None) };
        query.select.push(SelectItem { expr: outer.number(), alias: Some(outer.relation.clone()) });
        if !query.group_by.is_empty() {
            query.group_by.push(outer.number());
            let named = outer.named_in(&query);
            query.group_by.extend(named);
        }
        if !query.distinct_on.is_empty() {
            query.distinct_on.push(outer.number());
        }
        Ok(Some(query))
    }

    /// A query with the values before all that it reads.
    fn over_values(&self, query: Query, outer: &Outer) -> Result<Option<Query>> {
        let mut relations: Vec<Join> =
            query.first_relation().map(Join::cross).into_iter().collect();
        relations.extend(query.joins.iter().cloned());
        let names_values =
            |relation: &Relation| relation.query.as_ref().is_some_and(|query| outer.is_in(query));
        let is_outer = |join: &Join| matches!(join.kind, JoinKind::Right | JoinKind::Full);
        if query.joins.iter().any(is_outer) {
            let on_names = |join: &Join| join.on.as_ref().is_some_and(|on| outer.is_in_expr(on));
            let mut all = relations.iter();
            if all.any(|join| names_any(&join.relation, outer) || on_names(join)) {
                return Ok(None);
            }
            let Some(mut whole) = query.first_relation() else { return Ok(None) };
            whole.joins.clone_from(&query.joins);
            relations = vec![Join::cross(whole)];
        }
        let mut joins = Vec::with_capacity(relations.len());
        for (i, mut join) in relations.into_iter().enumerate() {
            if join.relation.joins.iter().any(|within| {
                names_any(&within.relation, outer)
                    || within.on.as_ref().is_some_and(|on| outer.is_in_expr(on))
            }) {
                return Ok(None);
            }
            if names_values(&join.relation) && join.relation.as_call().is_some() {
                join.relation.lateral = true;
            } else if names_values(&join.relation) && !(join.relation.lateral && i > 0) {
                if !join.relation.joins.is_empty() {
                    return Ok(None);
                }
                let Some(within) = &join.relation.query else { return Ok(None) };
                let Some(unnested) = self.unnested(within, outer, None)? else { return Ok(None) };
                join.relation.query = Some(Box::new(unnested));
                let own = format!("{} {}", outer.relation, i + 1);
                let name = join.relation.alias.get_or_insert(own);
                let number = Expr::Field(outer.number_in(name));
                let is_same = outer.number().binary(Operator::Eq, number);
                join.on = Some(match join.on.take() {
                    Some(on) => on.and(is_same),
                    None => is_same,
                });
            }
            joins.push(join);
        }
        Ok(Some(Query {
            table: outer.relation.clone(),
            derived: None,
            alias: None,
            columns: Vec::new(),
            joins,
            ..query
        }))
    }

    /// Aggregates of all rows: groups by the number, beside the values, of which those without a
    /// row have aggregates of no rows.
    fn unnested_group(&self, query: Query, outer: &Outer) -> Result<Option<Query>> {
        let groups = format!("{} groups", outer.relation);
        let (mut aggregates, mut select) = (Vec::new(), query.select.clone());
        let having = query.having.clone().map(|having| match &having {
            Expr::Field(name) => match named(name, &select) {
                Ok(Some(at)) => select.get(at).map_or(having.clone(), |item| item.expr.clone()),
                _ => having,
            },
            _ => having,
        });
        let mut filter = having;
        for expr in select.iter_mut().map(|item| &mut item.expr).chain(&mut filter) {
            take_aggregates(expr, &groups, &mut aggregates);
        }
        let item = |(i, expr): (usize, Expr)| SelectItem { expr, alias: Some(column(i)) };
        let of_rows = Query {
            select: aggregates.into_iter().enumerate().map(item).collect(),
            having: None,
            order_by: Vec::new(),
            distinct: false,
            ..query
        };
        select.push(SelectItem { expr: outer.number(), alias: Some(outer.relation.clone()) });
        let mut joins = Vec::new();
        if !outer.is_in(&of_rows) {
            if !of_rows.select.is_empty() {
                joins.push(Join::cross(Relation::query(of_rows, groups)));
            }
        } else {
            // Without groups of its own it is by the number alone.
            let Some(mut of_rows) = self.over_values(of_rows, outer)? else { return Ok(None) };
            let number = SelectItem { expr: outer.number(), alias: Some(outer.relation.clone()) };
            of_rows.select.push(number);
            of_rows.group_by = vec![outer.number()];
            let other = Expr::Field(outer.number_in(&groups));
            let is_same = outer.number().binary(Operator::Eq, other);
            joins.push(Join::on(JoinKind::Left, Relation::query(of_rows, groups), is_same));
        }
        let table = outer.relation.clone();
        Ok(Some(Query { table, joins, select, filter, ..Query::default() }))
    }
}

impl Cut {
    fn of(query: &Query) -> Self {
        match (&query.limit, &query.offset) {
            // Partitions are of the rows for one combination of values.
            _ if query.has_windows() => Self::Other,
            // A set without keys has a group where there is no row.
            _ if query.may_group_by_nothing() => Self::Other,
            (None, RowCount::Number(0)) => Self::All,
            (Some(RowCount::Number(1)), RowCount::Number(0)) => Self::First,
            (Some(RowCount::Number(1..)), RowCount::Number(0)) if is_one_group(query) => {
                Self::First
            }
            _ => Self::Other,
        }
    }
}

/// Whether anything in a relation names the values.
fn names_any(relation: &Relation, outer: &Outer) -> bool {
    let within = |join: &Join| {
        names_any(&join.relation, outer) || join.on.as_ref().is_some_and(|on| outer.is_in_expr(on))
    };
    relation.query.as_ref().is_some_and(|query| outer.is_in(query))
        || relation.joins.iter().any(within)
}

/// Rows that are written out, as one query for each.
fn written(query: &Query, outer: &Outer) -> Query {
    let number = || SelectItem { expr: outer.number(), alias: Some(outer.relation.clone()) };
    let row = |row: &Vec<Expr>| {
        let item = |(i, expr): (usize, &Expr)| SelectItem {
            expr: expr.clone(),
            alias: Some(format!("column{}", i + 1)),
        };
        let select = row.iter().enumerate().map(item).chain([number()]).collect();
        Query { select, ..Query::table(&outer.relation) }
    };
    let mut rows = query.values.iter().map(row);
    let first = rows.next().unwrap_or_default();
    let branch = |query| crate::model::SetBranch { operator: SetOperator::Union, all: true, query };
    let rest: Vec<_> = rows.map(branch).collect();
    match rest.is_empty() {
        true => first,
        false => Query { set: Some(Box::new(SetOperation { first, rest })), ..Query::default() },
    }
}

/// The rows that a function makes, beside the values.
fn called(call: &TableCall, outer: &Outer) -> Query {
    let call = Relation::call(call.clone());
    let rows = SelectItem { expr: Expr::AllFields(call.name().to_owned()), alias: None };
    let number = SelectItem { expr: outer.number(), alias: Some(outer.relation.clone()) };
    let (select, joins) = (vec![rows, number], vec![Join::cross(call)]);
    Query { select, joins, ..Query::table(&outer.relation) }
}

/// Whether it shows rows as they are.
fn is_plain(query: &Query) -> bool {
    query.set.is_none()
        && query.values.is_empty()
        && query.call.is_none()
        && !query.is_grouped()
        && query.distinct_on.is_empty()
}

/// Whether it shows one row, of all rows.
fn is_one_group(query: &Query) -> bool {
    query.set.is_none()
        && query.values.is_empty()
        && query.call.is_none()
        && query.is_grouped()
        && query.group_by.is_empty()
        && query.grouping_sets.is_empty()
        && query.distinct_on.is_empty()
}

fn column(i: usize) -> String {
    format!("aggregate {}", i + 1)
}

/// Puts columns of groups in the places of aggregates.
fn take_aggregates(expr: &mut Expr, groups: &str, aggregates: &mut Vec<Expr>) {
    let Expr::Aggregate { function, .. } = expr else {
        let operands = expr.operands_mut();
        return operands.into_iter().for_each(|o| take_aggregates(o, groups, aggregates));
    };
    let function = *function;
    let known = aggregates.iter().position(|known| known == expr);
    let at = known.unwrap_or(aggregates.len());
    if known.is_none() {
        aggregates.push(expr.clone());
    }
    let field = Expr::Field(format!("{groups}.{}", column(at)));
    *expr = match counts(function) {
        true => Expr::call(Function::Coalesce, [field, Expr::literal(0i64)]),
        false => field,
    };
}

/// Whether an aggregate of no rows is 0.
fn counts(function: Aggregate) -> bool {
    use Aggregate as A;
    matches!(function, A::Count | A::CountIf | A::ApproxCountDistinct | A::RegrCount)
}
