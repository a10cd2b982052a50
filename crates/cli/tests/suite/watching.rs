//! `WATCH`: events of a stream as they arrive, in a directory, of a server, and in a terminal.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;
use crate::sandbox::served::Served;
use crate::terminal::Terminal;

const TABLE: &str = "CREATE TABLE events (t timestamp NOT NULL, n i64, what text) \
     WITH (stream = 't')";

fn fill(sandbox: &Sandbox, db: &str) {
    let rows = "INSERT INTO events VALUES ('2026-01-01', 1, 'a'), ('2026-01-02', 2, NULL), \
                ('2026-01-03', 3, 'c'), ('2026-01-04', 4, 'it''s')";
    sandbox.ok(&["sql", db, &format!("{TABLE}; {rows}")]);
}

#[test]
fn a_directory_and_a_server_tell_the_same() {
    let sandbox = Sandbox::new("watch");
    fill(&sandbox, "db");
    let served = Served::start(&sandbox, "1s");
    let url = format!("esker://{}", served.wire);
    fill(&sandbox, &url);
    for (statement, numbers) in [
        ("WATCH events AFTER start LIMIT 3", &[1, 2, 3][..]),
        ("watch events after 1 limit 1;", &[2]),
        ("WATCH events AFTER start WHERE n > 1 AND what IS NOT NULL LIMIT 1", &[3]),
        ("WATCH \"events\" AFTER start WHERE (n IN (1, 3)) LIMIT 2", &[1, 3]),
        ("WATCH events AFTER start WHERE what = 'it''s' OR \"n\" = 1 LIMIT 2", &[1, 4]),
        ("WATCH main.events AFTER start LIMIT 0", &[]),
    ] {
        let here = sandbox.ok(&["sql", "db", statement]);
        assert_eq!(sandbox.ok(&["sql", &url, statement]), here, "{statement}");
        let found = here.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().to_owned());
        let expected: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{statement}: {here}");
        assert!(here.is_empty() || here.starts_with("id,t,n,what\n01"), "{here}");
    }
    let json = sandbox.ok(&["sql", &url, "--format", "json", "WATCH events AFTER start LIMIT 1"]);
    assert!(json.starts_with("{\"id\":\"01") && json.contains("\"n\":1,"), "{json}");
    let table = ["--format", "table", "WATCH events AFTER 2 LIMIT 1"];
    for db in ["db", &url] {
        let shown = sandbox.ok(&[&["sql", db][..], &table].concat());
        assert!(shown.contains("┆ c ") && !shown.contains("(1 row)"), "{shown}");
    }
    let id = json.split('"').nth(3).unwrap();
    let after = format!("WATCH events AFTER '{id}' LIMIT 1");
    assert!(sandbox.ok(&["sql", &url, &after]).contains(",2,"));
    for (statement, code, expected) in [
        ("WATCH events AFTER 99", 2, "no event of stream \"events\" has the row id 99"),
        ("WATCH events AFTER soon", 2, "expected now, start, the id of an event, or its row id"),
        ("WATCH nowhere", 3, "no table \"nowhere\""),
        ("WATCH events GROUP BY n", 2, "expected WATCH stream [AFTER place]"),
        ("WATCH events WHERE m = 1", 2, "m"),
        ("WATCH (SELECT 1)", 2, "expected WATCH stream [AFTER place]"),
        ("WATCH", 2, ""),
        ("EXPLAIN WATCH events", 2, ""),
    ] {
        for db in ["db", &url] {
            let (found, error) = sandbox.fails(&["sql", db, statement]);
            assert!(found == code && error.contains(expected), "{db} {statement}: {found} {error}");
        }
    }
}

#[test]
fn a_script_ends_with_the_newest_event_of_a_directory() {
    let sandbox = Sandbox::new("watch-script");
    fill(&sandbox, "db");
    let told = sandbox.ok(&["sql", "db", "WATCH events AFTER start WHERE n < 3"]);
    assert_eq!(told.lines().count(), 3, "{told}");
    assert_eq!(sandbox.ok(&["sql", "db", "WATCH events; SELECT 7 AS n"]), "n\n7\n");
    let script = "\\pset format json\nWATCH events AFTER 2;\n";
    let told = sandbox.ok_with(&["db"], script);
    assert!(told.contains("\"n\":3") && !told.contains("\"n\":2"), "{told}");
}

#[test]
fn a_server_tells_events_as_they_arrive() {
    let sandbox = Sandbox::new("watch-live");
    let served = Served::start(&sandbox, "1s");
    let url = format!("esker://{}", served.wire);
    fill(&sandbox, &url);
    let mut watching = Command::new(env!("CARGO_BIN_EXE_esker"));
    watching.args(["sql", &url, "WATCH events AFTER 3 WHERE n > 10 LIMIT 2"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for n in [5, 11, 12] {
        sandbox.ok(&["sql", &url, &format!("INSERT INTO events VALUES (now(), {n}, 'x')")]);
        if n > 10 {
            if n == 11 {
                assert_eq!(lines.next().unwrap().unwrap(), "id,t,n,what");
            }
            assert!(lines.next().unwrap().unwrap().ends_with(&format!(",{n},x")));
        }
    }
    assert!(lines.next().is_none() && watching.wait().unwrap().success());
}

#[test]
fn what_has_no_way_to_tell_rows_as_they_arrive_says_so() {
    let sandbox = Sandbox::new("watch-refused");
    let served = Served::start(&sandbox, "1s");
    let url = format!("esker://{}", served.wire);
    fill(&sandbox, &url);
    let mut stream = std::net::TcpStream::connect(&served.wire).unwrap();
    let line = "{\"op\": \"sql\", \"sql\": \"WATCH events AFTER start\"}\n";
    std::io::Write::write_all(&mut stream, line.as_bytes()).unwrap();
    let mut told = String::new();
    BufReader::new(stream).read_line(&mut told).unwrap();
    assert!(told.contains("invalid_request") && told.contains("WATCH runs in the shell"), "{told}");
}

#[test]
fn ctrl_c_ends_it_in_the_shell() {
    if !Command::new("setsid").arg("--version").output().is_ok_and(|o| o.status.success()) {
        return;
    }
    let sandbox = Sandbox::new("watch-shell");
    let served = Served::start(&sandbox, "1s");
    let url = format!("esker://{}", served.wire);
    fill(&sandbox, &url);
    fill(&sandbox, "db");
    for db in ["db", &url] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.arg(db).current_dir(&sandbox.0).env("NO_COLOR", "1").env("PAGER", "cat");
        command.env("XDG_STATE_HOME", sandbox.0.join("state"));
        let mut terminal = Terminal::start(&command);
        terminal.wait("esker>");
        terminal.keys("WATCH events AFTER 2;\r");
        terminal.wait_for("┆ c ");
        if db != "db" {
            sandbox.ok(&["sql", db, "INSERT INTO events VALUES (now(), 4, 'late')"]);
            terminal.wait_for("late");
        }
        terminal.keys("\x03");
        terminal.wait("esker>");
        terminal.keys("SELECT 41 + 1 AS n;\r");
        let shown = terminal.wait("esker>");
        assert!(shown.contains("│ 42 │"), "{shown}");
        terminal.keys("exit\r");
        terminal.wait("");
        assert!(terminal.succeeded());
    }
}
