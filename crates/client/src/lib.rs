//! A client for Esker servers.
//!
//! ```
//! # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
//! # fn main() -> esker_client::Result<()> {
//! # let server = served::Served::start();
//! # let url = server.url();
//! use esker_client::Client;
//!
//! let mut client = Client::connect(&url)?;
//! client.sql("CREATE TABLE people (id i64 PRIMARY KEY, name text)", &[])?;
//! client.insert("people", &[vec![1i64.into(), "Ada".into()], vec![2i64.into(), "Bob".into()]])?;
//! assert_eq!(client.get("people", &[1i64.into()])?, Some(vec![1u8.into(), "Ada".into()]));
//! let older = client.sql("SELECT name FROM people WHERE id > ?", &[1i64.into()])?;
//! assert_eq!(older.rows, [["Bob".into()]]);
//! let error = client.get("poeple", &[1i64.into()]).unwrap_err();
//! assert_eq!(error.code(), Some(esker_client::Code::NotFound));
//! # Ok(())
//! # }
//! ```
//!
//! | to | see |
//! |---|---|
//! | ask one thing after another | [`Client`] |
//! | send many requests before reading answers | [`Client::pipeline`] |
//! | read large answers | [`Client::stream`] |
//! | load many rows | [`Client::load`] |
//! | add events to a stream | [`Client::append`], `append_many`, `append_columns` |
//! | read events as they arrive | [`Client::tail`], [`AsyncClient::tail`] |
//! | share connections between threads | [`Pool`] |
//! | ask from async code | [`AsyncClient`] |
//! | share connections between tasks | [`AsyncPool`] |
//! | write once, though the connection may break | [`Pool::call_once`], [`Call::once`] |
#![forbid(unsafe_code)]

mod address;
mod async_pool;
mod asynchronous;
mod bulk;
mod call;
mod certificate;
mod client;
mod error;
mod events;
#[cfg(test)]
#[path = "../../wire/src/golden.rs"]
mod golden;
mod pool;
mod reply;
mod socket;
mod tail;
#[cfg(test)]
mod tests;
mod tls;

pub use address::Address;
pub use async_pool::{AsyncPool, AsyncPooled};
pub use asynchronous::AsyncClient;
pub use bulk::{Duplicates, Format, Load};
pub use call::{Call, KeyRange, RowUpdate};
pub use client::{Client, Pipeline, Rows};
pub use error::{Error, Result};
pub use esker_format::{Column as ColumnValues, DataType, Value, ValueRef, Values, VariableValues};
pub use esker_wire::Code;
pub use events::{AppendOptions, Appended, EventId, ProducerTurn, RefusedEvent};
pub use pool::{Pool, Pooled};
pub use reply::{Column, PageEnd, Reply};
pub use tail::{AsyncTail, Tail, Told};

/// The program in the guide is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/server.md")]
struct Guide;
