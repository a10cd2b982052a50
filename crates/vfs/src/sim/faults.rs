//! What can go wrong, how often, and what has.

use std::collections::BTreeMap;

use super::random::Generator;

macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A kind of fault of disk or clock.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FaultKind {
            $($(#[$doc])* $name,)*
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

fault_kinds! {
    /// A read fails with EIO.
    ReadError,
    /// A read returns fewer bytes than there are.
    ShortRead,
    /// A bit of what a read returns is wrong; the disk is sound.
    ReadFlip,
    /// A read returns what was last synced, not what was last written.
    StaleRead,
    /// A read or write is interrupted before anything happened.
    Interrupted,
    /// A write or `set_len` fails with EIO; some of it may have been done.
    WriteError,
    /// A write takes fewer bytes than given.
    ShortWrite,
    /// A write fails for lack of space; some of it may have been done.
    NoSpaceOnWrite,
    /// A `set_len` fails for lack of space.
    NoSpaceOnSetLen,
    /// A file cannot be created for lack of space.
    NoSpaceOnCreate,
    /// A write reaches the wrong place on the disk; the page cache is right until dropped.
    MisdirectedWrite,
    /// A write never reaches the disk, though syncs succeed; the page cache is right.
    PhantomWrite,
    /// A sync fails as on ext4 in ordered mode: pages are clean and keep the new bytes in the
    /// cache, the new length is on the disk, the bytes are not.
    SyncErrorExt4Ordered,
    /// A sync fails as on ext4 in data mode: like ordered mode, but this sync reports success
    /// and the next one the error.
    SyncErrorExt4Data,
    /// A sync fails as on XFS: pages are clean and keep the new bytes in the cache, neither the
    /// new length nor the bytes are on the disk.
    SyncErrorXfs,
    /// A sync fails as on Btrfs: pages are clean, the cache goes back to what is on the disk.
    SyncErrorBtrfs,
    /// A sync reports success and does nothing; a later one may.
    LyingSync,
    /// The sync of a directory fails with EIO.
    SyncDirectoryError,
    /// The sync of a directory reports success and does nothing.
    LyingSyncDirectory,
    /// Opening, listing, renaming, removing, locking, mapping or measuring fails with EIO.
    NameError,
    /// A call takes long: milliseconds to seconds.
    Latency,
    /// The wall clock steps back, by up to two hours.
    ClockStepBack,
    /// A bit rots at rest, put there by the driver.
    BitFlip,
    /// A call failed because the machine had crashed.
    Crash,
    /// In a crash, an unsynced write was lost.
    LostWrite,
    /// In a crash, a write was kept though an earlier one was lost.
    ReorderedWrite,
    /// In a crash, parts of a write were lost.
    TornWrite,
    /// In a crash, an appended range holds garbage.
    GarbageTail,
    /// In a crash, a file has grown without its bytes.
    SizeWithoutData,
    /// In a crash, bytes were kept and the growth of the file was not.
    DataWithoutSize,
    /// In a crash, a new name was lost.
    LostCreate,
    /// In a crash, a rename was lost.
    LostRename,
    /// In a crash, a removed name came back.
    LostRemove,
}

impl FaultKind {
    /// The four ways in which a sync of a file fails.
    pub const SYNC_ERRORS: [Self; 4] = [
        Self::SyncErrorExt4Ordered,
        Self::SyncErrorExt4Data,
        Self::SyncErrorXfs,
        Self::SyncErrorBtrfs,
    ];

    /// True when the call that it strikes reports success and is wrong. No program can keep its
    /// promise of durability under the silent faults of syncs and writes, nor tell a flipped or
    /// stale read but by a checksum: a campaign that counts lost commits leaves them out, one
    /// that looks for undetected damage puts them in.
    #[must_use]
    pub fn is_silent(self) -> bool {
        matches!(
            self,
            Self::ReadFlip
                | Self::StaleRead
                | Self::MisdirectedWrite
                | Self::PhantomWrite
                | Self::SyncErrorExt4Data
                | Self::LyingSync
                | Self::LyingSyncDirectory
                | Self::BitFlip
        )
    }
}

/// How often each kind of fault has fired.
#[derive(Clone, Debug)]
pub(crate) struct FaultCounts([u64; FaultKind::ALL.len()]);

impl Default for FaultCounts {
    fn default() -> Self {
        Self([0; FaultKind::ALL.len()])
    }
}

impl FaultCounts {
    pub(crate) fn count(&mut self, kind: FaultKind) {
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count += 1;
        }
    }

    /// The kinds that have fired.
    pub(crate) fn to_map(&self) -> BTreeMap<FaultKind, u64> {
        let counted = FaultKind::ALL.iter().copied().zip(self.0);
        counted.filter(|(_, count)| *count > 0).collect()
    }
}

/// A call of the file system, as a [`Script`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// `File::read_at`
    Read,
    /// `File::write_at`
    Write,
    /// `File::set_len`
    SetLen,
    /// `File::sync_data`
    Sync,
    /// `FileSystem::open` of a new file
    Create,
    /// `FileSystem::rename`
    Rename,
    /// `FileSystem::remove`, and each removal of a `FileSystem::remove_dir_all`
    Remove,
    /// `FileSystem::sync_dir`
    SyncDirectory,
    /// `FileSystem::create_dir_all`
    MakeDirectory,
    /// `FileSystem::open` of an existing file
    Open,
    /// `FileSystem::list`, `FileSystem::exists`
    Look,
    /// `FileSystem::lock`
    Lock,
    /// `File::len`
    Length,
    /// `File::map`
    Map,
}

impl CallKind {
    /// True for calls that may change the disk: those are the I/Os after which a crash differs.
    #[must_use]
    pub fn is_io(self) -> bool {
        use CallKind::{Create, MakeDirectory, Remove, Rename, SetLen, Sync, SyncDirectory, Write};
        matches!(
            self,
            Write | SetLen | Sync | Create | Rename | Remove | SyncDirectory | MakeDirectory
        )
    }

    /// The faults that can strike this call, apart from [`FaultKind::Latency`].
    #[must_use]
    pub fn faults(self) -> &'static [FaultKind] {
        use FaultKind as F;
        match self {
            Self::Read => &[F::ReadError, F::Interrupted, F::ShortRead, F::ReadFlip, F::StaleRead],
            Self::Write => &[
                F::WriteError,
                F::NoSpaceOnWrite,
                F::Interrupted,
                F::ShortWrite,
                F::MisdirectedWrite,
                F::PhantomWrite,
            ],
            Self::SetLen => &[F::WriteError, F::NoSpaceOnSetLen],
            Self::Sync => &[
                F::SyncErrorExt4Ordered,
                F::SyncErrorExt4Data,
                F::SyncErrorXfs,
                F::SyncErrorBtrfs,
                F::LyingSync,
            ],
            Self::Create => &[F::NameError, F::NoSpaceOnCreate],
            Self::SyncDirectory => &[F::SyncDirectoryError, F::LyingSyncDirectory],
            Self::MakeDirectory => &[F::NameError, F::NoSpaceOnCreate],
            Self::Rename
            | Self::Remove
            | Self::Open
            | Self::Look
            | Self::Lock
            | Self::Length
            | Self::Map => &[F::NameError],
        }
    }
}

