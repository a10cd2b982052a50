//! `esker load`: formats, options, duplicates and rejects, as a user meets them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

const SELECT: &str = "SELECT * FROM t ORDER BY id";
const ROWS: &str = "id,name\n1,Ada\n2,\n";

#[test]
fn all_formats_give_the_same_table() {
    let sandbox = Sandbox::new("formats");
    sandbox.write("a.csv", ROWS);
    sandbox.write("b.tsv", "name\tid\nAda\t1\n\t2\n");
    sandbox.write("c.ndjson", "{\"id\":1,\"name\":\"Ada\"}\n{\"id\":2,\"name\":null}\n");
    sandbox.write("d.jsonl", "{\"name\":\"Ada\",\"id\":1}\n{\"id\":2}\n");
    sandbox.write("e.json", "[\n  {\"id\": 1, \"name\": \"Ada\"},\n  {\"id\": 2}\n]\n");
    sandbox.write("f.json", "{\"1\": {\"name\": \"Ada\"}, \"2\": {}}");
    for file in ["a.csv", "b.tsv", "c.ndjson", "d.jsonl", "e.json", "f.json"] {
        let db = format!("{file}.db");
        sandbox.ok(&["load", &db, "t", file, "--key", "id"]);
        let statement = "SELECT id, name FROM t ORDER BY id";
        assert_eq!(sandbox.ok(&["sql", &db, statement]), ROWS, "{file}");
    }
    let from_stdin = ["load", "stdin.db", "t", "-", "--format", "ndjson", "--key", "id"];
    let shown = sandbox.ok_with(&from_stdin, &sandbox.read("c.ndjson"));
    assert!(shown.contains("loaded 2 rows into t"), "{shown}");
    assert_eq!(sandbox.ok(&["sql", "stdin.db", SELECT]), ROWS);
    let (code, error) = sandbox.fails(&["load", "db", "t", "a.csv", "-"]);
    assert_eq!((code, error.contains("standard input (-)")), (2, true), "{error}");
    let (code, error) = sandbox.fails(&["load", "db", "t", "a.csv", "b.tsv"]);
    assert_eq!((code, error.contains("--format")), (2, true), "{error}");
}

#[test]
fn several_files_are_one_load() {
    let sandbox = Sandbox::new("several");
    sandbox.write("1.csv", "id,name\n1,Ada\n");
    sandbox.write("2.csv", "name,id\nBo,2\n");
    sandbox.write("3.csv", "id,name\n3,Cy\nx,Dee\n");
    let shown = sandbox.ok(&["load", "db", "t", "1.csv", "2.csv", "--key", "id"]);
    assert!(shown.contains("loaded 2 rows into t"), "{shown}");
    assert_eq!(sandbox.ok(&["sql", "db", SELECT]), "id,name\n1,Ada\n2,Bo\n");
    let (code, error) = sandbox.fails(&["load", "db", "t", "--append", "3.csv"]);
    assert_eq!(code, 2);
    assert!(error.contains("3.csv:3: column 1 \"id\": expected i64"), "{error}");
    assert!(error.contains("nothing was loaded"), "{error}");
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM t"]), "n\n2\n");
}

#[test]
fn a_directory_is_no_file() {
    let sandbox = Sandbox::new("directory");
    let (code, error) = sandbox.fails(&["load", "db", "t", "."]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("directory"), "{error}");
    // The file was named twice.
    let (code, error) = sandbox.fails(&["load", "db", "t", "no/such.csv"]);
    assert_eq!((code, error.matches("no/such.csv").count()), (3, 1), "{error}");
}

#[test]
fn quotes_escapes_and_delimiters() {
    let sandbox = Sandbox::new("dialects");
    sandbox.write("a.csv", "id;name\n1;'it\\'s; so'\n2;\\N\n");
    let options = ["--delimiter", ";", "--quote", "'", "--escape", "\\", "--null", "\\N"];
    let load = [&["load", "db", "t", "a.csv", "--key", "id"], &options[..]].concat();
    sandbox.ok(&load);
    assert_eq!(sandbox.ok(&["sql", "db", SELECT]), "id,name\n1,it's; so\n2,\n");
    sandbox.write("b.tsv", "3\t\"x\n");
    sandbox.ok(&["load", "db", "t", "b.tsv", "--append", "--no-header", "--quote", "none"]);
    let statement = "SELECT name FROM t WHERE id = 3";
    assert_eq!(sandbox.ok(&["sql", "db", statement]), "name\n\"\"\"x\"\n");
    assert_eq!(sandbox.fails(&["load", "db", "u", "a.csv", "--quote", "ab"]).0, 2);
}

