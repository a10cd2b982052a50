//! Names of tables with the schema that they are in: `main.t`, `information_schema.tables`.
//!
//! A table of `main` goes by its own name. Until users make schemas, this is the one place that
//! knows which there are.

use esker::{INFORMATION_SCHEMA, MAIN_SCHEMA, is_system_table};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::statement::unsupported;
use crate::{Error, Result};

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
        return Ok(ReadTable { name: table.value.clone(), called: None });
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
    expect_main(schema)?;
    Ok(ReadTable { name: table.value.clone(), called: None })
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
        Some(schema) => expect_main(schema).map(|()| table.value.clone()),
        None => Ok(table.value.clone()),
    }
}

/// The names of a field without the schema of its table, where one is written.
pub(crate) fn without_schema<'n>(
    names: &'n [Ident],
    is_table: &dyn Fn(&str) -> bool,
) -> &'n [Ident] {
    match names {
        [schema, rest @ ..] if rest.len() > 1 => {
            let is_named = is_schema(schema, MAIN_SCHEMA) || is_schema(schema, INFORMATION_SCHEMA);
            let is_of_table = rest.first().is_some_and(|table| is_table(&table.value));
            if is_named && is_of_table && !is_table(&schema.value) { rest } else { names }
        }
        _ => names,
    }
}

fn is_schema(name: &Ident, schema: &str) -> bool {
    name.value.eq_ignore_ascii_case(schema)
}

fn expect_main(schema: &Ident) -> Result<()> {
    if is_schema(schema, MAIN_SCHEMA) {
        return Ok(());
    }
    if is_schema(schema, RESERVED_SCHEMA) {
        return Err(Error::invalid(format!(
            "{RESERVED_SCHEMA} is reserved, and has no tables here: tables about tables are those \
             of {INFORMATION_SCHEMA}, and esker_tables and its like"
        )));
    }
    let schema = &schema.value;
    Err(Error::invalid(format!(
        "unknown schema {schema:?}; there are {MAIN_SCHEMA} and {INFORMATION_SCHEMA}"
    )))
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
