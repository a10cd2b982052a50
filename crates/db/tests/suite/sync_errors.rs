//! A sync that fails, as on each file system: of a new segment it costs that file and nothing else.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use esker::{DataType, Database, ErrorKind, NewIndex, Options, Schema, Table, Value};
use esker_vfs::sim::{
    CallKind, CrashChoice, FaultKind, Options as SimOptions, Repeat, Script, Simulation,
};

/// The ways in which a sync fails and says so.
const REPORTED: [FaultKind; 3] =
    [FaultKind::SyncErrorExt4Ordered, FaultKind::SyncErrorXfs, FaultKind::SyncErrorBtrfs];

fn open(machine: &Simulation) -> Database {
    let options = Options::new().background(false).group_limit(8, 1 << 20).small_group_limit(0);
    options.segment_limit(8).environment(machine.environment()).open("db").unwrap()
}

/// A table of ten rows, eight of which are in a group that is to be sealed.
fn rows(db: &Database) -> Table {
    let schema = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
    let table = db.create_table("rows", schema.primary_key(["id"]).build().unwrap()).unwrap();
    for id in 0..10 {
        table.insert(&row(id)).unwrap();
    }
    table
}

fn row(id: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Text(format!("row {id}"))]
}

fn segments(machine: &Simulation) -> Vec<String> {
    let mut names = machine.environment().files.list(Path::new("db")).unwrap();
    names.retain(|name| name.starts_with("segment-"));
    names.sort();
    names
}

/// The first sync of a segment file from here on fails.
fn fail_next(machine: &Simulation, fault: FaultKind) {
    let script = Script::fault(CallKind::Sync, 0, fault, Repeat::Once);
    machine.add_script(script.on_paths_with("segment-"));
}

/// The database goes on: it reads, takes changes, seals and merges, and a power failure finds all.
fn goes_on(machine: &Simulation, db: &Database, ids: &[u64]) {
    let expect = |table: &Table, ids: &[u64]| {
        assert_eq!(table.count().unwrap(), ids.len() as u64);
        for id in ids {
            let found = table.get(&[Value::Uint(*id)]).unwrap();
            assert_eq!(found.unwrap().values(), row(*id), "row {id}");
        }
    };
    let table = db.table("rows").unwrap();
    expect(&table, ids);
    table.insert(&row(1_000)).unwrap();
    db.wait_idle().unwrap();
    let ids = [ids, &[1_000]].concat();
    expect(&table, &ids);
    assert_eq!(db.check().unwrap().problems, []);
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let after = Simulation::from_image(&machine.crash_image(choice), 4, SimOptions::default());
        let db = open(&after);
        expect(&db.table("rows").unwrap(), &ids);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

#[test]
fn a_failed_sync_of_a_sealed_segment_discards_that_file_only() {
    for fault in REPORTED {
        let machine = Simulation::new(3, SimOptions::default());
        let db = open(&machine);
        rows(&db);
        fail_next(&machine, fault);
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Io, "{fault:?}");
        assert_eq!(segments(&machine), [""; 0], "{fault:?}: the file is gone");
        goes_on(&machine, &db, &(0..10).collect::<Vec<_>>());
        assert_eq!(segments(&machine).len(), 1, "{fault:?}: another file took its place");
    }
}

#[test]
fn a_failed_sync_of_a_merged_segment_keeps_its_inputs() {
    for fault in REPORTED {
        let machine = Simulation::new(3, SimOptions::default());
        let db = open(&machine);
        let table = rows(&db);
        db.wait_idle().unwrap();
        let before = segments(&machine);
        (0..4).for_each(|id| assert!(table.delete(&[Value::Uint(id)]).unwrap()));
        fail_next(&machine, fault);
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Io, "{fault:?}");
        assert_eq!(segments(&machine), before, "{fault:?}: the inputs stay, the output is gone");
        goes_on(&machine, &db, &(4..10).collect::<Vec<_>>());
        assert_ne!(segments(&machine), before, "{fault:?}: merged at the second attempt");
    }
}

#[test]
fn a_failed_sync_of_a_loaded_segment_ends_that_load_only() {
    for fault in REPORTED {
        let machine = Simulation::new(3, SimOptions::default());
        let db = open(&machine);
        let table = rows(&db);
        db.wait_idle().unwrap();
        let before = segments(&machine);
        fail_next(&machine, fault);
        let mut load = table.load().unwrap();
        let pushed = (10..40).try_for_each(|id| load.push_row(&row(id)));
        let ended = pushed.and_then(|()| load.finish().map(drop));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Io, "{fault:?}");
        assert_eq!(segments(&machine), before, "{fault:?}: nothing of the load is left");
        let mut load = table.load().unwrap();
        (10..40).for_each(|id| load.push_row(&row(id)).unwrap());
        load.finish().unwrap();
        goes_on(&machine, &db, &(0..40).collect::<Vec<_>>());
    }
}

/// An index whose run cannot be written is there all the same, and is built later.
#[test]
fn a_failed_sync_of_a_run_does_not_undo_its_index() {
    for fault in REPORTED {
        let machine = Simulation::new(3, SimOptions::default());
        let db = open(&machine);
        rows(&db);
        db.wait_idle().unwrap();
        let script = Script::fault(CallKind::Sync, 0, fault, Repeat::Once);
        machine.add_script(script.on_paths_with("run-"));
        db.create_index("rows", NewIndex::new("by_text", ["text"])).unwrap();
        let built = |db: &Database| {
            let info = db.info();
            let index = info.tables.first().and_then(|t| t.indexes.first()).cloned().unwrap();
            (index.built, index.of, info.last_error.is_some())
        };
        assert_eq!(built(&db), (0, 1, true), "{fault:?}");
        db.wait_idle().unwrap();
        assert_eq!(built(&db).0, 1, "{fault:?}");
        goes_on(&machine, &db, &(0..10).collect::<Vec<_>>());
    }
}

/// Reads of the table failed, though snapshots still showed it.
#[test]
fn a_table_whose_end_is_not_durable_is_still_read() {
    let ends: [fn(&Database) -> esker::Result<()>; 3] = [
        |db| db.rename_table("rows", "other"),
        |db| db.drop_table("rows"),
        |db| db.truncate_table("rows"),
    ];
    for (fault, end) in REPORTED.into_iter().flat_map(|fault| ends.map(|end| (fault, end))) {
        let machine = Simulation::new(3, SimOptions::default());
        let db = open(&machine);
        let table = rows(&db);
        let script = Script::fault(CallKind::Sync, 0, fault, Repeat::Once);
        machine.add_script(script.on_paths_with("log-"));
        assert_eq!(end(&db).unwrap_err().kind(), ErrorKind::OutcomeUnknown, "{fault:?}");
        for table in [table, db.table("rows").unwrap()] {
            assert_eq!(table.count().unwrap(), 10, "{fault:?}");
            assert_eq!(table.get(&[Value::Uint(3)]).unwrap().unwrap().values(), row(3));
            assert!(table.insert(&row(20)).is_err());
        }
        assert_eq!(db.snapshot().unwrap().table("rows").unwrap().count().unwrap(), 10);
        assert_eq!(db.tables(), ["rows"], "{fault:?}");
        assert_eq!(db.table("other").unwrap_err().kind(), ErrorKind::Poisoned, "{fault:?}");
    }
}
