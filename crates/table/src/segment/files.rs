//! The segment files, and the value files, of one database, for as long as it owns its directory.
//!
//! Segments, loads and snapshots may outlive the database's being open: memory stays readable.
//! From the moment the directory's lock is given up, though, another process may reuse file names,
//! so that nothing may be created or removed any more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use esker_arena::Arena;
use esker_vfs::sync::{Mutex, MutexGuard};
use esker_vfs::{Environment, ErrorKind, File, OpenMode};

use super::file_name::{UNNAMED, run_of_file, segment_file_name, segment_path};
use super::heap_blocks::HeapBlocks;
use crate::value_file::{ValueFiles, ValueLimits};
use crate::{Error, Result};

/// Creates, opens and removes the segment files of a database.
#[derive(Debug)]
pub struct SegmentFiles {
    environment: Environment,
    dir: PathBuf,
    database: u128,
    copies: bool,
    values: ValueFiles,
    /// Of compressed heaps, once a segment has been opened.
    heap_blocks: OnceLock<HeapBlocks>,
    /// False once the directory may belong to somebody else. The lock is held while a name is made
    /// or removed, so that giving up waits for it.
    owned: Arc<Mutex<bool>>,
}

impl SegmentFiles {
    /// The files in a directory whose lock the caller holds. With `copies`, reading is from copies
    /// in memory of what has been verified, rather than from mapped files.
    #[must_use]
    pub fn new(
        environment: Environment,
        dir: PathBuf,
        database: u128,
        copies: bool,
        limits: ValueLimits,
    ) -> Arc<Self> {
        let owned = Arc::new(Mutex::new(true));
        let (files, at, own) = (environment.clone(), dir.clone(), Arc::clone(&owned));
        let values = ValueFiles::new(files, at, database, copies, limits, own);
        let heap_blocks = OnceLock::new();
        Arc::new(Self { environment, dir, database, copies, values, heap_blocks, owned })
    }

    /// The value files.
    #[must_use]
    pub fn values(&self) -> &ValueFiles {
        &self.values
    }

    /// Forgets what was read lately of compressed heaps: others need the memory.
    pub fn forget_heap_blocks(&self) {
        if let Some(blocks) = self.heap_blocks() {
            blocks.clear();
        }
    }

    /// Decompressed blocks are kept from here on, within the limit of an arena.
    pub(crate) fn keep_heap_blocks(&self, arena: &Arc<Arena>) {
        self.heap_blocks.get_or_init(|| HeapBlocks::new(arena));
    }

    /// The decompressed blocks that are kept.
    pub(super) fn heap_blocks(&self) -> Option<&HeapBlocks> {
        self.heap_blocks.get()
    }

    /// Are segments read from copies?
    pub(crate) fn copies(&self) -> bool {
        self.copies
    }

    /// The database's random identity, which checksums are bound to.
    #[must_use]
    pub fn database(&self) -> u128 {
        self.database
    }

    /// The path of a segment.
    #[must_use]
    pub fn path(&self, id: u64) -> PathBuf {
        segment_path(&self.dir, id)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Nothing is created or removed from here on: the directory is about to be unlocked.
    pub fn give_up(&self) {
        *self.owned() = false;
    }

    fn owned(&self) -> MutexGuard<'_, bool> {
        // default: a flag is whole after any panic
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the file of a new segment. That of a run has a name of its own until it is whole:
    /// see [`SegmentFiles::name_run`].
    ///
    /// # Errors
    /// `InvalidInput` once the directory has been given up, or what the machine says.
    pub fn create(&self, id: u64) -> Result<Arc<dyn File>> {
        let owned = self.owned();
        if !*owned {
            return Err(Error::new(crate::ErrorKind::InvalidInput, "the database is closed"));
        }
        let path = if run_of_file(id).is_some() { self.unnamed_run(id) } else { self.path(id) };
        Ok(self.environment.files.open(&path, OpenMode::CreateNew)?)
    }

    /// Opens the file of a segment that the catalogue names.
    ///
    /// # Errors
    /// `Corrupt` when it is not there, or what the machine says.
    pub fn open(&self, id: u64) -> Result<Arc<dyn File>> {
        let opened = self.environment.files.open(&self.path(id), OpenMode::Read);
        opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::corrupt(format!("{e}, though the catalogue names it")),
            _ => e.into(),
        })
    }

    /// Where a run is written.
    fn unnamed_run(&self, id: u64) -> PathBuf {
        self.dir.join(format!("{}{UNNAMED}", segment_file_name(id)))
    }

    /// Gives a run that has been synced its name. No catalogue says whether a run is whole; its
    /// name does.
    ///
    /// # Errors
    /// `InvalidInput` once the directory has been given up, or what the machine says.
    pub fn name_run(&self, id: u64) -> Result<()> {
        let owned = self.owned();
        if !*owned {
            return Err(Error::new(crate::ErrorKind::InvalidInput, "the database is closed"));
        }
        Ok(self.environment.files.rename(&self.unnamed_run(id), &self.path(id))?)
    }

    /// The length of a file that may be there.
    ///
    /// # Errors
    /// What the machine says.
    pub fn length(&self, id: u64) -> Result<Option<u64>> {
        match self.environment.files.open(&self.path(id), OpenMode::Read) {
            Ok(file) => Ok(Some(file.len()?)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes the file of a segment that nothing names. One that stays behind goes at the next
    /// open.
    pub fn remove(&self, id: u64) {
        if run_of_file(id).is_some() {
            self.remove_other(&self.unnamed_run(id));
        }
        self.remove_other(&self.path(id));
    }

    /// Removes another file of the directory that nothing names any more.
    pub fn remove_other(&self, path: &Path) {
        let owned = self.owned();
        if *owned {
            let _ = self.environment.files.remove(path);
        }
    }
}
