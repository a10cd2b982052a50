//! One field of a table: its type, its limits, its default.

use super::{FieldId, Generated, Identity, validate_name};
use std::sync::Arc;

use crate::codec::{Reader, Writer};
use crate::json::Json;
use crate::labels::{Labels, label};
use crate::list::{List, from_json};
use crate::row::{decode_value, encode_value};
use crate::text::{expected, shown};
use crate::{DataType, Error, ErrorKind, Result, Value, ValueRef, comment};

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
    /// The labels of an enum; `None` for other types, and where any label may be: in results.
    pub labels: Option<Arc<Labels>>,
    /// What a row gets that is written without a value for it; NULL without one.
    pub default: Option<DefaultValue>,
    /// The value of rows that are older than the field.
    pub initial: Value,
    /// What computes its values from the others of its row; nobody gives it one then.
    pub generated: Option<Arc<Generated>>,
    /// How the sequence of its default belongs to it; `None` where that is anybody's.
    pub identity: Option<Identity>,
    /// What it is about, in words.
    pub comment: Option<Arc<str>>,
}

/// What a field gets in a row that is written without a value for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value, which fits the field.
    Literal(Value),
    /// When the row is written: a timestamp, date or time.
    Now,
    /// A new UUID, version 7: they rise with time.
    Uuid,
    /// The next value of the sequence of this name.
    NextValue(String),
    /// So many microseconds after the row is written: a timestamp.
    After(u64),
    /// What this expression gives when the row is written, in the stored form of the layer that
    /// evaluates it.
    Computed(String),
}

/// What a stored field has beside its number, type, name and whether it may be NULL.
const LENGTH_MAX: u8 = 1;
/// A default that is a literal, in the form of a value of the field's type.
const DEFAULT_LITERAL: u8 = 2;
/// A default that is computed: one byte says how.
const DEFAULT_COMPUTED: u8 = 3;
/// The value of rows that are older than the field, when it is not NULL.
const INITIAL: u8 = 4;
/// The labels of an enum.
const LABELS: u8 = 5;
/// What computes its values.
const GENERATED: u8 = 6;
/// What it is about.
const COMMENT: u8 = 7;
/// How the sequence of its default belongs to it.
const IDENTITY: u8 = 8;

const NOW: u8 = 1;
const UUID: u8 = 2;
const NEXT_VALUE: u8 = 3;
const AFTER: u8 = 4;
/// From version 18 of the log and 17 of checkpoints on.
const COMPUTED: u8 = 5;

impl Field {
    /// A field without limits and without a default.
    #[must_use]
    pub fn new(id: FieldId, name: String, data_type: DataType, nullable: bool) -> Self {
        Self {
            id,
            name,
            data_type,
            nullable,
            length_max: None,
            labels: None,
            default: None,
            initial: Value::Null,
            generated: None,
            identity: None,
            comment: None,
        }
    }

    /// Whether a row may be written without a value for it.
    #[must_use]
    pub fn may_be_left_out(&self) -> bool {
        self.nullable
            || self.default.is_some()
            || self.generated.is_some()
            || self.identity.is_some()
    }

    /// Refuses a value that a statement gives a field whose values are computed, or always those of
    /// its sequence.
    ///
    /// # Errors
    /// `InvalidInput` naming the field.
    pub fn refuse_given(&self) -> Result<()> {
        let is_always = self.identity.is_some_and(|identity| identity.is_always);
        let what = match &self.generated {
            Some(_) => "is generated",
            None if is_always => "is an identity",
            None => return Ok(()),
        };
        let name = &self.name;
        Err(Error::invalid(format!("field {name:?} {what}: it takes DEFAULT, no value")))
    }

    /// A value as the field stores it: as [`ValueRef::coerce`] does, and a text as the label that
    /// it is. The value of an enum with other labels is taken by its label.
    ///
    /// # Errors
    /// `InvalidInput` when it does not fit.
    pub fn coerce<'a>(&'a self, value: ValueRef<'a>) -> Result<ValueRef<'a>> {
        match (value, &self.labels) {
            (ValueRef::Text(text), Some(labels)) => labels.expect(text),
            (ValueRef::Enum(value), Some(labels)) => labels.expect(label(value)),
            _ => value.coerce(self.data_type),
        }
    }

