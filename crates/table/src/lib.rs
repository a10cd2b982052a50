//! Tables: open groups, sealed segments, the primary index, visibility and merging.
//!
//! Nothing here numbers commits, writes the log or decides when to merge: the `db` crate does, and
//! holds the commit lock where this crate asks for it.
//!
//! | module | what it defines |
//! |---|---|
//! | [`table`] | what readers share, and the writer |
//! | [`group`] | the mutable end: append-only columns |
//! | [`segment`] | immutable files of columns |
//! | [`index_run`] | the rows of a segment in the order of an index |
//! | [`index_values`] | what an index computes of rows |
//! | [`value_file`] | long values, in files of their own |
//! | [`key_order`] | the rows of a table in the order of the primary key |
//! | [`expiry`] | when rows expire |
//! | [`lookup`] | from a key to its rows |
//! | [`visibility`] | which versions a reader sees |
//! | [`view`] | the row groups of a table at one moment |
//! | [`rewrite`] | sealing and merging |
//! | [`pinned_locations`] | locations that a transaction holds; a rewrite relocates them |
//! | [`value_location`] | the bytes of one value, where they lie |
//! | [`location`], [`hash`] | where a version stands; how keys are hashed |
#![forbid(unsafe_code)]

mod column_map;
mod dead_blocks;
mod dead_rows;
mod delete_stamp;
mod error;
pub mod expiry;
mod forwarding;
pub mod group;
pub mod hash;
pub mod index_run;
pub mod index_values;
pub mod key_order;
mod known_expiry;
mod live_version;
pub mod location;
pub mod lookup;
pub mod pinned_locations;
pub mod rewrite;
mod row_hasher;
pub mod segment;
pub mod table;
pub mod value_file;
pub mod value_location;
pub mod view;
pub mod visibility;

pub use error::{Error, ErrorKind, Result};
pub use hash::KeyHasher;
pub use index_values::{IndexCompiler, IndexValues};
pub use location::{Location, ROW_GROUP_ROWS_MAX};
pub use pinned_locations::PinnedLocations;
pub use row_hasher::RowHasher;
pub use table::{Found, Table, TableSnapshot, TableWriter};
