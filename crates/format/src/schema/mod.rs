//! Tables: fields, primary keys, schema versions.

mod alteration;
mod builder;
mod changes;
mod dedupe;
mod field;
mod generated;
mod identity;
mod index;
mod profile;
mod reference;
mod retention;
mod rollup;
mod row_expression;
mod stream;

use crate::codec::{Reader, Writer};
use crate::suggest::near_or_all;
use crate::{DataType, Error, ExpiryClock, Result};
use std::sync::Arc;

pub use alteration::Alteration;
pub use builder::SchemaBuilder;
pub use changes::{ChangedRows, Changes};
pub use dedupe::Dedupe;
pub use field::{DefaultValue, Field};
pub use generated::Generated;
pub use identity::{Identity, IdentityChange};
pub use index::{
    INDEX_FIELDS_MAX, INDEX_IDS_MAX, INDEXES_MAX, Index, IndexField, IndexId, IndexKind, NewIndex,
    PlacedExpression,
};
pub use profile::{BUCKET_FIELDS, Profile, RowOrder};
pub use reference::{NewReference, REFERENCES_MAX, Reference, ReferenceAction, Referrer};
pub use retention::{Retention, RowClass, RowClasses};
pub use rollup::{NewRollup, OPERANDS_MAX, RollupKey, RollupOperand};
pub use row_expression::RowExpression;
pub use stream::{Stream, StreamOption};

/// The number of a table within its database; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// The number of a field within its table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u16);

/// The most fields a table may have.
pub const FIELDS_MAX: usize = 4096;

/// The most fields that a table may have had, the dropped ones included. Some numbers past it are
/// for columns of runs that are no fields.
pub const FIELD_IDS_MAX: usize = u16::MAX as usize - 32;

/// The most check constraints of a table.
pub const CHECKS_MAX: usize = 256;

/// The longest name of a table or field, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

pub use crate::comment::COMMENT_BYTES_MAX;

/// The name of the column of [`Schema::with_row_id`]; it has a control character.
pub const ROW_ID_NAME: &str = "\0row id";

/// The name that means the id of an event where its row is read. It is no field's either.
pub const EVENT_ID_NAME: &str = "\0event id";

/// A condition that every row must meet: it must not be false (NULL passes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, unique in the table.
    pub name: String,
    /// The condition, in the stored form of the layer that evaluates it.
    pub condition: String,
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
    pub(crate) version: u32,
    pub(crate) fields: Vec<Field>,
    pub(crate) primary_key: PrimaryKey,
    pub(crate) checks: Vec<Check>,
    /// The number of the next field that is added: those of dropped ones are not used again.
    pub(crate) next_field: u16,
    pub(crate) indexes: Vec<Index>,
    /// The number of the next index.
    pub(crate) next_index: u32,
    /// The version that last changed what a row is: not only indexes.
    pub(crate) rows_since: u32,
    pub(crate) profile: Profile,
    /// What it is as a stream, where that is its profile.
    pub(crate) stream: Option<Box<Stream>>,
    /// Whether its changes are kept in a feed, or it is one.
    pub(crate) changes: Option<Changes>,
    /// The feed that has them.
    pub(crate) feed: Option<TableId>,
    pub(crate) row_order: RowOrder,
    /// The field that says when a row expires.
    pub(crate) expiry: Option<FieldId>,
    /// By which time it does.
    pub(crate) expiry_clock: ExpiryClock,
    /// The rows of others that its rows refer to.
    pub(crate) references: Vec<Reference>,
    /// The references of others to its rows.
    pub(crate) referrers: Vec<Referrer>,
    /// Whether a field is generated: asked of every row that is written.
    pub(crate) has_generated: bool,
    /// What the table is about, in words.
    pub(crate) comment: Option<Arc<str>>,
}

impl Schema {
    /// Starts a schema without fields and with a generated key.
    #[must_use]
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Nullable fields of some types, for rows that no table holds: they are called by their
    /// numbers, and an enum may have any labels.
    #[must_use]
    pub fn of_types(types: &[DataType]) -> Self {
        let field = |(i, data_type): (usize, &DataType)| {
            Field::new(number_of(i), format!("column {i}"), *data_type, true)
        };
        let fields = types.iter().enumerate().map(field).collect();
        Self::new(fields, PrimaryKey::Generated, Vec::new(), u16::MAX)
    }

    /// Fields with names, types and labels, for rows that no table holds. They are numbered anew;
    /// names may be given twice.
    #[must_use]
    pub fn of_fields(fields: Vec<Field>) -> Self {
        let fields = fields.into_iter().enumerate();
        let numbered = fields.map(|(i, field)| Field { id: number_of(i), ..field });
        Self::new(numbered.collect(), PrimaryKey::Generated, Vec::new(), u16::MAX)
    }

