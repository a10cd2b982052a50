//! One value file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::value_file::{ALIGN_BYTES, HEADER_BYTES, ValueFileHeader};
use esker_format::{ValueReference, invariant};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{AtomicU64, Mutex, MutexGuard};
use esker_vfs::{BlockCopies, Event, File, GrowingMapping, Tasks};

use crate::{Error, ErrorKind, Result};

/// Bytes of one read while a value is verified.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of a copy that are filled at a time.
const COPY_BYTES: usize = 512;

/// A file of long values.
pub struct ValueFile {
    header: ValueFileHeader,
    path: PathBuf,
    file: Arc<dyn File>,
    tasks: Arc<dyn Tasks>,
    /// Where values may lie.
    capacity: u64,
    /// Behind the last value that was given a place.
    end: AtomicU64,
    bytes: Bytes,
    /// What has been verified: offset, then length and checksum.
    verified: Mutex<BTreeMap<u64, (u64, u64)>>,
    writing: Mutex<Writing>,
    /// Signalled when a sync ends.
    synced: Event,
    /// Signalled when no write is under way any more.
    idle: Event,
}

enum Bytes {
    Mapped(GrowingMapping),
    Copied(BlockCopies),
}

/// How far values are written and durable, as numbers of writes that have ended.
#[derive(Default)]
struct Writing {
    /// Places that were given and whose values are not written yet.
    under_way: u64,
    written: u64,
    synced: u64,
    is_syncing: bool,
    has_failed: bool,
}

/// A value that has been given to a value file. While it is held, the file stays.
#[derive(Clone)]
pub struct StoredValue {
    /// Where it is.
    pub reference: ValueReference,
    /// The file.
    pub file: Arc<ValueFile>,
    /// The write that wrote it; 0 when it has long been durable.
    pub(crate) write: u64,
}

impl StoredValue {
    /// A value that something durable refers to.
    #[must_use]
    pub fn durable(reference: ValueReference, file: Arc<ValueFile>) -> Self {
        Self { reference, file, write: 0 }
    }

    /// Waits until the value is durable.
    ///
    /// # Errors
    /// What the machine says: nothing may refer to the value then.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_through(self.write)
    }
}

/// A place in a value file that one value has to itself. Until it is dropped, its write is under
/// way.
pub(super) struct Place {
    file: Arc<ValueFile>,
    offset: u64,
}

impl Place {
    /// Writes the value that the place was reserved for.
    pub fn write(self, value: &[u8]) -> Result<StoredValue> {
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        let reference = ValueReference::new(file.header.database, file.id(), offset, value);
        file.file.write_all_at(value, offset)?;
        let write = {
            let mut writing = file.writing();
            writing.written += 1;
            writing.written
        };
        Ok(StoredValue { reference, file, write })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_idle = {
            let mut writing = self.file.writing();
            writing.under_way -= 1;
            writing.under_way == 0
        };
        if is_idle {
            self.file.tasks.signal(&self.file.idle, usize::MAX);
        }
    }
}

impl ValueFile {
    /// A file that has been created, or opened, with its header.
    pub(super) fn new(
        header: ValueFileHeader,
        path: PathBuf,
        file: Arc<dyn File>,
        tasks: Arc<dyn Tasks>,
        capacity: u64,
        copies: bool,
    ) -> Result<Self> {
        let mapping = if copies { None } else { file.map_growing(capacity)? };
        let bytes = match mapping {
            Some(mapping) => Bytes::Mapped(mapping),
            None => Bytes::Copied(BlockCopies::new(byte(capacity), COPY_BYTES)),
        };
        Ok(Self {
            header,
            path,
            file,
            tasks,
            capacity,
            end: AtomicU64::new(ALIGN_BYTES),
            bytes,
            verified: Mutex::default(),
            writing: Mutex::default(),
            synced: Event::new(),
            idle: Event::new(),
        })
    }

