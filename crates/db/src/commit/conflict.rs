//! What is in the way of a commit: rows, keys and schemas that others have changed since they were
//! read.

use esker_format::{Schema, TableId, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::table::Existing;

use crate::catalogue::Catalogue;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Refuses rows that were prepared for another version of a table's schema, unless only indexes
/// have changed since.
pub(crate) fn refuse_other_schema(
    catalogue: &mut Catalogue,
    id: TableId,
    schema: &Schema,
) -> Result<()> {
    let entry = catalogue.entry(id)?;
    let core = entry.writer.table();
    let is_known = |id| schema.indexes().iter().any(|index| index.id == id);
    // A unique index that came since was not searched for the rows.
    let is_newest = core.view().schema.has_same_rows_as(schema)
        && core.uniques().iter().all(|keys| is_known(keys.index().id));
    if is_newest || Bug::OldSchemaAccepted.is_planted() {
        return Ok(());
    }
    let name = &entry.name;
    let message = format!("the schema of table {name:?} was changed meanwhile; begin again");
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Refuses a key whose newest version came after a commit, or went though it had not expired.
pub(crate) fn expect_snapshot(
    current: &TableVersion,
    key: &[ValueRef<'_>],
    existing: Option<&Existing>,
    read_at: u64,
) -> Result<()> {
    if existing.is_some_and(|existing| existing.has_changed_since(read_at))
        && !Bug::FirstCommitterLoses.is_planted()
    {
        let name = current.core.name();
        let key = esker_table::table::describe_key(&current.schema, key);
        let message = format!(
            "table {name:?}: {key} was changed by another commit since the transaction began; \
             begin again"
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(())
}

/// A row that others have changed since it was staged.
pub(crate) fn changed() -> Error {
    Error::new(ErrorKind::Conflict, "a row was changed while a large commit was written; try again")
}

/// Another commit took a value of a unique index meanwhile: the next attempt names it.
pub(crate) fn as_changed(error: Error) -> Error {
    if error.kind() == ErrorKind::AlreadyExists { changed() } else { error }
}

/// What others have come before with.
pub(crate) fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, format!("{message}; begin again"))
}
