//! Bits that rot in segment files after they have been read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use crate::fixture::Directory;
use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_vfs::{Environment, OpenMode};

const ROWS: u64 = 5_000;

fn events() -> Schema {
    let builder = Schema::builder().field("id", DataType::U64).field("what", DataType::Text);
    builder.field("kind", DataType::Text).primary_key(["id"]).build().unwrap()
}

fn event(id: u64) -> Vec<Value> {
    let what = format!("{}: {}", id, "what happened ".repeat(1 + usize::try_from(id % 5).unwrap()));
    vec![Value::Uint(id), what.into(), format!("kind {}", id % 3).into()]
}

fn filled(dir: &Directory) -> Database {
    let db = Options::new().segment_limit(2_000).open(&dir.0).unwrap();
    let t = db.create_table("events", events()).unwrap();
    let mut load = t.load().unwrap();
    (0..ROWS).for_each(|id| load.push_row(&event(id)).unwrap());
    load.finish().unwrap();
    db
}

fn paranoid() -> Options {
    Options::new().paranoid(true)
}

/// Turns all bits of the data of all segment files over.
fn rot(dir: &Directory) {
    for name in dir.files().iter().filter(|name| name.starts_with("segment-")) {
        let path = dir.0.join(name);
        let file = Environment::os().files.open(&path, OpenMode::Write).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap() / 10 * 9 - 64];
        file.read_exact_at(&mut bytes, 64).unwrap();
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        file.write_all_at(&bytes, 64).unwrap();
    }
}

fn rows(db: &Database) -> Vec<Vec<Value>> {
    let snapshot = db.snapshot().unwrap();
    let rows = snapshot.table("events").unwrap().rows().unwrap();
    rows.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn rot_after_the_first_touch_is_no_answer_when_paranoid() {
    let dir = Directory::new("rot-paranoid");
    filled(&dir).close().unwrap();
    let db = paranoid().open(&dir.0).unwrap();
    let wanted: Vec<Vec<Value>> = (0..ROWS).map(event).collect();
    assert!(rows(&db) == wanted);
    rot(&dir);
    assert!(rows(&db) == wanted);
    let t = db.table("events").unwrap();
    for id in (0..ROWS).step_by(97) {
        assert_eq!(t.get(&[Value::Uint(id)]).unwrap().unwrap().values(), event(id));
    }
    // What is on the disk is still what a check is about.
    assert!(db.check().unwrap().problems.iter().any(|p| p.message.contains("checksum")));
    assert!(rows(&db) == wanted);
}

#[test]
fn rot_before_the_first_touch_is_an_error_when_paranoid() {
    let dir = Directory::new("rot-before");
    filled(&dir).close().unwrap();
    let db = paranoid().open(&dir.0).unwrap();
    rot(&dir);
    let e = db.snapshot().unwrap().table("events").unwrap().rows().map(drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
}

/// What the option is for: see the fault model in docs/internals/format.md.
#[test]
fn rot_after_the_first_touch_is_found_by_a_check() {
    let dir = Directory::new("rot-mapped");
    let db = filled(&dir);
    assert_eq!(rows(&db).len() as u64, ROWS);
    rot(&dir);
    assert!(db.check().unwrap().problems.iter().any(|p| p.message.contains("checksum")));
}

#[test]
fn a_paranoid_database_is_written_merged_and_checked_like_any_other() {
    let dir = Directory::new("paranoid");
    let options = || Options::new().paranoid(true).segment_limit(300).group_limit(200, 1 << 20);
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("events", events()).unwrap();
    let mut load = t.load().unwrap();
    (0..ROWS).for_each(|id| load.push_row(&event(id)).unwrap());
    load.finish().unwrap();
    let others: Vec<Vec<Value>> = (ROWS..ROWS + 900).map(event).collect();
    for rows in others.chunks(100) {
        t.insert_many(rows).unwrap();
    }
    (0..1_000).for_each(|id| assert!(t.delete(&[Value::Uint(id)]).unwrap()));
    db.wait_idle().unwrap();
    assert!(db.info().tables[0].segments <= 8);
    let wanted: Vec<Vec<Value>> = (1_000..ROWS + 900).map(event).collect();
    let sorted = |mut rows: Vec<Vec<Value>>| {
        rows.sort_by_key(|row| match row[0] {
            Value::Uint(id) => id,
            _ => 0,
        });
        rows
    };
    assert!(sorted(rows(&db)) == wanted);
    assert_eq!(db.check().unwrap().problems, []);
    drop(t);
    db.close().unwrap();
    let db = options().read_only(true).open(&dir.0).unwrap();
    assert!(sorted(rows(&db)) == wanted);
}
