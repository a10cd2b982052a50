//! The program as a user runs it: output, errors and exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of its own for one test, removed at the end.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("esker-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(arguments).current_dir(&self.0).output().unwrap()
    }

    /// Runs what must succeed; standard output.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what must fail; the exit code and standard error, which is one line.
    fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?} succeeded");
        (output.status.code().unwrap(), error)
    }

    fn exists(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PEOPLE: &str = "name,born,height\nAda,1815,\nGrace,1906,1.68\n\"Edsger, W.\",1930,1.8\n";

fn people(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(name);
    sandbox.write("people.csv", PEOPLE);
    let shown = sandbox.ok(&["load", "db", "people", "people.csv", "--key", "name", "--strict"]);
    assert!(shown.starts_with("table people, inferred from all 3 rows;"), "{shown}");
    let schema =
        "  name text not null,\n  born i64 not null,\n  height f64,\n  primary key (name)\n";
    assert!(shown.contains(schema), "{shown}");
    assert!(shown.contains("loaded 3 rows into people in "), "{shown}");
    sandbox
}

#[test]
fn load_and_ask() {
    let sandbox = people("ask");
    let sql = "SELECT name, height FROM people WHERE born > 1900 ORDER BY name";
    assert_eq!(sandbox.ok(&["sql", "db", sql]), "name,height\n\"Edsger, W.\",1.8\nGrace,1.68\n");
    assert_eq!(
        sandbox.ok(&["sql", "db", sql, "--format", "json"]),
        "[\n{\"name\":\"Edsger, W.\",\"height\":1.8},\n{\"name\":\"Grace\",\"height\":1.68}\n]\n"
    );
    let table = sandbox.ok(&["sql", "db", sql, "--format", "table"]);
    assert!(table.contains("Edsger, W.") && table.contains("height"), "{table}");
    let timed = sandbox.run(&["sql", "db", sql, "--timing"]);
    let timing = String::from_utf8(timed.stderr).unwrap();
    assert!(timing.starts_with("2 rows, 3 scanned, "), "{timing}");
    assert!(!sandbox.ok(&["sql", "db", sql, "--explain"]).is_empty());
}

#[test]
fn what_is_asked_wrongly_is_named() {
    let sandbox = people("wrongly");
    let (code, error) = sandbox.fails(&["sql", "db", "SELECT nme FROM people"]);
    assert_eq!(code, 2);
    assert!(
        error.starts_with("error: ") && error.contains("nme") && error.contains("name"),
        "{error}"
    );
    let (code, error) = sandbox.fails(&["sql", "db", "SELECT 1 FROM people JOIN people"]);
    assert_eq!(code, 2);
    assert!(error.to_uppercase().contains("JOIN"), "{error}");
    let (code, error) = sandbox.fails(&["sql", "db", "SELECT * FROM pets"]);
    assert_eq!(code, 3);
    assert!(error.contains("pets"), "{error}");
    assert_eq!(sandbox.fails(&["sql", "db", "SELEC"]).0, 2);
    assert_eq!(sandbox.fails(&["sql", "nowhere", "SELECT * FROM people"]).0, 3);
    assert!(!sandbox.exists("nowhere"));
    assert_eq!(sandbox.fails(&["sql", "db"]).0, 2);
    assert_eq!(sandbox.fails(&["frobnicate"]).0, 2);
}

#[test]
fn a_bad_row_loads_nothing() {
    let sandbox = Sandbox::new("bad-row");
    sandbox.write("bad.csv", "id,n\n1,2\n2,x\n");
    let schema = "id i64 not null, n i32, primary key (id)";
    let load = ["load", "db", "t", "bad.csv", "--schema", schema];
    let (code, error) = sandbox.fails(&load);
    assert_eq!(code, 2);
    let wanted = "error: bad.csv:3: column 2 \"n\": expected i32 (-2147483648 to 2147483647), \
                  found \"x\"; nothing was loaded\n";
    assert_eq!(error, wanted);
    // The database that it made stays, without the table.
    let (code, error) = sandbox.fails(&["sql", "db", "SELECT * FROM t"]);
    assert_eq!(code, 3, "{error}");

    sandbox.write("good.csv", "id,n\n1,2\n");
    sandbox.ok(&["load", "db", "other", "good.csv"]);
    assert_eq!(sandbox.fails(&load).0, 2);
    assert_eq!(sandbox.fails(&["sql", "db", "SELECT * FROM t"]).0, 3);
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT * FROM other"]), "id,n\n1,2\n");
}

#[test]
fn a_failed_load_leaves_a_database_that_another_process_made() {
    let sandbox = Sandbox::new("made-meanwhile");
    // The schema is shown between looking for the database and opening it. So long a one fills
    // the pipe, and there the program stands until somebody reads.
    let columns: Vec<String> = (0..1000).map(|i| format!("{i:_>120}")).collect();
    let row = vec!["1"; columns.len()].join(",");
    sandbox.write("wide.csv", &format!("{}\n{row}\n{row}\n", columns.join(",")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["load", "db", "wide", "wide.csv", "--key", &columns[0]]);
    command.current_dir(&sandbox.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
    assert!(!sandbox.exists("db"));
    sandbox.write("people.csv", PEOPLE);
    sandbox.ok(&["load", "db", "people", "people.csv"]);
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.ends_with("; nothing was loaded\n"), "{error}");
    let count = sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM people"]);
    assert_eq!(count, "n\n3\n");
    assert_eq!(sandbox.fails(&["sql", "db", "SELECT 1 FROM wide"]).0, 3);
}

#[test]
fn a_key_given_twice_loads_nothing() {
    let sandbox = people("key-twice");
    sandbox.write("twice.csv", "id\n1\n2\n1\n");
    let (code, error) = sandbox.fails(&["load", "db", "twice", "twice.csv", "--key", "id"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("key") && error.ends_with("; nothing was loaded\n"), "{error}");
    assert_eq!(sandbox.fails(&["sql", "db", "SELECT * FROM twice"]).0, 3);
    let (code, error) = sandbox.fails(&["load", "db", "people", "people.csv", "--append"]);
    assert_eq!(code, 2, "{error}");
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM people"]), "n\n3\n");
}

#[test]
fn append_only_when_asked() {
    let sandbox = people("append");
    sandbox.write("more.csv", "height,name,born\n1.9,Niklaus,1934\n");
    let load = ["load", "db", "people", "more.csv"];
    let (code, error) = sandbox.fails(&load);
    assert_eq!(code, 2);
    assert!(error.contains("exists, with 3 rows; --append adds to it"), "{error}");
    sandbox.ok(&[&load[..], &["--append"]].concat());
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM people"]), "n\n4\n");
    let (code, _) = sandbox.fails(&["load", "db", "pets", "more.csv", "--append"]);
    assert_eq!(code, 3);
    let (code, _) = sandbox.fails(&["load", "db", "people", "nothing.csv", "--append"]);
    assert_eq!(code, 3);
    let (code, _) = sandbox.fails(&["load", "fresh", "people", "nothing.csv"]);
    assert_eq!((code, sandbox.exists("fresh")), (3, false));
}

#[test]
fn other_spellings_of_csv() {
    let sandbox = Sandbox::new("spellings");
    sandbox.write("t.tsv", "1\tNA\n2\t-\n3\tx\n");
    let flags = ["--no-header", "--delimiter", "\\t", "--null", "NA", "--null", "-"];
    sandbox.ok(&[&["load", "db", "t", "t.tsv"][..], &flags].concat());
    let rows = sandbox.ok(&["sql", "db", "SELECT * FROM t ORDER BY column1"]);
    assert_eq!(rows, "column1,column2\n1,\n2,\n3,x\n");
    let (code, error) = sandbox.fails(&["load", "db", "u", "t.tsv", "--delimiter", "ab"]);
    assert_eq!(code, 2);
    assert!(error.contains("--delimiter"), "{error}");
}

#[test]
fn get_by_key() {
    let sandbox = people("get");
    let row = sandbox.ok(&["get", "db", "people", "Ada"]);
    assert_eq!(row, "name    Ada\nborn    1815\nheight  null\n");
    let json = sandbox.ok(&["get", "db", "people", "Grace", "--format", "json"]);
    assert_eq!(json, "[\n{\"name\":\"Grace\",\"born\":1906,\"height\":1.68}\n]\n");
    let (code, error) = sandbox.fails(&["get", "db", "people", "Alan"]);
    assert_eq!(
        (code, error.as_str()),
        (3, "error: table \"people\" has no row with the key Alan\n")
    );
    assert_eq!(sandbox.fails(&["get", "db", "people", "Ada", "1815"]).0, 2);
    sandbox.write("n.csv", "id\n-5\n7\n");
    sandbox.ok(&["load", "db", "n", "n.csv", "--key", "id"]);
    assert_eq!(sandbox.ok(&["get", "db", "n", "-5"]), "id  -5\n");
    let (code, error) = sandbox.fails(&["get", "db", "n", "five"]);
    assert_eq!(code, 2);
    assert!(error.contains("key field \"id\": expected i64"), "{error}");
}

#[test]
fn info_of_a_stream_has_its_times_and_windows() {
    let sandbox = Sandbox::new("stream-info");
    let table = "CREATE TABLE e (t timestamp NOT NULL) WITH (stream = 't', window = '1 day')";
    sandbox.ok(&["sql", "db", table]);
    sandbox.ok(&["sql", "db", "INSERT INTO e VALUES ('2026-01-02 03:04:05'), ('2026-01-03')"]);
    let shown = sandbox.ok(&["info", "db", "e"]);
    for line in [
        "window: 1 day",
        "events from           2026-01-02 03:04:05",
        "events to             2026-01-03 00:00:00",
        "windows               0 windows",
        "row ids given         2",
        "next window ends      never",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn info_and_check() {
    let sandbox = people("info");
    let all = sandbox.ok(&["info", "db"]);
    assert!(all.contains("people") && all.contains('3'), "{all}");
    let one = sandbox.ok(&["info", "db", "people"]);
    assert!(one.contains("name text not null") && one.contains("primary key (name)"), "{one}");
    assert_eq!(sandbox.fails(&["info", "db", "pets"]).0, 3);
    let checked = sandbox.ok(&["check", "db"]);
    assert!(checked.contains("no problem"), "{checked}");
    assert_eq!(sandbox.fails(&["check", "nowhere"]).0, 3);
}

/// Flips one byte in the largest file: `check` must say so, and no query may answer wrongly.
#[test]
fn damage_is_found() {
    let sandbox = Sandbox::new("damage");
    let rows: String = (0..200_000).map(|i| format!("{i},{}\n", i * 7)).collect();
    sandbox.write("t.csv", &format!("a,b\n{rows}"));
    sandbox.ok(&["load", "db", "t", "t.csv"]);
    let sum = "SELECT sum(a), sum(b) FROM t";
    let before = sandbox.ok(&["sql", "db", sum]);
    let files = files_below(&sandbox.0.join("db"));
    let largest = files.iter().max_by_key(|f| f.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(largest, bytes).unwrap();
    let checked = sandbox.run(&["check", "db"]);
    let code = checked.status.code().unwrap();
    assert!(
        code == 1 || code == 5,
        "exit code {code}: {}",
        String::from_utf8_lossy(&checked.stdout)
    );
    let asked = sandbox.run(&["sql", "db", sum]);
    let answer = String::from_utf8(asked.stdout).unwrap();
    assert!(asked.status.code() == Some(5) || answer == before, "{answer}");
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { files_below(&p) } else { vec![p] }).collect()
}

#[test]
fn a_locked_database_says_so() {
    let sandbox = people("locked");
    let held = esker::Database::open(sandbox.0.join("db")).unwrap();
    let (code, error) = sandbox.fails(&["load", "db", "more", "people.csv"]);
    assert_eq!(code, 4, "{error}");
    let (code, _) = sandbox.fails(&["sql", "db", "SELECT * FROM people"]);
    assert_eq!(code, 4);
    held.close().unwrap();
    sandbox.ok(&["sql", "db", "SELECT * FROM people"]);
}

/// As in `esker sql … | head`.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let sandbox = people("pipe");
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["sql", "db", "SELECT * FROM people"]).current_dir(&sandbox.0);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.as_str()), (Some(0), ""));
}

#[test]
fn help_lists_exit_codes() {
    let sandbox = Sandbox::new("help");
    let help = sandbox.ok(&["--help"]);
    for code in 0..=6 {
        assert!(help.contains(&format!("\n  {code}  ")), "{help}");
    }
    assert!(sandbox.ok(&["load", "--help"]).contains("--schema"));
}

#[test]
fn quickstart_runs_twice() {
    let sandbox = Sandbox::new("quickstart");
    let first = sandbox.ok(&["quickstart"]);
    assert!(first.contains("336,776 × 19"), "{first}");
    assert!(first.contains("(8) ") && first.contains(" → "), "{first}");
    assert!(first.contains("Try next"), "{first}");
    let again = sandbox.ok(&["quickstart"]);
    assert!(again.contains("loaded by an earlier run"), "{again}");
}

#[test]
fn quickstart_leaves_an_empty_table_of_other_fields() {
    let sandbox = Sandbox::new("quickstart-other");
    sandbox.write("none.csv", "wings\n");
    sandbox.ok(&["load", "db", "airlines", "none.csv", "--schema", "wings u8 not null"]);
    let (code, error) = sandbox.fails(&["quickstart", "db"]);
    assert_eq!(code, 2, "{error}");
    let wanted = "error: table \"airlines\" exists, empty, with other fields than the example has: \
                  expected (carrier text not null, name text not null, primary key (carrier)), \
                  found (wings u8 not null); give another directory\n";
    assert_eq!(error, wanted);
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT wings FROM airlines"]), "wings\n");
}

#[test]
fn statements_change_a_database() {
    let sandbox = Sandbox::new("statements");
    let (code, error) = sandbox.fails(&["sql", "db", "INSERT INTO t VALUES (1)"]);
    assert_eq!(code, 3, "{error}");
    let said = |arguments: &[&str]| {
        let output = sandbox.run(arguments);
        assert!(output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let create = "CREATE TABLE IF NOT EXISTS t (id i64 PRIMARY KEY, at time)";
    assert_eq!(said(&["sql", "db", create]), "created table t\n");
    assert_eq!(said(&["sql", "db", create]), "table t exists already\n");
    let insert = "INSERT INTO t VALUES (1, '05:17'), (2, NULL)";
    assert_eq!(said(&["sql", "db", insert]), "added 2 rows\n");
    let (code, error) = sandbox.fails(&["sql", "db", insert]);
    assert_eq!((code, error.as_str()), (2, "error: row 1: key id = 1 exists already\n"));
    assert_eq!(said(&["sql", "db", "UPDATE t SET at = '06:00' WHERE id = 2"]), "changed 1 row\n");
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT max(at) FROM t"]), "max(at)\n06:00:00\n");
    assert_eq!(said(&["sql", "db", "DELETE FROM t WHERE id > 1"]), "removed 1 row\n");
    let returning = "INSERT INTO t (id) VALUES (7) RETURNING id * 2 AS twice";
    let output = sandbox.run(&["sql", "db", returning, "--dry-run"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "twice\n14\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "would add 1 row\n");
    assert_eq!(said(&["sql", "db", "DELETE FROM t", "--dry-run"]), "would remove 1 row\n");
    assert_eq!(said(&["sql", "db", "DROP TABLE t", "--dry-run"]), "would drop table t\n");
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM t"]), "n\n1\n");
    let (_, error) = sandbox.fails(&["sql", "db", "DROP TABLE t, u"]);
    assert!(error.contains("no table \"u\""), "{error}");
    assert_eq!(said(&["sql", "db", "DROP TABLE IF EXISTS t"]), "dropped table t\n");
    assert_eq!(said(&["sql", "db", "DROP TABLE IF EXISTS t"]), "no table t\n");
    let (code, error) = sandbox.fails(&["sql", "db", "DROP TABLE t"]);
    assert!(code == 3 && error.contains("no table"), "{error}");
    let (code, error) = sandbox.fails(&["sql", "--explain", "db", "DROP TABLE t"]);
    assert_eq!((code, error.as_str()), (2, "error: --explain is for SELECT\n"));
}

#[test]
fn what_is_not_a_database_is_named() {
    let sandbox = Sandbox::new("not-a-database");
    sandbox.write("file.csv", "id\n1\n");
    std::fs::create_dir(sandbox.0.join("empty")).unwrap();
    let (code, error) = sandbox.fails(&["check", "file.csv"]);
    assert_eq!((code, error.as_str()), (2, "error: file.csv: not an Esker database, but a file\n"));
    let (code, error) = sandbox.fails(&["check", "empty"]);
    assert_eq!((code, error.as_str()), (3, "error: empty: no database in this directory\n"));
    assert_eq!(std::fs::read_dir(sandbox.0.join("empty")).unwrap().count(), 0);
}

#[test]
fn a_header_that_is_not_text_is_refused() {
    let sandbox = Sandbox::new("header");
    std::fs::write(sandbox.0.join("a.csv"), b"id,na\xffme\n1,x\n").unwrap();
    let (code, error) = sandbox.fails(&["load", "db", "t", "a.csv"]);
    assert!(code == 2 && error.contains("a.csv:1: column 2"), "{error}");
    assert!(error.contains("expected a name in UTF-8"), "{error}");
}
