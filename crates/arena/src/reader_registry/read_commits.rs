//! Which commits somebody reads, or may yet read.
//!
//! ```text
//!   commits   ──────●──────────●────●──────────┃━━━━━━━━━━━━━━━━━►
//!                  held                      since: readers to come
//!   versions     ├──A──┤├─B─┤├────C────┤├─D─┤├───E───┤
//! ```
//!
//! Readers hold A and C, and E may be seen by one to come. No one sees B and D, now or later: a
//! version that was created after one held commit and died up to the next is seen by no reader, and
//! a reader that registers later reads at `since` or above.
//!
//! Of those that are held, some are of readers that may write: from the oldest of these on, or from
//! `since`, somebody may ask when a key was changed last.

use std::sync::Arc;

/// The commits that readers hold, and those that readers to come may have. See
/// [`ReaderRegistry::read_commits`](super::ReaderRegistry::read_commits).
///
/// ```
/// use esker_arena::{Arena, ArenaOptions, ReaderRegistry};
///
/// # fn main() -> Result<(), esker_arena::ArenaError> {
/// let registry = ReaderRegistry::new(&Arena::new(ArenaOptions::default())?)?;
/// let (_one, _other) = (registry.register(|| 3)?, registry.register(|| 7)?);
/// let readers = registry.read_commits(20);
/// assert_eq!(readers.oldest(), 3);
/// assert!(readers.may_see(2, 4) && readers.may_see(5, 8) && readers.may_see(9, 21));
/// // Created after one snapshot, and dead before the next: no one sees it.
/// assert!(!readers.may_see(4, 7) && !readers.may_see(8, 20));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCommits {
    /// Rising, each once.
    held: Arc<[u64]>,
    since: u64,
    /// The least of the commits that readers hold which may write, `u64::MAX` when none does.
    writers_from: u64,
}

impl ReadCommits {
    /// Readers that may write hold some commits, in any order, and those to come read at `since` or
    /// above.
    #[must_use]
    pub fn new(mut held: Vec<u64>, since: u64) -> Self {
        held.sort_unstable();
        held.dedup();
        let writers_from = held.first().copied().unwrap_or(u64::MAX);
        Self { held: held.into(), since, writers_from }
    }

    /// The same where those that may write hold this commit and later ones only, or none at all
    /// (`u64::MAX`).
    #[must_use]
    pub(super) fn with_writers_from(self, writers_from: u64) -> Self {
        Self { writers_from, ..self }
    }

    /// The same readers once all to come begin later than anything there is.
    #[must_use]
    pub fn later(&self) -> Self {
        Self { since: u64::MAX >> 1, ..self.clone() }
    }

    /// The commits that are held, rising.
    #[must_use]
    pub fn held(&self) -> &[u64] {
        &self.held
    }

    /// Readers to come read at this commit or above.
    #[must_use]
    pub fn since(&self) -> u64 {
        self.since
    }

    /// The oldest commit of a reader that may write, there now or to come.
    #[must_use]
    #[inline]
    pub fn oldest_writer(&self) -> u64 {
        self.since.min(self.writers_from)
    }

    /// The oldest commit that somebody reads, or may yet read.
    #[must_use]
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.held.first().map_or(self.since, |first| self.since.min(*first))
    }

    /// The part that decides whether a reader can see versions that died up to a commit: readers
    /// from there on see none of them.
    #[must_use]
    pub fn up_to(&self, newest: u64) -> Self {
        let before = self.held.partition_point(|commit| *commit < newest);
        let held = self.held.get(..before).unwrap_or_default().into();
        let writers_from = self.writers_from.min(newest);
        Self { held, since: self.since.min(newest), writers_from }
    }

    /// True when the same commits are held by the same kinds of readers, whenever those to come
    /// begin.
    #[must_use]
    pub fn are_held_alike(&self, other: &Self) -> bool {
        self.held == other.held && self.writers_from == other.writers_from
    }

    /// True when somebody may see a version that was created by one commit and died by another, 0
    /// while it lives.
    #[must_use]
    pub fn may_see(&self, created: u64, deleted: u64) -> bool {
        if deleted == 0 || deleted > self.since {
            return true;
        }
        let first = self.held.partition_point(|commit| *commit < created);
        self.held.get(first).is_some_and(|commit| *commit < deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::ReadCommits;

    /// Who begins and ends meanwhile is no reason to look at a unit again whose rows had all died.
    #[test]
    fn readers_from_the_last_death_on_are_all_alike() {
        let at = |held: &[u64], since| ReadCommits::new(held.to_vec(), since).up_to(20);
        assert_eq!(at(&[7, 30, 31], 40).held(), [7]);
        assert_eq!((at(&[7], 25).held(), at(&[7], 25).since()), (&[7][..], 20));
        assert_eq!((at(&[7, 19], 15).held(), at(&[7, 19], 15).since()), (&[7, 19][..], 15));
        let with = |writers| ReadCommits::new(vec![7, 30], 40).with_writers_from(writers).up_to(20);
        assert!(with(30).are_held_alike(&with(u64::MAX)) && !with(7).are_held_alike(&with(30)));
        assert_eq!((with(7).oldest_writer(), with(u64::MAX).oldest_writer()), (7, 20));
    }
}
