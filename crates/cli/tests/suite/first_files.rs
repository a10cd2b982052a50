//! Files as people have them, each loaded as one who does not know the program would.

use std::process::{Command, Stdio};

use crate::real_files::{Outcome, kinds};
use crate::sandbox::Sandbox;

/// The fields of a table, as `load` shows them.
fn fields(shown: &str) -> String {
    let fields = shown.lines().filter_map(|line| line.strip_prefix("  "));
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_kind_loads_or_says_what_it_is() {
    let sandbox = Sandbox::new("kinds");
    let kinds = kinds();
    assert!(kinds.len() >= 40);
    for (number, kind) in kinds.iter().enumerate() {
        sandbox.write(kind.name, &kind.bytes);
        let (table, name) = (format!("t{number}"), kind.name);
        let load = [&["load", "db", &table, name][..], kind.arguments].concat();
        match kind.outcome {
            Outcome::Loads(rows, schema) => {
                let shown = sandbox.ok(&load);
                assert_eq!(fields(&shown), schema, "{name}: {shown}");
                let select = format!("SELECT count(*) AS n FROM {table}");
                assert_eq!(sandbox.ok(&["sql", "db", &select]), format!("n\n{rows}\n"), "{name}");
            }
            Outcome::Refused(reason) => {
                let (code, error) = sandbox.fails(&load);
                assert_eq!(code, 2, "{name}: {error}");
                assert!(error.contains(reason), "{name}: {error}");
                assert_eq!(error.matches(name).count(), 1, "the file is named once: {error}");
            }
        }
    }
}

#[test]
fn what_is_not_as_in_the_file_is_said() {
    let sandbox = Sandbox::new("said");
    sandbox.write("a.csv", "a;a;\n1;x;\nNA;y;\n");
    let shown = sandbox.ok(&["load", "db", "t", "a.csv"]);
    for said in [
        "read as CSV: delimiter ';', quote \", with a header\n",
        "note: column 2 repeats \"a\": a_2\n",
        "note: column 3 has no name and no value: left out\n",
        "note: a would be i64 but for \"NA\": --null NA makes that NULL\n",
    ] {
        assert!(shown.contains(said), "{said}{shown}");
    }
    sandbox.write("more.csv", "a,b,c\n1,x,2\n");
    sandbox.write("fewer.csv", "a\n1\n");
    let (code, error) = sandbox.fails(&["load", "db", "t", "more.csv", "--append"]);
    assert_eq!(code, 2);
    assert!(error.contains("columns \"b\", \"c\" that the schema has not"), "{error}");
    assert!(error.contains("--unknown ignore"), "{error}");
    let shown = sandbox.ok(&["load", "db", "t", "fewer.csv", "--append"]);
    assert!(shown.contains("note: no column for a_2: default values"), "{shown}");
}

/// Not null was inferred, so that the next file of the same kind was refused.
#[test]
fn not_null_is_inferred_on_request() {
    let sandbox = Sandbox::new("strict");
    sandbox.write("a.csv", "a,b\n1,x\n");
    sandbox.write("b.csv", "a,b\n,y\n");
    sandbox.ok(&["load", "db", "t", "a.csv"]);
    sandbox.ok(&["load", "db", "t", "b.csv", "--append"]);
    let shown = sandbox.ok(&["load", "db", "u", "a.csv", "--strict"]);
    assert_eq!(fields(&shown), "a i64 not null, b text not null");
    assert_eq!(sandbox.fails(&["load", "db", "u", "b.csv", "--append"]).0, 2);
}

/// Types were those of the first rows, and the load ended at the first row that had another.
#[test]
fn a_late_row_widens_the_types() {
    let sandbox = Sandbox::new("late");
    let row = |n: usize| format!("{n},{}\n", "x".repeat(700));
    let mut text = String::from("id,note\n");
    (0..101_000).for_each(|n| text.push_str(&row(n)));
    text.push_str("007,y\n");
    sandbox.write("a.csv", &text);
    let shown = sandbox.ok(&["load", "db", "t", "a.csv"]);
    assert!(shown.contains("table t, inferred from the first "), "{shown}");
    assert!(
        shown.contains("a.csv:101002: column 1 \"id\": \"007\" is written otherwise"),
        "{shown}"
    );
    assert!(shown.contains("once more, with types that hold all rows"), "{shown}");
    assert!(shown.contains("table t, inferred from all 101,001 rows"), "{shown}");
    assert!(shown.contains("loaded 101,001 rows into t"), "{shown}");
    let select = "SELECT count(*) AS n FROM t WHERE id = '007'";
    assert_eq!(sandbox.ok(&["sql", "db", select]), "n\n1\n");
    // By a pipe, which is kept meanwhile; and with rows that are none.
    let broken = text.replace("\n5,", "\n5,,");
    let piped = ["load", "db", "u", "-", "--on-error", "skip", "--rejects", "bad.csv"];
    let shown = sandbox.ok_with(&piped, &broken);
    assert!(shown.contains("loaded 101,000 rows into u"), "{shown}");
    assert!(shown.contains("rejected 1 row"), "{shown}");
    assert!(sandbox.read("bad.csv").contains("expected 2 fields, found 3"));
}

/// No row was loaded, and the exit code was 0.
#[test]
fn a_load_without_a_row_that_fits_fails() {
    let sandbox = Sandbox::new("none_fits");
    sandbox.write("a.csv", "a\nx\ny\n");
    let load = ["load", "db", "t", "a.csv", "--schema", "a i64", "--on-error", "skip"];
    let (code, error) = sandbox.fails(&load);
    assert_eq!(code, 2);
    assert!(error.contains("no row fits, of 2 rows; the first: a.csv:2: column 1"), "{error}");
    assert_eq!(sandbox.fails(&["sql", "db", "SELECT * FROM t"]).0, 3);
}

/// `Illegal seek`, three times.
#[test]
fn pipes_are_read() {
    let sandbox = Sandbox::new("pipes");
    sandbox.write("a.csv", "a,b\n1,x\n");
    let program = env!("CARGO_BIN_EXE_esker");
    for (table, command) in [
        ("t", "cat a.csv | esker load db t --format csv /dev/stdin"),
        ("u", "mkfifo ff; (cat a.csv > ff &); esker load db u --format csv ff"),
        ("v", "cat a.csv | esker load db v --schema 'a i64, b text' /dev/stdin"),
        ("w", "mkfifo gg; (cat a.csv > gg &); esker load db w a.csv gg"),
    ] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command.replace("esker ", &format!("{program} ")));
        shell.current_dir(&sandbox.0).stdin(Stdio::null());
        let output = shell.output().unwrap();
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {shown}");
        let rows = if table == "w" { 2 } else { 1 };
        let select = format!("SELECT count(*) AS n FROM {table}");
        assert_eq!(sandbox.ok(&["sql", "db", &select]), format!("n\n{rows}\n"), "{command}");
    }
}

