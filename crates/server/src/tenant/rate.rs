//! How much of something may come in a second.

use std::sync::{Mutex, PoisonError};

/// Twice as much as in a second may come at once.
const BURST: i64 = 2;
/// Thousandths, so that parts add up.
const WHOLE: i64 = 1_000;
/// The longest that a client is told to wait.
const WAIT_S_MAX: u64 = 30;

/// What may come now; what came at once beyond that is made up for before more may come.
#[derive(Debug)]
pub(super) struct Rate(Mutex<State>);

#[derive(Debug)]
struct State {
    /// What may come, in thousandths.
    left: i64,
    /// When that was reckoned.
    at_ns: u64,
}

/// How long to wait, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub u64);

impl Rate {
    /// As much as any rate allows at once: whenever a limit is set, it begins full.
    pub fn full() -> Self {
        Self(Mutex::new(State { left: i64::MAX, at_ns: 0 }))
    }

    /// Refuses more while nothing may come; takes nothing.
    pub fn admit(&self, rate: u64, now_ns: u64) -> Result<(), Wait> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.gain(rate, now_ns);
        match state.left >= WHOLE {
            true => Ok(()),
            false => Err(state.wait(rate, now_ns)),
        }
    }

    /// Takes one, unless nothing may come.
    pub fn take_one(&self, rate: u64, now_ns: u64) -> Result<(), Wait> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.gain(rate, now_ns);
        if state.left < WHOLE {
            return Err(state.wait(rate, now_ns));
        }
        state.left -= WHOLE;
        Ok(())
    }

    /// Takes so much, even if it is more than there is: the rest is owed.
    pub fn take(&self, rate: u64, count: u64, now_ns: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.gain(rate, now_ns);
        let count = i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(WHOLE);
        state.left = state.left.saturating_sub(count);
    }
}

fn most(rate: u64) -> i64 {
    i64::try_from(rate).unwrap_or(i64::MAX).saturating_mul(BURST * WHOLE)
}

impl State {
    fn gain(&mut self, rate: u64, now_ns: u64) {
        let passed_us = now_ns.saturating_sub(self.at_ns) / 1_000;
        let gained = passed_us.saturating_mul(rate) / 1_000;
        self.left = self.left.min(most(rate));
        if gained == 0 {
            // The time stays, so that parts add up.
            return;
        }
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(gained).min(most(rate));
        self.at_ns = now_ns;
    }

    fn wait(&self, rate: u64, now_ns: u64) -> Wait {
        let owed = u64::try_from(WHOLE.saturating_sub(self.left)).unwrap_or(0);
        Wait::of(owed, rate.saturating_mul(1_000), now_ns)
    }
}

impl Wait {
    /// Until so much is worked off, of which so much is in a second. Clients that are told so at
    /// once do not all come back at once.
    #[must_use]
    pub fn of(backlog: u64, in_a_second: u64, now_ns: u64) -> Self {
        let seconds = match in_a_second {
            0 => WAIT_S_MAX,
            rate => backlog.div_ceil(rate).clamp(1, WAIT_S_MAX),
        };
        let spread = seconds / 2 + 1;
        // Digits of the time are as good as chance.
        let more = (now_ns / 1_000).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        Self((seconds + more % (spread + 1)).min(WAIT_S_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The clock of a process begins at 0: a limit that is set then lets some come.
    #[test]
    fn a_limit_that_is_set_at_the_start_begins_full() {
        let rate = Rate::full();
        let passed = (0..100).filter(|_| rate.take_one(10, 0).is_ok()).count();
        assert_eq!(passed, 20);
        assert!(rate.admit(10, 0).is_err());
        assert!(rate.admit(10, SECOND_NS).is_ok());
    }

    #[test]
    fn what_came_beyond_is_made_up_for() {
        let rate = Rate::full();
        assert_eq!(rate.admit(100, 0), Ok(()));
        rate.take(100, 1_200, 0);
        let Wait(seconds) = rate.admit(100, 0).unwrap_err();
        assert!((11..=30).contains(&seconds), "{seconds}");
        assert!(rate.admit(100, 9 * SECOND_NS).is_err());
        assert_eq!(rate.admit(100, 11 * SECOND_NS), Ok(()));
        assert!(Rate::full().admit(0, SECOND_NS).is_err());
    }

    #[test]
    fn clients_wait_for_as_long_as_it_takes_and_not_all_alike() {
        let waits: Vec<u64> = (0..200).map(|at| Wait::of(8 << 20, 1 << 20, at * 1_000).0).collect();
        assert!(waits.iter().all(|wait| (8..=13).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait != waits[0]));
        assert_eq!((Wait::of(u64::MAX, 1, 7).0, Wait::of(1, 0, 7).0), (30, 30));
    }
}
