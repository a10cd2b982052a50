use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use esker::{DataType, Limits, Options, Schema};

use super::session::{Next, Session};
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
    let limits = Limits::default();
    let settings = Settings { format: None, timing: false, explain: false, dry_run: false, limits };
    Session::new(database, settings)
}

/// What a line shows, on both streams, and what comes next.
fn take(session: &mut Session, line: &str) -> (String, String, Result<Next, String>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console =
        Console { out: &mut out, err: &mut err, is_terminal: true, size: Some((80, 24)) };
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
    let (_, _, next) = take(&mut session, "\\x");
    assert_eq!(next.unwrap_err(), "\\x: no such command; \\? lists them");
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
    assert_eq!(words.complete("select * fr", 11), (9, vec!["from_city".into(), "from".into()]));
    let (start, found) = words.complete("SELECT * FR", 11);
    assert_eq!((start, found), (9, vec!["from_city".to_owned(), "FROM".to_owned()]));
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
    let limits = Limits::default();
    let settings = Settings { format: None, timing: false, explain: false, dry_run: false, limits };
    let remote = Remote::connect(&address, Arc::clone(&cancel)).unwrap();
    let mut session = Session::remote(remote, settings);
    let (_, err, _) = take(&mut session, "INSERT INTO t VALUES (1), (2);");
    assert_eq!(err, "added 2 rows\n");
    assert_eq!(take(&mut session, "\\timing").0, "timing is on\n");
    let (out, err, _) = take(&mut session, "SELECT sum(n) AS total FROM t;");
    assert!(out.contains("total") && err.starts_with("1 row, "), "{out}{err}");
    let (tables, ..) = take(&mut session, "\\d");
    assert!(tables.contains("│ t ") && tables.contains("key index"), "{tables}");
    let (fields, ..) = take(&mut session, "\\d t");
    assert!(fields.contains("n i64"), "{fields}");
    let (.., wrong) = take(&mut session, "SELECT m FROM t;");
    assert!(wrong.unwrap_err().contains("\"m\""));
    assert_eq!(take(&mut session, "BEGIN;").2, Ok(Next::Line));
    assert!(session.close().unwrap_err().to_string().contains("rolled back"));
    runtime.block_on(server.stop());
}
