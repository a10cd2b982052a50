//! SQL as programs in Rust use it: parameters, rows as structs, rows one by one.

use esker::{Database, ErrorKind, Options, Record, ResultRow, Value};
use esker_sql::{Named, Session, Sql};

#[derive(Clone, Debug, PartialEq, Record)]
struct Person {
    #[esker(key)]
    name: String,
    born: i32,
    height: Option<f64>,
}

fn person(name: &str, born: i32, height: Option<f64>) -> Person {
    Person { name: name.to_owned(), born, height }
}

fn people() -> Database {
    let db = Options::new().memory().unwrap();
    let text = "CREATE TABLE people (name text PRIMARY KEY, born i32 NOT NULL, height f64)";
    db.sql(text, ()).unwrap();
    let insert = db.prepare("INSERT INTO people VALUES (?, ?, ?)").unwrap();
    insert.execute(("Ada", 1815, None::<f64>)).unwrap();
    insert.execute(("Grace", 1906, 1.68)).unwrap();
    insert.execute(["Kurt".into(), 1906.into(), Value::Null]).unwrap();
    db
}

#[test]
fn rows_are_read_as_structs_tuples_and_values() {
    let db = people();
    let of_year = "SELECT * FROM people WHERE born = ? ORDER BY name";
    let both = [person("Grace", 1906, Some(1.68)), person("Kurt", 1906, None)];
    assert_eq!(db.sql_as::<Person>(of_year, (1906,)).unwrap(), both);
    let of_year = db.prepare(of_year).unwrap();
    assert_eq!(of_year.query_as::<Person>((1906,)).unwrap(), both);
    assert_eq!(of_year.first_as::<Person>((1906,)).unwrap().as_ref(), both.first());
    assert_eq!(of_year.first_as::<Person>((7,)).unwrap(), None);
    // A key goes straight to the table, and is read the same.
    let of_name = db.prepare("SELECT height, born, name FROM people WHERE name = ?").unwrap();
    assert_eq!(of_name.query_as::<Person>(("Kurt",)).unwrap(), both[1..]);
    let one = of_name.query_as::<(Option<f64>, u16, String)>(("Kurt",)).unwrap();
    assert_eq!(one, [(None, 1906, "Kurt".to_owned())]);
    let counted = "SELECT born, count(*) FROM people GROUP BY 1 ORDER BY 1";
    assert_eq!(db.sql_as::<(i64, u64)>(counted, ()).unwrap(), [(1815, 1), (1906, 2)]);
    assert_eq!(db.sql_first::<u8>("SELECT count(*) FROM people", ()).unwrap(), Some(3));
    let heights = db.sql_as::<Option<f64>>("SELECT height FROM people ORDER BY name", ()).unwrap();
    assert_eq!(heights, [None, Some(1.68), None]);
    let rows = db.sql_as::<ResultRow>("SELECT name AS n FROM people LIMIT 1", ()).unwrap();
    assert_eq!(rows[0].get("n"), Some(&"Ada".into()));
    let added = "INSERT INTO people VALUES (?, ?, ?) RETURNING name";
    assert_eq!(db.sql_first::<String>(added, ("Emmy", 1882, 1.6)).unwrap().unwrap(), "Emmy");
}

#[test]
fn what_a_row_is_not_is_said_with_what_it_is() {
    let db = people();
    let two = "SELECT name, born FROM people WHERE name = 'Ada'";
    let pair = |text: &str| db.sql_as::<(String, i64)>(text, ()).unwrap_err().to_string();
    let all = "SELECT * FROM people";
    assert_eq!(pair(all), "expected an answer of 2 columns, found 3: name, born, height");
    assert_eq!(pair("SELECT name, height FROM people"), {
        "column \"height\": expected i64, found NULL, which an Option holds"
    });
    assert_eq!(pair("SELECT born, name FROM people"), {
        "column \"born\": expected text, found integer 1815"
    });
    let e = db.sql_as::<u8>("SELECT born FROM people", ()).unwrap_err().to_string();
    assert_eq!(e, "column \"born\": expected u8, found integer 1815");
    let e = db.sql_as::<Person>(two, ()).unwrap_err().to_string();
    assert!(e.starts_with("record Person: the answer has no column \"height\""), "{e}");
    let e = db.sql_as::<i64>("DELETE FROM people", ()).unwrap_err().to_string();
    assert_eq!(e, "the statement answers no rows");
    let e = db.sql("SELECT :a", Named::new([("b", 1.into())])).unwrap_err();
    assert_eq!((e.kind(), e.to_string().as_str()), {
        (ErrorKind::InvalidInput, "unknown parameter b; expected :a")
    });
}

