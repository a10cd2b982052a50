//! Rows as structs.
//!
//! [`Record`] is what the derive macro of the same name implements: the struct's fields as fields
//! of a table, and a value for each. It knows no table. [`TypedTable`] brings the two together: it
//! finds each field of the struct in the table by its name, and refuses at once what does not
//! agree. From there on a row goes the way of every other row: the values of the struct are the
//! [`Value`](crate::Value)s that the table fits to its fields.
//!
//! ```text
//! struct ──write──► RecordWriter ──Binding──► values in the table's order ──► Table
//! struct ◄──read─── RecordReader ◄──Binding── values of a row, or of an answer
//! ```
//!
//! 1. What a table holds, the struct can hold: a field of the struct is as wide as the table's, and
//!    an `Option` where that may be NULL. So reading fails for damage alone.
//! 2. What the struct holds is fitted value by value, as ever.

mod binding;
mod field_type;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "rust_decimal", feature = "uuid"))]
mod foreign_types;
mod from_row;
mod query;
mod reader;
mod record_field;
mod to_key;
mod typed_rows;
mod typed_table;
mod typed_transaction_table;
mod writer;

use esker_format::schema::DefaultValue;
use esker_format::{DataType, Labels, Schema, text};

pub(crate) use binding::Binding;
pub use field_type::{FieldType, ListItem, label_of};
pub(crate) use field_type::{from_json, json_value};
pub use from_row::FromRow;
pub use query::records;
pub use reader::RecordReader;
pub use record_field::{RecordDefault, RecordField, RecordIndex, RecordReference};
pub use to_key::ToKey;
pub use typed_rows::TypedRows;
pub use typed_table::TypedTable;
pub use typed_transaction_table::TypedTransactionTable;
pub use writer::{RecordWriter, record_values};

use crate::Result;

