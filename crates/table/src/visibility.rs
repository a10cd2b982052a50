//! The visibility rule: which versions of a row a reader sees.
//!
//! Every version has two stamps: the commits that created and that deleted it, 0 while it lives. A
//! reader at commit `at` sees it if it was created at or before `at`, and not deleted at or before
//! `at`.
//!
//! ```text
//!               created            deleted
//! commits  ────────●━━━━━━━━━━━━━━━━━━○──────────►
//! a reader  NotYet       Visible          Deleted
//! ```
//!
//! A commit that replaces a version stamps both with its number, so each reader sees one version
//! of a key at the most. Rows that have expired, and those that a transaction hides from itself,
//! are no matter of stamps: [`SnapshotPart`](crate::table::SnapshotPart) leaves them out besides.

/// How a version stands for a reader at one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It was created later: the reader may see an older version.
    NotYet,
    /// The reader sees it.
    Visible,
    /// It was deleted or replaced by then.
    Deleted,
}

impl Visibility {
    /// By whether a version was created at commit `at`, and its delete stamp, which is read only
    /// then.
    #[must_use]
    #[inline]
    pub fn of(is_created: bool, deleted: impl FnOnce() -> u64, at: u64) -> Self {
        match is_created {
            false => Self::NotYet,
            true if is_deleted_at(deleted(), at) => Self::Deleted,
            true => Self::Visible,
        }
    }

    /// True for [`Visibility::Visible`].
    #[must_use]
    #[inline]
    pub fn is_visible(self) -> bool {
        self == Self::Visible
    }
}

/// True when a version with a delete stamp, 0 while it lives, is gone for a reader at commit `at`.
#[must_use]
#[inline]
pub fn is_deleted_at(deleted: u64, at: u64) -> bool {
    deleted != 0 && deleted <= at
}

#[cfg(test)]
mod tests {
    use super::Visibility::{Deleted, NotYet, Visible};
    use super::*;

    #[test]
    fn a_version_is_visible_from_its_creation_until_its_end() {
        let at = |at| Visibility::of(5 <= at, || 8, at);
        assert_eq!([4, 5, 7, 8, 9].map(at), [NotYet, Visible, Visible, Deleted, Deleted]);
        let alive = |at| Visibility::of(5 <= at, || 0, at);
        assert_eq!([4, 5, u64::MAX].map(alive), [NotYet, Visible, Visible]);
    }
}
