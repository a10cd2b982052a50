//! Intervals: beside dates and timestamps, where SQLite has modifiers, and as what lies between
//! two of them.
//!
//! Days, hours, minutes and seconds are the same length in both. A month later is the last day of
//! a month that has no such day, which SQLite says by `floor`; a step of months is one modifier
//! there, since of two each would be cut. Intervals that are shown have no equivalent in SQLite.

use super::{Rule, rule};
use crate::value::Kind::{Bool, Date, Int, Small, Stamp};

pub(super) fn rules() -> Vec<Rule> {
    let lists = [moved(), by_number(), between(), compared()];
    lists.into_iter().flatten().collect()
}

/// Moments some time away.
fn moved() -> Vec<Rule> {
    vec![
        rule(Stamp, &[Stamp], "({0} + INTERVAL '3 days')", "datetime({0}, '+3 days')"),
        rule(Stamp, &[Stamp], "({0} - INTERVAL '2 hours')", "datetime({0}, '-2 hours')"),
        rule(Stamp, &[Stamp], "({0} + INTERVAL '-45 minutes')", "datetime({0}, '-45 minutes')"),
        rule(Stamp, &[Stamp], "(INTERVAL '100 seconds' + {0})", "datetime({0}, '+100 seconds')"),
        rule(
            Stamp,
            &[Stamp],
            "({0} + INTERVAL '1 day 02:03:04')",
            "datetime({0}, '+1 day', '+2 hours', '+3 minutes', '+4 seconds')",
        ),
        rule(Stamp, &[Date], "({0} + INTERVAL '36 hours')", "datetime({0}, '+36 hours')"),
        rule(Stamp, &[Date], "({0} - INTERVAL '1 second')", "datetime({0}, '-1 second')"),
        rule(
            Stamp,
            &[Stamp],
            "({0} - INTERVAL '1 year 2 months')",
            "datetime({0}, '-14 months', 'floor')",
        ),
        rule(
            Stamp,
            &[Stamp],
            "({0} + INTERVAL '1 month 1 day')",
            "datetime(datetime({0}, '+1 month', 'floor'), '+1 day')",
        ),
        rule(
            Stamp,
            &[Stamp],
            "({0} + (INTERVAL '1 day' - INTERVAL '30 minutes'))",
            "datetime({0}, '+1410 minutes')",
        ),
        rule(Date, &[Date], "CAST(({0} + INTERVAL '23:59:59') AS date)", "date({0})"),
    ]
}

/// The same by a number of units.
fn by_number() -> Vec<Rule> {
    vec![
        rule(
            Stamp,
            &[Stamp, Small],
            "({0} + {1} * INTERVAL '1 day')",
            "datetime({0}, {1} || ' days')",
        ),
        rule(
            Stamp,
            &[Stamp, Small],
            "({0} - INTERVAL '7 hours' * {1})",
            "datetime({0}, (-7 * {1}) || ' hours')",
        ),
        rule(
            Stamp,
            &[Date, Small],
            "({0} + {1} * INTERVAL '90 seconds')",
            "datetime({0}, (90 * {1}) || ' seconds')",
        ),
        rule(
            Stamp,
            &[Stamp, Small],
            "({0} + {1} * INTERVAL '1 month')",
            "datetime({0}, {1} || ' months', 'floor')",
        ),
        rule(
            Stamp,
            &[Stamp, Small],
            "({0} - {1} * INTERVAL '1 month')",
            "datetime({0}, (-{1}) || ' months', 'floor')",
        ),
    ]
}

const SECONDS: &str = "(unixepoch({0}) - unixepoch({1}))";

/// What lies between two moments.
fn between() -> Vec<Rule> {
    vec![
        rule(Int, &[Stamp, Stamp], "CAST(extract(epoch FROM ({0} - {1})) AS i64)", SECONDS),
        rule(
            Int,
            &[Stamp, Stamp],
            "CAST(extract(day FROM ({0} - {1})) AS i64)",
            "((unixepoch({0}) - unixepoch({1})) / 86400)",
        ),
        rule(
            Int,
            &[Stamp, Stamp],
            "CAST(date_part('hour', {0} - {1}) AS i64)",
            "((unixepoch({0}) - unixepoch({1})) % 86400 / 3600)",
        ),
        rule(
            Stamp,
            &[Stamp, Stamp],
            "({0} + ({1} - {0}))",
            "CASE WHEN {0} IS NOT NULL THEN datetime({1}) END",
        ),
    ]
}

/// Comparisons of intervals, and with moments some time away.
fn compared() -> Vec<Rule> {
    vec![
        rule(
            Bool,
            &[Stamp, Stamp],
            "(({0} - {1}) < INTERVAL '10 days')",
            "(unixepoch({0}) - unixepoch({1}) < 864000)",
        ),
        rule(
            Bool,
            &[Stamp, Stamp, Stamp],
            "(({0} - {1}) >= ({2} - {0}))",
            "(unixepoch({0}) - unixepoch({1}) >= unixepoch({2}) - unixepoch({0}))",
        ),
        rule(
            Bool,
            &[Stamp, Stamp, Small],
            "(({0} - {1}) = {2} * INTERVAL '24 hours')",
            "(unixepoch({0}) - unixepoch({1}) = 86400 * {2})",
        ),
        rule(
            Bool,
            &[Stamp, Stamp],
            "({0} + INTERVAL '1 month' > {1})",
            "(datetime({0}, '+1 month', 'floor') > datetime({1}))",
        ),
        rule(
            Bool,
            &[Date, Stamp],
            "({0} + INTERVAL '12 hours' <= {1})",
            "(datetime({0}, '+12 hours') <= datetime({1}))",
        ),
    ]
}
