//! Places in a feed.

use std::fmt;
use std::str::FromStr;

use esker_format::TableId;

use crate::{Error, Result};

/// The place behind a commit in the feed of a table: `12.345`, the number of the feed, which no
/// other one ever has, and the row id of the last event of the commit in it. Of one feed they rise
/// with the commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeCursor {
    pub(super) feed: TableId,
    pub(super) row_id: u64,
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feed, row_id } = self;
        write!(f, "{}.{row_id}", feed.0)
    }
}

impl FromStr for ChangeCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let parts = text.split_once('.').filter(|(feed, row)| is_number(feed) && is_number(row));
        let cursor = parts.and_then(|(feed, row_id)| {
            Some(Self { feed: TableId(feed.parse().ok()?), row_id: row_id.parse().ok()? })
        });
        cursor.ok_or_else(|| {
            let message = "expected the cursor of a commit, such as 12.345";
            Error::invalid(format!("{message}, found {text:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        for text in ["12.345", "1.0", "4294967295.18446744073709551615"] {
            assert_eq!(text.parse::<ChangeCursor>().unwrap().to_string(), text);
        }
        for text in ["", "12", "12.", ".5", "-1.5", "+1.5", "1.5.6", "1. 5", "4294967296.0"] {
            assert!(text.parse::<ChangeCursor>().is_err(), "{text}");
        }
        let earlier: ChangeCursor = "2.9".parse().unwrap();
        assert!(earlier < "2.10".parse().unwrap());
    }
}
