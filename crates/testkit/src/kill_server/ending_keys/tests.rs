//! Keys that are wrong are noticed.

use super::*;

const CLIENT: i64 = 7;

fn found(value: Option<&str>, left_ms: i64) -> Found {
    Found { value: value.map(|value| value.as_bytes().to_vec()), left_ms }
}

/// What is said of one key that was read between 10 and 11 seconds.
fn judged(expected: Expected, found: Found) -> Result<(u64, u64), String> {
    let read = Span { first_us: 10_000_000, last_us: 11_000_000 };
    let mut lines = Line::all();
    let line = lines.iter_mut().find(|line| line.kind == Kind::EndingKeys).unwrap();
    line.client = CLIENT;
    line.keys.insert(0, expected);
    Keys { found: BTreeMap::from([((CLIENT, 0), found)]), read }.judge(line)?;
    Ok((line.counts.there, line.counts.gone))
}

fn until(first_us: i64, last_us: i64) -> Expected {
    Expected::Until(b"v".to_vec(), Span { first_us, last_us })
}

#[test]
fn keys_that_are_as_they_have_to_be_pass() {
    let there = || Expected::There(b"v".to_vec());
    assert_eq!(judged(there(), found(Some("v"), -1)), Ok((1, 0)));
    assert_eq!(judged(Expected::Gone, found(None, -2)), Ok((0, 1)));
    assert_eq!(judged(until(12_500_000, 12_600_000), found(Some("v"), 1_500)), Ok((1, 0)));
    assert_eq!(judged(until(8_000_000, 8_500_000), found(None, -2)), Ok((0, 1)));
    // Within a second of its end it may be either, and end while it is read.
    for found in [found(None, -2), found(Some("v"), 3), found(Some("v"), -2)] {
        assert_eq!(judged(until(10_500_000, 10_600_000), found), Ok((0, 0)));
    }
}

#[test]
fn keys_that_are_not_are_noticed() {
    let there = || Expected::There(b"v".to_vec());
    let wrong = [
        (there(), found(None, -2)),
        (there(), found(Some("w"), -1)),
        (there(), found(Some("v"), 500)),
        (Expected::Gone, found(Some("v"), -1)),
        (Expected::Gone, found(Some("v"), 10)),
        (until(12_500_000, 12_600_000), found(None, -2)),
        (until(12_500_000, 12_600_000), found(Some("w"), 500)),
        (until(12_500_000, 12_600_000), found(Some("v"), -1)),
        (until(8_000_000, 8_500_000), found(Some("v"), 500)),
        (until(8_000_000, 8_500_000), found(Some("v"), -1)),
        (until(10_500_000, 10_600_000), found(Some("w"), 5)),
    ];
    for (expected, found) in wrong {
        let what = format!("{expected:?}: {found:?}");
        judged(expected, found).expect_err(&what);
    }
}
