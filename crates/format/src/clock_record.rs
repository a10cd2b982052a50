//! What a database knows of time, as its log and its checkpoints have it (protocol rule 9).
//!
//! # Invariants
//!
//! The clock of the database (`DatabaseClock` of `esker`) upholds them.
//! 1. A difference is kept for no negative time: asserted when a record is read.
//! 2. A hold is not over, and holds something back: asserted when a record is read.
//! 3. Elapsed time never falls from record to record of the log: asserted by replay.

use crate::codec::{Reader, Writer};
use crate::{Error, Result, invariant};

const HAS_BOOT_ID: u8 = 1;
const HAS_SUSPICION: u8 = 2;
const HAS_HOLD: u8 = 4;

/// What a database knew of time at one moment. All times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRecord {
    /// The elapsed time of the database, by which times to live end.
    pub elapsed_us: i64,
    /// The date that the database goes by, since 1970.
    pub date_us: i64,
    /// What the wall clock showed.
    pub wall_us: i64,
    /// How long the machine had been up.
    pub boottime_us: i64,
    /// Which boot of the machine it was, where that is known.
    pub boot_id: Option<u128>,
    /// The wall clock and the date differed.
    pub suspicion: Option<Suspicion>,
    /// The date has moved forward, and what expired by that is not destroyed yet.
    pub hold: Option<Hold>,
}

/// A difference between the wall clock and the date that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The wall clock less the date.
    pub offset_us: i64,
    /// For how much elapsed time the wall clock has been seen to keep it.
    pub kept_us: i64,
}

/// What waits after the date has moved forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The elapsed time at which it is over.
    pub until_us: i64,
    /// How far behind the date the one is by which rows may be destroyed.
    pub back_us: i64,
}

impl ClockRecord {
    /// What a log before version 9 said: it is this late.
    #[must_use]
    pub fn of_time(now_us: i64) -> Self {
        Self {
            elapsed_us: now_us,
            date_us: now_us,
            wall_us: now_us,
            boottime_us: 0,
            boot_id: None,
            suspicion: None,
            hold: None,
        }
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        out.u8(flag(self.boot_id.is_some(), HAS_BOOT_ID)
            | flag(self.suspicion.is_some(), HAS_SUSPICION)
            | flag(self.hold.is_some(), HAS_HOLD));
        for time_us in [self.elapsed_us, self.date_us, self.wall_us, self.boottime_us] {
            out.u64(time_us.cast_unsigned());
        }
        if let Some(boot_id) = self.boot_id {
            out.raw(&boot_id.to_le_bytes());
        }
        if let Some(Suspicion { offset_us, kept_us }) = self.suspicion {
            out.u64(offset_us.cast_unsigned());
            out.u64(kept_us.cast_unsigned());
        }
        if let Some(Hold { until_us, back_us }) = self.hold {
            out.u64(until_us.cast_unsigned());
            out.u64(back_us.cast_unsigned());
        }
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let flags = input.u8()?;
        if flags > HAS_BOOT_ID | HAS_SUSPICION | HAS_HOLD {
            return Err(Error::corrupt(format!("flags {flags} of a record of the clock")));
        }
        let mut record = Self {
            elapsed_us: time(input)?,
            date_us: time(input)?,
            wall_us: time(input)?,
            boottime_us: time(input)?,
            boot_id: None,
            suspicion: None,
            hold: None,
        };
        if flags & HAS_BOOT_ID != 0 {
            let mut boot_id = [0; 16];
            boot_id.copy_from_slice(input.raw(16)?);
            record.boot_id = Some(u128::from_le_bytes(boot_id));
        }
        if flags & HAS_SUSPICION != 0 {
            record.suspicion = Some(Suspicion { offset_us: time(input)?, kept_us: time(input)? });
        }
        if flags & HAS_HOLD != 0 {
            record.hold = Some(Hold { until_us: time(input)?, back_us: time(input)? });
        }
        record.check()?;
        Ok(record)
    }

    fn check(&self) -> Result<()> {
        let Self { elapsed_us, suspicion, hold, .. } = *self;
        let place = format_args!("the clock at {elapsed_us} us");
        let is_kept = suspicion.is_none_or(|suspicion| suspicion.kept_us >= 0);
        invariant!(is_kept, place, "{suspicion:?} has been kept");
        let holds = hold.is_none_or(|hold| hold.until_us > elapsed_us && hold.back_us > 0);
        invariant!(holds, place, "{hold:?} holds nothing back");
        Ok(())
    }
}

fn time(input: &mut Reader<'_>) -> Result<i64> {
    Ok(input.u64()?.cast_signed())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::edit::Edit;

    /// One with all that there can be.
    pub(crate) fn full() -> ClockRecord {
        ClockRecord {
            boottime_us: 7,
            boot_id: Some(u128::MAX - 1),
            suspicion: Some(Suspicion { offset_us: -3_000_000, kept_us: 4 }),
            hold: Some(Hold { until_us: 1_767_225_600_000_090, back_us: 11 }),
            wall_us: -2,
            ..ClockRecord::of_time(1_767_225_600_000_000)
        }
    }

    #[test]
    fn a_record_survives_with_and_without_its_parts() {
        for number in 0..8 {
            let full = full();
            let record = ClockRecord {
                boot_id: full.boot_id.filter(|_| number & 1 != 0),
                suspicion: full.suspicion.filter(|_| number & 2 != 0),
                hold: full.hold.filter(|_| number & 4 != 0),
                ..full
            };
            let edit = Edit::Clock(record);
            let mut bytes = edit.encode();
            assert_eq!(Edit::decode(edit.frame_kind(), &bytes), Ok(edit.clone()));
            assert!(Edit::decode(edit.frame_kind(), &bytes[..bytes.len() - 1]).is_err());
            bytes[0] |= 8;
            assert!(Edit::decode(edit.frame_kind(), &bytes).is_err());
        }
    }

    #[test]
    fn a_hold_that_is_over_is_a_broken_invariant() {
        let decode = |record: ClockRecord| {
            let edit = Edit::Clock(record);
            Edit::decode(edit.frame_kind(), &edit.encode())
        };
        let until_us = full().elapsed_us;
        let over = ClockRecord { hold: Some(Hold { until_us, back_us: 11 }), ..full() };
        let message = decode(over).unwrap_err().to_string();
        assert!(message.contains("broken invariant: "), "{message}");
        let suspicion = Some(Suspicion { offset_us: 1, kept_us: -1 });
        assert!(decode(ClockRecord { suspicion, ..full() }).is_err());
    }

    #[test]
    fn a_time_of_an_older_log_is_a_record_of_no_boot() {
        let edit = Edit::decode(26, &70i64.to_le_bytes()).unwrap();
        assert_eq!(edit, Edit::Clock(ClockRecord::of_time(70)));
        assert_eq!(ClockRecord::of_time(70).boot_id, None);
    }
}