#[test]
fn duplicates_are_refused_skipped_or_replaced() {
    let sandbox = Sandbox::new("duplicates");
    sandbox.write("a.csv", "id,name\n1,Ada\n2,Bo\n");
    sandbox.write("b.csv", "id,name\n2,Bea\n3,Cy\n3,Cleo\n");
    for (db, policy, wanted) in [
        ("skip", "skip", "id,name\n1,Ada\n2,Bo\n3,Cy\n"),
        ("replace", "replace", "id,name\n1,Ada\n2,Bea\n3,Cleo\n"),
    ] {
        sandbox.ok(&["load", db, "t", "a.csv", "--key", "id"]);
        let (code, error) = sandbox.fails(&["load", db, "t", "b.csv", "--append"]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("id = 2") && error.contains("nothing was loaded"), "{error}");
        let shown = sandbox.ok(&["load", db, "t", "b.csv", "--append", "--on-duplicate", policy]);
        if policy == "skip" {
            assert!(shown.contains("loaded 1 row into t"), "{shown}");
            assert!(shown.contains("left out 2 rows whose key exists"), "{shown}");
        } else {
            assert!(shown.contains("loaded 3 rows into t"), "{shown}");
        }
        assert_eq!(sandbox.ok(&["sql", db, SELECT]), wanted);
    }
    // A new table is gone again when a load that replaces fails.
    sandbox.write("c.csv", "id,name\n1,Ada\nx,Bo\n");
    let schema = "id i64 not null, name text, primary key (id)";
    let load = ["load", "skip", "u", "c.csv", "--schema", schema, "--on-duplicate", "replace"];
    assert_eq!(sandbox.fails(&load).0, 2);
    assert_eq!(sandbox.fails(&["sql", "skip", "SELECT * FROM u"]).0, 3);
}

#[test]
fn rows_that_do_not_fit_are_written_down() {
    let sandbox = Sandbox::new("rejects");
    sandbox.write("a.csv", "id,n\n1,2\n2,x\n3\n4,\"5\"\n");
    sandbox.write("b.csv", "id,n\n5,\"a,b\"\n");
    let schema = "id i64 not null, n i32, primary key (id)";
    let load = ["load", "db", "t", "a.csv", "b.csv", "--schema", schema, "--on-error", "skip"];
    let shown = sandbox.ok(&[&load[..], &["--rejects", "bad.csv"]].concat());
    assert!(shown.contains("loaded 2 rows into t"), "{shown}");
    assert!(shown.ends_with("; rejected 3 rows that did not fit, see bad.csv\n"), "{shown}");
    assert_eq!(
        sandbox.read("bad.csv"),
        "file,line,reason,row\n\
         a.csv,3,\"column 2 \"\"n\"\": expected i32 (-2147483648 to 2147483647), \
         found \"\"x\"\"\",\"2,x\"\n\
         a.csv,4,\"expected 2 fields, found 1: nothing for column 2 \"\"n\"\"\",3\n\
         b.csv,2,\"column 2 \"\"n\"\": expected i32 (-2147483648 to 2147483647), \
         found \"\"a,b\"\"\",\"5,\"\"a,b\"\"\"\n"
    );
    // The file of rejects loads like any other.
    sandbox.ok(&["load", "db", "rejects", "bad.csv"]);
    let (code, error) = sandbox.fails(&[&load[..], &["--rejects", "bad.csv"]].concat());
    assert_eq!(code, 2);
    assert!(error.contains("exists"), "{error}");
    let stop = ["load", "db", "u", "a.csv", "--rejects", "new.csv"];
    assert_eq!(sandbox.fails(&stop).0, 2);
    assert!(!sandbox.exists("new.csv"));
}

