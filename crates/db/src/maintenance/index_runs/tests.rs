use std::path::Path;

use esker_format::{DataType, Schema, Value};
use esker_vfs::sim::{Options as SimOptions, Simulation};

use crate::{Database, ErrorKind, Options};

fn open(machine: &Simulation) -> Database {
    Options::new()
        .environment(machine.environment())
        .background(false)
        .segment_limit(2_000)
        .open("db")
        .unwrap()
}

fn files(machine: &Simulation, prefix: &str) -> Vec<String> {
    let all = machine.environment().files.list(Path::new("db")).unwrap();
    let mut files: Vec<_> = all.into_iter().filter(|name| name.starts_with(prefix)).collect();
    files.sort();
    files
}

/// A table of one segment, whose first blocks hold the values of `x`. Returns its file.
fn filled(machine: &Simulation, db: &Database, name: &str) -> String {
    let before = files(machine, "segment-");
    let builder = Schema::builder().field("x", DataType::U64).field("y", DataType::U64);
    let builder = builder.index("by_x", ["x"]);
    let table = db.create_table(name, builder.build().unwrap()).unwrap();
    let mut load = table.load().unwrap();
    for i in 0..2_000u64 {
        let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        load.push_row(&[Value::Uint(mixed), Value::Uint(mixed >> 7)]).unwrap();
    }
    load.finish().unwrap();
    files(machine, "segment-").into_iter().find(|file| !before.contains(file)).unwrap()
}

fn damage(machine: &Simulation, segment: &str) {
    assert!(machine.flip_bit(Path::new("db").join(segment), 4_000, 3));
}

/// Nothing that comes after it was done, in any table.
#[test]
fn a_run_that_cannot_be_built_holds_back_no_other_job() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = open(&machine);
    let segment = filled(&machine, &db, "a");
    filled(&machine, &db, "b");
    db.close().unwrap();
    let runs = files(&machine, "run-");
    assert_eq!(runs.len(), 2);
    for run in &runs {
        machine.environment().files.remove(&Path::new("db").join(run)).unwrap();
    }
    damage(&machine, &segment);
    let db = open(&machine);
    let state = || db.engine().maintenance_state();
    assert!(db.engine().maintain(true).unwrap());
    assert_eq!(files(&machine, "run-"), runs[1..]);
    assert!(state().last_error.is_some());
    // It is left alone for a while, but by those that ask for it.
    assert!(!db.engine().maintain(true).unwrap());
    assert!(db.engine().until_next_try().is_some());
    assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Corrupt);
    db.drop_index("a", "by_x").unwrap();
    db.wait_idle().unwrap();
    assert!(state().back_off.is_empty());
}
