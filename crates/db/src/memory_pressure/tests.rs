use std::sync::atomic::Ordering;

use esker_arena::{Category, Reservation};
use esker_format::{DataType, Schema};
use esker_vfs::sim::{Options as SimOptions, Simulation};
use esker_vfs::{Step, Task};

use crate::maintenance::frozen_groups;
use crate::{Database, Options};

fn events() -> Schema {
    Schema::builder().field("what", DataType::Text).build().unwrap()
}

/// Bytes that are counted as waiting to be sealed, and those that do.
fn frozen(db: &Database) -> (u64, u64) {
    let engine = db.engine();
    let catalogue = engine.lock();
    let groups = catalogue.tables.values().flat_map(frozen_groups);
    (
        engine.frozen_bytes.load(Ordering::Relaxed),
        groups.map(|row_group| row_group.byte_count()).sum(),
    )
}

struct Dropping(Database);

impl Task for Dropping {
    fn step(&mut self) -> Step {
        self.0.drop_table("dropped").unwrap();
        Step::Done
    }
}

/// What is sealed was taken off once more when its table was dropped beside the seal: what other
/// tables had waiting was no longer counted, and writers were not held back for it.
#[test]
fn a_drop_beside_a_seal_counts_no_frozen_bytes_twice() {
    for seed in 0..60 {
        let options = SimOptions { pause_probability: 500_000, ..SimOptions::default() };
        let machine = Simulation::new(seed, options);
        let environment = machine.environment();
        let tasks = std::sync::Arc::clone(&environment.tasks);
        let options = Options::new().environment(environment).background(false);
        let db = options.group_limit(20, 1 << 20).open("db").unwrap();
        for name in ["dropped", "waiting"] {
            let table = db.create_table(name, events()).unwrap();
            for _ in 0..50 {
                table.insert(&["x".repeat(500).into()]).unwrap();
            }
        }
        let dropping = tasks.spawn("dropping", Box::new(Dropping(db.clone())));
        // One seal, of the table that may be dropped meanwhile.
        db.engine().maintain(true).unwrap();
        dropping.join();
        let (counted, waiting) = frozen(&db);
        assert_eq!(counted, waiting, "seed {seed}");
        db.wait_idle().unwrap();
        assert_eq!(frozen(&db), (0, 0));
    }
}

/// Writers are held back where memory is short; a load stops short of that.
#[test]
fn loads_leave_memory_to_writers() {
    let db = Options::new().memory_limit(64 << 20).memory().unwrap();
    let t = db.create_table("events", events()).unwrap();
    let engine = db.engine();
    let mut others = Reservation::new(&engine.arena, Category::Other);
    let free = engine.load_mark() - engine.arena.used_bytes();
    assert!(others.grow(free - (1 << 20), u64::MAX, u64::MAX));
    let mut held = Reservation::new(&engine.arena, Category::Load);
    assert!(engine.reserve_for_load(&mut held, 1 << 19));
    assert!(!engine.reserve_for_load(&mut held, 2 << 20));
    assert!(!engine.seal_for_load(&mut held, 2 << 20).unwrap());
    assert!(!engine.is_short_of_memory());
    t.insert(&["x".into()]).unwrap();
}

/// Each new table counted the rows of all others that wait to be sealed, and had maintenance look
/// at all of them.
#[test]
fn a_new_table_leaves_the_others_uncounted() {
    let db = Options::new().memory().unwrap();
    db.create_table("first", events()).unwrap();
    db.wait_idle().unwrap();
    let (engine, jobs) = (db.engine(), || db.engine().progress.generation());
    // No group is frozen: to count them finds that out.
    engine.frozen_bytes.store(1, Ordering::Relaxed);
    let before = jobs();
    for number in 0..100 {
        db.create_table(&format!("t{number}"), events()).unwrap();
    }
    assert_eq!(engine.frozen_bytes.load(Ordering::Relaxed), 1);
    assert!(jobs() - before <= 1, "{} jobs", jobs() - before);
    db.drop_table("first").unwrap();
    assert_eq!(engine.frozen_bytes.load(Ordering::Relaxed), 0);
}
