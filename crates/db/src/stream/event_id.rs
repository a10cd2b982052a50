//! What an event of a stream is called.

use std::fmt;
use std::str::FromStr;

use esker_format::event_id::{event_id_ms, event_id_text, parse_event_id};

use crate::{Error, Result};

/// The id of an event: its time in milliseconds since 1970, and its row id. Ids are in the order of
/// times; no two events of a stream have the same one, nor do two after each other. As a text it
/// has 26 characters in Crockford's base 32, as a ULID has: 48 bits of time, 16 that are 0, and 64
/// of the row id.
///
/// ```
/// use esker::EventId;
///
/// let id = EventId::new(1_767_323_045_123_456, 7);
/// assert_eq!(id.to_string(), "01KDYAK3830000000000000007");
/// assert_eq!("01kdyak383-0000000000000007".parse::<EventId>().is_err(), true);
/// assert_eq!("01kdyak3830000000000000007".parse::<EventId>()?, id);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    time_ms: u64,
    row_id: u64,
}

impl EventId {
    /// That of the event with a row id, at a time in microseconds since 1970. Times before 1970,
    /// and those with more than 48 bits of milliseconds, count as the nearest that an id can have.
    #[must_use]
    pub fn new(time_us: i64, row_id: u64) -> Self {
        Self { time_ms: event_id_ms(time_us), row_id }
    }

    /// That of the event with a row id, at a time in milliseconds since 1970.
    pub(crate) fn of_ms(time_ms: u64, row_id: u64) -> Self {
        // default: a time beyond all that an id can have
        let time_us = i64::try_from(time_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
        Self { time_ms: event_id_ms(time_us), row_id }
    }

    /// The milliseconds of its time since 1970.
    #[must_use]
    pub fn time_ms(self) -> u64 {
        self.time_ms
    }

    /// The row id, which rises with the commits.
    #[must_use]
    pub fn row_id(self) -> u64 {
        self.row_id
    }

    /// Whether an event at a time has this id.
    #[must_use]
    pub fn is_at(self, time_us: i64) -> bool {
        Self::new(time_us, self.row_id) == self
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&event_id_text(self.time_ms, self.row_id))
    }
}

impl FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = parse_event_id(text);
        found.map(|(time_ms, row_id)| Self { time_ms, row_id }).ok_or_else(|| {
            let expected = "expected 26 letters and digits, as the insert has told it";
            Error::invalid(format!("id of an event: {expected}, found {text:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_and_sort_as_times_do() {
        let times = [i64::MIN, -1, 0, 999, 1_000, 1_767_323_045_123_456, i64::MAX];
        let mut texts = Vec::new();
        for time_us in times {
            for row_id in [0, 1, 1 << 40, u64::MAX] {
                let id = EventId::new(time_us, row_id);
                let text = id.to_string();
                assert_eq!((text.len(), text.parse::<EventId>().unwrap()), (26, id));
                assert_eq!(text.to_lowercase().parse::<EventId>().unwrap(), id);
                assert!(id.is_at(time_us));
                texts.push((id, text));
            }
        }
        texts.sort();
        assert!(texts.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!(!EventId::new(1_000, 1).is_at(2_000));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let id = EventId::new(1_767_323_045_123_456, 7).to_string();
        let longer = format!("{id}0");
        let texts = ["", "7", &id[1..], &longer, &id.replace('0', "U"), &id.replacen('0', "8", 1)];
        for text in texts {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
        // Bits between time and row id.
        let between = format!("{}1{}", &id[..12], &id[13..]);
        assert!(between.parse::<EventId>().is_err(), "{between}");
    }
}
