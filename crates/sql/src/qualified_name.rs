//! Names of tables with the schema that they are in: `main.t`, `information_schema.tables`.
//!
//! A table of `main` goes by its own name, a temporary one as `temp.t` where it is said that it is
//! one. `main.t` is kept until it is known whether a session has a temporary table of that name:
//! see [`placed`](crate::placed). So has a name that is in quotes as a whole and begins as if it
//! said one of these, `"main.t"`: it is that of a table of `main`. What is in a schema that users
//! make has one name with the schema in it, `app.users`: where there is no such schema there is no
//! such table, which is said where it is looked for.

use esker::{INFORMATION_SCHEMA, MAIN_SCHEMA, TEMPORARY_SCHEMA, is_system_table};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::statement::unsupported;
use crate::{Error, Result};

/// What PostgreSQL calls the schema of temporary tables.
const POSTGRES_TEMPORARY_SCHEMA: &str = "pg_temp";

/// What PostgreSQL keeps its catalogue in.
const RESERVED_SCHEMA: &str = "pg_catalog";

/// A table that is read: its name in the database, and what it is called where it has no alias.
pub(crate) struct ReadTable {
    pub(crate) name: String,
    /// Where that is not its name.
    pub(crate) called: Option<String>,
}

/// The name of a table that is read.
///
/// # Errors
/// `InvalidQuery` for an unknown schema, with those that there are.
pub(crate) fn read(name: &ObjectName) -> Result<ReadTable> {
    let (schema, table) = parts(name)?;
    let Some(schema) = schema else {
        let called = seems_qualified(&table.value).then(|| table.value.clone());
        return Ok(ReadTable { name: whole(table), called });
    };
    if is_schema(schema, INFORMATION_SCHEMA) {
        let table = table.value.to_ascii_lowercase();
        let name = format!("{INFORMATION_SCHEMA}.{table}");
        if !is_system_table(&name) {
            let all = esker::system_tables();
            let known = all.iter().filter_map(|name| name.strip_prefix("information_schema."));
            let near = esker_format::suggest::near_or_all(&table, "tables", known);
            return Err(Error::invalid(format!("no table {name}{near}")));
        }
        return Ok(ReadTable { name, called: Some(table) });
    }
    let called = Some(table.value.clone());
    Ok(ReadTable { name: in_schema(schema, table)?, called })
}

/// The name of what is made, changed or removed: a table, an index or a sequence.
///
/// # Errors
/// `InvalidQuery` for an unknown schema, and one that only reads.
pub(crate) fn written(name: &ObjectName) -> Result<String> {
    let (schema, table) = parts(name)?;
    match schema {
        Some(schema) if is_schema(schema, INFORMATION_SCHEMA) => Err(Error::invalid(format!(
            "{name}: {INFORMATION_SCHEMA} is only read: its tables tell what there is"
        ))),
        Some(schema) => in_schema(schema, table),
        None => Ok(whole(table)),
    }
}

/// The name of what is where its table is, whatever schema is written before it: an index, or a
/// sequence.
///
/// # Errors
/// As [`written`].
pub(crate) fn beside_table(name: &ObjectName) -> Result<String> {
    written(name)?;
    Ok(parts(name)?.1.value.clone())
}

/// The new name of a table, which stays in its schema.
///
/// # Errors
/// `InvalidQuery` for a name with a schema before it that is not written before the old one.
pub(crate) fn new_name(old: &ObjectName, name: &ObjectName) -> Result<String> {
    match parts(name)? {
        (Some(schema), table)
            if parts(old)?.0.is_some_and(|known| is_schema(known, &schema.value)) =>
        {
            Ok(table.value.clone())
        }
        (Some(schema), table) => Err(Error::invalid(format!(
            "RENAME TO {name}: expected a name without a schema: SET SCHEMA {schema} moves what is \
             to be {table} there"
        ))),
        (None, table) => Ok(table.value.clone()),
    }
}

