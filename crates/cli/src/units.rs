//! Numbers as people read them.

use std::time::Duration;

/// A count with thousands apart: `336,776`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and what is counted: `1 row`, `2 rows`.
pub(crate) fn counted(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

/// A size in the unit that gives it three digits or so: `31.1 MiB`.
pub(crate) fn bytes(value: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut amount = value as f64;
    let mut unit = "B";
    for next in units {
        if amount < 1023.95 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    format!("{amount:.1} {unit}")
}

/// A duration in the unit that gives it three digits or so: `12.3 ms`.
pub(crate) fn duration(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    match seconds {
        0.0..0.001 => format!("{:.0} µs", seconds * 1e6),
        0.001..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

pub(crate) use esker_server::config::parse_duration;

/// A rate: `1.2 M rows/s`.
pub(crate) fn rate(count: u64, time: Duration) -> String {
    let rate = count as f64 / time.as_secs_f64().max(1e-9);
    match rate {
        0.0..1e4 => format!("{rate:.0} rows/s"),
        1e4..1e6 => format!("{:.0} k rows/s", rate / 1e3),
        _ => format!("{:.1} M rows/s", rate / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 336_776, 1 << 30].map(count).join(" "),
            "0 999 1,000 336,776 \
            1,073,741,824"
        );
        assert_eq!([counted(1, "row"), counted(2000, "row")].join(" "), "1 row 2,000 rows");
        assert_eq!(
            [0, 1023, 1024, 32_600_000, u64::MAX].map(bytes).join(", "),
            "0 B, 1023 B, 1.0 KiB, 31.1 MiB, 16.0 EiB"
        );
        let times = [12, 1_234, 12_345, 123_456, 12_345_678].map(Duration::from_micros);
        assert_eq!(times.map(duration).join(", "), "12 µs, 1.2 ms, 12.3 ms, 123 ms, 12.35 s");
        let read = ["500ms", "30s", "5m", "1h"].map(|text| parse_duration(text).unwrap());
        assert_eq!(read.map(|time| time.as_millis()), [500, 30_000, 300_000, 3_600_000]);
        for wrong in ["", "5", "s", "-1s", "1.5s", "5 s", "99999999999999999999s"] {
            assert!(parse_duration(wrong).unwrap_err().starts_with("expected a time"), "{wrong}");
        }
        assert_eq!(rate(3_500_000, Duration::from_secs(1)), "3.5 M rows/s");
        assert_eq!(rate(336_776, Duration::from_secs(2)), "168 k rows/s");
    }
}
