//! What `GET /metrics` tells, and that the reference has all of it.

use std::collections::BTreeSet;

use super::client::Harness;

const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");

/// The names in the first column of the table.
fn documented() -> BTreeSet<&'static str> {
    let rows = REFERENCE.lines().filter_map(|line| line.strip_prefix("| `esker_"));
    let names = rows.filter_map(|row| row.split(['`', '{']).next());
    names.collect()
}

#[test]
fn the_reference_has_each_metric_and_no_other() {
    let server = Harness::new(&[]);
    let table = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", "/v1/databases/default/tables/t", table);
    for id in 0..5 {
        let path = format!("/v1/databases/default/tables/t/rows/{id}");
        assert_eq!(server.ask("PUT", &path, "{}").status, 201);
    }
    assert_eq!(server.ask("POST", "/v1/databases/default/compact", "").status, 200);
    let text = server.ask("GET", "/metrics", "").text();
    let told = text.lines().filter_map(|line| line.strip_prefix("# TYPE esker_"));
    let told: BTreeSet<&str> = told.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(told, documented());
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).trim().parse::<f64>().unwrap()
    };
    assert!(value("esker_fsync_duration_seconds_count{database=\"default\"}") >= 6.0);
    assert!(value("esker_fsync_duration_seconds_sum{database=\"default\"}") > 0.0);
    assert_eq!(value("esker_rows{database=\"default\"}"), 5.0);
}

#[test]
fn events_and_tails_are_counted() {
    let server = Harness::new(&[]);
    let create = r#"{"sql":"CREATE TABLE e (t timestamp NOT NULL, n i64) WITH (stream = 't')"}"#;
    assert_eq!(server.ask("POST", "/v1/databases/default/query", create).status, 200);
    let path = "/v1/databases/default/streams/e/events";
    let items = r#"[{"t":"2026-01-02","n":1},{"t":"2026-01-02","n":"x"},{"t":"2026-01-03"}]"#;
    assert_eq!(server.ask("POST", path, items).status, 207);
    assert_eq!(server.ask("POST", path, r#"{"t":"2026-01-02"}"#).status, 201);
    assert_eq!(server.ask("POST", path, r#"{"n":1}"#).status, 400);
    let text = server.ask("GET", "/metrics", "").text();
    for (name, value) in [
        ("esker_events_total", 3),
        ("esker_refused_events_total", 2),
        ("esker_waiting_event_bytes", 0),
        ("esker_tails", 0),
    ] {
        let line = format!("{name}{{database=\"default\"}} {value}");
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}
