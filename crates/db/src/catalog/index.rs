//! Creating and dropping secondary indexes.
//!
//! An index is part of the schema: one commit adds it, and from then on statements may use what is
//! built of it. Rows are not touched, so writers, appenders and loads that have begun before go on.

use esker_format::Schema;
use esker_format::schema::{Alteration, NewIndex};

use crate::{Database, Error, ErrorKind, Result};

impl Database {
    /// Adds an index to a table, beside readers and writers: the rows in the order of some fields,
    /// so that questions about these read what they ask for instead of all.
    ///
    /// It returns when the index is built, or cannot be: then the index is there and is built in
    /// the background as soon as that is possible; [`Info`](crate::Info) says how far it is, and
    /// why it is not.
    ///
    /// ```
    /// use esker::{DataType, NewIndex, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("city", DataType::Text).build()?;
    /// db.create_table("people", schema)?;
    /// db.create_index("people", NewIndex::new("by_city", ["city"]))?;
    /// assert_eq!(db.table("people")?.schema().indexes()[0].name, "by_city");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `AlreadyExists` when the table has an index of this name,
    /// `InvalidInput` for an unknown or repeated field, more than
    /// [`INDEX_FIELDS_MAX`](crate::INDEX_FIELDS_MAX), or one that has no order. Nothing is changed
    /// then.
    pub fn create_index(&self, table: &str, index: NewIndex) -> Result<()> {
        self.create_indexes(table, &[index])
    }

    /// Adds several indexes in one commit: all or none. They are built in one pass over the rows.
    ///
    /// ```
    /// use esker::{DataType, NewIndex, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("city", DataType::Text).field("age", DataType::U8);
    /// db.create_table("people", schema.build()?)?;
    /// let mut by_age = NewIndex::new("by_age", ["age", "city"]);
    /// by_age.fields[0].1 = true; // the oldest first
    /// db.create_indexes("people", &[NewIndex::new("by_city", ["city"]), by_age])?;
    /// assert_eq!(db.info().tables[0].indexes[1].fields, ["age desc", "city"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::create_index`].
    pub fn create_indexes(&self, table: &str, indexes: &[NewIndex]) -> Result<()> {
        if indexes.is_empty() {
            return self.table(table).map(drop);
        }
        let add: Vec<_> = indexes.iter().cloned().map(Alteration::AddIndex).collect();
        self.alter_table(table, &add)
    }

    /// Takes an index from a table. Answers stay the same.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("city", DataType::Text).index("by_city", ["city"]);
    /// db.create_table("people", schema.build()?)?;
    /// db.drop_index("people", "by_city")?;
    /// let e = db.drop_index("people", "by_city").unwrap_err();
    /// assert_eq!(e.to_string(), "unknown index \"by_city\"; indexes: none");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table or index.
    pub fn drop_index(&self, table: &str, name: &str) -> Result<()> {
        self.alter_table(table, &[Alteration::DropIndex(name.to_owned())])
    }
}

/// Refuses an index whose name is taken, and one to drop that there is not.
pub(crate) fn refuse_names(schema: &Schema, alteration: &Alteration) -> Result<()> {
    match alteration {
        Alteration::AddIndex(new) if schema.index(&new.name).is_ok() => {
            let message = format!("index {:?} exists already", new.name);
            Err(Error::new(ErrorKind::AlreadyExists, message))
        }
        Alteration::DropIndex(name) => match schema.index(name) {
            Ok(_) => Ok(()),
            Err(e) => Err(Error::new(ErrorKind::NotFound, e.to_string())),
        },
        _ => Ok(()),
    }
}
