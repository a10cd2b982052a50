//! Snapshots and transactions that are held are listed with their age.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::time::Duration;

use esker::{DataType, Options, Schema};
use esker_vfs::sim::{Options as SimOptions, Simulation};

#[test]
fn what_is_held_is_listed_by_age() {
    let machine = Simulation::new(7, SimOptions::default());
    let options = Options::new().background(false).environment(machine.environment());
    let db = options.open("db").unwrap();
    let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]);
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    assert_eq!(db.snapshots(), []);
    let first = db.snapshot().unwrap();
    machine.advance_clock(Duration::from_secs(90));
    table.insert(&[1i64.into()]).unwrap();
    let transaction = db.begin().unwrap();
    machine.advance_clock(Duration::from_secs(5));
    let held = db.snapshots();
    assert_eq!(held.len(), 2);
    let (oldest, youngest) = (held.first().unwrap(), held.last().unwrap());
    assert_eq!(oldest.commit, first.commit());
    assert!(oldest.age >= Duration::from_secs(95), "{oldest:?}");
    assert_eq!(youngest.commit, transaction.read_at());
    assert!(youngest.age >= Duration::from_secs(5) && youngest.age < Duration::from_secs(90));
    assert_eq!(db.info().snapshots.len(), 2);
    drop(first);
    transaction.rollback();
    assert_eq!(db.snapshots(), []);
    table.get(&[1i64.into()]).unwrap();
    assert_eq!(db.snapshots(), []);
}
