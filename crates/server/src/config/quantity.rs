//! Times and sizes with their units.

use std::time::Duration;

/// Reads a duration with its unit: `500ms`, `30s`, `5m`, `24h`.
///
/// ```
/// use esker_server::config::parse_duration;
///
/// assert_eq!(parse_duration("5m")?.as_secs(), 300);
/// assert!(parse_duration("5").is_err());
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A message with what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let ms = parse(text, &units);
    let ms =
        ms.ok_or_else(|| format!("expected a time such as 500ms, 30s, 5m or 1h, found {text:?}"))?;
    Ok(Duration::from_millis(ms))
}

/// Reads a size, in bytes or with its unit: `4096`, `64KiB`, `16MiB`, `4GiB`.
///
/// ```
/// assert_eq!(esker_server::config::parse_bytes("64KiB"), Ok(65_536));
/// ```
///
/// # Errors
/// A message with what was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
    let bytes = parse(text, &units);
    bytes.ok_or_else(|| format!("expected a size such as 4096, 64KiB or 16MiB, found {text:?}"))
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

pub(super) fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".to_owned(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

pub(super) fn bytes_text(bytes: u64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = units.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or_else(|| bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}
