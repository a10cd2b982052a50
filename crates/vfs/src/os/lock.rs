//! Advisory locks on a lock file.
//!
//! The lock belongs to the open file, so it ends with the process that holds it, however that
//! dies. The file stays behind; an exclusive holder empties it when it lets go. The name of the
//! holder in it is for error messages only, so a full disk does not refuse the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind, FileLock, LockMode, Result};

/// What a lock file has beyond this is no name, and is cut off.
const NAME_BYTES_MAX: u64 = 4 << 10;

/// A lock held through an open file.
#[derive(Debug)]
pub(crate) struct OsLock {
    file: File,
    path: PathBuf,
    mode: LockMode,
}

impl FileLock for OsLock {
    fn describe(&self, holder: &str) -> Result<()> {
        if self.mode != LockMode::Exclusive {
            return Ok(());
        }
        let written = name_holder(&self.file, holder);
        written
            .map_err(|e| Error::from_io(e, "write the holder into", &self.path))
            .or_else(allow_no_space)
    }
}

impl OsLock {
    pub(crate) fn take(path: &Path, mode: LockMode, holder: &str) -> Result<Self> {
        let exclusive = mode == LockMode::Exclusive;
        let mut file = OpenOptions::new()
            .read(true)
            .write(exclusive)
            .create(exclusive)
            .truncate(false)
            .open(path)
            .map_err(|e| Error::from_io(e, "open", path))?;
        let locked = match mode {
            LockMode::Exclusive => file.try_lock(),
            LockMode::Shared => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(refused(&mut file, path)),
            Err(TryLockError::Error(e)) => return Err(Error::from_io(e, "lock", path)),
        }
        if exclusive {
            name_holder(&file, holder)
                .map_err(|e| Error::from_io(e, "write the holder into", path))
                .or_else(allow_no_space)?;
        }
        Ok(Self { file, path: path.to_owned(), mode })
    }
}

/// Writes the name over the one before, padded with line breaks where that was longer: a reader
/// never finds an empty file meanwhile.
fn name_holder(file: &File, holder: &str) -> std::io::Result<()> {
    let before = file.metadata()?.len();
    if before > NAME_BYTES_MAX {
        file.set_len(NAME_BYTES_MAX)?;
    }
    let mut text = holder.to_owned();
    (holder.len() as u64..before.min(NAME_BYTES_MAX)).for_each(|_| text.push('\n'));
    file.write_all_at(text.as_bytes(), 0).inspect_err(|_| {
        // Half a name is worse than none.
        let _ = file.set_len(0);
    })
}

/// On a full disk the lock is held without the name of its holder: a database must be opened to
/// free space.
fn allow_no_space(error: Error) -> Result<()> {
    if error.kind() == ErrorKind::NoSpace { Ok(()) } else { Err(error) }
}

/// The error for a lock that somebody else holds, with what they wrote.
fn refused(file: &mut File, path: &Path) -> Error {
    let mut bytes = Vec::new();
    // Only a better message is lost when this fails.
    let _ = Read::by_ref(file).take(256).read_to_end(&mut bytes);
    Error::locked(path, &String::from_utf8_lossy(&bytes))
}

impl Drop for OsLock {
    fn drop(&mut self) {
        if self.mode == LockMode::Exclusive {
            // So that no error names a holder that is gone.
            let _ = self.file.set_len(0);
        }
        // Closing alone would leave the lock to a child process that is just being started and
        // has not yet closed what it inherited.
        let _ = self.file.unlock();
    }
}

impl Error {
    /// The refusal of a lock that somebody else holds.
    pub(crate) fn locked(path: &Path, holder: &str) -> Self {
        let path = path.display();
        let holder = holder.trim();
        let message = if holder.is_empty() {
            format!("lock {path}: held by another process or handle")
        } else {
            format!("lock {path}: held by another process or handle: {holder}")
        };
        Self::new(ErrorKind::Locked, message)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_holder_that_says_more_is_named_all_the_time() {
        let path = std::env::temp_dir().join(format!("esker-lock-{}", std::process::id()));
        let lock = OsLock::take(&path, LockMode::Exclusive, "process 1\n").unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(text.starts_with("process 1\n"), "{text:?}");
                }
            });
            for round in 0..2_000 {
                let address = if round % 2 == 0 { "address esker://127.0.0.1:1\n" } else { "" };
                lock.describe(&format!("process 1\n{address}")).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        drop(lock);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::remove_file(&path).unwrap();
    }
}