    /// Opens a file that something refers to.
    pub(super) fn open(
        (path, id): (PathBuf, u64),
        file: Arc<dyn File>,
        tasks: Arc<dyn Tasks>,
        database: u128,
        copies: bool,
    ) -> Result<Self> {
        let at = |e: Error| e.at(path.display());
        let mut bytes = [0; HEADER_BYTES];
        let len = file.len()?;
        file.read_exact_at(&mut bytes, 0).map_err(|e| match e.kind() {
            esker_vfs::ErrorKind::UnexpectedEnd => at(Error::corrupt(e.to_string())),
            _ => at(e.into()),
        })?;
        let header = ValueFileHeader::decode(&bytes, id).map_err(|e| at(e.into()))?;
        if header.database != database {
            return Err(at(Error::corrupt("the file belongs to another database")));
        }
        let capacity = len.max(ALIGN_BYTES).next_multiple_of(COPY_BYTES as u64);
        let opened = Self::new(header, path, file, tasks, capacity, copies)?;
        opened.end.store(capacity, Ordering::Relaxed);
        Ok(opened)
    }

    /// The number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.header.number
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file, those included that nothing refers to.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// The same, without its header.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.byte_count().saturating_sub(ALIGN_BYTES)
    }

    /// A place for a value of so many bytes, if there is room. One thread at a time.
    pub(super) fn reserve(self: &Arc<Self>, len: usize) -> Option<Place> {
        let offset = self.end.load(Ordering::Relaxed);
        let end = offset.checked_add(len as u64)?.checked_next_multiple_of(ALIGN_BYTES)?;
        if end > self.capacity {
            return None;
        }
        let mut writing = self.writing();
        if writing.has_failed {
            return None;
        }
        writing.under_way += 1;
        self.end.store(end, Ordering::Relaxed);
        let offset = offset + if Bug::ValueOffPlace.is_planted() { 8 } else { 0 };
        Some(Place { file: Arc::clone(self), offset })
    }

    /// Waits until no write is under way. Where the file takes no more values, its bytes never
    /// change afterwards: until then a value may be missing before another that is there.
    pub fn wait_written(&self) {
        loop {
            let seen = self.idle.generation();
            if self.writing().under_way == 0 {
                return;
            }
            self.tasks.wait(&self.idle, seen);
        }
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        // default: nothing panics between two changes that belong together
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the first `write` writes are durable. A thread that finds no sync running starts
    /// one, for all that has been written by then.
    fn sync_through(&self, write: u64) -> Result<()> {
        if Bug::ValueFileUnsynced.is_planted() {
            return Ok(());
        }
        loop {
            let seen = self.synced.generation();
            {
                let mut writing = self.writing();
                if writing.synced >= write {
                    return Ok(());
                }
                if writing.has_failed {
                    let path = self.path.display();
                    let message = format!("{path}: a sync of the file failed; nothing was changed");
                    return Err(Error::new(ErrorKind::Io, message));
                }
                if !writing.is_syncing {
                    writing.is_syncing = true;
                    let goal = writing.written;
                    drop(writing);
                    return self.lead(goal);
                }
            }
            self.tasks.wait(&self.synced, seen);
        }
    }

    /// Syncs the file. After a failure nothing is written to it any more: what was durable before
    /// stays so.
    fn lead(&self, goal: u64) -> Result<()> {
        let result = self.file.sync_data();
        {
            let mut writing = self.writing();
            writing.is_syncing = false;
            match &result {
                Ok(()) => writing.synced = writing.synced.max(goal),
                Err(_) => writing.has_failed = true,
            }
        }
        self.tasks.signal(&self.synced, usize::MAX);
        Ok(result?)
    }

    /// Verifies a value, if that has not been done: before the first use of its bytes.
    ///
    /// # Errors
    /// `Corrupt` naming file and offset, or what the machine says.
    pub fn ensure(&self, reference: &ValueReference) -> Result<()> {
        let key = (reference.len, reference.checksum);
        if self.verified().get(&reference.offset) == Some(&key) {
            return Ok(());
        }
        match &self.bytes {
            Bytes::Mapped(_) => self.verify(reference)?,
            Bytes::Copied(copies) => self.copy(reference, copies)?,
        }
        self.verified().insert(reference.offset, key);
        Ok(())
    }

    fn verified(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, u64)>> {
        // default: a value is added once it is verified
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a value and compares its checksum, whether or not that has been done.
    ///
    /// # Errors
    /// As for [`ValueFile::ensure`].
    pub fn verify(&self, reference: &ValueReference) -> Result<()> {
        self.expect_inside(reference)?;
        let mut sum = reference.start_checksum(self.header.database);
        let mut piece = vec![0; byte(reference.len).min(PIECE_BYTES)];
        let mut at = reference.offset;
        while at < reference.end() {
            let len = byte(reference.end() - at).min(PIECE_BYTES);
            let Some(piece) = piece.get_mut(..len) else { return Err(self.damage(reference)) };
            self.read(piece, at)?;
            sum.update(piece);
            at += len as u64;
        }
        if sum.finish() == reference.checksum { Ok(()) } else { Err(self.damage(reference)) }
    }

    /// Reads a value at once, and keeps what was verified.
    fn copy(&self, reference: &ValueReference, copies: &BlockCopies) -> Result<()> {
        self.expect_inside(reference)?;
        let len = byte(reference.len);
        let mut bytes = vec![0; len.next_multiple_of(COPY_BYTES)];
        let Some(value) = bytes.get_mut(..len) else { return Err(self.damage(reference)) };
        self.read(value, reference.offset)?;
        let mut sum = reference.start_checksum(self.header.database);
        sum.update(value);
        if sum.finish() != reference.checksum {
            return Err(self.damage(reference));
        }
        let first = byte(reference.offset) / COPY_BYTES;
        for (i, piece) in bytes.chunks(COPY_BYTES).enumerate() {
            if !copies.fill(first + i, piece) {
                return Err(self.damage(reference));
            }
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|e| match e.kind() {
            esker_vfs::ErrorKind::UnexpectedEnd => {
                Error::corrupt(e.to_string()).at(self.path.display())
            }
            _ => e.into(),
        })
    }

    /// Refuses a reference to bytes that the file does not have.
    ///
    /// # Errors
    /// `Corrupt` naming file and offset.
    pub fn expect_inside(&self, reference: &ValueReference) -> Result<()> {
        let is_own = reference.file == self.id() && reference.end() <= self.capacity;
        invariant!(is_own, self.path.display(), "{reference} is not in it");
        Ok(())
    }

    fn damage(&self, reference: &ValueReference) -> Error {
        let (path, offset, len) = (self.path.display(), reference.offset, reference.len);
        Error::corrupt(format!(
            "{path}: the value of {len} bytes at offset {offset} does not fit its checksum"
        ))
    }

    /// The bytes of a value that has been verified; empty for others.
    #[must_use]
    pub fn bytes(&self, reference: &ValueReference) -> &[u8] {
        let (start, len) = (byte(reference.offset), byte(reference.len));
        let bytes = match &self.bytes {
            Bytes::Mapped(mapping) => mapping.get(start, len),
            Bytes::Copied(copies) => copies.get(start..start.saturating_add(len)),
        };
        // default: empty for others than verified values, as said above
        bytes.unwrap_or_default()
    }

    /// True when another file, of this length and with these first bytes, is the same. Files of one
    /// number that were written by different openings differ in their header.
    ///
    /// # Errors
    /// What the machine says.
    pub fn is_same(&self, len: u64, header: &[u8]) -> Result<bool> {
        Ok(header == self.header.encode() && len == self.file.len()?)
    }
}

fn byte(offset: u64) -> usize {
    // default: beyond all bytes, so that reading there fails
    usize::try_from(offset).unwrap_or(usize::MAX)
}
