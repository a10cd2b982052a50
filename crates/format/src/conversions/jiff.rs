//! Times of `jiff`.

use ::jiff::Timestamp;
use ::jiff::civil::{Date, DateTime, Time};

use super::{civil, day, day_and_time, microseconds, read, timestamp};
use crate::{Error, Result, Value, ValueRef};

impl TryFrom<Timestamp> for Value {
    type Error = Error;

    fn try_from(v: Timestamp) -> Result<Self> {
        microseconds(v.subsec_nanosecond().into(), &v)?;
        Ok(Self::Timestamp(v.as_microsecond()))
    }
}

impl TryFrom<Date> for Value {
    type Error = Error;

    fn try_from(v: Date) -> Result<Self> {
        day_of(v).map(Self::Date)
    }
}

impl TryFrom<Time> for Value {
    type Error = Error;

    fn try_from(v: Time) -> Result<Self> {
        time_us(v).map(Self::Time)
    }
}

impl TryFrom<DateTime> for Value {
    type Error = Error;

    fn try_from(v: DateTime) -> Result<Self> {
        timestamp(day_of(v.date())?, time_us(v.time())?, &v)
    }
}

fn day_of(v: Date) -> Result<i32> {
    day(v.year().into(), v.month().into(), v.day().into())
}

fn time_us(v: Time) -> Result<i64> {
    let minutes = i64::from(v.hour()) * 60 + i64::from(v.minute());
    let below_second = microseconds(v.subsec_nanosecond().into(), &v)?;
    Ok((minutes * 60 + i64::from(v.second())) * 1_000_000 + below_second)
}

fn date_of(day: i64) -> Option<Date> {
    let (year, month, day) = civil(day)?;
    Date::new(year, month, day).ok()
}

fn time_of(time_us: i64) -> Option<Time> {
    let (seconds, below_us) = (time_us.div_euclid(1_000_000), time_us.rem_euclid(1_000_000));
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let below_ns = i32::try_from(below_us * 1_000).ok()?;
    let (hour, minute) = (hour.try_into().ok()?, minute.try_into().ok()?);
    Time::new(hour, minute, second.try_into().ok()?, below_ns).ok()
}

fn date_time_of(timestamp_us: i64) -> Option<DateTime> {
    let (day, time_us) = day_and_time(timestamp_us);
    Some(DateTime::from_parts(date_of(day)?, time_of(time_us)?))
}

read! {
    Timestamp: "a timestamp of the years -9999 to 9999", |value| match value {
        ValueRef::Timestamp(us) => Self::from_microsecond(us).ok(),
        _ => None,
    };
    Date: "a date of the years -9999 to 9999", |value| match value {
        ValueRef::Date(day) => date_of(day.into()),
        _ => None,
    };
    Time: "a time of day", |value| match value {
        ValueRef::Time(us) => time_of(us),
        _ => None,
    };
    DateTime: "a timestamp of the years -9999 to 9999", |value| match value {
        ValueRef::Timestamp(us) => date_time_of(us),
        _ => None,
    };
}