#[test]
fn patterns_stand_for_files() {
    let sandbox = Sandbox::new("patterns");
    std::fs::create_dir(sandbox.0.join("d")).unwrap();
    for number in 1..=3 {
        sandbox.write(&format!("d/{number}.csv"), format!("n\n{number}\n"));
    }
    sandbox.write("d/x.tsv", "n\n9\n");
    let shown = sandbox.ok(&["load", "db", "t", "d/*.csv"]);
    assert!(shown.contains("loaded 3 rows into t"), "{shown}");
    sandbox.ok(&["load", "db", "u", "d/[12].csv"]);
    let (code, error) = sandbox.fails(&["load", "db", "v", "e/*.csv"]);
    assert_eq!((code, error.contains("no file matches e/*.csv")), (3, true), "{error}");
}

/// A column by the name of a function could be selected within quotes only.
#[test]
fn columns_by_the_names_of_functions_are_selected_bare() {
    let sandbox = Sandbox::new("reserved");
    sandbox.write("a.csv", "user,interval,trim,exists,position\n1,2,3,4,5\n");
    sandbox.ok(&["load", "db", "t", "a.csv"]);
    let select = "SELECT user, interval, trim, exists, position FROM t \
                  WHERE user = 1 AND exists > 3 ORDER BY interval";
    assert_eq!(
        sandbox.ok(&["sql", "db", select]),
        "user,interval,trim,exists,position\n1,2,3,4,5\n"
    );
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT trim(' x ') AS x"]), "x\nx\n");
}

