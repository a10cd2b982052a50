//! Ids of events as texts: 26 digits in Crockford's base 32, as a ULID has. 48 bits of milliseconds
//! since 1970, 16 that are 0, and 64 of the row id.

/// Characters of an id.
const LEN: usize = 26;
/// Bits of the milliseconds.
const MS_BITS: u32 = 48;
/// Crockford's digits: none of I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The milliseconds since 1970 that an id has for a time in microseconds. Times before 1970, and
/// those with more than 48 bits of milliseconds, count as the nearest that an id can have.
#[must_use]
pub fn event_id_ms(time_us: i64) -> u64 {
    let time_ms = time_us.div_euclid(1_000).max(0).cast_unsigned();
    time_ms.min((1 << MS_BITS) - 1)
}

/// The text of an id.
///
/// ```
/// use esker_format::event_id::{event_id_text, parse_event_id};
///
/// let text = event_id_text(1_767_323_045_123, 7);
/// assert_eq!(text, "01KDYAK3830000000000000007");
/// assert_eq!(parse_event_id(&text.to_lowercase()), Some((1_767_323_045_123, 7)));
/// ```
#[must_use]
pub fn event_id_text(time_ms: u64, row_id: u64) -> String {
    let bits = u128::from(time_ms) << 80 | u128::from(row_id);
    let digit = |at: usize| {
        let digit = usize::try_from(bits >> (5 * at) & 31).ok();
        digit.and_then(|digit| DIGITS.get(digit)).copied().map(char::from)
    };
    (0..LEN).rev().filter_map(digit).collect()
}

/// The milliseconds and the row id of an id; `None` for a text that is none.
#[must_use]
pub fn parse_event_id(text: &str) -> Option<(u64, u64)> {
    if text.len() != LEN {
        return None;
    }
    let mut bits = 0u128;
    for (at, c) in text.bytes().enumerate() {
        let digit = match c.to_ascii_uppercase() {
            b'I' | b'L' => 1,
            b'O' => 0,
            c => DIGITS.iter().position(|digit| *digit == c)?,
        };
        // The first character has three bits.
        if at == 0 && digit > 7 {
            return None;
        }
        bits = bits << 5 | digit as u128;
    }
    let part = |bits: u128| u64::try_from(bits).ok();
    let is_whole = bits >> 64 & 0xffff == 0;
    Some((part(bits >> 80)?, part(bits & u128::from(u64::MAX))?)).filter(|_| is_whole)
}
