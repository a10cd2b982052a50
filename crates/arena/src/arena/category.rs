//! What memory is used for, so that `info` can print it by part.

/// The part of the engine that a block of arena memory belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Columns and values of open groups.
    Group,
    /// The primary index, unique indexes and runs of open groups.
    Index,
    /// Delete vectors, `deleted` and `replaced` words.
    Visibility,
    /// The registry of readers.
    Registry,
    /// Columns being built by a bulk load.
    Load,
    /// Decompressed blocks that are kept.
    Blocks,
    /// Everything else.
    Other,
}

impl Category {
    /// Every category, in the order in which [`crate::Arena::used_by`] counts them.
    pub const ALL: [Self; 7] = [
        Self::Group,
        Self::Index,
        Self::Visibility,
        Self::Registry,
        Self::Load,
        Self::Blocks,
        Self::Other,
    ];

    /// The lower-case name that `info` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Index => "index",
            Self::Visibility => "visibility",
            Self::Registry => "registry",
            Self::Load => "load",
            Self::Blocks => "blocks",
            Self::Other => "other",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
