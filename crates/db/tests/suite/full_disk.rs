//! A full disk: what only adds data is refused and changes nothing, what frees space is done.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::path::Path;
use std::time::Duration;

use esker::{
    Alteration, BucketOptions, DataType, Database, ErrorKind, Field, FieldId, NewIndex, Options,
    Result, Schema, Ttl, Value,
};
use esker_vfs::sim::{Options as SimOptions, Simulation};

/// A load of so many rows writes segments: the limit of one is below.
const ROWS: u64 = 3_000;

fn open(machine: &Simulation) -> Database {
    let options = Options::new().background(false).segment_limit(2_000);
    options.environment(machine.environment()).open("db").unwrap()
}

fn row(id: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Text(format!("{id:0200}")), Value::Uint(id % 7)]
}

/// A database with tables of some rows each, in segments, a bucket and a sequence, on a full disk.
fn full(machine: &Simulation, tables: &[&str]) -> Database {
    let db = open(machine);
    for name in tables {
        let fields = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
        let schema = fields.field("n", DataType::U64).primary_key(["id"]).build().unwrap();
        let table = db.create_table(name, schema).unwrap();
        let mut load = table.load().unwrap();
        (0..ROWS).for_each(|id| load.push_row(&row(id)).unwrap());
        load.finish().unwrap();
        let index = Alteration::AddIndex(NewIndex::new("by_n", ["n"]));
        db.alter_table(name, &[index]).unwrap();
    }
    let options = BucketOptions::new().ttl(Duration::from_secs(1 << 20));
    let bucket = db.create_bucket("bucket", &options).unwrap();
    for key in ["a", "b", "c", "d"] {
        bucket.put_with(key, "value", Ttl::Default).unwrap();
    }
    db.create_sequence("numbers", 1, 1).unwrap();
    db.wait_idle().unwrap();
    fill(machine, &db, tables[0]);
    // Shorter frames take what is left.
    while bucket.put("a", "").is_ok() {}
    db
}

