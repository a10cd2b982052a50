//! The names of what can go wrong, and which level of isolation forbids what.

use std::fmt;

/// Something that no serial execution shows. The first thirteen are those of the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Dirty writes: transactions overwrite each other's versions in a circle.
    G0,
    /// A committed transaction read what one wrote that aborted.
    G1a,
    /// A transaction read what another replaced before it committed.
    G1b,
    /// A circle of writes and reads of what was written.
    G1c,
    /// A circle with one anti-dependency: read skew.
    GSingle,
    /// A circle with two or more anti-dependencies on rows that were read.
    G2Item,
    /// The same by what a predicate read did not find: a phantom.
    G2,
    /// Two read one version of a key, and both replaced it.
    LostUpdate,
    /// Two read what the other wrote, before that.
    WriteSkew,
    /// Two saw the writes of two others in different orders; more generally, a circle with several
    /// anti-dependencies of which no two follow each other.
    LongFork,
    /// A circle that is closed only by a transaction which writes nothing.
    ReadOnly,
    /// A committed append stands behind one that was aborted.
    DirtyUpdate,
    /// A transaction did not see its own writes.
    Internal,
    /// A transaction read two versions of one key.
    NonRepeatableRead,
    /// A value is twice in a list.
    DuplicateAppend,
    /// A committed value is not in a list that has later ones.
    LostAppend,
    /// Reads of a list contradict each other, or the commit numbers.
    IncompatibleOrder,
    /// A read found what nobody wrote.
    Garbage,
    /// A transaction did not see what had returned before it began.
    StaleRead,
    /// A circle with two or more anti-dependencies that real time closes.
    RealTimeSkew,
    /// A read is not what the commits up to its number leave.
    Replay,
}

impl Anomaly {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::G0,
        Self::G1a,
        Self::G1b,
        Self::G1c,
        Self::GSingle,
        Self::G2Item,
        Self::G2,
        Self::LostUpdate,
        Self::WriteSkew,
        Self::LongFork,
        Self::ReadOnly,
        Self::DirtyUpdate,
        Self::Internal,
        Self::NonRepeatableRead,
        Self::DuplicateAppend,
        Self::LostAppend,
        Self::IncompatibleOrder,
        Self::Garbage,
        Self::StaleRead,
        Self::RealTimeSkew,
        Self::Replay,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::G0 => "G0",
            Self::G1a => "G1a",
            Self::G1b => "G1b",
            Self::G1c => "G1c",
            Self::GSingle => "G-single",
            Self::G2Item => "G2-item",
            Self::G2 => "G2",
            Self::LostUpdate => "lost update",
            Self::WriteSkew => "write skew",
            Self::LongFork => "long fork",
            Self::ReadOnly => "read-only anomaly",
            Self::DirtyUpdate => "dirty update",
            Self::Internal => "internal",
            Self::NonRepeatableRead => "non-repeatable read",
            Self::DuplicateAppend => "duplicate append",
            Self::LostAppend => "lost append",
            Self::IncompatibleOrder => "incompatible order",
            Self::Garbage => "garbage read",
            Self::StaleRead => "stale read",
            Self::RealTimeSkew => "real-time skew",
            Self::Replay => "not the replay's",
        }
    }

    /// The weakest level that forbids it.
    #[must_use]
    pub fn forbidden_from(self) -> Level {
        match self {
            Self::GSingle
            | Self::LostUpdate
            | Self::LongFork
            | Self::NonRepeatableRead
            | Self::StaleRead => Level::Snapshot,
            Self::G2Item | Self::G2 | Self::WriteSkew | Self::ReadOnly => Level::Serializable,
            Self::RealTimeSkew => Level::StrictSerializable,
            _ => Level::ReadCommitted,
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a transaction is promised, from the weakest to the strongest: each forbids all that those
/// before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Each read finds what was committed.
    ReadCommitted,
    /// All reads are of one moment, not before the transaction began, and of two that write one key
    /// at a time one aborts.
    Snapshot,
    /// As if one had followed the other.
    Serializable,
    /// As if one had followed the other, in an order that real time does not contradict.
    StrictSerializable,
}

impl Level {
    /// All of them, from the weakest.
    pub const ALL: [Self; 4] =
        [Self::ReadCommitted, Self::Snapshot, Self::Serializable, Self::StrictSerializable];

    /// Whether it promises that an anomaly does not happen.
    #[must_use]
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        self >= anomaly.forbidden_from()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::Snapshot => "snapshot",
            Self::Serializable => "serializable",
            Self::StrictSerializable => "strict serializable",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
