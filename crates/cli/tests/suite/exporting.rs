//! `esker export`, and single rows: `insert`, `put`, `delete`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

const CSV: &str = "id,name,score\n1,\"a \"\"b\"\", c\",1.5\n2,\"\",\n3,\"x\ny\",-0.0\n";

#[test]
fn what_is_exported_loads_again() {
    let sandbox = Sandbox::new("export");
    sandbox.write("a.csv", CSV);
    sandbox.ok(&["load", "db", "t", "a.csv", "--key", "id"]);
    assert_eq!(sandbox.ok(&["export", "db", "t"]), CSV);
    assert_eq!(
        sandbox.ok(&["export", "db", "t", "--format", "ndjson"]),
        "{\"id\":1,\"name\":\"a \\\"b\\\", c\",\"score\":1.5}\n\
         {\"id\":2,\"name\":\"\",\"score\":null}\n\
         {\"id\":3,\"name\":\"x\\ny\",\"score\":-0.0}\n"
    );
    for file in ["b.csv", "b.tsv", "b.ndjson", "b.json"] {
        let shown = sandbox.ok(&["export", "db", "t", "--output", file]);
        assert!(shown.starts_with(&format!("exported 3 rows to {file} in ")), "{shown}");
        let db = format!("{file}.db");
        sandbox.ok(&["load", &db, "t", file, "--key", "id"]);
        assert_eq!(sandbox.ok(&["export", &db, "t"]), CSV, "{file}");
    }
    let (code, error) = sandbox.fails(&["export", "db", "t", "--output", "b.csv"]);
    assert!(code != 0 && error.contains("b.csv"), "{error}");
    assert_eq!(sandbox.read("b.csv"), CSV);
    let (code, error) = sandbox.fails(&["export", "db", "t", "--output", "c.csv.gz"]);
    assert_eq!((code, sandbox.exists("c.csv.gz")), (2, false), "{error}");
}

#[test]
fn answers_are_exported_too() {
    let sandbox = Sandbox::new("export-sql");
    sandbox.write("a.csv", CSV);
    sandbox.ok(&["load", "db", "t", "a.csv", "--key", "id"]);
    let query = "SELECT id, score + 1, score + 1 FROM t WHERE id < 2";
    assert_eq!(
        sandbox.ok(&["export", "db", "--sql", query, "--format", "json"]),
        "[\n{\"id\":1,\"score + 1\":2.5,\"score + 1_2\":2.5}\n]\n"
    );
    assert_eq!(sandbox.fails(&["export", "db", "--sql", "DELETE FROM t"]).0, 2);
    assert_eq!(sandbox.fails(&["export", "db", "nothing"]).0, 3);
    assert_eq!(sandbox.fails(&["export", "db"]).0, 2);
    let none = sandbox.ok(&["export", "db", "--sql", "SELECT id FROM t WHERE id > 9"]);
    assert_eq!(none, "id\n");
}

#[test]
fn a_large_table_is_exported_whole() {
    let sandbox = Sandbox::new("export-large");
    let rows: Vec<String> = (0..100_000).map(|i| format!("{i},name {i}")).collect();
    let text = format!("id,name\n{}\n", rows.join("\n"));
    sandbox.write("a.csv", &text);
    sandbox.ok(&["load", "db", "t", "a.csv", "--key", "id"]);
    let mut found: Vec<String> =
        sandbox.ok(&["export", "db", "t"]).lines().skip(1).map(str::to_owned).collect();
    let mut wanted = rows;
    found.sort();
    wanted.sort();
    assert!(found == wanted);
}

#[test]
fn single_rows_are_added_replaced_and_removed() {
    let sandbox = Sandbox::new("rows");
    sandbox.write("none.csv", "id,name,height\n1,x,1.5\n");
    let schema = "id i64 not null, name text, height f64, primary key (id)";
    sandbox.ok(&["load", "db", "t", "none.csv", "--schema", schema]);
    sandbox.ok(&["insert", "db", "t", "id=2", "name=a=b"]);
    sandbox.ok(&["insert", "db", "t", "{\"height\": 2.5, \"id\": 9007199254740993}"]);
    sandbox.ok(&["put", "db", "t", "id=1", "name=", "height=-3"]);
    sandbox.ok(&["put", "db", "t", "{\"id\": 4, \"name\": \"\"}"]);
    let wanted = "id,name,height\n1,,-3.0\n2,a=b,\n4,\"\",\n9007199254740993,,2.5\n";
    let select = ["sql", "db", "SELECT * FROM t ORDER BY id"];
    assert_eq!(sandbox.ok(&select), wanted);
    let (code, error) = sandbox.fails(&["insert", "db", "t", "id=1"]);
    assert!(code == 2 && error.contains("id = 1"), "{error}");
    let (code, error) = sandbox.fails(&["insert", "db", "t", "{\"id\": 5, \"nmae\": 1}"]);
    assert_eq!(
        (code, error.as_str()),
        (
            2,
            "error: unknown field \"nmae\"; did you mean \"name\"?\n  {\"id\": 5, \"nmae\": 1}\n  \
             \u{20}         ^^^^^^\n"
        )
    );
    for row in ["{\"id\": 5", "{\"id\": 5} x", "{\"id\": \"x\"}", "id", "id=x", "nmae=1"] {
        assert_eq!(sandbox.fails(&["insert", "db", "t", row]).0, 2, "{row}");
    }
    assert_eq!(sandbox.ok(&select), wanted);
    sandbox.ok(&["delete", "db", "t", "2"]);
    assert_eq!(sandbox.fails(&["delete", "db", "t", "2"]).0, 3);
    assert_eq!(sandbox.ok(&["sql", "db", "SELECT count(*) AS n FROM t"]), "n\n3\n");
}

/// What is computed need not be in a file, and may be: a file that was exported is taken back.
#[test]
fn what_is_computed_goes_out_and_comes_back() {
    let sandbox = Sandbox::new("export-computed");
    let create = "CREATE TABLE t (id i64 PRIMARY KEY, n i64, \
                  twice i64 NOT NULL GENERATED ALWAYS AS (n * 2) STORED)";
    for db in ["db", "copy", "other"] {
        sandbox.ok(&["sql", db, create]);
    }
    sandbox.write("without.csv", "id,n\n1,10\n2,20\n");
    sandbox.write("wrong.csv", "id,n,twice\n3,30,61\n");
    sandbox.write("blank.csv", "id,n,twice\n3,30,\n");
    sandbox.ok(&["load", "db", "t", "without.csv", "--append"]);
    sandbox.ok(&["load", "db", "t", "blank.csv", "--append"]);
    let (_, error) = sandbox.fails(&["load", "other", "t", "wrong.csv", "--append"]);
    assert!(error.contains("field \"twice\" is generated"), "{error}");
    for file in ["all.csv", "all.ndjson"] {
        sandbox.ok(&["export", "db", "t", "--output", file]);
        sandbox.ok(&["load", "copy", "t", file, "--append"]);
        let sum = sandbox.ok(&["sql", "copy", "SELECT sum(twice), count(*) FROM t"]);
        assert!(sum.contains("120") && sum.contains('3'), "{sum}");
        sandbox.ok(&["sql", "copy", "DELETE FROM t"]);
    }
    let shown = sandbox.ok(&["info", "db", "t"]);
    assert!(shown.contains("twice is GENERATED ALWAYS AS (n * 2) STORED"), "{shown}");
}
