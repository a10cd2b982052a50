//! Values of types that other crates define, each behind the feature that is named after its crate.
//!
//! | type | value |
//! |---|---|
//! | `jiff::Timestamp`, `chrono::DateTime<Utc>` | a timestamp |
//! | `jiff::civil::DateTime`, `chrono::NaiveDateTime` | a timestamp, as the time in UTC |
//! | `jiff::civil::Date`, `chrono::NaiveDate` | a date |
//! | `jiff::civil::Time`, `chrono::NaiveTime` | a time |
//! | `uuid::Uuid` | a UUID |
//! | `rust_decimal::Decimal` | a decimal |
//!
//! A conversion loses nothing: what the other side cannot hold is an error. `Value::try_from` makes
//! a value (of a UUID also `Value::from`), `TryFrom<ValueRef>` and `TryFrom<&Value>` lead back.

#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
#[cfg(feature = "uuid")]
mod uuid;

#[cfg(any(feature = "chrono", feature = "jiff"))]
use std::fmt::Display;

#[cfg(any(feature = "chrono", feature = "jiff"))]
use crate::calendar::{DAY_US, civil_from_days, days_from_civil};
use crate::{Error, ValueRef};
#[cfg(any(feature = "chrono", feature = "jiff"))]
use crate::{Result, Value};

/// `TryFrom<ValueRef>` by a function, and `TryFrom<&Value>` by that.
macro_rules! read {
    ($($rust:ty: $expected:literal, $read:expr;)*) => {
        $(
            impl TryFrom<$crate::ValueRef<'_>> for $rust {
                type Error = $crate::Error;

                fn try_from(value: $crate::ValueRef<'_>) -> $crate::Result<Self> {
                    let read: fn($crate::ValueRef<'_>) -> Option<Self> = $read;
                    read(value).ok_or_else(|| super::none_of($expected, value))
                }
            }

            impl TryFrom<&$crate::Value> for $rust {
                type Error = $crate::Error;

                fn try_from(value: &$crate::Value) -> $crate::Result<Self> {
                    Self::try_from(value.as_ref())
                }
            }
        )*
    };
}
use read;

/// A value that a type does not have.
fn none_of(expected: &str, value: ValueRef<'_>) -> Error {
    let kind = value.kind_name();
    let found = if value.is_null() { "NULL".into() } else { format!("{kind} {value}") };
    Error::invalid(format!("expected {expected}, found {found}"))
}

/// The microseconds of a time that may have parts of them.
#[cfg(any(feature = "chrono", feature = "jiff"))]
fn microseconds(nanoseconds: i64, shown: &dyn Display) -> Result<i64> {
    match nanoseconds % 1_000 {
        0 => Ok(nanoseconds / 1_000),
        _ => {
            let message = format!("expected whole microseconds, found {shown}: round it first");
            Err(Error::invalid(message))
        }
    }
}

/// The day of a civil date; neither crate has one whose day takes more bits.
#[cfg(any(feature = "chrono", feature = "jiff"))]
fn day(year: i64, month: i64, day: i64) -> Result<i32> {
    let days = days_from_civil(year, month, day);
    i32::try_from(days).map_err(|_| Error::invalid(format!("a date of the year {year}")))
}

/// The year, month and day of a date.
#[cfg(any(feature = "chrono", feature = "jiff"))]
fn civil<Y: TryFrom<i64>, M: TryFrom<i64>>(day: i64) -> Option<(Y, M, M)> {
    let (year, month, day) = civil_from_days(day);
    Some((year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?))
}

/// A day and the microseconds since its midnight as a timestamp.
#[cfg(any(feature = "chrono", feature = "jiff"))]
fn timestamp(day: i32, time_us: i64, shown: &dyn Display) -> Result<Value> {
    let us = i64::from(day).checked_mul(DAY_US).and_then(|us| us.checked_add(time_us));
    us.map(Value::Timestamp).ok_or_else(|| {
        Error::invalid(format!("expected a timestamp of 64 bits of microseconds, found {shown}"))
    })
}

/// The day of a timestamp, and the microseconds since its midnight.
#[cfg(any(feature = "chrono", feature = "jiff"))]
fn day_and_time(timestamp_us: i64) -> (i64, i64) {
    (timestamp_us.div_euclid(DAY_US), timestamp_us.rem_euclid(DAY_US))
}

#[cfg(test)]
#[cfg(all(feature = "chrono", feature = "jiff", feature = "rust_decimal", feature = "uuid"))]
mod tests;
