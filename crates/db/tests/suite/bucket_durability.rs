//! Writes of buckets that are durable when they return, and writes that are not, whatever the
//! database is; and what a bucket says once nothing can be made durable any more.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use esker::{Bucket, Database, Durability, ErrorKind, Options, PutOptions, Result, Ttl};
use esker_vfs::sim::{
    CallKind, CrashChoice, FaultKind, Options as SimOptions, Repeat, Script, Simulation,
};

/// An end that no test comes to, in microseconds since 1970.
const LATE_US: i64 = 4_000_000_000_000_000;

type Change = (&'static str, fn(&Bucket) -> Result<()>);

/// Every way to change one bucket in a commit of its own, each of which changes something.
const CHANGES: [Change; 14] = [
    ("put", |b| b.put("k", "new")),
    ("put_many", |b| b.put_many([("a", "1"), ("b", "2")])),
    ("put_if_absent", |b| b.put_if_absent("a", "1", Ttl::Default).map(drop)),
    ("compare_and_swap", |b| b.compare_and_swap("k", Some(b"old"), Some(b"new")).map(drop)),
    ("update", |b| b.update("k", |_| Some(b"new".to_vec())).map(drop)),
    ("increment", |b| b.increment("n", 1).map(drop)),
    ("append", |b| b.append("k", "er").map(drop)),
    ("take", |b| b.take("k").map(drop)),
    ("remove", |b| b.remove("k").map(drop)),
    ("remove_range", |b| b.remove_range("k"..).map(drop)),
    ("remove_prefix", |b| b.remove_prefix("k").map(drop)),
    ("touch", |b| b.touch("k", Ttl::At(LATE_US)).map(drop)),
    ("persist", |b| b.persist("t").map(drop)),
    ("batch", |b| {
        let mut batch = b.batch();
        batch.remove(b, "k")?.put(b, "a", "1")?;
        batch.commit()
    }),
];

fn open(machine: &Simulation, durability: Durability) -> Database {
    Options::new().durability(durability).environment(machine.environment()).open("db").unwrap()
}

type Entries = Vec<(Vec<u8>, Vec<u8>, Option<i64>)>;

fn entries(db: &Database) -> Entries {
    let all = db.bucket("b").unwrap().iter().unwrap().map(|entry| {
        let entry = entry.unwrap();
        let end_us = entry.expires_at_us().unwrap();
        (entry.key().to_vec(), entry.value().to_vec(), end_us)
    });
    all.collect()
}

/// What is there before a change, after it, and after a power failure that keeps as little as it
/// may right after the change returned.
fn around(
    durability: Durability,
    options: PutOptions,
    change: fn(&Bucket) -> Result<()>,
) -> [Entries; 3] {
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine, durability);
    let bucket = db.bucket("b").unwrap();
    bucket.put("k", "old").unwrap();
    bucket.increment("n", 1).unwrap();
    bucket.put_with("t", "", Ttl::At(LATE_US)).unwrap();
    db.sync().unwrap();
    let before = entries(&db);
    change(&bucket.with(options)).unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    let after = entries(&db);
    let next = Simulation::from_image(&image, 4, SimOptions::default());
    let found = entries(&open(&next, Durability::Sync));
    [before, after, found]
}

#[test]
fn each_change_can_be_durable_or_not() {
    let lazy = Durability::Async { at_most: Duration::from_secs(3_600) };
    let sync = |sync| PutOptions::new().sync(sync);
    for (name, change) in CHANGES {
        for durability in [Durability::Sync, lazy] {
            let [before, after, found] = around(durability, sync(true), change);
            assert_ne!(before, after, "{name} changes something");
            assert_eq!(found, after, "{name} is durable once it returned, {durability:?}");
            let [before, after, found] = around(durability, sync(false), change);
            assert_ne!(before, after, "{name} is visible");
            assert_eq!(found, before, "{name} does not wait, {durability:?}");
        }
        let [_, after, found] = around(Durability::Sync, PutOptions::new(), change);
        assert_eq!(found, after, "{name}, as the database says");
        let [before, _, found] = around(lazy, PutOptions::new(), change);
        assert_eq!(found, before, "{name}, as the database says");
    }
}

/// A call that says something has the last word.
#[test]
fn options_of_a_call_precede_those_of_the_handle() {
    let wait: fn(&Bucket) -> Result<()> = |b| b.put_with("k", "new", PutOptions::new().sync(true));
    let [_, after, found] = around(Durability::Sync, PutOptions::new().sync(false), wait);
    assert_eq!(found, after);
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine, Durability::Sync);
    let bucket = db.bucket("b").unwrap();
    let short = bucket.with(Ttl::At(LATE_US));
    short.append("new", "1").unwrap();
    short.put_with("never", "1", Ttl::Never).unwrap();
    bucket.put("kept", "1").unwrap();
    short.append("kept", "2").unwrap();
    assert!(bucket.remaining("new").unwrap().unwrap().is_some());
    assert_eq!(bucket.remaining("never").unwrap(), Some(None));
    assert_eq!(bucket.remaining("kept").unwrap(), Some(None), "an entry keeps its end");
}

/// A program can tell a database that must be opened anew from all other failures.
#[test]
fn a_bucket_whose_log_could_not_be_synced_is_poisoned() {
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine, Durability::Sync);
    let bucket = db.bucket("b").unwrap();
    bucket.put("k", "old").unwrap();
    let script = Script::fault(CallKind::Sync, 0, FaultKind::SyncErrorXfs, Repeat::Once);
    machine.add_script(script.on_paths_with("log-"));
    let failed = bucket.put("k", "new").unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown, "{failed}");
    for (name, change) in CHANGES {
        let refused = change(&bucket).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Poisoned, "{name}: {refused}");
    }
    assert_eq!(bucket.sync().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(bucket.clear().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(bucket.get("k").unwrap().as_deref(), Some(&b"old"[..]), "reads go on");
}

/// Values that lie in files of their own, of several buckets, are one commit as others are.
#[test]
fn a_batch_of_several_buckets_takes_long_values() {
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine, Durability::Sync);
    let (a, b) = (db.bucket("a").unwrap(), db.bucket("b").unwrap());
    let long = vec![7; 100_000];
    let mut batch = db.batch();
    batch.put(&a, "k", &long).unwrap().put(&b, "k", &long).unwrap().put(&b, "short", "1").unwrap();
    let before = db.info().published_commit;
    batch.commit().unwrap();
    assert_eq!(db.info().published_commit, before + 1);
    let image = machine.crash_image(CrashChoice::KeepNone);
    let after = open(&Simulation::from_image(&image, 4, SimOptions::default()), Durability::Sync);
    for db in [db, after] {
        for name in ["a", "b"] {
            let value = db.bucket(name).unwrap().get("k").unwrap();
            assert!(value.as_deref() == Some(&long[..]), "{name}");
        }
        assert_eq!(db.bucket("b").unwrap().len().unwrap(), 2);
    }
}
