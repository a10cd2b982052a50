//! Sums of events, by the view `totals`.
//!
//! ```text
//! from 10:20 to 14:40    [10:20 events | 11:00  12:00  13:00  totals | 14:00 events  14:40]
//! ```
//!
//! The view has the sums of whole hours, of events that have ended by their tier, too. What lies in
//! an hour at either end is summed of the events that are there.

use std::fmt::Write as _;

use esker::Value;

use crate::store::Filter;

const HOUR_NS: i64 = 3_600_000_000_000;

/// What is summed, as the view has it.
const SUMS: [(&str, &str); 7] = [
    ("count(*)", "event_count"),
    ("count(error)", "error_count"),
    ("sum(input_tokens)", "input_tokens"),
    ("sum(output_tokens)", "output_tokens"),
    ("sum(cache_read_input_tokens)", "cache_read_input_tokens"),
    ("sum(cache_creation_input_tokens)", "cache_creation_input_tokens"),
    ("sum(cost)", "cost_nanodollars"),
];

const KEYS: &str = "user_id, api_key_id, provider, model";

/// The statement that makes the view.
pub(crate) fn view() -> String {
    let groups = groups("true");
    format!(
        "CREATE MATERIALIZED VIEW IF NOT EXISTS totals WITH (retention = 'forever') AS {groups}"
    )
}

/// Groups of the events that meet a condition.
fn groups(condition: &str) -> String {
    let sums = SUMS.map(|(sum, name)| format!("{sum} AS {name}")).join(", ");
    let filter = if condition == "true" { String::new() } else { format!(" WHERE {condition}") };
    format!(
        "SELECT date_trunc('hour', t) AS hour, {KEYS}, {sums} FROM events{filter} \
         GROUP BY 1, 2, 3, 4, 5"
    )
}

/// Sums of what groups have, of each with a value where there is none.
pub(crate) fn sums() -> String {
    SUMS.map(|(_, name)| format!("coalesce(sum({name}), 0) AS {name}")).join(", ")
}

/// What some conditions let through, as groups of hours; with the values of its parameters.
pub(crate) fn of(filter: &Filter) -> (String, Vec<Value>) {
    let (equal, values) = filter.sql_of_fields();
    let first = filter.from.map(|from| from.div_euclid(HOUR_NS) + i64::from(from % HOUR_NS != 0));
    let last = filter.to.map(|to| to.saturating_add(1).div_euclid(HOUR_NS));
    if first.zip(last).is_some_and(|(first, last)| first > last) {
        // They lie in one hour.
        let (all, values) = filter.sql();
        return (groups(&all), values);
    }
    let hour = |hour: i64| Value::Timestamp(hour.saturating_mul(HOUR_NS / 1_000));
    let (mut text, mut all) = (format!("SELECT * FROM totals WHERE {equal}"), values.clone());
    for (sign, bound) in [(">=", first), ("<", last)] {
        if let Some(bound) = bound {
            // Writing to a text does not fail.
            let _ = write!(text, " AND hour {sign} ?");
            all.push(hour(bound));
        }
    }
    let begins = |hour: i64| hour.checked_mul(HOUR_NS);
    let before = filter.from.zip(first).filter(|(from, hour)| begins(*hour) != Some(*from));
    let behind = filter.to.zip(last).filter(|(to, hour)| begins(*hour) != to.checked_add(1));
    let ends = [
        before.map(|(from, first)| ("ts_ns >= ? AND t < ?", [Value::Int(from), hour(first)])),
        behind.map(|(to, last)| ("t >= ? AND ts_ns <= ?", [hour(last), Value::Int(to)])),
    ];
    for (condition, bounds) in ends.into_iter().flatten() {
        let rows = groups(&format!("{condition} AND {equal}"));
        let _ = write!(text, " UNION ALL {rows}");
        all.extend(bounds);
        all.extend(values.iter().cloned());
    }
    (text, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_times(from: Option<i64>, to: Option<i64>) -> String {
        of(&Filter { from, to, ..Filter::default() }).0
    }

    #[test]
    fn whole_hours_are_of_the_view_and_the_rest_of_events() {
        let whole = of_times(Some(HOUR_NS), Some(3 * HOUR_NS - 1));
        assert_eq!(whole, "SELECT * FROM totals WHERE true AND hour >= ? AND hour < ?");
        assert!(!of_times(None, None).contains("UNION"));
        let both = of_times(Some(HOUR_NS + 1), Some(3 * HOUR_NS + 5));
        assert_eq!(both.matches("UNION ALL").count(), 2, "{both}");
        let within = of_times(Some(HOUR_NS + 1), Some(HOUR_NS + 5));
        assert!(!within.contains("totals"), "{within}");
        assert!(of_times(Some(1), None).contains("t < ?"));
    }
}
