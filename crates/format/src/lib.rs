//! Every byte that Esker stores, and the values those bytes stand for. No I/O happens here.
//!
//! | module | what it defines |
//! |---|---|
//! | [`data_type`], [`value`] | field types, owned and borrowed values, their one order |
//! | [`mod@decimal`], [`labels`], [`json`] | decimal numbers; the labels of enums; JSON |
//! | [`mod@interval`], [`mod@list`] | spans of time; values of one type, one behind the other |
//! | [`schema`] | fields, primary keys, schema versions |
//! | [`mod@sequence`] | named sequences |
//! | [`order_key`] | values of fixed width as numbers in the same order |
//! | [`batch`] | owned columns, for loading |
//! | [`mod@column`] | borrowed encoded columns, for reading |
//! | [`calendar`] | dates and timestamps as text |
//! | [`case`] | letters without their case |
//! | [`ClockRecord`], [`Moment`] | what a database knows of time; the two times by which rows
//!   expire |
//! | [`checksum`] | the checksum, bound to file and position |
//! | `conversions` | values of types of other crates, each behind its feature |
//! | [`mod@comment`] | what users say of what they define |
//! | [`codec`] | the little-endian reader and writer that everything else is built on |
//! | [`Excerpt`], [`suggest`] | a place in a text underlined; names near to an unknown one |
//! | [`frame`] | the log |
//! | [`grams`], [`postings`] | three bytes of a text, and the rows that have them |
//! | [`mod@hash`], [`Sketch`] | fixed hashes; about how many values are different |
//! | [`ShortText`] | numbers, dates and times as text, fast |
//! | [`part_lines`] | where key and value of a row lie side by side |
//! | [`row`], [`key`] | one row; an order-preserving key |
//! | [`mod@view`] | queries that are read as tables are |
//! | [`value_file`] | long values, each in a file of values |
#![forbid(unsafe_code)]

mod article;
pub mod batch;
mod batch_row;
pub mod calendar;
pub mod case;
pub mod checkpoint;
pub mod checksum;
mod clock_record;
pub mod codec;
pub mod column;
pub mod comment;
pub mod compression;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "rust_decimal", feature = "uuid"))]
mod conversions;
pub mod data_type;
pub mod decimal;
pub mod edit;
mod error;
pub mod event_id;
mod excerpt;
pub mod frame;
mod gather;
pub mod grams;
pub mod hash;
pub mod index_file;
pub mod interval;
pub mod json;
pub mod key;
mod key_table;
pub mod labels;
pub mod list;
mod moment;
pub mod namespace;
pub mod order_key;
pub mod part_lines;
pub mod postings;
mod room;
pub mod row;
pub mod schema;
pub mod segment;
pub mod sequence;
mod short_text;
mod sketch;
pub mod suggest;
pub mod text;
pub mod value;
pub mod value_file;
pub mod view;

pub use article::with_article;
pub use batch::{Batch, Column, Values, VariableValues};
pub use clock_record::{ClockRecord, Hold, Suspicion};
pub use column::{BytesReader, Codes, ColumnSlice, Data, Dictionary, Validity};
pub use data_type::DataType;
pub use decimal::Decimal;
pub use error::{Error, ErrorKind, Result};
pub use excerpt::Excerpt;
pub use interval::{Interval, IntervalUnit};
pub use key_table::{HashIndex, KeyList, KeyTable};
pub use labels::Labels;
pub use list::{List, ListBuilder, ListElement};
pub use moment::{ExpiryClock, Moment};
pub use namespace::Namespace;
pub use part_lines::PartLines;
pub use room::Room;
pub use schema::{Field, FieldId, PrimaryKey, Schema, TableId};
pub use sequence::Sequence;
pub use short_text::ShortText;
pub use sketch::Sketch;
pub use value::{Value, ValueRef};
pub use value_file::ValueReference;
pub use view::{View, ViewColumn, ViewInput};
