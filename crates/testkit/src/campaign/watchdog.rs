//! Whether a process that makes no progress hangs, or has no processor to make it with.
//!
//! A machine with other work gives a process a share of its time, which may be a tenth. So what
//! counts is not how long nothing has come of it, but what it had of the processor meanwhile:
//!
//! * it **spins** when it has had the processor for as long as the patience lasts,
//! * it is **stuck** when for that long no thread of it was ready to run: all wait for each other,
//! * it is **idle** when it had next to nothing of the processor for many times as long, though a
//!   thread of it was ready: the one that watches, where a process watches itself.
//!
//! Where the system does not tell (it does on Linux), the clock on the wall has to do.

use std::path::Path;
use std::time::{Duration, Instant};

/// A process is looked at so often within the patience.
const LOOKS: u32 = 100;
/// A process that had next to nothing of the processor for so many times the patience is idle.
const IDLE_PATIENCES: u32 = 10;
/// What is next to nothing within that time: the patience, divided by this.
const IDLE_PART: u32 = 10;
/// What Linux counts the time of processes in.
const TICKS_PER_SECOND: u64 = 100;

/// What the system tells of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What its threads have had of the processors so far.
    pub processor: Duration,
    /// True when a thread runs, is ready to, or waits for the disk.
    pub is_ready: bool,
}

/// Watches one process.
#[derive(Debug)]
pub struct Watchdog {
    process: u32,
    patience: Duration,
    start: Instant,
    state: State,
}

/// What has been seen since the last progress; times count from the start of the watch.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    progress: Duration,
    processor: Option<Duration>,
    /// When it had last had more than next to nothing of the processor, and how much by then.
    last_busy: Option<(Duration, Duration)>,
    last_ready: Duration,
    last_look: Duration,
}

impl Watchdog {
    /// Watches a process by its id.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "campaigns run on the real machine")]
    pub fn new(process: u32, patience: Duration) -> Self {
        Self { process, patience, start: Instant::now(), state: State::default() }
    }

    /// Watches this process.
    #[must_use]
    pub fn of_this_process(patience: Duration) -> Self {
        Self::new(std::process::id(), patience)
    }

    /// Something has come of it.
    pub fn progress(&mut self) {
        let now = self.start.elapsed();
        self.state = State {
            progress: now,
            processor: None,
            last_busy: None,
            last_ready: now,
            last_look: self.state.last_look,
        };
    }

    /// Looks at the process, if it is time to; true when it hangs. To be asked often.
    pub fn hangs(&mut self) -> bool {
        let now = self.start.elapsed();
        if now.saturating_sub(self.state.last_look) < self.patience / LOOKS {
            return false;
        }
        self.state.last_look = now;
        let reading = read(self.process);
        self.state.hangs(now, self.patience, reading)
    }
}

impl State {
    fn hangs(&mut self, now: Duration, patience: Duration, reading: Option<Reading>) -> bool {
        let Some(reading) = reading else {
            return now.saturating_sub(self.progress) > patience;
        };
        if reading.is_ready {
            self.last_ready = now;
        }
        let before = *self.processor.get_or_insert(reading.processor);
        let spins = reading.processor.saturating_sub(before) > patience;
        let (busy, had) = self.last_busy.get_or_insert((now, reading.processor));
        if reading.processor.saturating_sub(*had) > patience / IDLE_PART {
            (*busy, *had) = (now, reading.processor);
        }
        let is_idle = now.saturating_sub(*busy) > patience * IDLE_PATIENCES;
        spins || is_idle || now.saturating_sub(self.last_ready) > patience
    }
}

/// What the system tells of a process; `None` where it does not.
#[allow(clippy::disallowed_methods, reason = "campaigns run on the real machine")]
fn read(process: u32) -> Option<Reading> {
    let place = format!("/proc/{process}");
    let fields = fields(Path::new(&place))?;
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let processor = Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS_PER_SECOND);
    let mut threads = std::fs::read_dir(format!("{place}/task")).ok()?;
    let is_ready = threads.any(|thread| {
        // A thread that has ended meanwhile is not ready.
        let fields = thread.ok().and_then(|thread| self::fields(&thread.path()));
        let state = fields.as_ref().and_then(|fields| fields.first());
        state.is_some_and(|state| matches!(state.as_str(), "R" | "D"))
    });
    Some(Reading { processor, is_ready })
}

/// The words of a file `stat` behind the name, which may have anything in it: the state first, as
/// 12th and 13th what it had of the processor, in ticks.
#[allow(clippy::disallowed_methods, reason = "campaigns run on the real machine")]
fn fields(place: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(place.join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);

    /// Asks once a second; after how many seconds it hangs, if it does within an hour.
    fn hangs_after(reading: impl Fn(u64) -> Option<Reading>) -> Option<u64> {
        let mut state = State::default();
        (1..3_600).find(|s| state.hangs(Duration::from_secs(*s), PATIENCE, reading(*s)))
    }

    #[test]
    fn a_process_that_spins_or_is_stuck_hangs_and_a_starved_one_does_not() {
        let spinning = |s| Some(Reading { processor: Duration::from_secs(s), is_ready: true });
        assert_eq!(hangs_after(spinning), Some(122));
        let stuck = |_| Some(Reading { processor: Duration::from_secs(5), is_ready: false });
        assert_eq!(hangs_after(stuck), Some(121));
        let starved =
            |s| Some(Reading { processor: Duration::from_millis(s * 20), is_ready: s % 9 == 0 });
        assert_eq!(hangs_after(starved), None);
        assert_eq!(hangs_after(|_| None), Some(121));
    }

    #[test]
    fn a_process_whose_other_threads_all_wait_hangs_though_the_one_that_watches_runs() {
        let watching = |s| Some(Reading { processor: Duration::from_millis(s), is_ready: true });
        assert_eq!(hangs_after(watching), Some(1_202));
        let mut state = State::default();
        let second = Duration::from_secs;
        for s in 1..1_000 {
            assert!(!state.hangs(second(s), PATIENCE, watching(s)), "second {s}");
        }
        // It has had enough meanwhile to be at work.
        let busy = Some(Reading { processor: second(14), is_ready: true });
        for s in 1_000..=2_200 {
            assert!(!state.hangs(second(s), PATIENCE, busy), "second {s}");
        }
        assert!(state.hangs(second(2_201), PATIENCE, busy));
    }

    #[test]
    fn the_system_tells_of_this_process() {
        let Some(reading) = read(std::process::id()) else { return };
        assert!(reading.is_ready, "this thread runs");
        assert_eq!(read(u32::MAX), None);
    }
}