/// The message was that of the parser, `Expected: an expression, found: when`.
#[test]
fn a_column_that_takes_quotes_is_said_to_take_them() {
    let sandbox = Sandbox::new("words");
    sandbox.write("a.csv", "when,order,in,from,all\n1,2,3,4,5\n");
    sandbox.ok(&["load", "db", "t", "a.csv"]);
    for (select, said) in [
        ("SELECT when FROM t", "(a column of this name is written \"when\")"),
        ("SELECT \"order\", in FROM t", "written \"in\")"),
        ("SELECT 1 FROM t WHERE IN = 3", "written \"in\")"),
        ("SELECT from FROM t", "(in double quotes if it is a word of SQL)"),
        ("SELECT all FROM t", "(in double quotes if it is a word of SQL)"),
    ] {
        let (code, error) = sandbox.fails(&["sql", "db", select]);
        assert!(code == 2 && error.contains(said), "{select}: {error}");
    }
    for select in ["SELECT 1 AND FROM t", "SELECT 1 DESC FROM t", "SELECT 1 FROM t WHERE"] {
        let (_, error) = sandbox.fails(&["sql", "db", select]);
        assert!(!error.contains("written"), "{select}: {error}");
    }
    let quoted = "SELECT \"when\", \"order\", \"in\", \"from\", \"all\" FROM t";
    assert_eq!(sandbox.ok(&["sql", "db", quoted]), "when,order,in,from,all\n1,2,3,4,5\n");
}

