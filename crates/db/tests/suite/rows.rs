//! Inserting, reading, changing and deleting rows, in memory and on disk, before and after reopen.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test stops where it fails"
)]

use crate::fixture::{Directory, people, person};
use esker::{DataType, Database, ErrorKind, Options, Schema, Value};

fn key(name: &str) -> Vec<Value> {
    vec![name.into()]
}

fn each_kind(test: impl Fn(&Database)) {
    test(&Options::new().memory().unwrap());
    let dir = Directory::new("rows");
    test(&Database::open(&dir.0).unwrap());
}

#[test]
fn rows_are_inserted_read_updated_and_deleted() {
    each_kind(|db| {
        let t = db.create_table("people", people()).unwrap();
        t.insert(&person("Ada", 36)).unwrap();
        t.insert(&person("Bob", 40)).unwrap();
        assert_eq!(t.count().unwrap(), 2);
        let ada = t.get(&key("Ada")).unwrap().unwrap();
        assert_eq!(ada.values(), person("Ada", 36));
        let kind = t.insert(&person("Ada", 1)).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::AlreadyExists);
        assert!(t.update(&key("Ada"), &[("age", Value::Uint(37))]).unwrap());
        assert!(!t.update(&key("Eve"), &[("age", Value::Uint(37))]).unwrap());
        assert_eq!(t.get(&key("Ada")).unwrap().unwrap().get("age"), Some(&Value::Uint(37)));
        t.upsert(&person("Bob", 41)).unwrap();
        t.upsert(&person("Cid", 50)).unwrap();
        assert!(t.delete(&key("Ada")).unwrap());
        assert!(!t.delete(&key("Ada")).unwrap());
        assert_eq!(t.get(&key("Ada")).unwrap(), None);
        t.insert(&person("Ada", 1)).unwrap();
        let got = t.get_many(&[key("Ada"), key("Eve"), key("Bob")]).unwrap();
        assert_eq!(got[0].as_ref().unwrap().values(), person("Ada", 1));
        assert!(got[1].is_none());
        assert_eq!(got[2].as_ref().unwrap().values(), person("Bob", 41));
        assert_eq!(t.count().unwrap(), 3);
        assert!(t.exists(&key("Cid")).unwrap());
        assert!(db.check().unwrap().is_sound());
    });
}

