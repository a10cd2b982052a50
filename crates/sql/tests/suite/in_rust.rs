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
    let twice = "SELECT *, 1 AS born FROM people";
    let e = db.sql_as::<Person>(twice, ()).unwrap_err().to_string();
    assert_eq!(e, {
        "record Person: the answer has 2 columns \"born\": give others other names with AS"
    });
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
    assert_eq!(db.sql_first::<u64>("SELECT count(*) FROM people", ()).unwrap(), Some(1));
}

#[test]
fn a_statement_that_answers_no_rows_is_not_run_where_rows_are_asked_for() {
    let db = people();
    let text = "INSERT INTO people VALUES ('Zoe', 1, NULL)";
    let insert = db.prepare(text).unwrap();
    let refused = |result: esker::Result<()>| {
        assert_eq!(result.unwrap_err().to_string(), "the statement answers no rows");
        assert_eq!(db.table("people").unwrap().count().unwrap(), 3);
        assert_eq!(db.tables(), ["people"]);
    };
    for text in [text, "DELETE FROM people", "UPDATE people SET born = 1", "CREATE TABLE t (a i64)"]
    {
        refused(db.sql_as::<i64>(text, ()).map(drop));
        refused(db.sql_first::<i64>(text, ()).map(drop));
        refused(db.sql_rows(text, ()).map(drop));
    }
    refused(insert.query(()).map(drop));
    refused(insert.query_as::<i64>(()).map(drop));
    refused(insert.rows(()).map(drop));
    refused(insert.first(()).map(drop));
    refused(insert.first_as::<i64>(()).map(drop));
    refused(db.prepared_rows(&insert, ()).map(drop));
    let transaction = db.begin().unwrap();
    refused(transaction.sql_as::<i64>(text, ()).map(drop));
    refused(transaction.prepared_rows(&insert, ()).map(drop));
    assert_eq!(transaction.table("people").unwrap().count().unwrap(), 3);
    let mut session = Session::new(&db);
    for text in [text, "BEGIN"] {
        refused(session.sql_as::<i64>(text, ()).map(drop));
        refused(session.sql_first::<i64>(text, ()).map(drop));
        refused(session.sql_rows(text, ()).map(drop));
    }
    let begin = session.prepare("BEGIN").unwrap();
    refused(session.prepared_rows(&begin, ()).map(drop));
    assert!(!session.is_in_transaction());
    let changed = "SELECT count(*) FROM people WHERE born = 1";
    assert_eq!(db.sql_first::<u64>(changed, ()).unwrap(), Some(0));
}

#[test]
fn the_first_row_of_an_answer_takes_no_more_memory_than_one() {
    let db = Options::new().query_memory_limit(1 << 20).memory().unwrap();
    db.sql("CREATE TABLE words (id i64 PRIMARY KEY, word text)", ()).unwrap();
    let table = db.table("words").unwrap();
    let rows: Vec<_> = (0..20_000).map(|id: i64| vec![id.into(), "w".repeat(200).into()]).collect();
    table.insert_many(&rows).unwrap();
    let text = "SELECT id, word FROM words ORDER BY id DESC";
    assert_eq!(db.sql(text, ()).unwrap_err().kind(), ErrorKind::OverBudget);
    let first = || Some((19_999, "w".repeat(200)));
    assert_eq!(db.sql_first::<(i64, String)>(text, ()).unwrap(), first());
    let prepared = db.prepare(text).unwrap();
    assert_eq!(prepared.first_as::<(i64, String)>(()).unwrap(), first());
    assert_eq!(prepared.first(()).unwrap().unwrap()[0], Value::Int(19_999));
    assert_eq!(Session::new(&db).sql_first::<(i64, String)>(text, ()).unwrap(), first());
    // A limit of its own is kept where it says less.
    let none = format!("{text} LIMIT 0");
    assert_eq!(db.sql_first::<(i64, String)>(&none, ()).unwrap(), None);
    let later = format!("{text} LIMIT 3 OFFSET 2");
    assert_eq!(db.sql_first::<(i64, String)>(&later, ()).unwrap().unwrap().0, 19_997);
}

#[test]
fn rows_are_cancelled_while_they_are_waited_for() {
    let db = people();
    db.sql("CREATE TABLE n (n i64 PRIMARY KEY)", ()).unwrap();
    let rows: Vec<_> = (0..100_000i64).map(|n| vec![n.into()]).collect();
    db.table("n").unwrap().insert_many(&rows).unwrap();
    // Ten thousand million pairs, and none that is an answer.
    let text = "SELECT a.n FROM n a JOIN n b ON a.n + b.n < 0";
    let mut rows = db.sql_rows(text, ()).unwrap();
    let cancel = rows.cancel_handle();
    let waiting = std::thread::spawn(move || rows.next().unwrap().unwrap_err().kind());
    std::thread::sleep(std::time::Duration::from_millis(50));
    cancel.cancel();
    assert_eq!(waiting.join().unwrap(), ErrorKind::Cancelled);
    assert!(db.snapshots().is_empty());
    // What is at hand comes first, and is not taken for all there is.
    let mut rows = db.sql_rows("SELECT n FROM n", ()).unwrap();
    rows.next().unwrap().unwrap();
    rows.cancel_handle().cancel();
    let last = rows.last().unwrap();
    assert_eq!(last.unwrap_err().kind(), ErrorKind::Cancelled);
    // Once they have ended there is nothing to cancel.
    let mut rows = db.sql_rows("SELECT 1", ()).unwrap();
    let cancel = rows.cancel_handle();
    assert_eq!(rows.by_ref().count(), 1);
    cancel.cancel();
    assert!(rows.next().is_none());
}

#[test]
fn only_parameters_are_taken_for_parameters() {
    let db = people();
    let text = "SELECT ':a ?' AS \":b\", '1'::i64 /* :c ? */ + :d -- :e $1\n FROM people LIMIT 1";
    let prepared = db.prepare(text).unwrap();
    assert_eq!(prepared.parameters(), [":d"]);
    let found: Vec<(String, i64)> = prepared.query_as(Named::new([("d", 2.into())])).unwrap();
    assert_eq!(found, [(":a ?".to_owned(), 3)]);
    // One name may stand several times, and takes one value.
    let both = db.prepare("SELECT :x + :x").unwrap();
    assert_eq!(both.first_as::<i64>((2,)).unwrap(), Some(4));
}
