//! `esker get DB TABLE KEY…`.

use std::sync::Arc;

use esker::{Schema, Value};

use crate::arguments::GetArguments;
use crate::failure::{Failure, Result, Status};
use crate::output::{self, Answer, Style};
use crate::{Console, remote, sql};

pub(crate) fn run(arguments: &GetArguments, console: &mut Console<'_>) -> Result<()> {
    let (schema, row) = match remote::address(&arguments.db) {
        Some(address) => {
            let mut client = remote::connect(address)?;
            let schema = remote::schema(&mut client, &arguments.table)?;
            let key = parse_key(&schema, &arguments.key)?;
            let row = remote::get(&mut client, &arguments.table, &key)?;
            (Arc::new(schema), row)
        }
        None => {
            let table = sql::open_to_read(&arguments.db)?.table(&arguments.table)?;
            let row = table.get(&parse_key(&table.schema(), &arguments.key)?)?;
            (table.schema(), row.map(|row| row.values().to_vec()))
        }
    };
    let Some(row) = row else {
        let key = arguments.key.join(" ");
        let message = format!("table {:?} has no row with the key {key}", arguments.table);
        return Err(Failure::new(Status::NotFound, message));
    };
    let fields = schema.fields();
    if let Some(format) = arguments.format {
        let columns = fields.iter().map(|f| (f.name.as_str(), f.data_type)).collect();
        let row = row.iter().map(Value::as_ref).collect();
        let answer = Answer { columns, rows: std::iter::once(row) };
        let (width, colors) = (console.width(), console.colors);
        let style = Style { width, colors, ..Style::default() };
        output::write(console.out, answer, format, &style)?;
        return Ok(());
    }
    let width = fields.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    for (field, value) in fields.iter().zip(&row) {
        let (name, value) = (&field.name, output::printable(&value.to_string()));
        writeln!(console.out, "{name:width$}  {value}")?;
    }
    Ok(())
}

/// The values of a key, by the types of its fields.
pub(crate) fn parse_key(schema: &Schema, texts: &[String]) -> Result<Vec<Value>> {
    let fields: Vec<_> =
        schema.key_positions().iter().filter_map(|p| schema.fields().get(*p)).collect();
    if fields.is_empty() {
        let [text] = texts else {
            return Err(Failure::usage("keys are generated here: expected one row number"));
        };
        let id = text.parse().map(|id| vec![Value::Uint(id)]);
        return id.map_err(|_| {
            Failure::usage(format!(
                "keys are generated here: expected a row number, found {text:?}"
            ))
        });
    }
    if fields.len() != texts.len() {
        let names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        let (names, found) = (names.join(", "), texts.len());
        return Err(Failure::usage(format!("expected a value for each of {names}, found {found}")));
    }
    let values = fields.iter().zip(texts).map(|(field, text)| {
        esker_import::parse_value(text, field.data_type)
            .map_err(|e| Failure::usage(format!("key field {:?}: {e}", field.name)))
    });
    values.collect()
}
