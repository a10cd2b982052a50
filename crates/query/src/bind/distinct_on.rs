//! `DISTINCT ON (…)` as groups, of each of which the first row is shown.

use esker_format::Schema;

use super::{named, replace_aliases};
use crate::model::{Aggregate, Expr, OrderBy, SelectItem};
use crate::{Error, Query, Result};

/// The same query with `first(x ORDER BY …)` for each select item and each key of the order, by
/// groups of what the rows have in common.
///
/// # Errors
/// `InvalidQuery` for a query that has groups, or is DISTINCT, itself.
pub(super) fn as_groups(query: Query, schema: &Schema) -> Result<Query> {
    if query.is_grouped() || query.distinct || query.has_windows() {
        return Err(Error::invalid(
            "DISTINCT ON: expected rows as they are, found groups, aggregates, window functions or \
             DISTINCT; select from (SELECT …) instead",
        ));
    }
    let meant = |clause: &str, expr: &Expr| -> Result<Expr> {
        let item = match expr {
            Expr::Item(place) => Some(query.item(clause, *place)?),
            Expr::Field(name) => named(name, &query.select)
                .map_err(|e| e.at(clause))?
                .and_then(|at| query.select.get(at)),
            _ => None,
        };
        match item {
            Some(item) => Ok(item.expr.clone()),
            None => replace_aliases(expr, schema, &query.select).map_err(|e| e.at(clause)),
        }
    };
    let key = |key: &OrderBy| {
        let expr = meant("ORDER BY", &key.expr)?;
        Ok(OrderBy { expr, ..key.clone() })
    };
    let order: Vec<OrderBy> = query.order_by.iter().map(key).collect::<Result<_>>()?;
    let group_by = query.distinct_on.iter().map(|expr| meant("DISTINCT ON", expr));
    let group_by = group_by.collect::<Result<Vec<_>>>()?;
    let first =
        |expr: &Expr| Expr::aggregate(Aggregate::First, expr.clone()).in_order(order.clone());
    let item = |item: &SelectItem| SelectItem { expr: first(&item.expr), alias: Some(item.name()) };
    let select = query.select.iter().map(item).collect();
    let order_by = order.iter().map(|key| OrderBy { expr: first(&key.expr), ..key.clone() });
    let order_by = order_by.collect();
    Ok(Query { select, order_by, group_by, distinct_on: Vec::new(), ..query })
}
