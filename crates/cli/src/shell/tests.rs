use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use esker::{DataType, Options, Schema};

use super::commands::{self, COMMANDS};
use super::session::{Next, Place, Session, trailing};
use super::words::Words;
use crate::Console;
use crate::remote::Remote;
use crate::sql::Settings;

fn session() -> Session {
    let database = Options::new().memory().unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("dep delay", DataType::I64)
        .primary_key(["id"])
        .build()
        .unwrap();
    database.create_table("flights", schema).unwrap();
    Session::new(&database, Place::default(), Settings::default(), &Arc::default())
}

/// What a line shows, on both streams, and what comes next.
fn take(session: &mut Session, line: &str) -> (String, String, Result<Next, String>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        is_terminal: true,
        size: Some((80, 24)),
        colors: false,
        is_merged: false,
    };
    let next = session.take(line, &mut console).map_err(|failure| failure.to_string());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(err), next)
}

#[test]
fn statements_and_commands() {
    let mut session = session();
    let (out, err, next) = take(&mut session, "INSERT INTO flights VALUES (1, 2), (3, NULL);");
    assert_eq!((out.as_str(), err.as_str(), next), ("", "added 2 rows\n", Ok(Next::Line)));
    let (out, _, _) = take(&mut session, "SELECT id FROM flights; SELECT count(*) FROM flights;");
    assert!(out.contains("id") && out.contains("count(*)"), "{out}");
    let (out, ..) = take(&mut session, "\\d");
    assert!(out.contains("flights"), "{out}");
    let (out, ..) = take(&mut session, "\\d flights;");
    assert!(out.contains("id i64 not null"), "{out}");
    take(&mut session, "CREATE SEQUENCE ids START 7;").2.unwrap();
    take(&mut session, "ALTER TABLE flights ALTER id SET DEFAULT nextval('ids');").2.unwrap();
    let (out, ..) = take(&mut session, "\\d");
    assert!(out.contains("ids") && out.contains('7'), "{out}");
    let (out, ..) = take(&mut session, "\\d flights");
    assert!(out.contains("default of id: nextval('ids')"), "{out}");
    let (out, ..) = take(&mut session, "\\timing");
    assert_eq!(out, "timing is on\n");
    let (_, err, _) = take(&mut session, "SELECT * FROM flights;");
    assert!(err.starts_with("2 rows, 2 scanned, "), "{err}");
    assert!(take(&mut session, "\\?").0.contains("\\timing"));
    assert_eq!(take(&mut session, "\\timeout").0, "timeout is off\n");
    assert_eq!(take(&mut session, "\\timeout 0ms").0, "timeout is 0 µs\n");
    let late = "the statement took longer than its timeout of 0 ms: try again with more time";
    for statement in ["SELECT id FROM flights;", "UPDATE flights SET \"dep delay\" = 1;"] {
        assert_eq!(take(&mut session, statement).2.unwrap_err(), late);
    }
    assert!(take(&mut session, "\\timeout soon").2.unwrap_err().contains("expected a time"));
    assert_eq!(take(&mut session, "\\timeout off").0, "timeout is off\n");
    assert_eq!(take(&mut session, "SELECT id FROM flights;").2, Ok(Next::Line));
    assert_eq!(take(&mut session, " \\q ").2, Ok(Next::End));
    assert_eq!(take(&mut session, "").2, Ok(Next::Line));
    let (_, _, next) = take(&mut session, "\\y");
    assert_eq!(next.unwrap_err(), "\\y: no such command; \\? lists them");
    let (_, _, next) = take(&mut session, "\\timng");
    assert_eq!(
        next.unwrap_err(),
        "\\timng: no such command; did you mean \\timing?; \\? lists them"
    );
    assert!(take(&mut session, "\\d nothing").2.unwrap_err().contains("nothing"));
}

#[test]
fn errors_show_the_place() {
    let mut session = session();
    let (_, _, next) = take(&mut session, "SELECT id,\n  idd FROM flights;");
    let wanted = "SELECT: unknown field \"idd\"; did you mean \"id\"?\n    idd FROM flights\n    \
                  ^^^";
    assert_eq!(next.unwrap_err(), wanted);
    let (_, _, next) = take(&mut session, "SELECT 1 FROM flihgts;");
    let wanted = "no table \"flihgts\"; did you mean \"flights\"?\n  SELECT 1 FROM flihgts\n  \
                  \u{20}             ^^^^^^^";
    assert_eq!(next.unwrap_err(), wanted);
    let (_, _, next) = take(&mut session, "SELECT FROM WHERE;");
    assert!(next.unwrap_err().ends_with("^^^^^"));
}