/// The ways a call can fail that an error sweep goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// EIO: applies to every call. A sync fails in one of the three ways that report it at once,
    /// drawn from the seed.
    Io,
    /// ENOSPC: applies to writes, `set_len`, new files and directories.
    NoSpace,
    /// EINTR: applies to reads and writes.
    Interrupted,
    /// Fewer bytes than wanted: applies to reads and writes.
    Short,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Io, Self::NoSpace, Self::Interrupted, Self::Short];

    /// The fault that this failure is for a call.
    fn fault(self, call: CallKind, generator: &mut Generator) -> Option<FaultKind> {
        use FaultKind as F;
        Some(match (self, call) {
            (Self::Io, CallKind::Read) => F::ReadError,
            (Self::Io, CallKind::Write | CallKind::SetLen) => F::WriteError,
            (Self::Io, CallKind::Sync) => {
                generator.pick([F::SyncErrorExt4Ordered, F::SyncErrorXfs, F::SyncErrorBtrfs])
            }
            (Self::Io, CallKind::SyncDirectory) => F::SyncDirectoryError,
            (Self::Io, _) => F::NameError,
            (Self::NoSpace, CallKind::Write) => F::NoSpaceOnWrite,
            (Self::NoSpace, CallKind::SetLen) => F::NoSpaceOnSetLen,
            (Self::NoSpace, CallKind::Create | CallKind::MakeDirectory) => F::NoSpaceOnCreate,
            (Self::Interrupted, CallKind::Read | CallKind::Write) => F::Interrupted,
            (Self::Short, CallKind::Read) => F::ShortRead,
            (Self::Short, CallKind::Write) => F::ShortWrite,
            _ => return None,
        })
    }
}

