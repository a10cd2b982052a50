//! SQL over a small table in memory, from text to rows.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::{Options, execute};
use esker_vfs::Environment;

fn source(layout: &Layout) -> MemorySource {
    let schema = Schema::builder()
        .field("origin", DataType::Text)
        .field("dep_time", DataType::Timestamp)
        .nullable("delay", DataType::I16)
        .field("distance", DataType::U32)
        .field("day", DataType::Date)
        .build()
        .unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..1_000i32 {
        let origin = ["EWR", "JFK", "LGA"][usize::try_from(i % 3).unwrap()];
        let delay = if i % 7 == 0 { Value::Null } else { Value::from(i64::from(i % 50) - 10) };
        let row = [
            origin.into(),
            Value::Timestamp(1_356_998_400_000_000 + i64::from(i) * 3_600_000_000),
            delay,
            Value::from(u32::try_from(i * 10).unwrap()),
            Value::Date(15_706 + i / 24),
        ];
        batch.push_row(&schema, &row).unwrap();
    }
    MemorySource::new(schema).with_part(&batch, layout).with_part(&batch, layout)
}

/// The answer as text: rows by line, values by space. The same whatever the encoding.
fn answer(text: &str) -> String {
    let query = esker_sql::parse(text).unwrap();
    let options = Options::new(&Environment::os());
    let of = |encoding| {
        let layout = Layout { encoding, chunk_rows: 300, ..Layout::default() };
        let result = execute(&query, &source(&layout), &options).unwrap();
        let row = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        result.to_rows().into_iter().map(row).collect::<Vec<_>>().join("\n")
    };
    let (plain, compact) = (of(Encoding::Plain), of(Encoding::Compact));
    assert_eq!(plain, compact, "{text}");
    plain
}

fn refused(text: &str) -> String {
    let query = esker_sql::parse(text).unwrap();
    let options = Options::new(&Environment::os());
    execute(&query, &source(&Layout::default()), &options).unwrap_err().to_string()
}

#[test]
fn answers() {
    let pairs = [
        ("SELECT count(*) FROM t", "2000"),
        (
            "SELECT count(*), count(delay), sum(distance) FROM t \
             WHERE origin = 'JFK'",
            "666 570 3323340",
        ),
        (
            "SELECT origin, count(*) AS n, min(delay) FROM t GROUP BY origin ORDER BY n DESC, 1",
            "EWR 668 -10\nJFK 666 -10\nLGA 666 -10",
        ),
        (
            "SELECT day, count(*) FROM t WHERE day < '2013-01-03' GROUP BY day",
            "2013-01-01 48\n2013-01-02 48",
        ),
        (
            "SELECT count(*) FROM t WHERE dep_time BETWEEN '2013-01-01 05:00' \
             AND '2013-01-01 07:00'",
            "6",
        ),
        ("SELECT DISTINCT origin FROM t WHERE origin LIKE '%A' OR origin LIKE 'J%'", "JFK\nLGA"),
        ("SELECT distance, delay FROM t ORDER BY distance DESC LIMIT 2", "9990 39\n9990 39"),
        (
            "SELECT CASE WHEN delay > 0 THEN 'late' ELSE 'early' END AS k, count(*) FROM t \
             WHERE delay IS NOT NULL GROUP BY k ORDER BY k",
            "early 378\nlate 1336",
        ),
        (
            "SELECT avg(delay), max(delay) - min(delay) FROM t WHERE NOT (delay < 0)",
            "19.496350364963504 39",
        ),
        ("SELECT count(DISTINCT day) FROM t HAVING count(*) > 1999", "42"),
        ("SELECT count(*) FROM t HAVING count(*) > 2000", ""),
        ("SELECT day + 1, day - DATE '2013-01-01' FROM t LIMIT 1 OFFSET 999", "2013-02-12 41"),
        ("SELECT 7 / 2, -7 / 2, 7 % 0, 1.0 / 0, 7.0 / 2 FROM t LIMIT 1", "3 -3 null null 3.5"),
    ];
    for (text, expected) in pairs {
        assert_eq!(answer(text), expected, "{text}");
    }
}

#[test]
fn errors_name_the_place() {
    let pairs = [
        (
            "SELECT nosuch FROM t",
            "SELECT: unknown field \"nosuch\"; fields: origin, dep_time, delay, distance, day",
        ),
        (
            "SELECT origin FROM t WHERE origin > 5",
            "WHERE: origin > 5: cannot compare text with i64",
        ),
        ("SELECT origin + 1 FROM t", "SELECT: origin + 1: expected a number, found text"),
        (
            "SELECT origin, count(*) FROM t",
            "SELECT: field \"origin\" is neither in GROUP BY (or SELECT DISTINCT) \
             nor inside an aggregate",
        ),
        ("SELECT origin FROM t WHERE delay", "WHERE: delay: expected a condition, found i16"),
        (
            "SELECT day FROM t WHERE day = 'soon'",
            "WHERE: day = 'soon': expected date (like 2013-01-31), found \"soon\"",
        ),
        ("SELECT sum(origin) FROM t", "SELECT: sum(origin): sum expects numbers, found text"),
        (
            "SELECT count(*) FROM t WHERE count(*) > 1",
            "WHERE: count(*) is not allowed here: no rows to aggregate",
        ),
        (
            "SELECT 9223372036854775807 + 1 FROM t",
            "SELECT: 9223372036854775807 + 1: 9223372036854775807 + 1 does not fit i64",
        ),
        ("SELECT CAST(origin AS i64) FROM t", "cannot cast text 'EWR' to i64"),
    ];
    for (text, message) in pairs {
        assert_eq!(refused(text), message, "{text}");
    }
}
