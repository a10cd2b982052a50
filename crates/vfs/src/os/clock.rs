//! System clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::Clock;

/// The wall clock, and the time since this value was made.
#[derive(Debug)]
pub(crate) struct OsClock {
    start: Instant,
}

impl OsClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for OsClock {
    fn wall_us(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |us| -us),
        }
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
