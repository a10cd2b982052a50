//! Time zones by name, from the database that is built in: answers do not depend on the machine.

use esker_format::calendar::{parse_offset, parse_timestamp};
use esker_format::text;
use esker_format::{DataType, Value};
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone as Rules, TimeZoneDatabase};

use crate::{Error, Result};

/// Errors do not show more of a name.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// A time zone: a name of the IANA database in any case, or how far it is from UTC.
#[derive(Clone, Debug)]
pub(crate) enum TimeZone {
    Named(Rules),
    /// Microseconds east of UTC.
    Fixed(i64),
}

impl TimeZone {
    pub(crate) fn named(name: &str) -> Result<Self> {
        let name = name.trim();
        if let Some(offset_us) = parse_offset(name) {
            return Ok(Self::Fixed(offset_us));
        }
        TimeZoneDatabase::bundled().get(name).map(Self::Named).map_err(|_| {
            let shown: String = name.chars().take(SHOWN_CHARACTERS_MAX).collect();
            Error::invalid(format!(
                "unknown time zone '{shown}'; known: names like Europe/Berlin, offsets like +02:00"
            ))
        })
    }

    /// How far local time is ahead of UTC at a time of UTC, in microseconds.
    pub(crate) fn offset_at(&self, us: i64) -> Result<i64> {
        match self {
            Self::Fixed(offset_us) => Ok(*offset_us),
            Self::Named(zone) => Ok(microseconds(zone.to_offset(within(us)?))),
        }
    }

    /// The local time of a time of UTC.
    pub(crate) fn local(&self, us: i64) -> Result<i64> {
        us.checked_add(self.offset_at(us)?).ok_or_else(too_far)
    }

    /// The time of UTC of a local time. Of one that the clocks left out, what it would be had they
    /// not been put forward; of one that they showed twice, the later.
    pub(crate) fn utc(&self, local_us: i64) -> Result<i64> {
        let offset_us = match self {
            Self::Fixed(offset_us) => *offset_us,
            Self::Named(zone) => {
                let clock = Offset::UTC.to_datetime(within(local_us)?);
                microseconds(match zone.to_ambiguous_timestamp(clock).offset() {
                    AmbiguousOffset::Unambiguous { offset } => offset,
                    AmbiguousOffset::Gap { before, .. } => before,
                    AmbiguousOffset::Fold { after, .. } => after,
                })
            }
        };
        local_us.checked_sub(offset_us).ok_or_else(too_far)
    }
}

fn microseconds(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * 1_000_000
}

fn within(us: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(us).map_err(|_| too_far())
}

fn too_far() -> Error {
    Error::out_of_range("time zones are known from the year -9999 to 9999")
}

/// Reads a text as a value of a type; a timestamp may have a time zone behind it.
///
/// # Errors
/// The text is no such value, or names a zone that there is not.
pub fn parse_value(text: &str, to: DataType) -> Result<Value> {
    let error = match text::parse_value(text, to) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if to == DataType::Timestamp
        && let Some((moment, name)) = text.trim().rsplit_once(' ')
        && let Some(local_us) = local_time(moment.trim_end())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        return Ok(Value::Timestamp(TimeZone::named(name)?.utc(local_us)?));
    }
    Err(error.into())
}

/// A time that has no offset of its own.
fn local_time(text: &str) -> Option<i64> {
    let as_utc = format!("{text}Z");
    let is_day = || parse_timestamp(&format!("{text} 00:00Z")).ok();
    parse_timestamp(&as_utc).ok().or_else(is_day)
}

/// The zone of the row before, which most rows have, too.
#[derive(Debug, Default)]
pub(crate) struct LastZone(Option<(Vec<u8>, TimeZone)>);

impl LastZone {
    pub(crate) fn get(&mut self, name: &[u8]) -> Result<TimeZone> {
        match &self.0 {
            Some((known, zone)) if known == name => Ok(zone.clone()),
            _ => {
                let zone = TimeZone::named(&String::from_utf8_lossy(name))?;
                self.0 = Some((name.to_vec(), zone.clone()));
                Ok(zone)
            }
        }
    }
}
