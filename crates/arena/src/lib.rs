//! Position-independent containers in one reserved address range: one writer, any number of
//! lock-free readers.
//!
//! | noun | what it holds |
//! |---|---|
//! | [`Arena`] | the address range, its allocator, memory by [`Category`] |
//! | [`AppendVec`] | append-only rows of one column, in chunks that never move |
//! | [`ByteHeap`] | append-only byte strings, named by a 64-bit reference |
//! | [`SparseWords`] | one word a row, present per 1,024 rows |
//! | [`PartitionedHash`] | the primary index: hash to location, near 17 bytes an entry |
//! | [`ReaderRegistry`] | the commits that live snapshots read |
//!
//! Nothing in arena memory is a pointer: containers name everything by its offset in the range.
//!
//! `unsafe` lives in `arena` (mapping, freeing blocks) and in the two containers that turn
//! published bytes into slices, `append_vec` and `byte_heap`; all others go through atomic words.
//!
//! The algorithms are written over the words they use, so that loom can check them as they are. The
//! models run with
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p esker-arena --release --lib loom_
//! ```
//!
//! and `cargo run --release -p esker-arena --example speed` prints what the containers cost.
#![deny(unsafe_code)]

mod append_vec;
mod arena;
mod byte_heap;
mod doubling;
mod error;
mod partitioned_hash;
mod reader_registry;
mod sparse_words;
mod sync;
mod words;

pub use append_vec::{AppendReader, AppendVec, Appender, chunk_end};
pub use arena::{Arena, ArenaOptions, Category, Reservation};
pub use byte_heap::{ByteHeap, ByteReader, ByteWriter};
pub use error::{ArenaError, ArenaErrorKind};
pub use partitioned_hash::{Export, Import, PartitionedHash, tag_of};
pub use reader_registry::{ReadCommits, ReaderGuard, ReaderKind, ReaderRegistry};
pub use sparse_words::SparseWords;
