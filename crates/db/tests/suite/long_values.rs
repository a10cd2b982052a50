//! Values that are too long to be copied with their rows lie in value files.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{Alteration, BackupOptions, Batch, DataType, Database, Options, Schema, Table, Value};

const LONG: usize = 1_000;

fn options() -> Options {
    Options::new().value_file_limits(256, 64 << 10)
}

fn schema(keyed: bool) -> Schema {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("body", DataType::Text)
        .nullable("raw", DataType::Bytes)
        .nullable("doc", DataType::Json);
    if keyed { schema.primary_key(["id"]) } else { schema }.build().unwrap()
}

fn row(id: i64, letter: &str, len: usize) -> Vec<Value> {
    let doc = format!("{{\"{letter}\": \"{}\"}}", letter.repeat(len));
    let text = letter.repeat(len);
    vec![id.into(), text.as_str().into(), text.as_bytes().into(), Value::json(&doc).unwrap()]
}

fn is_sound(db: &Database) {
    let report = db.check().unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

/// The rows by their id.
fn rows(t: &Table) -> Vec<Vec<Value>> {
    let mut rows: Vec<_> =
        t.snapshot().unwrap().rows().unwrap().into_iter().map(|(_, row)| row).collect();
    rows.sort();
    rows
}

fn value_files(dir: &Directory) -> Vec<u64> {
    let entries = std::fs::read_dir(&dir.0).unwrap().map(Result::unwrap);
    let values = entries.filter(|e| e.file_name().to_str().unwrap().starts_with("values-"));
    values.map(|e| e.metadata().unwrap().len()).collect()
}

/// Every way in which rows are written, then each way in which they come to lie elsewhere.
#[test]
fn long_values_are_read_wherever_their_rows_are() {
    for keyed in [true, false] {
        for paranoid in [false, true] {
            let dir = Directory::new("long-everywhere");
            let open = || options().paranoid(paranoid).open(&dir.0).unwrap();
            let mut db = open();
            let t = db.create_table("t", schema(keyed)).unwrap();
            t.insert(&row(1, "a", LONG)).unwrap();
            t.insert_many(&[row(2, "b", LONG), row(3, "c", 5), row(4, "d", LONG)]).unwrap();
            let mut appender = t.appender();
            (5..9).for_each(|id| appender.append(&row(id, "e", LONG)).unwrap());
            appender.finish().unwrap();
            let mut load = t.load().unwrap();
            let mut batch = Batch::empty(&t.schema());
            (9..20).for_each(|id| batch.push_row(&t.schema(), &row(id, "f", LONG)).unwrap());
            load.push(batch).unwrap();
            load.finish().unwrap();
            assert!(t.update(&[Value::Int(2)], &[("body", "g".repeat(LONG).into())]).unwrap());
            assert!(t.update(&[Value::Int(4)], &[("raw", Value::Null)]).unwrap());
            assert!(t.delete(&[Value::Int(5)]).unwrap());
            let mut expected: Vec<_> =
                [row(1, "a", LONG), row(2, "b", LONG), row(3, "c", 5)].into();
            expected.push(row(4, "d", LONG));
            expected.extend((6..9).map(|id| row(id, "e", LONG)));
            expected.extend((9..20).map(|id| row(id, "f", LONG)));
            expected[1][1] = "g".repeat(LONG).into();
            expected[3][2] = Value::Null;
            for stage in ["written", "reopened", "checkpointed", "compacted", "reopened again"] {
                match stage {
                    "written" => {}
                    "checkpointed" => db.checkpoint().unwrap(),
                    "compacted" => drop(db.compact(false, &mut |_, _| {}).unwrap()),
                    _ => {
                        db.close().unwrap();
                        db = open();
                    }
                }
                let t = db.table("t").unwrap();
                assert!(rows(&t) == expected, "{stage}, keyed: {keyed}");
                let row = t.get(&[Value::Int(1)]).unwrap().unwrap();
                assert!(row.values() == expected[0], "{stage}");
                assert_eq!(t.count().unwrap(), expected.len() as u64);
                is_sound(&db);
            }
            assert!(!value_files(&dir).is_empty());
        }
    }
}

#[test]
fn a_backup_has_the_long_values() {
    for copy in [false, true] {
        let (dir, to) = (Directory::new("long-backup"), Directory::new("long-backup-to"));
        std::fs::remove_dir_all(&to.0).ok();
        let db = options().open(&dir.0).unwrap();
        let t = db.create_table("t", schema(true)).unwrap();
        for id in 0..50 {
            t.insert(&row(id, "a", LONG)).unwrap();
        }
        let before = rows(&t);
        let backup = BackupOptions { copy, ..BackupOptions::default() };
        db.backup(&to.0, &backup, &mut |_, _| {}).unwrap();
        t.upsert(&row(1, "b", LONG)).unwrap();
        let other = options().open(&to.0).unwrap();
        assert!(rows(&other.table("t").unwrap()) == before);
        other.table("t").unwrap().upsert(&row(2, "c", LONG)).unwrap();
        is_sound(&other);
        is_sound(&db);
    }
}

#[test]
fn space_comes_back_after_deletes() {
    let dir = Directory::new("long-space");
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    for id in 0..400 {
        t.insert(&row(id, "a", LONG)).unwrap();
    }
    // Again and again the same rows: a version that nobody sees gives its place back.
    for i in 0..20 {
        for id in 0..20 {
            t.upsert(&row(id, if i % 2 == 0 { "b" } else { "c" }, LONG)).unwrap();
        }
    }
    db.wait_idle().unwrap();
    let full = db.info().value_bytes;
    assert!(full < 2 * 400 * 3 * 1_536 + 400_000, "{full}");
    (20..400).for_each(|id| assert!(t.delete(&[Value::Int(id)]).unwrap()));
    db.compact(false, &mut |_, _| {}).unwrap();
    let files = value_files(&dir);
    let left: u64 = files.iter().sum();
    assert!(left < 20 * 3 * 1_536 * 2, "{left} bytes of {full}");
    assert_eq!((db.info().value_files, rows(&t).len()), (files.len(), 20));
    is_sound(&db);
    let seen = db.snapshot().unwrap();
    (0..20).for_each(|id| assert!(t.delete(&[Value::Int(id)]).unwrap()));
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(seen.table("t").unwrap().rows().unwrap().len(), 20, "a snapshot keeps files");
    drop(seen);
    db.compact(false, &mut |_, _| {}).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(value_files(&dir).len(), 0);
    is_sound(&db);
}

/// No row dies: that nobody can ask for the values any more must be enough.
#[test]
fn space_comes_back_after_a_field_is_dropped() {
    for compact in [true, false] {
        let dir = Directory::new("long-field");
        let db = options().open(&dir.0).unwrap();
        let t = db.create_table("t", schema(true)).unwrap();
        let mut load = t.load().unwrap();
        for id in 0..400 {
            let mut row = row(id, "a", LONG);
            row.truncate(2);
            row.extend([Value::Null, Value::Null]);
            load.push_row(&row).unwrap();
        }
        load.finish().unwrap();
        db.checkpoint().unwrap();
        db.compact(false, &mut |_, _| {}).unwrap();
        let full = db.info().value_bytes;
        assert!(full > 400 * 1_000, "{full}");
        let seen = db.snapshot().unwrap();
        db.alter_table("t", &[Alteration::DropField("body".into())]).unwrap();
        db.compact(false, &mut |_, _| {}).unwrap();
        assert_eq!(seen.table("t").unwrap().rows().unwrap()[7].1[1], "a".repeat(LONG).into());
        drop(seen);
        if compact {
            db.compact(false, &mut |_, _| {}).unwrap();
        } else {
            // Maintenance does so by itself.
            db.close().unwrap();
            let db = options().open(&dir.0).unwrap();
            db.wait_idle().unwrap();
            db.checkpoint().unwrap();
            db.wait_idle().unwrap();
            assert!(db.info().value_bytes < full / 4, "{} of {full}", db.info().value_bytes);
            is_sound(&db);
            continue;
        }
        assert_eq!(value_files(&dir).len(), 0);
        assert_eq!(rows(&db.table("t").unwrap()).len(), 400);
        is_sound(&db);
    }
}

/// A dropped or truncated table gives its value files back, too, and so does a load.
#[test]
fn files_go_with_tables_and_loads_that_are_dropped() {
    let dir = Directory::new("long-drop");
    let db = options().open(&dir.0).unwrap();
    for drop_it in [true, false] {
        let t = db.create_table("t", schema(true)).unwrap();
        t.insert_many(&(0..20).map(|id| row(id, "a", LONG)).collect::<Vec<_>>()).unwrap();
        let mut load = t.load().unwrap();
        (100..120).for_each(|id| load.push_row(&row(id, "a", LONG)).unwrap());
        drop((load, t));
        if drop_it {
            db.drop_table("t").unwrap()
        } else {
            db.truncate_table("t").unwrap()
        }
        db.compact(false, &mut |_, _| {}).unwrap();
        db.wait_idle().unwrap();
        assert!(value_files(&dir).len() <= 1, "{:?}", value_files(&dir));
    }
    db.close().unwrap();
    let db = options().open(&dir.0).unwrap();
    assert_eq!(value_files(&dir).len(), 0);
    is_sound(&db);
}

/// Several openings leave several small files; they become one.
#[test]
fn small_files_become_one() {
    let dir = Directory::new("long-small");
    for id in 0..30 {
        let db = options().open(&dir.0).unwrap();
        if id == 0 {
            db.create_table("t", schema(true)).unwrap();
        }
        db.table("t").unwrap().insert(&row(id, "a", 300)).unwrap();
        db.wait_idle().unwrap();
        db.close().unwrap();
    }
    assert!(value_files(&dir).len() <= 12, "{:?}", value_files(&dir));
    let db = options().open(&dir.0).unwrap();
    assert_eq!(
        rows(&db.table("t").unwrap()),
        (0..30).map(|id| row(id, "a", 300)).collect::<Vec<_>>()
    );
}

/// Many writers share a file and its syncs; those of one key are served one after another.
#[test]
fn writers_of_long_values_beside_each_other() {
    let dir = Directory::new("long-beside");
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4i64 {
            let t = t.clone();
            scope.spawn(move || {
                for i in 0..20 {
                    t.insert(&row(100 * (writer + 1) + i, "a", LONG)).unwrap();
                    t.upsert(&row(i % 3, "b", LONG + usize::try_from(writer).unwrap())).unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&t).len(), 83);
    is_sound(&db);
    db.close().unwrap();
    is_sound(&options().open(&dir.0).unwrap());
}

#[test]
fn damage_to_a_long_value_is_an_error_that_names_the_file() {
    let dir = Directory::new("long-damage");
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    t.insert(&row(1, "a", LONG)).unwrap();
    t.insert(&row(2, "b", 3)).unwrap();
    db.close().unwrap();
    let path = dir.0.join("values-0000000000000001");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[600] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let db = options().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    let e = t.get(&[Value::Int(1)]).unwrap_err();
    assert_eq!(e.kind(), esker::ErrorKind::Corrupt);
    assert!(e.to_string().contains("values-0000000000000001: the value of 1000 bytes"), "{e}");
    assert!(t.get(&[Value::Int(2)]).unwrap().is_some());
    assert!(!db.check().unwrap().is_sound());
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
    let e = options().open(&dir.0).unwrap_err();
    assert_eq!(e.kind(), esker::ErrorKind::Corrupt, "{e}");
}

/// Units of one row have the same value in all of their rows, each its own.
#[test]
fn values_that_merging_moves_to_value_files_stay_with_their_rows() {
    let dir = Directory::new("constant-values");
    let limited = |long| Options::new().value_file_limits(long, 64 << 10).commit_limit(1);
    let db = limited(64 << 10).background(false).open(&dir.0).unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    let letters = ["a", "b", "a", "c"];
    let written: Vec<_> = (0..).zip(letters).map(|(id, letter)| row(id, letter, 20)).collect();
    for row in &written {
        t.insert(row).unwrap();
    }
    assert_eq!(db.info().tables[0].segments, 4);
    db.close().unwrap();

    let db = limited(16).open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    db.compact(false, &mut |_, _| ()).unwrap();
    assert_eq!(db.info().tables[0].segments, 1);
    assert_eq!(rows(&t), written);
    is_sound(&db);
    db.close().unwrap();
}
