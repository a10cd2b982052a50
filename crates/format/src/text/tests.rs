use super::*;

#[test]
fn integers_are_exact_or_refused() {
    for value in [0, 1, -1, 9, 10, 999_999_999_999_999_999, i64::MAX, i64::MIN] {
        assert_eq!(parse_signed::<i64>(value.to_string().as_bytes()), Some(value));
    }
    for value in [0, 42, u64::MAX, u64::MAX - 1] {
        assert_eq!(parse_unsigned::<u64>(value.to_string().as_bytes()), Some(value));
    }
    let bad = ["", "-", "+", "--1", "1-", "1.0", " 1", "1 ", "9223372036854775808", "x", "1_0"];
    for text in bad {
        assert_eq!(parse_signed::<i64>(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_signed::<i64>(b"+5"), Some(5));
    assert_eq!(parse_signed::<i64>(b"0000000000000000000000012"), Some(12));
    assert_eq!(parse_signed::<i8>(b"128"), None);
    assert_eq!(parse_signed::<i8>(b"-128"), Some(-128));
    assert_eq!(parse_unsigned::<u8>(b"-1"), None);
    assert_eq!(parse_unsigned::<u8>(b"256"), None);
}

#[test]
fn floats_round_as_the_standard_library_does() {
    let texts = [
        "0",
        "-0",
        "1",
        "0.1",
        "-0.1",
        ".5",
        "5.",
        "39.02",
        "10.357019999999999",
        "1e10",
        "1e-400",
        "123456789012345",
        "1234567890123456",
        "0.000000000000001",
        "9007199254740993",
        "1.5e3",
        "99999.9999999999",
        "-74.006",
        "40.712776",
        "2.2250738585072014e-308",
    ];
    for text in texts {
        let wanted: f64 = text.parse().unwrap();
        let found = parse_f64(text.as_bytes()).unwrap();
        assert_eq!(found.to_bits(), wanted.to_bits(), "{text}");
    }
    for text in ["", "-", ".", "-.", "1.2.3", "1e999", "-1e999", "1,5", "0x10", "one"] {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_f64(b"inf"), Some(f64::INFINITY));
    assert!(parse_f64(b"NaN").unwrap().is_nan());
    assert_eq!(parse_f32(b"1e39"), None);
    assert_eq!(parse_f32(b"0.1"), Some(0.1));
}

#[test]
fn timestamps_by_both_paths() {
    let mut parser = TimestampParser::default();
    let texts = [
        "2013-01-01T05:00:00Z",
        "2013-01-01 05:00:00",
        "2013-01-01T23:59:59",
        "2013-01-02",
        "1969-12-31 23:59:59",
        "0001-01-01T00:00:00Z",
        "2013-01-01 05:00",
        "2016-02-29T12:00:00Z",
        "2013-01-01T05:00:00.25Z",
        "2013-01-01T05:00:00",
    ];
    for text in texts {
        let wanted = calendar::parse_timestamp(text).unwrap();
        assert_eq!(parser.parse(text.as_bytes()), Some(wanted), "{text}");
    }
    let bad = [
        "",
        "2013-01-01T24:00:00Z",
        "2013-01-01T05:60:00Z",
        "2013-01-01T05:00:60Z",
        "2013-02-29T00:00:00Z",
        "2013-01-01T05:00:0xZ",
        "2013-01-01T05-00-00Z",
        "2013-01-01T",
        "2013-13-01T00:00:00Z",
        "0000-00-00T00:00:00Z",
        "\0\0\0\0\0\0\0\0\0\0T00:00:00Z",
    ];
    for text in bad {
        let mut fresh = TimestampParser::default();
        assert_eq!(fresh.parse(text.as_bytes()), None, "{text:?}");
        assert_eq!(parser.parse(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn other_types() {
    assert_eq!(parse_bool(b"TRUE"), Some(1));
    assert_eq!(parse_bool(b"f"), Some(0));
    assert_eq!(parse_bool(b"yes"), None);
    assert_eq!(parse_hex(b"\\x00fF"), Some(vec![0, 255]));
    assert_eq!(parse_hex(b""), Some(vec![]));
    assert_eq!(parse_hex(b"0"), None);
    assert_eq!(parse_hex(b"0g"), None);
    assert_eq!(parse_date(b"1970-01-02"), Some(1));
    assert_eq!(parse_date(b"1970-1-2"), None);
}
