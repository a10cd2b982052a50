//! A database whose machine had a wrong clock: what shows that, and what takes it back.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::sync::Arc;

use crate::sandbox::Sandbox;
use crate::served::serve;
use esker::{DataType, Options, Schema, Value};
use esker_vfs::{Clock, Environment};

const HOUR_US: i64 = 3_600_000_000;

/// The clocks of this machine, with a wall clock that is a day ahead.
#[derive(Debug)]
struct DayAhead(Arc<dyn Clock>);

impl Clock for DayAhead {
    fn wall_us(&self) -> i64 {
        self.0.wall_us() + 24 * HOUR_US
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.monotonic_ns()
    }

    fn boottime_us(&self) -> i64 {
        self.0.boottime_us()
    }

    fn boot_id(&self) -> Option<u128> {
        self.0.boot_id()
    }
}

/// A database that was made while the wall clock was a day ahead. A row of it has expired by its
/// date, and has an hour to go by the clock that is right.
fn made_a_day_ahead(sandbox: &Sandbox) {
    let os = Environment::os();
    let environment = Environment { clock: Arc::new(DayAhead(Arc::clone(&os.clock))), ..os };
    let now_us = environment.clock.wall_us();
    let db = Options::new().environment(environment).open(sandbox.0.join("db")).unwrap();
    let schema =
        Schema::builder().field("id", DataType::I64).nullable("until", DataType::Timestamp);
    let schema = schema.primary_key(["id"]).expires_by("until").build().unwrap();
    let table = db.create_table("leases", schema).unwrap();
    for (id, until_us) in [(1i64, now_us - 23 * HOUR_US), (2, now_us + HOUR_US)] {
        table.insert(&[id.into(), Value::Timestamp(until_us)]).unwrap();
    }
    db.close().unwrap();
}

fn ids(sandbox: &Sandbox) -> String {
    sandbox.ok(&["sql", "db", "SELECT id FROM leases ORDER BY id", "--format", "csv"])
}

fn error_of(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.run_with(arguments, "");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_date_that_is_ahead_shows_and_is_taken_back() {
    let sandbox = Sandbox::new("clock-reset");
    made_a_day_ahead(&sandbox);
    let behind = "s behind the date that the database goes by";
    for command in ["info", "check"] {
        assert!(sandbox.ok(&[command, "db"]).contains(behind), "{command}");
    }
    let shown = sandbox.ok(&["clock", "show", "db"]);
    assert!(shown.contains(behind) && shown.contains("machine's clock  "), "{shown}");
    assert_eq!(ids(&sandbox), "id\n2\n");
    let said = error_of(&sandbox, &["clock", "reset", "db", "--dry-run"]);
    assert_eq!(said, "would end 1 row that had expired\n");
    assert!(sandbox.ok(&["clock", "show", "db"]).contains(behind));
    let (code, error) = sandbox.fails(&["clock", "reset", "db", "--restore"]);
    assert!(code == 2 && error.contains("has not moved forward"), "{code} {error}");
    let said = error_of(&sandbox, &["clock", "reset", "db"]);
    assert_eq!(said, "ended 1 row that had expired\n");
    assert!(!sandbox.ok(&["clock", "show", "db"]).contains(behind));
    assert_eq!(ids(&sandbox), "id\n2\n", "what has expired does not come back");
    assert_eq!(error_of(&sandbox, &["clock", "confirm", "db"]), "ended 0 rows that had expired\n");
}

#[test]
fn a_server_says_the_same_of_its_clock() {
    let sandbox = Sandbox::new("clock-server");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    for action in ["confirm", "reset"] {
        let command = ["clock", action, "--dry-run"];
        let output = sandbox.run_with(&[&["--connect", &url], &command[..]].concat(), "");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "would end 0 rows that had expired\n"
        );
    }
    let shown = sandbox.ok(&["--connect", &url, "clock", "show"]);
    assert!(shown.contains("elapsed time") && !shown.contains("behind"), "{shown}");
}
