//! Conditions of WHERE on the answer of a query in place of a table: the query tests them itself,
//! so that it reads, joins and groups fewer rows. Above it they are tested as well.
//!
//! ```text
//! FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS q WHERE q.k = 5 AND q.n > 1
//!       SELECT k, count(*) AS n FROM t WHERE k = 5 GROUP BY k
//! FROM (SELECT k FROM t UNION SELECT j FROM u) AS q WHERE q.k = 5
//!       SELECT k FROM t WHERE k = 5 UNION SELECT j FROM u WHERE j = 5
//! ```
//!
//! Only comparisons with constants go down, and only on columns that are fields, or steps of time
//! by which the query groups: these mean below what they mean above. Groups are left out as a
//! whole, by what all their rows have in common. Not so rows of the right of a left join, which
//! would get NULLs instead, nor those of a query that shows some of its rows: it would show others.

use std::borrow::Cow;

use esker_format::DataType;
use esker_vfs::sabotage::Bug;

use super::{Context, condition};
use crate::Query;
use crate::model::{Expr, Function, Join, JoinKind, Operator, Relation, SelectItem, SetOperation};
use crate::options::JoinOrder;

/// The conditions of a query that what it reads may test.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushdown {
    conditions: Vec<Expr>,
    /// Which relations may test them, by their numbers.
    may_test: Vec<bool>,
}

impl Pushdown {
    /// Those of a query whose relations are joined so.
    pub(super) fn of(query: &Query, joins: &[Join]) -> Self {
        let mut all = Vec::new();
        query.filter.iter().for_each(|filter| condition::flatten(filter.clone(), &mut all));
        let conditions = all.into_iter().filter(is_comparison).collect();
        let is_inner =
            |join: &Join| join.kind == JoinKind::Inner || Bug::ConditionBelowOuterJoin.is_planted();
        let may_test = std::iter::once(true).chain(joins.iter().map(is_inner)).collect();
        Self { conditions, may_test }
    }

    /// The query in place of relation number `number`, with the conditions on its columns, of which
    /// the first have other names.
    pub(super) fn tested_by<'q>(
        &self,
        query: &'q Query,
        number: usize,
        relation: &Relation,
        columns: &[&[String]],
        context: &Context<'_, '_>,
    ) -> Cow<'q, Query> {
        let is_alone = self.may_test.len() == 1;
        let rewrites = context.options.join_order != JoinOrder::AsWritten;
        // default: a query of which nothing is known tests nothing
        let may_test = rewrites && self.may_test.get(number).copied().unwrap_or_default();
        let below: Vec<&Expr> = match may_test {
            true => self.conditions.iter().collect(),
            false => Vec::new(),
        };
        if below.is_empty() {
            return Cow::Borrowed(query);
        }
        let mut pushed = query.clone();
        for condition in below {
            let column = |name: &str| column(name, relation.name(), is_alone);
            let mut condition = condition.clone();
            // Each name as that of a column alone.
            if map_fields(&mut condition, &column).is_some() {
                push(&mut pushed, &condition, columns, context);
            }
        }
        Cow::Owned(pushed)
    }
}

/// The column of a relation that a name means.
fn column(name: &str, relation: &str, is_alone: bool) -> Option<String> {
    let (first, rest) = match name.split_at_checked(relation.len()) {
        Some((first, rest)) => (first, rest.strip_prefix('.')),
        None => ("", None),
    };
    match rest {
        Some(column) if !relation.is_empty() && first.eq_ignore_ascii_case(relation) => {
            Some(column.to_owned())
        }
        _ if is_alone => Some(name.to_owned()),
        _ => None,
    }
}

/// Adds a condition on columns to a query, where it means the same there.
fn push(
    query: &mut Query,
    condition: &Expr,
    columns: &[&[String]],
    context: &Context<'_, '_>,
) -> Option<()> {
    let has_own_rows = !query.values.is_empty() || query.call.is_some();
    if query.is_cut() || !query.distinct_on.is_empty() || has_own_rows {
        return None;
    }
    if query.set.is_some() {
        return push_into_set(query, condition, columns, context);
    }
    if !query.grouping_sets.is_empty() || !query.exprs().all(is_known) {
        return None;
    }
    let mut condition = condition.clone();
    replace_fields(&mut condition, &|name| told(query, place(query, name, columns)?))?;
    query.filter = Some(match query.filter.take() {
        Some(filter) => filter.and(condition),
        None => condition,
    });
    Some(())
}

/// A column of a query, where a condition on it may be tested of the rows that are read: a field,
/// or a step of time by which the query groups. Such a step may fail, so that it is tested last:
/// of rows that pass the others.
fn told(query: &Query, at: usize) -> Option<Expr> {
    let expr = &query.select.get(at)?.expr;
    let is_key = || query.group_by.contains(expr) || query.group_by.contains(&Expr::Item(at + 1));
    match expr {
        Expr::Field(_) if !query.is_grouped() || is_key() => Some(expr.clone()),
        Expr::Call(Function::DateTrunc | Function::DateBin, operands)
            if operands.iter().all(|of| matches!(of, Expr::Field(_) | Expr::Literal(_)))
                && query.filter.iter().all(is_comparison)
                && is_key() =>
        {
            Some(expr.clone())
        }
        _ => None,
    }
}

