//! Files of rows that statements name: `FROM 'x.csv'`, `COPY t FROM 'x.csv'`.
//!
//! The engine knows no format of files and reaches none by itself. The program that opens the
//! database gives it a [`Files`] by `Options::files`; without one, statements that name files are
//! refused.
//!
//! ```text
//! name in FROM ─► no table of that name ─► FileTable::named ─► Files::open ─► rows in memory
//! ```
//!
//! As a table about tables, a file is read when the statement begins, within its memory.

mod file_table;
pub(crate) mod reading;

use std::fmt::Debug;
use std::io::{Read, Write};
use std::sync::Arc;

use esker_format::{Batch, Schema};
use esker_query::ResultColumn;

pub(crate) use self::file_table::quoted;
pub use self::file_table::{FileFormat, FileTable};
use crate::{Error, Result};

/// What reading a file may take of memory, beside its rows.
const READING_BYTES: u64 = 64 << 20;

/// Opens files of rows, and makes them.
pub trait Files: Debug + Send + Sync {
    /// Opens a file to be read.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a file that is out of reach, or cannot be read as it is
    /// named, with the place in it.
    fn open(&self, file: &FileTable, request: &FileRequest) -> Result<Box<dyn FileRows>>;

    /// The same of bytes that come from elsewhere, such as standard input.
    ///
    /// # Errors
    /// As for [`Files::open`].
    fn open_from(
        &self,
        file: &FileTable,
        bytes: Box<dyn Read + Send>,
        request: &FileRequest,
    ) -> Result<Box<dyn FileRows>>;

    /// Makes a file that rows are written to, as `COPY` has it: CSV has a header where that is
    /// said. There is none of this name before.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidInput` for one that is out of reach, or of no known form.
    fn create(&self, file: &FileTable, columns: &[ResultColumn]) -> Result<Box<dyn FileSink>>;

    /// The same for bytes that go elsewhere, such as standard output.
    ///
    /// # Errors
    /// `InvalidInput` for no known form.
    fn create_in<'w>(
        &self,
        file: &FileTable,
        columns: &[ResultColumn],
        out: &'w mut dyn Write,
    ) -> Result<Box<dyn FileSink + 'w>>;
}

/// What is wanted of a file that is read.
#[derive(Clone, Debug)]
pub struct FileRequest {
    /// The fields that its rows have; `None` for those that the file shows.
    pub schema: Option<Arc<Schema>>,
    /// What its columns are called, in their order, in place of its own names for them.
    pub columns: Vec<String>,
    /// About how much memory reading may take.
    pub memory_bytes: u64,
    /// Whether what is not said of CSV is as `COPY` has it, and not as the file shows: commas
    /// between fields, no header, an empty field for NULL.
    pub as_copied: bool,
}

impl FileRequest {
    /// Rows for the fields of a table, as `COPY` reads them.
    #[must_use]
    pub fn rows_of(schema: &Arc<Schema>) -> Self {
        let (schema, columns) = (Some(Arc::clone(schema)), Vec::new());
        Self { schema, columns, memory_bytes: READING_BYTES, as_copied: true }
    }

    /// Rows as the file shows them.
    #[must_use]
    pub fn shown() -> Self {
        let (schema, columns) = (None, Vec::new());
        Self { schema, columns, memory_bytes: READING_BYTES, as_copied: false }
    }
}

/// A file whose rows are still to be read.
pub trait FileRows {
    /// The fields that they have.
    fn schema(&self) -> &Schema;

    /// About how much memory reading them takes.
    fn memory_bytes(&self) -> u64;

    /// Reads all rows in the order of the file; returns how many. `take` may end it.
    ///
    /// # Errors
    /// `InvalidInput` with the line and the column of what does not fit; what `take` fails with.
    fn read(self: Box<Self>, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<u64>;

    /// The error of a row, `row N: …` counted from 1, with its place in the file in front.
    fn places(&self) -> Box<dyn Fn(Error) -> Error>;
}

/// A file that rows are written to.
pub trait FileSink {
    /// Writes some rows.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn write(&mut self, batch: &Batch) -> Result<()>;

    /// Ends it; a file is on the disk then. Without this a file is removed.
    ///
    /// # Errors
    /// As for [`FileSink::write`].
    fn finish(self: Box<Self>) -> Result<()>;
}