#[test]
fn words_are_completed() {
    let mut words = Words::default();
    ["flights", "from_city", "dep delay"].into_iter().for_each(|name| words.add(name));
    let functions = ["from_hex(", "from_base64("];
    for (line, keyword) in [("select * fr", "from"), ("SELECT * FR", "FROM")] {
        let (start, found) = words.complete(line, 11);
        assert_eq!(start, 9);
        assert_eq!(found, [["from_city", keyword], functions].concat());
    }
    assert_eq!(words.complete("SELECT dep", 10).1, ["\"dep delay\""]);
    assert!(words.complete("SELECT cou", 10).1.contains(&"count(".to_owned()));
    assert_eq!(words.complete("SELECT ", 7), (7, Vec::new()));
    assert_eq!(words.complete("x fli y", 5).1, ["flights"]);
}

#[test]
fn a_server_is_asked_as_a_database_is() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = Options::new().memory().unwrap();
    let served = database.clone();
    let server = runtime.block_on(async move {
        let authenticator = Arc::new(esker_server::auth::authenticator::Open::new(&served));
        let config = esker_server::ServerConfig::default();
        esker_server::Server::start(config, authenticator).await.unwrap()
    });
    let address = format!("esker://{}", server.address().unwrap());
    database
        .create_table("t", Schema::builder().field("n", DataType::I64).build().unwrap())
        .unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let remote = Remote::connect(&address, Arc::clone(&cancel)).unwrap();
    let place = (address.as_str(), "default");
    let mut session = Session::remote(remote, place, Settings::default(), &cancel).unwrap();
    let (_, err, _) = take(&mut session, "INSERT INTO t VALUES (1), (2);");
    assert_eq!(err, "added 2 rows\n");
    assert_eq!(take(&mut session, "\\timing").0, "timing is on\n");
    let (out, err, _) = take(&mut session, "SELECT sum(n) AS total FROM t;");
    assert!(out.contains("total") && err.starts_with("1 row, "), "{out}{err}");
    // Requests with idempotency keys have made it.
    database.create_bucket("esker_idempotency", &esker::BucketOptions::new()).unwrap();
    let (tables, ..) = take(&mut session, "\\d");
    assert!(!tables.contains("esker_"), "{tables}");
    assert!(tables.contains("│ t ") && tables.contains("key index"), "{tables}");
    let (fields, ..) = take(&mut session, "\\d t");
    assert!(fields.contains("n i64"), "{fields}");
    let (.., wrong) = take(&mut session, "SELECT m FROM t;");
    assert!(wrong.unwrap_err().contains("\"m\""));
    assert_eq!(take(&mut session, "BEGIN;").2, Ok(Next::Line));
    assert!(session.close().unwrap_err().to_string().contains("rolled back"));
    runtime.block_on(server.stop());
}

#[test]
fn words_of_other_shells_are_understood_or_explained() {
    let mut session = session();
    for end in ["exit", "quit;", "\\q", " exit "] {
        assert_eq!(take(&mut session, end).2, Ok(Next::End), "{end}");
    }
    let (help, _, next) = take(&mut session, "help");
    assert_eq!(next, Ok(Next::Line));
    for command in COMMANDS {
        assert!(command.names.iter().all(|name| help.contains(name)), "{:?}", command.names);
        assert!(command.names.iter().all(|name| commands::find(name).is_some()));
    }
    let (_, _, next) = take(&mut session, ".tables");
    assert_eq!(next.unwrap_err(), ".tables: no command here; \\dt lists the tables");
    let (_, _, next) = take(&mut session, "\\l x");
    assert_eq!(next.unwrap_err(), "\\l: expected nothing behind it, found \"x\"");
}

#[test]
fn what_there_is_is_listed() {
    let mut session = session();
    take(&mut session, "CREATE INDEX by_delay ON flights (\"dep delay\");").2.unwrap();
    take(&mut session, "CREATE SEQUENCE ids;").2.unwrap();
    assert!(take(&mut session, "\\dt").0.contains("flights"));
    assert!(!take(&mut session, "\\dt").0.contains("ids"));
    assert!(take(&mut session, "\\dt x").2.unwrap_err().contains("no table has"));
    let (indexes, ..) = take(&mut session, "\\di flights");
    assert!(indexes.contains("by_delay") && indexes.contains("dep delay"), "{indexes}");
    assert_eq!(take(&mut session, "\\di other").0, "no indexes\n");
    assert!(take(&mut session, "\\ds").0.contains("ids"));
    assert!(take(&mut session, "\\l").0.contains("tables"));
    let (place, ..) = take(&mut session, "\\conninfo");
    assert_eq!(place, "a database in memory, gone at the end\n");
}

