//! Databases in memory that are saved to a directory and begun from one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    BucketOptions, DataType, Database, ErrorKind, NewIndex, Options, PutOptions, Schema, Ttl, Value,
};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn filled() -> Database {
    let db = Options::new().memory().unwrap();
    db.create_sequence("orders", 100, 7).unwrap();
    assert_eq!(db.next_value("orders").unwrap(), 100);
    db.create_sequence("unused", 5, -1).unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("name", DataType::Text)
        .field("price", DataType::Decimal { precision: 30, scale: 2 })
        .nullable("doc", DataType::Json)
        .primary_key(["id"])
        .add_index(NewIndex::new("by_name", ["name"]).unique())
        .add_index(NewIndex::new("by_city", ["doc.city"]));
    let t = db.create_table("t", schema.build().unwrap()).unwrap();
    for id in 0..3_000i64 {
        let name = if id % 5 == 0 { Value::Null } else { format!("n{id}").as_str().into() };
        let doc = Value::json(&format!("{{\"city\": \"c{}\"}}", id % 9)).unwrap();
        t.insert(&[id.into(), name, Value::Int(id), doc]).unwrap();
    }
    for id in (0..3_000i64).step_by(4) {
        assert!(t.delete(&[id.into()]).unwrap());
    }
    db.create_table("keyless", Schema::builder().field("n", DataType::I64).build().unwrap())
        .unwrap()
        .insert_many(&[vec![7i64.into()], vec![7i64.into()]])
        .unwrap();
    let empty = Schema::builder().field("n", DataType::F64);
    db.create_table("empty", empty.build().unwrap()).unwrap();
    let options = BucketOptions::new().ttl(Duration::from_secs(9_000));
    let bucket = db.create_bucket("cache", &options).unwrap();
    bucket.put(b"a", b"1").unwrap();
    bucket.put_with(b"b", [9; 200_000], PutOptions::new().ttl(Ttl::Never)).unwrap();
    db
}

fn holds_the_same(a: &Database, b: &Database) {
    assert_eq!(a.tables(), b.tables());
    assert_eq!(a.buckets(), b.buckets());
    assert_eq!(a.sequences(), b.sequences());
    for name in a.tables() {
        let (a, b) = (a.table(&name).unwrap(), b.table(&name).unwrap());
        assert_eq!(a.schema(), b.schema(), "{name}");
        let rows = |table: &esker::Table| {
            let rows = table.snapshot().unwrap().rows().unwrap();
            let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|(_, row)| row).collect();
            rows.sort();
            rows
        };
        assert_eq!(rows(&a), rows(&b), "{name}");
    }
    assert_eq!(b.check().unwrap().problems, []);
    assert_eq!(b.recount(true).unwrap(), []);
}

#[test]
fn what_is_saved_comes_back() {
    if crate::is_on_disk() {
        return; // Of databases in memory.
    }
    let dir = Directory::new("save");
    let db = filled();
    db.save(&dir.0).unwrap();
    let memory = Options::new().memory_from(&dir.0).unwrap();
    holds_the_same(&db, &memory);
    // It is a database of its own: changes do not reach what was saved.
    let row = [1i64.into(), "n2".into(), Value::Int(1), Value::Null];
    let taken = memory.table("t").unwrap().upsert(&row).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert!(memory.table("t").unwrap().delete(&[1i64.into()]).unwrap());
    assert_eq!(memory.next_value("orders").unwrap(), 107);
    let disk = Options::new().open(&dir.0).unwrap();
    holds_the_same(&db, &disk);
    assert_eq!(disk.next_value("orders").unwrap(), 107);
    disk.table("t").unwrap().delete(&[1i64.into()]).unwrap();
    disk.close().unwrap();
    // And what a database on the disk holds can be saved, too.
    let again = Directory::new("save-again");
    let disk = Options::new().open(&dir.0).unwrap();
    disk.save(&again.0).unwrap();
    holds_the_same(&disk, &Options::new().memory_from(&again.0).unwrap());
}

#[test]
fn a_directory_that_is_used_is_refused_and_left_alone() {
    if crate::is_on_disk() {
        return; // Of databases in memory.
    }
    let dir = Directory::new("save-used");
    let db = Options::new().memory().unwrap();
    db.save(&dir.0).unwrap();
    let e = db.save(&dir.0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    assert!(e.to_string().contains("expected an empty directory"), "{e}");
    let missing = dir.0.join("missing");
    assert_eq!(Options::new().memory_from(&missing).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(Options::new().memory_from(&dir.0).unwrap().tables().is_empty());
}

/// Whatever a crash leaves of a directory is all that was saved, or no database.
#[test]
fn a_crash_leaves_all_or_no_database() {
    if crate::is_on_disk() {
        return; // Of databases in memory.
    }
    let (mut whole, mut refused, mut ios) = (0, 0, 0);
    loop {
        let machine = Simulation::new(3, SimOptions::default());
        let options = |machine: &Simulation| {
            Options::new().background(false).environment(machine.environment())
        };
        let db = options(&machine).memory().unwrap();
        let t = Schema::builder().field("id", DataType::I64).primary_key(["id"]);
        let t = db.create_table("t", t.build().unwrap()).unwrap();
        t.insert_many(&(0..50i64).map(|id| vec![id.into()]).collect::<Vec<_>>()).unwrap();
        db.bucket("b").unwrap().put(b"k", b"v").unwrap();
        machine.crash_after_io(Some(machine.io_count() + ios));
        let done = db.save("saved");
        let choices = [
            CrashChoice::KeepNone,
            CrashChoice::KeepAll,
            CrashChoice::TornSubset { mask: ios.wrapping_mul(0x9e37_79b9_7f4a_7c15), seed: ios },
        ];
        for choice in choices {
            let image = machine.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            match options(&after).memory_from("saved") {
                Ok(found) => {
                    assert_eq!(found.table("t").unwrap().count().unwrap(), 50);
                    assert_eq!(found.bucket("b").unwrap().len().unwrap(), 1);
                    whole += 1;
                }
                Err(e) => {
                    assert!(done.is_err(), "{ios}: {e}");
                    refused += 1;
                }
            }
        }
        if done.is_ok() {
            break;
        }
        ios += 1;
    }
    assert!(whole > 3 && refused > 50, "{whole} {refused}");
}
