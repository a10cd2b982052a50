//! Opening what was closed, and what was killed.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Closed, Run, anonymous_bytes, bytes_of_files};
use crate::data::{Data, UNSYNCED, USUAL};
use crate::store::{Kind, Reader, Result, Store};

/// The data of a process that is to be killed: other keys than all others.
const DYING_SEED: u64 = 7;

impl Run<'_> {
    pub fn opens(&mut self) -> Result<()> {
        self.store = Box::new(Closed);
        if let Some(prefix) = self.kind.saved_index {
            let bytes = bytes_of_files(self.dir, |name| name.starts_with(prefix))?;
            self.note("index checkpoint, bytes a key", bytes as f64 / self.next as f64);
        }
        let closed = self.reopen()?;
        self.note("open after a close", closed * 1e3);
        self.store = Box::new(Closed);
        let program = std::env::current_exe()?;
        let mut child = Command::new(program);
        child.arg("--die").arg(self.kind.name).arg(self.dir).stderr(Stdio::inherit());
        let ended = child.output()?;
        if ended.status.success() {
            return Err("the process that was to die did not".into());
        }
        if let Ok(bytes) = String::from_utf8_lossy(&ended.stdout).trim().parse::<f64>() {
            self.note("the same, just opened", bytes / self.next as f64);
        }
        let killed = self.reopen()?;
        self.note("open after a kill", killed * 1e3);
        let data = Data::new(0, USUAL, DYING_SEED);
        let last = UNSYNCED;
        if !self.store.reader()?.has(data.key(last), data.value(last))? {
            return Err("what a killed process had put durably is lost".into());
        }
        Ok(())
    }
}

/// Opens a store and prints the memory that this took, puts entries into it, and dies without
/// closing it.
pub fn die(kind: &Kind, dir: &Path) -> Result<()> {
    let data = Data::new(0, USUAL, DYING_SEED);
    let before = anonymous_bytes();
    let store = (kind.open)(dir, &data)?;
    if let (Some(before), Some(after)) = (before, anonymous_bytes()) {
        println!("{}", after.saturating_sub(before));
    }
    store.put_unsynced(&data, 0..UNSYNCED)?;
    store.put(data.key(UNSYNCED), data.value(UNSYNCED))?;
    std::process::abort()
}

fn closed<T>() -> Result<T> {
    Err("the store is closed".into())
}

impl Store for Closed {
    fn load(&self, _: &Data, _: Range<usize>) -> Result<()> {
        closed()
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<()> {
        closed()
    }

    fn put_batch(&self, _: &Data, _: Range<usize>) -> Result<()> {
        closed()
    }

    fn put_unsynced(&self, _: &Data, _: Range<usize>) -> Result<()> {
        closed()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        closed()
    }

    fn remove(&self, _: &Data, _: Range<usize>) -> Result<()> {
        closed()
    }

    fn compact(&mut self) -> Result<()> {
        closed()
    }
}
