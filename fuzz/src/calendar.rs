//! Text that parses is shown as text that parses to the same.

use esker_format::ValueRef;
use esker_format::calendar::{parse_date, parse_timestamp};

/// The target.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(days) = parse_date(text) {
        let shown = ValueRef::Date(days).to_string();
        assert_eq!(parse_date(&shown), Ok(days), "{text:?} is shown as {shown:?}");
    }
    if let Ok(time_us) = parse_timestamp(text) {
        let shown = ValueRef::Timestamp(time_us).to_string();
        assert_eq!(parse_timestamp(&shown), Ok(time_us), "{text:?} is shown as {shown:?}");
    }
}
