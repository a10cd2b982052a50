//! Rows as whatever serde can write and read: JSON, maps, structs of others.
//!
//! An object's names are those of fields; its values become the [`Value`]s that the fields take,
//! and the row goes the way of every other. Nothing passes through JSON, except what a `json` field
//! holds.
//!
//! | field | takes | gives |
//! |---|---|---|
//! | numbers | numbers; as text, too | numbers; a float that is none as text |
//! | `decimal` | integers, text, floats of up to 15 digits: these are known | text |
//! | `bytes` | bytes, lists of numbers, hexadecimal text | bytes or a list if wanted, or text |
//! | `uuid` | text, 16 bytes | the same |
//! | `enum` | text, variants without fields | text, variants |
//! | `json` | anything | what it is |
//! | others | text | text |

mod deserializer;
mod error;
mod list;
mod row_serializer;
mod value_serializer;

use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_query::Query;
use esker_query::model::OnConflict;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::without_limits;
use crate::{Database, Result, Row, Table, ToKey};

use deserializer::RowDeserializer;
use row_serializer::RowSerializer;

/// The fields that an object names, by position, with their values.
fn fields_of<T: Serialize + ?Sized>(schema: &Schema, object: &T) -> Result<Vec<(usize, Value)>> {
    Ok(object.serialize(RowSerializer::new(schema))?)
}

/// A row as an object.
fn object_of<T: DeserializeOwned>(names: &[&str], row: &[ValueRef<'_>]) -> Result<T> {
    Ok(T::deserialize(RowDeserializer::new(names, row))?)
}

impl Table {
    /// Adds a row from an object: anything that serde writes with names, such as
    /// `serde_json::Value`, a map or a struct. Fields without a value get their defaults. Returns
    /// the row id.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    /// use serde_json::json;
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder()
    ///     .field("name", DataType::Text)
    ///     .nullable("height", DataType::F64)
    ///     .nullable("more", DataType::Json)
    ///     .primary_key(["name"])
    ///     .build()?;
    /// let people = db.create_table("people", schema)?;
    /// let ada = json!({ "name": "Ada", "height": 1.65, "more": { "languages": [] } });
    /// people.insert_object(&ada)?;
    /// assert_eq!(people.get_object("Ada")?, Some(ada));
    /// let error = people.insert_object(&json!({ "name": "Bob", "heigth": 2 })).unwrap_err();
    /// assert_eq!(error.to_string(), "unknown field \"heigth\"; did you mean \"height\"?");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::insert`]; `InvalidInput` for an unknown field or one that is there twice.
    pub fn insert_object<T: Serialize + ?Sized>(&self, object: &T) -> Result<u64> {
        self.put_object(object, true)
    }

    /// Adds a row from an object, or replaces the one with its key: see [`Table::insert_object`].
    ///
    /// # Errors
    /// As for [`Table::insert_object`].
    pub fn upsert_object<T: Serialize + ?Sized>(&self, object: &T) -> Result<u64> {
        self.put_object(object, false)
    }

    fn put_object<T: Serialize + ?Sized>(&self, object: &T, must_be_new: bool) -> Result<u64> {
        self.attempt(|current| {
            let fields = fields_of(&current.schema, object)?;
            let row = self.engine.fill_row(&current.schema, fields)?;
            self.put_once(current, &row, must_be_new)
        })
    }

    /// Adds rows from objects, all or none: see [`Table::insert_object`].
    ///
    /// # Errors
    /// As for [`Table::insert_object`]; the message says which row.
    pub fn insert_objects<T: Serialize>(&self, objects: &[T]) -> Result<()> {
        self.attempt(|current| {
            let row = |(i, object)| {
                let fields = fields_of(&current.schema, object);
                let row = fields.and_then(|f| self.engine.fill_row(&current.schema, f));
                row.map_err(|e| e.in_row(i as u64))
            };
            let rows = objects.iter().enumerate().map(row).collect::<Result<Vec<_>>>()?;
            self.put_batch(current, &rows, &OnConflict::Fail, &without_limits).map(drop)
        })
    }

    /// The row with a key, as an object.
    ///
    /// # Errors
    /// As for [`Table::get`] and [`Row::to_object`].
    pub fn get_object<T: DeserializeOwned>(&self, key: impl ToKey) -> Result<Option<T>> {
        self.get(&key.to_key()?)?.map(|row| row.to_object()).transpose()
    }
}

impl Row {
    /// The row as anything that serde reads from names and values, such as `serde_json::Value`, a
    /// map or a struct.
    ///
    /// # Errors
    /// `InvalidInput` naming the field that is missing or of another type.
    pub fn to_object<T: DeserializeOwned>(&self) -> Result<T> {
        let schema = Arc::clone(self.shared_schema());
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name.as_str()).collect();
        object_of(&names, &self.references())
    }
}

impl Database {
    /// Answers a query with objects, whose names are those of the columns: see [`Row::to_object`].
    ///
    /// ```
    /// use esker::{Options, Query, Record};
    ///
    /// # #[derive(Record)]
    /// # struct Reading { celsius: f64 }
    /// # let db = Options::new().memory()?;
    /// # db.create_table_of::<Reading>("readings")?.insert(&Reading { celsius: 19.5 })?;
    /// let readings: Vec<serde_json::Value> = db.query_objects(&Query::table("readings"))?;
    /// assert_eq!(readings, [serde_json::json!({ "celsius": 19.5 })]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::query`] and [`Row::to_object`].
    pub fn query_objects<T: DeserializeOwned>(&self, query: &Query) -> Result<Vec<T>> {
        let answer = self.query(query)?;
        let names: Vec<&str> = answer.columns.iter().map(|c| c.name.as_str()).collect();
        answer.rows().map(|row| object_of(&names, &row)).collect()
    }
}
