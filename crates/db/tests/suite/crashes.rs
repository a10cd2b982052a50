//! Regressions that crash campaigns found, each made small: see `esker-testkit` for campaigns.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_vfs::sim::{
    CallKind, CrashChoice, FaultKind, Options as SimOptions, Repeat, Script, Simulation,
};
use esker_vfs::{Step, Task};

fn open(machine: &Simulation) -> esker::Result<Database> {
    Options::new().environment(machine.environment()).open("db")
}

fn events() -> Schema {
    Schema::builder().field("what", DataType::Text).build().unwrap()
}

fn recorded() -> Simulation {
    Simulation::new(3, SimOptions { record: true, ..SimOptions::default() })
}

/// A crash while the first checkpoint is written left a directory that could not be opened.
#[test]
fn a_creation_that_was_cut_short_is_begun_again() {
    let machine = recorded();
    open(&machine).unwrap().close().unwrap();
    let mut cursor = machine.journal().unwrap().cursor();
    loop {
        let subsets = 0..1 << cursor.pending_count().min(6);
        for choice in subsets.map(CrashChoice::Subset).chain((0..8).map(CrashChoice::Random)) {
            let image = cursor.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let db = open(&after).unwrap_or_else(|e| panic!("{}: {e}", cursor.describe()));
            db.create_table("events", events()).unwrap();
        }
        if !cursor.advance() {
            break;
        }
    }
}

/// Restored from a checkpoint, rows stand by age, not by row id, and were not found by it.
#[test]
fn a_generated_key_is_found_after_update_and_reopen() {
    let machine = recorded();
    let db = open(&machine).unwrap();
    let table = db.create_table("events", events()).unwrap();
    let ids: Vec<u64> = (0..4).map(|_| table.insert(&["old".into()]).unwrap()).collect();
    assert!(table.update(&[Value::Uint(ids[1])], &[("what", "new".into())]).unwrap());
    let later = table.insert(&["later".into()]).unwrap();
    drop(table);
    let mut db = Some(db);
    for round in 0..3 {
        let db = db.take().unwrap_or_else(|| open(&machine).unwrap());
        let table = db.table("events").unwrap();
        for id in ids.iter().chain([&later]) {
            assert!(table.exists(&[Value::Uint(*id)]).unwrap(), "row id {id}, round {round}");
        }
        assert!(!table.exists(&[Value::Uint(u64::MAX)]).unwrap());
        assert!(db.check().unwrap().is_sound());
        db.checkpoint().unwrap();
        drop(table);
        db.close().unwrap();
    }
}

/// Inserts a key and, once told that it exists already, crashes the machine.
struct Second {
    machine: Simulation,
    db: Database,
    refused: Arc<AtomicU64>,
}

impl Task for Second {
    fn step(&mut self) -> Step {
        let table = self.db.table("people").unwrap();
        if let Err(e) = table.insert(&["Ada".into()]) {
            assert_eq!(e.kind(), ErrorKind::AlreadyExists);
            let io = self.machine.io_count();
            let _ = self.refused.compare_exchange(0, io, Ordering::Relaxed, Ordering::Relaxed);
        }
        Step::Done
    }
}

/// "Exists already" told of a commit that a power loss could still take back.
#[test]
fn what_a_refusal_tells_of_is_durable() {
    for seed in 0..40 {
        let options =
            SimOptions { record: true, pause_probability: 1_000_000, ..SimOptions::default() };
        let machine = Simulation::new(seed, options);
        let db = open(&machine).unwrap();
        let schema = Schema::builder().field("name", DataType::Text).primary_key(["name"]);
        let people = db.create_table("people", schema.build().unwrap()).unwrap();
        let refused = Arc::new(AtomicU64::new(0));
        let second =
            Second { machine: machine.clone(), db: db.clone(), refused: Arc::clone(&refused) };
        let task = machine.environment().tasks.spawn("second", Box::new(second));
        let _ = people.insert(&["Ada".into()]);
        task.join();
        let told_at = refused.load(Ordering::Relaxed);
        if told_at == 0 {
            continue;
        }
        let mut cursor = machine.journal().unwrap().cursor();
        while cursor.position() < told_at && cursor.advance() {}
        let image = cursor.crash_image(CrashChoice::KeepNone);
        let after = Simulation::from_image(&image, 4, SimOptions::default());
        let db = open(&after).unwrap();
        assert_eq!(db.table("people").unwrap().count().unwrap(), 1, "seed {seed}");
    }
}

