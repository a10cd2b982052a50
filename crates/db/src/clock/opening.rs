//! How much time has passed since the last record.
//!
//! * **The same boot**, and boot time has not fallen: exactly the difference of boot time. A wall
//!   clock that was stepped meanwhile is suspect.
//! * **Another boot**, another machine, or a record without a boot: only the wall clock can tell.
//!   Elapsed time goes on by what the wall clock says, at least by a second, since the record may
//!   be a second older than the last commit, and at most by seven days, so that a wrong wall clock
//!   ends no time to live that had longer to go. The date takes what the wall clock says up to 400
//!   days.
//!
//! The wall clock at the record may have been suspect. Then it either is right now, and says the
//! date itself; or it is wrong still by the same, and says how much time has passed. Both times
//! take the smaller one of the two that can be: what the wall clock was put right by ends no time
//! to live, and does not move the date. What is left between wall clock and date is suspect as
//! before.

use esker_format::ClockRecord;
use esker_log::sabotage::Bug;

use super::database_clock::{DatabaseClock, Reading};
use super::{BOOT_GAP_MAX_US, BOOT_GAP_MIN_US, DATE_GAP_MAX_US, LOOK_GAP_US};

impl DatabaseClock {
    /// The clock of a database that was closed, or crashed, after this record.
    pub fn open(record: &ClockRecord, reading: Reading) -> Self {
        let ClockRecord { elapsed_us, date_us, wall_us, boottime_us, boot_id, .. } = *record;
        let mut clock = Self {
            elapsed_us,
            date_us,
            last: Reading { wall_us, boottime_us, boot_id },
            unlooked_us: 0,
            undrawn_us: 0,
            unasked_us: 0,
            suspicion: record.suspicion,
            hold: record.hold,
        };
        if is_same_boot(record, reading) {
            clock.advance(reading.boottime_us);
        } else {
            clock.pass_boot(record, reading);
        }
        clock.last = reading;
        // It is not drawn back below what may have been read.
        (clock.undrawn_us, clock.unasked_us) = (0, 0);
        clock.look(reading.wall_us);
        clock
    }

    fn pass_boot(&mut self, record: &ClockRecord, reading: Reading) {
        let since_record_us = reading.wall_us.saturating_sub(record.wall_us);
        let since_date_us = reading.wall_us.saturating_sub(record.date_us);
        let can_be = |gap_us: &i64| (0..=DATE_GAP_MAX_US).contains(gap_us);
        // default: without a suspicion the date is right
        let if_right_us = record.suspicion.map_or(since_record_us, |_| since_date_us);
        let least_us = [since_record_us, if_right_us].into_iter().filter(can_be).min();
        // default: neither is possible: the record is all there is
        let gap_us = least_us.unwrap_or(since_record_us).clamp(BOOT_GAP_MIN_US, BOOT_GAP_MAX_US);
        // default: neither is possible: the record is all there is
        let date_gap_us = least_us.unwrap_or(gap_us).max(BOOT_GAP_MIN_US);
        self.pass(gap_us);
        self.date_us = record.date_us.saturating_add(date_gap_us);
        self.hold_back(date_gap_us);
        // What the wall clock showed in between is not known.
        self.unlooked_us = LOOK_GAP_US + 1;
    }
}

/// True when boot time tells what has passed since the record.
fn is_same_boot(record: &ClockRecord, reading: Reading) -> bool {
    let is_same = record.boot_id.is_some() && record.boot_id == reading.boot_id
        || Bug::BootIdIgnored.is_planted();
    is_same && reading.boottime_us >= record.boottime_us
}
