//! Tables and rows that are gone since the transaction began.

use esker_format::ValueRef;

use crate::table_version::TableVersion;
use crate::{Error, ErrorKind};

pub(super) fn table_gone(name: &str) -> Error {
    let message =
        format!("table {name:?} was dropped or truncated since the transaction began; begin again");
    Error::new(ErrorKind::Conflict, message)
}

/// A row that was found has expired, without a commit that says so.
pub(super) fn row_gone(current: &TableVersion, key: &[ValueRef<'_>]) -> Error {
    let key = esker_table::table::describe_key(&current.schema, key);
    let message = format!("{key} has expired since the transaction began; begin again");
    Error::new(ErrorKind::Conflict, message)
}
