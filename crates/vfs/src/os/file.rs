//! Open files.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::map::FileMap;
use super::writeback;
use crate::{Error, ErrorKind, File, GrowingMapping, Mapping, OpenMode, Result};

/// A file of the operating system.
#[derive(Debug)]
pub(crate) struct OsFile {
    file: std::fs::File,
    path: PathBuf,
}

impl OsFile {
    pub(crate) fn open(path: &Path, mode: OpenMode) -> Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        let operation = if mode == OpenMode::CreateNew { "create" } else { "open" };
        let file = options.open(path).map_err(|e| Error::from_io(e, operation, path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    fn map_ahead(&self, len: u64) -> Result<FileMap> {
        let len = usize::try_from(len).map_err(|_| {
            let path = self.path.display();
            Error::new(ErrorKind::Io, format!("map {path}: {len} bytes do not fit in memory"))
        })?;
        FileMap::new(&self.file, len).map_err(|e| self.error(e, "map"))
    }

    fn error(&self, source: std::io::Error, operation: &str) -> Error {
        Error::from_io(source, operation, &self.path)
    }
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        match self.file.read_at(buf, offset) {
            // A pipe has no positions: it goes on where it is.
            Err(e) if e.kind() == std::io::ErrorKind::NotSeekable => (&self.file).read(buf),
            read => read,
        }
        .map_err(|e| self.error(e, "read"))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        match self.file.write_at(buf, offset) {
            Ok(0) if !buf.is_empty() => Err(Error::new(
                ErrorKind::Io,
                format!("write {}: the device took no bytes at {offset}", self.path.display()),
            )),
            Ok(n) => Ok(n),
            Err(e) => Err(self.error(e, "write")),
        }
    }

    fn is_stream(&self) -> Result<bool> {
        let metadata = self.file.metadata().map_err(|e| self.error(e, "look at"))?;
        Ok(!metadata.is_file() && !metadata.is_dir())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| self.error(e, "read the length of"))?.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.error(e, "set the length of"))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| self.error(e, "sync"))
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        writeback::start(&self.file, offset, len);
    }

    fn map(&self, len: u64) -> Result<Mapping> {
        let actual = self.len()?;
        if actual < len {
            let path = self.path.display();
            return Err(Error::new(
                ErrorKind::UnexpectedEnd,
                format!("map {path}: the file has {actual} bytes, {len} expected"),
            ));
        }
        Ok(Mapping::of_file(self.map_ahead(len)?))
    }

    fn map_growing(&self, len: u64) -> Result<Option<GrowingMapping>> {
        Ok(Some(GrowingMapping::new(Arc::new(self.map_ahead(len)?))))
    }
}
