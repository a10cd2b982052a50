//! The memory that a statement may hold at once.
//!
//! Two kinds of bytes count. What groups, sort keys and answers hold counts from the first byte on.
//! What evaluating expressions makes goes away with its batch: a few megabytes of it, which every
//! statement needs, are free; once it is more, all of it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Error, ErrorKind, Result};

/// What evaluating expressions may take beside the limit, while it is no more: batches of a few
/// columns.
pub(crate) const EVALUATION_BYTES_FREE: usize = 4 << 20;

/// Bytes that may be held, and bytes that are. Clones of an [`Arc`] share them.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    held: AtomicUsize,
    /// What expressions that are being evaluated hold.
    evaluated: AtomicUsize,
    /// What this is a part of: all that is held here is held there, too.
    whole: Option<Arc<Self>>,
}

/// Bytes that one holder has. They are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge<'b> {
    budget: &'b Budget,
    bytes: usize,
    is_evaluated: bool,
}

impl Budget {
    /// A budget of so many bytes, of which none is held.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self::part_of(None, limit_bytes)
    }

    const fn part_of(whole: Option<Arc<Self>>, limit: usize) -> Self {
        Self { limit, held: AtomicUsize::new(0), evaluated: AtomicUsize::new(0), whole }
    }

    /// The most bytes that may be held.
    #[must_use]
    pub const fn limit_bytes(&self) -> usize {
        self.limit
    }

    /// What is left of a budget. What is kept here is given back when this is dropped.
    pub(crate) fn within(whole: &Arc<Self>) -> Self {
        Self::part_of(Some(Arc::clone(whole)), whole.left())
    }

    /// Bytes that nothing holds.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.held.load(Ordering::Relaxed))
    }

    pub(crate) fn charge(&self) -> Charge<'_> {
        Charge { budget: self, bytes: 0, is_evaluated: false }
    }

    /// A charge for what evaluating an expression makes.
    pub(crate) fn charge_evaluated(&self) -> Charge<'_> {
        Charge { budget: self, bytes: 0, is_evaluated: true }
    }

    /// The budgets that this one is a part of, itself included.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.whole.as_deref())
    }

    fn counter(&self, is_evaluated: bool) -> &AtomicUsize {
        if is_evaluated { &self.evaluated } else { &self.held }
    }

    fn add(&self, bytes: usize, is_evaluated: bool) -> Result<()> {
        let mut over = None;
        for budget in self.all() {
            budget.counter(is_evaluated).fetch_add(bytes, Ordering::Relaxed);
            let evaluated = budget.evaluated.load(Ordering::Relaxed);
            let held = budget.held.load(Ordering::Relaxed);
            let counted = if evaluated > EVALUATION_BYTES_FREE { evaluated } else { 0 };
            let needed = held.saturating_add(counted);
            if needed > budget.limit {
                over.get_or_insert((needed, budget.limit));
            }
        }
        let Some((needed, limit)) = over else { return Ok(()) };
        Err(Error::new(
            ErrorKind::OverBudget,
            format!("the query needs more than {needed} bytes of memory; its budget is {limit}"),
        ))
    }

    fn give_back(&self, bytes: usize, is_evaluated: bool) {
        if bytes == 0 {
            return;
        }
        for budget in self.all() {
            budget.counter(is_evaluated).fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Default for Budget {
    /// For constants outside of any statement.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            whole.give_back(*self.held.get_mut(), false);
            whole.give_back(*self.evaluated.get_mut(), true);
        }
    }
}

impl Charge<'_> {
    /// Holds the bytes for as long as the budget lasts.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }

    /// Says how many bytes the holder has now. What is about to be made is to be said before.
    ///
    /// # Errors
    /// `OverBudget` when that is more than there is, with the number needed so far.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<()> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.budget.give_back(before - bytes, self.is_evaluated);
            return Ok(());
        }
        let more = bytes - before;
        // A sum of the counters must not pass their type.
        if more > usize::MAX / 4 {
            self.bytes = before;
            let limit = self.budget.limit;
            let message =
                format!("the query needs more than {more} bytes of memory; its budget is {limit}");
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        self.budget.add(more, self.is_evaluated)
    }

    /// Takes over what another charge of the same budget and kind holds.
    pub(crate) fn merge(&mut self, mut other: Self) {
        debug_assert!(std::ptr::eq(self.budget, other.budget), "two budgets");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes, self.is_evaluated);
    }
}