/// The file was refused, and so was `--unknown FIELD` of CSV.
#[test]
fn a_schema_may_name_some_fields_only() {
    let sandbox = Sandbox::new("partial");
    sandbox.write("a.csv", "id,n,note\n1,2.5,x\n2,,007\n");
    sandbox.write("a.ndjson", "{\"id\":1,\"n\":2.5}\n{\"note\":[1],\"id\":2}\n");
    sandbox.write("k.json", "{\"x\": {\"n\": 1}, \"7\": {\"id\": 3}}");
    let select =
        |table: &str| sandbox.ok(&["sql", "db", &format!("SELECT * FROM {table} ORDER BY 1")]);
    let id = "id u8 not null, primary key (id)";
    let shown = sandbox.ok(&["load", "db", "a", "a.csv", "--schema", id]);
    assert!(shown.contains("declared; the rest is inferred from all 2 rows; to"), "{shown}");
    assert_eq!(fields(&shown), "id u8 not null, n f64, note text, primary key (id)");
    assert_eq!(select("a"), "id,n,note\n1,2.5,x\n2,,007\n");
    let shown = sandbox.ok(&["load", "db", "b", "a.ndjson", "--schema", "id u8, x text"]);
    assert_eq!(fields(&shown), "id u8, x text, n f64, note json");
    assert!(shown.contains("note: no column for x: default values\n"), "{shown}");
    // A name that is mistyped is a field of its own, and said.
    let shown = sandbox.ok(&["load", "db", "m", "a.csv", "--schema", "id u8, noet text"]);
    let said = "note: no column for noet: default values; did you mean \"note\"?\n";
    assert!(shown.contains(said), "{shown}");
    assert_eq!(select("b"), "id,x,n,note\n1,,2.5,\n2,,,[1]\n");
    let shown =
        sandbox.ok(&["load", "db", "k", "k.json", "--schema", "n u8, k text, primary key (k)"]);
    assert_eq!(fields(&shown), "n u8, k text not null, id i64, primary key (k)");
    // A pipe, and a file without a header.
    let piped = ["load", "db", "c", "-", "--schema", "id u8", "--format", "ndjson"];
    let shown = sandbox.ok_with(&piped, &sandbox.read("a.ndjson"));
    assert_eq!(fields(&shown), "id u8, n f64, note json");
    sandbox.write("plain.csv", "1,x\n2,y\n");
    let plain = ["load", "db", "d", "plain.csv", "--schema", "id u8", "--no-header"];
    assert_eq!(fields(&sandbox.ok(&plain)), "id u8, column2 text");
    // A member that comes late, and --strict.
    let mut late = "{\"id\":1}\n".repeat(700_000);
    late.push_str("{\"id\":2,\"x\":true}\n");
    sandbox.write("late.ndjson", &late);
    let shown = sandbox.ok(&["load", "db", "e", "late.ndjson", "--schema", "id u8", "--strict"]);
    assert!(shown.contains("once more, with types that hold all rows"), "{shown}");
    assert!(shown.contains("loaded 700,001 rows into e"), "{shown}");
    for file in ["a.csv", "a.ndjson"] {
        let refused = ["load", "db", "f", file, "--schema", id, "--unknown", "error"];
        assert_eq!(sandbox.fails(&refused).0, 2);
    }
    let rest = ["load", "db", "g", "a.csv", "--schema", "id u8", "--unknown", "rest"];
    assert_eq!(fields(&sandbox.ok(&rest)), "id u8, rest json");
    let wanted = "id,rest\n1,\"{\"\"n\"\":\"\"2.5\"\",\"\"note\"\":\"\"x\"\"}\"\n\
                  2,\"{\"\"note\"\":\"\"007\"\"}\"\n";
    assert_eq!(select("g"), wanted);
}

/// A later file with a column more was refused; one with a column less was taken without a word.
#[test]
fn several_files_have_the_columns_of_all() {
    let sandbox = Sandbox::new("union");
    sandbox.write("1.csv", "a,b\n1,x\n");
    sandbox.write("2.csv", "c;a\n2.5;2\n");
    sandbox.write("3.csv", "b,a,\ny,007,\n");
    let shown = sandbox.ok(&["load", "db", "t", "1.csv", "2.csv", "3.csv"]);
    assert_eq!(fields(&shown), "a text, b text, c f64");
    assert!(shown.contains("note: 1.csv has no column c: NULL\n"), "{shown}");
    assert!(shown.contains("note: 2.csv has no column b: NULL\n"), "{shown}");
    let rows = sandbox.ok(&["sql", "db", "SELECT a, b, c FROM t ORDER BY a"]);
    assert_eq!(rows, "a,b,c\n007,y,\n1,x,\n2,,2.5\n");
    sandbox.write("4.csv", "x,y\n1,2\n");
    let (code, error) = sandbox.fails(&["load", "db", "u", "1.csv", "4.csv"]);
    assert!(code == 2 && error.contains("4.csv: no column of the files before"), "{error}");
}

/// There was no way to have less, or more, than 64 GiB of a pipe kept.
#[test]
fn what_is_kept_of_a_pipe_has_a_limit() {
    let sandbox = Sandbox::new("spool");
    let text = format!("n,note\n{}", format!("1,{}\n", "x".repeat(1_000)).repeat(12_000));
    let run = |table: &str, limit: &str| {
        sandbox.run_with(&["load", "db", table, "-", "--spool-limit", limit], &text)
    };
    let refused = run("t", "10MiB");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("more than 10485760 bytes from a pipe"), "{error}");
    assert!(error.contains("--spool-limit"), "{error}");
    assert!(run("t", "1GiB").status.success());
    assert_eq!(run("u", "much").status.code(), Some(2));
}
