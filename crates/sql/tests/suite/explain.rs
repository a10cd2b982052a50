//! `EXPLAIN` in all its spellings: each operator says about how many rows were expected of it, and
//! how many there were.

use esker::{Database, Options};
use esker_sql::{Outcome, Session, Sql};
use serde_json::Value;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    for text in [
        "CREATE TABLE c (id i64 PRIMARY KEY, name text, city text)",
        "CREATE TABLE o (id i64 PRIMARY KEY, c i64, price i64, day date, INDEX by_c (c))",
        "INSERT INTO c SELECT g, 'name ' || g, 'city ' || (g % 7) FROM generate_series(1, 100) AS \
        g",
        "INSERT INTO o SELECT g, g % 100 + 1, g * 3 % 50, CAST('2024-01-01' AS date) FROM \
         generate_series(1, 1000) AS g",
    ] {
        db.sql(text, ()).unwrap();
    }
    db
}

/// A question for each operator that there is.
const QUESTIONS: &[&str] = &[
    "SELECT 1",
    "SELECT * FROM c",
    "SELECT * FROM c WHERE id = 7",
    "SELECT * FROM o WHERE c = 7",
    "SELECT * FROM o WHERE price < 3 AND c > 2",
    "SELECT name FROM c ORDER BY city, id LIMIT 3 OFFSET 2",
    "SELECT * FROM o ORDER BY c LIMIT 5",
    "SELECT count(*) FROM o",
    "SELECT max(price) FROM o",
    "SELECT city, count(*) FROM c GROUP BY city HAVING count(*) > 3 ORDER BY 2",
    "SELECT city, name, count(*) FROM c GROUP BY ROLLUP (city, name)",
    "SELECT DISTINCT city FROM c",
    "SELECT DISTINCT ON (city) city, name FROM c ORDER BY city, id",
    "SELECT id, rank() OVER (PARTITION BY city ORDER BY id) AS r FROM c QUALIFY r < 3",
    "SELECT city, sum(count(*)) OVER (ORDER BY city) FROM c GROUP BY city",
    "SELECT * FROM o JOIN c ON c.id = o.c",
    "SELECT * FROM o LEFT JOIN c ON c.id = o.c AND c.city = 'city 1'",
    "SELECT * FROM o RIGHT JOIN c ON c.id = o.c",
    "SELECT * FROM o FULL JOIN c ON c.id = o.c",
    "SELECT * FROM o SEMI JOIN c ON c.id = o.c",
    "SELECT * FROM o ANTI JOIN c ON c.id = o.c",
    "SELECT count(*) FROM o CROSS JOIN c",
    "SELECT a.id FROM o a JOIN o b ON a.price BETWEEN b.price - 1 AND b.price + 1 WHERE b.id < 9",
    "SELECT * FROM o a JOIN o b ON a.id = b.id JOIN c ON c.id = b.c WHERE c.city = 'city 2'",
    "SELECT * FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.id = o.c AND c.city = 'city 3')",
    "SELECT * FROM o WHERE c NOT IN (SELECT id FROM c WHERE city = 'city 3')",
    "SELECT * FROM o WHERE price > (SELECT avg(price) FROM o)",
    "SELECT id, (SELECT count(*) FROM o WHERE o.c = c.id) FROM c WHERE id < 50",
    "SELECT id, (SELECT name FROM c WHERE c.id = o.c ORDER BY city LIMIT 1) FROM o",
    "SELECT d.city, d.n FROM (SELECT city, count(*) AS n FROM c GROUP BY city) d WHERE d.n > 2",
    "SELECT * FROM (SELECT * FROM c WHERE id < 10) d JOIN o ON o.c = d.id",
    "WITH x AS (SELECT city, count(*) AS n FROM c GROUP BY 1) SELECT * FROM x a, x b",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r",
    "SELECT id FROM c UNION SELECT c FROM o",
    "SELECT id FROM c UNION ALL SELECT c FROM o ORDER BY 1 LIMIT 4",
    "SELECT id FROM c INTERSECT SELECT c FROM o",
    "SELECT id FROM c EXCEPT ALL SELECT c FROM o WHERE price > 10",
    "SELECT * FROM (SELECT id FROM c EXCEPT SELECT c FROM o) d WHERE id > 3",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM (VALUES (1), (2)) v (n) JOIN c ON c.id = v.n",
    "SELECT * FROM generate_series(1, 9) AS g WHERE g > 3",
    "SELECT c.id, g FROM c, generate_series(1, c.id) AS g",
    "SELECT c.id, d.price FROM c, LATERAL (SELECT price FROM o WHERE o.c = c.id LIMIT 2) d",
    "SELECT * FROM (c JOIN o ON c.id = o.c) LEFT JOIN c AS e ON e.id = o.price",
];

