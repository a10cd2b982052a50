//! Time, as the engine may read it.

use std::fmt::Debug;

/// A source of time.
pub trait Clock: Send + Sync + Debug {
    /// Microseconds since 1970-01-01 UTC. May step backwards, as wall clocks do.
    fn wall_us(&self) -> i64;

    /// Nanoseconds since an arbitrary start. Never runs backwards.
    fn monotonic_ns(&self) -> u64;

    /// Microseconds since the machine was booted, the time it slept included. No step of the wall
    /// clock touches it.
    fn boottime_us(&self) -> i64;

    /// Which boot of which machine this is; `None` where that is not known. Two readings of boot
    /// time with the same one may be compared, across processes, too.
    fn boot_id(&self) -> Option<u128>;
}
