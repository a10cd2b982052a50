//! Where the fields of a struct are in a table, and whether the two agree.

use std::sync::Arc;

use esker_format::{Field, Schema, Value, ValueRef};
use esker_query::ResultColumn;

use super::record_field::holds;
use super::{Record, RecordField, RecordReader, RecordWriter};
use crate::catalog::table_or_create::{expect_key, expect_reference, expect_unique};
use crate::engine::Engine;
use crate::{Error, Result, Row};

/// The fields of a [`Record`] in the rows of one schema.
pub(crate) struct Binding {
    schema: Arc<Schema>,
    /// The position of each field of the struct.
    places: Vec<usize>,
}

impl Binding {
    /// Finds the fields of a struct in a schema.
    ///
    /// # Errors
    /// `InvalidInput` naming the field that is missing, or which the struct cannot hold.
    pub fn new<T: Record>(schema: Arc<Schema>) -> Result<Self> {
        let place = |field: &RecordField| {
            let position = schema.expect_position(field.name)?;
            if let Some(of_table) = schema.fields().get(position) {
                agree(field, of_table)?;
            }
            Ok(position)
        };
        let places = T::FIELDS.iter().map(place).collect::<Result<Vec<_>>>();
        let places = places.map_err(|e| e.at(format_args!("record {}", T::NAME)))?;
        Ok(Self { schema, places })
    }

    /// Whether it is for this schema.
    pub fn is_of(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(&self.schema, schema)
    }

    /// Refuses a struct without a field that a row cannot do without.
    ///
    /// # Errors
    /// `InvalidInput` naming the field.
    pub fn check_writable<T: Record>(&self) -> Result<()> {
        let needed = |field: &&Field| !field.may_be_left_out();
        let is_missing = |field: &&Field| !T::FIELDS.iter().any(|own| own.name == field.name);
        match self.schema.fields().iter().filter(needed).find(is_missing) {
            None => Ok(()),
            Some(field) => {
                let (record, name, found) = (T::NAME, &field.name, field.type_text());
                let message = format!(
                    "record {record}: field {name:?} of the table ({found} not null, without a \
                     default) is missing"
                );
                Err(Error::invalid(message))
            }
        }
    }

    /// Refuses a table in which two rows may have what is unique in the struct.
    ///
    /// # Errors
    /// `InvalidInput` naming the fields.
    pub fn check_unique<T: Record>(&self) -> Result<()> {
        let mut unique = T::INDEXES.iter().filter(|index| index.unique);
        unique
            .try_for_each(|index| expect_unique(&self.schema, index.fields))
            .map_err(|e| e.at(format_args!("record {}", T::NAME)))
    }

    /// Refuses a table whose rows may refer to what is not there, where those of the struct do not.
    ///
    /// # Errors
    /// `InvalidInput` naming the fields.
    pub fn check_references<T: Record>(&self) -> Result<()> {
        T::REFERENCES
            .iter()
            .try_for_each(|reference| expect_reference(&self.schema, &reference.to_new()))
            .map_err(|e| e.at(format_args!("record {}", T::NAME)))
    }

    /// Refuses a table whose key is not that of the struct.
    ///
    /// # Errors
    /// `InvalidInput` with both keys.
    pub fn check_key<T: Record>(&self) -> Result<()> {
        let key = T::FIELDS.iter().filter(|field| field.is_key).map(|field| field.name);
        expect_key(&self.schema, &key.collect::<Vec<_>>())
            .map_err(|e| e.at(format_args!("record {}", T::NAME)))
    }

    /// A row of the schema from a struct; what the struct leaves out gets its default.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value cannot be stored.
    pub fn row<T: Record>(&self, engine: &Engine, record: &T) -> Result<Vec<Value>> {
        let mut writer = RecordWriter::new(T::FIELDS);
        record.write(&mut writer)?;
        let values = self.places.iter().zip(writer.into_values());
        let given = values.filter_map(|(place, value)| Some((*place, value?)));
        engine.fill_row(&self.schema, given)
    }

