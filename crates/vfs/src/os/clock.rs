//! System clocks.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::Clock;

/// Which boot it is, on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The wall clock, the time since this value was made, and the time since the machine was booted.
#[derive(Debug)]
pub(crate) struct OsClock {
    start: Instant,
    boot_id: OnceLock<Option<u128>>,
}

impl OsClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), boot_id: OnceLock::new() }
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

    #[cfg(target_os = "linux")]
    fn boottime_us(&self) -> i64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000)
    }

    /// Only within this process: without a boot id it is not compared across processes.
    #[cfg(not(target_os = "linux"))]
    fn boottime_us(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn boot_id(&self) -> Option<u128> {
        *self.boot_id.get_or_init(|| parse(&std::fs::read_to_string(BOOT_ID).ok()?))
    }
}

/// A UUID in its usual form.
fn parse(text: &str) -> Option<u128> {
    let digits = text.trim().replace('-', "");
    if digits.len() == 32 { u128::from_str_radix(&digits, 16).ok() } else { None }
}
