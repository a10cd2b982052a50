//! Esker: an embedded database for records.
//!
//! ```
//! use esker::{DataType, Options, Schema, Value};
//!
//! # fn main() -> esker::Result<()> {
//! let db = Options::new().memory()?; // or Database::open("directory")?
//! let schema = Schema::builder()
//!     .field("name", DataType::Text)
//!     .nullable("age", DataType::U8)
//!     .primary_key(["name"])
//!     .build()?;
//! let people = db.create_table("people", schema)?;
//! people.insert(&["Ada".into(), Value::Uint(36)])?;
//! let ada = people.get(&["Ada".into()])?.expect("inserted above");
//! assert_eq!(ada.get("age"), Some(&Value::Uint(36)));
//! # Ok(())
//! # }
//! ```
//!
//! What it is: tables with typed fields and primary keys in one directory, opened by one process;
//! atomic, durable commits from many threads; snapshots; streaming and bulk loading; queries by
//! scanning. What it is not (yet): a server, or a database that several processes write at once.
//!
//! | to | see |
//! |---|---|
//! | open or create a database | [`Database`], [`Options`], [`Durability`] |
//! | define, read and change tables | [`Schema`], [`Alteration`], [`Table`], [`Row`] |
//! | find rows by other fields than the key | [`Database::create_index`] |
//! | do so over and over | [`SnapshotTable::finder`] |
//! | count, push, rename without reading first | [`Update`], [`Table::apply`] |
//! | read as of one commit | [`Snapshot`] |
//! | store keys and values | [`Bucket`] |
//! | change several things as one | [`Database::transact`], [`Transaction`], [`WriteBatch`] |
//! | do many independent changes in one commit | [`Database::coalesce`], [`Database::deferred`] |
//! | write once what works in a transaction and without | [`Scope`] |
//! | open a table, or create it when there is none | [`Database::table_or_create_of`] |
//! | have rows as structs | [`Record`], [`TypedTable`], [`Database::query_as`] |
//! | walk over all rows, or remove them | [`Table::iter`], [`Table::clear`] |
//! | have rows as JSON, or as what serde knows | [`Table::insert_object`], [`Row::to_object`] |
//! | put in many rows | [`Appender`], [`Load`] |
//! | append events, many at a time | [`Database::stream`], [`Stream`] |
//! | ask questions | [`Database::query`], [`Database::query_rows`] for answers of any size |
//! | look after it | [`Database::check`], [`Database::info`], [`Database::clock`] |
//! | keep one in memory, for longer than a process | [`Database::save`], [`Options::memory_from`] |
#![forbid(unsafe_code)]

mod admin;
mod bucket;
mod bulk_load;
mod catalog;
mod catalogue;
mod channel;
mod clock;
mod commit;
mod database;
mod engine;
mod engine_handle;
mod erasure;
mod error;
mod feed;
mod files;
mod introspection;
mod limits;
mod maintenance;
mod memory_pressure;
mod object;
pub mod operators;
mod options;
mod private_database;
mod read;
pub mod record;
mod recovery;
mod scope;
mod statement;
mod stream;
mod table;
mod table_version;
mod transaction;

