//! Time, as the engine may read it.

use std::fmt::Debug;

/// A source of time.
pub trait Clock: Send + Sync + Debug {
    /// Microseconds since 1970-01-01 UTC. May step backwards, as wall clocks do.
    fn wall_us(&self) -> i64;

    /// Nanoseconds since an arbitrary start. Never runs backwards.
    fn monotonic_ns(&self) -> u64;
}