/// A struct that is a row: derived, never written by hand.
///
/// ```
/// use esker::{Decimal, Options, Record};
///
/// #[derive(Clone, Debug, PartialEq, Record)]
/// struct Product {
///     #[esker(key)]
///     id: u32,
///     #[esker(max = 40)]
///     name: String,
///     #[esker(type = "decimal(10,2)")]
///     price: Decimal,
///     #[esker(rename = "colour", labels(red, green, "dark red"))]
///     color: Option<String>,
///     #[esker(json)]
///     tags: Vec<String>,
/// }
///
/// let db = Options::new().memory()?;
/// let products = db.create_table_of::<Product>("products")?;
/// let lamp = Product {
///     id: 1,
///     name: "Lamp".into(),
///     price: Decimal::new(1995, 2).expect("19.95"),
///     color: Some("dark red".into()),
///     tags: vec!["home".into()],
/// };
/// products.insert(&lamp)?;
/// assert_eq!(products.get(1)?, Some(lamp));
/// # Ok::<(), esker::Error>(())
/// ```
///
/// | type in Rust | type of the field |
/// |---|---|
/// | `bool`, `i8` to `i64`, `u8` to `u64`, `f32`, `f64` | the same |
/// | `String`, `Vec<u8>` | `text`, `bytes` |
/// | `[u8; 16]` | `uuid` |
/// | `std::net::Ipv4Addr`, `Ipv6Addr` | `ipv4`, `ipv6` |
/// | [`Decimal`](crate::Decimal) | the decimal that `type` names |
/// | [`Interval`](crate::Interval) | `interval` |
/// | `serde_json::Value` | `json` |
/// | an enum that derives [`FieldType`] | `enum`, its variants the labels |
/// | `jiff::Timestamp`, `chrono::DateTime<Utc>` | `timestamp` |
/// | `jiff::civil::DateTime`, `chrono::NaiveDateTime` | `timestamp`, as the time in UTC |
/// | `jiff::civil::Date`, `chrono::NaiveDate` | `date` |
/// | `jiff::civil::Time`, `chrono::NaiveTime` | `time` |
/// | `uuid::Uuid` | `uuid` |
/// | `rust_decimal::Decimal` | the decimal that `type` names |
/// | `Option<T>` | that of `T`, and it may be NULL |
///
/// The types of `jiff`, `chrono`, `uuid` and `rust_decimal` need the feature of `esker` that is
/// named after the crate. What one side cannot hold is an error that names the field, and is never
/// rounded: parts of a microsecond, a leap second, a decimal of 29 digits. They are keys, too, and
/// `Value::try_from` makes parameters of them:
///
/// ```
/// use esker::{Options, Record, Value};
/// use jiff::{Timestamp, civil};
/// use uuid::Uuid;
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Session {
///     #[esker(key)]
///     id: Uuid,
///     started: Timestamp,
///     birthday: Option<civil::Date>,
/// }
///
/// let db = Options::new().memory()?;
/// let sessions = db.create_table_of::<Session>("sessions")?;
/// let session = Session {
///     id: Uuid::from_u128(7),
///     started: "2024-02-29T05:17:00Z".parse()?,
///     birthday: Some(civil::date(1815, 12, 10)),
/// };
/// sessions.insert(&session)?;
/// let born = Value::try_from(civil::date(1815, 12, 10))?;
/// assert_eq!(sessions.table().get(&[session.id.into()])?.unwrap().get("birthday"), Some(&born));
/// assert_eq!(sessions.get(session.id)?, Some(session));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What `#[esker(…)]` says at a field:
///
/// - `key`: part of the primary key; of several the order is that of the struct. Without one the
///   key is the row id.
/// - `rename = "name"`: the name in the table.
/// - `type = "timestamp"`: another type that the Rust type can hold: a narrower number;
///   `timestamp` or `time` in microseconds for `i64`; `date` in days for `i32` and `i64`; `json`
///   for `String`.
/// - `max = 40`: the most characters of a text, or bytes.
/// - `labels(a, "b c")`: an enum with these labels, for `String`.
/// - `json`: any type that serde can write and read, as JSON.
/// - `default = 3`, `default = "text"`, `default = now`, `default = uuid`,
///   `default = sequence("name")`: what a row gets that is written without the field. With an
///   `Option`, `None` is written as the default, and the field is never NULL.
/// - `index`: [an index](crate::Database::create_index) on the field, for questions about it.
/// - `unique`: no two rows have the same value in the field, unless it is NULL. That is an index,
///   too.
/// - `ref = "users"`: the field refers to a row of another table, as said below.
/// - `skip`: no field of the table; read as `Default::default()`.
///
/// At the struct, `#[esker(index(city, born))]` and `#[esker(unique(street, number))]` do so for
/// several of its fields together, in this order. The indexes are made with the table, by
/// [`create_table_of`](crate::Database::create_table_of), and named after their fields:
/// `by_city_born`. Of a table that is there already, what is `unique` has to be unique, or the
/// table is refused; an `index` may be missing, since answers are the same without it.
///
/// ```
/// use esker::{ErrorKind, Options, Record};
///
/// #[derive(Record)]
/// #[esker(index(city, born))]
/// struct Person {
///     #[esker(key)]
///     id: u32,
///     #[esker(unique)]
///     email: String,
///     city: String,
///     born: i16,
/// }
///
/// let db = Options::new().memory()?;
/// let people = db.create_table_of::<Person>("people")?;
/// let email = "ada@example.org".to_owned();
/// let ada = Person { id: 1, email, city: "London".into(), born: 1815 };
/// people.insert(&ada)?;
/// let twice = people.insert(&Person { id: 2, ..ada }).unwrap_err();
/// assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
/// let schema = people.table().schema();
/// let names: Vec<_> = schema.indexes().iter().map(|index| index.name.as_str()).collect();
/// assert_eq!(names, ["by_email", "by_city_born"]);
/// # Ok::<(), esker::Error>(())
/// ```
///
/// `ref = "users"` makes a field [refer](crate::NewReference) to the key of another table's rows,
/// or to a unique field of theirs, with what becomes of the row when that one goes, as SQL says it:
/// `ref = "users(mail) on delete cascade on update set null"`. At the struct,
/// `#[esker(ref(city, street) = "places(city, street)")]` does so for several fields. A table that
/// is there already has to have the reference.
///
/// ```
/// use esker::{ErrorKind, Options, Record};
///
/// #[derive(Record)]
/// struct User {
///     #[esker(key)]
///     id: u32,
/// }
///
/// #[derive(Record)]
/// struct Order {
///     #[esker(key)]
///     id: u32,
///     #[esker(ref = "users on delete cascade")]
///     user: u32,
/// }
///
/// let db = Options::new().memory()?;
/// let users = db.create_table_of::<User>("users")?;
/// let orders = db.create_table_of::<Order>("orders")?;
/// let refused = orders.insert(&Order { id: 1, user: 7 }).unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::ConstraintViolated);
/// users.insert(&User { id: 7 })?;
/// orders.insert(&Order { id: 1, user: 7 })?;
/// users.delete(7)?;
/// assert_eq!(orders.table().count()?, 0);
/// # Ok::<(), esker::Error>(())
/// ```
///
/// What cannot be is refused by the compiler, where it stands:
///
/// ```compile_fail
/// #[derive(esker::Record)]
/// struct Price {
///     #[esker(typ = "decimal(10,2)")] // there is no attribute `typ`
///     amount: esker::Decimal,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(esker::Record)]
/// struct Price {
///     amount: esker::Decimal, // how many digits?
/// }
/// ```
///
/// ```compile_fail
/// #[derive(esker::Record)]
/// struct Price {
///     #[esker(type = "text")]
///     amount: i64, // no text
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no row",
    note = "derive `esker::Record` for it: a struct with named fields"
)]
pub trait Record: Sized {
    /// The name of the struct, for errors.
    const NAME: &'static str;

