//! The value files of a database: the one that takes new values, and those in use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::value_file::{ALIGN_BYTES, LONG_BYTES, ValueFileHeader};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{AtomicBool, Mutex, MutexGuard};
use esker_vfs::{Environment, ErrorKind, OpenMode};

use super::{StoredValue, ValueFile, value_file_id, value_file_path};
use crate::{Error, Result};

/// Bytes after which a file takes no more values.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Which values go to value files, and how long these become.
#[derive(Clone, Copy, Debug)]
pub struct ValueLimits {
    /// Longer values go to value files.
    pub long_bytes: usize,
    /// A file takes no more values past this, but one that is longer alone.
    pub file_bytes_max: u64,
}

impl Default for ValueLimits {
    fn default() -> Self {
        Self { long_bytes: LONG_BYTES, file_bytes_max: FILE_BYTES_MAX }
    }
}

/// The value files of a database.
#[derive(Debug)]
pub struct ValueFiles {
    environment: Environment,
    dir: PathBuf,
    database: u128,
    copies: bool,
    limits: ValueLimits,
    /// Shared with the segment files; see there.
    owned: Arc<Mutex<bool>>,
    /// There has been a file.
    used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that are in use, or may be.
    files: BTreeMap<u64, Arc<ValueFile>>,
    /// The one that takes new values.
    current: Option<Arc<ValueFile>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.files.keys()).finish()
    }
}

impl ValueFiles {
    pub(crate) fn new(
        environment: Environment,
        dir: PathBuf,
        database: u128,
        copies: bool,
        limits: ValueLimits,
        owned: Arc<Mutex<bool>>,
    ) -> Self {
        let state = Mutex::default();
        let used = AtomicBool::new(false);
        Self { environment, dir, database, copies, limits, owned, used, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // default: nothing panics between two changes that belong together
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned(&self) -> MutexGuard<'_, bool> {
        // default: a flag is whole after any panic
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has there been a value file since the database was opened?
    #[must_use]
    #[inline]
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Writes a value into the current file, or a new one, whose number `new_id` gives. It is not
    /// durable yet.
    ///
    /// # Errors
    /// What the machine says; nothing refers to what was written then.
    pub fn store(&self, value: &[u8], new_id: &mut dyn FnMut() -> u64) -> Result<StoredValue> {
        let place = {
            let mut state = self.state();
            let current = state.current.clone();
            match current.and_then(|file| file.reserve(value.len())) {
                Some(place) => place,
                None => {
                    let (file, is_own) = self.create(new_id(), value.len())?;
                    let place = file.reserve(value.len());
                    let place = place.ok_or_else(|| Error::corrupt("no room in a new file"))?;
                    self.used.store(true, Ordering::Relaxed);
                    state.files.insert(file.id(), Arc::clone(&file));
                    if !is_own {
                        state.current = Some(file);
                    }
                    place
                }
            }
        };
        place.write(value)
    }

    /// Creates a file with a durable name; true when it is for one long value alone.
    fn create(&self, id: u64, len: usize) -> Result<(Arc<ValueFile>, bool)> {
        let own = (len as u64 + ALIGN_BYTES).next_multiple_of(ALIGN_BYTES);
        let most = self.limits.file_bytes_max.next_multiple_of(ALIGN_BYTES);
        let path = value_file_path(&self.dir, id);
        let salt = self.environment.random.next_u64();
        let header = ValueFileHeader { database: self.database, number: id, salt };
        let file = {
            let owned = self.owned();
            if !*owned {
                return Err(Error::new(crate::ErrorKind::InvalidInput, "the database is closed"));
            }
            self.environment.files.open(&path, OpenMode::CreateNew)?
        };
        let prepared = file.write_all_at(&header.encode(), 0);
        let prepared = prepared.and_then(|()| {
            if Bug::ValueFileNameUnsynced.is_planted() {
                return Ok(());
            }
            self.environment.files.sync_dir(&self.dir)
        });
        if let Err(e) = prepared {
            self.unlink(&path);
            return Err(e.into());
        }
        let tasks = Arc::clone(&self.environment.tasks);
        let file = ValueFile::new(header, path, file, tasks, own.max(most), self.copies)?;
        Ok((Arc::new(file), own > most))
    }

    /// A file that something refers to.
    ///
    /// # Errors
    /// `Corrupt` when it is not there or is none, or what the machine says.
    pub fn open(&self, id: u64) -> Result<Arc<ValueFile>> {
        let mut state = self.state();
        if let Some(file) = state.files.get(&id) {
            return Ok(Arc::clone(file));
        }
        let path = value_file_path(&self.dir, id);
        let opened = self.environment.files.open(&path, OpenMode::Read);
        let opened = opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::corrupt(format!("{e}, though something refers to it")),
            _ => e.into(),
        })?;
        let tasks = Arc::clone(&self.environment.tasks);
        let file = ValueFile::open((path, id), opened, tasks, self.database, self.copies)?;
        let file = Arc::new(file);
        self.used.store(true, Ordering::Relaxed);
        state.files.insert(id, Arc::clone(&file));
        Ok(file)
    }

    /// All files.
    #[must_use]
    pub fn files(&self) -> Vec<Arc<ValueFile>> {
        self.state().files.values().cloned().collect()
    }

    /// True when a file is one of this database.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.state().files.contains_key(&id)
    }

    /// The number of the file that takes new values.
    #[must_use]
    pub fn current(&self) -> Option<u64> {
        self.state().current.as_ref().map(|file| file.id())
    }

    /// The current file takes no more values. Some may be under way still: see
    /// [`ValueFile::wait_written`].
    pub fn finish_current(&self) {
        self.state().current = None;
    }

    /// The numbers of the files without a holder that take no more values: what is durable
    /// refers to none of them once all that was numbered before this call is durable.
    #[must_use]
    pub fn unused(&self) -> Vec<u64> {
        let state = self.state();
        let early = Bug::ValueFileRemovedTooEarly.is_planted();
        let current = state.current.as_ref().map(|file| file.id());
        // A file without a holder gets none again: only what refers to it leads there.
        let unheld = |file: &Arc<ValueFile>| Arc::strong_count(file) == 1 || early;
        let files = state.files.iter().filter(|(id, file)| Some(**id) != current && unheld(file));
        files.map(|(id, _)| *id).collect()
    }

    /// Removes files that are not used any more. One that stays behind goes at the next open.
    pub fn remove(&self, ids: &[u64]) {
        for id in ids {
            let file = self.state().files.remove(id);
            if let Some(file) = file {
                self.unlink(file.path());
            }
        }
    }

    /// Removes the files below a number that should be gone: their removal failed before.
    ///
    /// # Errors
    /// What the machine says; such a file may still be there then.
    pub fn remove_left(&self, before: u64) -> Result<()> {
        for name in self.environment.files.list(&self.dir)? {
            let old = value_file_id(&name).filter(|id| *id < before);
            // One that is being created is known before this can ask.
            if old.is_none_or(|id| self.contains(id)) {
                continue;
            }
            let owned = self.owned();
            if !*owned {
                return Err(Error::new(crate::ErrorKind::InvalidInput, "the database is closed"));
            }
            match self.environment.files.remove(&self.dir.join(&name)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn unlink(&self, path: &Path) {
        let owned = self.owned();
        if *owned {
            let _ = self.environment.files.remove(path);
        }
    }
}
