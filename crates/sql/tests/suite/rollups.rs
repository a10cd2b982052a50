//! Materialized views: what is kept of them answers as the rows do.

use esker::{Database, Options, QueryOptions, Semantics, Value};
use esker_sql::Sql;
use esker_vfs::sim::{Options as SimOptions, Simulation};

/// Events of ten days in segments, some of them gone or changed, and some not sealed.
fn database() -> (Database, Simulation) {
    let machine = Simulation::new(7, SimOptions::default());
    let db = open(&machine);
    let text = "CREATE TABLE events (id i64 PRIMARY KEY, t timestamp NOT NULL, model text, \
                user_id u32 NOT NULL, status i32 NOT NULL, cost i64, price decimal(12, 3), \
                ms f64, day date)";
    db.sql(text, ()).unwrap();
    for view in [
        "spend AS SELECT date_trunc('hour', t) AS hour, model, count(*) AS n, sum(cost) AS cost, \
         avg(price) AS price, min(ms) AS least, max(ms) AS most, count(price) FROM events \
         GROUP BY 1, 2",
        "failed AS SELECT model, user_id, count(*) AS n, max(day) AS last FROM events \
         WHERE status >= 500 GROUP BY model, user_id",
        "users AS SELECT user_id, count(cost), sum(user_id) AS ids, min(model) FROM events \
         GROUP BY user_id",
    ] {
        db.sql(&format!("CREATE MATERIALIZED VIEW {view}"), ()).unwrap();
    }
    let insert = |from: i64, to: i64| {
        let text = "INSERT INTO events SELECT g, timestamp '2026-01-01' + g * interval '1 minute', \
             CASE WHEN g % 11 = 0 THEN NULL ELSE 'model ' || (g % 7) END, g % 50, \
             CASE WHEN g % 13 = 0 THEN 500 ELSE 200 END, \
             CASE WHEN g % 5 = 0 THEN NULL ELSE g * 7 % 1000 END, \
             CAST((g % 997) / 8.0 AS decimal(12, 3)), CASE WHEN g % 17 = 0 THEN NULL ELSE g % \
             300 / 4.0 END, \
             CAST('2026-01-01' AS date) + g % 90 FROM generate_series(?, ?) AS g";
        db.sql(text, (from, to)).unwrap();
    };
    insert(1, 12_000);
    db.wait_idle().unwrap();
    insert(12_001, 14_300);
    db.wait_idle().unwrap();
    (db, machine)
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().environment(machine.environment()).background(false);
    options.group_limit(5_000, 64 << 20).small_group_limit(1).open("db").unwrap()
}

/// Questions that are answered by what is kept, then some that are not.
const ANSWERED: &[&str] = &[
    "SELECT * FROM spend",
    "SELECT * FROM failed",
    "SELECT * FROM users",
    "SELECT count(*), count(cost), sum(cost), avg(cost), min(ms), max(ms) FROM events WHERE \
     model = 'model 3'",
    "SELECT model, count(*) FROM events GROUP BY model",
    "SELECT model, sum(price), avg(price), count(price) FROM events GROUP BY model",
    "SELECT upper(model) AS m, sum(cost) FROM events GROUP BY 1",
    "SELECT date_trunc('day', t) AS day, model, avg(cost) FROM events GROUP BY 1, 2",
    "SELECT date_trunc('month', t), count(model), count(DISTINCT model) FROM events GROUP BY 1",
    "SELECT date_trunc('week', t), max(model), min(model) FROM events GROUP BY 1",
    "SELECT model, sum(cost) FROM events WHERE t >= '2026-01-03' AND t < '2026-01-05 07:00' \
     GROUP BY model",
    "SELECT model, sum(cost) FROM events WHERE model IS NOT NULL GROUP BY model",
    "SELECT model, user_id, count(*), max(day) FROM events WHERE status >= 500 GROUP BY 1, 2",
    "SELECT count(*), max(day) FROM events WHERE status >= 500 AND user_id < 10",
    "SELECT user_id % 10 AS u, sum(user_id), count(*) FROM events GROUP BY 1",
    "SELECT model, sum(cost) FROM events WHERE model IN ('model 1', 'model 2') GROUP BY model \
     HAVING sum(cost) > 1",
    "SELECT model, date_trunc('day', t), sum(cost) FROM events GROUP BY ROLLUP (1, 2)",
    "SELECT DISTINCT model FROM events",
    "SELECT model, sum(cost), min(ms) FROM events WHERE t > '2026-01-02 03:20' AND t <= \
     '2026-01-05 07:40' GROUP BY model",
    "SELECT count(*) FROM events WHERE t >= '2026-01-03 10:20' AND t < '2026-01-03 10:40' AND \
     model = 'model 2'",
    "SELECT date_trunc('day', t), sum(price) FROM events WHERE t < '2026-01-07 10:00:00.5' \
     GROUP BY 1",
    "SELECT sum(n) FROM spend WHERE hour >= '2026-01-04 05:00'",
];