#[test]
fn a_struct_gives_the_values_of_named_parameters() {
    let db = people();
    let emmy = person("Emmy", 1882, None);
    let insert = "INSERT INTO people VALUES (:name, :born, :height)";
    db.sql(insert, Named::of(&emmy).unwrap()).unwrap();
    let taller = person("Emmy", 0, Some(1.6));
    // The statement does not ask for all of its fields.
    let update = db.prepare("UPDATE people SET height = :height WHERE name = :name").unwrap();
    assert_eq!(update.execute(Named::of(&taller).unwrap()).unwrap(), 1);
    let found = db.sql_first::<Person>("SELECT * FROM people WHERE name = $1", ("Emmy",)).unwrap();
    assert_eq!(found, Some(Person { height: Some(1.6), ..emmy }));
}

#[test]
fn the_same_within_transactions_and_sessions() {
    let db = people();
    let count = "SELECT count(*) FROM people WHERE born > :year";
    let insert = db.prepare("INSERT INTO people VALUES (?, ?, NULL)").unwrap();
    let of_all = db.prepare("SELECT name FROM people").unwrap();
    db.transact(|transaction| {
        assert_eq!(transaction.run_prepared(&insert, ("Emmy", 1882))?.rows_changed(), 1);
        transaction.sql("UPDATE people SET born = born + ?", (100,))?;
        assert_eq!(transaction.sql_first::<i64>(count, (1950,))?, Some(3));
        assert_eq!(db.sql_first::<i64>(count, (1950,))?, Some(0));
        let rows = transaction.prepared_rows(&of_all, ())?;
        transaction.sql("DELETE FROM people WHERE name = 'Ada'", ())?;
        assert_eq!(rows.count(), 4, "as the transaction was when they were asked for");
        assert_eq!(transaction.sql_rows("SELECT * FROM people", ())?.count(), 3);

        let own = transaction.prepare("SELECT count(*) FROM people")?;
        assert_eq!(transaction.run_prepared(&own, ())?.first::<u64>()?, Some(3));
        let e = own.run(()).unwrap_err().to_string();
        assert!(e.starts_with("prepared within a transaction"), "{e}");
        for (text, message) in
            [("BEGIN", "needs a session"), ("CREATE SEQUENCE s", "sequences are changed outside")]
        {
            let e = transaction.sql(text, ()).unwrap_err().to_string();
            assert!(e.contains(message), "{e}");
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(of_all.rows_as::<String>(()).unwrap().count(), 3);

    let mut session = Session::new(&db);
    session.sql("BEGIN", ()).unwrap();
    session.sql("DELETE FROM people WHERE name = ?", ("Emmy",)).unwrap();
    assert_eq!(session.sql_as::<String>("SELECT name FROM people", ()).unwrap().len(), 2);
    assert_eq!(session.sql_first::<i64>(count, (0,)).unwrap(), Some(2));
    assert_eq!(session.prepared_rows(&of_all, ()).unwrap().count(), 2);
    assert_eq!(session.sql_rows("SELECT 1 FROM people", ()).unwrap().count(), 2);
    let held = session.sql_rows("SELECT * FROM people FOR UPDATE", ()).unwrap();
    assert_eq!(held.records::<Person>().unwrap().count(), 2);
    session.sql("ROLLBACK", ()).unwrap();
    assert_eq!(session.sql_rows("SELECT 1 FROM people", ()).unwrap().count(), 3);
    let begin = session.prepare("BEGIN").unwrap();
    session.run_prepared(&begin, ()).unwrap();
    assert!(session.is_in_transaction());
}

#[test]
fn rows_of_statements_that_are_no_queries() {
    let db = people();
    let returned = db.sql_rows("DELETE FROM people WHERE born > ? RETURNING *", (1900,)).unwrap();
    assert_eq!(returned.records::<Person>().unwrap().count(), 2);
    let e = db.sql_rows("DELETE FROM people", ()).unwrap_err().to_string();
    assert_eq!(e, "the statement answers no rows");
    let insert = db.prepare("INSERT INTO people VALUES ('Zoe', 1, NULL)").unwrap();
    assert!(insert.rows(()).is_err(), "it was run all the same");
    assert_eq!(db.sql_first::<u64>("SELECT count(*) FROM people", ()).unwrap(), Some(1));
}