/// Another program takes what is left.
fn fill(machine: &Simulation, db: &Database, table: &str) {
    machine.set_capacity_bytes(machine.used_bytes());
    let table = db.table(table).unwrap();
    let mut id = ROWS;
    let refused = loop {
        match table.upsert(&row(id)) {
            Ok(_) => id += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    assert!(!table.exists(&[Value::Uint(id)]).unwrap());
}

fn refused<T>(result: Result<T>) {
    assert_eq!(result.err().unwrap().kind(), ErrorKind::NoSpace);
}

/// What only adds data.
fn adds(db: &Database) {
    let table = db.table("t").unwrap();
    refused(table.insert(&row(1 << 40)));
    refused(table.update(&[Value::Uint(1)], &[("n", Value::Uint(9))]));
    refused(db.create_table("new", (*table.schema()).clone()));
    let field = Field::new(FieldId(0), "more".into(), DataType::I64, true);
    refused(db.alter_table("t", &[Alteration::AddField(field)]));
    refused(db.create_sequence("more", 1, 1));
    refused(db.bucket("bucket").unwrap().put("e", "value"));
    refused(db.transact(|transaction| {
        transaction.drop_table("dropped")?;
        transaction.table("t")?.insert(&row(1 << 40)).map(drop)
    }));
    assert_eq!(db.tables(), ["bucket", "dropped", "t", "truncated"]);
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn everything_that_frees_space_is_done_on_a_full_disk() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = full(&machine, &["t", "dropped", "truncated"]);
    adds(&db);
    db.close().unwrap();
    let db = open(&machine);
    let full = machine.used_bytes();
    machine.set_capacity_bytes(full);
    let table = db.table("t").unwrap();
    assert!(table.delete(&[Value::Uint(1)]).unwrap());
    let keys: Vec<_> = (2..20).map(|id| vec![Value::Uint(id)]).collect();
    assert_eq!(table.delete_many(&keys).unwrap(), 18);
    db.transact(|transaction| transaction.table("t")?.delete(&[Value::Uint(20)])).unwrap();
    let bucket = db.bucket("bucket").unwrap();
    // Its entries expire: the time is logged, too.
    machine.advance_clock(Duration::from_secs(10));
    assert!(bucket.remove("a").unwrap());
    machine.advance_clock(Duration::from_secs(10));
    let mut batch = db.batch();
    batch.remove(&bucket, "b").unwrap().delete(&table, &[Value::Uint(21)]).unwrap();
    batch.commit().unwrap();
    bucket.clear().unwrap();
    db.drop_bucket("bucket").unwrap();
    db.drop_sequence("numbers").unwrap();
    db.alter_table("t", &[Alteration::DropIndex("by_n".into())]).unwrap();
    db.alter_table("t", &[Alteration::DropField("n".into())]).unwrap();
    db.truncate_table("truncated").unwrap();
    db.transact(|transaction| {
        transaction.table("t")?.delete(&[Value::Uint(22)])?;
        transaction.drop_table("dropped")
    })
    .unwrap();
    db.wait_idle().unwrap();
    assert!(machine.used_bytes() < full / 2, "{} of {full}", machine.used_bytes());
    // There is space again.
    assert_eq!(db.table("truncated").unwrap().count().unwrap(), 0);
    db.table("truncated").unwrap().insert(&row(1)).unwrap();
    let rows = table.count().unwrap();
    db.close().unwrap();
    let db = open(&machine);
    assert_eq!(db.tables(), ["t", "truncated"]);
    assert_eq!(db.table("t").unwrap().count().unwrap(), rows);
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn a_delete_that_is_too_large_for_the_reserve_says_so() {
    let machine = Simulation::new(2, SimOptions::default());
    let db = full(&machine, &["t"]);
    let table = db.table("t").unwrap();
    let rows = table.count().unwrap();
    let keys: Vec<_> = (0..ROWS).map(|id| vec![Value::Uint(id)]).collect();
    let refused = table.delete_many(&keys).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    let message = refused.to_string();
    assert!(message.contains("delete fewer rows at once, or truncate or drop"), "{message}");
    assert_eq!(table.count().unwrap(), rows);
    assert_eq!(table.delete_many(&keys[..100]).unwrap(), 100);
    db.truncate_table("t").unwrap();
    db.close().unwrap();
}

/// The log was what filled the disk: the state is small.
#[test]
fn a_checkpoint_on_a_full_disk_lets_the_log_go() {
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine);
    let bucket = db.bucket("bucket").unwrap();
    for n in 0..3_000u64 {
        bucket.put("key", n.to_le_bytes().repeat(10)).unwrap();
    }
    machine.set_capacity_bytes(machine.used_bytes());
    while bucket.put("key", [1; 80]).is_ok() {}
    let full = machine.used_bytes();
    db.checkpoint().unwrap();
    assert!(machine.used_bytes() < full / 2, "{} of {full}", machine.used_bytes());
    bucket.put("key", "value").unwrap();
    db.close().unwrap();
    open(&machine);
}

#[test]
fn the_reserve_has_a_size_and_is_in_no_backup() {
    let machine = Simulation::new(4, SimOptions::default());
    let files = machine.environment().files;
    let options = || Options::new().background(false).environment(machine.environment());
    options().log_reserve(0).open("none").unwrap();
    assert!(!files.exists(Path::new("none/reserve")).unwrap());
    let db = options().open("db").unwrap();
    let reserve = files.open(Path::new("db/reserve"), esker_vfs::OpenMode::Read).unwrap();
    assert_eq!(reserve.len().unwrap(), 16 << 10);
    db.backup("copy", &esker::BackupOptions::default(), &mut |_, _| {}).unwrap();
    assert!(!files.exists(Path::new("copy/reserve")).unwrap());
    drop(db);
    options().read_only(true).open("copy").unwrap();
    assert!(!files.exists(Path::new("copy/reserve")).unwrap());
    options().open("copy").unwrap();
    assert!(files.exists(Path::new("copy/reserve")).unwrap());
}
