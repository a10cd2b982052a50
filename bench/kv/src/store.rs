//! What every store has to do.

use std::path::Path;

use crate::data::Data;

/// The result of anything here.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A kind of store.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Version and settings, and what its sync does.
    pub settings: &'static str,
    /// False when it has been told to keep no order.
    pub has_ranges: bool,
    /// What files of a saved index are called, where there are such: so they begin.
    pub saved_index: Option<&'static str>,
    /// Opens or creates one.
    pub open: fn(&Path, &Data) -> Result<Box<dyn Store>>,
}

/// An open store.
pub trait Store: Sync {
    /// Loads entries; all are durable when it returns.
    fn load(&self, data: &Data, entries: std::ops::Range<usize>) -> Result<()>;

    /// Waits until work that the load left for later is done, where the store can tell.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Puts one entry, durable when it returns.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Puts entries in one commit, durable when it returns.
    fn put_batch(&self, data: &Data, entries: std::ops::Range<usize>) -> Result<()>;

    /// Puts single entries, none of which waits for the disk.
    fn put_unsynced(&self, data: &Data, entries: std::ops::Range<usize>) -> Result<()>;

    /// Reads with one view of the data, on the thread that asks.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// Removes entries, durable when it returns.
    fn remove(&self, data: &Data, entries: std::ops::Range<usize>) -> Result<()>;

    /// Gives the space of what was removed back.
    fn compact(&mut self) -> Result<()>;

    /// Bytes of files that a compacted store can be opened without, such as a saved index.
    fn derived_bytes(&self, _dir: &Path) -> u64 {
        0
    }

    /// How many sorted runs a range is looked for in, where the store says.
    fn runs_of_a_range(&self) -> Option<usize> {
        None
    }

    /// Bytes of memory beside mapped files, where the store says.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// Reads.
pub trait Reader {
    /// True when the value of a key is this one.
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Reads up to ten entries from a key on; returns how many bytes they have.
    fn ten_from(&self, key: &[u8]) -> Result<usize>;
}