    /// The fields, in the order of the struct.
    const FIELDS: &'static [RecordField];

    /// The indexes of a table that is created for the struct.
    const INDEXES: &'static [RecordIndex] = &[];

    /// The references to rows of other tables of a table that is created for the struct.
    const REFERENCES: &'static [RecordReference] = &[];

    /// Hands over the value of each field, in their order.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value cannot be stored.
    fn write(&self, values: &mut RecordWriter) -> Result<()>;

    /// Takes the value of each field, in their order.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value the struct cannot hold.
    fn read(values: &mut RecordReader<'_>) -> Result<Self>;

    /// The schema of a table for such rows.
    ///
    /// # Errors
    /// `InvalidInput` for what the compiler cannot see: a name twice, a default that does not fit.
    fn schema() -> Result<Schema> {
        schema_of(Self::FIELDS, Self::INDEXES, Self::REFERENCES)
    }
}

fn schema_of(
    fields: &[RecordField],
    indexes: &[RecordIndex],
    references: &[RecordReference],
) -> Result<Schema> {
    let mut builder = Schema::builder();
    for field in fields {
        builder = match field.is_nullable() {
            true => builder.nullable(field.name, field.data_type),
            false => builder.field(field.name, field.data_type),
        };
        if let Some(length) = field.length_max {
            builder = builder.max_length(length);
        }
        if field.data_type == DataType::Enum {
            builder = builder.labels(Labels::new(field.labels)?);
        }
        builder = match field.default {
            None => builder,
            Some(RecordDefault::Now) => builder.default_value(DefaultValue::Now),
            Some(RecordDefault::Uuid) => builder.default_value(DefaultValue::Uuid),
            Some(RecordDefault::Sequence(name)) => builder.default_next(name),
            Some(RecordDefault::Literal(written)) => {
                let value = text::parse_value(written, field.data_type);
                let value = value.map_err(|e| e.at(format_args!("default of {:?}", field.name)))?;
                builder.default_value(DefaultValue::Literal(value))
            }
        };
    }
    let builder = indexes.iter().fold(builder, |builder, index| builder.add_index(index.to_new()));
    let builder =
        references.iter().fold(builder, |builder, reference| builder.reference(reference.to_new()));
    let key = fields.iter().filter(|field| field.is_key).map(|field| field.name);
    Ok(builder.primary_key(key).build()?)
}