#[test]
fn generated_keys_find_rows_and_their_updates() {
    each_kind(|db| {
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        let t = db.create_table("numbers", schema).unwrap();
        let ids: Vec<u64> = (0..500).map(|i| t.insert(&[Value::Int(i)]).unwrap()).collect();
        for (i, id) in ids.iter().enumerate().step_by(3) {
            assert!(t.update(&[Value::Uint(*id)], &[("n", Value::Int(-(i as i64)))]).unwrap());
        }
        for (i, id) in ids.iter().enumerate() {
            let n = if i % 3 == 0 { -(i as i64) } else { i as i64 };
            let row = t.get(&[Value::Uint(*id)]).unwrap().unwrap();
            assert_eq!(row.get("n"), Some(&Value::Int(n)));
        }
        assert!(t.delete(&[Value::Uint(ids[0])]).unwrap());
        assert!(t.delete(&[Value::Uint(ids[1])]).unwrap());
        assert_eq!(t.get(&[Value::Uint(ids[0])]).unwrap(), None);
        assert_eq!(t.get(&[Value::Uint(ids[1])]).unwrap(), None);
        assert_eq!(t.get(&[Value::Uint(999_999)]).unwrap(), None);
        assert_eq!(t.count().unwrap(), 498);
        assert!(db.check().unwrap().is_sound());
    });
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    each_kind(|db| {
        let t = db.create_table("people", people()).unwrap();
        let refused_as = |kind: ErrorKind, row: &[Value], message: &str| {
            let e = t.insert(row).unwrap_err();
            assert_eq!((e.kind(), e.to_string().as_str()), (kind, message));
        };
        let refused = |row: &[Value], message| refused_as(ErrorKind::InvalidInput, row, message);
        refused(&["Ada".into()], "expected 3 values (name, age, note), found 1");
        refused(
            &["Ada".into(), Value::Int(300), Value::Null],
            "field \"age\": expected u8, found integer 300",
        );
        let unnamed = [Value::Null, Value::Int(3), Value::Null];
        let message = "field \"name\" must not be null";
        refused_as(ErrorKind::ConstraintViolated, &unnamed, message);
        let e = t.update(&key("Ada"), &[("agee", Value::Null)]).unwrap_err();
        assert_eq!(e.to_string(), "unknown field \"agee\"; did you mean \"age\"?");
        assert!(!t.update(&key("Ada"), &[("name", "x".into())]).unwrap());
        let rows = vec![person("a", 1), person("b", 2), person("a", 3)];
        let e = t.insert_many(&rows).unwrap_err();
        assert_eq!(e.to_string(), "row 3: key name = a is in an earlier row, too");
        assert_eq!(t.count().unwrap(), 0);
        assert_eq!(db.table("nobody").unwrap_err().kind(), ErrorKind::NotFound);
        let e = db.create_table("people", people()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn everything_survives_reopening() {
    let dir = Directory::new("reopen");
    for round in 0..4u64 {
        let db = Database::open(&dir.0).unwrap();
        let t = match round {
            0 => db.create_table("people", people()).unwrap(),
            _ => db.table("people").unwrap(),
        };
        assert_eq!(t.count().unwrap(), round * 90);
        for i in 0..100 {
            t.insert(&person(&format!("{round}-{i}"), i)).unwrap();
        }
        for i in 0..10 {
            assert!(t.delete(&key(&format!("{round}-{i}"))).unwrap());
            let name = format!("{round}-{}", i + 10);
            assert!(t.update(&key(&name), &[("age", Value::Uint(99))]).unwrap());
        }
        if round == 1 {
            db.checkpoint().unwrap();
        }
        assert!(db.check().unwrap().is_sound());
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
    let db = Options::new().read_only(true).open(&dir.0).unwrap();
    let t = db.table("people").unwrap();
    assert_eq!(t.count().unwrap(), 360);
    assert_eq!(t.get(&key("2-15")).unwrap().unwrap().get("age"), Some(&Value::Uint(99)));
    assert_eq!(t.insert(&person("x", 1)).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert!(db.check().unwrap().is_sound());
    assert!(dir.files().len() <= 4, "few files: {:?}", dir.files());
}

#[test]
fn snapshots_see_their_commit_through_seals_merges_and_deletes() {
    let dir = Directory::new("snapshot");
    let options = Options::new().group_limit(64, 1 << 20).small_group_limit(1);
    let db = options.open(&dir.0).unwrap();
    let t = db.create_table("people", people()).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..20u64 {
        for i in 0..50 {
            t.upsert(&person(&format!("{}", (i * 7 + round) % 80), round)).unwrap();
        }
        for i in 0..10 {
            t.delete(&key(&format!("{}", (i * 11 + round) % 80))).unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        let rows = snapshot.table("people").unwrap().rows().unwrap();
        snapshots.push((snapshot, rows));
        if round % 5 == 4 {
            db.wait_idle().unwrap();
        }
        for (snapshot, rows) in &snapshots {
            let table = snapshot.table("people").unwrap();
            assert_eq!(table.rows().unwrap(), *rows);
            assert_eq!(table.count().unwrap(), rows.len() as u64);
            for (_, row) in rows {
                assert_eq!(table.get(&row[..1]).unwrap().unwrap().values(), row.as_slice());
            }
        }
        assert_eq!(db.check().unwrap().problems, []);
        if round % 3 == 2 {
            snapshots.remove(0);
        }
    }
    drop(snapshots);
    db.wait_idle().unwrap();
    let info = db.info();
    assert!(info.tables[0].segments <= 8, "{info:?}");
}

#[test]
fn a_second_opener_is_told_who_holds_the_database() {
    let dir = Directory::new("locked");
    let db = Database::open(&dir.0).unwrap();
    let e = Database::open(&dir.0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Locked);
    let holder = format!("process {}", std::process::id());
    assert!(e.to_string().contains(&holder), "{e}");
    let e = Options::new().read_only(true).open(&dir.0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Locked);
    drop(db);
    let first = Options::new().read_only(true).open(&dir.0).unwrap();
    let second = Options::new().read_only(true).open(&dir.0).unwrap();
    drop((first, second));
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let dir = Directory::new("foreign");
    #[allow(clippy::disallowed_methods, reason = "the test makes a foreign directory")]
    {
        std::fs::create_dir_all(&dir.0).unwrap();
        std::fs::write(dir.0.join("letter.txt"), "dear").unwrap();
    }
    let e = Database::open(&dir.0).unwrap_err();
    assert!(e.to_string().contains("not an Esker database"), "{e}");
    assert_eq!(dir.files(), ["letter.txt"]);
}

#[test]
fn a_closed_database_can_be_opened_while_handles_are_left() {
    let dir = Directory::new("closed");
    let db = Database::open(&dir.0).unwrap();
    let t = db.create_table("people", people()).unwrap();
    t.insert(&person("Ada", 36)).unwrap();
    db.close().unwrap();
    assert_eq!(t.insert(&person("Bob", 1)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let again = Database::open(&dir.0).unwrap();
    assert_eq!(again.table("people").unwrap().count().unwrap(), 1);
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn an_overlong_value_is_refused_by_every_way_in() {
    let db = Options::new().memory_limit(16 << 30).memory().unwrap();
    let schema = Schema::builder().field("text", DataType::Text).build().unwrap();
    let t = db.create_table("texts", schema).unwrap();
    let row = [Value::Text("x".repeat((1 << 30) + 1))];
    let expected = "field \"text\": 1073741825 bytes, at most 1073741824";
    assert_eq!(t.insert(&row).unwrap_err().to_string(), expected);
    assert_eq!(t.appender().append(&row).unwrap_err().to_string(), expected);
    assert_eq!(t.load().unwrap().push_row(&row).unwrap_err().to_string(), expected);
    assert_eq!(t.count().unwrap(), 0);
}

/// As many rows of so many fields as make a commit of narrow rows are too many for a log frame.
#[test]
fn an_appender_commits_wide_rows_in_time() {
    for has_key in [false, true] {
        let dir = Directory::new("wide");
        let db = Database::open(&dir.0).unwrap();
        let names = (0..600).map(|i| format!("n{i}"));
        let builder = names.fold(Schema::builder(), |b, name| b.field(&name, DataType::U64));
        let builder = if has_key { builder.primary_key(["n0"]) } else { builder };
        let t = db.create_table("wide", builder.build().unwrap()).unwrap();
        let mut appender = t.appender();
        for i in 0..5_000 {
            appender.append(&vec![Value::Uint(i); 600]).unwrap();
        }
        appender.finish().unwrap();
        assert_eq!(t.count().unwrap(), 5_000);
    }
}

#[test]
fn an_appender_commits_what_it_has_before_a_row_that_needs_its_own_commit() {
    let dir = Directory::new("large-row");
    let db = Database::open(&dir.0).unwrap();
    let builder = Schema::builder().field("a", DataType::Bytes).field("b", DataType::Bytes);
    let t = db.create_table("large", builder.build().unwrap()).unwrap();
    let row = |len: usize| vec![Value::Bytes(vec![7; len]), Value::Bytes(vec![8; len])];
    let mut appender = t.appender();
    appender.append(&row(400 << 10)).unwrap();
    appender.append(&row(8_300_000)).unwrap();
    appender.append(&row(20 << 20)).unwrap();
    appender.append(&row(1)).unwrap();
    appender.finish().unwrap();
    assert_eq!(t.count().unwrap(), 4);
}
