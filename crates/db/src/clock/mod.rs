//! The clock of a database (protocol rule 9): a pure state machine, without input or output.
//!
//! ```text
//! boot time, boot id ──► elapsed time: never falls, no step of the wall clock touches it
//! wall clock ──────────► date: follows while both agree; else the difference is suspect, and the
//!                        date goes on with the elapsed time until the difference is confirmed
//! ```
//!
//! * **Elapsed time** decides about durations. While the database is open, and across restarts of
//!   the process within one boot, it advances exactly as boot time does. Another boot: see
//!   [`opening`].
//! * **The date** decides about dates. It advances with the elapsed time, and is drawn towards a
//!   wall clock that agrees within [`AGREED_US`], by at most one part in [`SLEW_PARTS`]. It is
//!   drawn when a record is logged, so that a crash loses none of that.
//! * A **suspicion** is a difference beyond that. The engine moves the date once the wall clock has
//!   been seen to keep the difference for [`KEPT_US`], or when it is confirmed: this state machine
//!   says that a move is due, and does not move by itself. Elapsed time between two looks counts
//!   only when they are at most [`LOOK_GAP_US`] apart, since it is not known what the wall clock
//!   showed in between; what has been counted adds up over looks, processes and boots until the
//!   wall clock is seen to agree, or to differ otherwise.
//! * A **hold** begins when the date has moved forward other than by going on: for [`HOLD_US`] of
//!   elapsed time rows are destroyed by the date as it would be without the move.

mod database_clock;
mod opening;

#[cfg(test)]
mod tests;

pub(crate) use database_clock::{DatabaseClock, Reading};

/// The wall clock and the date agree when they differ by no more than this.
const AGREED_US: i64 = SECOND_US;
/// Within this the date is not drawn: it keeps its distance from elapsed time, so that the end of
/// an entry is shown as the date that was given.
const STEADY_US: i64 = 20_000;
/// The date is drawn towards the wall clock by one part in so many of the elapsed time: 0.05 %.
const SLEW_PARTS: i64 = 2_000;
/// For how long the wall clock keeps a difference before it is believed.
pub(crate) const KEPT_US: i64 = 600 * SECOND_US;
/// Looks farther apart than this do not show that a difference was kept between them.
const LOOK_GAP_US: i64 = 60 * SECOND_US;
/// For how long nothing is destroyed by a date that has moved forward.
pub(crate) const HOLD_US: i64 = 3_600 * SECOND_US;
/// The most elapsed time that is believed to have passed between two boots.
const BOOT_GAP_MAX_US: i64 = 7 * DAY_US;
/// The least: the record that opening finds may be as old as this.
const BOOT_GAP_MIN_US: i64 = SECOND_US;
/// The farthest that the date moves forward between two boots without suspicion.
const DATE_GAP_MAX_US: i64 = 400 * DAY_US;

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
