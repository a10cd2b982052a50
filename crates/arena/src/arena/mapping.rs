//! The reserved address range: the only place that maps, advises and unmaps memory.
//!
//! ```text
//! offset 0                      words_end                                        len
//! | small words | large words   | large data                      | small data    |
//! |  huge pages, but for the first 4 MiB of small words and of small data         |
//! ```
//!
//! Invariants
//! - `[0, words_end)` is only ever read and written as `AtomicU64`, from mapping to unmapping, so
//!   any word in it may be loaded at any time, by anyone, whatever the allocator did meanwhile.
//! - `[words_end, len)` is reached only through [`Mapping::data`], whose callers prove exclusion.
//! - The range stays mapped, readable and writable until the `Mapping` is dropped.
#![allow(unsafe_code, reason = "maps memory and hands out views of it")]

use crate::error::ArenaError;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

/// Alignment of the range and of its parts: the size of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Below this a reservation is not halved any further.
const LEAST_RESERVATION: usize = 1 << 30;

/// Whether a part of the range wants huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSize {
    Small,
    Huge,
}

#[derive(Debug)]
pub(crate) struct Mapping {
    /// `len` bytes of mapped memory, aligned to [`HUGE_PAGE`].
    base: NonNull<u8>,
    len: usize,
    words_end: usize,
    /// What `mmap` returned, of `len + HUGE_PAGE` bytes.
    reserved: NonNull<u8>,
}

// SAFETY: the memory belongs to the process, not to a thread, and `Mapping` itself is immutable.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out atomics and raw pointers only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes, or half of it while the system refuses, down to 1 GiB.
    pub(crate) fn reserve(len: usize) -> Result<Self, ArenaError> {
        let mut len = len.next_multiple_of(8 * HUGE_PAGE);
        loop {
            match Self::try_reserve(len) {
                Ok(mapping) => return Ok(mapping),
                Err(_) if len / 2 >= LEAST_RESERVATION => {
                    len = (len / 2).next_multiple_of(8 * HUGE_PAGE);
                }
                Err(cause) => return Err(ArenaError::unavailable(len as u64, cause)),
            }
        }
    }

    fn try_reserve(len: usize) -> Result<Self, rustix::io::Errno> {
        let total = len.checked_add(HUGE_PAGE).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases
        // nothing.
        let start = unsafe {
            mmap_anonymous(
                null_mut(),
                total,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let reserved = NonNull::new(start.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        let skip = reserved.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        // SAFETY: `skip` is at most HUGE_PAGE and the mapping is `len + HUGE_PAGE` bytes long.
        let base = unsafe { reserved.add(skip) };
        Ok(Self { base, len, words_end: len / 8 * 3, reserved })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the words end and the data begin.
    pub(crate) fn words_end(&self) -> usize {
        self.words_end
    }

    /// Every word of the word part.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the first `words_end` bytes are mapped for as long as `self` lives, the base is
        // aligned far beyond 8, fresh pages are zero, and by the first invariant of this module
        // nothing but atomics ever touches them.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().cast::<AtomicU64>(), self.words_end / 8)
        }
    }

    /// The address of `len` bytes at `offset` in the data part; `None` if they are not all there.
    ///
    /// The memory is mapped and initialised (zeros or old bytes). Who may read or write it is up to
    /// the container that owns the block.
    #[inline]
    pub(crate) fn data(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        let start = usize::try_from(offset).ok()?;
        if start < self.words_end || start.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `start <= self.len`, which lies inside one mapping.
        Some(unsafe { self.base.add(start) })
    }

    /// Tells the system which pages suit `range`; a hint, so failure is ignored.
    pub(crate) fn prefer(&self, range: Range<usize>, pages: PageSize) {
        let advice = match pages {
            PageSize::Small => Advice::LinuxNoHugepage,
            PageSize::Huge => Advice::LinuxHugepage,
        };
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        // SAFETY: the range lies inside the mapping and the advice changes no contents.
        let _ = unsafe { madvise(self.base.as_ptr().add(start).cast(), end - start, advice) };
    }

    /// Gives the pages of `range` back to the system; true if the range now reads as zeros.
    ///
    /// # Safety
    /// No reference into a data `range` may live. (Words are atomics: they may only turn to zero.)
    pub(crate) unsafe fn discard(&self, range: Range<usize>) -> bool {
        if range.end > self.len || range.start > range.end || !range.start.is_multiple_of(4096) {
            return false;
        }
        // SAFETY: inside the mapping; the caller holds the only claim to the block.
        unsafe {
            madvise(
                self.base.as_ptr().add(range.start).cast(),
                range.end - range.start,
                Advice::LinuxDontNeed,
            )
        }
        .is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `reserved` and its length are what `mmap` gave; every view borrows `self`, and
        // containers keep the arena alive, so none is left.
        let _ = unsafe { munmap(self.reserved.as_ptr().cast(), self.len + HUGE_PAGE) };
    }
}
