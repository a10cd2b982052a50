//! Which numbers the commits of operations got.
//!
//! A simulation has one thread: an operation that waits lets others begin and end before it goes
//! on. So what runs is a stack, and a commit belongs to the operation that began last.

use std::cell::RefCell;

thread_local! {
    /// The last commit of each operation that is under way.
    static RUNNING: RefCell<Vec<Option<u64>>> = const { RefCell::new(Vec::new()) };
}

/// What an engine tells its commits to: see `Options::on_commits`.
pub(crate) fn told(commit: u64) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(last) = running.last_mut() {
            *last = Some(commit);
        }
    });
}

/// An operation that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Numbered {
    depth: usize,
}

impl Numbered {
    /// An operation begins.
    pub fn begin() -> Self {
        RUNNING.with_borrow_mut(|running| {
            running.push(None);
            Self { depth: running.len() }
        })
    }

    /// The number of its last commit of rows, if it got as far.
    pub fn commit(&self) -> Option<u64> {
        let place = self.depth.checked_sub(1)?;
        RUNNING.with_borrow(|running| running.get(place).copied().flatten())
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.truncate(self.depth.saturating_sub(1)));
    }
}
