//! Calls of functions that make rows, where tables stand.

use esker_query::model::{Expr, Function, TableCall, TableFunction};
use sqlparser::ast;

use crate::expression::{Names, ParameterNames};
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, interval};

/// A call by the name of its function; its rows are not numbered.
pub(crate) fn call(
    name: &ast::ObjectName,
    args: &[ast::FunctionArg],
    parameters: &ParameterNames,
) -> Result<TableCall> {
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return Err(unsupported("a qualified name of a function", name));
    };
    let Some(function) = TableFunction::from_name(&name.value) else {
        return Err(unknown(&name.value));
    };
    let args: Vec<&ast::Expr> = args.iter().map(operand).collect::<Result<_>>()?;
    of(function, &args, &Names::new(Vec::new(), parameters))
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

/// The error for UNNEST.
pub(crate) fn no_unnest(written: &impl std::fmt::Display) -> Error {
    let written = shorten(&written.to_string());
    Error::invalid(format!(
        "UNNEST takes an array, which no field holds; json_array_elements makes rows of an array \
         of JSON: `{written}`"
    ))
}
