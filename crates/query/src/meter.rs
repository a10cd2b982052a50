//! What evaluating expressions takes of the memory and the time of a statement.
//!
//! Whatever makes values has [`Reservation`] for them before it makes them, and whatever works on
//! values says so to the [`Meter`], by bytes: once in some thousand bytes it is seen whether the
//! statement is to end. So a text of any size is worked on piece by piece.

use std::cell::Cell;

use esker_format::json::Steps;

use super::Result;
use crate::Limits;
use crate::budget::Charge;

/// After work on so many bytes it is seen whether the statement is to end.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Room is requested in steps of so many bytes, or twice what there is.
const ROOM_STEP_BYTES: usize = 64 << 10;

/// Counts work, for one thread.
pub(crate) struct Meter<'a> {
    limits: &'a Limits,
    worked: Cell<usize>,
}

/// Memory that values take, or are about to.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    /// What makes the values, as errors name it.
    maker: &'static str,
    charge: Charge<'a>,
    bytes: usize,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self { limits, worked: Cell::new(0) }
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Notes work on so many bytes, or on a row or so for each of them.
    ///
    /// # Errors
    /// `Cancelled` or `TimedOut`, when the statement is to end.
    pub(crate) fn work(&self, bytes: usize) -> Result<()> {
        let worked = self.worked.get().saturating_add(bytes);
        if worked < PIECE_BYTES {
            self.worked.set(worked);
            return Ok(());
        }
        self.worked.set(0);
        self.limits.expect_time_left()
    }

    /// Works on a document, step by step.
    ///
    /// # Errors
    /// As [`Meter::work`]; within, those of the work itself.
    pub(crate) fn in_steps<T>(
        &self,
        work: impl FnOnce(Steps<'_>) -> esker_format::Result<T>,
    ) -> Result<esker_format::Result<T>> {
        let mut ended = None;
        let done = work(&mut |bytes| {
            self.work(bytes).map_err(|error| {
                let stop = esker_format::Error::invalid(error.to_string());
                ended = Some(error);
                stop
            })
        });
        ended.map_or(Ok(done), Err)
    }

    /// Room for nothing yet, for what `maker` makes.
    pub(crate) fn room(&self, maker: &'static str) -> Reservation<'a> {
        Reservation { maker, charge: self.limits.memory.charge_evaluated(), bytes: 0 }
    }

    /// The pieces of some bytes, each after work on it has been noted.
    pub(crate) fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = Result<&'b [u8]>> {
        bytes.chunks(PIECE_BYTES).map(|piece| self.work(piece.len()).map(|()| piece))
    }
}

impl Reservation<'_> {
    /// Takes over the room of something else.
    pub(crate) fn merge(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.charge.merge(other.charge);
    }

    /// Asks for so many bytes more, before they are made.
    ///
    /// # Errors
    /// `OverBudget` with what makes them and how many bytes the statement would need.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.charge.bytes() {
            return Ok(());
        }
        // More than is requested, so that few of many small values need more.
        let more = self.bytes.min(ROOM_STEP_BYTES);
        self.charge.set(self.bytes.saturating_add(more)).map_err(|e| e.at(self.maker))
    }

    /// Says that so many bytes of what was requested have not been needed.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
