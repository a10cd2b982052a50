//! The values of a row, on their way into a struct.

use esker_format::ValueRef;

use super::field_type::from_json;
use super::{FieldType, RecordField};
use crate::{Error, Result};

/// Gives out the values of a row, one for each field of a [`Record`](crate::Record), in their
/// order.
#[derive(Debug)]
pub struct RecordReader<'a> {
    fields: &'static [RecordField],
    /// Where in the row the value of each field is.
    places: &'a [usize],
    row: &'a [ValueRef<'a>],
    next: usize,
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(
        fields: &'static [RecordField],
        places: &'a [usize],
        row: &'a [ValueRef<'a>],
    ) -> Self {
        Self { fields, places, row, next: 0 }
    }

    /// Gives the value of the next field.
    ///
    /// # Errors
    /// `InvalidInput` naming the field, what was expected and what was found.
    pub fn field<T: FieldType>(&mut self) -> Result<T> {
        let (field, value) = self.take()?;
        T::from_value(value).ok_or_else(|| {
            let (name, data_type, kind) = (field.name, field.data_type, value.kind_name());
            let found = if value.is_null() { "NULL".into() } else { format!("{kind} {value}") };
            Error::invalid(format!("field {name:?}: expected {data_type}, found {found}"))
        })
    }

    /// Gives the value of the next field, as serde reads it from JSON.
    ///
    /// # Errors
    /// As for [`RecordReader::field`].
    pub fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let (field, value) = self.take()?;
        from_json(value).map_err(|e| e.at(format_args!("field {:?}", field.name)))
    }

    fn take(&mut self) -> Result<(&'static RecordField, ValueRef<'a>)> {
        let place = self.places.get(self.next).copied();
        let field = self.fields.get(self.next);
        self.next += 1;
        match (field, place.and_then(|place| self.row.get(place))) {
            (Some(field), Some(value)) => Ok((field, *value)),
            _ => Err(Error::invalid("fewer values than the record has fields")),
        }
    }
}
