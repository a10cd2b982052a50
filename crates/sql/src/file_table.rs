//! Files that stand where tables do: `FROM 'x.csv'`, `FROM read_csv('x.csv', delim => ';')`.

use std::path::Path;

use esker::{FileFormat, FileTable};
use esker_query::model::Relation;
use sqlparser::ast;

use crate::statement::unsupported;
use crate::{Error, Result};

/// How the functions that read files begin.
const READ: &str = "read_";

/// A file that stands in FROM, and what it is called there; nothing for anything else.
pub(crate) fn of(
    factor: &ast::TableFactor,
) -> Result<Option<(Relation, Option<&ast::TableAlias>)>> {
    let ast::TableFactor::Table {
        name,
        alias,
        args,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return Ok(None);
    };
    if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
        return Ok(None);
    }
    let file = match args {
        None => named(name),
        Some(ast::TableFunctionArgs { args, settings: None }) => called(name, args)?,
        Some(_) => None,
    };
    Ok(file.map(|file| (file, alias.as_ref())))
}

/// A file in FROM is called as it is, without its directory and ending.
fn named(name: &ast::ObjectName) -> Option<Relation> {
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    if name.quote_style != Some('\'') {
        return None;
    }
    let stem = Path::new(&name.value).file_name().and_then(|name| name.to_str());
    let stem = stem.and_then(|name| name.split('.').next()).filter(|stem| !stem.is_empty());
    let table = Relation::table(FileTable::new(&name.value).to_string());
    Some(Relation { alias: Some(stem.unwrap_or("file").to_owned()), ..table }) // default: no name
}

/// A call of a function that reads a file; nothing for another function.
fn called(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> Result<Option<Relation>> {
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(None) };
    let lower = name.value.to_ascii_lowercase();
    let Some(format) = lower.strip_prefix(READ) else { return Ok(None) };
    let by_other_names = [("csv_auto", "csv"), ("json_auto", "json"), ("json_objects", "json")];
    let other = by_other_names.into_iter().find(|(other, _)| *other == format);
    let format = other.map_or(format, |(_, own)| own);
    let Some(format) = FileFormat::ALL.into_iter().find(|known| known.name() == format) else {
        return Ok(None);
    };
    let Some((path, options)) = args.split_first() else {
        return Err(Error::invalid(format!("{lower}: expected a file: {lower}('…')")));
    };
    let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(path)) = path else {
        return Err(Error::invalid(format!("{lower}: expected a file first: {lower}('…')")));
    };
    let mut file = FileTable::new(text(&lower, path)?).format(format);
    for option in options {
        let ast::FunctionArg::Named { name: option, arg, .. } = option else {
            let expected = "options by their names, as in delim => ';'";
            return Err(Error::invalid(format!("{lower}: expected {expected}: `{option}`")));
        };
        let ast::FunctionArgExpr::Expr(value) = arg else {
            return Err(unsupported("this option of a file", arg));
        };
        let name = option.value.to_ascii_lowercase();
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return Err(Error::invalid(format!("{lower}: unknown option {name}")));
        }
        file = file.option(name, text(&lower, value)?);
    }
    let table = Relation::table(file.to_string());
    Ok(Some(Relation { alias: Some(lower), ..table }))
}

/// A constant, as a text: a file is the same for all rows.
fn text(function: &str, expr: &ast::Expr) -> Result<String> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Ok(text.clone()),
            ast::Value::Boolean(truth) => Ok(truth.to_string()),
            ast::Value::Number(digits, _) => Ok(digits.clone()),
            _ => Err(no_constant(function, expr)),
        },
        _ => Err(no_constant(function, expr)),
    }
}

fn no_constant(function: &str, expr: &ast::Expr) -> Error {
    Error::invalid(format!("{function}: expected a text, a number, true or false, found `{expr}`"))
}
