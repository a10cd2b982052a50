//! One field of a struct that is a row, as the derive macro declares it. Its functions are run by
//! the compiler, so that what they refuse is an error at the field.

use esker_format::DataType;
use esker_format::schema::{NewIndex, NewReference, ReferenceAction};

use super::FieldType;

/// One field of a [`Record`](crate::Record).
#[derive(Clone, Copy, Debug)]
pub struct RecordField {
    /// Its name in the table.
    pub name: &'static str,
    /// What it holds.
    pub data_type: DataType,
    /// True for an `Option`.
    pub takes_null: bool,
    /// The most characters of a text, or bytes.
    pub length_max: Option<u32>,
    /// The labels of an enum.
    pub labels: &'static [&'static str],
    /// What a row gets that is written without the field.
    pub default: Option<RecordDefault>,
    /// True for a field of the primary key.
    pub is_key: bool,
}

/// The default of a [`RecordField`].
#[derive(Clone, Copy, Debug)]
pub enum RecordDefault {
    /// This value, as text.
    Literal(&'static str),
    /// The time at which the row is written.
    Now,
    /// A new UUID.
    Uuid,
    /// The next value of the sequence of this name.
    Sequence(&'static str),
}

/// An index that a [`Record`](crate::Record) declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordIndex {
    /// The names of its fields in the table, in its order.
    pub fields: &'static [&'static str],
    /// No two rows have the same values in them, unless one is NULL.
    pub unique: bool,
}

impl RecordIndex {
    /// The index to be, named after its fields.
    pub(crate) fn to_new(self) -> NewIndex {
        let fields = self.fields.iter().map(|name| ((*name).to_owned(), false));
        let index = NewIndex::on(fields.collect());
        if self.unique { index.unique() } else { index }
    }
}

/// A reference to rows of another table that a [`Record`](crate::Record) declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordReference {
    /// The names of its fields in the table, in its order.
    pub fields: &'static [&'static str],
    /// The table that they refer to.
    pub table: &'static str,
    /// The fields of that table; none for those of its key.
    pub columns: &'static [&'static str],
    /// What becomes of a row whose referenced row goes.
    pub on_delete: ReferenceAction,
    /// What becomes of a row whose referenced row gets other values.
    pub on_update: ReferenceAction,
}

impl RecordReference {
    /// The reference to be, named after the table and the fields.
    pub(crate) fn to_new(self) -> NewReference {
        let reference = NewReference::new(self.fields.iter().copied(), self.table);
        let reference = reference.to(self.columns.iter().copied());
        reference.on_delete(self.on_delete).on_update(self.on_update)
    }
}

impl RecordField {
    /// A field of a Rust type, of the type of fields that this usually has or another one.
    #[must_use]
    #[allow(clippy::panic, reason = "the compiler runs it, and shows the message at the field")]
    pub const fn new<T: FieldType>(name: &'static str, declared: Option<DataType>) -> Self {
        let data_type = match (declared, T::DATA_TYPE) {
            (None, Some(natural)) => natural,
            (None, None) => {
                panic!("a decimal needs its digits: #[esker(type = \"decimal(10,2)\")]")
            }
            (Some(declared), natural) => {
                assert!(can_be(natural, declared), "the Rust type cannot hold this type of field");
                declared
            }
        };
        let (length_max, default) = (None, None);
        let (takes_null, labels) = (T::TAKES_NULL, T::LABELS);
        Self { name, data_type, takes_null, length_max, labels, default, is_key: false }
    }

    /// A field of anything that serde can write, as JSON.
    #[must_use]
    pub const fn json(name: &'static str, takes_null: bool) -> Self {
        let (data_type, length_max, default) = (DataType::Json, None, None);
        Self { name, data_type, takes_null, length_max, labels: &[], default, is_key: false }
    }

    /// The same with labels.
    #[must_use]
    pub const fn labels(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }

    /// The same with a greatest length.
    #[must_use]
    pub const fn max(self, length: u32) -> Self {
        let limited = matches!(self.data_type, DataType::Text | DataType::Bytes);
        assert!(limited, "text and bytes have a greatest length, other types have none");
        Self { length_max: Some(length), ..self }
    }

    /// The same with a default.
    #[must_use]
    pub const fn default_value(self, default: RecordDefault) -> Self {
        let of_time =
            matches!(self.data_type, DataType::Timestamp | DataType::Date | DataType::Time);
        match default {
            RecordDefault::Literal(_) => {}
            RecordDefault::Sequence(_) => {
                assert!(self.data_type.is_integer(), "a sequence is for an integer");
            }
            RecordDefault::Now => assert!(of_time, "`now` is for a timestamp, date or time"),
            RecordDefault::Uuid => {
                assert!(matches!(self.data_type, DataType::Uuid), "`uuid` is for a uuid");
            }
        }
        Self { default: Some(default), ..self }
    }

    /// The same as a part of the primary key.
    #[must_use]
    pub const fn key(self) -> Self {
        assert!(!self.is_nullable(), "a field of the key is never NULL: no Option without default");
        Self { is_key: true, ..self }
    }

    /// The same as a part of an index.
    #[must_use]
    pub const fn indexed(self) -> Self {
        assert!(!matches!(self.data_type, DataType::Json), "an index orders values: no JSON");
        self
    }

    /// Whether the field of the table may be NULL.
    #[must_use]
    pub const fn is_nullable(&self) -> bool {
        self.takes_null && self.default.is_none()
    }
}

/// Whether a Rust type with a usual type of fields can be declared as another.
const fn can_be(natural: Option<DataType>, declared: DataType) -> bool {
    let Some(natural) = natural else {
        return match declared {
            DataType::List(element) => element.data_type().is_decimal(),
            other => other.is_decimal(),
        };
    };
    match (natural, declared) {
        (DataType::I64, DataType::Timestamp | DataType::Time | DataType::Date)
        | (DataType::I32, DataType::Date)
        | (DataType::Text, DataType::Json) => true,
        _ => holds(natural, declared),
    }
}

/// Whether one type has a value for each of another.
pub(crate) const fn holds(wide: DataType, narrow: DataType) -> bool {
    use DataType as D;
    match (wide, narrow) {
        (D::I16, D::I8 | D::U8)
        | (D::I32, D::I8 | D::I16 | D::U8 | D::U16)
        | (D::I64, D::I8 | D::I16 | D::I32 | D::U8 | D::U16 | D::U32)
        | (D::U16, D::U8)
        | (D::U32, D::U8 | D::U16)
        | (D::U64, D::U8 | D::U16 | D::U32)
        | (D::F64, D::F32)
        | (D::Text, D::Enum) => true,
        _ => wide.code() == narrow.code(),
    }
}
