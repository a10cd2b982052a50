//! Subqueries beside grouping sets: the groups become a query of their own, by the name of what it
//! reads, and the rest of the query asks that.
//!
//! ```text
//! SELECT a, (… t.a …) FROM t GROUP BY ROLLUP (a)
//! SELECT a, (… t.a …) FROM (SELECT a FROM t GROUP BY ROLLUP (a)) AS t
//! ```

use crate::Query;
use crate::bind::named;
use crate::model::{Expr, OrderBy, Relation, SelectItem, WindowFunction};

/// What the groups show, and where.
struct Groups {
    /// What the query reads is called so.
    relation: String,
    /// What a group shows, by the name of its column.
    columns: Vec<SelectItem>,
}

/// The same query over its groups; `None` where no subquery is beside grouping sets, and where it
/// reads more than one relation or groups by more than fields.
pub(super) fn over_groups(query: &Query) -> Option<Query> {
    let is_asked = |expr: &Expr| expr.has_subquery();
    let mut behind = query.select.iter().map(|item| &item.expr).chain(&query.having);
    let mut keys = query.order_by.iter().map(|key| &key.expr).chain(&query.qualify);
    let asks = behind.any(is_asked) || keys.any(is_asked);
    if query.grouping_sets.is_empty() || !asks || !query.joins.is_empty() {
        return None;
    }
    let relation = match (&query.alias, query.table.as_str()) {
        (Some(alias), _) => alias.clone(),
        (None, "") => return None,
        (None, table) => table.to_owned(),
    };
    let mut groups = Groups { relation, columns: Vec::new() };
    for key in &query.group_by {
        let field = groups.key(key, query)?;
        groups.columns.push(field);
    }
    let mut select = query.select.clone();
    for item in &mut select {
        if !matches!(item.expr, Expr::Field(_)) {
            item.alias = Some(item.name());
        }
        groups.replace(&mut item.expr)?;
    }
    let item = |expr: &Expr| match expr {
        Expr::Field(name) => named(name, &query.select).ok().flatten(),
        _ => None,
    };
    let meant = |expr: &Expr| match item(expr).and_then(|at| query.select.get(at)) {
        Some(item) => item.expr.clone(),
        None => expr.clone(),
    };
    let mut filter = query.having.as_ref().map(meant);
    let mut qualify = query.qualify.clone();
    filter.iter_mut().chain(&mut qualify).try_for_each(|expr| groups.replace(expr))?;
    let mut order_by: Vec<OrderBy> = query.order_by.clone();
    for key in order_by.iter_mut().filter(|key| item(&key.expr).is_none()) {
        groups.replace(&mut key.expr)?;
    }
    let of_groups = Query {
        select: groups.columns,
        having: None,
        qualify: None,
        distinct: false,
        order_by: Vec::new(),
        limit: None,
        offset: crate::model::RowCount::default(),
        with: Vec::new(),
        ..query.clone()
    };
    let rest = Query::from(Relation::query(of_groups, groups.relation));
    let Query { distinct, limit, offset, .. } = query.clone();
    Some(Query { select, filter, qualify, order_by, distinct, limit, offset, ..rest })
}

impl Groups {
    /// The field that a key is, by its name alone.
    fn key(&self, key: &Expr, query: &Query) -> Option<SelectItem> {
        let expr = match key {
            Expr::Item(place) => &query.item("GROUP BY", *place).ok()?.expr,
            key => key,
        };
        let Expr::Field(name) = expr else { return None };
        let (alias, is_new) = match name.split_once('.') {
            Some((first, rest)) if first.eq_ignore_ascii_case(&self.relation) => {
                (rest, !rest.contains('.'))
            }
            Some(_) => return None,
            None => (name.as_str(), true),
        };
        let is_known = self.columns.iter().any(|c| c.alias.as_deref() == Some(alias));
        let item = SelectItem { expr: expr.clone(), alias: Some(alias.to_owned()) };
        (is_new && !is_known).then_some(item)
    }

    /// Puts columns of the groups in the places of what only groups have.
    fn replace(&mut self, expr: &mut Expr) -> Option<()> {
        match expr {
            Expr::Aggregate { .. } | Expr::Grouping(_) => {
                let known = self.columns.iter().position(|column| column.expr == *expr);
                let at = known.unwrap_or(self.columns.len());
                let name = format!("group {}", at + 1);
                if known.is_none() {
                    let alias = Some(name.clone());
                    self.columns.push(SelectItem { expr: expr.clone(), alias });
                }
                *expr = Expr::Field(format!("{}.{name}", self.relation));
                Some(())
            }
            Expr::AllFields(_) => None,
            Expr::Window(call) if call.function == WindowFunction::Aggregate => {
                let (operands, over) = (&mut call.operands, &mut call.over);
                let within = operands.iter_mut().flat_map(Expr::operands_mut);
                let keys = over.order_by.iter_mut().map(|key| &mut key.expr);
                let mut all = within.chain(&mut over.partition_by).chain(keys);
                all.try_for_each(|expr| self.replace(expr))
            }
            _ => expr.operands_mut().into_iter().try_for_each(|operand| self.replace(operand)),
        }
    }
}