    /// An array of JSON, or a list of another type, as the list that the field stores; `None` for
    /// any other value, and in any other field.
    ///
    /// # Errors
    /// `InvalidInput` when an item does not fit.
    pub fn as_list(&self, value: ValueRef<'_>) -> Result<Option<Value>> {
        let DataType::List(element) = self.data_type else { return Ok(None) };
        match value {
            ValueRef::Json(document) => from_json(Json::document(document), element).map(Some),
            ValueRef::List(list) => {
                // Bytes of a caller that are no list are no damage.
                let refused = |e: Error| Error::invalid(format!("expected a list: {e}"));
                let list = List::of(list).map_err(refused)?;
                if list.element() == element {
                    return Ok(None);
                }
                list.to(element).map(Some).map_err(|e| match e.kind() {
                    ErrorKind::Corrupt => refused(e),
                    _ => e,
                })
            }
            _ => Ok(None),
        }
        .map_err(|e| e.at(format_args!("field {:?}", self.name)))
    }

    /// The sequence whose values are the field's default.
    #[must_use]
    pub fn default_sequence(&self) -> Option<&str> {
        match &self.default {
            Some(DefaultValue::NextValue(sequence)) => Some(sequence),
            _ => None,
        }
    }

    /// What a value looks like, for errors.
    #[must_use]
    pub fn expected(&self) -> String {
        match &self.labels {
            Some(labels) => labels.expected(),
            None => expected(self.data_type),
        }
    }

    /// Checks that a stored value is one of the labels.
    pub(crate) fn check_label(&self, value: ValueRef<'_>) -> Result<()> {
        match (value, &self.labels) {
            (ValueRef::Enum(value), Some(labels)) if !labels.has_value(value) => {
                let (name, label) = (&self.name, label(value));
                Err(Error::corrupt(format!("field {name:?} has no label {label:?} there")))
            }
            _ => Ok(()),
        }
    }

    /// Checks the length of a text or byte string; other values have none.
    ///
    /// # Errors
    /// `InvalidInput` with the length, the limit and the start of the value.
    pub fn check_length(&self, value: ValueRef<'_>) -> Result<()> {
        let Some(most) = self.length_max else { return Ok(()) };
        let (unit, length, bytes) = match value {
            // A character has at least one byte.
            ValueRef::Text(text) if text.len() <= most as usize => return Ok(()),
            ValueRef::Text(text) => ("characters", text.chars().count(), text.as_bytes()),
            ValueRef::Bytes(bytes) => ("bytes", bytes.len(), bytes),
            _ => return Ok(()),
        };
        if length <= most as usize {
            return Ok(());
        }
        let start = shown(bytes);
        Err(Error::invalid(format!("expected at most {most} {unit}, found {length}: {start}")))
    }