/// How often a scripted fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One call.
    Once,
    /// That call and all later ones it matches. Interruptions are the exception: every second
    /// call, since callers try again until they succeed.
    ForEver,
}

/// A fault at a chosen call.
///
/// ```
/// use esker_vfs::sim::{CallKind, Failure, FaultKind, Repeat, Script};
///
/// // Call 17 of all fails with EIO, whatever it is.
/// let sweep = Script::any_call(17, Failure::Io, Repeat::Once);
/// // The second sync of the log, and every later one, fails as on XFS.
/// let sync = Script::fault(CallKind::Sync, 1, FaultKind::SyncErrorXfs, Repeat::ForEver)
///     .on_paths_with("log");
/// # let _ = (sweep, sync);
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    call: Option<CallKind>,
    path: Option<String>,
    skip: u64,
    what: What,
    repeat: Repeat,
    matched: u64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Fault(FaultKind),
    Failure(Failure),
}

impl Script {
    /// The call number `k`, counted from 0 over calls of every kind since the script was added,
    /// fails. Where the failure makes no sense for that call nothing happens (for ever: until a
    /// call for which it does).
    #[must_use]
    pub fn any_call(k: u64, failure: Failure, repeat: Repeat) -> Self {
        let what = What::Failure(failure);
        Self { call: None, path: None, skip: k, what, repeat, matched: 0 }
    }

    /// The call number `k`, counted from 0 over calls of one kind, meets a fault, which should
    /// be one of [`CallKind::faults`].
    #[must_use]
    pub fn fault(call: CallKind, k: u64, fault: FaultKind, repeat: Repeat) -> Self {
        let what = What::Fault(fault);
        Self { call: Some(call), path: None, skip: k, what, repeat, matched: 0 }
    }

    /// Counts only calls on paths that contain `part`.
    #[must_use]
    pub fn on_paths_with(mut self, part: impl Into<String>) -> Self {
        self.path = Some(part.into());
        self
    }

    fn strike(
        &mut self,
        call: CallKind,
        path: &str,
        generator: &mut Generator,
    ) -> Option<FaultKind> {
        let matches = self.call.is_none_or(|wanted| wanted == call)
            && self.path.as_ref().is_none_or(|part| path.contains(part.as_str()));
        if !matches {
            return None;
        }
        let number = self.matched;
        self.matched += 1;
        let due = match self.repeat {
            Repeat::Once => number == self.skip,
            Repeat::ForEver => number >= self.skip,
        };
        if !due {
            return None;
        }
        match self.what {
            What::Fault(fault) => Some(fault),
            What::Failure(failure) => failure.fault(call, generator),
        }
    }
}

/// Who hears of a failed sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncReport {
    /// Every handle open at the time, once each, at its next sync, and the next sync of any
    /// handle until somebody has heard (Linux since 4.16).
    #[default]
    EachHandle,
    /// Only the sync that failed, or the next one of any handle where that reports late.
    Once,
}

