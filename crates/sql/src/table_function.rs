//! Calls of functions that make rows: where tables stand, and in the list of SELECT.
//!
//! ```text
//! SELECT a, generate_series(1, n) FROM t WHERE …
//! SELECT a, rows.generate_series FROM t CROSS JOIN generate_series(1, t.n) AS rows WHERE …
//! ```
//!
//! Several in the list of SELECT make their rows side by side, with NULLs behind the end of the
//! shorter ones, as PostgreSQL does: each is numbered, and they are joined by the numbers.

use esker_query::model::{
    Expr, Function, Join, JoinKind, Query, Relation, SelectItem, TableCall, TableFunction,
};
use sqlparser::ast;

use crate::expression::{Names, ParameterNames};
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, interval};

/// A call by the name of its function.
pub(crate) fn call(
    name: &ast::ObjectName,
    args: &[ast::FunctionArg],
    ordinality: bool,
    parameters: &ParameterNames,
) -> Result<TableCall> {
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return Err(unsupported("a qualified name of a function", name));
    };
    let Some(function) = TableFunction::from_name(&name.value) else {
        return Err(unknown(&name.value));
    };
    let args: Vec<&ast::Expr> = args.iter().map(operand).collect::<Result<_>>()?;
    let call = of(function, &args, &Names::new(Vec::new(), parameters))?;
    Ok(TableCall { ordinality, ..call })
}

/// `UNNEST (list)`.
pub(crate) fn unnest(
    lists: &[ast::Expr],
    ordinality: bool,
    parameters: &ParameterNames,
) -> Result<TableCall> {
    let lists: Vec<&ast::Expr> = lists.iter().collect();
    let call = of(TableFunction::Unnest, &lists, &Names::new(Vec::new(), parameters))?;
    Ok(TableCall { ordinality, ..call })
}

/// A call with operands.
fn of(function: TableFunction, args: &[&ast::Expr], names: &Names) -> Result<TableCall> {
    let mut operands = Vec::with_capacity(args.len() + 1);
    for (i, arg) in args.iter().enumerate() {
        let is_step = i == 2 && args.len() == 3;
        match if is_step { interval::of_operand(arg)? } else { None } {
            Some((months, us)) => operands.extend([months, us].map(Expr::literal)),
            None => operands.push(names.convert(arg)?),
        }
    }
    Ok(TableCall::new(function, operands))
}

fn operand(argument: &ast::FunctionArg) -> Result<&ast::Expr> {
    match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Ok(expr),
        other => Err(unsupported("this argument", other)),
    }
}

/// What the rows of a call in the list of SELECT are called.
const ROWS: &str = "rows of SELECT";

/// Functions that need not compute all of their operands.
const CONDITIONAL: [&str; 4] = ["coalesce", "ifnull", "if", "iif"];

/// The column of a call in the list of SELECT; `None` for a function that makes no rows.
pub(crate) fn in_select(
    function: &ast::Function,
    args: &[ast::FunctionArg],
    names: &Names,
) -> Result<Option<Expr>> {
    let name = function.name.to_string();
    let Some(called) = TableFunction::from_name(&name) else { return Ok(None) };
    let args: Vec<&ast::Expr> = args.iter().map(operand).collect::<Result<_>>()?;
    let before = names.call_count();
    let call = of(called, &args, names)?;
    if names.call_count() > before {
        return Err(Error::invalid(format!(
            "{name} of what makes rows itself: write that in FROM, `{}`",
            shorten(&function.to_string())
        )));
    }
    let columns = call.columns_of(called.name());
    let [column] = columns.as_slice() else {
        return Err(Error::invalid(format!(
            "{name} has columns {}: write it in FROM, `FROM {name}(…)`",
            columns.join(" and ")
        )));
    };
    match names.note_call(call) {
        Some(at) => Ok(Some(Expr::field(format!("{ROWS}.{}", column_at(column, at))))),
        None => Err(Error::invalid(format!(
            "{name} makes rows: it stands in FROM, or in the list of SELECT: `{}`",
            shorten(&function.to_string())
        ))),
    }
}

/// What the column of a call is called, by its place among all of the list.
fn column_at(column: &str, at: usize) -> String {
    if at == 0 { column.to_owned() } else { format!("{column} {}", at + 1) }
}

/// The number of a row within its call. No field is called so, which another call may name.
const PLACE: &str = "place in rows of SELECT";

/// The rows of several calls, side by side.
fn side_by_side(calls: Vec<TableCall>) -> Relation {
    let mut names = Vec::new();
    let mut relations = calls.into_iter().enumerate().map(|(at, call)| {
        let name = call.function.name();
        let column = call.columns_of(name).into_iter().next();
        let column = column_at(&column.unwrap_or_default(), at);
        names.push(column.clone());
        let call = TableCall { ordinality: true, ..call };
        let columns = vec![format!("{ROWS} {}", at + 1), PLACE.to_owned()];
        Relation { columns, ..Relation::call(call) }.aliased(format!("call {}", at + 1))
    });
    let mut query = relations.next().map(Query::from).unwrap_or_default();
    query.joins = relations.map(|rows| Join::using(JoinKind::Full, rows, [PLACE])).collect();
    for (name, at) in names.into_iter().zip(1..) {
        let expr = Expr::field(format!("call {at}.{ROWS} {at}"));
        query.select.push(SelectItem { expr, alias: Some(name) });
    }
    Relation { lateral: true, ..Relation::query(query, ROWS) }
}