    pub(crate) fn new(
        fields: Vec<Field>,
        primary_key: PrimaryKey,
        checks: Vec<Check>,
        next_field: u16,
    ) -> Self {
        Self {
            version: 1,
            has_generated: fields.iter().any(|field| field.generated.is_some()),
            comment: None,
            fields,
            primary_key,
            checks,
            next_field,
            indexes: Vec::new(),
            next_index: 1,
            rows_since: 1,
            profile: Profile::Table,
            stream: None,
            changes: None,
            feed: None,
            row_order: RowOrder::Arrival,
            expiry: None,
            expiry_clock: ExpiryClock::Date,
            references: Vec::new(),
            referrers: Vec::new(),
        }
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

    /// The conditions that every row must meet.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Whether a field is generated.
    #[must_use]
    #[inline]
    pub fn has_generated(&self) -> bool {
        self.has_generated
    }

    /// What the table is about, in words.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// The field of a number.
    #[must_use]
    pub fn field_of(&self, id: FieldId) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The fields of the key, in the order of the key; none when it is generated.
    pub fn key_fields(&self) -> impl Iterator<Item = &Field> {
        self.key_positions().iter().filter_map(|p| self.fields.get(*p))
    }

    /// Whether the last field of the key is a time, so that of the rows with the same values before
    /// it one is the last before some other time.
    #[must_use]
    pub fn is_key_by_time(&self) -> bool {
        let last = self.key_fields().last();
        last.is_some_and(|field| matches!(field.data_type, DataType::Timestamp | DataType::Date))
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

    /// The error for a name that no field has, or that several have in another case.
    #[must_use]
    pub fn unknown_field(&self, name: &str) -> Error {
        let alike = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        if let [first, second, ..] = alike.collect::<Vec<_>>().as_slice() {
            let (first, second) = (&first.name, &second.name);
            return Error::invalid(format!(
                "field {name:?} is ambiguous: {first:?} and {second:?} differ from it in case only"
            ));
        }
        let names = self.fields.iter().map(|f| f.name.as_str()).filter(|n| *n != ROW_ID_NAME);
        Error::invalid(format!("unknown field {name:?}{}", near_or_all(name, "fields", names)))
    }

    /// The same with one more field, of row ids (u64), at the end: what statements read to find
    /// rows again. Its name, [`ROW_ID_NAME`], is none that a field can have.
    #[must_use]
    pub fn with_row_id(&self) -> Self {
        let mut schema = self.clone();
        let (id, data_type) = (FieldId(u16::MAX), DataType::U64);
        let name = ROW_ID_NAME.to_owned();
        schema.fields.push(Field::new(id, name, data_type, false));
        schema
    }

    /// The same with other names for its first fields, for rows that are read by these.
    #[must_use]
    pub fn with_field_names(&self, names: impl IntoIterator<Item = String>) -> Self {
        let mut schema = self.clone();
        schema.fields.iter_mut().zip(names).for_each(|(field, name)| field.name = name);
        schema
    }

    /// The same without the fields that were added after one, by its number: the last ones.
    #[must_use]
    pub fn with_fields_through(&self, last: FieldId) -> Self {
        let mut schema = self.clone();
        let later = schema.fields.iter().filter(|field| field.id > last).map(|field| field.id);
        for id in later.collect::<Vec<_>>() {
            schema.fields.retain(|field| field.id != id);
            schema.indexes.retain(|index| !index.needs(id));
            schema.expiry = schema.expiry.filter(|expiry| *expiry != id);
        }
        schema.checks.clear();
        schema.references.clear();
        schema.referrers.clear();
        schema.note_generated();
        schema
    }

    /// The same with a field twice, the second time as the last one: what asks for it by its name
    /// may mean both.
    #[must_use]
    pub fn with_twin_of(&self, position: usize) -> Self {
        let mut schema = self.clone();
        let twin = schema.fields.get(position).cloned();
        schema.fields.extend(twin);
        schema
    }

    /// The same with each field once more, as `excluded.field`, all nullable: what the update of a
    /// row that is in the way of a new one reads.
    ///
    /// # Errors
    /// `InvalidInput` when a field has such a name already.
    pub fn with_excluded(&self) -> Result<Self> {
        self.with_fields_of(&["excluded"], "ON CONFLICT")
    }

    /// The same with each field once more for each of some rows, as `row.field`, all nullable: what
    /// `clause` reads.
    ///
    /// # Errors
    /// `InvalidInput` when a field has such a name already.
    pub fn with_fields_of(&self, rows: &[&str], clause: &str) -> Result<Self> {
        let mut schema = self.clone();
        for (row, field) in rows.iter().flat_map(|row| self.fields.iter().map(move |f| (row, f))) {
            let mut field = field.clone();
            field.name = format!("{row}.{}", field.name);
            if self.position(&field.name).is_some() {
                let name = &field.name;
                return Err(Error::invalid(format!("field {name:?} is in the way of {clause}")));
            }
            schema.fields.push(field);
        }
        schema.fields.iter_mut().for_each(|field| field.nullable = true);
        Ok(schema)
    }

    /// The same with columns of other tables behind the fields, by names that have a point.
    ///
    /// # Errors
    /// `InvalidInput` when a field has such a name already.
    pub fn with_columns<'n>(
        &self,
        columns: impl IntoIterator<Item = (&'n str, DataType)>,
        clause: &str,
    ) -> Result<Self> {
        let mut schema = self.clone();
        for (name, data_type) in columns {
            if schema.position(name).is_some() {
                return Err(Error::invalid(format!("field {name:?} is in the way of {clause}")));
            }
            let id = FieldId(u16::MAX);
            schema.fields.push(Field::new(id, name.to_owned(), data_type, true));
        }
        Ok(schema)
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
        out.count(self.checks.len());
        for check in &self.checks {
            out.text(&check.name);
            out.text(&check.condition);
        }
        out.u16(self.next_field);
        out.count(self.indexes.len());
        self.indexes.iter().for_each(|index| index.encode(out));
        out.u32(self.next_index);
        out.u32(self.rows_since);
        self.encode_profile(out);
        self.encode_references(out);
        self.encode_stream(out);
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
        let mut checks = Vec::new();
        for _ in 0..input.count(CHECKS_MAX)? {
            let (name, condition) = (input.text()?.to_owned(), input.text()?.to_owned());
            checks.push(Check { name, condition });
        }
        let next_field = input.u16()?;
        let mut schema = Self { version, ..Self::new(fields, primary_key, checks, next_field) };
        for _ in 0..input.count(INDEXES_MAX)? {
            schema.indexes.push(Index::decode(input)?);
        }
        schema.next_index = input.u32()?;
        schema.rows_since = input.u32()?;
        schema.decode_profile(input)?;
        if schema.rows_since > version {
            let since = schema.rows_since;
            let message = format!("rows since version {since} of a schema of version {version}");
            return Err(Error::corrupt(message));
        }
        schema.validate().map_err(|e| Error::corrupt(e.to_string()))?;
        Ok(schema)
    }

    pub(crate) fn validate(&self) -> Result<()> {
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
            if field.id.0 >= self.next_field {
                let (id, next) = (field.id.0, self.next_field);
                return Err(Error::invalid(format!("field number {id}, the next is {next}")));
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
            if field.generated.is_some() {
                let name = &field.name;
                let message = format!("key field {name:?} is generated: a key is given");
                return Err(Error::invalid(message));
            }
            index::refuse_interval(&"the primary key", field)?;
            if !used.insert(*position) {
                return Err(Error::invalid(format!("key field {:?} is named twice", field.name)));
            }
        }
        let mut names = std::collections::BTreeSet::new();
        for check in &self.checks {
            validate_name("check", &check.name)?;
            if !names.insert(&check.name) {
                return Err(Error::invalid(format!("check {:?} is declared twice", check.name)));
            }
        }
        if self.checks.len() > CHECKS_MAX {
            let count = self.checks.len();
            return Err(Error::invalid(format!("at most {CHECKS_MAX} checks, found {count}")));
        }
        if self.has_generated != self.fields.iter().any(|field| field.generated.is_some()) {
            return Err(Error::invalid("whether a table has generated fields is said wrongly"));
        }
        self.validate_profile()?;
        self.validate_stream()?;
        self.validate_changes()?;
        self.validate_indexes()?;
        self.validate_references()
    }
}

/// The number of a field of rows that no table holds.
fn number_of(position: usize) -> FieldId {
    // default: such rows are read by the positions of their fields, whatever the numbers.
    FieldId(u16::try_from(position + 1).unwrap_or(u16::MAX))
}

/// Checks a table or field name: 1 to [`NAME_BYTES_MAX`] bytes, no control characters.
///
/// # Errors
/// `InvalidInput` saying what is wrong with it.
pub fn validate_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let len = name.len();
        let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        return Err(Error::invalid(format!(
            "{article} {what} name has 1 to {NAME_BYTES_MAX} bytes, found {len}: {name:?}"
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("{what} name {name:?} has a control character")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
