//! Memory mappings of files that are never written again.
#![allow(unsafe_code, reason = "mapping a file and viewing it as bytes")]

use std::fs::File;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::GrowingBytes;

/// Mappings from here on ask for huge pages: random reads miss the TLB once instead of walking
/// page tables that do not fit the cache.
const HUGE_FROM_BYTES: usize = 4 << 20;

/// A read-only mapping of the first bytes of a file.
pub(crate) struct FileMap {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapped bytes are only ever read, and unmapped once, when the last owner drops it.
unsafe impl Send for FileMap {}
// SAFETY: as above.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps `len` bytes, which the caller has checked the file to hold, or asks for by
    /// [`GrowingBytes`] only as far as it does. Zero maps nothing.
    pub(crate) fn new(file: &File, len: usize) -> std::io::Result<Self> {
        if len == 0 {
            return Ok(Self { start: NonNull::<u64>::dangling().cast(), len });
        }
        // SAFETY: a null hint lets the kernel choose a free range, so no memory of ours is
        // replaced.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast::<u8>())
            .ok_or_else(|| std::io::Error::other("the kernel mapped the file at address 0"))?;
        if len >= HUGE_FROM_BYTES {
            // SAFETY: advice about the range just mapped, which changes no byte. It may be refused.
            let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxHugepage) };
        }
        Ok(Self { start, len })
    }

    /// All bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is the start of a live readable mapping of `len` bytes (or dangling,
        // with `len` 0), unmapped only in `drop`. The file is not written while mapped: that is
        // the condition under which `File::map` may be called.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Lets go of what of the memory can be had again from the file.
    pub(crate) fn release(&self) {
        if self.len > 0 {
            // SAFETY: the range is mapped while `self` lives, shared and never written, so that a
            // page taken out of it comes back with the same bytes, those being read now included.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxDontNeed) };
        }
    }
}

impl GrowingBytes for FileMap {
    fn get(&self, start: usize, len: usize) -> Option<&[u8]> {
        if start.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the range lies within a live readable mapping, unmapped only in `drop`. Its bytes
        // are in the file and are not written while they are seen: that is the condition under
        // which `GrowingMapping::get` may be called.
        Some(unsafe { slice::from_raw_parts(self.start.as_ptr().add(start), len) })
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the range was mapped by `new`, and no slice outlives `self`.
            let result = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
            debug_assert!(result.is_ok(), "munmap failed: {result:?}");
        }
    }
}
