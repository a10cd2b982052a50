//! How many different values fields are thought to have, as joins show it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{Database, Options, Value};
use esker_sql::{Outcome, Sql};

use crate::fixture::answer;

const ROWS: i64 = 120_000;
/// Of a segment, so that there are several.
const SEGMENT_ROWS: usize = 20_000;

fn plan(db: &Database, text: &str) -> String {
    match db.sql(&format!("EXPLAIN {text}"), ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => panic!("{other:?}"),
    }
}

/// A table in several segments: numbers far apart that come again in each, numbers of which each
/// segment has its own, texts, dates near each other, fractions, texts of which few have any.
fn loaded() -> Database {
    let db = Options::new().segment_limit(SEGMENT_ROWS).memory().unwrap();
    db.sql(
        "CREATE TABLE t (id i64 PRIMARY KEY, far i64, own i64, name text, day date, part f64, \
         note text)",
        (),
    )
    .unwrap();
    db.sql("CREATE TABLE one (k i64)", ()).unwrap();
    db.sql("INSERT INTO one VALUES (1)", ()).unwrap();
    let table = db.table("t").unwrap();
    let mut rows = table.load().unwrap();
    for id in 0..ROWS {
        let mixed = id * 7_919 % ROWS;
        let note = if id % 10 == 0 { format!("note {id}").into() } else { Value::Null };
        rows.push_row(&[
            id.into(),
            (mixed % 3_000 * 1_000_000_007).into(),
            (id / 4 * 1_000_003).into(),
            format!("name {}", mixed % 20_000).into(),
            Value::Date(i32::try_from(10_000 + mixed % 2_000).unwrap()),
            (f64::from(i32::try_from(mixed % 5_000).unwrap()) / 7.0).into(),
            note,
        ])
        .unwrap();
    }
    rows.finish().unwrap();
    assert!(db.check().unwrap().segments > 3);
    db
}

/// How many rows a condition is thought to leave of `t`.
fn estimated(db: &Database, condition: &str) -> f64 {
    let plan = plan(db, &format!("SELECT count(*) FROM t, one WHERE t.id = one.k AND {condition}"));
    let line = plan.lines().find(|line| line.contains("table t where")).unwrap();
    let (_, count) = line.split_once("(about ").unwrap();
    let count: String = count.chars().take_while(char::is_ascii_digit).collect();
    count.parse().unwrap()
}

/// Each estimate is of the share of one value in many.
#[test]
fn counts_of_values_are_within_a_tenth() {
    let db = loaded();
    let list = |value: &dyn Fn(i64) -> String| (0..500).map(value).collect::<Vec<_>>().join(", ");
    let far = list(&|i| (i * 1_000_000_007).to_string());
    let own = list(&|i| (i * 1_000_003).to_string());
    let name = list(&|i| format!("'name {i}'"));
    let day = list(&|i| format!("date '1997-05-19' + {i}"));
    for (field, values, list) in [
        ("far", 3_000.0, &far),
        ("own", 30_000.0, &own),
        ("name", 20_000.0, &name),
        ("day", 2_000.0, &day),
    ] {
        let wanted = 500.0 * ROWS as f64 / values;
        let found = estimated(&db, &format!("t.{field} IN ({list})"));
        assert!((found / wanted - 1.0).abs() < 0.1, "{field}: {found}, wanted {wanted}");
        assert_eq!(
            answer(&db, &format!("SELECT count(DISTINCT {field}) FROM t")),
            values.to_string()
        );
    }
    let parts: Vec<_> = (0..500).map(|i| format!("{}", f64::from(i) / 7.0)).collect();
    let found = estimated(&db, &format!("t.part IN ({})", parts.join(", ")));
    assert!((found / 12_000.0 - 1.0).abs() < 0.1, "{found}");
    // Of nine rows of ten nothing is known but that they have no note.
    let notes = list(&|i| format!("'note {}'", i * 10));
    let found = estimated(&db, &format!("t.note IN ({notes})"));
    assert!((found / 500.0 - 1.0).abs() < 0.15, "{found}");
}

/// A few values far apart look like as many as rows, by their bounds: then their join, which makes
/// millions of rows, would come first.
#[test]
fn a_join_on_few_values_far_apart_comes_last() {
    let db = Options::new().segment_limit(SEGMENT_ROWS).memory().unwrap();
    for text in [
        "CREATE TABLE fact (id i64 PRIMARY KEY, few i64, many i64)",
        "CREATE TABLE a (few i64, x i64)",
        "CREATE TABLE b (many i64, y i64)",
        "INSERT INTO a SELECT s % 10 * 1000000007, s FROM generate_series(0, 999) s",
        "INSERT INTO b SELECT s * 1000003, s FROM generate_series(0, 4999) s",
    ] {
        db.sql(text, ()).unwrap();
    }
    let table = db.table("fact").unwrap();
    let mut rows = table.load().unwrap();
    for id in 0..ROWS {
        let row = [id.into(), (id % 10 * 1_000_000_007).into(), (id * 1_000_003).into()];
        rows.push_row(&row).unwrap();
    }
    rows.finish().unwrap();
    let text = "SELECT count(*), sum(x), sum(y) FROM a, fact, b \
        WHERE fact.few = a.few AND fact.many = b.many AND b.y < 4000";
    let plan = plan(&db, text);
    let joins: Vec<_> = plan.lines().filter(|line| line.contains(" join on ")).collect();
    let [last, first] = joins.as_slice() else { panic!("{plan}") };
    assert!(first.contains("many") && last.contains("few"), "{plan}");
    // Each of 4,000 rows meets 100 of `a`, whose x are r, r + 10, … r + 990 for a rest of r.
    let sum_x =
        (0..4_000i64).map(|id| (0..100).map(|k| id % 10 + 10 * k).sum::<i64>()).sum::<i64>();
    let sum_y = (0..4_000i64).sum::<i64>() * 100;
    assert_eq!(answer(&db, text), format!("400000|{sum_x}|{sum_y}"));
}
