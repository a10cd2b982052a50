//! Elapsed time and date while a database is open.

use esker_format::{ClockRecord, Hold, Moment, Suspicion};
use esker_log::sabotage::Bug;
use esker_vfs::Clock;

use super::{AGREED_US, HOLD_US, KEPT_US, LOOK_GAP_US, SLEW_PARTS, STEADY_US};

/// The wall clock is looked at when this much time has passed since the last look: until then the
/// date goes on with the elapsed time.
const LOOK_AFTER_US: i64 = 10_000;

/// What the clocks of the machine show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Since 1970.
    pub wall_us: i64,
    /// Since the machine was booted.
    pub boottime_us: i64,
    pub boot_id: Option<u128>,
}

impl Reading {
    /// What the clocks show now.
    pub fn take(clock: &dyn Clock) -> Self {
        let (boottime_us, boot_id) = (clock.boottime_us(), clock.boot_id());
        Self { wall_us: clock.wall_us(), boottime_us, boot_id }
    }
}

/// The clock of an open database.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseClock {
    pub(super) elapsed_us: i64,
    pub(super) date_us: i64,
    /// The last reading; its wall clock is that of the last look.
    pub(super) last: Reading,
    /// Elapsed time since the wall clock was looked at.
    pub(super) unlooked_us: i64,
    /// Elapsed time since the date was drawn towards the wall clock.
    pub(super) undrawn_us: i64,
    /// Elapsed time since the date was read: by more than this it is not drawn back.
    pub(super) unasked_us: i64,
    pub(super) suspicion: Option<Suspicion>,
    pub(super) hold: Option<Hold>,
}

impl DatabaseClock {
    /// The clock of a new database: it believes the wall clock.
    pub fn start(reading: Reading) -> Self {
        Self {
            elapsed_us: reading.wall_us,
            date_us: reading.wall_us,
            last: reading,
            unlooked_us: 0,
            undrawn_us: 0,
            unasked_us: 0,
            suspicion: None,
            hold: None,
        }
    }

    /// Both times.
    pub fn moment(&self) -> Moment {
        let elapsed_us =
            if Bug::TtlByWall.is_planted() { self.last.wall_us } else { self.elapsed_us };
        Moment { elapsed_us, date_us: self.date_us }
    }

    /// Elapsed time.
    pub fn elapsed_us(&self) -> i64 {
        self.elapsed_us
    }

    /// The date by which rows may be destroyed.
    pub fn destroying_date_us(&self) -> i64 {
        if Bug::RetentionByUnconfirmedTime.is_planted() {
            return self.last.wall_us;
        }
        // default: without a hold nothing is held
        self.date_us.saturating_sub(self.hold.map_or(0, |hold| hold.back_us))
    }

    pub fn suspicion(&self) -> Option<Suspicion> {
        self.suspicion
    }

    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// The wall clock at the last look.
    pub fn wall_us(&self) -> i64 {
        self.last.wall_us
    }

    /// The machine has been up for so long. Boot time that falls counts as none.
    pub fn advance(&mut self, boottime_us: i64) {
        let passed_us = boottime_us.saturating_sub(self.last.boottime_us).max(0);
        self.last.boottime_us = boottime_us;
        self.pass(passed_us);
    }

    /// Both times go on.
    pub(super) fn pass(&mut self, passed_us: i64) {
        self.elapsed_us = self.elapsed_us.saturating_add(passed_us);
        self.date_us = self.date_us.saturating_add(passed_us);
        self.unlooked_us = self.unlooked_us.saturating_add(passed_us);
        self.undrawn_us = self.undrawn_us.saturating_add(passed_us);
        self.unasked_us = passed_us;
        self.hold = self.hold.filter(|hold| hold.until_us > self.elapsed_us);
    }

    /// Whether to look at the wall clock.
    pub fn is_look_due(&self) -> bool {
        self.unlooked_us >= LOOK_AFTER_US
    }

    /// The wall clock shows this.
    pub fn look(&mut self, wall_us: i64) {
        let unlooked_us = std::mem::take(&mut self.unlooked_us);
        self.last.wall_us = wall_us;
        let offset_us = wall_us.saturating_sub(self.date_us);
        if offset_us.saturating_abs() <= AGREED_US {
            self.suspicion = None;
            return;
        }
        let is_kept = |suspicion: &Suspicion| {
            offset_us.saturating_sub(suspicion.offset_us).saturating_abs() <= AGREED_US
        };
        self.suspicion = Some(match self.suspicion.filter(is_kept) {
            Some(Suspicion { offset_us, kept_us }) => {
                let seen_us = if unlooked_us <= LOOK_GAP_US { unlooked_us } else { 0 };
                Suspicion { offset_us, kept_us: kept_us.saturating_add(seen_us) }
            }
            None => Suspicion { offset_us, kept_us: 0 },
        });
    }

    /// Draws the date towards the wall clock, which has just been looked at, where they agree.
    /// Before a record: the date of a commit is that of the last record and the elapsed time since.
    pub fn draw(&mut self) {
        let most_us = std::mem::take(&mut self.undrawn_us) / SLEW_PARTS;
        if self.suspicion.is_some() {
            return;
        }
        let offset_us = self.last.wall_us.saturating_sub(self.date_us);
        let beyond_us = offset_us - offset_us.clamp(-STEADY_US, STEADY_US);
        let slew_us = beyond_us.clamp(-most_us.min(self.unasked_us), most_us);
        self.date_us = self.date_us.saturating_add(slew_us);
    }

    /// Goes by the date of a clock that was drawn from this one a while ago.
    pub fn go_on_from(&mut self, drawn: &Self) {
        let passed_us = self.elapsed_us.saturating_sub(drawn.elapsed_us);
        self.undrawn_us = drawn.undrawn_us.saturating_add(passed_us);
        self.date_us = self.date_us.max(drawn.date_us.saturating_add(passed_us));
    }

    /// The date to which the clock is to move, once a difference has been kept for long enough.
    pub fn due_us(&self) -> Option<i64> {
        self.suspicion.filter(|s| s.kept_us >= KEPT_US).map(|_| self.last.wall_us)
    }

    /// Moves the date, after which rows that it brought back are ended.
    pub fn move_to(&mut self, date_us: i64) {
        let by_us = date_us.saturating_sub(self.date_us);
        self.date_us = date_us;
        self.suspicion = None;
        self.hold_back(by_us);
    }

    /// The date has moved by so much, other than by going on.
    pub(super) fn hold_back(&mut self, by_us: i64) {
        // default: without a hold nothing is held
        let back_us = self.hold.map_or(0, |hold| hold.back_us).saturating_add(by_us);
        let until_us = match (by_us > 0, self.hold) {
            (false, Some(hold)) => hold.until_us,
            _ => self.elapsed_us.saturating_add(HOLD_US),
        };
        self.hold = (back_us > 0).then_some(Hold { until_us, back_us });
    }

    /// What is stored of it.
    pub fn record(&self) -> ClockRecord {
        let Reading { wall_us, boottime_us, boot_id } = self.last;
        let runs_back = Bug::ClockRunsBack.is_planted();
        ClockRecord {
            elapsed_us: if runs_back { -self.elapsed_us } else { self.elapsed_us },
            date_us: self.date_us,
            wall_us,
            boottime_us,
            boot_id,
            suspicion: self.suspicion,
            hold: self.hold,
        }
    }
}
