//! Files that statements read and write: `FROM 'x.csv'`, `COPY`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::process::Command;
use std::sync::Arc;

use esker::{ChangeOptions, Options, Value};
use esker_import::FileAccess;
use esker_sql::{Outcome, Session, Statement, parse_statement};
use esker_vfs::Environment;

use crate::sandbox::Sandbox;
use crate::served::{said, serve};

/// A session on a database in memory that reaches the files of a sandbox, and none beside it.
fn session(sandbox: &Sandbox) -> Session {
    let files = FileAccess::below(&Environment::os(), &sandbox.0);
    let options = Options::new().files(Arc::new(files));
    Session::new(&options.memory().unwrap())
}

fn ok(session: &mut Session, text: &str) -> Outcome {
    session.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The rows of an answer, a line each, with bars between values.
fn rows(session: &mut Session, text: &str) -> Vec<String> {
    let answer = ok(session, text).into_rows().unwrap();
    let text = |value: &Value| if value.is_null() { "NULL".to_owned() } else { value.to_string() };
    let row = |row: Vec<Value>| row.iter().map(text).collect::<Vec<_>>().join("|");
    answer.to_rows().into_iter().map(row).collect()
}

fn refused(session: &mut Session, text: &str) -> String {
    session.sql(text, ()).unwrap_err().to_string()
}

#[test]
fn a_file_is_read_where_a_table_is() {
    let sandbox = Sandbox::new("from-file");
    sandbox
        .write("people.csv", "\u{feff}id,name,born\r\n1,\"Ada, \"\"A\"\"\",1815-12-10\r\n2,,\r\n");
    sandbox.write("odd.txt", "x;y\n1,5;'a''b'\n2;NA\n");
    sandbox.write("lines.ndjson", "{\"id\":1,\"tags\":[1]}\n{\"id\":2,\"more\":true}\n");
    sandbox.write("all.json", "{\"rows\":[{\"a\":1},{\"a\":2}]}");
    let mut session = session(&sandbox);
    let found = rows(&mut session, "SELECT id, name, born FROM 'people.csv' ORDER BY id");
    assert_eq!(found, ["1|Ada, \"A\"|1815-12-10", "2|NULL|NULL"]);
    let found = rows(
        &mut session,
        "SELECT people.id, p.n FROM 'people.csv' JOIN (SELECT 1 AS n) p \
                                    ON people.id = p.n",
    );
    assert_eq!(found, ["1|1"]);
    let found = rows(
        &mut session,
        "SELECT x, y FROM read_csv('odd.txt', delim => ';', quote => '''', null => 'NA', \
         decimal => ',', header => true)",
    );
    assert_eq!(found, ["1.5|a'b", "2.0|NULL"]);
    let found = rows(&mut session, "SELECT id, tags, more FROM read_ndjson('lines.ndjson') l");
    assert_eq!(found, ["1|[1]|NULL", "2|NULL|true"]);
    let found = rows(&mut session, "SELECT sum(a) FROM read_json('all.json', path => '$.rows')");
    assert_eq!(found, ["3"]);
    let found = rows(&mut session, "SELECT * FROM read_csv('people.csv', schema => 'id u8')");
    assert_eq!(found[1], "2|NULL|NULL");
    // The same by queries as JSON, whose name it is.
    let answer = session.database().query_json(r#"{"table": "'people.csv'", "select": ["id"]}"#);
    assert_eq!(answer.unwrap().row_count(), 2);
    // Twice in one statement, in a subquery, explained, summarized, prepared, by a cursor.
    let twice = "SELECT count(*) FROM 'people.csv' a CROSS JOIN 'people.csv' b \
                 WHERE a.id IN (SELECT id FROM 'people.csv')";
    assert_eq!(rows(&mut session, twice), ["4"]);
    ok(&mut session, "EXPLAIN SELECT * FROM 'people.csv'");
    ok(&mut session, "SUMMARIZE SELECT * FROM 'people.csv'");
    ok(&mut session, "PREPARE p AS SELECT name FROM 'people.csv' WHERE id = ?");
    assert_eq!(rows(&mut session, "EXECUTE p(1)"), ["Ada, \"A\""]);
    ok(&mut session, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    ok(&mut session, "DECLARE c CURSOR FOR SELECT id FROM 'people.csv' ORDER BY id");
    sandbox.write("people.csv", "id\n7\n");
    assert_eq!(rows(&mut session, "FETCH ALL FROM c"), ["1", "2"]);
    assert_eq!(rows(&mut session, "SELECT * FROM 'people.csv'"), ["7"]);
    ok(&mut session, "CREATE TABLE copy AS SELECT * FROM 'people.csv'");
    ok(&mut session, "INSERT INTO copy SELECT id + 1 FROM 'people.csv'");
    ok(&mut session, "COMMIT");
    assert_eq!(rows(&mut session, "SELECT * FROM copy ORDER BY 1"), ["7", "8"]);
}

#[test]
fn what_is_no_file_of_rows_is_refused_with_its_place() {
    let sandbox = Sandbox::new("bad-file");
    sandbox.write("short.csv", "a,b\n1,2\n3\n");
    sandbox.write("open.csv", "a,b\n1,\"2\n3,4\n");
    sandbox.write("bytes.csv", [b'a', b'\n', 0xff, 0xfe, b'\n']);
    sandbox.write("zip.csv", [0x50, 0x4b, 3, 4, 0, 0, 0, 0]);
    sandbox.write("empty.csv", "");
    sandbox.write("head.csv", "a,b\n");
    sandbox.write("x.dat", "a\n1\n");
    let mut session = session(&sandbox);
    assert_eq!(rows(&mut session, "SELECT a FROM 'head.csv'").len(), 0);
    for (file, expected) in [
        ("short.csv", "short.csv:3: "),
        ("open.csv", "open.csv:2: "),
        ("bytes.csv", "bytes.csv"),
        ("zip.csv", "zip.csv"),
        ("empty.csv", "empty.csv"),
        ("none.csv", "none.csv: no such file"),
        ("x.dat", "x.dat: the name does not tell how the file is written"),
        ("../x.csv", "../x.csv: out of reach"),
        ("/etc/passwd.csv", "/etc/passwd.csv: out of reach"),
        ("", ": out of reach"),
        (".", ".: "),
    ] {
        let from = match file {
            "x.dat" => "'x.dat'".to_owned(),
            // Whether there are quotes is found out where it is not said.
            "open.csv" => "read_csv('open.csv', quote => '\"')".to_owned(),
            file => format!("read_csv('{file}')"),
        };
        let e = refused(&mut session, &format!("SELECT * FROM {from}"));
        assert!(e.starts_with(expected), "{file}: {e}");
        assert!(!e.contains(&sandbox.0.display().to_string()), "{e}");
    }
    let e = refused(&mut session, "SELECT * FROM read_csv('head.csv', headr => true)");
    assert_eq!(e, "read_csv: unknown option headr; did you mean \"header\"?");
    let e = refused(&mut session, "SELECT * FROM read_csv('head.csv', header => maybe)");
    assert_eq!(e, "read_csv: expected a text, a number, true or false, found `maybe`");
    let e = refused(&mut session, "SELECT * FROM read_csv('head.csv', header => 'maybe')");
    assert_eq!(e, "read_csv: header: expected true or false, found \"maybe\"");
    let e = refused(&mut session, "SELECT * FROM read_csv()");
    assert_eq!(e, "read_csv: expected a file: read_csv('…')");
    let e = refused(&mut session, "SELECT * FROM read_csv(1 + 1)");
    assert!(e.starts_with("read_csv: expected a text"), "{e}");
    let e = refused(&mut session, "CREATE VIEW v AS SELECT * FROM 'head.csv'");
    assert_eq!(e, "view \"v\": 'head.csv' is a file, which no view reads: load it into a table");
    let e = refused(&mut session, "UPDATE 'head.csv' SET a = 1");
    assert!(e.ends_with("'head.csv' is a file, which is only read"), "{e}");
    let e = refused(&mut session, "CREATE TABLE \"'head.csv'\" (a i64)");
    assert!(e.contains("is reserved: it is that of a file"), "{e}");
    let mut without = Session::new(&Options::new().memory().unwrap());
    let e = refused(&mut without, "SELECT * FROM 'head.csv'");
    assert!(e.starts_with("this database reaches no files"), "{e}");
}

#[test]
#[cfg(unix)]
fn no_link_leads_out_of_the_directory() {
    let (sandbox, beside) = (Sandbox::new("links"), Sandbox::new("beside"));
    beside.write("secret.csv", "a\n1\n");
    sandbox.write("own.csv", "a\n2\n");
    std::os::unix::fs::symlink(beside.0.join("secret.csv"), sandbox.0.join("link.csv")).unwrap();
    std::os::unix::fs::symlink(&beside.0, sandbox.0.join("dir")).unwrap();
    std::os::unix::fs::symlink("own.csv", sandbox.0.join("inner.csv")).unwrap();
    let fifo = Command::new("mkfifo").arg(sandbox.0.join("pipe.csv")).status().unwrap();
    assert!(fifo.success());
    let mut session = session(&sandbox);
    for path in ["link.csv", "dir/secret.csv"] {
        let e = refused(&mut session, &format!("SELECT * FROM '{path}'"));
        assert!(e.starts_with(&format!("{path}: out of reach")), "{e}");
    }
    let e = refused(&mut session, "COPY (SELECT 1) TO 'dir/new.csv'");
    assert!(e.starts_with("dir/new.csv: out of reach"), "{e}");
    assert!(!beside.exists("new.csv"));
    let e = refused(&mut session, "SELECT * FROM 'pipe.csv'");
    assert_eq!(e, "pipe.csv: expected a file");
    assert_eq!(rows(&mut session, "SELECT a FROM 'inner.csv'"), ["2"]);
    assert_eq!(rows(&mut session, "SELECT a FROM './own.csv'"), ["2"]);
}

#[test]
fn rows_are_copied_in_and_out_in_every_form() {
    let sandbox = Sandbox::new("copy");
    let mut session = session(&sandbox);
    ok(&mut session, "CREATE TABLE t (id i64 PRIMARY KEY, name text, price decimal(9, 2))");
    ok(
        &mut session,
        "INSERT INTO t VALUES (1, 'a \"b\", c', 1.5), (2, '', NULL), (3, NULL, -0.25), \
         (5, 'NULL', 7)",
    );
    session.sql("INSERT INTO t VALUES (4, ?, 0)", ("x\ny\tz\\N",)).unwrap();
    let all = "SELECT * FROM t ORDER BY id";
    let wanted = rows(&mut session, all);
    for (file, options) in [
        ("a.csv", ""),
        ("b.csv", "(HEADER)"),
        ("c.tsv", "WITH (HEADER true)"),
        ("d.csv", "WITH CSV HEADER DELIMITER ';' NULL AS 'NULL'"),
        ("e.out", "(FORMAT csv, QUOTE '''', ESCAPE '\\', NULL '-', HEADER MATCH)"),
        ("f.txt", "(FORMAT text)"),
        ("g.txt", "(FORMAT text, HEADER, DELIMITER '|', NULL 'NULL')"),
        ("h.ndjson", ""),
        ("i.json", ""),
        ("j.jsonl", "(FORMAT ndjson, ENCODING 'UTF-8')"),
    ] {
        let copied =
            ok(&mut session, &format!("COPY (SELECT * FROM t ORDER BY id) TO '{file}' {options}"));
        assert_eq!(copied, Outcome::Done("wrote 5 rows".to_owned()), "{file}");
        ok(&mut session, "DROP TABLE IF EXISTS u");
        ok(&mut session, "CREATE TABLE u (id i64 PRIMARY KEY, name text, price decimal(9, 2))");
        let text = sandbox.read(file);
        let added = session.sql(&format!("COPY u FROM '{file}' {options}"), ());
        let added = added.unwrap_or_else(|e| panic!("{file}: {e}\n{text}"));
        assert_eq!(added.rows_changed(), 5, "{file}");
        assert_eq!(rows(&mut session, "SELECT * FROM u ORDER BY id"), wanted, "{file}: {text}");
        // The same within a transaction, which can be taken back.
        ok(&mut session, "DELETE FROM u");
        ok(&mut session, "BEGIN");
        ok(&mut session, &format!("COPY u FROM '{file}' {options}"));
        assert_eq!(rows(&mut session, "SELECT * FROM u ORDER BY id"), wanted, "{file}: {text}");
        ok(&mut session, "ROLLBACK");
        assert_eq!(rows(&mut session, "SELECT count(*) FROM u"), ["0"]);
    }
    assert_eq!(sandbox.read("a.csv").lines().next(), Some("1,\"a \"\"b\"\", c\",1.50"));
    let text =
        "1\ta \"b\", c\t1.50\n2\t\t\\N\n3\t\\N\t-0.25\n4\tx\\ny\\tz\\\\N\t0.00\n5\tNULL\t7.00\n";
    assert_eq!(sandbox.read("f.txt"), text);
    // No file is written over, and none is left of a statement that fails.
    let e = refused(&mut session, "COPY t TO 'a.csv'");
    assert!(e.contains("a.csv") && e.contains("exists"), "{e}");
    refused(&mut session, "COPY (SELECT CAST(name AS i64) FROM t) TO 'bad.csv'");
    refused(&mut session, "COPY (SELECT nothing FROM t) TO 'bad.csv'");
    assert!(!sandbox.exists("bad.csv"));
}

#[test]
fn fields_that_are_listed_take_the_columns_in_their_order() {
    let sandbox = Sandbox::new("copy-fields");
    sandbox.write("two.csv", "x,1\r\ny,2\r\n");
    sandbox.write("named.csv", "word,id\nz,3\n");
    let mut session = session(&sandbox);
    ok(&mut session, "CREATE TABLE t (id i64 PRIMARY KEY, word text, n i64 DEFAULT 7)");
    assert_eq!(ok(&mut session, "COPY t (word, id) FROM 'two.csv'").rows_changed(), 2);
    assert_eq!(ok(&mut session, "COPY t FROM 'named.csv' WITH CSV HEADER").rows_changed(), 1);
    ok(&mut session, "BEGIN");
    sandbox.write("more.csv", "id,word\n4,w\n");
    ok(&mut session, "COPY t FROM 'more.csv' (HEADER)");
    ok(&mut session, "COMMIT");
    let found = rows(&mut session, "SELECT * FROM t ORDER BY id");
    assert_eq!(found, ["1|x|7", "2|y|7", "3|z|7", "4|w|7"]);
    ok(&mut session, "COPY t (n, word) TO 'out.csv' (HEADER)");
    assert_eq!(sandbox.read("out.csv").lines().next(), Some("n,word"));
    let e = refused(&mut session, "COPY t (nothing) FROM 'two.csv'");
    assert!(e.starts_with("unknown field \"nothing\""), "{e}");
    let e = refused(&mut session, "COPY nothing FROM 'two.csv'");
    assert!(e.starts_with("no table \"nothing\""), "{e}");
}

#[test]
fn a_bad_line_changes_nothing_and_is_named() {
    let sandbox = Sandbox::new("copy-bad");
    sandbox.write("bad.csv", "1,a\n2,b\nx,c\n");
    sandbox.write("twice.csv", "1,a\n2,b\n1,c\n");
    sandbox.write("short.txt", "1\ta\n2\n");
    sandbox.write("crlf.txt", "1\ta\r\n2\t\\N\r\n\\.\r\nnot read");
    let mut session = session(&sandbox);
    ok(&mut session, "CREATE TABLE t (id i64 PRIMARY KEY, word text)");
    for begin in ["", "BEGIN"] {
        if !begin.is_empty() {
            ok(&mut session, begin);
        }
        let e = refused(&mut session, "COPY t FROM 'bad.csv'");
        assert!(e.starts_with("bad.csv:3: column 1 \"id\": expected i64"), "{e}");
        let e = refused(&mut session, "COPY t FROM 'twice.csv'");
        assert!(e.starts_with("twice.csv:3: "), "{e}");
        let e = refused(&mut session, "COPY t FROM 'short.txt' (FORMAT text)");
        assert!(e.starts_with("short.txt:2: "), "{e}");
        assert_eq!(rows(&mut session, "SELECT count(*) FROM t"), ["0"]);
        if !begin.is_empty() {
            ok(&mut session, "ROLLBACK");
        }
    }
    assert_eq!(ok(&mut session, "COPY t FROM 'crlf.txt' (FORMAT text)").rows_changed(), 2);
    assert_eq!(rows(&mut session, "SELECT * FROM t ORDER BY id"), ["1|a", "2|NULL"]);
    let dry = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    sandbox.write("more.csv", "8,x\n9,y\n");
    let statement = parse_statement("COPY t FROM 'more.csv'").unwrap();
    assert_eq!(session.run(&statement, &dry).unwrap().rows_changed(), 2);
    assert_eq!(rows(&mut session, "SELECT count(*) FROM t"), ["2"]);
    let huge = format!("1{}\n", "x".repeat(40 << 20));
    sandbox.write("huge.txt", huge);
    let e = refused(&mut session, "COPY t FROM 'huge.txt' (FORMAT text)");
    assert!(e.contains("a field has more than"), "{e}");
}

#[test]
fn options_of_copy_are_read_or_refused_by_name() {
    for (text, expected) in [
        ("COPY t FROM 'x' (FORMAT parquet)", "COPY: format parquet: expected one of csv, text"),
        ("COPY t FROM 'x' (FORMATT csv)", "COPY: unknown option formatt; did you mean \"format\"?"),
        ("COPY t FROM 'x' WITH BINARY", "COPY: format binary: expected one of"),
        ("COPY t FROM 'x' (ENCODING 'latin1')", "COPY: encoding latin1: files are UTF-8"),
        ("COPY t FROM PROGRAM 'ls'", "COPY: PROGRAM is not supported"),
        ("COPY t FROM STDOUT", "COPY: expected STDIN, found STDOUT"),
        ("COPY t TO STDIN", "COPY: expected STDOUT, found STDIN"),
        ("COPY (SELECT 1) FROM 'x'", "COPY (…) FROM: expected the name of a table"),
        ("COPY t FROM 'x' (FORMAT csv, FORMAT text)", "COPY: format is said twice"),
        ("COPY t FROM 'x' (DELIMITER)", "COPY: delimiter: expected a value"),
        ("COPY t", "Expected: FROM or TO"),
        ("COPY t FROM x.csv", "Expected: 'file' or STDIN"),
        ("COPY t FROM 'x' (FORMAT csv) rest", "Expected: the end"),
        ("COPY (DELETE FROM t) TO 'x'", "this"),
    ] {
        let e = parse_statement(text).unwrap_err().to_string();
        let is_any = expected == "this";
        assert!(is_any || e.starts_with(expected), "{text}: {e}");
    }
    for text in [
        "copy t from stdin",
        "COPY main.t (a, \"b c\") FROM STDIN WITH (FORMAT 'csv', HEADER off, NULL '')",
        "COPY t TO STDOUT DELIMITERS ',' CSV QUOTE AS '\"' ESCAPE AS '\\';",
        "COPY (WITH a AS (SELECT 1) SELECT * FROM a) TO STDOUT CSV",
    ] {
        let statement = parse_statement(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let is_standard =
            |said: &Statement| matches!(said, Statement::Copy(copy) if copy.file().is_standard);
        assert!(is_standard(statement.said()), "{text}");
    }
}

#[test]
fn the_program_copies_standard_input_and_output() {
    let sandbox = Sandbox::new("copy-std");
    sandbox.ok(&["sql", "db", "CREATE TABLE t (id i64 PRIMARY KEY, word text)"]);
    let load = ["sql", "db", "COPY t FROM STDIN WITH CSV HEADER"];
    let output = sandbox.run_with(&load, "word,id\n\"a,b\",1\nc,2\n");
    assert_eq!(said(&output), (Some(0), String::new(), "added 2 rows\n".to_owned()));
    let output = sandbox.run_with(&["sql", "db", "COPY t TO STDOUT"], "");
    let text = "1\ta,b\n2\tc\n".to_owned();
    assert_eq!(said(&output), (Some(0), text, "wrote 2 rows\n".to_owned()));
    let csv =
        sandbox.ok(&["sql", "db", "COPY (SELECT word FROM t) TO STDOUT (FORMAT csv, HEADER)"]);
    assert_eq!(csv, "word\n\"a,b\"\nc\n");
    let output = sandbox.run_with(&load, "word,id\nx,much\n");
    let (code, _, error) = said(&output);
    assert_eq!(code, Some(2));
    assert!(error.contains("STDIN:2: column 2 \"id\": expected i64"), "{error}");
    let output = sandbox.run_with(&["sql", "db"], "COPY t FROM STDIN;\n3\tx\n\\.\n");
    assert_eq!(said(&output).0, Some(2));
    // Any file of the user, and one that is only read by its path.
    sandbox.write("x.csv", "id,word\n5,five\n");
    let found =
        sandbox.ok(&["sql", "db", "SELECT word FROM './x.csv' WHERE id = 5", "--format", "csv"]);
    assert_eq!(found, "word\nfive\n");
    let path = sandbox.0.join("x.csv").display().to_string();
    sandbox.ok(&["sql", "db", &format!("COPY t FROM '{path}' CSV HEADER")]);
    let script = "\\copy (SELECT * FROM t ORDER BY id) TO 'out.csv' CSV\n\
                  \\copy t (word, id) FROM 'more.csv' WITH (FORMAT csv)\n";
    sandbox.write("more.csv", "six,6\n");
    sandbox.ok_with(&["sql", "db"], script);
    assert_eq!(sandbox.read("out.csv"), "1,\"a,b\"\n2,c\n5,five\n");
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM t"]), "n\n4\n");
}

#[test]
fn a_server_reaches_files_below_its_directory_for_administrators() {
    let sandbox = Sandbox::new("copy-served");
    std::fs::create_dir(sandbox.0.join("shared")).unwrap();
    std::fs::create_dir(sandbox.0.join("served")).unwrap();
    sandbox.write("shared/x.csv", "id,word\n1,a\n2,b\n");
    sandbox.write("beside.csv", "id\n1\n");
    let token = |name: &str, scope: &str| {
        let create = ["token", "create", "served", "--name", name, "--scope", scope];
        sandbox.ok(&create).trim().to_owned()
    };
    let (admin, writer) = (token("a", "admin"), token("w", "write"));
    let (_served, url) = serve(&sandbox, &["--files-dir", "shared"]);
    let ask = |token: &str, text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command
            .args(["--connect", &url, "sql", text])
            .env("ESKER_TOKEN", token)
            .current_dir(&sandbox.0);
        said(&command.output().unwrap())
    };
    assert_eq!(ask(&admin, "CREATE TABLE t (id i64 PRIMARY KEY, word text)").0, Some(0));
    let (code, _, error) = ask(&admin, "COPY t FROM 'x.csv' CSV HEADER");
    assert_eq!((code, error.as_str()), (Some(0), "added 2 rows\n"));
    let (code, found, _) = ask(&admin, "SELECT count(*) AS n FROM 'x.csv' JOIN t ON t.id = x.id");
    assert_eq!((code, found.as_str()), (Some(0), "n\n2\n"));
    assert_eq!(ask(&admin, "COPY t TO 'out.csv' (HEADER)").0, Some(0));
    assert_eq!(sandbox.read("shared/out.csv"), "id,word\n1,a\n2,b\n");
    for text in ["SELECT * FROM '../beside.csv'", "SELECT * FROM '/etc/passwd'"] {
        let (code, _, error) = ask(&admin, text);
        assert!(code == Some(2) && error.contains("out of reach"), "{text}: {error}");
    }
    for text in [
        "SELECT * FROM 'x.csv'",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM 'x.csv')",
        "INSERT INTO t SELECT id + 10, word FROM 'x.csv'",
        "COPY t FROM 'x.csv' CSV HEADER",
        "COPY t TO 'other.csv'",
    ] {
        let (code, _, error) = ask(&writer, text);
        assert!(code == Some(2), "{text}: {error}");
        assert!(error.contains("admin") || error.contains("no files"), "{text}: {error}");
    }
    assert!(!sandbox.exists("shared/other.csv"));
    for (token, is_admin) in [(&admin, true), (&writer, false)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(["--connect", &url, "query", r#"{"table": "'x.csv'", "select": ["id"]}"#]);
        let asked = command.env("ESKER_TOKEN", token).current_dir(&sandbox.0).output().unwrap();
        assert_eq!(asked.status.success(), is_admin, "{}", said(&asked).2);
    }
    let (_, _, error) = ask(&admin, "COPY t FROM STDIN");
    assert!(error.contains("STDIN is of the program"), "{error}");
    // What a session keeps is kept for the statements behind it.
    let (code, found, error) = ask(
        &writer,
        "PREPARE p (i64) AS SELECT word FROM t WHERE id = $1; EXECUTE p(2); DEALLOCATE p; BEGIN; \
         DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 1 FROM c; FETCH ALL FROM c; \
         LOCK TABLE t; COMMIT",
    );
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(found, "word\nb\nid\n1\nid\n2\n");
    assert_eq!(ask(&admin, "VACUUM t; ANALYZE t; CHECKPOINT").0, Some(0));
    assert_eq!(ask(&writer, "CHECKPOINT").0, Some(2));
}

#[test]
fn a_file_without_rows_is_read_as_it_was_written() {
    let sandbox = Sandbox::new("no-rows");
    let mut session = session(&sandbox);
    ok(&mut session, "CREATE TABLE t (id i64 PRIMARY KEY, name text)");
    for (file, options) in [
        ("empty.csv", "(FORMAT csv)"),
        ("empty.txt", "(FORMAT text)"),
        ("empty.ndjson", "(FORMAT ndjson)"),
        ("empty.json", "(FORMAT json)"),
        ("header.csv", "(FORMAT csv, HEADER)"),
    ] {
        ok(&mut session, &format!("COPY t TO '{file}' {options}"));
        let outcome = ok(&mut session, &format!("COPY t FROM '{file}' {options}"));
        assert_eq!(outcome.rows_changed(), 0, "{file}");
    }
    sandbox.write("nothing.csv", "");
    let e = refused(&mut session, "COPY t FROM 'nothing.csv' (FORMAT csv, HEADER)");
    assert!(e.contains("expected a header line"), "{e}");
    let Statement::Copy(copy) = parse_statement("COPY t FROM STDIN (FORMAT csv)").unwrap() else {
        panic!("it is no COPY");
    };
    let options = ChangeOptions::default();
    let none = session.copy_in(&copy, Box::new(&b""[..]), &options).unwrap();
    assert_eq!(none.rows_changed(), 0);
    let one = session.copy_in(&copy, Box::new(&b"1,one\n"[..]), &options).unwrap();
    assert_eq!(one.rows_changed(), 1);
}
