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
    let select = "SELECT user, interval, trim, exists, position FROM t WHERE user = 1 AND exists > 3 \
                  ORDER BY interval";
    assert_eq!(
        sandbox.ok(&["sql", "db", select]),
        "user,interval,trim,exists,position\n1,2,3,4,5\n"
    );
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT trim(' x ') AS x"]), "x\nx\n");
}
