//! Buffers to read into, for whichever connection has something to read: those that wait have none.

use std::cell::RefCell;

use super::stream::READ_BYTES;

/// Unused buffers of one thread.
const KEPT_MAX: usize = 16;
/// Larger ones are not kept.
pub(super) const KEPT_BYTES_MAX: usize = 8 * READ_BYTES;

thread_local! {
    static UNUSED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room for a read.
pub(super) fn take() -> Vec<u8> {
    let unused = UNUSED.with_borrow_mut(Vec::pop);
    unused.unwrap_or_else(|| Vec::with_capacity(READ_BYTES))
}

/// Takes a buffer back.
pub(super) fn give(mut buffer: Vec<u8>) {
    if !(READ_BYTES..=KEPT_BYTES_MAX).contains(&buffer.capacity()) {
        return;
    }
    buffer.clear();
    UNUSED.with_borrow_mut(|unused| {
        if unused.len() < KEPT_MAX {
            unused.push(buffer);
        }
    });
}