pub use crate::admin::backup::{BackupOptions, BackupReport};
pub use crate::admin::check::{CheckReport, Problem};
pub use crate::admin::clock::ClockInfo;
pub use crate::admin::info::{FileInfo, IndexInfo, Info, MemoryInfo, SnapshotInfo, TableInfo};
pub use crate::bulk_load::appender::Appender;
pub use crate::catalog::checks::check;
pub use crate::catalog::computed_index::index_expression;
pub use crate::catalog::defaults::computed_default;
pub use crate::catalog::generated::generated;
pub use crate::catalog::kept_for::KeptFor;
pub use crate::catalog::names::{INFORMATION_SCHEMA, MAIN_SCHEMA, TEMPORARY_SCHEMA};
pub use crate::catalog::namespace::NamespaceInfo;
pub use crate::catalog::sequence::SequenceInfo;
pub use crate::catalog::view::{ViewColumnInfo, ViewInfo, ViewOptions};
pub use crate::channel::{FitsPattern, Listener, Notification};
pub use crate::commit::acknowledge::Deferred;
pub use crate::commit::by_key::RowUpdate;
pub use crate::commit::coalesce::{Requests, SharedSync};
#[doc(hidden)]
pub use crate::commit::gathered_events::Appended;
pub use crate::files::{FileFormat, FileRequest, FileRows, FileSink, FileTable, Files};
pub use crate::introspection::{definition, is_made_table, is_system_table, system_tables};
pub use crate::read::index_lookup::{Finder, FoundRow, FoundRows};
pub use crate::read::page::PageOptions;
pub use crate::read::range::KeyRange;
pub use crate::read::result_row::ResultRow;
pub use crate::read::row::Row;
pub use crate::read::rows::{CancelRows, Rows};
pub use crate::read::snapshot::{Snapshot, SnapshotTable};
pub use crate::read::table_rows::TableRows;
#[doc(hidden)]
pub use crate::read::tables::OtherTables;
pub use crate::read::visit::RowRef;
pub use crate::statement::conditional::Modified;
pub use crate::statement::options::{Limits, QueryOptions};
pub use crate::stream::columns::AppendedColumns;
#[doc(hidden)]
pub use crate::stream::kept::{KeptEntry, KeptValue};
pub use crate::stream::producer::{PRODUCERS, Producer};
#[doc(hidden)]
pub use crate::stream::producer::{Prepared, Turn};
#[doc(hidden)]
pub use crate::stream::time_of;
pub use crate::stream::{
    EventCursor, EventExport, EventId, EventOrder, EventPage, ExportQuery, Lead, PageQuery,
    ReadyEvents, ReadyRows, Stream, StreamInfo, Tail, TailBatch, TailFrom,
};
pub use bucket::{
    Bucket, BucketOptions, BucketSnapshot, BucketValue, Entries, Entry, KeyCodec, KeyPrefix,
    PutOptions, Serde, Swapped, Ttl, TypedBucket, TypedBucketSnapshot, TypedEntries, ValueCodec,
    WriteBatch,
};
pub use bulk_load::{Load, LoadReport};
pub use database::Database;
pub use erasure::{ERASURES, Erased, ErasureInfo};
pub use error::{Error, ErrorKind, Result};
pub use esker_derive::{FieldType, Record};
pub use esker_format::json;
pub use esker_format::schema::{
    Alteration, ChangedRows, Changes, Check, DefaultValue, Generated, INDEX_FIELDS_MAX, Identity,
    IdentityChange, Index, IndexField, IndexId, IndexKind, NewIndex, NewReference,
    PlacedExpression, Reference, ReferenceAction, Referrer, RowExpression, StreamOption,
};
pub use esker_format::{
    Batch, Column, DataType, Decimal, Field, FieldId, Interval, Labels, List, ListBuilder,
    ListElement, Moment, PrimaryKey, Schema, Value, ValueRef,
};
#[doc(hidden)]
pub use esker_query::JoinOrder;
pub use esker_query::{
    Activity, AnswerSink, DivisionByZero, Explanation, IndexUse, NullsOrder, Page, Query,
    QueryResult, Semantics, SessionActivity, SlowStatementActivity, Unnesting,
};
/// The most values that a field may have in one segment for a bitmap index to hold them; with more,
/// the segment is scanned.
pub use esker_table::index_run::VALUES_MAX as BITMAP_VALUES_MAX;
pub use feed::{
    Change, ChangeCursor, ChangeKind, ChangeReader, ChangesFrom, ChangesTable, CommitChanges,
};
pub use maintenance::{CompactReport, WorkInfo};
pub use operators::Update;
pub use options::{Durability, Options};
pub use record::{FieldType, FromRow, Record, ToKey, TypedRows, TypedTable, TypedTransactionTable};
pub use recovery::lock_holder::LockHolder;
pub use scope::{Scope, ScopedBucket, ScopedBucketReader, ScopedReader, ScopedTable};
pub use statement::{ChangeOptions, Changed};
pub use table::Table;
pub use transaction::{
    Isolation, Savepoint, TableAs, Transaction, TransactionBucket, TransactionOptions,
    TransactionTable,
};

/// The code of the guide to buckets is run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/buckets.md")]
struct BucketGuide;

/// The code of the guide to transactions.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/transactions.md")]
struct TransactionGuide;

/// The code of the guide to changes.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/changes.md")]
struct ChangeGuide;

/// The code of the guide to updates.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/updates.md")]
struct UpdateGuide;