fn document(db: &Database, text: &str) -> Value {
    let outcome = db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let Outcome::Plan(plan) = outcome else { panic!("{text}: expected a plan") };
    serde_json::from_str(&plan).unwrap_or_else(|e| panic!("{text}: {e}: {plan}"))
}

/// Counts the operators of a plan; each has its estimate, and what it met where it ran.
struct Walk<'t> {
    text: &'t str,
    ran: bool,
    operators: usize,
}

impl Walk<'_> {
    fn number(&self, of: &Value, name: &str) -> f64 {
        of[name].as_f64().unwrap_or_else(|| panic!("{}: no {name} in {of:#}", self.text))
    }

    fn plan(&mut self, plan: &Value) {
        self.operators += 1;
        self.number(plan, "rows_estimated");
        if self.ran {
            self.number(&plan["met"], "rows_passed");
            self.number(&plan["met"], "elapsed_ms");
        } else {
            assert!(plan["met"].is_null(), "{}: {plan:#}", self.text);
        }
        for part in plan["parts"].as_array().unwrap() {
            self.number(part, "rows_estimated");
        }
        for step in plan["steps"].as_array().unwrap() {
            self.operators += 1;
            self.number(step, "rows_estimated");
            if self.ran {
                for name in ["rows_in", "rows_out", "elapsed_ms", "spilled_bytes"] {
                    self.number(&step["ran"], name);
                }
            }
        }
        self.input(&plan["input"]);
        for subquery in plan["subqueries"].as_array().into_iter().flatten() {
            self.plan(&subquery["plan"]);
        }
    }

    fn input(&mut self, input: &Value) {
        if input.is_null() {
            return;
        }
        self.operators += 1;
        self.number(input, "rows_estimated");
        if self.ran {
            self.number(input, "rows");
        }
        if !input["plan"].is_null() {
            self.plan(&input["plan"]);
        }
        input["inputs"].as_array().into_iter().flatten().for_each(|input| self.input(input));
    }
}

#[test]
fn every_operator_says_what_was_expected_and_what_there_was() {
    let db = database();
    for text in QUESTIONS {
        for (options, ran) in [("ANALYZE, FORMAT JSON", true), ("FORMAT JSON", false)] {
            let plan = document(&db, &format!("EXPLAIN ({options}) {text}"));
            let mut walk = Walk { text, ran, operators: 0 };
            walk.plan(&plan);
            assert!(walk.operators >= 2, "{text}: {plan:#}");
        }
    }
}

#[test]
fn estimates_are_of_rows_that_come_out() {
    let db = database();
    let steps = |text: &str| -> Vec<u64> {
        let plan = document(&db, &format!("EXPLAIN (FORMAT JSON) {text}"));
        let steps = plan["steps"].as_array().unwrap().iter();
        steps.map(|step| step["rows_estimated"].as_u64().unwrap()).collect()
    };
    assert_eq!(steps("SELECT * FROM c"), [100]);
    assert_eq!(steps("SELECT * FROM c WHERE id = 7"), [1]);
    assert_eq!(steps("SELECT * FROM c ORDER BY name LIMIT 3"), [3]);
    assert_eq!(steps("SELECT * FROM c ORDER BY name LIMIT 30 OFFSET 90"), [10]);
    assert_eq!(steps("SELECT count(*) FROM c"), [1, 1]);
    assert_eq!(steps("SELECT id, count(*) FROM c GROUP BY id LIMIT 7"), [100, 7]);
    let plan = document(&db, "EXPLAIN (FORMAT JSON) SELECT * FROM (SELECT DISTINCT id FROM c) d");
    assert_eq!(plan["input"]["rows_estimated"], 100, "{plan:#}");
    let join = document(&db, "EXPLAIN (FORMAT JSON) SELECT * FROM o JOIN c ON c.id = o.c");
    assert_eq!(join["input"]["rows_estimated"], 1000, "{join:#}");
}