    /// The type with its limit, as schemas write it: `i64`, `text(40)`.
    #[must_use]
    pub fn type_text(&self) -> String {
        match (self.length_max, &self.labels) {
            (Some(most), _) => format!("{}({most})", self.data_type),
            (_, Some(labels)) => format!("{}({labels})", self.data_type),
            _ => self.data_type.to_string(),
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u16(self.id.0);
        self.data_type.encode(out);
        out.u8(u8::from(self.nullable));
        out.text(&self.name);
        let properties = self.properties();
        out.count(properties.len());
        for (property, bytes) in properties {
            out.u8(property);
            out.bytes(&bytes);
        }
    }

    fn properties(&self) -> Vec<(u8, Vec<u8>)> {
        let value = |value: &Value| {
            let mut out = Writer::new();
            encode_value(&mut out, self.data_type, value.as_ref());
            out.into_bytes()
        };
        let mut properties = Vec::new();
        if let Some(most) = self.length_max {
            properties.push((LENGTH_MAX, most.to_le_bytes().to_vec()));
        }
        if let Some(labels) = &self.labels {
            let mut out = Writer::new();
            labels.encode(&mut out);
            properties.push((LABELS, out.into_bytes()));
        }
        match &self.default {
            None => {}
            Some(DefaultValue::Literal(literal)) => {
                properties.push((DEFAULT_LITERAL, value(literal)));
            }
            Some(DefaultValue::Now) => properties.push((DEFAULT_COMPUTED, vec![NOW])),
            Some(DefaultValue::Uuid) => properties.push((DEFAULT_COMPUTED, vec![UUID])),
            Some(DefaultValue::NextValue(sequence)) => {
                let mut out = Writer::new();
                out.u8(NEXT_VALUE);
                out.text(sequence);
                properties.push((DEFAULT_COMPUTED, out.into_bytes()));
            }
            Some(DefaultValue::After(after_us)) => {
                let mut out = Writer::new();
                out.u8(AFTER);
                out.u64(*after_us);
                properties.push((DEFAULT_COMPUTED, out.into_bytes()));
            }
            Some(DefaultValue::Computed(expression)) => {
                let mut out = Writer::new();
                out.u8(COMPUTED);
                out.text(expression);
                properties.push((DEFAULT_COMPUTED, out.into_bytes()));
            }
        }
        if !self.initial.is_null() {
            properties.push((INITIAL, value(&self.initial)));
        }
        if let Some(generated) = &self.generated {
            let mut out = Writer::new();
            generated.encode(&mut out);
            properties.push((GENERATED, out.into_bytes()));
        }
        if let Some(comment) = &self.comment {
            let mut out = Writer::new();
            out.text(comment);
            properties.push((COMMENT, out.into_bytes()));
        }
        if let Some(identity) = self.identity {
            let mut out = Writer::new();
            identity.encode(&mut out);
            properties.push((IDENTITY, out.into_bytes()));
        }
        properties
    }

    fn decode_property(&mut self, property: u8, input: &mut Reader<'_>) -> Result<()> {
        let repeated = || Error::corrupt(format!("field property {property} twice"));
        let value = |input: &mut Reader<'_>| Ok(decode_value(input, self.data_type)?.to_owned());
        match property {
            LENGTH_MAX if self.length_max.is_none() => self.length_max = Some(input.u32()?),
            DEFAULT_LITERAL if self.default.is_none() => {
                self.default = Some(DefaultValue::Literal(value(input)?));
            }
            DEFAULT_COMPUTED if self.default.is_none() => {
                self.default = Some(match input.u8()? {
                    NOW => DefaultValue::Now,
                    UUID => DefaultValue::Uuid,
                    NEXT_VALUE => DefaultValue::NextValue(input.text()?.to_owned()),
                    AFTER => DefaultValue::After(input.u64()?),
                    COMPUTED => DefaultValue::Computed(input.text()?.to_owned()),
                    other => return Err(Error::corrupt(format!("computed default {other}"))),
                });
            }
            INITIAL if self.initial.is_null() => self.initial = value(input)?,
            LABELS if self.labels.is_none() => {
                self.labels = Some(Arc::new(Labels::decode(input)?));
            }
            GENERATED if self.generated.is_none() => {
                self.generated = Some(Arc::new(Generated::decode(input)?));
            }
            COMMENT if self.comment.is_none() => self.comment = Some(input.text()?.into()),
            IDENTITY if self.identity.is_none() => self.identity = Some(Identity::decode(input)?),
            LABELS | LENGTH_MAX | DEFAULT_LITERAL | DEFAULT_COMPUTED | INITIAL | GENERATED
            | COMMENT | IDENTITY => return Err(repeated()),
            other => return Err(Error::corrupt(format!("field property {other}"))),
        }
        Ok(())
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let id = FieldId(input.u16()?);
        let data_type = DataType::decode(input)?;
        let nullable = match input.u8()? {
            0 => false,
            1 => true,
            other => return Err(Error::corrupt(format!("nullable flag is {other}"))),
        };
        let name = input.text()?.to_owned();
        let mut field = Self::new(id, name, data_type, nullable);
        for _ in 0..input.count(usize::from(u8::MAX))? {
            let (property, bytes) = (input.u8()?, input.bytes()?);
            let mut value = Reader::new(bytes);
            field.decode_property(property, &mut value)?;
            value.finish()?;
        }
        Ok(field)
    }

    /// Checks a value that is no NULL, unless the field may be NULL, and gives the form in which
    /// it is stored.
    ///
    /// # Errors
    /// `InvalidInput` naming the field and what was expected.
    pub fn fit(&self, value: &Value) -> Result<Value> {
        let list = self.as_list(value.as_ref())?;
        // default: it is no other list
        let value = list.as_ref().unwrap_or(value);
        Ok(crate::batch::fit_value(self, value.as_ref())?.to_owned())
    }

    pub(super) fn validate(&self) -> Result<()> {
        validate_name("field", &self.name)?;
        let limited = matches!(self.data_type, DataType::Text | DataType::Bytes);
        if self.labels.is_some() != (self.data_type == DataType::Enum) {
            let (name, found) = (&self.name, self.data_type);
            return Err(Error::invalid(format!(
                "field {name:?}: enums alone have labels, like enum(red, green), found {found}"
            )));
        }
        match self.length_max {
            Some(0) => Err(Error::invalid(format!(
                "field {:?}: expected a length of at least 1, found 0",
                self.name
            ))),
            Some(_) if !limited => Err(Error::invalid(format!(
                "field {:?}: text and bytes have a length, {} has none",
                self.name, self.data_type
            ))),
            _ => self.validate_generated().and_then(|()| self.validate_default()),
        }
    }

    fn validate_generated(&self) -> Result<()> {
        let (name, has_default) = (&self.name, self.default.is_some());
        if self.generated.is_some() && (has_default || !self.initial.is_null()) {
            let message = format!("field {name:?} is generated: it has no default");
            return Err(Error::invalid(message));
        }
        if let Some(identity) = self.identity {
            identity.sequence().map_err(|e| e.at(format_args!("field {name:?}")))?;
            // Its table names the sequence when it is made.
            let is_of_sequence = !has_default || self.default_sequence().is_some();
            if !is_of_sequence || self.generated.is_some() || !self.data_type.is_integer() {
                let found = self.type_text();
                return Err(Error::invalid(format!(
                    "field {name:?}: an identity is an integer without another default, found \
                     {found}"
                )));
            }
        }
        comment::expect_short(&format!("field {name:?}"), self.comment.as_deref())
    }

    fn validate_default(&self) -> Result<()> {
        let of_time =
            matches!(self.data_type, DataType::Timestamp | DataType::Date | DataType::Time);
        let expected = match &self.default {
            Some(DefaultValue::Literal(Value::Null)) => {
                let name = &self.name;
                let message =
                    format!("field {name:?}: a default is a value; without one it is NULL");
                return Err(Error::invalid(message));
            }
            Some(DefaultValue::Literal(value)) => {
                return self.fit(value).map(drop).map_err(|e| e.at("default"));
            }
            Some(DefaultValue::Now) if !of_time => "a timestamp, date or time",
            Some(DefaultValue::After(_)) if self.data_type != DataType::Timestamp => "a timestamp",
            Some(DefaultValue::Uuid) if self.data_type != DataType::Uuid => "a uuid",
            Some(DefaultValue::NextValue(_)) if !self.data_type.is_integer() => "an integer",
            Some(DefaultValue::NextValue(sequence)) => return validate_name("sequence", sequence),
            _ => return Ok(()),
        };
        let (name, found) = (&self.name, self.data_type);
        let message = format!("field {name:?}: the default gives {expected}, the field is {found}");
        Err(Error::invalid(message))
    }
}
