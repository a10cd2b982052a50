//! Indexes from the command line: made with a table, given to one that exists, taken away.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

#[test]
fn indexes_are_made_shown_and_dropped() {
    let sandbox = Sandbox::new("indexes");
    sandbox.write("a.csv", "id,city,age\n1,Oslo,30\n2,Rome,40\n");
    let shown =
        sandbox.ok(&["load", "db", "t", "a.csv", "--key", "id", "--index", "city, age desc"]);
    assert!(shown.contains("index by_city_age (city, age desc)\n"), "{shown}");
    sandbox.ok(&["index", "db", "t", "age"]);
    sandbox.ok(&["index", "db", "t", "age desc", "id", "--name", "oldest"]);
    let info = sandbox.ok(&["info", "db", "t"]);
    assert!(
        info.contains("  index by_city_age (city, age desc),\n  index by_age (age),\n"),
        "{info}"
    );
    assert!(info.contains("oldest (age desc, id): nothing to build yet\n"), "{info}");
    sandbox.ok(&["index", "drop", "db", "t", "by_age"]);
    sandbox.ok(&["sql", "db", "DROP INDEX by_city_age"]);
    let info = sandbox.ok(&["info", "db", "t"]);
    assert!(info.contains("\nindexes               oldest (age desc, id): "), "{info}");
    assert!(!info.contains("by_age"), "{info}");
}

#[test]
fn indexes_are_of_expressions_and_of_some_rows() {
    let sandbox = Sandbox::new("indexes-computed");
    sandbox.write("a.csv", "id,city\n1,Oslo\n2,OSLO\n");
    sandbox.ok(&["load", "db", "t", "a.csv"]);
    sandbox.ok(&["index", "db", "t", "by_city (lower(city) desc, id) where id > 1"]);
    let info = sandbox.ok(&["info", "db", "t"]);
    assert!(info.contains("by_city (lower(city) desc, id where id > 1): "), "{info}");
    let found =
        sandbox.ok(&["sql", "db", "SELECT id FROM t WHERE lower(city) = 'oslo' AND id > 1"]);
    assert!(found.contains('2') && !found.contains('1'), "{found}");
    let (code, error) = sandbox.fails(&["index", "db", "t", "one (lower(city)) where nothing"]);
    assert_eq!((code, error.contains("unknown field \"nothing\"")), (2, true), "{error}");
    let (_, error) = sandbox.fails(&["sql", "db", "CREATE UNIQUE INDEX one ON t (lower(city))"]);
    assert!(error.contains("unique index \"one\": lower(city) = oslo is in two rows"), "{error}");
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    let sandbox = Sandbox::new("indexes-wrong");
    sandbox.write("a.csv", "id,city\n1,Oslo\n");
    let load = |more: &[&str]| {
        let arguments = [&["load", "db", "t", "a.csv"], more].concat();
        sandbox.fails(&arguments)
    };
    let (code, error) = load(&["--index", "cty"]);
    assert_eq!(code, 2);
    assert!(error.contains("--index: unknown field \"cty\"; did you mean \"city\"?"), "{error}");
    let (code, error) = load(&["--index", "city,"]);
    assert_eq!((code, error.contains("index, character 6: expected a field name")), (2, true));
    sandbox.ok(&["load", "db", "t", "a.csv", "--index", "one (city)"]);
    let (code, error) = load(&["--append", "--index", "id"]);
    assert_eq!((code, error.contains("the table exists; `esker index`")), (2, true), "{error}");
    for (arguments, code, message) in [
        (["db", "t", "city", "--name", "one"].as_slice(), 2, "index \"one\" exists already"),
        (&["db", "t", "cty"], 2, "unknown field \"cty\"; did you mean \"city\"?"),
        (&["db", "s", "city"], 3, "no table \"s\""),
        (&["none", "t", "city"], 3, "none"),
        (&["drop", "db", "t", "ones"], 3, "unknown index \"ones\"; did you mean \"one\"?"),
        (&["db", "t"], 2, "FIELDS"),
        (&[], 2, "<DB>"),
    ] {
        let (found, error) = sandbox.fails(&[&["index"], arguments].concat());
        assert_eq!(found, code, "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    assert!(sandbox.ok(&["info", "db", "t"]).contains("one (city)"));
}

#[test]
fn unique_indexes_are_made_shown_and_kept() {
    let sandbox = Sandbox::new("indexes-unique");
    sandbox.write("a.csv", "id,mail,n\n1,a,1\n2,b,1\n");
    sandbox.write("b.csv", "id,mail,n\n3,a,2\n4,c,3\n");
    let shown = sandbox.ok(&["load", "db", "t", "a.csv", "--key", "id", "--index", "unique mail"]);
    assert!(shown.contains("unique index by_mail (mail)\n"), "{shown}");
    let info = sandbox.ok(&["info", "db", "t"]);
    assert!(info.contains("by_mail (mail), unique: nothing to build yet\n"), "{info}");
    let (_, error) = sandbox.fails(&["index", "db", "t", "n", "--unique"]);
    assert!(
        error.contains("unique index \"by_n\": n = 1 is in two rows, key id = 1 and"),
        "{error}"
    );
    let (_, error) = sandbox.fails(&["load", "db", "t", "b.csv", "--append"]);
    assert!(error.contains("unique index \"by_mail\": mail = a exists already"), "{error}");
    sandbox.ok(&["load", "db", "t", "b.csv", "--append", "--on-duplicate", "skip"]);
    let rows = sandbox.ok(&["sql", "db", "SELECT id, mail FROM t ORDER BY id", "--format", "csv"]);
    assert_eq!(rows, "id,mail\n1,a\n2,b\n4,c\n");
    sandbox.ok(&["index", "db", "t", "id", "n", "--unique"]);
    sandbox.ok(&["check", "db"]);
}
