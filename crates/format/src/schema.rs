//! Tables: fields, primary keys, schema versions.

use crate::codec::{Reader, Writer};
use crate::text::shown;
use crate::{DataType, Error, Result, ValueRef};

/// The number of a table within its database; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// The number of a field within its table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u16);

/// The most fields a table may have.
pub const FIELDS_MAX: usize = 1024;

/// The longest name of a table or field, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The name of the column of [`Schema::with_row_id`]; it has a control character.
pub const ROW_ID_NAME: &str = "\0row id";

/// One field of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number, by which segments name its column.
    pub id: FieldId,
    /// Its name, unique in the table.
    pub name: String,
    /// What it holds.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The most characters of a text, or bytes of a byte string; `None` for no limit of its own.
    pub length_max: Option<u32>,
}

/// What a stored field has beside its number, type, name and whether it may be NULL.
const LENGTH_MAX: u8 = 1;

impl Field {
    /// Checks the length of a text or byte string; other values have none.
    ///
    /// # Errors
    /// `InvalidInput` with the length, the limit and the start of the value.
    pub fn check_length(&self, value: ValueRef<'_>) -> Result<()> {
        let Some(most) = self.length_max else { return Ok(()) };
        let (unit, length) = match value {
            // A character has at least one byte.
            ValueRef::Text(text) if text.len() <= most as usize => return Ok(()),
            ValueRef::Text(text) => ("characters", text.chars().count()),
            ValueRef::Bytes(bytes) => ("bytes", bytes.len()),
            _ => return Ok(()),
        };
        if length <= most as usize {
            return Ok(());
        }
        let start = shown(value.as_bytes().unwrap_or_default());
        Err(Error::invalid(format!("expected at most {most} {unit}, found {length}: {start}")))
    }

    /// The type with its limit, as schemas write it: `i64`, `text(40)`.
    #[must_use]
    pub fn type_text(&self) -> String {
        match self.length_max {
            Some(most) => format!("{}({most})", self.data_type),
            None => self.data_type.to_string(),
        }
    }

    fn encode(&self, out: &mut Writer) {
        out.u16(self.id.0);
        out.u8(self.data_type.code());
        out.u8(u8::from(self.nullable));
        out.text(&self.name);
        match self.length_max {
            None => out.count(0),
            Some(most) => {
                out.count(1);
                out.u8(LENGTH_MAX);
                out.bytes(&most.to_le_bytes());
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let id = FieldId(input.u16()?);
        let code = input.u8()?;
        let data_type = DataType::from_code(code)
            .ok_or_else(|| Error::corrupt(format!("unknown field type {code}")))?;
        let nullable = match input.u8()? {
            0 => false,
            1 => true,
            other => return Err(Error::corrupt(format!("nullable flag is {other}"))),
        };
        let name = input.text()?.to_owned();
        let mut length_max = None;
        for _ in 0..input.count(usize::from(u8::MAX))? {
            let (property, bytes) = (input.u8()?, input.bytes()?);
            if property != LENGTH_MAX || length_max.is_some() {
                return Err(Error::corrupt(format!("field property {property}")));
            }
            let mut value = Reader::new(bytes);
            length_max = Some(value.u32()?);
            value.finish()?;
        }
        Ok(Self { id, name, data_type, nullable, length_max })
    }

    fn validate(&self) -> Result<()> {
        validate_name("field", &self.name)?;
        let limited = matches!(self.data_type, DataType::Text | DataType::Bytes);
        match self.length_max {
            Some(0) => Err(Error::invalid(format!(
                "field {:?}: expected a length of at least 1, found 0",
                self.name
            ))),
            Some(_) if !limited => Err(Error::invalid(format!(
                "field {:?}: text and bytes have a length, {} has none",
                self.name, self.data_type
            ))),
            _ => Ok(()),
        }
    }
}

/// What identifies a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrimaryKey {
    /// The row id, given out by the database in rising order. It is not a field.
    Generated,
    /// The values of these fields (positions in [`Schema::fields`]), none of them nullable.
    Fields(Vec<usize>),
}

/// The fields and the primary key of a table, at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    version: u32,
    fields: Vec<Field>,
    primary_key: PrimaryKey,
}

impl Schema {
    /// Starts a schema without fields and with a generated key.
    #[must_use]
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Counts changes; 1 for a new table.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The fields, in declared order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// What identifies a row.
    #[must_use]
    pub fn primary_key(&self) -> &PrimaryKey {
        &self.primary_key
    }

    /// The positions of the key fields; empty when the key is generated.
    #[must_use]
    pub fn key_positions(&self) -> &[usize] {
        match &self.primary_key {
            PrimaryKey::Generated => &[],
            PrimaryKey::Fields(positions) => positions,
        }
    }

    /// The position of a field by name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// The position of a field by name.
    ///
    /// # Errors
    /// `InvalidInput` naming the fields there are.
    pub fn expect_position(&self, name: &str) -> Result<usize> {
        self.position(name).ok_or_else(|| self.unknown_field(name))
    }

