//! Bulk loads that replace rows: one atom, whatever else happens.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::{Directory, people, person};
use esker::{Database, ErrorKind, Load, Options, Table, Value};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn small_segments() -> Options {
    Options::new().segment_limit(100)
}

fn key(i: u64) -> Vec<Value> {
    vec![format!("key {i}").into()]
}

fn age(t: &Table, i: u64) -> Option<Value> {
    t.get(&key(i)).unwrap().and_then(|row| row.get("age").cloned())
}

fn replacing(t: &Table) -> Load {
    let mut load = t.load().unwrap();
    load.replace_existing().unwrap();
    load
}

fn push(load: &mut Load, range: std::ops::Range<u64>, age: u64) -> esker::Result<()> {
    range.into_iter().try_for_each(|i| load.push_row(&person(&format!("key {i}"), age)))
}

/// Rows 0 to 300, some in segments and some not, some dead.
fn filled(db: &Database) -> Table {
    let t = db.create_table("people", people()).unwrap();
    let mut load = t.load().unwrap();
    push(&mut load, 0..200, 1).unwrap();
    load.finish().unwrap();
    for i in 200..300 {
        t.insert(&person(&format!("key {i}"), 1)).unwrap();
    }
    for i in [5, 205] {
        t.delete(&key(i)).unwrap();
        t.update(&key(i + 1), &[("age", Value::Uint(2))]).unwrap();
    }
    t
}

