//! The stores.

mod emdb;
mod esker;
mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sled;

use crate::store::Kind;

/// Every store, ours first.
pub const ALL: &[Kind] = &[
    esker::KIND,
    emdb::KIND,
    emdb::POINT_KIND,
    redb::KIND,
    fjall::KIND,
    lmdb::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    sled::KIND,
];
