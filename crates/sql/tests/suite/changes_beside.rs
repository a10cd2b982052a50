//! `UPDATE … FROM` and `DELETE … USING`, in transactions and beside other writers.

use esker::{Database, ErrorKind, Options, Value};
use esker_sql::Session;

use crate::fixture::run_all;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    run_all(
        &mut Session::new(&db),
        &[
            "CREATE TABLE t (k i64 PRIMARY KEY, n i64)",
            "CREATE TABLE u (id i64 PRIMARY KEY, k i64, more i64)",
            "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
            "INSERT INTO u VALUES (1, 1, 1), (2, 2, 2)",
        ],
    );
    db
}

/// An answer as text: values by `|`, rows by `;`.
#[track_caller]
fn answer(session: &mut Session, text: &str) -> String {
    let rows = session.sql(text, ()).unwrap().into_rows().unwrap().to_rows();
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(";")
}

const ALL: &str = "SELECT k, n FROM t ORDER BY k";
const ADD: &str = "UPDATE t SET n = t.n + u.more FROM u WHERE u.k = t.k";

#[test]
fn a_transaction_joins_what_it_has_changed() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(
        &mut a,
        &[
            "BEGIN",
            "INSERT INTO u VALUES (3, 3, 3), (4, 4, 4)",
            "INSERT INTO t VALUES (4, 40)",
            "DELETE FROM u WHERE id = 2",
            ADD,
        ],
    );
    assert_eq!(answer(&mut a, ALL), "1|11;2|20;3|33;4|44");
    assert_eq!(answer(&mut b, ALL), "1|10;2|20;3|30");
    let gone = "DELETE FROM t USING u WHERE u.k = t.k AND u.more > 2 RETURNING t.k, u.id";
    run_all(&mut a, &["SAVEPOINT s"]);
    assert_eq!(answer(&mut a, gone), "3|3;4|4");
    assert_eq!(answer(&mut a, ALL), "1|11;2|20");
    run_all(&mut a, &["ROLLBACK TO s", "COMMIT"]);
    assert_eq!(answer(&mut b, ALL), "1|11;2|20;3|33;4|44");
}

#[test]
fn what_is_read_beside_counts_as_read() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(&mut a, &["BEGIN ISOLATION LEVEL SERIALIZABLE", ADD]);
    run_all(&mut b, &["UPDATE u SET more = 100 WHERE id = 1"]);
    let error = a.sql("COMMIT", ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(answer(&mut b, ALL), "1|10;2|20;3|30");
}

#[test]
fn no_update_beside_others_is_lost() {
    let db = database();
    const EACH: i64 = 200;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = Session::new(&db);
                for _ in 0..EACH {
                    run_all(&mut session, &[ADD]);
                }
            });
        }
    });
    let rows = format!("1|{};2|{};3|30", 10 + 2 * EACH, 20 + 4 * EACH);
    assert_eq!(answer(&mut Session::new(&db), ALL), rows);
}

/// The same by a join and by subqueries, over rows in memory, in segments, and in both.
#[test]
fn a_join_changes_what_subqueries_change() {
    let dir = std::env::temp_dir().join(format!("esker-beside-{}", std::process::id()));
    let db = Options::new().background(false).open(&dir).unwrap();
    let mut session = Session::new(&db);
    run_all(
        &mut session,
        &[
            "CREATE TABLE a (k i64, part i64, n i64, PRIMARY KEY (k))",
            "CREATE TABLE b (k i64 PRIMARY KEY, part i64, n i64)",
            "CREATE TABLE u (id i64 PRIMARY KEY, k i64, more i64)",
            "CREATE INDEX by_k ON u (k)",
        ],
    );
    for round in 0..4i64 {
        let rows = |name: &str| {
            format!(
                "INSERT INTO {name} SELECT value, value % 7, value FROM \
                 generate_series({}, {}) AS g(value)",
                round * 5_000,
                round * 5_000 + 4_999
            )
        };
        let more = format!(
            "INSERT INTO u SELECT value, value * 3 % 20000, value % 11 FROM \
             generate_series({}, {}) AS g(value)",
            round * 2_000,
            round * 2_000 + 1_999
        );
        run_all(&mut session, &[&rows("a"), &rows("b"), &more]);
        if round == 1 {
            db.checkpoint().unwrap();
        }
        run_all(
            &mut session,
            &[
                "UPDATE a SET n = a.n + v.more, part = v.many FROM (SELECT k, sum(more) AS more, \
                 count(*) AS many FROM u GROUP BY k) AS v WHERE v.k = a.k AND a.part <> 3",
                "UPDATE b SET n = b.n + (SELECT sum(more) FROM u WHERE u.k = b.k), part = (SELECT \
                 count(*) FROM u WHERE u.k = b.k) WHERE part <> 3 AND k IN (SELECT k FROM u)",
                "DELETE FROM a USING u WHERE u.k = a.k AND u.more = 5",
                "DELETE FROM b WHERE EXISTS (SELECT 1 FROM u WHERE u.k = b.k AND more = 5)",
            ],
        );
        for (one, other) in [("a", "b"), ("b", "a")] {
            let rest = format!("SELECT * FROM {one} EXCEPT SELECT * FROM {other}");
            assert_eq!(answer(&mut session, &rest), "", "{one} in round {round}");
        }
    }
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
