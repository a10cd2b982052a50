//! What merges make of tables, and what they do when one fails.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and waits on the real clock"
)]

use std::time::{Duration, Instant};

use crate::fixture::Directory;
use esker::{DataType, Database, Durability, ErrorKind, Options, Schema, Value};
use esker_vfs::{Environment, OpenMode};

fn texts() -> Schema {
    let builder = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
    builder.primary_key(["id"]).build().unwrap()
}

fn row(id: u64) -> Vec<Value> {
    let letter = ["a", "b", "c"][usize::try_from(id % 3).unwrap()];
    vec![Value::Uint(id), letter.repeat(1_000).into()]
}

fn load(db: &Database, name: &str, rows: u64) {
    let t = db.create_table(name, texts()).unwrap();
    let mut load = t.load().unwrap();
    (0..rows).for_each(|id| load.push_row(&row(id)).unwrap());
    load.finish().unwrap();
}

fn segments(db: &Database, name: &str) -> usize {
    db.info().tables.iter().find(|t| t.name == name).unwrap().segments
}

fn assert_rows(db: &Database, name: &str, ids: impl Iterator<Item = u64>) {
    let snapshot = db.snapshot().unwrap();
    let mut rows = snapshot.table(name).unwrap().rows().unwrap();
    rows.sort_by_key(|(row_id, _)| *row_id);
    let rows: Vec<Vec<Value>> = rows.into_iter().map(|(_, row)| row).collect();
    assert!(rows == ids.map(row).collect::<Vec<_>>());
    assert_eq!(db.check().unwrap().problems, []);
}

/// A merge was sized by encoded bytes, which equal texts hardly have: it failed once they passed
/// what one column may have in memory.
#[test]
fn merged_texts_stop_before_a_column_is_too_large() {
    let dir = Directory::new("merged-texts");
    let options = || Options::new().merged_column_limit(1 << 20).background(false);
    let db = options().segment_limit(500).open(&dir.0).unwrap();
    load(&db, "texts", 6_000);
    assert_eq!(segments(&db, "texts"), 12);
    db.wait_idle().unwrap();
    // Two of them have a little less than the limit.
    assert_eq!(segments(&db, "texts"), 8);
    assert_rows(&db, "texts", 0..6_000);
}

#[test]
fn a_rewritten_segment_is_split_when_its_texts_are_too_large() {
    let dir = Directory::new("split-texts");
    let durability = Durability::Async { at_most: Duration::from_secs(10) };
    let options = Options::new().merged_column_limit(1 << 20).background(false);
    let db = options.durability(durability).open(&dir.0).unwrap();
    let t = db.create_table("texts", texts()).unwrap();
    let mut load = t.load().unwrap();
    (0..70_000).for_each(|id| load.push_row(&row(id)).unwrap());
    load.finish().unwrap();
    assert_eq!(segments(&db, "texts"), 1);
    (0..66_000).for_each(|id| assert!(t.delete(&[Value::Uint(id)]).unwrap()));
    db.wait_idle().unwrap();
    assert_eq!(segments(&db, "texts"), 4);
    assert_rows(&db, "texts", 66_000..70_000);
    drop(t);
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert_rows(&db, "texts", 66_000..70_000);
}

/// Turns a bit over in each segment file there is.
fn rot(dir: &Directory) {
    for name in dir.files().iter().filter(|name| name.starts_with("segment-")) {
        let file = Environment::os().files.open(&dir.0.join(name), OpenMode::Write).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 100).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 100).unwrap();
    }
}

/// Two tables to merge, of which the first one cannot be.
fn damaged(dir: &Directory, background: bool) -> Database {
    let numbers = Schema::builder().field("n", DataType::U64).build().unwrap();
    let options = || Options::new().segment_limit(100);
    let db = options().background(false).open(&dir.0).unwrap();
    let t = db.create_table("bad", numbers).unwrap();
    let mut bad = t.load().unwrap();
    (0..1_200u64).for_each(|n| bad.push_row(&[Value::Uint(n * n)]).unwrap());
    bad.finish().unwrap();
    drop(t);
    db.close().unwrap();
    rot(dir);
    let db = options().background(background).open(&dir.0).unwrap();
    load(&db, "good", 1_200);
    db
}

/// The first table that could not be merged kept all later ones from it.
#[test]
fn a_merge_that_fails_does_not_hold_back_those_of_other_tables() {
    let dir = Directory::new("merge-fails");
    let db = damaged(&dir, false);
    assert_eq!((segments(&db, "bad"), segments(&db, "good")), (12, 12));
    let e = db.wait_idle().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert_eq!(segments(&db, "bad"), 12);
    assert!(segments(&db, "good") <= 8);
    assert!(db.info().last_error.is_some());
}

#[test]
fn in_the_background_others_are_merged_beside_one_that_fails() {
    let dir = Directory::new("merge-backs-off");
    let db = damaged(&dir, true);
    let end = Instant::now() + Duration::from_secs(20);
    while segments(&db, "good") > 8 {
        assert!(Instant::now() < end, "{:?}", db.info());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(segments(&db, "bad"), 12);
    db.drop_table("bad").unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn what_is_done_in_the_background_is_counted() {
    let dir = Directory::new("merging-counted");
    let options = Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0);
    let db = options.open(&dir.0).unwrap();
    assert_eq!(db.info().syncs.count, 0);
    let t = db.create_table("t", texts()).unwrap();
    for id in 0..12 {
        t.insert(&row(id)).unwrap();
    }
    db.wait_idle().unwrap();
    t.delete(&[1u64.into()]).unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    let info = db.info();
    assert!(info.syncs.count >= 14 && info.syncs.sum_ns > 0, "{:?}", info.syncs);
    for work in [&info.seals, &info.merges] {
        assert!(work.durations.count > 0 && work.bytes > 1_000, "{info:?}");
    }
    let memory = Options::new().memory().unwrap();
    memory.create_table("t", texts()).unwrap();
    assert_eq!(memory.info().syncs.count > 0, crate::is_on_disk());
}
