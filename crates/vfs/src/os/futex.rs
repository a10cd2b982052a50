//! Sleeping and waking on the word of an [`Event`].
//!
//! Nothing but the word is touched: a waker pays one system call however many wait, and none when
//! no thread does. A waiter announces itself before the kernel compares the word; a waker moves the
//! word before it looks for waiters. Both are sequentially consistent, so at least one of them
//! sees the other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::futex;
use rustix::thread::futex::{Flags, Timespec};

use crate::Event;

/// Sleeps until the event has moved from `seen`, the timeout has passed, or for no reason.
pub(crate) fn wait(event: &Event, seen: u32, timeout: Option<Duration>) {
    if event.generation() != seen {
        return;
    }
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    event.waiters().fetch_add(1, Ordering::SeqCst);
    // The result is of no use: moved already, interrupted, timed out and woken all mean that the
    // caller looks again.
    let _ = futex::wait(event.word(), Flags::PRIVATE, seen, timeout.as_ref());
    event.waiters().fetch_sub(1, Ordering::SeqCst);
}

/// Moves the event and wakes up to `count` waiters.
pub(crate) fn signal(event: &Event, count: usize) {
    event.word().fetch_add(1, Ordering::SeqCst);
    if count == 0 || event.waiters().load(Ordering::SeqCst) == 0 {
        return;
    }
    // The kernel reads the number as a signed 32-bit value.
    let count = u32::try_from(count).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs());
    let woken = futex::wake(event.word(), Flags::PRIVATE, count);
    debug_assert!(woken.is_ok(), "waking a private futex failed: {woken:?}");
}
