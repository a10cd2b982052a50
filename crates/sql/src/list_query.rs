//! `ARRAY(SELECT …)`: the values of a query's one column as a list, in the order of the query.
//!
//! It is `coalesce((SELECT array_agg(v ORDER BY k1, …) FROM (query) AS s (v, k1, …)), ARRAY[])`, in
//! which the keys of the query's order are columns of it, so that the order is kept wherever the
//! query is asked, also once for many rows around it.

use esker_query::model::{Expr, Function};
use sqlparser::ast;
use sqlparser::parser::Parser;

use crate::dialect::EskerDialect;
use crate::expression::Names;
use crate::statement::{syntax, unsupported};
use crate::{Error, Result, select};

/// The query of `ARRAY(SELECT …)`, as the grammar reads it.
pub(crate) fn of(function: &ast::Function) -> Option<&ast::Query> {
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let is_array = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("array");
    match &function.args {
        ast::FunctionArguments::Subquery(query) if is_array => Some(query),
        _ => None,
    }
}

impl Names {
    /// `ARRAY(SELECT …)`.
    pub(crate) fn list_of(&self, query: &ast::Query) -> Result<Expr> {
        let mut inner = query.clone();
        let keys = keys(&mut inner)?;
        let (mut columns, mut order) = (vec!["v".to_owned()], Vec::new());
        for Key { column, options } in keys {
            let name = match column {
                Column::Value => "v".to_owned(),
                Column::Own => format!("k{}", columns.len()),
            };
            order.push(format!("{name}{options}"));
            if name != "v" {
                columns.push(name);
            }
        }
        let order = if order.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", order.join(", "))
        };
        let text =
            format!("SELECT array_agg(v{order}) FROM (SELECT 1) AS s ({})", columns.join(", "));
        let mut outer = Parser::new(&EskerDialect)
            .try_with_sql(&text)
            .and_then(|mut parser| parser.parse_query())
            .map_err(syntax)?;
        if let ast::SetExpr::Select(select) = &mut *outer.body {
            let factors = select.from.iter_mut().map(|from| &mut from.relation);
            for factor in factors {
                if let ast::TableFactor::Derived { subquery, .. } = factor {
                    **subquery = inner.clone();
                }
            }
        }
        let list = Expr::value_of(select::convert_within(&outer, self.parameters())?);
        Ok(Expr::call(Function::Coalesce, [list, Expr::Call(Function::ListValue, Vec::new())]))
    }
}

/// A key of the order of the query.
struct Key {
    column: Column,
    /// How it is written behind it: ` DESC NULLS LAST`.
    options: String,
}

enum Column {
    /// It is the value itself.
    Value,
    /// It is another column.
    Own,
}

/// The keys of the order of a query, of which those that are no column of it become one.
fn keys(query: &mut ast::Query) -> Result<Vec<Key>> {
    let order = match query.order_by.as_ref().map(|order| &order.kind) {
        None => Vec::new(),
        Some(ast::OrderByKind::All(options)) => {
            expect_one(&query.body)?;
            return Ok(vec![Key { column: Column::Value, options: options.to_string() }]);
        }
        Some(ast::OrderByKind::Expressions(keys)) => keys.clone(),
    };
    expect_one(&query.body)?;
    let mut keys = Vec::new();
    for key in order {
        let is_value = is_the_value(&query.body, &key.expr);
        let column = match &mut *query.body {
            _ if is_value => Column::Value,
            ast::SetExpr::Select(select) if select.distinct.is_none() => {
                select.projection.push(ast::SelectItem::UnnamedExpr(key.expr.clone()));
                Column::Own
            }
            _ => return Err(unsupported("this order in ARRAY(…)", &key)),
        };
        keys.push(Key { column, options: key.options.to_string() });
    }
    Ok(keys)
}

/// Whether a key of an order is the one column: by its name, its place, or as it is written.
fn is_the_value(body: &ast::SetExpr, key: &ast::Expr) -> bool {
    if key.to_string() == "1" {
        return true;
    }
    let mut body = body;
    while let ast::SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let ast::SetExpr::Select(select) = body else { return false };
    match select.projection.first() {
        Some(ast::SelectItem::UnnamedExpr(expr)) => expr == key,
        Some(ast::SelectItem::ExprWithAlias { expr, alias }) => {
            expr == key || matches!(key, ast::Expr::Identifier(name) if name.value == alias.value)
        }
        _ => false,
    }
}

/// Refuses a query of other than one column.
fn expect_one(body: &ast::SetExpr) -> Result<()> {
    let count = match body {
        ast::SetExpr::SetOperation { left, .. } => return expect_one(left),
        ast::SetExpr::Query(query) => return expect_one(&query.body),
        ast::SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.content.len()),
        ast::SetExpr::Select(select) => {
            let is_named = |item: &&ast::SelectItem| {
                let (unnamed, named) = (
                    matches!(item, ast::SelectItem::UnnamedExpr(_)),
                    matches!(item, ast::SelectItem::ExprWithAlias { .. }),
                );
                unnamed || named
            };
            if let Some(item) = select.projection.iter().find(|item| !is_named(item)) {
                return Err(Error::invalid(format!("ARRAY(…): expected one column, found {item}")));
            }
            select.projection.len()
        }
        other => return Err(unsupported("this query in ARRAY(…)", other)),
    };
    match count {
        1 => Ok(()),
        _ => Err(Error::invalid(format!("ARRAY(…): expected one column, found {count}"))),
    }
}
