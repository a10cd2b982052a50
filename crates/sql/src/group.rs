//! GROUP BY: expressions, grouping sets, and ALL.

use esker_query::model::{Expr, GroupingElement, Query};
use sqlparser::ast;

use crate::expression::Names;
use crate::select::position_or;
use crate::statement::unsupported;
use crate::{Error, Result};

impl Names {
    /// Gives a query, whose select items are known, its groups.
    pub(crate) fn group(&self, group_by: &ast::GroupByExpr, query: &mut Query) -> Result<()> {
        let select = query.select.clone();
        let key = |expr: &ast::Expr| position_or("GROUP BY", expr, Some(&select), self);
        match group_by {
            ast::GroupByExpr::Expressions(elements, modifiers) if modifiers.is_empty() => {
                let elements = elements.iter().map(|expr| element(expr, &key));
                Ok(query.group_by_sets(elements.collect::<Result<Vec<_>>>()?)?)
            }
            ast::GroupByExpr::All(modifiers) if modifiers.is_empty() => {
                query.group_by = vec![Expr::AllItems];
                Ok(())
            }
            other => Err(unsupported("this GROUP BY", other)),
        }
    }

    /// `GROUPING(a, b)`; without operands of all keys.
    pub(crate) fn grouping(&self, call: &ast::Function) -> Result<Expr> {
        use ast::{FunctionArg as A, FunctionArgExpr as E, FunctionArguments};
        let args = match &call.args {
            FunctionArguments::List(list)
                if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
            {
                &list.args
            }
            _ => return Err(unsupported("this call", call)),
        };
        if call.filter.is_some() {
            return Err(unsupported("FILTER here", call));
        }
        let operand = |argument: &A| match argument {
            A::Unnamed(E::Expr(expr)) => self.convert(expr),
            other => Err(unsupported("this argument", other)),
        };
        args.iter().map(operand).collect::<Result<_>>().map(Expr::Grouping)
    }
}

/// True for the names of the function that tells grouping sets apart.
pub(crate) fn is_grouping(name: &str) -> bool {
    ["grouping", "grouping_id"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Reads one key.
type ReadKey<'r> = &'r dyn Fn(&ast::Expr) -> Result<Expr>;

fn element(expr: &ast::Expr, key: ReadKey<'_>) -> Result<GroupingElement> {
    use GroupingElement as G;
    let list = |list: &Vec<ast::Expr>| list.iter().map(key).collect::<Result<Vec<_>>>();
    match expr {
        ast::Expr::GroupingSets(sets) => {
            let set = |exprs: &Vec<ast::Expr>| match exprs.as_slice() {
                [one] => element(one, key),
                _ => list(exprs).map(G::Set),
            };
            sets.iter().map(set).collect::<Result<_>>().map(G::Sets)
        }
        ast::Expr::Rollup(lists) => lists.iter().map(list).collect::<Result<_>>().map(G::Rollup),
        ast::Expr::Cube(lists) => lists.iter().map(list).collect::<Result<_>>().map(G::Cube),
        ast::Expr::Tuple(exprs) => list(exprs).map(G::Set),
        // Within GROUPING SETS, the grammar takes these for calls.
        ast::Expr::Function(call) if is(call, "rollup") => lists_of(call, key).map(G::Rollup),
        ast::Expr::Function(call) if is(call, "cube") => lists_of(call, key).map(G::Cube),
        expr => key(expr).map(|key| G::Set(vec![key])),
    }
}

fn is(call: &ast::Function, name: &str) -> bool {
    call.name.to_string().eq_ignore_ascii_case(name)
}

/// The lists of keys in a call of ROLLUP or CUBE.
fn lists_of(call: &ast::Function, key: ReadKey<'_>) -> Result<Vec<Vec<Expr>>> {
    use ast::{FunctionArg as A, FunctionArgExpr as E};
    let bad = || Error::invalid(format!("expected expressions or lists of them, found `{call}`"));
    let ast::FunctionArguments::List(list) = &call.args else { return Err(bad()) };
    let is_plain = call.over.is_none() && call.filter.is_none() && list.clauses.is_empty();
    if !is_plain || list.args.is_empty() || list.duplicate_treatment.is_some() {
        return Err(bad());
    }
    let keys = |argument: &A| match argument {
        A::Unnamed(E::Expr(ast::Expr::Tuple(exprs))) => exprs.iter().map(key).collect(),
        A::Unnamed(E::Expr(expr)) => key(expr).map(|key| vec![key]),
        _ => Err(bad()),
    };
    list.args.iter().map(keys).collect()
}
