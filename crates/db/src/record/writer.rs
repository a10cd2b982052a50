//! The values of a struct, on their way into a row.

use esker_format::{DataType, List, Value};

use super::field_type::json_value;
use super::{FieldType, Record, RecordField};
use crate::{Error, Result};

/// Takes the values of a [`Record`](crate::Record), one for each of its fields, in their order.
#[derive(Debug)]
pub struct RecordWriter {
    fields: &'static [RecordField],
    /// `None` where the table's default is wanted.
    values: Vec<Option<Value>>,
}

impl RecordWriter {
    pub(crate) fn new(fields: &'static [RecordField]) -> Self {
        Self { fields, values: Vec::with_capacity(fields.len()) }
    }

    /// Takes the value of the next field.
    ///
    /// # Errors
    /// `InvalidInput` naming the field when the value cannot be stored.
    pub fn field<T: FieldType>(&mut self, value: &T) -> Result<()> {
        self.push(value.to_value())
    }

    /// Takes the value of the next field, which is anything that serde can write.
    ///
    /// # Errors
    /// As for [`RecordWriter::field`].
    pub fn json<T: serde::Serialize>(&mut self, value: &T) -> Result<()> {
        let mut value = json_value(value);
        let takes_null = self.fields.get(self.values.len()).is_some_and(|f| f.takes_null);
        if takes_null && value.as_ref().is_ok_and(|v| *v == json_null()) {
            value = Ok(Value::Null);
        }
        self.push(value)
    }

    fn push(&mut self, value: Result<Value>) -> Result<()> {
        let Some(field) = self.fields.get(self.values.len()) else {
            return Err(Error::invalid("more values than the record has fields"));
        };
        let value = value.and_then(|value| declared(value, field.data_type));
        let value = value.map_err(|e| e.at(format_args!("field {:?}", field.name)))?;
        let left_out = value.is_null() && field.default.is_some();
        self.values.push((!left_out).then_some(value));
        Ok(())
    }

    pub(crate) fn into_values(self) -> Vec<Option<Value>> {
        self.values
    }
}

/// The values of a struct with the names of its fields; what the table's default is wanted for is
/// NULL.
///
/// # Errors
/// `InvalidInput` naming the field whose value cannot be stored.
pub fn record_values<T: Record>(record: &T) -> Result<Vec<(&'static str, Value)>> {
    let mut writer = RecordWriter::new(T::FIELDS);
    record.write(&mut writer)?;
    let names = T::FIELDS.iter().map(|field| field.name);
    // default: `None` is NULL where nothing else is said
    Ok(names.zip(writer.into_values().into_iter().map(Option::unwrap_or_default)).collect())
}

fn json_null() -> Value {
    // default: null is JSON
    Value::json("null").unwrap_or_default()
}

/// A value as the declared type of its field has it: numbers as times and days, text as JSON.
pub(crate) fn declared(value: Value, data_type: DataType) -> Result<Value> {
    Ok(match (value, data_type) {
        (Value::Int(v), DataType::Timestamp) => Value::Timestamp(v),
        (Value::Int(v), DataType::Time) => Value::Time(v),
        (Value::Int(v), DataType::Date) => match i32::try_from(v) {
            Ok(days) => Value::Date(days),
            Err(_) => return Err(Error::invalid(format!("expected days since 1970, found {v}"))),
        },
        (Value::Text(text), DataType::Json) => Value::json(&text)?,
        (Value::List(list), DataType::List(element)) => List::of(&list)?.to(element)?,
        (value, _) => value,
    })
}