const NOT_ANSWERED: &[&str] = &[
    "SELECT model, sum(ms) FROM events GROUP BY model",
    "SELECT model, stddev(cost) FROM events GROUP BY model",
    "SELECT date_trunc('minute', t), sum(cost) FROM events GROUP BY 1",
    "SELECT model, count(*) FROM events WHERE status >= 400 GROUP BY 1",
    "SELECT day, count(*) FROM events GROUP BY day",
    "SELECT model, sum(DISTINCT cost) FROM events GROUP BY model",
];

fn rows(db: &Database, text: &str, use_rollups: &str) -> Vec<String> {
    let semantics = Semantics::default().with("use_rollups", Some(use_rollups)).unwrap();
    let options = QueryOptions { semantics, ..QueryOptions::default() };
    let query = esker_sql::parse(text).unwrap();
    let answer = db.query_with(&query, &options).unwrap().to_rows();
    let mut rows: Vec<String> = answer.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

fn plan(db: &Database, text: &str) -> String {
    db.explain(&esker_sql::parse(text).unwrap()).unwrap().to_string()
}

fn compare_all(db: &Database) {
    for text in ANSWERED.iter().chain(NOT_ANSWERED) {
        assert_eq!(rows(db, text, "on"), rows(db, text, "off"), "{text}");
    }
}

#[test]
fn what_is_kept_answers_as_the_rows_do() {
    let (db, machine) = database();
    for text in ANSWERED {
        let plan = plan(&db, text);
        assert!(plan.contains("groups kept of rollup"), "{text}\n{plan}");
    }
    for text in NOT_ANSWERED {
        let plan = plan(&db, text);
        assert!(!plan.contains("groups kept of rollup"), "{text}\n{plan}");
    }
    compare_all(&db);
    let answers: Vec<_> = ANSWERED.iter().map(|text| rows(&db, text, "on")).collect();
    db.close().unwrap();
    let db = open(&machine);
    assert!(plan(&db, ANSWERED[4]).contains("groups kept of rollup"));
    compare_all(&db);
    for (text, answer) in ANSWERED.iter().zip(&answers) {
        assert_eq!(rows(&db, text, "on"), *answer, "{text}");
    }
    db.check().unwrap();
}

#[test]
fn groups_come_in_the_order_of_rows() {
    let (db, _machine) = database();
    for text in [
        "SELECT model, count(*) FROM events GROUP BY model",
        "SELECT model, count(*) FROM events GROUP BY model LIMIT 3",
        "SELECT user_id % 10, sum(user_id) FROM events GROUP BY 1",
        "SELECT date_trunc('day', t), model, sum(cost) FROM events GROUP BY ROLLUP (1, 2)",
        "SELECT DISTINCT model FROM events LIMIT 4",
    ] {
        let answer = |use_rollups| {
            let semantics = Semantics::default().with("use_rollups", Some(use_rollups)).unwrap();
            let options = QueryOptions { semantics, ..QueryOptions::default() };
            db.query_with(&esker_sql::parse(text).unwrap(), &options).unwrap().to_rows()
        };
        assert_eq!(answer("on"), answer("off"), "{text}");
    }
}

#[test]
fn two_zeros_are_not_one_condition() {
    let (db, _machine) = database();
    let view = "CREATE MATERIALIZED VIEW angles AS SELECT model, count(*) FROM events \
                WHERE atan2(user_id, 0.0) < 1 GROUP BY model";
    db.sql(view, ()).unwrap();
    db.wait_idle().unwrap();
    let question =
        "SELECT model, count(*) FROM events WHERE atan2(user_id, -0.0) < 1 GROUP BY model";
    assert_eq!(rows(&db, question, "on"), rows(&db, question, "off"));
}

#[test]
fn what_is_the_same_is_kept_when_a_view_is_replaced() {
    let (db, _machine) = database();
    let number = |db: &Database| {
        let schema = db.table("events").unwrap().schema().clone();
        schema.rollup("users").unwrap().id
    };
    let text = "CREATE OR REPLACE MATERIALIZED VIEW users AS SELECT user_id, count(cost), \
                sum(user_id) AS ids, min(model) FROM events GROUP BY user_id";
    let before = number(&db);
    db.sql(text, ()).unwrap();
    assert_eq!(number(&db), before);
    db.sql(&text.replace("min(model)", "min(model), max(model)"), ()).unwrap();
    assert!(number(&db) > before);
}

#[test]
fn little_memory_is_no_error() {
    let (db, _machine) = database();
    let limits = esker::Limits { memory_bytes: Some(40 << 10), ..esker::Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let query =
        esker_sql::parse("SELECT hour, model, n FROM spend ORDER BY n, 1, 2 LIMIT 3").unwrap();
    let answer = db.query_with(&query, &options).map(|answer| answer.to_rows());
    let all = db.query(&query).unwrap().to_rows();
    match answer {
        Ok(answer) => assert_eq!(answer, all),
        Err(e) => assert_eq!(e.kind(), esker::ErrorKind::OverBudget),
    }
}

#[test]
fn rows_that_are_gone_are_taken_away() {
    let (db, _machine) = database();
    let old = db.snapshot().unwrap();
    let question = esker_sql::parse(ANSWERED[0]).unwrap();
    let before = old.query(&question).unwrap().to_rows().len();
    for text in [
        "DELETE FROM events WHERE id % 97 = 3",
        "UPDATE events SET cost = 10 WHERE id % 89 = 5",
        "DELETE FROM events WHERE t >= '2026-01-02 03:00' AND t < '2026-01-02 04:00'",
    ] {
        db.sql(text, ()).unwrap();
        compare_all(&db);
    }
    assert_eq!(old.query(&question).unwrap().to_rows().len(), before);
    // The extremes of a group are among the rows that go.
    db.sql("DELETE FROM events WHERE ms IN (SELECT max(ms) FROM events)", ()).unwrap();
    compare_all(&db);
    // Far more than are taken away one by one.
    db.sql("DELETE FROM events WHERE id % 2 = 0", ()).unwrap();
    compare_all(&db);
    drop(old);
    db.compact(false, &mut |_, _| {}).unwrap();
    compare_all(&db);
    let plan = plan(&db, "SELECT * FROM users");
    assert!(plan.contains("groups kept of rollup users"), "{plan} {:?}", db.info().tables);
    db.check().unwrap();
}

#[test]
fn a_transaction_sees_its_own_rows() {
    let (db, _machine) = database();
    let mut session = esker_sql::Session::new(&db);
    let all = |session: &mut esker_sql::Session, value: &str| {
        session.sql(&format!("SET use_rollups = '{value}'"), ()).unwrap();
        let mut run = |text: &str| match session.sql(&format!("{text} ORDER BY 1, 2"), ()).unwrap()
        {
            esker_sql::Outcome::Rows(answer) => answer.to_rows(),
            other => panic!("{other:?}"),
        };
        ["SELECT * FROM failed", ANSWERED[4], ANSWERED[5]].map(&mut run)
    };
    session.sql("BEGIN", ()).unwrap();
    session.sql("DELETE FROM events WHERE id < 40", ()).unwrap();
    session.sql("UPDATE events SET model = 'new' WHERE id BETWEEN 60 AND 70", ()).unwrap();
    let with = all(&mut session, "on");
    assert_eq!(with, all(&mut session, "off"));
    session.sql("ROLLBACK", ()).unwrap();
}

#[test]
fn what_is_kept_goes_with_the_view() {
    let (db, _machine) = database();
    let kept = |db: &Database| plan(db, ANSWERED[4]).contains("groups kept of rollup");
    assert!(kept(&db), "{}", plan(&db, ANSWERED[4]));
    db.sql("ALTER MATERIALIZED VIEW spend RENAME TO costs", ()).unwrap();
    assert!(plan(&db, "SELECT * FROM costs").contains("groups kept of rollup costs"));
    let e = db.sql("ALTER TABLE events ALTER COLUMN status TYPE i64", ()).unwrap_err().to_string();
    assert!(e.contains("materialized view \"failed\" reads field \"status\""), "{e}");
    db.sql("DROP MATERIALIZED VIEW costs", ()).unwrap();
    assert!(!kept(&db));
    let text = "CREATE OR REPLACE MATERIALIZED VIEW users AS SELECT model, user_id, count(cost), \
                sum(user_id) AS ids, min(model) FROM events GROUP BY model, user_id";
    db.sql(text, ()).unwrap();
    db.wait_idle().unwrap();
    assert!(kept(&db));
    db.sql("ALTER TABLE events DROP COLUMN cost CASCADE", ()).unwrap();
    assert!(!kept(&db));
    db.sql("DROP TABLE events CASCADE", ()).unwrap();
    assert!(db.views().is_empty());
}

#[test]
fn an_expression_of_a_row_that_is_gone_fails_no_query() {
    let (db, _machine) = database();
    let text = "SELECT 100 / (user_id - 7), count(*) FROM events GROUP BY 1";
    let semantics = Semantics::postgres();
    let run = |value: &str| {
        let semantics = semantics.with("use_rollups", Some(value)).unwrap();
        let options = QueryOptions { semantics, ..QueryOptions::default() };
        let query = esker_sql::parse(text).unwrap();
        db.query_with(&query, &options).map(|answer| answer.to_rows().len())
    };
    assert!(run("on").is_err() && run("off").is_err());
    db.sql("DELETE FROM events WHERE user_id = 7", ()).unwrap();
    assert_eq!(run("on").unwrap(), run("off").unwrap());
}

const OPEN: [&str; 9] = [
    "SELECT * FROM spend",
    "SELECT * FROM users",
    "SELECT model, count(*), sum(cost) FROM events GROUP BY model",
    "SELECT model, max(cost) FROM events GROUP BY model",
    "SELECT sum(price), count(*) FROM events WHERE model = 'model 3'",
    "SELECT model, sum(cost) FROM events WHERE t >= '2026-01-01 02:20' AND t < '2026-01-01 \
         17:40' GROUP BY model",
    "SELECT user_id, count(cost) FROM events WHERE cost > 10 AND user_id IN (3, 7) GROUP BY 1",
    "SELECT model, sum(cost) FROM events GROUP BY ROLLUP (1)",
    "SELECT user_id, id, count(*) FROM events WHERE id < 40000 GROUP BY 1, 2",
];

fn insert_open(db: &Database, from: i64, to: i64) {
    let text = "INSERT INTO events SELECT g, timestamp '2026-01-01' + g * interval '1 second', \
             CASE WHEN g % 11 = 0 THEN NULL ELSE 'model ' || (g % 7) END, g % 50, \
             CASE WHEN g % 5 = 0 THEN NULL ELSE g * 7 % 1000 END, \
             CAST((g % 997) / 8.0 AS decimal(12, 3)) FROM generate_series(?, ?) AS g";
    db.sql(text, (from, to)).unwrap();
}

/// Rows that are not sealed: some of many, and of those that a reader does not see.
fn open_rows() -> Database {
    let db = Options::new().memory().unwrap();
    let text = "CREATE TABLE events (id i64 PRIMARY KEY, t timestamp NOT NULL, model text, \
                user_id u32 NOT NULL, cost i64, price decimal(12, 3))";
    db.sql(text, ()).unwrap();
    insert_open(&db, 1, 70_000);
    for view in [
        "spend AS SELECT date_trunc('hour', t) AS hour, model, count(*) AS n, sum(cost) AS cost, \
         avg(price) AS price, max(cost) AS most FROM events GROUP BY 1, 2",
        "every AS SELECT user_id, id, count(*) FROM events GROUP BY 1, 2",
        "users AS SELECT user_id, count(cost), sum(user_id) AS ids, min(model) FROM events \
         WHERE cost > 10 GROUP BY user_id",
    ] {
        db.sql(&format!("CREATE MATERIALIZED VIEW {view}"), ()).unwrap();
    }
    db
}

#[test]
fn blocks_of_open_groups_answer_as_their_rows_do() {
    let db = open_rows();
    let questions = OPEN;
    let compare = |at: &str| {
        for question in questions {
            assert_eq!(rows(&db, question, "on"), rows(&db, question, "off"), "{question} {at}");
        }
    };
    for question in &questions[..7] {
        let plan = plan(&db, question);
        assert!(plan.contains("groups kept of rollup"), "{question}\n{plan}");
    }
    for question in ["SELECT model, count(*) FROM events GROUP BY model LIMIT 3", questions[2]] {
        let answer = |use_rollups| {
            let semantics = Semantics::default().with("use_rollups", Some(use_rollups)).unwrap();
            let options = QueryOptions { semantics, ..QueryOptions::default() };
            db.query_with(&esker_sql::parse(question).unwrap(), &options).unwrap().to_rows()
        };
        assert_eq!(answer("on"), answer("off"), "the order of {question}");
    }
    compare("at first");
    let old = db.snapshot().unwrap();
    let before = old.query(&esker_sql::parse(questions[2]).unwrap()).unwrap().to_rows();
    db.sql("DELETE FROM events WHERE id % 97 = 3", ()).unwrap();
    db.sql("UPDATE events SET cost = cost + 1000, model = 'model 1' WHERE id % 211 = 5", ())
        .unwrap();
    compare("with rows that are gone");
    insert_open(&db, 70_001, 140_000);
    compare("with more rows");
    db.sql("DELETE FROM events WHERE id BETWEEN 9000 AND 30000", ()).unwrap();
    compare("with blocks that are gone");
    let after = old.query(&esker_sql::parse(questions[2]).unwrap()).unwrap().to_rows();
    assert_eq!(before, after);
    let within = db.begin().unwrap();
    let savepoint = within.savepoint();
    let insert_within = |models: &str| {
        let text = format!(
            "INSERT INTO events SELECT g, timestamp '2026-01-01' + g * interval '1 second', \
             '{models}', 7, 20, 1 FROM generate_series(200001, 250000) AS g"
        );
        within.sql(&text, ()).unwrap();
        let query = esker_sql::parse(questions[2]).unwrap();
        let mut found = within.query(&query).unwrap().to_rows();
        found.retain(|row| row[0] == models.into());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0][1], Value::Int(50_000));
    };
    insert_within("first");
    within.rollback_to(savepoint).unwrap();
    insert_within("second");
    within.rollback();
    compare("at the end");
}
