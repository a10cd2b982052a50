//! The rows of a file, for a statement that names it in the place of a table.

use esker_format::{Schema, ValueRef};
use esker_query::{CollectedRows, RowCollector};

use super::{FileRequest, FileTable, Files};
use crate::{Error, ErrorKind, Result};

/// Reads all rows of a file, for a statement.
pub(crate) fn read(
    files: &dyn Files,
    file: &FileTable,
    options: &esker_query::Options,
) -> Result<CollectedRows> {
    if !options.reaches_files {
        return Err(Error::invalid(format!("{file}: this session may read no files")));
    }
    let found = files.open(file, &FileRequest::shown())?;
    let fields = found.schema().fields().to_vec();
    let mut rows = RowCollector::new(Schema::of_fields(fields), options);
    let too_large = |e: Error| match e.kind() {
        ErrorKind::OverBudget => {
            let path = &file.path;
            let note = format!("{e}: {path} is read into memory; COPY loads it into a table");
            Error::new(ErrorKind::OverBudget, note)
        }
        _ => e,
    };
    found.read(&mut |batch| {
        options.expect_time_left()?;
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(batch.columns.len());
        for row in 0..batch.len() {
            values.clear();
            values.extend(batch.columns.iter().map(|column| column.value(row)));
            rows.push(&values).map_err(|e| too_large(e.into()))?;
        }
        Ok(())
    })?;
    rows.finish().map_err(|e| too_large(e.into()))
}
