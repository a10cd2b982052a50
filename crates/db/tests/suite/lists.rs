//! Fields that are lists: as keys and in indexes, over merges, reopening and crashes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use esker::{DataType, Database, ErrorKind, IndexKind, NewIndex, Options, Record, Schema, Value};
use esker_format::text::parse_value;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn list(text: &str) -> Value {
    parse_value(text, DataType::list(DataType::Text).unwrap()).unwrap()
}

fn schema() -> Schema {
    let (tags, marks) =
        (DataType::list(DataType::Text).unwrap(), DataType::list(DataType::I16).unwrap());
    let builder = Schema::builder().field("way", tags).nullable("marks", marks);
    builder.primary_key(["way"]).index("by_marks", ["marks"]).build().unwrap()
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().environment(machine.environment()).group_limit(64, 1 << 20);
    options.open("db").unwrap()
}

fn way(i: usize) -> Value {
    list(&format!("[\"step {}\", null, \"{}\"]", i % 7, i))
}

fn marks(i: usize) -> Value {
    let of = DataType::list(DataType::I16).unwrap();
    parse_value(&format!("{{{},NULL}}", i % 5), of).unwrap()
}

/// All rows in the order of the key, and how many there are of some marks.
fn rows(db: &Database) -> Vec<Vec<Value>> {
    let snapshot = db.table("ways").unwrap().snapshot().unwrap();
    let mut rows: Vec<_> = snapshot.rows().unwrap().into_iter().map(|(_, row)| row).collect();
    rows.sort();
    let finder = snapshot.finder("by_marks").unwrap();
    for mark in 0..5 {
        let found = finder.find(&[marks(mark)]).unwrap().count();
        assert_eq!(found, rows.iter().filter(|row| row[1] == marks(mark)).count(), "{mark}");
    }
    rows
}

#[test]
fn lists_are_keys_and_found_over_merges_and_reopening() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = open(&machine);
    let t = db.create_table("ways", schema()).unwrap();
    let mut expected = Vec::new();
    for i in 0..300 {
        t.insert(&[way(i), marks(i)]).unwrap();
        expected.push(vec![way(i), marks(i)]);
    }
    assert_eq!(t.insert(&[way(3), marks(0)]).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let before = db.snapshot().unwrap();
    for i in (0..300).step_by(3) {
        assert!(t.update(&[way(i)], &[("marks", Value::Null)]).unwrap());
        expected[i][1] = Value::Null;
    }
    for i in (0..300).step_by(10) {
        assert!(t.delete(&[way(i)]).unwrap());
    }
    let mut expected: Vec<_> =
        expected.into_iter().enumerate().filter(|(i, _)| i % 10 != 0).map(|(_, row)| row).collect();
    expected.sort();
    assert_eq!(rows(&db), expected);
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(rows(&db), expected);
    let old = before.table("ways").unwrap();
    assert_eq!(old.get(&[way(30)]).unwrap().unwrap().values()[1], marks(30));
    assert_eq!(old.count().unwrap(), 300);
    drop((before, old));
    assert_eq!(db.check().unwrap().problems, []);
    drop((t, db));
    let db = open(&machine);
    assert_eq!(rows(&db), expected);
    // An array of JSON, and a list of another type, are lists in their field; other values are not.
    let t = db.table("ways").unwrap();
    t.insert(&[Value::json("[\"x\"]").unwrap(), Value::json("[7, null]").unwrap()]).unwrap();
    let found = t.get(&[list("{x}")]).unwrap().unwrap();
    assert_eq!(found.values()[1].to_string(), "{7,NULL}");
    let e = t.insert(&[list("{y}"), Value::json("[70000]").unwrap()]).unwrap_err().to_string();
    assert!(e.contains("marks") && e.contains("item 1") && e.contains("70000"), "{e}");
    t.insert(&["z".into(), Value::Null]).unwrap_err();
    let forged = t.insert(&[Value::List(vec![1, 2, 3]), Value::Null]).unwrap_err();
    assert_eq!(forged.kind(), ErrorKind::InvalidInput, "{forged}");
}

#[test]
fn what_is_acknowledged_survives_every_crash() {
    let machine = Simulation::new(5, SimOptions { record: true, ..SimOptions::default() });
    let db = open(&machine);
    let t = db.create_table("ways", schema()).unwrap();
    for i in 0..4 {
        t.insert(&[way(i), marks(i)]).unwrap();
    }
    t.update(&[way(1)], &[("marks", marks(4))]).unwrap();
    drop((t, db));
    let mut cursor = machine.journal().unwrap().cursor();
    let mut most = 0;
    loop {
        let image = cursor.crash_image(CrashChoice::Random(3));
        let after = Simulation::from_image(&image, 9, SimOptions::default());
        let db = open(&after);
        if db.table("ways").is_ok() {
            let found = rows(&db);
            assert!(found.len() <= 4);
            most = most.max(found.len());
        }
        assert_eq!(db.check().unwrap().problems, [], "{}", cursor.describe());
        if !cursor.advance() {
            break;
        }
    }
    assert_eq!(most, 4);
}

#[derive(Debug, PartialEq, Record)]
struct Post {
    #[esker(key)]
    id: i64,
    tags: Vec<String>,
    votes: Option<Vec<i32>>,
    marks: Vec<Option<u16>>,
    bytes: Vec<u8>,
    #[esker(type = "decimal(9,2)[]")]
    prices: Vec<esker::Decimal>,
}

#[test]
fn vectors_are_lists() {
    let db = Options::new().memory().unwrap();
    let posts = db.create_table_of::<Post>("posts").unwrap();
    let types: Vec<_> =
        posts.table().schema().fields().iter().map(|f| f.data_type.to_string()).collect();
    assert_eq!(types, ["i64", "text[]", "i32[]", "u16[]", "bytes", "decimal(9,2)[]"]);
    let post = Post {
        id: 1,
        tags: vec!["a b".into(), String::new()],
        votes: Some(vec![3, -1]),
        marks: vec![None, Some(7)],
        bytes: vec![0, 1],
        prices: vec![esker::Decimal::new(15, 1).unwrap(), esker::Decimal::new(2, 0).unwrap()],
    };
    posts.insert(&post).unwrap();
    let empty =
        Post { id: 2, tags: vec![], votes: None, marks: vec![], bytes: vec![], prices: vec![] };
    posts.insert(&empty).unwrap();
    let row = posts.table().get(&[1i64.into()]).unwrap().unwrap();
    let shown: Vec<_> = row.values().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["1", "{\"a b\",\"\"}", "{3,-1}", "{NULL,7}", "0001", "{1.50,2.00}"]);
    assert_eq!(posts.get(1).unwrap(), Some(post));
    assert_eq!(posts.get(2).unwrap(), Some(empty));
}

#[test]
fn an_index_of_lists_is_ordered_only() {
    let db = Options::new().memory().unwrap();
    db.create_table("ways", schema()).unwrap();
    let trigram = NewIndex::new("grams", ["way"]).using(IndexKind::Trigram);
    db.create_index("ways", trigram).unwrap_err();
}
