//! Building a schema.

use std::sync::Arc;

use super::{
    Changes, Check, DefaultValue, Field, FieldId, Generated, Identity, NewIndex, NewReference,
    PrimaryKey, Profile, RowOrder, Schema, StreamOption,
};
use crate::{DataType, Error, ExpiryClock, Labels, Result};

/// Builds a [`Schema`].
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    fields: Vec<Field>,
    key: Vec<String>,
    checks: Vec<Check>,
    indexes: Vec<NewIndex>,
    references: Vec<NewReference>,
    profile: Profile,
    row_order: RowOrder,
    stream: Option<(String, Vec<StreamOption>)>,
    changes: Option<Changes>,
    expiry: Option<String>,
    expiry_clock: ExpiryClock,
    comment: Option<Arc<str>>,
}

impl SchemaBuilder {
    /// Adds a field that must have a value.
    #[must_use]
    pub fn field(self, name: impl Into<String>, data_type: DataType) -> Self {
        self.push(name.into(), data_type, false)
    }

    /// Adds a field that may be NULL.
    #[must_use]
    pub fn nullable(self, name: impl Into<String>, data_type: DataType) -> Self {
        self.push(name.into(), data_type, true)
    }

    /// Adds a field with all its properties; its number is given out.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "nothing is summed")]
    pub fn add(mut self, field: Field) -> Self {
        let id = self.next_id();
        let default = field.default.clone();
        self.fields.push(Field { id, ..field });
        match default {
            Some(default) => self.default_value(default),
            None => self,
        }
    }

    fn push(mut self, name: String, data_type: DataType, nullable: bool) -> Self {
        self.fields.push(Field::new(self.next_id(), name, data_type, nullable));
        self
    }

    /// The number of a field behind those there are.
    fn next_id(&self) -> FieldId {
        // default: `build` refuses a table of so many fields.
        FieldId(u16::try_from(self.fields.len() + 1).unwrap_or(u16::MAX))
    }