    /// What a function changes of a row as a struct: the fields and their new values.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value cannot be stored, or one of the key.
    pub fn changes<T: Record>(
        &self,
        engine: &Engine,
        row: &Row,
        change: impl FnOnce(&mut T),
    ) -> Result<Vec<(&'static str, Value)>> {
        let written = |record: &T| {
            let mut writer = RecordWriter::new(T::FIELDS);
            record.write(&mut writer)?;
            Ok::<_, Error>(writer.into_values())
        };
        let mut record = self.record::<T>(&row.references())?;
        let before = written(&record)?;
        change(&mut record);
        let mut changes = Vec::new();
        let pairs = before.into_iter().zip(written(&record)?);
        for ((field, place), (before, now)) in T::FIELDS.iter().zip(&self.places).zip(pairs) {
            let is_same = match (&before, &now) {
                (Some(before), Some(now)) => before.as_ref().is_identical(now.as_ref()),
                (before, now) => before.is_none() && now.is_none(),
            };
            if is_same {
                continue;
            }
            let name = field.name;
            if self.schema.key_positions().contains(place) {
                let message = format!("field {name:?}: the key of a row stays what it is");
                return Err(Error::invalid(message));
            }
            let of_table = self.schema.fields().get(*place);
            let of_table = of_table.ok_or_else(|| Error::invalid(format!("no field {name:?}")))?;
            // default: what is left out is the default
            let now = now.map_or_else(|| engine.default_of(&self.schema, of_table), Ok)?;
            changes.push((name, now));
        }
        Ok(changes)
    }

    /// The struct that a row of the schema is.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value the struct cannot hold.
    pub fn record<T: Record>(&self, row: &[ValueRef<'_>]) -> Result<T> {
        T::read(&mut RecordReader::new(T::FIELDS, &self.places, row))
    }
}

/// Whether a field of a struct can be one of a table.
fn agree(field: &RecordField, of_table: &Field) -> Result<()> {
    let name = field.name;
    if !holds(field.data_type, of_table.data_type) {
        let (expected, found) = (field.data_type, of_table.type_text());
        return Err(Error::invalid(format!("field {name:?}: expected {expected}, found {found}")));
    }
    if of_table.nullable && !field.takes_null {
        let found = of_table.type_text();
        return Err(Error::invalid(format!(
            "field {name:?}: expected {found} not null, found {found}: an Option holds its NULL"
        )));
    }
    let unknown = of_table.labels.iter().flat_map(|labels| labels.iter());
    match unknown.filter(|_| !field.labels.is_empty()).find(|l| !field.labels.contains(l)) {
        None => Ok(()),
        Some(label) => {
            let known = field.labels.join(", ");
            Err(Error::invalid(format!(
                "field {name:?}: expected the labels {known}, found {label:?}"
            )))
        }
    }
}

/// Where the fields of a struct are among the columns of an answer.
///
/// # Errors
/// `InvalidInput` naming the column that is missing, is there twice, or which the struct cannot
/// hold.
pub(crate) fn places_in<T: Record>(columns: &[ResultColumn]) -> Result<Vec<usize>> {
    let place = |field: &RecordField| {
        let (name, expected) = (field.name, field.data_type);
        let found = columns.iter().position(|column| column.name == name);
        let names = columns.iter().map(|column| column.name.as_str());
        let position = found.ok_or_else(|| {
            let near = esker_format::suggest::near_or_all(name, "columns", names);
            Error::invalid(format!("the answer has no column {name:?}{near}"))
        })?;
        let again = columns.iter().skip(position + 1).filter(|column| column.name == name).count();
        match columns.get(position) {
            Some(_) if again > 0 => Err(Error::invalid(format!(
                "the answer has {} columns {name:?}: give others other names with AS",
                again + 1
            ))),
            Some(column) if !holds(expected, column.data_type) => {
                let found = column.data_type;
                let message = format!("column {name:?}: expected {expected}, found {found}");
                Err(Error::invalid(message))
            }
            _ => Ok(position),
        }
    };
    let places = T::FIELDS.iter().map(place).collect::<Result<Vec<_>>>();
    places.map_err(|e| e.at(format_args!("record {}", T::NAME)))
}

impl Row {
    /// The row as a struct; fields that the struct does not have are left out.
    ///
    /// ```
    /// use esker::{DataType, Options, Record, Schema};
    ///
    /// #[derive(Debug, PartialEq, Record)]
    /// struct Name {
    ///     name: String,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("name", DataType::Text).nullable("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["name"]).build()?)?;
    /// table.insert(&["Ada".into(), 1i64.into()])?;
    /// let ada = table.get(&["Ada".into()])?.expect("inserted above");
    /// assert_eq!(ada.to_record::<Name>()?, Name { name: "Ada".into() });
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the field that is missing or that the struct cannot hold.
    pub fn to_record<T: Record>(&self) -> Result<T> {
        Binding::new::<T>(Arc::clone(self.shared_schema()))?.record(&self.references())
    }
}
