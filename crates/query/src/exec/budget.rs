//! The memory that a query may hold at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, ErrorKind, Result};

/// Bytes that may be held, and bytes that are.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

/// Bytes that one holder has. They are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// Bytes that nobody holds.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    pub(crate) fn charge(&self) -> Charge<'_> {
        Charge { budget: self, bytes: 0 }
    }
}

impl Charge<'_> {
    /// Holds the bytes for as long as the budget lasts.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }

    /// Says how many bytes the holder has now.
    ///
    /// # Errors
    /// `OverBudget` when that is more than there is, with the number needed so far.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<()> {
        let used = &self.budget.used;
        if bytes <= self.bytes {
            used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        let more = bytes - self.bytes;
        let needed = used.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        self.bytes = bytes;
        if needed > self.budget.limit {
            let limit = self.budget.limit;
            return Err(Error::new(
                ErrorKind::OverBudget,
                format!(
                    "the query needs more than {needed} bytes of memory; its budget is {limit}"
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