#[test]
fn the_last_row_of_a_key_stays_and_older_readers_see_the_old_one() {
    let dir = Directory::new("replace");
    let db = small_segments().open(&dir.0).unwrap();
    let t = filled(&db);
    let before = db.snapshot().unwrap();
    let mut load = replacing(&t);
    push(&mut load, 100..400, 7).unwrap();
    // Again, within a segment and across some.
    push(&mut load, 390..410, 8).unwrap();
    push(&mut load, 390..400, 9).unwrap();
    push(&mut load, 100..120, 9).unwrap();
    load.wait().unwrap();
    assert_eq!((t.count().unwrap(), age(&t, 150)), (298, Some(Value::Uint(1))));
    let report = load.finish().unwrap();
    assert_eq!((report.rows, report.segments > 2), (350, true), "{report:?}");
    let look = |t: &Table| {
        assert_eq!(t.count().unwrap(), 409);
        let ages = [0, 5, 6, 99, 100, 119, 120, 205, 206, 299, 389, 390, 399, 400, 409];
        let ages: Vec<u64> = ages
            .into_iter()
            .map(|i| match age(t, i) {
                Some(Value::Uint(age)) => age,
                other => u64::from(other.is_some()),
            })
            .collect();
        assert_eq!(ages, [1, 0, 2, 1, 9, 9, 7, 7, 7, 7, 7, 9, 9, 8, 8]);
        let rows = t.snapshot().unwrap().rows().unwrap();
        let names: std::collections::BTreeSet<_> = rows.iter().map(|(_, row)| &row[0]).collect();
        assert_eq!((rows.len(), names.len()), (409, 409));
    };
    for round in 0..2 {
        look(&t);
        let old = before.table("people").unwrap();
        assert_eq!(old.count().unwrap(), 298);
        assert_eq!(old.get(&key(150)).unwrap().unwrap().get("age"), Some(&Value::Uint(1)));
        assert_eq!(old.get(&key(350)).unwrap(), None);
        assert_eq!(db.check().unwrap().problems, [], "round {round}");
        db.compact(false, &mut |_, _| {}).unwrap();
    }
    assert!(t.update(&key(150), &[("age", Value::Uint(3))]).unwrap());
    assert!(t.update(&key(150), &[("age", Value::Uint(7))]).unwrap());
    assert_eq!(t.insert(&person("key 400", 1)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop((before, t, db));
    for _ in 0..2 {
        let db = small_segments().open(&dir.0).unwrap();
        look(&db.table("people").unwrap());
        assert_eq!(db.check().unwrap().problems, []);
        assert_eq!(db.recount(true).unwrap(), []);
        db.checkpoint().unwrap();
    }
}

/// The log alone brings back what died, also of the load's own rows.
/// It would be for some rows, or none.
#[test]
fn what_becomes_of_existing_rows_is_said_before_the_first() {
    let db = small_segments().memory().unwrap();
    let t = filled(&db);
    for (first, rows) in [(1_000, 1), (2_000, 4_000)] {
        let mut load = t.load().unwrap();
        push(&mut load, first..first + rows, 1).unwrap();
        for refused in [load.replace_existing(), load.skip_existing()] {
            let e = refused.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput);
            assert!(e.to_string().contains(&format!("{rows} have been given")), "{e}");
        }
        load.finish().unwrap();
    }
}

#[test]
fn survives_without_a_checkpoint() {
    let dir = Directory::new("replace-log");
    for round in 0..3 {
        let db = small_segments().open(&dir.0).unwrap();
        if round == 0 {
            let t = filled(&db);
            let mut load = replacing(&t);
            push(&mut load, 0..300, 7).unwrap();
            push(&mut load, 0..150, 8).unwrap();
            load.finish().unwrap();
        }
        let t = db.table("people").unwrap();
        assert_eq!((t.count().unwrap(), t.snapshot().unwrap().rows().unwrap().len()), (300, 300));
        assert_eq!((age(&t, 149), age(&t, 150)), (Some(Value::Uint(8)), Some(Value::Uint(7))));
        assert_eq!(db.check().unwrap().problems, []);
    }
}

#[test]
fn a_small_load_replaces_too() {
    let db = Options::new().memory().unwrap();
    let t = filled(&db);
    let mut load = replacing(&t);
    push(&mut load, 298..303, 7).unwrap();
    push(&mut load, 300..301, 8).unwrap();
    let report = load.finish().unwrap();
    assert_eq!((report.rows, report.segments), (6, 0));
    assert_eq!((t.count().unwrap(), age(&t, 300)), (301, Some(Value::Uint(8))));
}

#[test]
fn who_changes_a_row_meanwhile_wins() {
    let dir = Directory::new("replace-conflict");
    let db = small_segments().open(&dir.0).unwrap();
    let t = filled(&db);
    for what in 0..4 {
        let mut load = replacing(&t);
        if what == 3 {
            // Before the load comes to it.
            t.update(&key(150), &[("age", Value::Uint(40))]).unwrap();
        }
        let pushed = push(&mut load, 0..300, 7).and_then(|()| load.wait());
        let changed = match what {
            0 => t.update(&key(150), &[("age", Value::Uint(40))]).map(drop),
            1 => t.delete(&key(151)).map(drop),
            // Nobody has it but the load.
            2 => t.insert(&person("key 5", 41)).map(drop),
            _ => Ok(()),
        };
        let finished = pushed.and_then(|()| load.finish());
        match what {
            2 => {
                assert_eq!(changed.unwrap_err().kind(), ErrorKind::Conflict);
                finished.unwrap();
            }
            _ => {
                changed.unwrap();
                assert_eq!(finished.unwrap_err().kind(), ErrorKind::Conflict, "{what}");
                assert_eq!(age(&t, 0), Some(Value::Uint(if what == 3 { 7 } else { 1 })));
            }
        }
        assert_eq!(db.check().unwrap().problems, [], "{what}");
    }
    // A load that is dropped leaves nothing.
    let rows = t.snapshot().unwrap().rows().unwrap();
    let mut load = replacing(&t);
    push(&mut load, 0..400, 9).unwrap();
    load.wait().unwrap();
    drop(load);
    assert_eq!(t.snapshot().unwrap().rows().unwrap(), rows);
    assert_eq!(db.check().unwrap().problems, []);
    db.checkpoint().unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(t.snapshot().unwrap().rows().unwrap(), rows);
}

/// Merges and seals move what a load has noted.
#[test]
fn rows_may_move_while_a_load_replaces_them() {
    let dir = Directory::new("replace-moving");
    let db = small_segments().open(&dir.0).unwrap();
    let t = filled(&db);
    let mut load = replacing(&t);
    push(&mut load, 0..300, 7).unwrap();
    load.wait().unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    push(&mut load, 0..200, 8).unwrap();
    load.wait().unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    load.finish().unwrap();
    assert_eq!(t.count().unwrap(), 300);
    assert_eq!((age(&t, 199), age(&t, 299)), (Some(Value::Uint(8)), Some(Value::Uint(7))));
    drop((t, db));
    let db = small_segments().open(&dir.0).unwrap();
    let t = db.table("people").unwrap();
    assert_eq!(t.snapshot().unwrap().rows().unwrap().len(), 300);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_crash_leaves_all_of_it_or_nothing() {
    let machine = Simulation::new(5, SimOptions { record: true, ..SimOptions::default() });
    let open = |machine: &Simulation| {
        small_segments().environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    let t = filled(&db);
    let from = machine.io_count();
    let mut load = replacing(&t);
    push(&mut load, 0..300, 7).unwrap();
    push(&mut load, 0..50, 8).unwrap();
    load.finish().unwrap();
    let until = machine.io_count();
    db.checkpoint().unwrap();
    let (mut old, mut new, mut cursor) = (0, 0, machine.journal().unwrap().cursor());
    while cursor.advance() {
        if cursor.position() <= from {
            continue;
        }
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll, CrashChoice::Random(1)] {
            let image = cursor.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let db = open(&after);
            let t = db.table("people").unwrap();
            let rows = t.snapshot().unwrap().rows().unwrap().len();
            let is_old = age(&t, 299) == Some(Value::Uint(1));
            let wanted = if is_old { (298, Some(1)) } else { (300, Some(8)) };
            assert_eq!((rows, age(&t, 0)), (wanted.0, wanted.1.map(Value::Uint)));
            assert!(!is_old || cursor.position() <= until, "{}", cursor.describe());
            if is_old { old += 1 } else { new += 1 }
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}
