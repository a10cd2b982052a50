//! Read-only bytes of a file, mapped or copied.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::os::FileMap;

/// What copies are aligned to: a cache line, as columns are within files.
const ALIGNMENT: usize = 64;

/// The first bytes of a file that is never written again, aligned to at least 64 bytes.
///
/// In production this is a memory mapping; in simulation, and of databases in memory, a copy.
#[derive(Clone)]
pub struct Mapping(Arc<Bytes>);

/// Two cases that differ where bytes are read: by a reader of single values, many million
/// times a second, so that a call by a table of functions would be felt.
enum Bytes {
    File(FileMap),
    Copy(AlignedCopy),
}

struct AlignedCopy {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Mapping {
    /// Mapped bytes of a file.
    pub(crate) fn of_file(map: FileMap) -> Self {
        Self(Arc::new(Bytes::File(map)))
    }

    /// A copy of bytes.
    ///
    /// ```
    /// let mapping = esker_vfs::Mapping::copy_of(b"abc");
    /// assert_eq!(&*mapping, b"abc");
    /// assert_eq!(mapping.as_ptr().align_offset(64), 0);
    /// ```
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::filled(bytes.len(), |target| target.copy_from_slice(bytes))
    }

    /// `len` bytes that `fill` writes, over zeros.
    pub(crate) fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut buffer = vec![0; len + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        fill(buffer.get_mut(start..start + len).unwrap_or_default());
        Self(Arc::new(Bytes::Copy(AlignedCopy { buffer, start, len })))
    }

    /// Takes the pages read so far out of the process's memory, for callers that read much more
    /// than there is memory for. They come back at the next touch, from the page cache mostly.
    pub fn release(&self) {
        if let Bytes::File(map) = &*self.0 {
            map.release();
        }
    }
}

/// A file that grows, mapped up to a length that it may not have yet.
///
/// Only bytes that have been written, and are never written again, may be read.
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

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Bytes::File(map) => map.bytes(),
            Bytes::Copy(copy) => {
                copy.buffer.get(copy.start..copy.start + copy.len).unwrap_or_default()
            }
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}
