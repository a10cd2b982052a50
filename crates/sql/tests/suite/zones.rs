//! Time zones by name: values are PostgreSQL's for a timestamp with time zone.

use crate::functions::{rows, value};

fn expect(cases: &[(&str, &str)]) {
    for (expr, wanted) in cases {
        assert_eq!(value(expr).as_deref(), Ok(*wanted), "{expr}");
    }
}

#[test]
fn a_timestamp_in_a_zone_is_its_local_time() {
    expect(&[
        ("TIMESTAMP '2024-01-15 12:00' AT TIME ZONE 'Europe/Berlin'", "2024-01-15 13:00:00"),
        ("TIMESTAMP '2024-07-15 12:00' AT TIME ZONE 'europe/berlin'", "2024-07-15 14:00:00"),
        ("timezone('Asia/Kolkata', DATE '2024-07-15')", "2024-07-15 05:30:00"),
        ("TIMESTAMP '2024-07-15 12:00' AT TIME ZONE '+02:00'", "2024-07-15 14:00:00"),
        ("TIMESTAMP '2024-07-15 12:00' AT TIME ZONE 'UTC'", "2024-07-15 12:00:00"),
        // The hour that the clocks show twice.
        ("TIMESTAMP '2024-10-27 00:30' AT TIME ZONE 'Europe/Berlin'", "2024-10-27 02:30:00"),
        ("TIMESTAMP '2024-10-27 01:30' AT TIME ZONE 'Europe/Berlin'", "2024-10-27 02:30:00"),
        // Rules that go on beyond the last change in the database.
        ("TIMESTAMP '2080-07-15 12:00' AT TIME ZONE 'America/New_York'", "2080-07-15 08:00:00"),
        ("to_char(TIMESTAMP '2024-07-15 22:30' AT TIME ZONE 'Asia/Tokyo', 'DD HH24')", "16 07"),
        ("timezone(NULL, TIMESTAMP '2024-07-15 12:00')", "null"),
    ]);
}

#[test]
fn a_local_time_becomes_utc() {
    expect(&[
        ("to_utc(TIMESTAMP '2024-07-15 14:00', 'Europe/Berlin')", "2024-07-15 12:00:00"),
        // Left out by the clocks: by the offset before. Shown twice: the later.
        ("to_utc(TIMESTAMP '2024-03-31 02:30', 'Europe/Berlin')", "2024-03-31 01:30:00"),
        ("to_utc(TIMESTAMP '2024-10-27 02:30', 'Europe/Berlin')", "2024-10-27 01:30:00"),
        ("to_utc(TIMESTAMP '2024-03-10 02:30', 'America/New_York')", "2024-03-10 07:30:00"),
        ("TIMESTAMP '2024-03-31 02:30 Europe/Berlin'", "2024-03-31 01:30:00"),
        ("'2024-07-15 America/New_York'::text::timestamp", "2024-07-15 04:00:00"),
        ("TRY_CAST('2024-07-15 12:00 Europe/Nowhere' AS timestamp)", "null"),
    ]);
}

#[test]
fn units_begin_where_they_do_in_the_zone() {
    expect(&[
        ("date_trunc('day', TIMESTAMP '2024-07-15 23:30', 'Europe/Berlin')", "2024-07-15 22:00:00"),
        ("date_trunc('month', DATE '2024-04-10', 'Europe/Berlin')", "2024-03-31 22:00:00"),
        (
            "date_trunc('hour', TIMESTAMP '2024-10-27 00:30', 'Europe/Berlin')",
            "2024-10-27 00:00:00",
        ),
        (
            "date_trunc('hour', TIMESTAMP '2024-10-27 01:30', 'Europe/Berlin')",
            "2024-10-27 01:00:00",
        ),
    ]);
}

#[test]
fn steps_begin_at_their_origin() {
    let at = "TIMESTAMP '2020-02-11 15:44:17'";
    let bin = |step: &str| format!("date_bin(INTERVAL '{step}', {at}, TIMESTAMP '2001-01-01')");
    assert_eq!(value(&bin("15 minutes")).as_deref(), Ok("2020-02-11 15:30:00"));
    expect(&[
        ("date_bin(INTERVAL '1 hour', TIMESTAMP '1999-01-01 10:59')", "1999-01-01 10:00:00"),
        ("time_bucket(INTERVAL '1 week', DATE '2024-02-29')", "2024-02-26 00:00:00"),
        (
            "date_bin(INTERVAL '15 minutes', TIMESTAMP '2020-02-11 15:44:17', \
             TIMESTAMP '2001-01-01 00:02:30')",
            "2020-02-11 15:32:30",
        ),
    ]);
}

#[test]
fn what_is_no_zone_or_step_is_refused_by_name() {
    for (expr, wanted) in [
        ("at AT TIME ZONE 'Europe/Nowhere'", "unknown time zone 'Europe/Nowhere'"),
        ("at AT TIME ZONE ''", "unknown time zone ''"),
        ("TIMESTAMP '2024-07-15 12:00 Mars/Base'", "unknown time zone 'Mars/Base'"),
        ("TIMESTAMP '2024-07-15 12:00Z Europe/Berlin'", "expected timestamp (UTC"),
        ("TIMESTAMP '20000-01-01' AT TIME ZONE 'Europe/Berlin'", "the year -9999 to 9999"),
        ("date_trunc('day', at, 'x/y')", "unknown time zone 'x/y'"),
        ("date_bin(INTERVAL '1 month', at)", "expected an interval without months"),
        ("date_bin(0, at)", "date_bin: expected a step above 0 microseconds, found 0"),
    ] {
        let found = rows(&format!("SELECT {expr} FROM t LIMIT 1"));
        let error = found.expect_err(expr);
        assert!(error.contains(wanted), "{expr}: {error}");
    }
}