/// The process dies here: its page cache stays, what it does from now on does not happen.
fn die(machine: &Simulation, db: Database) {
    machine.crash_after_io(Some(0));
    drop(db);
    machine.kill_tasks();
    machine.crash_after_io(None);
}

/// A checkpoint whose sync failed reads back whole from the page cache, and is not on the disk.
#[test]
fn a_checkpoint_whose_sync_failed_is_not_relied_on() {
    for which in 0..2 {
        let machine = recorded();
        let script = Script::fault(CallKind::Sync, which, FaultKind::SyncErrorXfs, Repeat::Once);
        machine.add_script(script.on_paths_with("checkpoint-"));
        let mut db = open(&machine);
        assert_eq!(db.is_err(), which == 0, "the first sync is that of the creation");
        if db.is_err() {
            db = open(&machine);
        }
        let db = db.unwrap();
        db.create_table("events", events()).unwrap();
        db.table("events").unwrap().insert(&["kept".into()]).unwrap();
        assert_eq!(db.checkpoint().is_err(), which == 1);
        die(&machine, db);
        let db = open(&machine).unwrap();
        db.table("events").unwrap().insert(&["kept, too".into()]).unwrap();
        let image = machine.crash_image(CrashChoice::KeepNone);
        let after = Simulation::from_image(&image, 4, SimOptions::default());
        let db = open(&after).unwrap();
        assert_eq!(db.table("events").unwrap().count().unwrap(), 2);
    }
}

/// Index entries of an aborted load that could not be found again were looked up for ever.
#[test]
fn an_aborted_load_that_cannot_read_its_keys_back_leaves_nothing_to_find() {
    let machine = recorded();
    let options = Options::new().segment_limit(1_000).environment(machine.environment());
    let db = options.open("db").unwrap();
    let schema = Schema::builder().field("id", DataType::U64).primary_key(["id"]).build().unwrap();
    let table = db.create_table("people", schema).unwrap();
    let mut load = table.load().unwrap();
    (0..2_500u64).for_each(|id| load.push_row(&[Value::Uint(id)]).unwrap());
    load.wait().unwrap();
    let script = Script::fault(CallKind::Read, 0, FaultKind::ReadError, Repeat::ForEver);
    machine.add_script(script.on_paths_with("segment-"));
    drop(load);
    assert!(!table.exists(&[Value::Uint(7)]).unwrap());
    assert_eq!(table.count().unwrap(), 0);
    table.insert(&[Value::Uint(7)]).unwrap();
    assert!(table.exists(&[Value::Uint(7)]).unwrap());
    assert_eq!(db.check().unwrap().problems, []);
    db.close().unwrap();
}

/// Segments that a load wrote before anything else was durable stood in the way of later ones.
#[test]
fn a_creation_that_is_begun_again_removes_what_a_load_left() {
    let machine = recorded();
    let options = |machine: &Simulation| {
        let at_most = std::time::Duration::from_secs(60);
        let durability = esker::Durability::Async { at_most };
        let options = Options::new().segment_limit(1_000).durability(durability);
        options.environment(machine.environment())
    };
    let load = |db: &Database| {
        let table = db.create_table("events", events()).unwrap();
        let mut load = table.load().unwrap();
        (0..2_500).for_each(|_| load.push_row(&["a row".into()]).unwrap());
        load.wait().unwrap();
        load
    };
    let db = options(&machine).open("db").unwrap();
    let unfinished = load(&db);
    for choice in [CrashChoice::KeepAll, CrashChoice::KeepNone, CrashChoice::Random(5)] {
        let image = machine.crash_image(choice);
        let after = Simulation::from_image(&image, 4, SimOptions::default());
        let db = options(&after).open("db").unwrap();
        if db.tables().is_empty() {
            load(&db).finish().unwrap();
        }
    }
    drop(unfinished);
}
