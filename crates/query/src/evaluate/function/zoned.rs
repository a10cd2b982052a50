//! Times in a time zone, and steps of time.

use esker_format::DataType;
use esker_format::calendar::DAY_US;

use super::call::Call;
use super::moment::{moment, split, start_of};
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::model::date_unit::Unit;
use crate::time_zone::LastZone;

/// Monday, 3 January 2000: where steps begin that name no origin.
const FIRST_MONDAY_US: i64 = 10_959 * DAY_US;

/// `timezone` and `to_utc`.
pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let (zone_at, moment_at) = if call.function == F::ToUtc { (1, 0) } else { (0, 1) };
    let zones = call.texts(zone_at)?;
    let mut last = LastZone::default();
    let one = |i: usize| {
        let zone = last.get(zones.get(i).ok_or_else(|| call.undefined())?)?;
        let us = call.int(moment_at, i, 0)?;
        Ok(Some(if call.function == F::ToUtc { zone.utc(us)? } else { zone.local(us)? }))
    };
    call.map(len, |v| Lanes::Ints(v.into()), one)
}

/// `date_trunc` in a zone.
pub(super) fn truncate<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let (words, zones) = (call.ints(1)?, call.texts(2)?);
    let mut last = LastZone::default();
    let one = |i: usize| {
        let zone = last.get(zones.get(i).ok_or_else(|| call.undefined())?)?;
        let us = call.int(1, i, 0)?;
        let offset_us = zone.offset_at(us)?;
        let too_early = || call.error("the start lies before the first timestamp");
        let local = us.checked_add(offset_us).ok_or_else(too_early)?;
        let (days, clock_us) = start_of(unit, split(DataType::Timestamp, local));
        let start = moment(days, clock_us.into()).ok_or_else(too_early)?;
        // Within an hour that the clocks show twice it stays the same one.
        let utc = match unit.is_clock() {
            true => start.checked_sub(offset_us).ok_or_else(too_early)?,
            false => zone.utc(start)?,
        };
        Ok(Some(utc))
    };
    call.map(words.len(), |v| Lanes::Ints(v.into()), one)
}

/// `date_bin`.
pub(super) fn binned<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let one = |i: usize| {
        let (step, us) = (call.int(0, i, 0)?, call.int(1, i, 0)?);
        if step <= 0 {
            let found = format!("expected a step above 0 microseconds, found {step}");
            return Err(call.error(found));
        }
        let start = bin(us, step, call.int(2, i, FIRST_MONDAY_US)?);
        start.map(Some).ok_or_else(|| call.error("the start lies before the first timestamp"))
    };
    call.map(len, |v| Lanes::Ints(v.into()), one)
}

/// The start of the step that a moment lies in, of steps from an origin.
fn bin(us: i64, step_us: i64, origin_us: i64) -> Option<i64> {
    let (us, origin_us) = (i128::from(us), i128::from(origin_us));
    let start = us - (us - origin_us).rem_euclid(i128::from(step_us));
    i64::try_from(start).ok()
}
