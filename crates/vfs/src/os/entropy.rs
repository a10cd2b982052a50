//! Random bits from the kernel, fetched a block at a time.
//!
//! Every value comes from the kernel's generator, so that hash secrets and identifiers cannot be
//! predicted from one another; fetching 32 at a time keeps a draw at a few nanoseconds.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::Random;

const BLOCK: usize = 256;

/// Kernel entropy.
pub(crate) struct OsRandom(Mutex<Block>);

struct Block {
    bytes: [u8; BLOCK],
    next: usize,
}

impl OsRandom {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Block { bytes: [0; BLOCK], next: BLOCK }))
    }
}

impl fmt::Debug for OsRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OsRandom")
    }
}

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        let mut block = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = block.take() {
            return value;
        }
        fill(&mut block.bytes);
        block.next = 0;
        block.take().unwrap_or_default()
    }
}

impl Block {
    /// The next eight bytes, erased from the block so that they are never given out twice.
    fn take(&mut self) -> Option<u64> {
        let bytes = self.bytes.get_mut(self.next..)?.first_chunk_mut::<8>()?;
        self.next += 8;
        Some(u64::from_le_bytes(std::mem::take(bytes)))
    }
}

fn fill(bytes: &mut [u8]) {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..)
        && !rest.is_empty()
    {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return fill_from_std(bytes),
        }
    }
}

/// Where the system call is refused (old kernels, filters), the standard library still has its
/// own source of entropy behind the keys of its hash maps.
fn fill_from_std(bytes: &mut [u8]) {
    for (index, chunk) in bytes.chunks_mut(8).enumerate() {
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_usize(index);
        let value = hasher.finish().to_le_bytes();
        for (to, from) in chunk.iter_mut().zip(value) {
            *to = from;
        }
    }
}
