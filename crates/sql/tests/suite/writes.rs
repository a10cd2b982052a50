//! Upserts, RETURNING, limits of changes, dry runs, parameters and prepared statements.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use esker::{ChangeOptions, Database, ErrorKind, Options, Value};
use esker_sql::{Named, Outcome, Sql, parse_statement};

fn stock() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE stock (item text PRIMARY KEY, n i64 NOT NULL, note text)", ()).unwrap();
    db.sql("INSERT INTO stock VALUES ('bolt', 1, NULL), ('nut', 2, 'x'), ('pin', 3, 'y')", ())
        .unwrap();
    db
}

/// The rows as text.
fn shown(outcome: Outcome) -> String {
    let rows = outcome.into_rows().unwrap().to_rows();
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

fn ask(db: &Database, text: &str) -> String {
    shown(db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")))
}

fn all(db: &Database) -> String {
    ask(db, "SELECT * FROM stock ORDER BY item")
}

fn changed(db: &Database, text: &str) -> u64 {
    db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")).rows_changed()
}

#[test]
fn an_upsert_computes_from_the_old_row_and_the_new() {
    let db = stock();
    let upsert = "INSERT INTO stock (item, n, note) VALUES ('nut', 10, 'new'), ('cog', 5, NULL) \
                  ON CONFLICT (item) DO UPDATE SET n = stock.n + excluded.n, \
                  note = coalesce(excluded.note, note) || '!'";
    assert_eq!(changed(&db, upsert), 2);
    assert_eq!(all(&db), "bolt|1|null cog|5|null nut|12|new! pin|3|y");
    // The next row of the same statement sees what the one before it did.
    let twice = "INSERT INTO stock VALUES ('cog', 1, 'a'), ('cog', 2, 'b'), ('hex', 1, 'c'), \
                 ('hex', 1, 'd') ON CONFLICT DO UPDATE SET n = n * 10 + excluded.n \
                 RETURNING item, n";
    assert_eq!(ask(&db, twice), "cog|51 cog|512 hex|1 hex|11");
    let only = "INSERT INTO stock VALUES ('bolt', 100, NULL), ('nut', 100, NULL) \
                ON CONFLICT (item) DO UPDATE SET n = excluded.n WHERE stock.n > 10 RETURNING *";
    assert_eq!(ask(&db, only), "nut|100|new!");
    // What is set is computed only where the row is changed.
    let never = "INSERT INTO stock VALUES ('bolt', 1, NULL) ON CONFLICT (item) \
                 DO UPDATE SET n = 9223372036854775807 + stock.n WHERE stock.n > 1";
    assert_eq!(changed(&db, never), 0);
    let none = "INSERT INTO stock SELECT item, 0, note FROM stock ON CONFLICT (item) DO NOTHING";
    assert_eq!(changed(&db, none), 0);
    assert_eq!(all(&db), "bolt|1|null cog|512|null hex|11|c nut|100|new! pin|3|y");
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn changes_answer_what_they_are_asked_of_each_row() {
    let db = stock();
    let insert = "INSERT INTO stock (n, item) VALUES (7, 'cog'), (8, 'hub') RETURNING item, n * 2";
    assert_eq!(ask(&db, insert), "cog|14 hub|16");
    let update = "UPDATE stock SET n = n + 1 WHERE n < 3 RETURNING item || ' ' || n AS line";
    assert_eq!(ask(&db, update), "bolt 2 nut 3");
    assert_eq!(
        ask(&db, "DELETE FROM stock WHERE n = 3 RETURNING * ORDER BY item"),
        "nut|3|x pin|3|y"
    );
    assert_eq!(ask(&db, "DELETE FROM stock WHERE n = 3 RETURNING *"), "");
    let replaced = "INSERT OR REPLACE INTO stock VALUES ('hub', 0, 'z') RETURNING note";
    assert_eq!(ask(&db, replaced), "z");
}

#[test]
fn changes_have_an_order_and_a_limit() {
    let db = stock();
    let update = "UPDATE stock SET note = 'first' RETURNING item ORDER BY n DESC LIMIT 2";
    assert_eq!(ask(&db, update), "pin nut");
    assert_eq!(changed(&db, "DELETE FROM stock ORDER BY n LIMIT 1"), 1);
    assert_eq!(all(&db), "nut|2|first pin|3|first");
    assert_eq!(changed(&db, "DELETE FROM stock LIMIT 0"), 0);
    assert_eq!(changed(&db, "DELETE FROM stock LIMIT 1"), 1);
    assert_eq!(changed(&db, "TRUNCATE TABLE stock"), 0);
    assert_eq!(all(&db), "");
    assert_eq!(changed(&db, "INSERT INTO stock VALUES ('a', 1, DEFAULT)"), 1);
    assert_eq!(all(&db), "a|1|null");
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let db = stock();
    let before = all(&db);
    let options = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    let would = |text: &str| esker_sql::run(&db, &parse_statement(text).unwrap(), &options);
    let insert = "INSERT INTO stock VALUES ('cog', 1, NULL), ('nut', 5, NULL) \
                  ON CONFLICT (item) DO UPDATE SET n = excluded.n RETURNING item, n";
    let outcome = would(insert).unwrap();
    assert_eq!(outcome.rows_changed(), 2);
    assert_eq!(shown(outcome), "cog|1 nut|5");
    assert_eq!(would("UPDATE stock SET n = 0").unwrap().rows_changed(), 3);
    assert_eq!(would("DELETE FROM stock WHERE n > 1").unwrap().rows_changed(), 2);
    let e = would("INSERT INTO stock VALUES ('nut', 1, NULL)").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    for (text, said) in [
        ("DROP TABLE stock", "would drop table stock"),
        ("TRUNCATE stock", "would truncate table stock"),
        ("CREATE TABLE other (a i64)", "would create table other"),
        ("DROP TABLE IF EXISTS other", "no table other"),
    ] {
        assert_eq!(would(text).unwrap(), Outcome::Done(said.into()));
    }
    assert_eq!(all(&db), before);
    assert_eq!(db.tables(), ["stock"]);
    // A table with generated keys, too.
    db.sql("CREATE TABLE log (line text)", ()).unwrap();
    assert_eq!(would("INSERT INTO log VALUES ('a'), ('b')").unwrap().rows_changed(), 2);
    assert_eq!(ask(&db, "SELECT count(*) FROM log"), "0");
}

#[test]
fn parameters_stand_wherever_a_value_does() {
    let db = stock();
    let query = db.prepare("SELECT item, n + ? FROM stock WHERE n BETWEEN ? AND ? ORDER BY 1");
    let query = query.unwrap();
    assert_eq!(query.parameters(), ["?1", "?2", "?3"]);
    let rows = query.query(&[0.5.into(), 2i64.into(), 3u8.into()]).unwrap().to_rows();
    assert_eq!(rows, [["nut".into(), Value::Float(2.5)], ["pin".into(), Value::Float(3.5)]]);
    let update = db.prepare("UPDATE stock SET n = :n, note = :note WHERE item = :item AND n < :n");
    let update = update.unwrap();
    assert_eq!(update.parameters(), [":n", ":note", ":item"]);
    let values = [(":item", "pin".into()), (":n", 9i64.into()), (":note", Value::Null)];
    assert_eq!(update.execute(Named::new(values)).unwrap(), 1);
    let upsert = db.prepare(
        "INSERT INTO stock VALUES ($1, $2, NULL) \
         ON CONFLICT (item) DO UPDATE SET n = excluded.n + $3 RETURNING n",
    );
    let upsert = upsert.unwrap();
    let first = upsert.first(&["bolt".into(), 5i64.into(), 100i64.into()]).unwrap();
    assert_eq!(first, Some(vec![Value::Int(105)]));
    let minus = db.prepare("SELECT - ? FROM stock LIMIT 1").unwrap();
    assert_eq!(minus.first(&[7i64.into()]).unwrap(), Some(vec![Value::Int(-7)]));
    let any = db.prepare("DELETE FROM stock WHERE item IN (?2, ?1, ?2)").unwrap();
    assert_eq!(any.parameters(), ["?1", "?2"]);
    assert_eq!(any.execute(&["nut".into(), "bolt".into()]).unwrap(), 2);
    assert_eq!(all(&db), "pin|9|null");
}

#[test]
fn what_parameters_do_not_fit_is_named() {
    let db = stock();
    let message = |text: &str, values: &[Value]| {
        let ran = db.prepare(text).and_then(|statement| statement.run(values));
        ran.unwrap_err().to_string()
    };
    let insert = "INSERT INTO stock VALUES (?, ?, ?)";
    let ok = |n: Value| ["a".into(), n, Value::Null];
    assert!(message(insert, &ok("x".into())).contains("parameter ?2: field \"n\": expected i64"));
    let wanted = "parameter ?2: field \"n\" must not be null";
    assert_eq!(message(insert, &ok(Value::Null)), wanted);
    assert!(
        message("INSERT INTO stock (item, n) VALUES (:item, :n)", &["a".into(), 1.5.into()])
            .contains("parameter :n: field \"n\": expected i64, found floating-point number 1.5")
    );
    assert!(
        message("UPDATE stock SET n = $1", &["x".into()]).contains("parameter $1: field \"n\"")
    );
    assert_eq!(
        message("SELECT * FROM stock WHERE n = ?", &["x".into()]),
        "WHERE: n = ?1: cannot compare i64 with text"
    );
    assert_eq!(message(insert, &[]), "expected 3 parameters (?1, ?2, ?3), found 0");
    assert_eq!(message("SELECT n FROM stock", &[1i64.into()]), "expected 0 parameters, found 1");
    assert!(message("SELECT ?, :a FROM stock", &[]).contains("found :a beside others"));
    assert!(message("SELECT ?0 FROM stock", &[]).contains("expected a number of 1 to 65535"));
    assert!(message("INSERT INTO nobody VALUES (?)", &[]).contains("no table \"nobody\""));
    let statement = db.prepare("SELECT :a FROM stock").unwrap();
    let named = |values: &[(&str, Value)]| {
        statement.run(Named::new(values.iter().cloned())).unwrap_err().to_string()
    };
    assert_eq!(named(&[]), "parameter :a has no value");
    assert_eq!(named(&[(":b", Value::Null)]), "unknown parameter :b; expected :a");
    assert_eq!(named(&[(":a", 1.into()), (":a", 2.into())]), "parameter :a is given twice");
    assert_eq!(all(&db), "bolt|1|null nut|2|x pin|3|y");
}

/// A key of a kind that only a query compares gives what the query gives.
#[test]
fn a_prepared_get_answers_as_the_query_does() {
    let db = stock();
    db.sql("CREATE TABLE k (day date, id i16, v f64, name text(3), PRIMARY KEY (id, day))", ())
        .unwrap();
    db.sql(
        "INSERT INTO k VALUES (DATE '2024-01-31', -1, 1.5, 'a'), ('2024-02-01', 7, 2.5, NULL)",
        (),
    )
    .unwrap();
    let get = db.prepare("SELECT name, v, v AS w FROM k WHERE day = ? AND ? = id").unwrap();
    let day = Value::Date(19_753);
    for (day, id, wanted) in [
        (day.clone(), Value::Int(-1), 1),
        (day.clone(), Value::Float(-1.0), 1),
        (day.clone(), Value::Float(-1.5), 0),
        (day.clone(), Value::Int(1 << 40), 0),
        (day.clone(), Value::Null, 0),
        ("2024-01-31".into(), Value::Int(-1), 1),
        (Value::Timestamp(19_753 * 86_400_000_000), Value::Int(-1), 1),
    ] {
        let result = get.query(&[day.clone(), id.clone()]).unwrap();
        let names: Vec<_> = result.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["name", "v", "w"], "{day} {id}");
        assert_eq!(result.row_count(), wanted, "{day} {id}");
        let first = get.first(&[day, id]).unwrap();
        assert_eq!(first, result.to_rows().into_iter().next());
        if let Some(row) = first {
            assert_eq!(row, ["a".into(), Value::Float(1.5), Value::Float(1.5)]);
        }
    }
    let whole = db.prepare("SELECT * FROM stock WHERE item = 'nut'").unwrap();
    assert_eq!(whole.first(&[]).unwrap(), Some(vec!["nut".into(), Value::Int(2), "x".into()]));
}

#[test]
fn a_prepared_statement_notices_a_changed_table() {
    let db = stock();
    let insert = db.prepare("INSERT INTO stock VALUES (?, ?, ?)").unwrap();
    let get = db.prepare("SELECT * FROM stock WHERE item = ?").unwrap();
    let row = |item: &str| [item.into(), Value::Int(1), Value::Null];
    insert.execute(row("a")).unwrap();
    db.sql("DROP TABLE stock", ()).unwrap();
    assert_eq!(insert.execute(row("b")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(get.first(&["a".into()]).unwrap_err().kind(), ErrorKind::NotFound);
    db.sql("CREATE TABLE stock (n i64, item text, extra u8 NULL, PRIMARY KEY (item))", ()).unwrap();
    let e = insert.execute(row("b")).unwrap_err();
    assert!(e.to_string().contains("parameter ?1: field \"n\""), "{e}");
    assert_eq!(insert.execute(&[4i64.into(), "b".into(), Value::Uint(9)]).unwrap(), 1);
    let found = get.first(&["b".into()]).unwrap();
    assert_eq!(found, Some(vec![Value::Int(4), "b".into(), Value::Uint(9)]));
    assert_eq!(get.query(&["b".into()]).unwrap().columns.len(), 3);
    assert_eq!(get.first(&["a".into()]).unwrap(), None);
}

/// What is written beside a field of bytes is hexadecimal digits, wherever that is.
#[test]
fn bytes_are_written_as_hexadecimal_digits_everywhere() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE b (id i64 PRIMARY KEY, raw bytes)", ()).unwrap();
    db.sql("INSERT INTO b VALUES (1, '6162'), (2, X'6163'), (3, '\\x')", ()).unwrap();
    let ids = |condition: &str| {
        let rows = db.sql(&format!("SELECT id FROM b WHERE {condition} ORDER BY id"), ()).unwrap();
        let rows = rows.into_rows().unwrap().to_rows();
        rows.iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join(" ")
    };
    for _ in 0..2 {
        assert_eq!(ids("raw = '6162'"), "1");
        assert_eq!(ids("raw = '\\x6162'"), "1");
        assert_eq!(ids("raw IN ('6162', '6163')"), "1 2");
        assert_eq!(ids("raw BETWEEN '' AND X'6162'"), "1 3");
        assert_eq!(ids("raw > '61'"), "1 2");
        assert_eq!(ids("coalesce(raw, '61') = X'6162'"), "1");
        db.sql("CREATE INDEX IF NOT EXISTS by_raw ON b (raw)", ()).unwrap();
    }
    for statement in [
        "SELECT id FROM b WHERE raw = 'ab c'",
        "INSERT INTO b VALUES (4, 'no digits')",
        "UPDATE b SET raw = 'no digits'",
    ] {
        let error = db.sql(statement, ()).unwrap_err().to_string();
        assert!(error.contains("bytes (pairs of hexadecimal digits), found"), "{error}");
    }
    let json = r#"{"table": "b", "where": {"field": "raw", "op": "eq", "value": "6163"}}"#;
    assert_eq!(db.query_json(json).unwrap().to_rows()[0][0], 2.into());
}

#[test]
fn whole_numbers_have_38_digits() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE w (id i64 PRIMARY KEY, n decimal(38,0), d decimal(38,2))", ()).unwrap();
    let most = "9".repeat(38);
    db.sql(&format!("INSERT INTO w VALUES (1, {most}, 1), (2, -18446744073709551616, 2)"), ())
        .unwrap();
    let one = |statement: &str| match db.sql(statement, ()) {
        Ok(rows) => rows.into_rows().unwrap().to_rows()[0][0].to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(one(&format!("SELECT id FROM w WHERE n = {most}")), "1");
    assert_eq!(one("SELECT id FROM w WHERE n < -18446744073709551615"), "2");
    assert_eq!(one("SELECT id FROM w WHERE id < 18446744073709551616 ORDER BY id"), "1");
    assert_eq!(one("SELECT sum(n) FROM w WHERE id = 2"), "-18446744073709551616");
    assert_eq!(one("SELECT 18446744073709551616 - 1 FROM w"), "18446744073709551615");
    let filter = format!(r#"{{"field": "n", "op": "eq", "value": {most}}}"#);
    let json = format!(r#"{{"table": "w", "select": "id", "where": {filter}}}"#);
    assert_eq!(db.query_json(&json).unwrap().to_rows(), [[1.into()]]);
    let error = one(&format!("SELECT {most}9 FROM w"));
    assert!(error.contains("is a whole number of more than 38 digits"), "{error}");
    db.sql(&format!("INSERT INTO w VALUES (3, {most}, 3)"), ()).unwrap();
    let error = one("SELECT sum(n) FROM w");
    assert!(error.contains("a sum of decimals has more than 38 digits"), "{error}");
}

/// A row of a prepared statement goes straight to the table: what is left out is what it is
/// otherwise, and what is refused is refused.
#[test]
fn prepared_rows_leave_fields_out() {
    let db = Options::new().memory().unwrap();
    for statement in [
        "CREATE TABLE p (id i64 PRIMARY KEY, n i64, twice i64 GENERATED ALWAYS AS (n * 2) STORED, \
         colour text DEFAULT 'red', at timestamp DEFAULT now(), note text, must i64 NOT NULL)",
        "CREATE TABLE q (id i64 GENERATED ALWAYS AS IDENTITY, n i64)",
    ] {
        db.sql(statement, ()).unwrap();
    }
    let cases = [
        ("INSERT INTO p (id, n, at, must) VALUES (?, 4, NULL, 1)", Ok("4|8|red|null|null|1")),
        ("INSERT INTO p (must, id) VALUES (9, ?)", Ok("null|null|red|now|null|9")),
        (
            "INSERT OR REPLACE INTO p (note, id, must, at) VALUES ('x', ?, 2, NULL)",
            Ok("null|null|red|null|x|2"),
        ),
        ("INSERT INTO p (id, n) VALUES (?, 4)", Err("must")),
        ("INSERT INTO p (id, n, twice, must) VALUES (?, 4, 8, 1)", Err("takes DEFAULT, no value")),
        ("INSERT INTO p (id, id, must) VALUES (?, 4, 1)", Err("\"id\"")),
        ("INSERT INTO p (id, n, must) VALUES (?, 9223372036854775807, 1)", Err("twice")),
        ("INSERT INTO q (id, n) VALUES (?, 1)", Err("takes DEFAULT, no value")),
        ("INSERT INTO q VALUES (?, 1)", Err("takes DEFAULT, no value")),
    ];
    for (id, (text, expected)) in (0i64..).zip(cases) {
        let done = db.prepare(text).and_then(|insert| insert.execute([Value::Int(id)]));
        match expected {
            Ok(row) => {
                assert_eq!(done.unwrap(), 1, "{text}");
                let fields =
                    "n, twice, colour, CASE WHEN at IS NOT NULL THEN 'now' END, note, must";
                assert_eq!(ask(&db, &format!("SELECT {fields} FROM p WHERE id = {id}")), row);
            }
            Err(part) => {
                let prepared = done.unwrap_err().to_string();
                assert!(prepared.contains(part), "{text}: {prepared}");
                let plain = db.sql(&text.replace('?', &id.to_string()), ()).unwrap_err();
                assert!(plain.to_string().contains(part), "{text}: {plain}");
            }
        }
    }
    assert_eq!(ask(&db, "SELECT count(*) FROM p"), "3");
    // The plan follows the schema.
    let insert = db.prepare("INSERT INTO p (id, must) VALUES (?, 1)").unwrap();
    db.sql("ALTER TABLE p ALTER COLUMN colour SET DEFAULT 'blue'", ()).unwrap();
    insert.execute([Value::Int(77)]).unwrap();
    assert_eq!(ask(&db, "SELECT colour FROM p WHERE id = 77"), "blue");
}