#[test]
fn answers_look_as_they_are_set() {
    let mut session = session();
    take(&mut session, "INSERT INTO flights VALUES (1, NULL);").2.unwrap();
    assert_eq!(take(&mut session, "\\x").0, "expanded is on\n");
    assert_eq!(take(&mut session, "\\pset null '-'").0, "null is \"-\"\n");
    assert_eq!(take(&mut session, "\\pset counts on").0, "counts is on\n");
    let (out, ..) = take(&mut session, "SELECT * FROM flights;");
    assert_eq!(out, "── row 1 ──\nid        │ 1\ndep delay │ -\n(1 row)\n");
    assert_eq!(take(&mut session, "\\pset format csv").0, "format is csv\n");
    let (out, ..) = take(&mut session, "SELECT id FROM flights;");
    assert_eq!(out, "id\n1\n");
    let (all, ..) = take(&mut session, "\\pset");
    assert!(all.contains("rows      1,000") && all.contains("expanded  on"), "{all}");
    let wrong = take(&mut session, "\\pset nul x").2.unwrap_err();
    assert_eq!(wrong, "\\pset nul: no such setting; did you mean \"null\"?");
    assert!(take(&mut session, "\\x maybe").2.unwrap_err().contains("expected on or off"));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "what the shell reads and writes are real files")]
fn statements_run_again_and_go_to_files() {
    let dir = std::env::temp_dir().join(format!("esker-shell-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let mut session = session();
    assert!(take(&mut session, "\\g").2.unwrap_err().contains("no statement"));
    take(&mut session, "INSERT INTO flights VALUES (1, 2);").2.unwrap();
    take(&mut session, &format!("SELECT id FROM flights \\g {}", path("g.csv"))).2.unwrap();
    assert_eq!(read("g.csv"), "id\n1\n");
    assert!(take(&mut session, "\\g").0.contains("│ id"));
    assert!(take(&mut session, "\\watch 0 2").0.matches("│ id").count() == 2);
    take(&mut session, &format!("\\o {}", path("o.json"))).2.unwrap();
    assert_eq!(take(&mut session, "SELECT id FROM flights;").0, "");
    take(&mut session, "\\o").2.unwrap();
    assert_eq!(read("o.json"), "[\n{\"id\":1}\n]\n");
    let script = "-- a script\n\\timing on\nINSERT INTO flights\nVALUES (7, 8);\n\\d flights\n\
                  SELECT max(id)\nFROM flights;\nexit\nSELECT 9;\n";
    std::fs::write(dir.join("in.sql"), script).unwrap();
    let (out, err, next) = take(&mut session, &format!("\\i {}", path("in.sql")));
    assert_eq!(next, Ok(Next::End));
    assert!(out.contains("id i64 not null") && out.contains('7') && !out.contains('9'), "{out}");
    assert!(err.contains("added 1 row") && err.contains("scanned"), "{err}");
    std::fs::write(dir.join("bad.sql"), "SELECT 1;\nSELECT nme FROM flights;\n").unwrap();
    let (.., wrong) = take(&mut session, &format!("\\i {}", path("bad.sql")));
    let wrong = wrong.unwrap_err();
    assert!(wrong.contains("bad.sql: SELECT: unknown field") && wrong.contains("^^^"), "{wrong}");
    let to = format!("\\copy (SELECT id FROM flights ORDER BY id) to {}", path("c.csv"));
    assert!(take(&mut session, &to).0.starts_with("exported 2 rows"));
    assert_eq!(read("c.csv"), "id\n1\n7\n");
    let (out, ..) = take(&mut session, &format!("\\copy copied FROM {}", path("c.csv")));
    assert!(out.contains("loaded 2 rows into copied"), "{out}");
    take(&mut session, &format!("\\copy copied FROM {}", path("c.csv"))).2.unwrap();
    assert!(take(&mut session, "SELECT count(*) FROM copied;").0.contains('4'));
    assert!(take(&mut session, "\\copy copied").2.unwrap_err().contains("expected TABLE FROM"));
    let (.., wrong) = take(&mut session, &format!("\\copy copied FROM {} --no", path("c.csv")));
    assert!(wrong.unwrap_err().contains("options are those of `esker load`"));
    take(&mut session, "BEGIN;").2.unwrap();
    assert!(session.is_in_transaction());
    assert!(take(&mut session, "\\copy copied FROM x").2.unwrap_err().contains("COMMIT"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn commands_behind_statements_and_in_completion() {
    assert_eq!(trailing("SELECT 1 \\g"), Some(("SELECT 1", "\\g")));
    assert_eq!(trailing("SELECT 1;\\watch 1 2\n"), Some(("SELECT 1;", "\\watch 1 2")));
    assert_eq!(trailing("SELECT '\\g"), None);
    assert_eq!(trailing("SELECT 1 \\d"), None);
    let mut words = Words::default();
    words.add("flights");
    assert_eq!(words.complete("\\ti", 3).1, ["\\timing", "\\timeout"]);
    assert_eq!(words.complete("\\d fl", 5).1, ["flights"]);
    assert_eq!(words.complete("\\pset nu", 8), (6, vec!["null".to_owned()]));
    assert!(words.complete("\\timing o", 9).1.is_empty());
}
