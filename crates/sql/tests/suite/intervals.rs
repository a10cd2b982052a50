//! Intervals as parameters, in records, in groups of all plans, and where a date is beside one.

use crate::fixture::{answer, memory};
use esker::{Interval, Record, Value};
use esker_sql::Sql;

#[derive(Debug, PartialEq, Record)]
struct Wait {
    #[esker(key)]
    id: i64,
    every: Interval,
    most: Option<Interval>,
}

#[test]
fn intervals_are_fields_of_records() {
    let db = memory(&[]);
    let waits = db.create_table_of::<Wait>("waits").unwrap();
    let every = Interval::new(1, -2, 3_000_000);
    let all = [Wait { id: 1, every, most: None }, Wait { id: 2, every, most: Some(every) }];
    for wait in &all {
        waits.insert(wait).unwrap();
    }
    let found = waits.get(2).unwrap().unwrap();
    assert_eq!(found.most.map(|most| most.to_string()).unwrap(), "1 mon -2 days +00:00:03");
    assert_eq!(waits.get(1).unwrap().as_ref(), Some(&all[0]));
    assert_eq!(
        answer(&db, "SELECT id, most FROM waits ORDER BY 1"),
        "1|null;2|1 mon -2 days +00:00:03"
    );
    assert!(db.sql("CREATE INDEX ON waits (every)", ()).is_err());
}

#[test]
fn intervals_are_parameters() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, d interval)",
        "INSERT INTO t VALUES (1, '1 month'), (2, '1 hour'), (3, NULL)",
    ]);
    let ask = |text: &str, value: Value| {
        let rows = db.sql(text, &[value]).unwrap().into_rows().unwrap().to_rows();
        rows.iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join(",")
    };
    let days = Value::from(Interval::new(0, 30, 0));
    for value in [days.clone(), Value::from("30 days")] {
        assert_eq!(ask("SELECT id FROM t WHERE d = ?", value.clone()), "1");
        assert_eq!(ask("SELECT id FROM t WHERE d < ?", value.clone()), "2");
        assert_eq!(ask("SELECT id FROM t WHERE d IN (?, '1:00')", value), "1,2");
    }
    assert_eq!(ask("SELECT DATE '2024-01-01' + ?", days.clone()), "2024-01-31 00:00:00");
    db.sql("INSERT INTO t VALUES (4, ?)", &[days]).unwrap();
    assert_eq!(answer(&db, "SELECT d FROM t WHERE id = 4"), "30 days");
}

/// Equal intervals are one group, however large the answer and wherever its groups lie.
#[test]
fn equal_intervals_are_one_group() {
    let db = memory(&["CREATE TABLE t (id i64 PRIMARY KEY, d interval)"]);
    let spelling = ["'1 month'", "'30 days'", "'720 hours'"];
    let rows: Vec<String> = (0..3_000)
        .map(|i| format!("({i}, {} * {})", "INTERVAL ".to_owned() + spelling[i % 3], i / 3))
        .collect();
    for rows in rows.chunks(500) {
        db.sql(&format!("INSERT INTO t VALUES {}", rows.join(", ")), ()).unwrap();
    }
    for (query, wanted) in [
        (
            "SELECT count(*), min(n), max(n) FROM (SELECT d, count(*) AS n FROM t GROUP BY d) AS g",
            "1000|3|3",
        ),
        ("SELECT count(DISTINCT d), approx_count_distinct(d) > 900 FROM t", "1000|true"),
        ("SELECT count(*) FROM (SELECT DISTINCT d FROM t) AS g", "1000"),
        ("SELECT count(*) FROM (SELECT d FROM t UNION SELECT d * 2 FROM t) AS g", "1500"),
        ("SELECT d, count(*) FROM t GROUP BY d ORDER BY d DESC LIMIT 1", "83 years 3 mons|3"),
        ("SELECT d FROM t GROUP BY d HAVING d = '60 days'", "2 mons"),
        ("SELECT count(*) FROM t AS a JOIN t AS b ON a.d = b.d", "9000"),
        ("SELECT sum(d) FROM t WHERE id < 6", "1 mon 30 days 720:00:00"),
        ("SELECT d, d > '1 mon' FROM t WHERE id = 4", "30 days|false"),
        (
            "SELECT d, row_number() OVER (ORDER BY d DESC) FROM (SELECT d FROM t GROUP BY d) AS g \
             ORDER BY 2 LIMIT 1",
            "83 years 3 mons|1",
        ),
        (
            "SELECT d, rank() OVER (ORDER BY d DESC) FROM t GROUP BY d ORDER BY 2 LIMIT 1",
            "83 years 3 mons|1",
        ),
    ] {
        assert_eq!(answer(&db, query), wanted, "{query}");
    }
}
