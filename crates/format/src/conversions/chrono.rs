//! Times of `chrono`.

use ::chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

use super::{civil, day, day_and_time, microseconds, read, timestamp};
use crate::{Error, Result, Value, ValueRef};

/// From here on a nanosecond is one of a leap second.
const SECOND_NS: u32 = 1_000_000_000;

impl TryFrom<DateTime<Utc>> for Value {
    type Error = Error;

    fn try_from(v: DateTime<Utc>) -> Result<Self> {
        Self::try_from(v.naive_utc())
    }
}

impl TryFrom<NaiveDate> for Value {
    type Error = Error;

    fn try_from(v: NaiveDate) -> Result<Self> {
        day_of(v).map(Self::Date)
    }
}

impl TryFrom<NaiveTime> for Value {
    type Error = Error;

    fn try_from(v: NaiveTime) -> Result<Self> {
        time_us(v).map(Self::Time)
    }
}

impl TryFrom<NaiveDateTime> for Value {
    type Error = Error;

    fn try_from(v: NaiveDateTime) -> Result<Self> {
        timestamp(day_of(v.date())?, time_us(v.time())?, &v)
    }
}

fn day_of(v: NaiveDate) -> Result<i32> {
    day(v.year().into(), v.month().into(), v.day().into())
}

fn time_us(v: NaiveTime) -> Result<i64> {
    if v.nanosecond() >= SECOND_NS {
        return Err(Error::invalid(format!("expected a time without leap seconds, found {v}")));
    }
    let below_second = microseconds(v.nanosecond().into(), &v)?;
    Ok(i64::from(v.num_seconds_from_midnight()) * 1_000_000 + below_second)
}

fn date_of(day: i64) -> Option<NaiveDate> {
    let (year, month, day) = civil::<i32, u32>(day)?;
    NaiveDate::from_ymd_opt(year, month, day)
}

fn time_of(time_us: i64) -> Option<NaiveTime> {
    let (seconds, below_us) = (time_us.div_euclid(1_000_000), time_us.rem_euclid(1_000_000));
    let below_ns = u32::try_from(below_us * 1_000).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds.try_into().ok()?, below_ns)
}

fn date_time_of(timestamp_us: i64) -> Option<NaiveDateTime> {
    let (day, time_us) = day_and_time(timestamp_us);
    Some(NaiveDateTime::new(date_of(day)?, time_of(time_us)?))
}

read! {
    DateTime<Utc>: "a timestamp that chrono has", |value| match value {
        ValueRef::Timestamp(us) => date_time_of(us).map(|time| time.and_utc()),
        _ => None,
    };
    NaiveDate: "a date that chrono has", |value| match value {
        ValueRef::Date(day) => date_of(day.into()),
        _ => None,
    };
    NaiveTime: "a time of day", |value| match value {
        ValueRef::Time(us) => time_of(us),
        _ => None,
    };
    NaiveDateTime: "a timestamp that chrono has", |value| match value {
        ValueRef::Timestamp(us) => date_time_of(us),
        _ => None,
    };
}
