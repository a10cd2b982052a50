//! `esker insert`, `esker put` and `esker delete`: one row.

use esker::{Options, Schema, Value};
use esker_import::parse_new_json_row;
use esker_query::model::{Change, Expr, Insert, OnConflict};

use crate::arguments::{DeleteArguments, RowArguments};
use crate::failure::{Failure, Result, Status};
use crate::get::parse_key;
use crate::{Console, remote};

pub(crate) fn add(
    arguments: &RowArguments,
    on_conflict: OnConflict,
    console: &mut Console<'_>,
) -> Result<()> {
    let replaces = on_conflict == OnConflict::Replace;
    if let Some(address) = remote::address(&arguments.db) {
        let mut client = remote::connect(address)?;
        let schema = remote::schema(&mut client, &arguments.table)?;
        let row = parse_row(&arguments.row, &schema)?;
        remote::add(&mut client, &arguments.table, row, replaces)?;
        let done = if replaces { "put" } else { "added" };
        return Ok(writeln!(console.err, "{done} 1 row")?);
    }
    let database = Options::new().create(false).open(&arguments.db)?;
    let schema = database.table(&arguments.table)?.schema();
    let row = parse_row(&arguments.row, &schema)?;
    let (fields, values) = row.into_iter().map(|(name, v)| (name, Expr::Literal(v))).unzip();
    let done = if replaces { "put" } else { "added" };
    let insert = Insert::values(&arguments.table, vec![values]);
    let change = Change::Insert(Insert { fields, on_conflict, ..insert });
    database.change(&change)?;
    database.close()?;
    writeln!(console.err, "{done} 1 row")?;
    Ok(())
}

/// `FIELD=VALUE` for each field, or a JSON object.
fn parse_row(texts: &[String], schema: &Schema) -> Result<Vec<(String, Value)>> {
    match texts {
        [object] if object.trim_start().starts_with('{') => Ok(parse_new_json_row(object, schema)?),
        pairs => pairs.iter().map(|pair| parse_pair(pair, schema)).collect(),
    }
}

/// `FIELD=VALUE`; nothing behind the sign is NULL, as in CSV.
fn parse_pair(pair: &str, schema: &Schema) -> Result<(String, Value)> {
    let Some((name, text)) = pair.split_once('=') else {
        let message = format!("expected FIELD=VALUE or a JSON object, found {pair:?}");
        return Err(Failure::usage(message));
    };
    let field = schema.expect_position(name).map_err(esker::Error::from)?;
    let data_type = schema.fields().get(field).map(|field| field.data_type);
    match data_type {
        Some(data_type) if !text.is_empty() => {
            let value = esker_import::parse_value(text, data_type);
            let value = value.map_err(|e| Failure::usage(format!("field {name:?}: {e}")))?;
            Ok((name.to_owned(), value))
        }
        _ => Ok((name.to_owned(), Value::Null)),
    }
}

pub(crate) fn delete(arguments: &DeleteArguments, console: &mut Console<'_>) -> Result<()> {
    let removed = match remote::address(&arguments.db) {
        Some(address) => {
            let mut client = remote::connect(address)?;
            let schema = remote::schema(&mut client, &arguments.table)?;
            client.delete(&arguments.table, &parse_key(&schema, &arguments.key)?)?
        }
        None => {
            let database = Options::new().create(false).open(&arguments.db)?;
            let table = database.table(&arguments.table)?;
            let removed = table.delete(&parse_key(&table.schema(), &arguments.key)?)?;
            database.close()?;
            removed
        }
    };
    if !removed {
        let key = arguments.key.join(" ");
        let message = format!("table {:?} has no row with the key {key}", arguments.table);
        return Err(Failure::new(Status::NotFound, message));
    }
    writeln!(console.err, "removed 1 row")?;
    Ok(())
}
