use super::Interval;

const HOUR_US: i64 = 3_600_000_000;

fn interval(text: &str) -> Interval {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn intervals_are_read_and_written_as_postgresql_does() {
    for (text, written) in [
        ("1 year 2 mons 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
        ("P1Y2M3DT4H5M6.7S", "1 year 2 mons 3 days 04:05:06.7"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("PT36H", "36:00:00"),
        ("P2W", "14 days"),
        ("P-1Y-2M3DT-4H", "-1 years -2 mons +3 days -04:00:00"),
        ("1-2", "1 year 2 mons"),
        ("1-2 3 4:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("-1-2", "-1 years -2 mons"),
        ("2 weeks ago", "-14 days"),
        ("@ 1 minute", "00:01:00"),
        ("1 day -2 hours", "1 day -02:00:00"),
        ("-1 day 2 hours", "-1 days +02:00:00"),
        ("1y2mon3d4h", "1 year 2 mons 3 days 04:00:00"),
        ("1.5 months", "1 mon 15 days"),
        ("1.5 years", "1 year 6 mons"),
        ("1.5 weeks", "10 days 12:00:00"),
        ("0.5 day", "12:00:00"),
        ("-1.5 days", "-1 days -12:00:00"),
        ("1.5 seconds", "00:00:01.5"),
        ("5", "00:00:05"),
        ("4:05", "04:05:00"),
        ("4:05.5", "00:04:05.5"),
        ("-4:05:06", "-04:05:06"),
        ("100:00:00", "100:00:00"),
        ("1 century 2 decades", "120 years"),
        ("1 quarter", "3 mons"),
        ("5 us 3 ms", "00:00:00.003005"),
        ("0 days", "00:00:00"),
        ("-0.1 s", "-00:00:00.1"),
        ("1 day, 2 hours", "1 day 02:00:00"),
        ("1 day,2 hours , 3 min", "1 day 02:03:00"),
        ("-9223372036854775808 us", "-2562047788:00:54.775808"),
        ("-2147483648 days", "-2147483648 days"),
    ] {
        assert_eq!(interval(text).to_string(), written, "{text}");
        assert!(interval(written).stored() == interval(text).stored(), "{written}");
    }
    for text in [
        "",
        "P",
        "PT",
        "1 blink",
        "day",
        "1 day day",
        "1 2 days",
        "4:60",
        "4:05:61",
        "ago",
        "1..5 s",
        "1-12",
        "P1X",
        "9999999999 months",
        "1 day x",
        "-",
        "99999999999999999999 s",
        "9223372036854775808 us",
        "18446744073709551615 hours",
        "1,5 days",
        ",",
    ] {
        assert!(text.parse::<Interval>().is_err(), "{text}");
    }
}

#[test]
fn parts_come_back_and_bytes_are_in_the_order_of_lengths() {
    let months = [i32::MIN, -13, -1, 0, 1, 12, i32::MAX];
    let us = [i64::MIN, -HOUR_US, -1, 0, 1, HOUR_US, i64::MAX];
    let mut all = Vec::new();
    for months in months {
        for days in [i32::MIN, -30, -1, 0, 1, 30, i32::MAX] {
            for us in us {
                let one = Interval::new(months, days, us);
                assert_eq!((one.months(), one.days(), one.microseconds()), (months, days, us));
                assert!(interval(&one.to_string()).stored() == one.stored(), "{one}");
                assert_eq!(Interval::from_stored(one.stored()).unwrap().stored(), one.stored());
                all.push(one);
            }
        }
    }
    for a in &all {
        for b in &all {
            assert_eq!(a.cmp(b), a.stored().cmp(b.stored()), "{a} {b}");
            let by_length = a.length_us().cmp(&b.length_us());
            assert!(by_length.is_eq() || by_length == a.cmp(b), "{a} {b}");
            let parts = |i: &Interval| (i.months(), i.days(), i.microseconds());
            assert_eq!(a == b, parts(a) == parts(b), "{a} {b}");
        }
    }
    assert!(Interval::from_stored(&[0; 18]).is_err());
    assert_eq!(Interval::new(0, 0, 0).stored(), Interval::default().stored());
}

#[test]
fn multiples_carry_what_is_no_whole_month_or_day() {
    for (text, factor, expected) in [
        ("1 month", 1.5, "1 mon 15 days"),
        ("1 day", 0.5, "12:00:00"),
        ("1 mon 1 day 01:00:00", 2.0, "2 mons 2 days 02:00:00"),
        ("1 mon", 0.1, "3 days"),
        ("1 year", 0.01, "3 days 14:24:00"),
        ("3 days", -0.5, "-1 days -12:00:00"),
        ("1 mon -1 days", 0.5, "15 days -12:00:00"),
    ] {
        let found = interval(text).checked_mul(factor).unwrap();
        assert_eq!(found.to_string(), expected, "{text} * {factor}");
    }
    assert_eq!(interval("1 month").checked_div(2.0).unwrap().to_string(), "15 days");
    assert_eq!(interval("1 day").checked_div(3.0).unwrap().to_string(), "08:00:00");
    assert!(interval("1 day").checked_div(0.0).is_none());
    assert!(interval("1 month").checked_mul(1e10).is_none());
    assert!(interval("1 month").checked_mul(f64::NAN).is_none());
}

#[test]
fn parts_are_justified() {
    let hours = |text: &str| interval(text).justify_hours().unwrap().to_string();
    let days = |text: &str| interval(text).justify_days().unwrap().to_string();
    let both = |text: &str| interval(text).justify_interval().unwrap().to_string();
    assert_eq!(hours("50:00"), "2 days 02:00:00");
    assert_eq!(hours("1 day -1 hours"), "23:00:00");
    assert_eq!(days("35 days"), "1 mon 5 days");
    assert_eq!(days("1 mon -1 day"), "29 days");
    assert_eq!(both("1 mon -1 hour"), "29 days 23:00:00");
    assert_eq!(both("-1 mon 1 hour"), "-29 days -23:00:00");
    assert_eq!(both("65 days 50:00"), "2 mons 7 days 02:00:00");
}
