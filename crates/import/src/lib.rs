//! CSV files, plain or compressed by gzip or zstd, into typed [`Batch`](esker_format::Batch)es.
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
//! | [`reader`](CsvReader) | the way in: options, schema, batches in file order |
//! | [`schema_text`] | schemas as people write them |
//! | `source`, `splitter` | bytes of the file, cut into chunks of whole records |
//! | `tokenizer` | where the fields of a chunk stand |
//! | `field`, [`value_text`](parse_value) | one field, or one written value, as one value |
//! | `chunk` | a chunk as a batch |
//! | `inference` | which types a file holds |
//! | `pipeline` | jobs in parallel, answers in order |
#![forbid(unsafe_code)]

mod chunk;
mod error;
mod inference;
mod nulls;
mod options;
mod pipeline;
mod reader;
pub mod schema_text;
mod source;
mod splitter;
mod tokenizer;
mod value_text;

pub use error::{Error, ErrorKind, Result};
pub use inference::Inference;
pub use options::CsvOptions;
pub use reader::{CsvReader, ImportReport, Progress};
pub use value_text::parse_value;
