//! Bulk loads: all or nothing, beside other writers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test stops where it fails"
)]

use crate::fixture::{Directory, people, person};
use esker::{
    Batch, Column, DataType, Database, Decimal, ErrorKind, Interval, Options, Schema, Value,
};
use esker_format::{Labels, Values, VariableValues};

fn batch(range: std::ops::Range<u64>) -> Batch {
    let schema = people();
    let mut batch = Batch::empty(&schema);
    for i in range {
        batch.push_row(&schema, &person(&format!("key {i}"), i % 100)).unwrap();
    }
    batch
}

fn key(i: u64) -> Vec<Value> {
    vec![format!("key {i}").into()]
}

fn small_segments() -> Options {
    Options::new().segment_limit(1_000).group_limit(500, 1 << 20)
}

#[test]
fn a_load_is_invisible_until_it_finishes_and_survives_reopening() {
    let dir = Directory::new("load");
    let db = small_segments().open(&dir.0).unwrap();
    let t = db.create_table("people", people()).unwrap();
    t.insert(&person("first", 1)).unwrap();
    let mut load = t.load().unwrap();
    for i in 0..7 {
        load.push(batch(i * 700..(i + 1) * 700)).unwrap();
        assert_eq!(t.count().unwrap(), 1);
        assert_eq!(t.get(&key(i * 700)).unwrap(), None);
        assert!(!t.exists(&key(i * 700 + 1)).unwrap());
    }
    let before = db.snapshot().unwrap();
    let report = load.finish().unwrap();
    assert_eq!((report.rows, report.segments), (4_900, 5));
    assert_eq!(t.count().unwrap(), 4_901);
    assert_eq!(before.table("people").unwrap().count().unwrap(), 1);
    assert_eq!(before.table("people").unwrap().get(&key(5)).unwrap(), None);
    assert!(t.update(&key(5), &[("age", Value::Uint(3))]).unwrap());
    assert!(t.delete(&key(6)).unwrap());
    assert_eq!(db.check().unwrap().problems, []);
    drop(before);
    drop((t, db));
    let db = small_segments().open(&dir.0).unwrap();
    let t = db.table("people").unwrap();
    assert_eq!(t.count().unwrap(), 4_900);
    assert_eq!(t.get(&key(5)).unwrap().unwrap().get("age"), Some(&Value::Uint(3)));
    assert_eq!(t.get(&key(6)).unwrap(), None);
    assert_eq!(t.get(&key(4_899)).unwrap().unwrap().values(), person("key 4899", 99));
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_dropped_load_leaves_nothing() {
    let dir = Directory::new("abort");
    let db = small_segments().open(&dir.0).unwrap();
    let t = db.create_table("people", people()).unwrap();
    let files = dir.files();
    let mut load = t.load().unwrap();
    load.push(batch(0..2_500)).unwrap();
    drop(load);
    assert_eq!(t.count().unwrap(), 0);
    assert_eq!(dir.files(), files);
    assert_eq!(db.info().tables[0].index_entries, 0);
    t.insert(&person("key 7", 1)).unwrap();
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn keys_that_are_taken_stop_a_load() {
    let db = small_segments().memory().unwrap();
    let t = db.create_table("people", people()).unwrap();
    t.insert(&person("key 1500", 1)).unwrap();
    let mut load = t.load().unwrap();
    let e = load.push(batch(0..2_000)).and_then(|()| load.wait()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(e.to_string(), "row 1501: key name = key 1500 exists already");
    drop(load);
    let mut load = t.load().unwrap();
    load.push(batch(0..1_000)).unwrap();
    // Which of two rows is called the second depends on who indexes first.
    load.wait().unwrap();
    load.push(batch(999..1_400)).unwrap();
    let e = load.finish().unwrap_err();
    assert_eq!(e.to_string(), "row 1001: key name = key 999 comes twice in the load");
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn a_writer_that_meets_a_load_gets_a_conflict_and_the_other_way_round() {
    let db = small_segments().memory().unwrap();
    let t = db.create_table("people", people()).unwrap();
    let mut load = t.load().unwrap();
    load.push(batch(0..1_000)).unwrap();
    load.wait().unwrap();
    assert_eq!(t.insert(&person("key 3", 1)).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(t.upsert(&person("key 3", 1)).unwrap_err().kind(), ErrorKind::Conflict);
    t.insert(&person("key 1003", 1)).unwrap();
    let e = load.push(batch(1_000..2_000)).and_then(|()| load.wait()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    drop(load);
    t.insert(&person("key 3", 1)).unwrap();
    assert_eq!(t.count().unwrap(), 2);
    assert_eq!(db.check().unwrap().problems, []);
}

fn list(text: &str, of: DataType) -> Value {
    esker_format::text::parse_value(text, DataType::list(of).unwrap()).unwrap()
}

#[test]
fn generated_keys_and_every_type_load_and_read_back() {
    let dir = Directory::new("types");
    let mut builder = Schema::builder();
    let labels = Labels::new((0..300).map(|i| format!("label {i}"))).unwrap();
    for data_type in DataType::ALL {
        builder = builder.nullable(data_type.to_string(), data_type);
        if data_type == DataType::Enum {
            builder = builder.labels(labels.clone());
        }
    }
    let schema = builder.build().unwrap();
    let row = |i: u64| -> Vec<Value> {
        let n = (i % 100) as i64 - 50;
        let values = [
            Value::Bool(i.is_multiple_of(2)),
            Value::Int(n),
            Value::Int(n * 300),
            Value::Int(n * 70_000),
            Value::Int(n * (1 << 40)),
            Value::Uint(i % 200),
            Value::Uint(i % 60_000),
            Value::Uint(i * 3),
            Value::Uint(u64::MAX - i),
            Value::Float32(n as f32 / 4.0),
            Value::Float(n as f64 / 3.0),
            Value::Text(format!("text {}", i % 7)),
            Value::Bytes(i.to_string().into_bytes()),
            Value::Date(n as i32 * 400),
            Value::Timestamp(n * 1_000_000_007),
            Value::Time((n + 50) * 800_000_007),
            Value::Uuid([i as u8; 16]),
            Value::Ipv4(i as u32 * 7),
            Value::Ipv6([(i % 3) as u8; 16]),
            Value::Decimal(Decimal::new(i128::from(n) << 40, 4).unwrap()),
            Value::Decimal(Decimal::new(i128::from(n) << 100, 10).unwrap()),
            labels.find(&format!("label {}", i % 300)).unwrap().to_owned(),
            Value::json(&format!("{{\"n\":{n},\"i\":[{i}]}}")).unwrap(),
            Value::Interval(Interval::new(n as i32, i as i32, n * 70_000)),
            list(&format!("{{{n},NULL,{}}}", i % 3), DataType::I64),
            list(&format!("{{\"text {}\",\"\"}}", i % 7), DataType::Text),
        ];
        let null = |p: usize| i.is_multiple_of(11) || (i as usize + p).is_multiple_of(13);
        let values = values.into_iter().enumerate();
        values.map(|(p, v)| if null(p) { Value::Null } else { v }).collect()
    };
    let db = small_segments().open(&dir.0).unwrap();
    let t = db.create_table("all", schema.clone()).unwrap();
    let mut load = t.load().unwrap();
    for i in 0..100_000 {
        load.push_row(&row(i)).unwrap();
    }
    load.finish().unwrap();
    let mut appender = t.appender();
    for i in 100_000..110_000 {
        appender.append(&row(i)).unwrap();
    }
    appender.finish().unwrap();
    db.wait_idle().unwrap();
    drop((t, db));
    let db = Database::open(&dir.0).unwrap();
    let rows = db.snapshot().unwrap().table("all").unwrap().rows().unwrap();
    assert_eq!(rows.len(), 110_000);
    for (i, (_, values)) in rows.iter().enumerate() {
        assert_eq!(*values, row(i as u64), "row {i}");
    }
    assert_eq!(db.check().unwrap().problems, []);
    assert!(db.info().tables[0].segments <= 8);
}

#[test]
fn a_load_that_has_failed_cannot_be_finished() {
    let db = small_segments().memory().unwrap();
    let t = db.create_table("people", people()).unwrap();
    t.insert(&person("key 3", 1)).unwrap();
    let mut load = t.load().unwrap();
    load.push(batch(0..1_000)).unwrap();
    assert_eq!(load.wait().unwrap_err().kind(), ErrorKind::AlreadyExists);
    let e = load.finish().unwrap_err();
    assert_eq!(e.to_string(), "row 4: key name = key 3 exists already");
    assert_eq!(t.count().unwrap(), 1);
    assert_eq!(db.check().unwrap().problems, []);
}

/// Rows of a text, a byte string, a bool that may be NULL, and what has limits of its own.
fn mixed() -> (Schema, Batch) {
    let schema = Schema::builder()
        .field("text", DataType::Text)
        .field("bytes", DataType::Bytes)
        .nullable("bool", DataType::Bool)
        .nullable("code", DataType::Text)
        .max_length(3)
        .field("clock", DataType::Time)
        .nullable("id", DataType::Uuid)
        .build()
        .unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..4u8 {
        let text = ["one", "zw\u{f6}lf", "", "\u{20ac}"][usize::from(i)];
        let last = if i == 2 { Value::Null } else { Value::Bool(i == 1) };
        let id = if i == 1 { Value::Null } else { Value::Uuid([i; 16]) };
        let bytes = Value::Bytes(vec![0xff, i]);
        let row = [text.into(), bytes, last, "äöü".into(), Value::Time(i.into()), id];
        batch.push_row(&schema, &row).unwrap();
    }
    (schema, batch)
}

fn variable(column: &mut Column) -> &mut VariableValues {
    let Values::Variable(values) = &mut column.values else { panic!("not of variable length") };
    values
}

type Damage = fn(&mut Batch);

/// Damage to what a batch consists of, and what is said of it.
const SHAPES: [(Damage, &str); 6] = [
    (|b| drop(b.columns.pop()), "expected 6 columns, found 5"),
    (|b| b.columns[0].data_type = DataType::Bytes, "field \"text\": expected text, found bytes"),
    (
        |b| b.columns[2].values = Values::I8(vec![0; 4]),
        "field \"bool\": expected values stored as those of bool are",
    ),
    (|b| b.columns[1].truncate(3), "field \"bytes\": expected 4 rows, found 3"),
    (
        |b| variable(&mut b.columns[0]).offsets.clear(),
        "field \"text\": expected one offset more than rows, found none",
    ),
    (
        |b| b.columns[2].nulls = Some(vec![0; 3]),
        "field \"bool\": expected NULL marks of 4 rows, found 3",
    ),
];

/// Damage to the values of rows, and what is said of it when these are rows 4 to 7.
const VALUES: [(Damage, &str); 13] = [
    (
        |b| b.columns[3] = b.columns[0].clone(),
        "row 6: field \"code\": expected at most 3 characters, found 5: \"zwölf\"",
    ),
    (
        |b| b.columns[4].values = Values::I64(vec![0, 86_399_999_999, 86_400_000_000, -1]),
        "row 7: field \"clock\": expected a time of 0 to 86399999999, found 86400000000",
    ),
    (
        |b| {
            let values = variable(&mut b.columns[5]);
            values.heap.pop();
            *values.offsets.last_mut().unwrap() -= 1;
        },
        "row 8: field \"id\": expected 16 bytes, found 15",
    ),
    (
        |b| b.columns[2].nulls = Some(vec![0, 1, 2, 0]),
        "row 7: field \"bool\": expected a NULL mark of 0 or 1, found 2",
    ),
    (|b| b.columns[0].nulls = Some(vec![0, 0, 0, 1]), "row 8: field \"text\" must not be null"),
    (
        |b| b.columns[0].nulls = Some(vec![0, 9, 0, 1]),
        "row 6: field \"text\": expected a NULL mark of 0 or 1, found 9",
    ),
    (
        |b| b.columns[2].values = Values::U8(vec![1, 0, 0, 3]),
        "row 8: field \"bool\": expected a bool of 0 or 1, found 3",
    ),
    (
        |b| variable(&mut b.columns[1]).offsets[2] = 1,
        "row 6: field \"bytes\": expected offsets that rise, found 2, 1",
    ),
    (
        |b| variable(&mut b.columns[1]).offsets[4] = 9,
        "row 8: field \"bytes\": expected an end up to 8, found 9",
    ),
    (
        |b| {
            let values = variable(&mut b.columns[1]);
            values.heap.resize((1 << 30) + 10, 0);
            values.offsets[4] = (1 << 30) + 10;
        },
        "row 8: field \"bytes\": 1073741828 bytes, at most 1073741824",
    ),
    (
        |b| variable(&mut b.columns[0]).heap[0] = 0x80,
        "row 5: field \"text\": expected UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
    ),
    // Within a character of two bytes.
    (
        |b| variable(&mut b.columns[0]).offsets[1] = 6,
        "row 5: field \"text\": expected UTF-8: incomplete utf-8 byte sequence from index 5",
    ),
    (
        |b| {
            let values = variable(&mut b.columns[0]);
            values.offsets.pop();
            values.offsets.push(10);
        },
        "row 8: field \"text\": expected UTF-8: incomplete utf-8 byte sequence from index 0",
    ),
];

#[test]
fn a_batch_that_is_none_of_the_schema_is_refused_and_changes_nothing() {
    let db = small_segments().memory().unwrap();
    let (schema, good) = mixed();
    let t = db.create_table("mixed", schema).unwrap();
    let mut load = t.load().unwrap();
    load.push(good.clone()).unwrap();
    let mut appender = t.appender();
    for (damage, wanted) in SHAPES.iter().chain(&VALUES) {
        let mut batch = good.clone();
        damage(&mut batch);
        let kind = match wanted.ends_with("must not be null") {
            true => ErrorKind::ConstraintViolated,
            false => ErrorKind::InvalidInput,
        };
        let e = appender.append_batch(&batch).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        let e = load.push(batch).unwrap_err();
        assert_eq!((e.kind(), e.to_string().as_str()), (kind, *wanted));
    }
    appender.finish().unwrap();
    assert_eq!((load.rows(), t.count().unwrap()), (4, 0));
    load.push(good).unwrap();
    assert_eq!(load.finish().unwrap().rows, 8);
    assert_eq!(db.check().unwrap().problems, []);
}

/// Rows whose keys exist are left out, whichever segment or commit has them, and of two in the
/// load the first stays.
#[test]
fn a_load_may_skip_what_exists() {
    for (rows, large) in [(100u64, false), (4_000, true)] {
        let dir = Directory::new(if large { "skip-large" } else { "skip-small" });
        let db = small_segments().open(&dir.0).unwrap();
        let t = db.create_table("people", people()).unwrap();
        t.insert(&person("key 3", 99)).unwrap();
        t.insert(&person("key 4", 98)).unwrap();
        t.delete(&key(4)).unwrap();
        let mut load = t.load().unwrap();
        load.skip_existing().unwrap();
        load.push(batch(0..rows)).unwrap();
        // Once more, with other values, across segments and within one.
        let schema = people();
        let mut again = Batch::empty(&schema);
        for i in (0..rows).rev().chain(rows..rows + 10).chain(rows..rows + 10) {
            again.push_row(&schema, &person(&format!("key {i}"), 77)).unwrap();
        }
        load.push(again).unwrap();
        let given = load.rows();
        let report = load.finish().unwrap();
        assert_eq!((given, report.rows, report.segments > 0), (2 * rows + 20, rows + 9, large));
        assert_eq!(t.count().unwrap(), rows + 10);
        let age = |i| t.get(&key(i)).unwrap().unwrap().get("age").cloned();
        assert_eq!(age(3), Some(Value::Uint(99)));
        assert_eq!(age(4), Some(Value::Uint(4)));
        assert_eq!(age(rows - 1), Some(Value::Uint((rows - 1) % 100)));
        assert_eq!(age(rows + 9), Some(Value::Uint(77)));
        assert_eq!(db.check().unwrap().problems, []);
        // A load of nothing new commits nothing.
        let mut load = t.load().unwrap();
        load.skip_existing().unwrap();
        load.push(batch(0..rows)).unwrap();
        assert_eq!(load.finish().unwrap().rows, 0);
        assert_eq!(t.count().unwrap(), rows + 10);
        drop((t, db));
        let db = small_segments().open(&dir.0).unwrap();
        assert_eq!(db.table("people").unwrap().count().unwrap(), rows + 10);
        assert_eq!(db.check().unwrap().problems, []);
    }
}
