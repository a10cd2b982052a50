//! What must hold for any input, as functions of bytes.
//!
//! | module | what it feeds |
//! |---|---|
//! | [`codec`] | the reader that every decoder is built on |
//! | [`json_binary`] | JSON, its text and its binary form |
//! | [`list`] | lists, their text and their binary form |
//! | [`schema`], [`row`], [`key`] | schemas, rows, order-preserving keys |
//! | [`bucket_key`] | typed keys and values of buckets |
//! | [`calendar`] | dates and timestamps as text |
//! | [`frame`], [`edit`] | log files: frames, and what they say |
//! | [`segment`] | footers and trailers of segments |
//! | [`checkpoint`], [`index`] | checkpoint files, index files |
//! | [`values`] | value files, and rows that refer to them |
//! | [`packed`] | packed numbers, compressed heaps |
//! | [`postings`] | the rows that have a gram |
//! | [`columns`] | rows by column in frames, and events that are appended by them |
//! | [`csv`], [`json`], [`text`] | files of rows; values and schemas as people write them |
//! | [`event`] | events as they are sent, and where readers of events are |
//! | [`sniff`] | files whose dialect and types are found out |
//! | [`sql`] | statements |
//! | [`wire`] | frames of the wire protocol, and a session that answers them |
//! | [`resp`], [`http`] | commands of Redis's protocol, and requests of HTTP, answered |
//! | [`transaction`] | transactions with savepoints, while others commit and rows expire |
//! | [`database`] | a whole database, damaged, then used |
#![forbid(unsafe_code)]

pub mod bucket_key;
pub mod calendar;
pub mod checkpoint;
pub mod codec;
pub mod columns;
pub mod csv;
pub mod database;
pub mod edit;
pub mod event;
pub mod frame;
pub mod http;
pub mod index;
pub mod json;
pub mod json_binary;
pub mod key;
pub mod list;
pub mod packed;
pub mod postings;
pub mod resp;
pub mod row;
pub mod schema;
pub mod segment;
pub mod sniff;
pub mod sql;
pub mod text;
pub mod transaction;
pub mod values;
pub mod wire;

/// The body of a target. It panics when something does not hold.
pub type Body = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Body)] = &[
    ("bucket_key", bucket_key::run),
    ("calendar", calendar::run),
    ("checkpoint", checkpoint::run),
    ("codec", codec::run),
    ("columns", columns::run),
    ("csv", csv::run),
    ("database", database::run),
    ("edit", edit::run),
    ("event", event::run),
    ("frame", frame::run),
    ("http", http::run),
    ("index", index::run),
    ("json", json::run),
    ("json_binary", json_binary::run),
    ("key", key::run),
    ("list", list::run),
    ("ndjson", json::run_lines),
    ("packed", packed::run),
    ("postings", postings::run),
    ("resp", resp::run),
    ("row", row::run),
    ("schema", schema::run),
    ("segment", segment::run),
    ("sniff", sniff::run),
    ("sql", sql::run),
    ("text", text::run),
    ("transaction", transaction::run),
    ("values", values::run),
    ("wire", wire::run_frames),
    ("wire_session", wire::run_session),
];
