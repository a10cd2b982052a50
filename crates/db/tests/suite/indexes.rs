//! Indexes: their runs beside segments, through loads, updates, merges and restarts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{Alteration, DataType, Database, NewIndex, Options, Query, Schema, Value};
use esker_query::model::{Change, Delete, Expr, Operator};

fn schema() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .nullable("age", DataType::U8)
        .nullable("name", DataType::Text)
        .nullable("score", DataType::F64)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn row(id: i64) -> Vec<Value> {
    let mixed = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let age = if mixed.is_multiple_of(10) { Value::Null } else { Value::Uint(mixed % 90) };
    let name = match mixed % 7 {
        0 => Value::Null,
        1 => "".into(),
        2 => format!("{}{}", "long ".repeat(30), mixed % 50).into(),
        _ => format!("näme {}", mixed % 1_000).into(),
    };
    let score = [f64::NAN, -0.0, 0.0, f64::INFINITY, mixed as f64 / 3.0][mixed as usize % 5];
    vec![Value::Int(id), age, name, Value::Float(score)]
}

fn indexes() -> Vec<Alteration> {
    let fields = vec![("name".into(), true), ("age".into(), false), ("score".into(), true)];
    let composite = NewIndex::on(fields).named("by_name_age");
    let single = |name: &str| NewIndex::new(format!("by_{name}"), [name]);
    let all = [single("age"), single("name"), single("score"), composite];
    all.into_iter().map(Alteration::AddIndex).collect()
}

fn load(db: &Database, ids: std::ops::Range<i64>) {
    let mut load = db.table("t").unwrap().load().unwrap();
    ids.for_each(|id| load.push_row(&row(id)).unwrap());
    load.finish().unwrap();
}

fn run_files(dir: &Directory) -> Vec<String> {
    dir.files().into_iter().filter(|name| name.starts_with("run-")).collect()
}

fn is_sound(db: &Database) {
    let report = db.check().unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.notes, []);
}

#[test]
fn runs_are_built_beside_segments_and_survive_reopening() {
    let dir = Directory::new("index-runs");
    let open = || Options::new().background(false).open(&dir.0).unwrap();
    let db = open();
    db.create_table("t", schema()).unwrap();
    load(&db, 0..70_000);
    assert_eq!(run_files(&dir).len(), 0);
    db.alter_table("t", &indexes()).unwrap();
    assert_eq!(run_files(&dir).len(), 4);
    is_sound(&db);
    // A load has its runs from the start; what is sealed gets them in the background.
    load(&db, 70_000..140_000);
    assert_eq!(run_files(&dir).len(), 8);
    is_sound(&db);
    db.close().unwrap();
    // One is gone, one is damaged where it is read first, one is of nobody.
    let files = run_files(&dir);
    std::fs::remove_file(dir.0.join(&files[0])).unwrap();
    let torn = dir.0.join(&files[1]);
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() - 10]).unwrap();
    std::fs::write(dir.0.join("run-0000000000000099-0001"), b"?").unwrap();
    std::fs::write(dir.0.join(format!("{}.new", files[0])), b"?").unwrap();
    let db = open();
    db.wait_idle().unwrap();
    assert_eq!(run_files(&dir), files);
    is_sound(&db);
    // A merge makes segments with runs of their own.
    let gone = Expr::field("id").binary(Operator::Lt, Expr::literal(20_000));
    let gone = Delete { table: "t".into(), filter: Some(gone), ..Delete::default() };
    db.change(&Change::Delete(gone)).unwrap();
    db.compact(false, &mut |_, _| ()).unwrap();
    db.wait_idle().unwrap();
    is_sound(&db);
    assert_eq!(run_files(&dir).len(), 4);
    db.alter_table("t", &[Alteration::DropIndex("by_age".into())]).unwrap();
    assert_eq!(run_files(&dir).len(), 3);
    db.alter_table("t", &[Alteration::DropField("name".into())]).unwrap();
    assert_eq!(run_files(&dir).len(), 1);
    is_sound(&db);
    db.truncate_table("t").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(run_files(&dir), Vec::<String>::new(), "{:?}", dir.files());
    assert_eq!(db.table("t").unwrap().schema().indexes().len(), 1);
    is_sound(&db);
}

#[test]
fn damage_to_a_run_is_found() {
    let dir = Directory::new("index-damage");
    let db = Options::new().background(false).open(&dir.0).unwrap();
    db.create_table("t", schema()).unwrap();
    load(&db, 0..70_000);
    db.alter_table("t", &indexes()).unwrap();
    db.close().unwrap();
    let run = dir.0.join(&run_files(&dir)[0]);
    let mut bytes = std::fs::read(&run).unwrap();
    bytes[5_000] ^= 4;
    std::fs::write(&run, bytes).unwrap();
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let problems = db.check().unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("do not fit their checksum"), "{problems:?}");
}

/// Younger rows read as a narrower type broke the order that a search relies on.
#[test]
fn an_older_snapshot_does_not_search_runs_of_wider_values() {
    for (from, to) in [(DataType::U8, DataType::I16), (DataType::F32, DataType::F64)] {
        let dir = Directory::new("index-widened");
        let db = Options::new().background(false).open(&dir.0).unwrap();
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("n", from)
            .field("b", DataType::I64)
            .primary_key(["id"])
            .index("by_n", ["n"])
            .index("by_n_b", ["n", "b"]);
        let t = db.create_table("t", schema.build().unwrap()).unwrap();
        let value = |n: i64| match from {
            DataType::U8 => Value::Int(n),
            _ => Value::Float(n as f64),
        };
        let mut load = t.load().unwrap();
        for id in 0..70_000 {
            load.push_row(&[id.into(), value(id % 50), Value::Int(id)]).unwrap();
        }
        load.finish().unwrap();
        let gone = Expr::field("id").binary(Operator::Lt, Expr::literal(20_000));
        let gone = Delete { table: "t".into(), filter: Some(gone), ..Delete::default() };
        db.change(&Change::Delete(gone)).unwrap();
        let before = db.snapshot().unwrap();
        let is =
            |field: &str, operator, n: i64| Expr::field(field).binary(operator, Expr::literal(n));
        let ask = || {
            let mut answers = Vec::new();
            for operator in [Operator::Eq, Operator::Lt, Operator::Gt] {
                for more in [None, Some(is("b", Operator::Gte, 60_000))] {
                    let mut query = Query::table("t");
                    query.select(Expr::count());
                    let filter = is("n", operator, 7);
                    query.filter = Some(more.into_iter().fold(filter, Expr::and));
                    answers.push(before.query(&query).unwrap().to_rows());
                }
            }
            answers
        };
        let expected = ask();
        assert_eq!(expected[0], [vec![Value::Uint(1_000)]]);
        let widen = Alteration::Widen { field: "n".into(), data_type: to, length_max: None };
        db.alter_table("t", &[widen]).unwrap();
        let mut load = t.load().unwrap();
        for id in 70_000..140_000i64 {
            let n = match to {
                DataType::I16 => Value::Int(-1 - id % 300),
                _ => Value::Float(7.0 + (id % 1_000) as f64 * 1e-12),
            };
            load.push_row(&[id.into(), n, Value::Int(id)]).unwrap();
        }
        load.finish().unwrap();
        db.compact(false, &mut |_, _| ()).unwrap();
        assert_eq!(ask(), expected, "{from} to {to}");
        is_sound(&db);
    }
}