#[test]
fn what_is_met_is_counted() {
    let db = database();
    let text = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT d.city, o.id FROM (SELECT city, min(id) AS \
                id FROM c GROUP BY city) d JOIN o ON o.c = d.id";
    let plan = document(&db, text);
    let join = &plan["input"];
    assert_eq!((&join["kind"], &join["rows"]), (&"inner join".into(), &70.into()), "{plan:#}");
    let inputs = join["inputs"].as_array().unwrap();
    let query = inputs.iter().find(|input| input["kind"] == "query").unwrap();
    assert_eq!(query["rows"], 7);
    assert_eq!(query["plan"]["met"]["rows_passed"], 100, "{plan:#}");
    assert_eq!(query["plan"]["steps"][0]["ran"]["rows_out"], 7);
    assert_eq!(plan["steps"][0]["ran"]["rows_out"], 70);
}

#[test]
fn postgresqls_spellings_are_read() {
    let db = database();
    let plan = |text: &str| match db.sql(text, ()) {
        Ok(Outcome::Plan(plan)) => plan,
        other => panic!("{text}: {other:?}"),
    };
    let ran = |text: &str| plan(text).contains("rows in");
    for text in [
        "EXPLAIN SELECT * FROM c",
        "EXPLAIN VERBOSE SELECT * FROM c",
        "EXPLAIN (VERBOSE, COSTS off) SELECT * FROM c",
        "EXPLAIN (ANALYZE false, FORMAT TEXT) SELECT * FROM c",
        "EXPLAIN QUERY PLAN SELECT * FROM c",
    ] {
        assert!(!ran(text), "{text}: {}", plan(text));
    }
    for text in [
        "EXPLAIN ANALYZE SELECT * FROM c",
        "EXPLAIN ANALYZE VERBOSE SELECT * FROM c",
        "EXPLAIN (ANALYZE) SELECT * FROM c",
        "EXPLAIN (ANALYZE true, TIMING off, BUFFERS on, SUMMARY 1) SELECT * FROM c",
        "EXPLAIN (analyze on, settings, wal, memory 'off', format 'text') SELECT * FROM c",
    ] {
        assert!(ran(text), "{text}: {}", plan(text));
    }
    for text in ["EXPLAIN FORMAT JSON SELECT * FROM c", "EXPLAIN (format json) SELECT * FROM c"] {
        assert!(document(&db, text)["met"].is_null());
    }
    assert!(!document(&db, "EXPLAIN (FORMAT JSON, ANALYZE 1) VALUES (1)")["met"].is_null());
    let refused = [
        ("EXPLAIN (SERIALIZE) SELECT 1", "there is no option SERIALIZE here"),
        ("EXPLAIN (FORMAT XML) SELECT 1", "FORMAT: expected TEXT or JSON, found XML"),
        ("EXPLAIN (ANALYZE maybe) SELECT 1", "ANALYZE: expected TRUE or FALSE, found MAYBE"),
        ("EXPLAIN (ANALYZE) DELETE FROM c", "expected SELECT, found DELETE"),
    ];
    for (text, message) in refused {
        let error = db.sql(text, ()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn parameters_and_sessions_have_plans_as_documents() {
    let db = database();
    let prepared = db.prepare("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM c WHERE id < ?");
    let Outcome::Plan(plan) = prepared.unwrap().run((11,)).unwrap() else { panic!() };
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["met"]["rows_passed"], 10);
    let mut session = Session::new(&db);
    session.sql("BEGIN", ()).unwrap();
    session.sql("DELETE FROM c WHERE id > 60", ()).unwrap();
    let outcome = session.sql("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM c", ()).unwrap();
    let Outcome::Plan(plan) = outcome else { panic!() };
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["met"]["rows_passed"], 60, "{plan:#}");
}