/// Which faults strike: at random with given odds, at scripted calls, or both.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    chances: [u32; FaultKind::ALL.len()],
    scripts: Vec<Script>,
    report: SyncReport,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self::none()
    }
}

impl FaultPlan {
    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        let report = SyncReport::default();
        Self { chances: [0; FaultKind::ALL.len()], scripts: Vec::new(), report }
    }

    /// Adds a kind of fault that strikes this often in a million calls it can strike.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, per_million: u32) -> Self {
        if let Some(chance) = self.chances.get_mut(kind as usize) {
            *chance = per_million;
        }
        self
    }

    /// Adds a fault at a chosen call.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.scripts.push(script);
        self
    }

    /// Says who hears of a failed sync.
    #[must_use]
    pub fn report(mut self, report: SyncReport) -> Self {
        self.report = report;
        self
    }

    /// Some of these kinds, each with odds up to `most_per_million`, all drawn from the seed.
    #[must_use]
    pub fn swarm(seed: u64, kinds: &[FaultKind], most_per_million: u32) -> Self {
        let mut generator = Generator::new(seed, 12);
        let mut plan = Self::none();
        for kind in kinds {
            if generator.chance(500_000) {
                let odds = generator.below(u64::from(most_per_million) + 1);
                plan = plan.with(*kind, u32::try_from(odds).unwrap_or_default());
            }
        }
        plan
    }
}

/// The plan at work.
#[derive(Debug)]
pub(crate) struct Faults {
    plan: FaultPlan,
    armed: bool,
    last_was_interrupted: bool,
    pub(crate) generator: Generator,
    pub(crate) fired: FaultCounts,
}

impl Faults {
    pub(crate) fn new(seed: u64, plan: FaultPlan) -> Self {
        let mut faults = Self {
            plan: FaultPlan::none(),
            armed: false,
            last_was_interrupted: false,
            generator: Generator::new(seed, 2),
            fired: FaultCounts::default(),
        };
        faults.set_plan(plan);
        faults
    }

    pub(crate) fn set_plan(&mut self, plan: FaultPlan) {
        self.armed = !plan.scripts.is_empty() || plan.chances.iter().any(|chance| *chance > 0);
        self.plan = plan;
    }

    pub(crate) fn add_script(&mut self, script: Script) {
        self.plan.scripts.push(script);
        self.armed = true;
    }

    pub(crate) fn report(&self) -> SyncReport {
        self.plan.report
    }

    fn chance(&self, kind: FaultKind) -> u32 {
        self.plan.chances.get(kind as usize).copied().unwrap_or_default()
    }

    /// Draws whether a fault that is no failure of a call strikes now, and counts it.
    pub(crate) fn strikes(&mut self, kind: FaultKind) -> bool {
        let strikes = self.armed && {
            let chance = self.chance(kind);
            self.generator.chance(chance)
        };
        if strikes {
            self.fired.count(kind);
        }
        strikes
    }

    /// The fault that strikes a call, if any. It is counted where it is carried out, since a
    /// read of one byte, say, cannot be short.
    pub(crate) fn decide(&mut self, call: CallKind, path: &str) -> Option<FaultKind> {
        if !self.armed {
            return None;
        }
        let mut fault = None;
        // Every script sees every call, so that their counts do not depend on one another.
        for script in &mut self.plan.scripts {
            fault = script.strike(call, path, &mut self.generator).or(fault);
        }
        if fault.is_none() {
            for kind in call.faults() {
                let chance = self.chance(*kind);
                if chance > 0 && self.generator.chance(chance) {
                    fault = Some(*kind);
                }
            }
        }
        // Callers repeat an interrupted call, so two in a row might go on for ever.
        if self.last_was_interrupted && fault == Some(FaultKind::Interrupted) {
            fault = None;
        }
        self.last_was_interrupted = fault == Some(FaultKind::Interrupted);
        fault
    }
}