/// Puts the calls of the list of a SELECT behind what the query reads.
pub(crate) fn put_into_from(
    calls: Vec<TableCall>,
    projection: &[ast::SelectItem],
    query: &mut Query,
) -> Result<()> {
    let Some(call) = calls.first() else { return Ok(()) };
    let name = call.function.name();
    let refuse = |why: &str| {
        let message = format!("{name} in SELECT {why}: write it in FROM, `FROM {name}(…)`");
        Err(Error::invalid(message))
    };
    if query.is_grouped() || query.has_windows() {
        return refuse("beside groups or windows, which come before its rows");
    }
    let exprs = projection.iter().filter_map(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr)
        }
        _ => None,
    });
    if exprs.map(calls_in).sum::<usize>() != calls.len() {
        return refuse("within CASE, a condition or a subquery");
    }
    for (item, written) in query.select.iter_mut().zip(projection) {
        if let (None, ast::SelectItem::UnnamedExpr(expr)) = (&item.alias, written)
            && makes_rows(expr)
        {
            let called = match expr {
                ast::Expr::Function(call) => TableFunction::from_name(&call.name.to_string()),
                _ => None,
            };
            item.alias = Some(called.map_or_else(|| expr.to_string(), |of| of.name().to_owned()));
        }
    }
    let is_alone = query.relations().is_empty();
    let is_star = |item: &SelectItem| matches!(item.expr, Expr::AllFields(_));
    if is_alone && query.select.iter().any(is_star) {
        return refuse("beside * without a table");
    }
    let relation = match <[TableCall; 1]>::try_from(calls) {
        Ok([call]) => {
            let columns = call.columns_of(name);
            Relation { columns, ..Relation::call(call) }.aliased(ROWS)
        }
        Err(calls) => side_by_side(calls),
    };
    let relation = Relation { after_filter: !is_alone, ..relation };
    if is_alone {
        let Query { derived, alias, columns, .. } = Query::from(relation);
        (query.derived, query.alias, query.columns) = (derived, alias, columns);
    } else {
        query.joins.push(Join::cross(relation));
    }
    Ok(())
}

fn is_call(function: &ast::Function) -> bool {
    TableFunction::from_name(&function.name.to_string()).is_some()
}

/// Whether an expression makes a row of each that a function in it makes.
pub(crate) fn makes_rows(expr: &ast::Expr) -> bool {
    calls_in(expr) > 0
}

/// How many functions in an expression make a row of it of each of theirs.
fn calls_in(expr: &ast::Expr) -> usize {
    use ast::Expr as E;
    match expr {
        E::Function(function) => {
            let args = match &function.args {
                ast::FunctionArguments::List(list) => list.args.as_slice(),
                _ => &[],
            };
            let name = function.name.to_string();
            let may_skip = CONDITIONAL.iter().any(|known| known.eq_ignore_ascii_case(&name));
            if is_call(function) {
                return 1;
            }
            let args = args.iter().filter(|_| !may_skip).filter_map(|arg| operand(arg).ok());
            args.map(calls_in).sum()
        }
        other => operands(other).into_iter().map(calls_in).sum(),
    }
}

/// What is computed for each row of an expression other than a function; nothing of CASE and of
/// queries.
fn operands(expr: &ast::Expr) -> Vec<&ast::Expr> {
    use ast::Expr as E;
    match expr {
        E::Nested(of)
        | E::UnaryOp { expr: of, .. }
        | E::Cast { expr: of, .. }
        | E::Collate { expr: of, .. }
        | E::Extract { expr: of, .. }
        | E::Ceil { expr: of, .. }
        | E::Floor { expr: of, .. }
        | E::Interval(ast::Interval { value: of, .. })
        | E::IsNull(of)
        | E::IsNotNull(of)
        | E::IsTrue(of)
        | E::IsNotTrue(of)
        | E::IsFalse(of)
        | E::IsNotFalse(of)
        | E::IsUnknown(of)
        | E::IsNotUnknown(of)
        | E::InSubquery { expr: of, .. }
        | E::AnyOp { left: of, .. }
        | E::AllOp { left: of, .. } => vec![of],
        E::BinaryOp { left, right, .. }
        | E::IsDistinctFrom(left, right)
        | E::IsNotDistinctFrom(left, right)
        | E::Like { expr: left, pattern: right, .. }
        | E::ILike { expr: left, pattern: right, .. }
        | E::SimilarTo { expr: left, pattern: right, .. }
        | E::RLike { expr: left, pattern: right, .. }
        | E::Position { expr: left, r#in: right }
        | E::AtTimeZone { timestamp: left, time_zone: right } => vec![left, right],
        E::Between { expr, low, high, .. } => vec![expr, low, high],
        E::InList { expr, list, .. } => [&**expr].into_iter().chain(list).collect(),
        E::Tuple(items) => items.iter().collect(),
        E::Substring { expr, substring_from, substring_for, .. } => {
            let part = [substring_from, substring_for].into_iter().flatten();
            [expr].into_iter().chain(part).map(|operand| &**operand).collect()
        }
        E::Trim { expr, trim_what, trim_characters, .. } => {
            let what = [expr].into_iter().chain(trim_what).map(|operand| &**operand);
            what.chain(trim_characters.iter().flatten()).collect()
        }
        _ => Vec::new(),
    }
}

/// The error for a name in FROM that no function has which makes rows.
fn unknown(name: &str) -> Error {
    if Function::from_name(name).is_some() {
        let message = format!("{name} makes one value, no rows: write (SELECT {name}(…)) in FROM");
        return Error::invalid(message);
    }
    let known = TableFunction::ALL.into_iter().map(TableFunction::name);
    let near = esker_format::suggest::near_or_all(name, "functions", known);
    Error::invalid(format!("no function {name} makes rows{near}"))
}

/// The error for TABLE around a call.
pub(crate) fn no_table(call: &ast::Expr) -> Error {
    let call = shorten(&call.to_string());
    Error::invalid(format!("expected a function that makes rows without TABLE around it: `{call}`"))
}
