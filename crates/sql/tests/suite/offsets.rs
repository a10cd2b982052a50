//! A page without an order is a part of the whole answer, wherever it begins.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use esker::{Batch, DataType, Options, Schema, Value};

#[test]
fn a_page_is_a_part_of_the_whole() {
    let db = Options::new().background(false).memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("kind", DataType::U8);
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    let mut load = table.load().unwrap();
    for first in (0..200_000).step_by(50_000) {
        let mut batch = Batch::empty(&table.schema());
        for id in first..first + 50_000 {
            let kind = Value::Uint(u64::try_from(id % 7).unwrap());
            batch.push_row(&table.schema(), &[Value::Int(id), kind]).unwrap();
        }
        load.push(batch).unwrap();
    }
    load.finish().unwrap();
    let delete = esker_sql::parse_statement("DELETE FROM t WHERE id % 11 = 3").unwrap();
    let esker_sql::Statement::Change(delete) = delete else { unreachable!() };
    db.change(&delete).unwrap();
    let rows = |sql: &str| db.query(&esker_sql::parse(sql).unwrap()).unwrap().to_rows();
    for filter in ["", "WHERE kind = 2", "WHERE kind <> 2", "WHERE id / 3 > 40000", "WHERE id < 0"]
    {
        let whole = rows(&format!("SELECT id FROM t {filter}"));
        for offset in [0, 1, 255, 5_000, 65_536, 65_537, 131_072, whole.len(), 190_000, 300_000] {
            for limit in [1, 10, 300, 100_000] {
                let page =
                    rows(&format!("SELECT id FROM t {filter} LIMIT {limit} OFFSET {offset}"));
                let from = offset.min(whole.len());
                let to = whole.len().min(from + limit);
                assert_eq!(page, whole.get(from..to).unwrap(), "{filter} {limit} {offset}");
            }
            let page = rows(&format!("SELECT id FROM t {filter} OFFSET {offset}"));
            assert_eq!(page, whole.get(offset.min(whole.len())..).unwrap(), "{filter} {offset}");
        }
    }
}

#[test]
fn a_row_that_fails_matters_only_where_it_is_shown() {
    let db = Options::new().background(false).memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    let rows: Vec<Vec<Value>> = (0..1_000).map(|id| vec![Value::Int(id)]).collect();
    table.insert_many(&rows).unwrap();
    let ask = |sql: &str| db.query(&esker_sql::parse(sql).unwrap()).map(|found| found.to_rows());
    // Row 500 overflows.
    let page = |offset: i64, limit: i64| {
        let sum = "9223372036854775807 + (CASE WHEN id = 500 THEN 1 ELSE 0 END)";
        ask(&format!("SELECT {sum} FROM t LIMIT {limit} OFFSET {offset}"))
    };
    assert_eq!(page(490, 10).unwrap().len(), 10);
    assert_eq!(page(501, 10).unwrap().len(), 10);
    assert!(page(491, 10).is_err());
    assert!(page(500, 1).is_err());
}

#[test]
fn the_first_groups_are_those_of_the_whole() {
    for has_indexes in [false, true] {
        let db = Options::new().background(false).memory().unwrap();
        let mut schema = Schema::builder()
            .nullable("name", DataType::Text)
            .nullable("kind", DataType::I32)
            .field("size", DataType::F64);
        if has_indexes {
            schema = schema.index("by_name", ["name"]).index("by_kind", ["kind"]);
        }
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        let mut load = table.load().unwrap();
        for id in 0..90_000_i64 {
            let mixed = (id * 2_654_435_761) % 100_003;
            let name = match mixed % 50 {
                0 => Value::Null,
                _ => format!("name {}", mixed % 20_000).into(),
            };
            let kind = if mixed % 13 == 1 { Value::Null } else { Value::Int(mixed % 40) };
            load.push_row(&[name, kind, Value::Float(mixed as f64 / 7.0)]).unwrap();
        }
        load.finish().unwrap();
        table.insert(&["late".into(), Value::Null, Value::Float(1.0)]).unwrap();
        let rows = |sql: &str| db.query(&esker_sql::parse(sql).unwrap()).unwrap().to_rows();
        for key in ["name", "kind", "size", "name, kind"] {
            for filter in ["", "WHERE kind > 20", "WHERE name = 'name 77'", "WHERE name = 'late'"] {
                let aggregates = "count(*), sum(size), count(DISTINCT kind), min(name)";
                let asked = format!("SELECT {key}, {aggregates} FROM t {filter} GROUP BY {key}");
                let whole = rows(&asked);
                for (limit, offset) in [(1, 0), (10, 0), (10, 3), (30, 30), (200, 100), (7, 19_990)]
                {
                    let page = rows(&format!("{asked} LIMIT {limit} OFFSET {offset}"));
                    let from = whole.len().min(offset);
                    let to = whole.len().min(offset + limit);
                    assert_eq!(page, whole.get(from..to).unwrap(), "{asked} {limit} {offset}");
                }
            }
        }
        let some = rows("SELECT DISTINCT name FROM t LIMIT 5");
        assert_eq!(some, rows("SELECT DISTINCT name FROM t").get(..5).unwrap());
    }
}