    /// The position of a field as statements name it: the name as it is, or else the one name that
    /// differs in case only.
    ///
    /// # Errors
    /// `InvalidInput` naming the fields there are.
    pub fn resolve(&self, name: &str) -> Result<usize> {
        let alike = || {
            let same = |(_, f): &(usize, &Field)| f.name.eq_ignore_ascii_case(name);
            let mut alike = self.fields.iter().enumerate().filter(same);
            match (alike.next(), alike.next()) {
                (Some((position, _)), None) => Some(position),
                _ => None,
            }
        };
        self.position(name).or_else(alike).ok_or_else(|| self.unknown_field(name))
    }

    /// The error for a name that no field has.
    #[must_use]
    pub fn unknown_field(&self, name: &str) -> Error {
        let names = self.fields.iter().map(|f| f.name.as_str()).filter(|n| *n != ROW_ID_NAME);
        let names: Vec<_> = names.collect();
        Error::invalid(format!("unknown field {name:?}; fields: {}", names.join(", ")))
    }

    /// The same with one more field, of row ids (u64), at the end: what statements read to find
    /// rows again. Its name, [`ROW_ID_NAME`], is none that a field can have.
    #[must_use]
    pub fn with_row_id(&self) -> Self {
        let mut schema = self.clone();
        let (id, data_type) = (FieldId(u16::MAX), DataType::U64);
        let name = ROW_ID_NAME.to_owned();
        schema.fields.push(Field { id, name, data_type, nullable: false, length_max: None });
        schema
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Writer) {
        out.u32(self.version);
        out.count(self.fields.len());
        for field in &self.fields {
            field.encode(out);
        }
        let positions = self.key_positions();
        out.count(positions.len());
        positions.iter().for_each(|p| out.count(*p));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a schema.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let version = input.u32()?;
        let count = input.count(FIELDS_MAX)?;
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            fields.push(Field::decode(input)?);
        }
        let key_count = input.count(FIELDS_MAX)?;
        let mut positions = Vec::with_capacity(key_count);
        for _ in 0..key_count {
            positions.push(input.count(FIELDS_MAX)?);
        }
        let primary_key = if positions.is_empty() {
            PrimaryKey::Generated
        } else {
            PrimaryKey::Fields(positions)
        };
        let schema = Self { version, fields, primary_key };
        schema.validate().map_err(|e| Error::corrupt(e.to_string()))?;
        Ok(schema)
    }

    fn validate(&self) -> Result<()> {
        if self.fields.is_empty() || self.fields.len() > FIELDS_MAX {
            let count = self.fields.len();
            return Err(Error::invalid(format!(
                "a table has 1 to {FIELDS_MAX} fields, found {count}"
            )));
        }
        let mut names = std::collections::BTreeSet::new();
        let mut ids = std::collections::BTreeSet::new();
        for field in &self.fields {
            field.validate()?;
            if !names.insert(&field.name) || !ids.insert(field.id) {
                return Err(Error::invalid(format!("field {:?} is declared twice", field.name)));
            }
        }
        let mut used = std::collections::BTreeSet::new();
        for position in self.key_positions() {
            let field = self.fields.get(*position).ok_or_else(|| {
                Error::invalid(format!("key position {position} is past the last field"))
            })?;
            if field.nullable {
                let name = &field.name;
                return Err(Error::invalid(format!("key field {name:?} must not be nullable")));
            }
            if !used.insert(*position) {
                return Err(Error::invalid(format!("key field {:?} is named twice", field.name)));
            }
        }
        Ok(())
    }
}

/// Checks a table or field name: 1 to [`NAME_BYTES_MAX`] bytes, no control characters.
///
/// # Errors
/// `InvalidInput` saying what is wrong with it.
pub fn validate_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let len = name.len();
        return Err(Error::invalid(format!(
            "a {what} name has 1 to {NAME_BYTES_MAX} bytes, found {len}: {name:?}"
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("{what} name {name:?} has a control character")));
    }
    Ok(())
}

/// Builds a [`Schema`].
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    fields: Vec<Field>,
    key: Vec<String>,
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

    fn push(mut self, name: String, data_type: DataType, nullable: bool) -> Self {
        let id = FieldId(u16::try_from(self.fields.len() + 1).unwrap_or(u16::MAX));
        self.fields.push(Field { id, name, data_type, nullable, length_max: None });
        self
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

    /// Declares the primary key: one or more fields, by name. Without this call, or with an
    /// empty list, the key is generated.
    #[must_use]
    pub fn primary_key<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.key = names.into_iter().map(Into::into).collect();
        self
    }

    /// Checks and finishes the schema.
    ///
    /// # Errors
    /// `InvalidInput` for a bad or repeated name, no field, too many fields, a length of what has
    /// none, or a key that names an unknown or nullable field.
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
        let schema = Schema { version: 1, fields: self.fields, primary_key };
        schema.validate()?;
        Ok(schema)
    }
}
