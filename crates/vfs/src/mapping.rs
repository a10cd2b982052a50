//! Read-only bytes of a file, mapped or copied.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The first bytes of a file that is never written again, aligned to at least 8 bytes.
///
/// In production this is a memory mapping; in simulation a copy.
#[derive(Clone)]
pub struct Mapping(Arc<dyn MappedBytes>);

/// What holds the bytes of a [`Mapping`].
pub trait MappedBytes: Send + Sync {
    /// All bytes.
    fn bytes(&self) -> &[u8];

    /// Lets go of what of the memory can be had again from the file. The bytes stay the same.
    fn release(&self) {}
}

impl Mapping {
    /// A mapping over `bytes`.
    #[must_use]
    pub fn new(bytes: Arc<dyn MappedBytes>) -> Self {
        Self(bytes)
    }

    /// Takes the pages read so far out of the process's memory, for whoever reads much more than
    /// there is memory for. They come back at the next touch, from the page cache mostly.
    pub fn release(&self) {
        self.0.release();
    }
}

/// A file that grows, mapped up to a length that it may not have yet.
///
/// Only bytes that have been written, and are never written again, may be asked for.
#[derive(Clone)]
pub struct GrowingMapping(Arc<dyn GrowingBytes>);

/// What holds the bytes of a [`GrowingMapping`].
pub trait GrowingBytes: Send + Sync {
    /// Bytes from `start` on; `None` past the end of what is mapped.
    fn get(&self, start: usize, len: usize) -> Option<&[u8]>;
}

impl GrowingMapping {
    /// A mapping over `bytes`.
    #[must_use]
    pub fn new(bytes: Arc<dyn GrowingBytes>) -> Self {
        Self(bytes)
    }

    /// `len` bytes from `start` on, which have been written and are never written again; `None`
    /// past the end of what is mapped.
    #[must_use]
    pub fn get(&self, start: usize, len: usize) -> Option<&[u8]> {
        self.0.get(start, len)
    }
}

impl fmt::Debug for GrowingMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrowingMapping")
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}
