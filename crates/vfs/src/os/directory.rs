//! Names and directories.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::file::OsFile;
use super::lock::OsLock;
use crate::{Error, ErrorKind, File, FileLock, FileSystem, LockMode, OpenMode, RealPath, Result};

/// The file systems of the machine.
#[derive(Debug)]
pub(crate) struct OsFiles;

impl FileSystem for OsFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        Ok(Arc::new(OsFile::open(path, mode)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::from_io(e, "remove", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let operation = format!("rename {} to", from.display());
        fs::rename(from, to).map_err(|e| Error::from_io(e, &operation, to))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let operation = format!("link {} to", from.display());
        fs::hard_link(from, to).map_err(|e| Error::from_io(e, &operation, to))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let error = |e| Error::from_io(e, "list", dir);
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(error)? {
            // A name that is not UTF-8 is none that this crate could have given.
            if let Ok(name) = entry.map_err(error)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        if dir.as_os_str().is_empty() {
            return Ok(());
        }
        let parent = dir.parent();
        if !dir.is_dir() {
            if let Some(parent) = parent {
                self.create_dir_all(parent)?;
            }
            match fs::create_dir(dir) {
                Err(_) if dir.is_dir() => {} // somebody else was quicker
                result => result.map_err(|e| Error::from_io(e, "create the directory", dir))?,
            }
            return parent.map_or(Ok(()), |parent| self.sync_dir(parent));
        }
        // It may be the leftover of a process that died before it made the name durable. Where
        // the parent may not be read it is not ours, nor is the name.
        match parent.map_or(Ok(()), |parent| self.sync_dir(parent)) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(()),
            result => result,
        }
    }

    fn remove_dir_all(&self, dir: &Path) -> Result<()> {
        fs::remove_dir_all(dir).map_err(|e| Error::from_io(e, "remove the directory", dir))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        fs::File::open(dir)
            .and_then(|file| file.sync_all())
            .map_err(|e| Error::from_io(e, "sync the directory", dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|e| Error::from_io(e, "look for", path))
    }

    fn real_path(&self, path: &Path) -> Result<RealPath> {
        let error = |e| Error::from_io(e, "look for", path);
        let real = fs::canonicalize(path).map_err(error)?;
        let is_file = fs::metadata(&real).map_err(error)?.is_file();
        Ok(RealPath { path: real, is_file })
    }

    fn lock(&self, path: &Path, mode: LockMode, holder: &str) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(OsLock::take(path, mode, holder)?))
    }
}
