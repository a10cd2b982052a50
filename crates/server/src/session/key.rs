//! Keys of rows.

use esker_format::{Schema, Value};

use super::Key;
use crate::{Error, Result};

impl Key {
    /// The values of the key, by the types of its fields.
    pub(super) fn into_values(self, schema: &Schema) -> Result<Vec<Value>> {
        match self {
            Self::Values(values) => Ok(values),
            Self::Texts(texts) => parse(schema, &texts),
        }
    }
}

fn parse(schema: &Schema, texts: &[String]) -> Result<Vec<Value>> {
    let fields: Vec<_> =
        schema.key_positions().iter().filter_map(|p| schema.fields().get(*p)).collect();
    if fields.is_empty() {
        let row = |text: &String| text.parse().map(|id| vec![Value::Uint(id)]).ok();
        let row = if let [text] = texts { row(text) } else { None };
        return row.ok_or_else(|| {
            let found = texts.join(", ");
            Error::invalid(format!("key: expected one row number, found {found:?}"))
        });
    }
    if fields.len() != texts.len() {
        let names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        let (names, found) = (names.join(", "), texts.len());
        let message = format!("key: expected a value for each of {names}, found {found}");
        return Err(Error::invalid(message));
    }
    let values = fields.iter().zip(texts).map(|(field, text)| {
        let value = esker_import::parse_value(text, field.data_type);
        value.map_err(|e| Error::from(e).at(format_args!("key field {:?}", field.name)))
    });
    values.collect()
}