/// Puts other expressions in the places of fields; `None` where one has none.
fn replace_fields(expr: &mut Expr, other: &dyn Fn(&str) -> Option<Expr>) -> Option<()> {
    if let Expr::Field(name) = expr {
        *expr = other(name)?;
        return Some(());
    }
    expr.operands_mut().into_iter().try_for_each(|operand| replace_fields(operand, other))
}

/// Adds a condition to all queries of a set operation, where its columns have one type in all.
fn push_into_set(
    query: &mut Query,
    condition: &Expr,
    columns: &[&[String]],
    context: &Context<'_, '_>,
) -> Option<()> {
    if !query.order_by.is_empty() || !query.with.is_empty() {
        return None;
    }
    let set: &mut SetOperation = query.set.as_mut()?;
    let mut names = Vec::new();
    condition.collect_names(&mut names);
    let mut places = Vec::new();
    for name in names {
        let at = place(&set.first, name, columns)?;
        let mut types = set.queries().map(|query| column_type(query, at, context));
        let first = types.next()??;
        if !types.all(|other| other == Some(first)) {
            return None;
        }
        places.push((name.to_owned(), at));
    }
    let mut pushed = set.clone();
    let rest = pushed.rest.iter_mut().map(|branch| &mut branch.query);
    for branch in std::iter::once(&mut pushed.first).chain(rest) {
        let mut own = condition.clone();
        let named = |name: &str| {
            let (_, at) = places.iter().find(|(known, _)| known == name)?;
            branch.select.get(*at).map(SelectItem::name)
        };
        map_fields(&mut own, &named)?;
        push(branch, &own, &[], context)?;
    }
    *set = pushed;
    Some(())
}

/// The type of a column that is a field of a query's one table.
fn column_type(query: &Query, at: usize, context: &Context<'_, '_>) -> Option<DataType> {
    let Expr::Field(name) = &query.select.get(at)?.expr else { return None };
    if !query.is_plain() || context.named(&query.table).is_some() {
        return None;
    }
    let (_, schema) = context.table(&query.table).ok()?;
    let data_type = schema.fields().get(schema.position(name)?)?.data_type;
    (data_type != DataType::Enum).then_some(data_type)
}

/// The place of a column among those that a query selects.
fn place(query: &Query, name: &str, columns: &[&[String]]) -> Option<usize> {
    let shows_all = |item: &SelectItem| matches!(item.expr, Expr::AllFields(_));
    if query.select.iter().any(shows_all) {
        return None;
    }
    let mut names: Vec<String> = query.select.iter().map(|item| item.name()).collect();
    for renamed in columns {
        names.iter_mut().zip(*renamed).for_each(|(name, new)| name.clone_from(new));
    }
    let is_it = |known: &&String| known.eq_ignore_ascii_case(name);
    let found = names.iter().position(|known| is_it(&known));
    found.filter(|_| names.iter().filter(is_it).count() == 1)
}

/// Gives the fields of an expression other names; `None` where one has none.
fn map_fields(expr: &mut Expr, name_of: &dyn Fn(&str) -> Option<String>) -> Option<()> {
    if let Expr::Field(name) = expr {
        *name = name_of(name)?;
        return Some(());
    }
    expr.operands_mut().into_iter().try_for_each(|operand| map_fields(operand, name_of))
}

/// Whether a condition compares fields with constants, so that testing it cannot fail.
fn is_comparison(expr: &Expr) -> bool {
    let is_constant = |expr: &Expr| matches!(expr, Expr::Literal(_) | Expr::Parameter(_));
    match expr {
        Expr::Apply(Operator::And | Operator::Or | Operator::Not, operands) => {
            operands.iter().all(is_comparison)
        }
        Expr::Apply(Operator::IsNull | Operator::IsNotNull, operands) => {
            operands.iter().all(|operand| matches!(operand, Expr::Field(_)))
        }
        Expr::Apply(operator, operands) => {
            let is_infix = matches!(
                operator,
                Operator::Eq
                    | Operator::Neq
                    | Operator::Lt
                    | Operator::Lte
                    | Operator::Gt
                    | Operator::Gte
            );
            let is_list = matches!(
                operator,
                Operator::In | Operator::NotIn | Operator::Between | Operator::NotBetween
            );
            match operands.as_slice() {
                [Expr::Field(_), other] | [other, Expr::Field(_)] if is_infix => is_constant(other),
                [Expr::Field(_), others @ ..] if is_list => others.iter().all(is_constant),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether what an expression shows of a row depends on that row, or its group, alone.
fn is_known(expr: &Expr) -> bool {
    match expr {
        Expr::Field(_)
        | Expr::Item(_)
        | Expr::Literal(_)
        | Expr::Parameter(_)
        | Expr::Answer(_)
        | Expr::Subquery { .. } => true,
        Expr::Apply(_, operands) | Expr::Call(_, operands) | Expr::Row(operands) => {
            !expr.varies() && operands.iter().all(is_known)
        }
        Expr::Cast(operand, _) => is_known(operand),
        Expr::Aggregate { operand, order, .. } => {
            operand.iter().all(|operand| is_known(operand))
                && order.iter().all(|key| is_known(&key.expr))
        }
        _ => false,
    }
}
