//! Finders find what a filter finds: in segments with runs and without, in open groups, beside
//! deletes, and as of an older snapshot.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use esker::{
    DataType, Database, ErrorKind, IndexKind, NewIndex, Options, Schema, SnapshotTable, Table,
    Value,
};

fn row(id: i64) -> Vec<Value> {
    let mixed = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let age = if mixed.is_multiple_of(11) { Value::Null } else { Value::Uint(mixed % 40) };
    let city: Value = match mixed % 5 {
        0 => Value::Null,
        1 => "".into(),
        2 => "x".repeat(70 + mixed as usize % 3).into(),
        _ => format!("town {}", mixed % 13).into(),
    };
    let score = [-0.0, 0.0, f64::NAN, 1.5, -7.25][mixed as usize % 5];
    vec![Value::Int(id), age, city, Value::Float(score)]
}

fn database() -> (Database, Table) {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("age", DataType::U8)
        .nullable("city", DataType::Text)
        .nullable("score", DataType::F64)
        .primary_key(["id"])
        .index("by_city_age", ["city", "age"])
        .index("by_score", ["score"])
        .build()
        .unwrap();
    let db = Options::new().background(false).memory().unwrap();
    let table = db.create_table("t", schema).unwrap();
    let mut load = table.load().unwrap();
    (0..30_000).for_each(|id| load.push_row(&row(id)).unwrap());
    load.finish().unwrap();
    (30_000..30_500).for_each(|id| {
        table.insert(&row(id)).unwrap();
    });
    (db, table)
}

/// The ids that a finder finds, and those of the rows whose fields have the key's values.
fn compare(snapshot: &SnapshotTable, index: &str, fields: &[usize], key: &[Value]) -> usize {
    let finder = snapshot.finder(index).unwrap();
    let found = finder.find(key).unwrap();
    let mut found: Vec<i64> = found
        .map(|found| match (found.get("id").unwrap(), found.row().unwrap().values()) {
            (Value::Int(id), values) => {
                assert_eq!(format!("{values:?}"), format!("{:?}", row(id)));
                id
            }
            other => panic!("{other:?}"),
        })
        .collect();
    found.sort_unstable();
    let mut wanted = Vec::new();
    snapshot
        .for_each(|_, values| {
            let is_it = fields.iter().zip(key).all(|(field, wanted)| {
                let (value, wanted) = (values[*field], wanted.as_ref());
                match (value.is_null(), wanted.is_null()) {
                    (false, false) => value.compare(wanted).is_eq(),
                    (value, wanted) => value && wanted,
                }
            });
            if let (true, Value::Int(id)) = (is_it, values[0].to_owned()) {
                wanted.push(id);
            }
            Ok(())
        })
        .unwrap();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{index} {key:?}");
    found.len()
}

fn compare_all(snapshot: &SnapshotTable) -> usize {
    let mut found = 0;
    let cities: Vec<Value> = [Value::Null, "".into(), "town 7".into(), "no".into()]
        .into_iter()
        .chain((69..74).map(|len| "x".repeat(len).into()))
        .collect();
    for city in cities {
        found += compare(snapshot, "by_city_age", &[2], std::slice::from_ref(&city));
        for age in [Value::Null, Value::Uint(3), Value::Uint(250)] {
            found += compare(snapshot, "by_city_age", &[2, 1], &[city.clone(), age]);
        }
    }
    for score in [0.0, -0.0, f64::NAN, 1.5, -7.25, 3.0] {
        found += compare(snapshot, "by_score", &[3], &[Value::Float(score)]);
    }
    found + compare(snapshot, "by_score", &[3], &[Value::Null])
}

#[test]
fn finders_find_what_a_filter_finds() {
    let (db, table) = database();
    let before = table.snapshot().unwrap();
    let found = compare_all(&before);
    assert!(found > 30_000);
    for id in (0..30_500).step_by(7) {
        table.delete(&[Value::Int(id)]).unwrap();
    }
    assert!(compare_all(&table.snapshot().unwrap()) < found);
    assert_eq!(compare_all(&before), found);
    db.drop_index("t", "by_score").unwrap();
    // The older snapshot keeps its schema.
    assert_eq!(compare_all(&before), found);
}

#[test]
fn a_key_that_does_not_fit_is_refused() {
    let (_, table) = database();
    let snapshot = table.snapshot().unwrap();
    let finder = snapshot.finder("by_city_age").unwrap();
    let message = |key: &[Value]| {
        let error = finder.find(key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    assert_eq!(message(&[]), "index \"by_city_age\": expected 1 to 2 values, found 0");
    let three = ["a".into(), Value::Uint(1), Value::Uint(1)];
    assert_eq!(message(&three), "index \"by_city_age\": expected 1 to 2 values, found 3");
    assert!(message(&[Value::Int(1)]).contains("\"city\""), "{}", message(&[Value::Int(1)]));
    assert!(message(&["a".into(), Value::Int(256)]).contains("256"));
    let unknown = snapshot.finder("by_town").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidInput);
    assert!(unknown.to_string().contains("by_city_age"), "{unknown}");
}

#[test]
fn an_index_that_is_not_ordered_is_refused() {
    let (db, table) = database();
    db.create_index("t", NewIndex::new("words", ["city"]).using(IndexKind::Trigram)).unwrap();
    let snapshot = table.snapshot().unwrap();
    let refused = snapshot.finder("words").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert_eq!(refused.to_string(), "index \"words\": expected an ordered one, found trigram");
}
