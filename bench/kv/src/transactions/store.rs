//! What every store has to do.

use std::path::Path;

use crate::store::Result;

/// What each account has at first.
pub const CENTS: i64 = 1_000;

/// A kind of store with transactions.
pub struct Kind {
    pub name: &'static str,
    /// Version and settings, and what its sync does.
    pub settings: &'static str,
    /// Makes one of so many accounts; commits wait for the disk, or do not.
    pub create: fn(&Path, u64, bool) -> Result<Box<dyn Store>>,
}

/// An open store: accounts by number, and a counter.
pub trait Store: Sync {
    /// What one thread works with.
    fn worker(&self) -> Result<Box<dyn Worker + '_>>;

    /// The cents of all accounts.
    fn sum(&self) -> Result<i64>;

    /// The counter.
    fn counter(&self) -> Result<i64>;
}

/// Work of one thread. Each call is one transaction, tried until it is committed; it tells how
/// often it was tried.
pub trait Worker {
    /// Reads four accounts, which differ, and moves a cent from the first to the second.
    fn transfer(&mut self, accounts: [u64; 4]) -> Result<u64>;

    /// Adds one to the counter.
    fn count(&mut self) -> Result<u64>;
}