/// The name of a schema.
///
/// # Errors
/// `InvalidQuery` for a name of several parts.
pub(crate) fn of_schema(name: &ObjectName) -> Result<String> {
    match parts(name)? {
        (None, schema) => Ok(schema.value.clone()),
        _ => Err(unsupported("a name of a schema of several parts", name)),
    }
}

/// Whether a name in quotes begins as if it said that it is of `main`, or temporary.
fn seems_qualified(name: &str) -> bool {
    let schema = name.split_once('.').map(|(schema, _)| schema);
    schema == Some(MAIN_SCHEMA) || schema == Some(TEMPORARY_SCHEMA)
}

/// The name of a table without a schema before it.
fn whole(table: &Ident) -> String {
    match seems_qualified(&table.value) {
        true => format!("{MAIN_SCHEMA}.{}", table.value),
        false => table.value.clone(),
    }
}

/// Whether a name of a statement says that it is of `main`.
pub(crate) fn names_main(tokens: &[TokenWithSpan]) -> bool {
    let is_main = |token: &Token| match token {
        Token::Word(word) => word.value.eq_ignore_ascii_case(MAIN_SCHEMA),
        _ => false,
    };
    let is_whole = |token: &Token| match token {
        Token::Word(word) => seems_qualified(&word.value),
        _ => false,
    };
    let says_main = tokens.windows(2).any(|pair| match pair {
        [schema, point] => is_main(&schema.token) && point.token == Token::Period,
        _ => false,
    });
    says_main || tokens.iter().any(|token| is_whole(&token.token))
}

/// The names of a field without the schema of its table, where one is written.
pub(crate) fn without_schema<'n>(
    names: &'n [Ident],
    knows_tables: bool,
    is_table: &dyn Fn(&str) -> bool,
) -> &'n [Ident] {
    match names {
        [schema, rest @ ..] if rest.len() > 1 => {
            let is_named = is_schema(schema, MAIN_SCHEMA)
                || is_schema(schema, INFORMATION_SCHEMA)
                || is_temporary(schema);
            let is_of_table = rest.first().is_some_and(|table| is_table(&table.value));
            // Among several tables, binding knows them: `main.t.a` is a field of one there.
            let is_of_any = !knows_tables && !is_temporary(schema);
            let is_schema = is_named && (is_of_table || is_of_any) && !is_table(&schema.value);
            if is_schema { rest } else { names }
        }
        _ => names,
    }
}

fn is_schema(name: &Ident, schema: &str) -> bool {
    name.value.eq_ignore_ascii_case(schema)
}

/// Whether a schema is that of temporary tables.
fn is_temporary(schema: &Ident) -> bool {
    is_schema(schema, TEMPORARY_SCHEMA) || is_schema(schema, POSTGRES_TEMPORARY_SCHEMA)
}

/// Whether a name says that it is of a temporary table.
pub(crate) fn says_temporary(name: &ObjectName) -> Result<bool> {
    Ok(parts(name)?.0.is_some_and(is_temporary))
}

/// The name of a table with the schema that is written before it.
fn in_schema(schema: &Ident, table: &Ident) -> Result<String> {
    let table = &table.value;
    if is_schema(schema, MAIN_SCHEMA) {
        return Ok(format!("{MAIN_SCHEMA}.{table}"));
    }
    if is_temporary(schema) {
        return Ok(format!("{TEMPORARY_SCHEMA}.{table}"));
    }
    if is_schema(schema, RESERVED_SCHEMA) {
        return Err(Error::invalid(format!(
            "{RESERVED_SCHEMA} is reserved, and has no tables here: tables about tables are those \
             of {INFORMATION_SCHEMA}, and esker_tables and its like"
        )));
    }
    Ok(format!("{}.{table}", schema.value))
}

fn parts(name: &ObjectName) -> Result<(Option<&Ident>, &Ident)> {
    let (schema, table) = match name.0.as_slice() {
        [ObjectNamePart::Identifier(table)] => (None, table),
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(table)] => {
            (Some(schema), table)
        }
        _ => return Err(unsupported("a name of several parts", name)),
    };
    if table.value.is_empty() {
        return Err(Error::invalid("a table name has at least one character"));
    }
    Ok((schema, table))
}
