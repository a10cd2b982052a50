//! Handles that outlive what they were made for, directories that are not whole, and memory that
//! runs short.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use crate::fixture::{Directory, people, person};
use esker::{DataType, Database, ErrorKind, Options, Schema, Value};

fn small_segments() -> Options {
    Options::new().segment_limit(1_000).group_limit(500, 1 << 20)
}

fn numbers() -> Schema {
    Schema::builder().field("id", DataType::U64).primary_key(["id"]).build().unwrap()
}

fn load_numbers(db: &Database, rows: u64) -> esker::Load {
    let table = db.table("numbers").or_else(|_| db.create_table("numbers", numbers())).unwrap();
    let mut load = table.load().unwrap();
    (0..rows).for_each(|id| load.push_row(&[Value::Uint(id)]).unwrap());
    load.wait().unwrap();
    load
}

/// The segment of a load that outlived its database had the name of a later one, and took its
/// file away.
#[test]
fn a_load_that_outlives_close_removes_nothing() {
    let dir = Directory::new("outlived");
    let db = small_segments().open(&dir.0).unwrap();
    let outlived = load_numbers(&db, 2_500);
    db.close().unwrap();
    let db = small_segments().open(&dir.0).unwrap();
    load_numbers(&db, 2_500).finish().unwrap();
    let files = dir.files();
    drop(outlived);
    assert_eq!(dir.files(), files);
    db.close().unwrap();
    let db = small_segments().open(&dir.0).unwrap();
    assert_eq!(db.table("numbers").unwrap().count().unwrap(), 2_500);
    assert_eq!(db.check().unwrap().problems, []);
}

/// A directory whose log was lost was taken for one that had never been used, and emptied.
#[test]
fn a_database_whose_log_is_missing_is_damaged_not_new() {
    let dir = Directory::new("no-log");
    let db = small_segments().open(&dir.0).unwrap();
    load_numbers(&db, 2_500).finish().unwrap();
    db.close().unwrap();
    for name in dir.files().iter().filter(|name| name.starts_with("log-")) {
        std::fs::remove_file(dir.0.join(name)).unwrap();
    }
    let files = dir.files();
    for options in [Options::new(), Options::new().read_only(true), Options::new().create(false)] {
        let e = options.open(&dir.0).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
        assert!(e.to_string().contains("log files are missing"), "{e}");
    }
    assert_eq!(dir.files(), files);
}

#[test]
fn a_dropped_table_is_gone_for_its_handles_and_stays_for_older_snapshots() {
    let dir = Directory::new("dropped");
    let db = small_segments().open(&dir.0).unwrap();
    let table = db.create_table("people", people()).unwrap();
    table.insert(&person("Ada", 36)).unwrap();
    let before = db.snapshot().unwrap();
    db.drop_table("people").unwrap();
    let key = [Value::Text("Ada".to_owned())];
    for e in [
        table.get(&key).map(drop).unwrap_err(),
        table.count().map(drop).unwrap_err(),
        table.exists(&key).map(drop).unwrap_err(),
        table.insert(&person("Bo", 1)).map(drop).unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
    }
    let again = db.create_table("people", numbers()).unwrap();
    again.insert(&[Value::Uint(7)]).unwrap();
    db.create_table("later", numbers()).unwrap();
    assert_eq!(before.table("people").unwrap().rows().unwrap()[0].1, person("Ada", 36));
    assert_eq!(before.table("later").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.snapshot().unwrap().table("people").unwrap().count().unwrap(), 1);
}

/// Frozen groups of dropped tables stayed counted, until all writers waited for ever.
#[test]
fn dropping_tables_gives_their_frozen_groups_back() {
    let dir = Directory::new("frozen");
    let options = Options::new().memory_limit(8 << 20).group_limit(200, 1 << 20).background(false);
    let db = options.open(&dir.0).unwrap();
    for round in 0..60u64 {
        let table = db.create_table("staging", people()).unwrap();
        let note = Value::Text("x".repeat(1_000));
        for i in 0..250u64 {
            let row = vec![format!("{round} {i}").into(), Value::Uint(1), note.clone()];
            table.insert(&row).unwrap();
        }
        db.drop_table("staging").unwrap();
    }
}

/// With a limit below the size of a full group nothing was ever sealed, and nothing taken.
#[test]
fn a_small_memory_limit_seals_earlier_instead_of_refusing() {
    let dir = Directory::new("small-limit");
    let db = Options::new().memory_limit(16 << 20).open(&dir.0).unwrap();
    let table = db.create_table("people", people()).unwrap();
    let note = Value::Text("x".repeat(1_000));
    for i in 0..800u64 {
        let row = |n| vec![format!("{i} {n}").into(), Value::Uint(1), note.clone()];
        let rows: Vec<Vec<Value>> = (0..50).map(row).collect();
        table.insert_many(&rows).unwrap_or_else(|e| panic!("commit {i}: {e}"));
    }
    assert_eq!(table.count().unwrap(), 40_000);
    assert!(db.info().memory.total <= 16 << 20);
}

/// Nobody seals then: a writer without memory waited for ever.
#[test]
fn a_writer_without_background_work_is_refused_and_does_not_wait() {
    let dir = Directory::new("no-background");
    let db = Options::new().memory_limit(8 << 20).background(false).open(&dir.0).unwrap();
    let table = db.create_table("people", people()).unwrap();
    let note = Value::Text("x".repeat(10_000));
    let row = |i: u64| vec![format!("{i}").into(), Value::Uint(1), note.clone()];
    let rows = |i: u64| -> Vec<Vec<Value>> { (i * 50..(i + 1) * 50).map(row).collect() };
    let mut commits = 0;
    let e = loop {
        match table.insert_many(&rows(commits)) {
            Ok(_) => commits += 1,
            Err(e) => break e,
        }
        assert!(commits < 1_000);
    };
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    assert_eq!(table.count().unwrap(), commits * 50);
    // Whoever asks for it seals, and then there is memory again.
    db.checkpoint().unwrap();
    table.insert_many(&rows(commits)).unwrap();
}

#[test]
fn opened_for_reading_the_log_has_its_length() {
    let dir = Directory::new("log-bytes");
    let db = Options::new().open(&dir.0).unwrap();
    db.create_table("people", people()).unwrap().insert(&person("Ada", 36)).unwrap();
    db.close().unwrap();
    let db = Options::new().read_only(true).open(&dir.0).unwrap();
    let names = dir.files().into_iter().filter(|name| name.starts_with("log-"));
    let bytes = names.map(|name| std::fs::metadata(dir.0.join(name)).unwrap().len());
    let bytes: u64 = bytes.sum();
    assert!(bytes > 0);
    assert_eq!(db.info().log_bytes, bytes);
}

#[test]
fn a_check_notes_files_that_nothing_names() {
    let dir = Directory::new("stray");
    let db = small_segments().open(&dir.0).unwrap();
    load_numbers(&db, 2_500).finish().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(db.check().unwrap().notes, []);
    let strays = ["checkpoint-00000000000000aa", "index-00000000000000aa", "note.txt"];
    for name in strays.into_iter().chain(["segment-00000000000000aa"]) {
        std::fs::write(dir.0.join(name), "?").unwrap();
    }
    let report = db.check().unwrap();
    assert_eq!(report.problems, []);
    let places: Vec<&str> = report.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(places, [strays[0], strays[1], strays[2], "segment-00000000000000aa"]);
    // A load that is under way is nobody's problem either.
    let load = db.table("numbers").unwrap().load().unwrap();
    assert!(db.check().unwrap().is_sound());
    drop(load);
}
