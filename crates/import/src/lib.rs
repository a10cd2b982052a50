//! Files of rows, CSV or JSON, plain or compressed by gzip or zstd, into typed
//! [`Batch`](esker_format::Batch)es.
//!
//! ```text
//!  file ──► source ──► splitter ──► chunks ──► workers: tokenizer ──► fields ──► batch
//!           (gz, zst)  (whole records)         (in parallel)            │
//!                                                                       ▼
//!                                            the caller, in file order ◄┘
//! ```
//!
//! | module | what it defines |
//! |---|---|
//! | [`reader`](ImportReader) | the way in: options, schema, batches in file order |
//! | `opening`, `typing` | the first record and the schema of a file |
//! | [`schema_text`] | schemas as people write them |
//! | `input` | files, and what can be read once only |
//! | `source`, `splitter` | bytes of the file, cut into chunks of whole records |
//! | `binary`, `comments` | what is no text, and lines that are no rows |
//! | `sniff`, `header` | how a file of CSV is written, and the names of its columns |
//! | `dialect` | how rows are written |
//! | `tokenizer`, `json` | where the fields of a chunk stand |
//! | `fields`, [`value_text`](parse_value) | what a field, or a written value, says |
//! | [`date_format`](DateFormat) | dates in another order |
//! | `chunk` | a chunk as a batch |
//! | `fault` | what is wrong with a record |
//! | [`packed`](packed_lines) | rows in MessagePack, as lines of JSON |
//! | [`row_text`](parse_json_row) | one row, as people write it |
//! | [`json_rows`](JsonRows) | the rows of a body, at once |
//! | `kinds`, `inference` | which types a file holds |
//! | [`export`](RowWriter) | rows as files have them, the other way |
//! | [`files`](FileAccess) | files that statements of a database name |
//! | [`places`](Places) | the lines of rows, looked up afterwards |
//! | [`pipeline`](Pipeline) | jobs in parallel, answers in order |
#![forbid(unsafe_code)]

mod binary;
mod chunk;
mod comments;
mod date_format;
mod dialect;
mod error;
mod export;
mod fault;
mod fields;
mod files;
mod header;
mod inference;
mod input;
mod json;
mod json_rows;
mod kinds;
mod nulls;
mod opening;
mod options;
mod packed;
mod pipeline;
mod places;
mod reader;
mod row_text;
pub mod schema_text;
mod sniff;
mod source;
mod splitter;
mod tokenizer;
mod typing;
mod value_text;

pub use chunk::Reject;
pub use date_format::DateFormat;
pub use error::{Error, ErrorKind, Result};
pub use export::{CsvForm, RowWriter, distinct_names};
pub use files::FileAccess;
pub use files::named_form::NamedForm;
pub use files::sink::FileWriter;
pub use inference::Inference;
pub use json_rows::JsonRows;
pub use options::{Format, ImportOptions, Unknown};
pub use packed::{packed_json, packed_lines};
pub use pipeline::Pipeline;
pub use places::Places;
pub use reader::{Again, ImportReader, ImportReport, Progress};
pub use row_text::{parse_json_row, parse_new_json_row, with_rest};
pub use source::{unpacked, unpacked_bytes};
pub use value_text::parse_value;