#[test]
fn the_place_in_json_is_underlined() {
    let sandbox = Sandbox::new("underlined");
    sandbox.write("a.ndjson", "{\"id\":1,\"name\":\"x\"}\n{\"id\":2, \"nmae\":\"y\"}\n");
    let schema = "id i64 not null, name text";
    let load = ["load", "db", "t", "a.ndjson", "--schema", schema, "--unknown", "error"];
    let (code, error) = sandbox.fails(&load);
    assert_eq!(code, 2);
    assert_eq!(
        error,
        "error: a.ndjson:2: unknown field \"nmae\"; did you mean \"name\"?; nothing was loaded\n  \
         {\"id\":2, \"nmae\":\"y\"}\n           ^^^^^^\n"
    );
    sandbox.write("b.json", "{\"id\":2}\n{\"id\":3}\n");
    let (code, error) = sandbox.fails(&["load", "db", "t", "b.json", "--format", "json"]);
    assert_eq!(code, 2);
    assert!(error.contains("b.json:1: expected a row, an object"), "{error}");
    assert!(error.contains("--format ndjson"), "{error}");
}

/// The message named the row, counted from 0 and without the header.
#[test]
fn a_key_that_comes_again_is_named_by_its_line() {
    let sandbox = Sandbox::new("repeated");
    let load = |file: &str| {
        let (code, error) = sandbox.fails(&["load", "db", "t", file, "--key", "id"]);
        assert_eq!(code, 2, "{error}");
        error
    };
    sandbox.write("a.csv", "id,name\n1,\"x\ny\"\n\n2,z\n1,w\n");
    let error = load("a.csv");
    assert!(error.starts_with("error: a.csv:6: key id = 1 "), "{error}");
    sandbox.write("b.json", "[\n{\"id\": 1},\n{\n\"id\": 2},\n\n{\"id\": 1}]");
    let error = load("b.json");
    assert!(error.starts_with("error: b.json:6: key id = 1 "), "{error}");
    // So many rows are segments, not a commit.
    let rows: Vec<String> = (0..70_000).map(|i| format!("{i},x")).collect();
    sandbox.write("c.csv", format!("id,name\n{}\n69000,y\n", rows.join("\n")));
    let error = load("c.csv");
    assert!(error.starts_with("error: c.csv:70002: key id = 69000 comes twice"), "{error}");
}

/// A field that a row or a file does not have gets its default, as in INSERT; an explicit NULL
/// stays one, or is refused.
#[test]
fn fields_that_are_missing_get_their_defaults() {
    let sandbox = Sandbox::new("defaults");
    let create = "CREATE SEQUENCE ids START 10; CREATE TABLE t (id i64 PRIMARY KEY \
                  DEFAULT nextval('ids'), name text DEFAULT 'nobody', n u8 NOT NULL DEFAULT 3, \
                  note text)";
    sandbox.ok(&["sql", "db", create]);
    sandbox.write("a.ndjson", "{\"name\":\"Ada\"}\n{\"name\":null,\"n\":4}\n{\"id\":1}\n{}\n");
    sandbox.write("b.csv", "name,note\nBo,\n,x\n");
    sandbox.ok(&["load", "db", "t", "--append", "a.ndjson"]);
    sandbox.ok(&["load", "db", "t", "--append", "b.csv"]);
    let wanted =
        "id,name,n,note\n1,nobody,3,\n10,Ada,3,\n11,,4,\n12,nobody,3,\n13,Bo,3,\n14,,3,x\n";
    assert_eq!(sandbox.ok(&["sql", "db", SELECT]), wanted);
    sandbox.write("c.ndjson", "{\"id\":1,\"note\":\"y\"}\n");
    sandbox.ok(&["load", "db", "t", "--append", "--on-duplicate", "replace", "c.ndjson"]);
    let one = "SELECT * FROM t WHERE id = 1";
    assert_eq!(sandbox.ok(&["sql", "db", one]), "id,name,n,note\n1,nobody,3,y\n");
    sandbox.write("d.ndjson", "{\"n\":null}\n");
    let (code, error) = sandbox.fails(&["load", "db", "t", "--append", "d.ndjson"]);
    assert_eq!(code, 2);
    assert!(error.contains("field \"n\": the field is declared not null, found null"), "{error}");
    sandbox.write("e.csv", "name\nCy\n");
    sandbox.ok(&["sql", "db", "CREATE TABLE u (id i64 PRIMARY KEY, name text)"]);
    let (code, error) = sandbox.fails(&["load", "db", "u", "--append", "e.csv"]);
    assert_eq!(code, 2);
    assert!(error.contains("no column for field \"id\", which must have a value"), "{error}");
}
