//! When a version died, and whether a newer one of its key has taken its place, in one word.
//!
//! The later of two commits has to find when a key was changed last: by its newest version, alive
//! or dead. So a dead version that is the newest of its key stays for as long as anybody may ask,
//! which only readers do that may write; one that was *superseded*, whose successor the index
//! names, and one that died before all who may ask began, stay only for those who see them.

/// The bit of a version that has a successor.
const SUPERSEDED: u64 = 1 << 63;
/// The bit of a version that had expired when it was deleted: no reader notices.
const ENDED: u64 = 1 << 62;

/// The word of a row that has died, or 0 while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeleteStamp(u64);

impl DeleteStamp {
    /// By a commit that deletes the row.
    pub fn deleted(commit: u64) -> Self {
        Self(commit)
    }

    /// By a commit that deletes a row that has expired.
    pub fn ended(commit: u64) -> Self {
        Self(commit | ENDED)
    }

    /// By a commit that puts another version in its place.
    pub fn replaced(commit: u64) -> Self {
        Self(commit | SUPERSEDED)
    }

    #[inline]
    pub fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub fn word(self) -> u64 {
        self.0
    }

    /// The commit; 0 while the row lives.
    #[inline]
    pub fn commit(self) -> u64 {
        self.0 & !(SUPERSEDED | ENDED)
    }

    /// It had expired before, and who reads since then found it absent anyway.
    pub fn is_ended(self) -> bool {
        self.0 & ENDED != 0
    }

    /// A newer version of the key leads back to this one.
    pub fn is_superseded(self) -> bool {
        self.0 & SUPERSEDED != 0
    }

    /// The same of a dead row that has a successor from now on.
    pub fn with_successor(self) -> Self {
        Self(self.0 | SUPERSEDED)
    }
}