    /// Limits the field added last, a text or byte string, to so many characters or bytes.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("code", DataType::Text).max_length(3).build()?;
    /// assert_eq!(schema.fields()[0].type_text(), "text(3)");
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn max_length(mut self, length: u32) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.length_max = Some(length);
        }
        self
    }

    /// Gives the field added last, an enum, its labels, in the order that they have.
    ///
    /// ```
    /// use esker_format::{DataType, Labels, Schema};
    ///
    /// let labels = Labels::new(["small", "large"])?;
    /// let schema = Schema::builder().field("size", DataType::Enum).labels(labels).build()?;
    /// assert_eq!(schema.fields()[0].type_text(), "enum(small, large)");
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn labels(mut self, labels: Labels) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.labels = Some(Arc::new(labels));
        }
        self
    }

    /// Gives the field added last a default.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    /// use esker_format::schema::DefaultValue;
    ///
    /// let schema = Schema::builder()
    ///     .field("id", DataType::Uuid)
    ///     .default_value(DefaultValue::Uuid)
    ///     .field("stars", DataType::U8)
    ///     .default_value(DefaultValue::Literal(3i64.into()))
    ///     .primary_key(["id"])
    ///     .build()?;
    /// assert!(schema.fields()[1].default.is_some());
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn default_value(mut self, default: DefaultValue) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.default = Some(match default {
                DefaultValue::Literal(value) => {
                    // default: a value that does not fit is refused by `build`.
                    DefaultValue::Literal(field.fit(&value).unwrap_or(value))
                }
                computed => computed,
            });
        }
        self
    }

    /// Gives the field added last, an integer, the next value of a named sequence as its default.
    ///
    /// ```
    /// use esker_format::schema::DefaultValue;
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("id", DataType::I64).default_next("orders").build()?;
    /// let wanted = DefaultValue::NextValue("orders".to_owned());
    /// assert_eq!(schema.fields()[0].default, Some(wanted));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn default_next(self, sequence: impl Into<String>) -> Self {
        self.default_value(DefaultValue::NextValue(sequence.into()))
    }

    /// Computes the values of the field added last from the others of its row, whenever the row is
    /// written: nobody gives it one. The expression has its stored form.
    #[must_use]
    pub fn generated(mut self, generated: Generated) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.generated = Some(Arc::new(generated));
        }
        self
    }

    /// Gives the field added last, an integer, a sequence of its own, which comes and goes with it
    /// and gives rows the values that they are written without.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.identity = Some(identity);
        }
        self
    }

    /// Says what the table is about, in words.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<Arc<str>>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// Adds a condition that every row must meet, in its stored form.
    #[must_use]
    pub fn check(mut self, name: impl Into<String>, condition: impl Into<String>) -> Self {
        self.checks.push(Check { name: name.into(), condition: condition.into() });
        self
    }

    /// Adds an index on fields by their names, the least value first.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("city", DataType::Text).index("by_city", ["city"]);
    /// assert_eq!(schema.build()?.indexes()[0].name, "by_city");
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn index<N: Into<String>>(
        self,
        name: impl Into<String>,
        fields: impl IntoIterator<Item = N>,
    ) -> Self {
        self.add_index(NewIndex::new(name, fields))
    }

    /// Adds an index in any form.
    #[must_use]
    pub fn add_index(mut self, index: NewIndex) -> Self {
        self.indexes.push(index);
        self
    }

    /// Adds a reference to rows of another table. What it refers to is looked at when the table is
    /// created.
    ///
    /// ```
    /// use esker_format::schema::NewReference;
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("user", DataType::I64);
    /// let schema = schema.reference(NewReference::new(["user"], "users")).build()?;
    /// assert_eq!(schema.references()[0].table, "users");
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn reference(mut self, reference: NewReference) -> Self {
        self.references.push(reference);
        self
    }

    /// Declares the primary key: one or more fields, by name. Without this call, or with an
    /// empty list, the key is generated.
    #[must_use]
    pub fn primary_key<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.key = names.into_iter().map(Into::into).collect();
        self
    }

    /// Rows lie in the order of the primary key once they are sealed, so that reading a range of
    /// keys touches few pages. It cannot be changed later.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder()
    ///     .field("sensor", DataType::U32)
    ///     .field("at", DataType::Timestamp)
    ///     .field("value", DataType::F64)
    ///     .primary_key(["sensor", "at"])
    ///     .ordered_by_key()
    ///     .build()?;
    /// assert!(schema.is_ordered_by_key());
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn ordered_by_key(mut self) -> Self {
        self.row_order = RowOrder::Key;
        self
    }

    /// Rows expire at the moment that a timestamp field names: from then on they are absent for
    /// every purpose, and their space comes back later. NULL means never.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder()
    ///     .field("token", DataType::Uuid)
    ///     .nullable("until", DataType::Timestamp)
    ///     .primary_key(["token"])
    ///     .expires_by("until")
    ///     .build()?;
    /// assert_eq!(schema.expiry_field().map(|f| f.name.as_str()), Some("until"));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn expires_by(mut self, field: impl Into<String>) -> Self {
        self.expiry = Some(field.into());
        self
    }

    /// Rows expire when a time to live is over, whose end a timestamp field has on the elapsed time
    /// of the database: no step of the wall clock touches that. Buckets are so.
    #[must_use]
    pub fn expires_by_elapsed(mut self, field: impl Into<String>) -> Self {
        (self.expiry, self.expiry_clock) = (Some(field.into()), ExpiryClock::Elapsed);
        self
    }

    /// The table is a bucket: with the fields of buckets, which this checks.
    #[must_use]
    pub fn bucket(mut self) -> Self {
        self.profile = Profile::Bucket;
        self
    }

    /// The table is a stream of events, whose time a field has: a timestamp that is never NULL.
    ///
    /// ```
    /// use esker_format::schema::StreamOption;
    /// use esker_format::{DataType, Schema};
    ///
    /// let late = StreamOption::read("late", Some("1 day"))?;
    /// let schema = Schema::builder()
    ///     .field("t", DataType::Timestamp)
    ///     .nullable("user", DataType::Text)
    ///     .stream("t", [late])
    ///     .build()?;
    /// assert_eq!(schema.stream().and_then(|stream| stream.late_us), Some(86_400_000_000));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn stream(
        mut self,
        time: impl Into<String>,
        options: impl IntoIterator<Item = StreamOption>,
    ) -> Self {
        self.stream = Some((time.into(), options.into_iter().collect()));
        self
    }

    /// Changes of rows are kept in a feed of the table for a time, or the table is such a feed.
    ///
    /// ```
    /// use esker_format::schema::{ChangedRows, Changes};
    /// use esker_format::{DataType, Schema};
    ///
    /// let changes = Changes::Kept { keep_us: 86_400_000_000, rows: ChangedRows::Key };
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]);
    /// assert_eq!(schema.changes(changes).build()?.changes(), Some(changes));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn changes(mut self, changes: Changes) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Checks and finishes the schema.
    ///
    /// # Errors
    /// `InvalidInput` for a bad or repeated name, no field, too many fields, a length of what has
    /// none, a key that names an unknown or nullable field, or an index that cannot be.
    pub fn build(self) -> Result<Schema> {
        let mut positions = Vec::with_capacity(self.key.len());
        for name in &self.key {
            let found = self.fields.iter().position(|f| f.name == *name);
            positions
                .push(found.ok_or_else(|| Error::invalid(format!("unknown key field {name:?}")))?);
        }
        let primary_key = if positions.is_empty() {
            PrimaryKey::Generated
        } else {
            PrimaryKey::Fields(positions)
        };
        let next_field = self.next_id().0;
        let (fields, checks) = (self.fields, self.checks);
        let mut schema = Schema::new(fields, primary_key, checks, next_field);
        (schema.profile, schema.row_order) = (self.profile, self.row_order);
        schema.comment = self.comment;
        schema.changes = self.changes;
        schema.set_expiry(self.expiry.as_deref())?;
        schema.expiry_clock = self.expiry_clock;
        if let Some((time, options)) = &self.stream {
            schema.make_stream(time, options)?;
        }
        self.indexes.iter().try_for_each(|index| schema.add_index(index))?;
        self.references.iter().try_for_each(|new| schema.add_reference(new))?;
        schema.validate()?;
        Ok(schema)
    }
}
