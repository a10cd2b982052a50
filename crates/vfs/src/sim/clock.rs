//! Simulated time: moved by waiting, by input and output, and a little by looking at it.

use std::sync::Arc;
use std::time::Duration;

use super::faults::FaultKind;
use super::world::World;
use crate::Clock;

/// 2026-01-01 UTC, in microseconds.
const START_US: i64 = 1_767_225_600_000_000;

/// What one look at the clock costs, so that a loop around it ends.
const LOOK_NS: u64 = 25;

/// The farthest step back, in microseconds.
const STEP_BACK_US: u64 = 2 * 3_600 * 1_000_000;

/// For how long a simulated machine has been up when it is made, and when it has booted again.
const BOOTED_US: i64 = 30_000_000;

/// The clocks of a simulated machine.
#[derive(Debug)]
pub(crate) struct Time {
    monotonic_ns: u64,
    wall_shift_us: i64,
    boottime_shift_us: i64,
    boot_id: Option<u128>,
}

impl Time {
    pub(crate) fn new(seed: u64) -> Self {
        let boot_id = Some(u128::from(seed) << 64 | 1);
        Self { monotonic_ns: 0, wall_shift_us: 0, boottime_shift_us: BOOTED_US, boot_id }
    }

    pub(crate) fn now(&self) -> u64 {
        self.monotonic_ns
    }

    pub(crate) fn advance(&mut self, ns: u64) {
        self.monotonic_ns = self.monotonic_ns.saturating_add(ns);
    }

    /// Moves on to a time, unless it has passed.
    pub(crate) fn advance_to(&mut self, ns: u64) {
        self.monotonic_ns = self.monotonic_ns.max(ns);
    }

    pub(crate) fn shift_wall(&mut self, us: i64) {
        self.wall_shift_us = self.wall_shift_us.saturating_add(us);
    }

    pub(crate) fn shift_boottime(&mut self, us: i64) {
        self.boottime_shift_us = self.boottime_shift_us.saturating_add(us);
    }

    pub(crate) fn set_boot_id(&mut self, boot_id: Option<u128>) {
        self.boot_id = boot_id;
    }

    /// Another boot: boot time begins again.
    pub(crate) fn reboot(&mut self) {
        self.boottime_shift_us = BOOTED_US.saturating_sub(self.passed_us());
        self.boot_id = self.boot_id.map(|id| id.wrapping_add(1));
    }

    fn passed_us(&self) -> i64 {
        i64::try_from(self.monotonic_ns / 1_000).unwrap_or(i64::MAX)
    }

    fn wall_us(&self) -> i64 {
        START_US.saturating_add(self.passed_us()).saturating_add(self.wall_shift_us)
    }

    fn boottime_us(&self) -> i64 {
        self.passed_us().saturating_add(self.boottime_shift_us)
    }
}

/// A duration in nanoseconds, for ever when it does not fit.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The clocks as the engine sees them.
#[derive(Debug)]
pub(crate) struct SimClock(pub(crate) Arc<World>);

impl Clock for SimClock {
    fn wall_us(&self) -> i64 {
        let mut state = self.0.lock();
        state.time.advance(LOOK_NS);
        if state.faults.strikes(FaultKind::ClockStepBack) {
            let back = state.faults.generator.below(STEP_BACK_US);
            state.time.shift_wall(-i64::try_from(back).unwrap_or_default());
        }
        let wall = state.time.wall_us();
        state.trace.record("wall clock", &[wall.cast_unsigned()]);
        wall
    }

    fn monotonic_ns(&self) -> u64 {
        let mut state = self.0.lock();
        state.time.advance(LOOK_NS);
        let now = state.time.now();
        state.trace.record("monotonic clock", &[now]);
        now
    }

    fn boottime_us(&self) -> i64 {
        let mut state = self.0.lock();
        state.time.advance(LOOK_NS);
        let boottime = state.time.boottime_us();
        state.trace.record("boot time", &[boottime.cast_unsigned()]);
        boottime
    }

    fn boot_id(&self) -> Option<u128> {
        self.0.lock().time.boot_id
    }
}
