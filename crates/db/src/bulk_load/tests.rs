use esker_format::{Batch, DataType, Schema, Value};
use esker_vfs::{Step, Task};

use super::budget::Budget;
use super::worker::Running;
use super::{SMALL_BYTES, SMALL_ROWS_COST};
use crate::{Database, ErrorKind, Options};

fn wide(fields: usize) -> Schema {
    let builder = Schema::builder().field("id", DataType::U64).primary_key(["id"]);
    let names = (1..fields).map(|i| format!("b{i}"));
    names.fold(builder, |builder, name| builder.field(&name, DataType::Bool)).build().unwrap()
}

fn wide_row(id: u64, fields: usize) -> Vec<Value> {
    let mut row = vec![Value::Bool(true); fields];
    row[0] = Value::Uint(id);
    row
}

struct Panics(Option<Running>);

impl Task for Panics {
    fn step(&mut self) -> Step {
        let _running = self.0.take();
        panic!("as a worker may");
    }
}

/// A load whose worker panicked waited for it for ever.
#[test]
fn a_load_whose_worker_panics_ends_with_an_error() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("text", DataType::Text).build().unwrap();
    let t = db.create_table("t", schema).unwrap();
    let mut load = t.load().unwrap();
    load.started = 1;
    let task = Panics(Some(Running::start(&load.shared)));
    drop(t.engine.environment.tasks.spawn("load", Box::new(task)));
    let e = load.wait().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(t.count().unwrap(), 0);
    assert_eq!(db.info().memory.loads, 0);
    t.insert(&["y".into()]).unwrap();
}

/// Columns of bools are small, and rows of them are not: they took several times the limit.
#[test]
fn wide_rows_of_a_small_load_are_counted_as_rows() {
    let takes_the_log = |db: &Database, fields: usize, rows: u64, input: u64| {
        let schema = wide(fields);
        let t = db.create_table(&format!("{fields} {rows}"), schema.clone()).unwrap();
        let mut load = t.load().unwrap();
        load.reserve_input(input).unwrap();
        let mut batch = Batch::empty(&schema);
        (0..rows).for_each(|id| batch.push_row(&schema, &wide_row(id, fields)).unwrap());
        load.push(batch).unwrap();
        assert!(load.started == 0 && load.gathered.bytes < SMALL_BYTES);
        let cost = Budget::rows_cost(fields, load.gathered.batch.len(), load.gathered.bytes);
        assert!(cost >= 2 * rows * (fields * size_of::<Value>()) as u64);
        let takes = load.takes_the_log();
        assert!(!takes || (cost <= SMALL_ROWS_COST && load.gathered.held.bytes() >= cost));
        let report = load.finish().unwrap();
        assert_eq!((report.segments == 0, t.count().unwrap()), (takes, rows));
        takes
    };
    let db = Options::new().memory_limit(256 << 20).memory().unwrap();
    assert!(takes_the_log(&db, 3, 5_000, 0));
    assert!(takes_the_log(&db, 181, 1_000, 0));
    assert!(!takes_the_log(&db, 181, 5_000, 0));
    // There is memory for the columns, but not for the rows.
    let db = Options::new().memory_limit(64 << 20).memory().unwrap();
    assert!(!takes_the_log(&db, 181, 1_000, 34 << 20));
}
