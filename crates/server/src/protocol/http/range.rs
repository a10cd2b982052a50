//! The header `Range`.

/// Which part of a value is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: the header is one that may be left out of account, as of several ranges.
    Whole,
    /// From one byte to before another.
    Bytes(usize, usize),
    /// None that is there.
    Outside,
}

/// Reads `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`.
pub(super) fn parse(text: &str, length: usize) -> Part {
    let Some(range) = text.strip_prefix("bytes=") else { return Part::Whole };
    let Some((first, last)) = range.split_once('-') else { return Part::Whole };
    // Digits alone: the standard has no sign here.
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| Some(text).filter(is_number)?.parse::<usize>().ok();
    let (start, end) = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => (first, length),
        (None, Some(count)) if first.is_empty() => (length.saturating_sub(count), length),
        _ => return Part::Whole,
    };
    if start < end { Part::Bytes(start, end) } else { Part::Outside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let cases = [
            ("bytes=0-4", Part::Bytes(0, 5)),
            ("bytes=5-", Part::Bytes(5, 10)),
            ("bytes=-3", Part::Bytes(7, 10)),
            ("bytes=-30", Part::Bytes(0, 10)),
            ("bytes=8-99", Part::Bytes(8, 10)),
            ("bytes=10-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=4-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes=x", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=1-+2", Part::Whole),
            ("bytes=--2", Part::Whole),
        ];
        for (text, part) in cases {
            assert_eq!(parse(text, 10), part, "{text}");
        }
    }
}
