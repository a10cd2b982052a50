//! Files of a database of a server that reaches none: what clients send, and what is sent to them.

use std::io::{Read, Write};

use esker::{FileRequest, FileRows, FileSink, FileTable, Files};
use esker_import::FileAccess;
use esker_query::ResultColumn;
use esker_vfs::Environment;

/// Reads and writes what clients send and get, and opens nothing by its name.
#[derive(Debug)]
pub(super) struct SentFiles(FileAccess);

impl SentFiles {
    pub fn new(environment: &Environment) -> Self {
        Self(FileAccess::anywhere(environment))
    }
}

impl Files for SentFiles {
    fn open(&self, _: &FileTable, _: &FileRequest) -> esker::Result<Box<dyn FileRows>> {
        Err(out_of_reach())
    }

    fn open_from(
        &self,
        file: &FileTable,
        bytes: Box<dyn Read + Send>,
        request: &FileRequest,
    ) -> esker::Result<Box<dyn FileRows>> {
        self.0.open_from(file, bytes, request)
    }

    fn create(&self, _: &FileTable, _: &[ResultColumn]) -> esker::Result<Box<dyn FileSink>> {
        Err(out_of_reach())
    }

    fn create_in<'w>(
        &self,
        file: &FileTable,
        columns: &[ResultColumn],
        out: &'w mut dyn Write,
    ) -> esker::Result<Box<dyn FileSink + 'w>> {
        self.0.create_in(file, columns, out)
    }
}

fn out_of_reach() -> esker::Error {
    let message = "this database reaches no files: a server gives it some by the key files_dir";
    esker::Error::new(esker::ErrorKind::InvalidInput, message)
}
